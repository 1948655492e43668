// SPDX-License-Identifier: GPL-2.0

//! How an attempt to connect may fail here.

#[derive(Debug)]
pub(crate) enum ConnectError {
    Unsupported,
}
