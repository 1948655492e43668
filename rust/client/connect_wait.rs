// SPDX-License-Identifier: GPL-2.0

//! An attempt to connect: the connect worker asks, the connection manager's events answer.

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

/// How often an attempt looks whether anybody still wants it.
const WANTED_MS: u32 = 1_000;

/// How far an attempt to connect has come.
#[derive(Clone, Copy)]
pub(super) enum ConnectProgress {
    /// Waiting for the answer to the last question.
    Asked,
    /// The last question was answered.
    Answered,
    /// The peer has accepted.
    Established(Agreement, Extensions),
    /// There will be no connection, or it is over.
    Over(ConnectError),
}

/// What is known of an attempt.
struct State {
    progress: ConnectProgress,
    /// A Receive has failed. What the peer answers says why, if it refuses; if it accepts, it is in
    /// vain.
    has_recv_failed: bool,
}

/// An attempt, from the first question to the end of the connection.
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
                "Attempt::state"
            ),
            progressed <- new_condvar!("Attempt::progressed"),
        })
    }

    /// Asks something of the connection manager and waits for the answer.
    ///
    /// # Errors
    ///
    /// What `question` fails with, `TimedOut`, or what has ended the attempt; `NotConnected` if
    /// that is not wanted any more.
    pub(super) fn ask(
        &self,
        question: impl FnOnce() -> Result,
        timeout_ms: u32,
        is_wanted: impl Fn() -> bool,
    ) -> Result<ConnectProgress, ConnectError> {
        {
            let mut state = self.state.lock();
            if let ConnectProgress::Over(error) = state.progress {
                return Err(error);
            }
            state.progress = ConnectProgress::Asked;
        }
        // Not with the lock: the answer may come before this returns.
        question()?;
        let mut left = msecs_to_jiffies(timeout_ms);
        let mut state = self.state.lock();
        loop {
            match state.progress {
                ConnectProgress::Asked if left == 0 => return Err(ConnectError::TimedOut),
                ConnectProgress::Asked if !is_wanted() => return Err(ConnectError::NotConnected),
                ConnectProgress::Asked => {}
                ConnectProgress::Over(error) => return Err(error),
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

    /// Notes an answer, unless it is all over.
    pub(super) fn answer(&self, answer: ConnectProgress) {
        let mut state = self.state.lock();
        state.progress = match (state.progress, answer) {
            (over @ ConnectProgress::Over(_), _) => over,
            (_, ConnectProgress::Established(..)) if state.has_recv_failed => {
                ConnectProgress::Over(ConnectError::NotConnected)
            }
            _ => answer,
        };
        self.progressed.notify_all();
    }

    /// The attempt has failed, or the connection that it has led to is lost; `true` if it is lost
    /// only now.
    pub(super) fn fail(&self, error: ConnectError) -> bool {
        let mut state = self.state.lock();
        let established = matches!(state.progress, ConnectProgress::Established(..));
        state.progress = ConnectProgress::Over(error);
        self.progressed.notify_all();
        established
    }

    /// A Receive has failed, and with it the queues; `true` if a connection is lost by that. The
    /// queues of an attempt that is refused fail as well, sometimes before that is known.
    pub(super) fn recv_failed(&self) -> bool {
        let mut state = self.state.lock();
        state.has_recv_failed = true;
        let established = matches!(state.progress, ConnectProgress::Established(..));
        drop(state);
        established && self.fail(ConnectError::NotConnected)
    }
}
