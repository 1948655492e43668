// SPDX-License-Identifier: GPL-2.0

//! Devices, protection domains, DMA buffers and queues.
//!
//! | file        | what                                                        |
//! |-------------|-------------------------------------------------------------|
//! | `ib_client` | registration with the RDMA core, and references to devices  |
//! | `attrs`     | the limits of a device, and the sizes that a connection uses|
//! | `query`     | reads the limits of a device                                |
//! | `local_inv` | devices that refuse every LOCAL_INV                         |
//! | `pd`        | protection domains                                          |
//! | `dma_map`   | DMA mapping of buffers and pages                            |
//! | `dma_buf`   | buffers that stay mapped for as long as they exist          |
//! | `recv_buf`  | the memory of Receive buffers                               |
//! | `mappings`  | the DMA mappings of that memory                             |
//! | `queues`    | the QP of a connection and its two CQs                      |

pub(super) mod attrs;
pub(super) mod dma_buf;
pub(super) mod dma_map;
pub(super) mod ib_client;
pub(super) mod local_inv;
mod mappings;
pub(super) mod pd;
pub(super) mod query;
pub(super) mod queues;
pub(super) mod recv_buf;
