// SPDX-License-Identifier: GPL-2.0

//! Properties that hold for any input, as functions that panic if they do not hold.
//!
//! Each function passes its input to `wire` or `engine`, and compares the result with a model. The
//! models follow the text of the RFC, not the code, and are simple rather than fast. The property
//! tests (`tests/`) and the fuzz targets (`tools/fuzz`) generate the inputs.

mod call;
mod exposed;
mod header;
mod inbound;
mod match_reply;
mod placement;
mod private_data;
mod reassembly;
mod reply;

pub use call::call;
pub use exposed::exposed;
pub use exposed::history;
pub use exposed::Event;
pub use header::header;
pub use inbound::inbound;
pub use match_reply::match_reply;
pub use placement::placement;
pub use private_data::private_data;
pub use reassembly::reassembly;
pub use reply::reply;
