// SPDX-License-Identifier: GPL-2.0

//! The file that shows the state of a connection, under `/sys/kernel/debug/rpcrdma/server`.

use kernel::prelude::*;

use crate::{
    debugfs::Removable,
    lib::{
        counter::Gauge,
        sync::SetOnce, //
    }, //
};

/// The number of connections that were accepted.
static ACCEPTED: Gauge = Gauge::new();

/// The file of a connection, once SUNRPC has the connection.
pub(crate) struct StateFile {
    number: SetOnce<usize>,
    file: SetOnce<KBox<dyn Removable>>,
}

impl StateFile {
    /// No file.
    pub(crate) const fn new() -> Self {
        Self {
            number: SetOnce::new(),
            file: SetOnce::new(),
        }
    }

    /// The number of the connection, once SUNRPC has it.
    pub(crate) fn number(&self) -> Option<usize> {
        self.number.copy()
    }

    /// Gives the connection the next number; returns it.
    pub(super) fn set_number(&self) -> usize {
        let number = ACCEPTED.add(1) + 1;
        self.number.populate(number);
        number
    }

    /// Stores the file.
    pub(super) fn set(&self, file: KBox<dyn Removable>) {
        self.file.populate(file);
    }

    /// Removes the file, and waits until no task reads it. Sleeps.
    pub(super) fn remove(&self) {
        if let Some(file) = self.file.as_ref() {
            file.remove();
        }
    }
}
