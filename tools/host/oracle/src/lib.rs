// SPDX-License-Identifier: GPL-2.0

//! What must hold for any input, as functions that panic if it does not.
//!
//! Each function takes an input, lets `wire` or `engine` loose on it, and compares the outcome with
//! a model that is slow, obvious and written from the RFC instead of from the code. The property
//! tests (`tests/`) call them with generated inputs, the fuzz targets (`tools/fuzz`) with whatever
//! reaches new code.

mod assembly;
mod call;
mod exposed;
mod header;
mod inbound;
mod placement;
mod private_data;
mod reply;
mod returned;

pub use assembly::assembly;
pub use call::call;
pub use exposed::exposed;
pub use exposed::history;
pub use exposed::Event;
pub use header::header;
pub use inbound::inbound;
pub use placement::placement;
pub use private_data::private_data;
pub use reply::reply;
pub use returned::returned;
