// SPDX-License-Identifier: GPL-2.0

//! Which handles of a Call are still valid when its Reply has arrived.
//!
//! An RPC may be completed only when none is (RFC 8166 Section 4.4.1). A Reply sent with Send With
//! Invalidate takes one of them out of the local end's hands; which one, only the completion of the
//! Receive tells.

/// The peer invalidated a handle that the Call did not expose: another RPC may have lost its
/// memory. The connection cannot be trusted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignHandle {
    /// The handle.
    pub handle: u32,
}

/// Finds the handle that the Reply invalidated among those the Call exposed.
///
/// `Ok(None)` if nothing was invalidated remotely; `Ok(Some(i))` if the `i`-th was.
#[inline]
pub fn invalidated<I>(exposed: I, reported: Option<u32>) -> Result<Option<usize>, ForeignHandle>
where
    I: IntoIterator<Item = u32>,
{
    let Some(handle) = reported else {
        return Ok(None);
    };
    match exposed.into_iter().position(|own| own == handle) {
        Some(index) => Ok(Some(index)),
        None => Err(ForeignHandle { handle }),
    }
}

/// The handles that remain to be invalidated locally, in the order given.
#[inline]
pub fn remaining<I>(exposed: I, remotely: Option<u32>) -> impl Iterator<Item = u32>
where
    I: IntoIterator<Item = u32>,
{
    exposed
        .into_iter()
        .filter(move |handle| remotely != Some(*handle))
}
