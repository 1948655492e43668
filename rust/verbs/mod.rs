// SPDX-License-Identifier: GPL-2.0

//! RDMA as types that cannot be misused: devices, queue pairs, buffers and memory regions.
//!
//! What is posted belongs to the device until its completion gives it back.
