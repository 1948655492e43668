// SPDX-License-Identifier: GPL-2.0

//! What hostile peers have in common: they spoil messages, and access what they must not.

use kernel::sched::{below, one_in, random};

use crate::bindings::fabric;
use crate::bindings::fabric_peer as queue;
use crate::wire::{ErrorReply, HeaderWriter, Segment};

/// Random bytes.
pub(super) fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|_| random() as u8).collect()
}

/// A number at an edge of its range, or any.
pub(super) fn number() -> u32 {
    let any = random() as u32;
    [0, 1, 2, 3, 4, 5, 0x1000_0000, 0x7fff_ffff, u32::MAX, any][below(10)]
}

/// An rkey that the other end of the queue pair has exposed, if it has any, or a random one.
fn handle(qp: u32) -> (u32, u64, u64) {
    let exposed = queue::exposed_to(qp);
    if exposed.is_empty() || one_in(4) {
        (random() as u32, random(), 64)
    } else {
        exposed[below(exposed.len())]
    }
}

/// Changes a message, or replaces it. `seen` are messages that were sent before.
pub(super) fn spoil(message: &mut Vec<u8>, seen: &[Vec<u8>]) {
    let word = |message: &mut Vec<u8>, at: usize| {
        if let Some(bytes) = message.get_mut(4 * at..4 * at + 4) {
            bytes.copy_from_slice(&number().to_be_bytes());
        }
    };
    match below(10) {
        0 => message.truncate(below(message.len() + 1)),
        1 => *message = bytes(below(200)),
        2 if !seen.is_empty() => *message = seen[below(seen.len())].clone(),
        // XID, version, credits, procedure.
        nth @ 3..=6 => word(message, nth - 3),
        // Most likely in the lists.
        7 => {
            let at = below((message.len() / 4).min(40) + 1);
            word(message, at);
        }
        8 => message.extend(bytes(below(9000))),
        _ => {
            for _ in 0..=below(3) {
                let at = below(message.len().max(1));
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= 1 << below(8);
                }
            }
        }
    }
}

/// Accesses memory that the other end may have exposed, by Read, Write or Write With Immediate.
pub(super) fn access(qp: u32) {
    let (rkey, addr, len) = handle(qp);
    let addr = addr.wrapping_add([0, 0, 1, random()][below(4)]);
    let len = [len as usize, 1, 0, below(5000)][below(4)];
    if below(2) == 0 {
        queue::peer_read(qp, rkey, addr, len);
    } else {
        queue::peer_write(qp, rkey, addr, bytes(len), one_in(3));
    }
}

/// Sends a message, and has it invalidate an rkey of the other end, or any.
pub(super) fn invalidate(qp: u32, message: Vec<u8>) {
    queue::peer_send(qp, message, Some(handle(qp).0));
}

/// A message that answers no Call: RDMA_DONE, RDMA_ERROR, or an RDMA_MSG with one word or two.
pub(super) fn unasked(xid: u32) -> Vec<u8> {
    let mut message = vec![0; 64];
    let len = match below(3) {
        0 => HeaderWriter::done(&mut message, xid, number()),
        1 => ErrorReply {
            vers: number(),
            ..ErrorReply::chunk(xid)
        }
        .encode(number(), &mut message),
        _ => HeaderWriter::plain(&mut message, xid, number()),
    };
    message.truncate(len.unwrap_or(0));
    for _ in 0..below(3) {
        message.extend([xid, 0, 1, number()][below(4)].to_be_bytes());
    }
    message
}

/// Segments that were never registered, or are not what they were.
pub(super) fn lie(segments: &mut [Segment]) {
    if segments.is_empty() {
        return;
    }
    let at = below(segments.len());
    let segment = &mut segments[at];
    match below(3) {
        0 => segment.handle = random() as u32,
        1 => segment.length = number(),
        _ => segment.offset = segment.offset.wrapping_add(random()),
    }
}

/// Frees memory of the queue pair's own end, which the other end may still have to access.
pub(super) fn free(segments: &[Segment]) {
    if !segments.is_empty() {
        queue::peer_free(segments[below(segments.len())].handle);
    }
}

/// Posts Receives, or none.
pub(super) fn receive(qp: u32) {
    let count = [0, 1, 1, 4][below(4)];
    fabric::fabric(|f| {
        if f.qps.contains_key(&qp) {
            queue::peer_receives(f, qp, count);
        }
    });
}
