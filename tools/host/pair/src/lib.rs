// SPDX-License-Identifier: GPL-2.0

//! Both ends' engines against each other over a simulated link.
//!
//! A seed decides everything: sizes, thresholds, credits, the order of completions, losses of the
//! connection, consumers that give up, and what a hostile peer makes of its messages. The world
//! checks after each step what must always hold, and at the end that nothing was lost:
//!
//! * no Send arrives that has no Receive, and none is over the inline threshold;
//! * no more Calls are unanswered than were granted, in either direction;
//! * no RPC completes while one of its handles is valid, cancelled ones included;
//! * an honest peer never touches what is not exposed, and never invalidates a foreign handle;
//! * every RPC ends exactly once, with the Reply that was meant for it, and every reverse Call
//!   does;
//! * no credit, no Send Queue entry, no Receive and no registration is lost.
//!
//! Against a hostile peer there is nothing to say about what a Reply holds; all else holds too.

pub mod app;
pub mod backchannel;
pub mod client;
pub mod end;
mod hostile;
pub mod marshal;
pub mod memory;
pub mod rng;
pub mod server;
pub mod world;

pub use world::live;
pub use world::History;
pub use world::Weather;
