// SPDX-License-Identifier: GPL-2.0

//! A failure that is planted.

use core::cell::Cell;
use std::rc::Rc;

use kernel::sched::{self, below, Config};

use super::outcome::Seen;
use super::plays::Play;
use super::world;

/// A play that breaks a law if three of its contexts make a choice that is not the plainest. It
/// tests the shrinking of failures.
pub const PLANTED: Play = Play {
    name: "planted",
    run: planted,
};

fn planted(config: &Config) -> Result<Seen, String> {
    sched::begin(config);
    let count = Rc::new(Cell::new(0));
    for number in 0..40 {
        let count = count.clone();
        sched::spawn(format!("context {number}"), move || {
            for _ in 0..below(4) {
                sched::wait_until(number, sched::now() + 1000);
            }
            if sched::one_in(3) {
                count.set(count.get() + 1);
                say!("is number {}", count.get());
            }
            if count.get() == 3 {
                sched::fail("a planted failure");
            }
        });
    }
    sched::run_until("the contexts", || sched::alive() == 0)?;
    Ok(Seen::default())
}
