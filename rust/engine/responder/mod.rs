// SPDX-License-Identifier: GPL-2.0

//! The decisions of the responder.
//!
//! | file          | question                                                    |
//! |---------------|-------------------------------------------------------------|
//! | `read_chunks` | which chunks does a Read list describe                      |
//! | `reassembly`  | how does a Call with Read chunks become whole               |
//! | `call_header` | where do the arguments of a Call begin                      |
//! | `reply`       | how does a Reply travel                                     |
//! | `remote_inv`  | which handle may the Send of a Reply invalidate             |
//! | `exposed`     | which Replies are exposed, until when, and how many may be  |
//! | `stall`       | has a Send Queue stalled                                    |

pub mod call_header;
pub mod exposed;
mod read_chunks;
pub mod reassembly;
pub mod remote_inv;
pub mod reply;
pub mod stall;
