// SPDX-License-Identifier: GPL-2.0

//! What has happened to the connections of a transport, for its file.

use kernel::sync::atomic::ordering::Relaxed;

use crate::{
    lib::{
        clock::Since,
        close_reason::{
            CloseReason,
            Closed, //
        },
        counter::SingleWriterCounter,
        sync::Atomic, //
    },
    sunrpc::xprt::ConnectError, //
};

use super::connect_failure::ConnectFailure;

/// What has happened to the connections of a transport.
pub(super) struct LinkHistory {
    /// When an attempt to connect has begun, has succeeded or failed, or a connection has ended.
    since: Since,
    /// Why the last connection has ended.
    closed: Closed,
    /// Attempts that have failed. Written with the send lock.
    failures: SingleWriterCounter,
    /// Why the last of these attempts failed: a [`ConnectFailure`].
    last_failure: Atomic<u64>,
    /// What the connection manager has reported of the present attempt.
    reported: Atomic<u64>,
}

impl LinkHistory {
    pub(super) fn new() -> Self {
        Self {
            since: Since::now(),
            closed: Closed::new(),
            failures: SingleWriterCounter::default(),
            last_failure: Atomic::new(0),
            reported: Atomic::new(0),
        }
    }

    /// Notes that an attempt begins.
    pub(super) fn connecting(&self) {
        self.since.restart();
        self.reported.store(0, Relaxed);
    }

    /// Notes why the present attempt fails.
    pub(super) fn report(&self, failure: ConnectFailure) {
        self.reported.store(failure.code(), Relaxed);
    }

    /// Notes that the attempt has succeeded.
    pub(super) fn connected(&self) {
        self.since.restart();
    }

    /// Notes that the attempt has failed with `error`. Returns why: what was
    /// [reported](Self::report), if it is the reason for that error.
    pub(super) fn failed(&self, error: ConnectError) -> ConnectFailure {
        self.since.restart();
        self.failures.add(1);
        let reported = ConnectFailure::from_code(self.reported.load(Relaxed));
        let failure = reported
            .filter(|failure| failure.error() == error)
            .unwrap_or(error.into());
        self.last_failure.store(failure.code(), Relaxed);
        failure
    }

    /// Notes that a connection has ended.
    pub(super) fn closed(&self, reason: CloseReason) {
        self.since.restart();
        self.closed.set(reason);
    }

    /// Milliseconds since the last of these events.
    pub(super) fn state_ms(&self) -> u64 {
        self.since.ms()
    }

    /// Why the last connection has ended.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.closed.get()
    }

    /// Attempts that have failed.
    pub(super) fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// Why the last of these attempts failed.
    pub(super) fn last_failure(&self) -> Option<ConnectFailure> {
        ConnectFailure::from_code(self.last_failure.load(Relaxed))
    }
}
