// SPDX-License-Identifier: GPL-2.0

//! Both ends' engines against each other over a simulated link.
