// SPDX-License-Identifier: GPL-2.0

//! Mutations that a hostile peer applies to its operations.

use crate::queues::Op;
use crate::rng::Rng;

/// Mutates an operation before it arrives. `seen` are earlier messages, `handles` the handles that
/// are valid at the receiver.
pub(crate) fn mutate(rng: &mut Rng, op: &mut Op, seen: &[Vec<u8>], handles: &[u32]) {
    match op {
        Op::Write { to, data } => match rng.below(3) {
            0 => to.handle = any_handle(rng, handles),
            1 => to.offset = to.offset.wrapping_add(rng.any()),
            _ => {
                let value = rng.any() as u8;
                data.fill(value);
            }
        },
        Op::Send { message, .. } => {
            let bytes = &mut message.bytes;
            match rng.below(10) {
                0 => bytes.truncate(rng.below(bytes.len() + 1)),
                1 => {
                    let len = rng.below(200);
                    *bytes = rng.bytes(len);
                }
                // Replay an earlier message.
                2 => *bytes = seen[rng.below(seen.len())].clone(),
                // Fields: XID, version, credits, procedure.
                3 => word(rng, bytes, 0),
                4 => word(rng, bytes, 1),
                5 => word(rng, bytes, 2),
                6 => word(rng, bytes, 3),
                // Any word, most likely in the lists.
                7 => {
                    let index = rng.below(bytes.len() / 4 + 1);
                    word(rng, bytes, index);
                }
                8 => {
                    for _ in 0..rng.range(1, 4) {
                        let at = rng.below(bytes.len().max(1));
                        if let Some(byte) = bytes.get_mut(at) {
                            *byte ^= 1 << rng.below(8);
                        }
                    }
                }
                _ => message.invalidated = Some(any_handle(rng, handles)),
            }
        }
    }
}

/// A valid handle or a random one.
fn any_handle(rng: &mut Rng, handles: &[u32]) -> u32 {
    match handles.is_empty() || rng.once_in(4) {
        true => rng.any() as u32,
        false => rng.pick(handles),
    }
}

/// Replaces a word by an extreme value.
fn word(rng: &mut Rng, bytes: &mut [u8], index: usize) {
    let any = rng.any() as u32;
    let value = rng.pick(&[0, 1, 2, 3, 4, 5, 0x1000_0000, 0x7fff_ffff, u32::MAX, any]);
    if let Some(dest) = bytes.get_mut(index * 4..index * 4 + 4) {
        dest.copy_from_slice(&value.to_be_bytes());
    }
}
