// SPDX-License-Identifier: GPL-2.0

//! A connection attempt: the connect worker makes requests, the CM's events answer them.
//!
//! C: verbs.c, rpcrdma_create_id()

use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        CondVar,
        CondVarTimeoutResult,
        Mutex, //
    },
    time::msecs_to_jiffies, //
};

use crate::{
    engine::agreement::{
        Agreement,
        Extensions, //
    },
    sunrpc::xprt::ConnectError, //
};

/// How often the connect worker checks whether the transport is still in use.
const WANTED_MS: u32 = 1_000;

/// On RoCE the CM reports an unresponsive peer by the same event as a change of the peer's hardware
/// address, but not before this time: it sends a request sixteen times, every 4.3 seconds or more.
const CM_TIMEOUT_MS: u32 = 60_000;

/// Progress of a connection attempt.
#[derive(Clone, Copy)]
pub(super) enum ConnectProgress {
    /// A request waits for its answer.
    Asked,
    /// The last request was answered.
    Answered,
    /// The peer has accepted.
    Established(Agreement, Extensions),
    /// The attempt has failed, or the connection is lost.
    Ended(ConnectError),
}

struct State {
    progress: ConnectProgress,
    /// A Receive has failed. If the peer rejects, its answer gives the reason; if the peer accepts,
    /// the connection is lost at once.
    has_recv_failed: bool,
}

/// A connection attempt, from the first request to the end of the connection.
#[pin_data]
pub(super) struct ConnectWait {
    #[pin]
    state: Mutex<State>,
    #[pin]
    progressed: CondVar,
}

impl ConnectWait {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            state <- new_mutex!(
                State { progress: ConnectProgress::Asked, has_recv_failed: false },
                "ConnectWait::state"
            ),
            progressed <- new_condvar!("ConnectWait::progressed"),
        })
    }

    /// Makes a `request` to the CM and waits for the answer.
    ///
    /// # Errors
    ///
    /// The error of `request`, `TimedOut`, or the error that has ended the attempt; `NotConnected`
    /// if `is_referenced` returns `false` or the worker is interrupted.
    pub(super) fn ask(
        &self,
        request: impl FnOnce() -> Result,
        timeout_ms: u32,
        is_referenced: impl Fn() -> bool,
    ) -> Result<ConnectProgress, ConnectError> {
        {
            let mut state = self.state.lock();
            if let ConnectProgress::Ended(error) = state.progress {
                return Err(error);
            }
            state.progress = ConnectProgress::Asked;
        }
        // Without the lock: the event may arrive before `request` returns.
        request()?;
        let mut left = msecs_to_jiffies(timeout_ms);
        let mut state = self.state.lock();
        loop {
            match state.progress {
                ConnectProgress::Asked if left == 0 => return Err(ConnectError::TimedOut),
                ConnectProgress::Asked if !is_referenced() => {
                    return Err(ConnectError::NotConnected)
                }
                ConnectProgress::Asked => {}
                ConnectProgress::Ended(ConnectError::PeerMoved)
                    if msecs_to_jiffies(timeout_ms) - left >= msecs_to_jiffies(CM_TIMEOUT_MS) =>
                {
                    return Err(ConnectError::HostUnreachable);
                }
                ConnectProgress::Ended(error) => return Err(error),
                answer => return Ok(answer),
            }
            let most = left.min(msecs_to_jiffies(WANTED_MS));
            left -= match self.progressed.wait_interruptible_timeout(&mut state, most) {
                CondVarTimeoutResult::Woken { jiffies } => most.saturating_sub(jiffies),
                CondVarTimeoutResult::Signal { .. } => return Err(ConnectError::NotConnected),
                CondVarTimeoutResult::Timeout => most,
            };
        }
    }

    /// Records an answer, unless the attempt is over.
    pub(super) fn answer(&self, answer: ConnectProgress) {
        let mut state = self.state.lock();
        state.progress = match (state.progress, answer) {
            (ended @ ConnectProgress::Ended(_), _) => ended,
            (_, ConnectProgress::Established(..)) if state.has_recv_failed => {
                ConnectProgress::Ended(ConnectError::NotConnected)
            }
            _ => answer,
        };
        self.progressed.notify_all();
    }

    /// Whether there is a connection.
    pub(super) fn is_established(&self) -> bool {
        matches!(self.state.lock().progress, ConnectProgress::Established(..))
    }

    /// Notes that the attempt has failed, or that its connection is lost. Returns `true` if the
    /// connection was established until now.
    pub(super) fn fail(&self, error: ConnectError) -> bool {
        let mut state = self.state.lock();
        let established = matches!(state.progress, ConnectProgress::Established(..));
        state.progress = ConnectProgress::Ended(error);
        self.progressed.notify_all();
        established
    }

    /// Notes a failed Receive: the QP is in the error state. Returns `true` if the connection was
    /// established until now.
    ///
    /// If the peer rejects the connection, the QP enters the error state as well, sometimes before
    /// the CM reports the rejection. So a failed Receive does not end an attempt.
    pub(super) fn recv_failed(&self) -> bool {
        let mut state = self.state.lock();
        state.has_recv_failed = true;
        let established = matches!(state.progress, ConnectProgress::Established(..));
        drop(state);
        established && self.fail(ConnectError::NotConnected)
    }
}
