// SPDX-License-Identifier: GPL-2.0

//! The connecting end: connect, send, reply, registration.

#![forbid(unsafe_code)]
