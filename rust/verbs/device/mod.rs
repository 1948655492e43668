// SPDX-License-Identifier: GPL-2.0

//! Devices and what lives as long as a device allows: protection domains, buffers, queues.
//!
//! | file        | what                                                        |
//! |-------------|-------------------------------------------------------------|
//! | `ib_client` | the RDMA core's reports of devices, and references to them  |
//! | `attrs`     | device limits, and the queue and message sizes chosen       |
//! | `query`     | reads the limits of a device                                |
//! | `pd`        | protection domains                                          |
//! | `dma_buf`   | buffers with a DMA mapping of their own lifetime            |
//! | `recv_buf`  | the memory of Receive buffers                               |
//! | `mappings`  | the DMA mappings of that memory                             |
//! | `queues`    | a QP and its CQs                                            |

pub(super) mod attrs;
pub(super) mod dma_buf;
pub(super) mod ib_client;
mod mappings;
pub(super) mod pd;
pub(super) mod query;
pub(super) mod queues;
pub(super) mod recv_buf;
