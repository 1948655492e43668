// SPDX-License-Identifier: GPL-2.0

//! SUNRPC closes the connections of clients, whose files say why.

use core::cell::Cell;
use std::rc::Rc;

use kernel::sched::{self, below};

use super::files;
use crate::bindings::rpc::{Call, Client};

/// A key that nothing wakes.
const PAUSE: usize = 21;

/// Waits until SUNRPC has closed the connection.
fn wait_closed(client: &Client) {
    while !client.is_closed() {
        sched::wait_until(PAUSE, sched::now() + 20_000_000);
    }
}

/// SUNRPC closes the connection of a client without RPCs: its idle timer has expired, or an
/// administrator writes to sysfs.
fn close(client: &Client) {
    let is_idle = below(2) == 0;
    if is_idle {
        sched::wait_until(PAUSE, sched::now() + client.idle_ns());
        client.expire_idle_timer();
    } else {
        client.force_disconnect();
    }
    wait_closed(client);
    let why = if is_idle { "idle" } else { "closed by SUNRPC" };
    files::expect_closed(&client.id(), why);
}

/// Has SUNRPC close the connections of these clients, which have no RPCs. `call` is one more.
pub(super) fn close_all(
    clients: Vec<Rc<Client>>,
    call: impl Fn() -> Call + 'static,
) -> Result<(), String> {
    let done = Rc::new(Cell::new(false));
    let is_done = done.clone();
    sched::spawn("administrator", move || {
        for client in clients {
            client.start(call());
            client.wait();
            close(&client);
            client.start(call());
            client.wait();
            // A task that finds its Reply overdue may be late: the connection has ended.
            let overdue = client.find_reply_overdue();
            client.force_disconnect();
            while !overdue.get() {
                sched::wait_until(PAUSE, sched::now() + 20_000_000);
            }
            wait_closed(&client);
            client.start(call());
            client.wait();
            close(&client);
        }
        done.set(true);
    });
    sched::run_until("the connections are closed", || is_done.get())
}
