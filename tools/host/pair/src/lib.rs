// SPDX-License-Identifier: GPL-2.0

//! A simulation of a client and a server that run the module's engine, over a simulated link.
//!
//! A seed determines the whole run: sizes, thresholds, credits, the order of completions,
//! disconnects, cancelled RPCs, and mutations of messages by a hostile peer. The simulation checks
//! after each step:
//!
//! * Every Send finds a Receive and is within the inline threshold.
//! * In both directions, unanswered Calls do not exceed the granted credits.
//! * No RPC completes while one of its handles is valid, not even a cancelled one.
//! * An honest peer accesses only exposed memory. It invalidates only handles of the answered Call.
//! * Every RPC and every backchannel Call ends exactly once. An RPC gets the Reply to its Call.
//!
//! At the end it checks that no credit, Send Queue entry, Receive or registration is lost.
//!
//! With a hostile peer, the content of Replies is not checked.

pub mod app;
pub mod backchannel;
pub mod client;
pub mod exposed;
mod hostile;
pub mod marshal;
pub mod memory;
mod negotiation;
pub mod queues;
pub mod rng;
pub mod scenario;
pub mod server;
pub mod world;

pub use scenario::Scenario;
pub use scenario::Stats;
pub use world::run;
