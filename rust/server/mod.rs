// SPDX-License-Identifier: GPL-2.0

//! The listening end: accept, receive, read, write, reply.

#![forbid(unsafe_code)]
