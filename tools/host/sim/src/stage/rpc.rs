// SPDX-License-Identifier: GPL-2.0

//! RPCs: Calls and Replies whose every byte is known.
//!
//! A Call says how long its parts are, and those of its Reply. So each end can tell whether what it
//! got is what the other end has sent.

use kernel::sched::below;

/// Bytes of the header of a Call: with an empty credential and verifier.
const CALL_HEADER: usize = 40;
/// Bytes of the header of a Reply.
const REPLY_HEADER: usize = 24;
/// The program, which no Upper-Layer Binding of the module knows.
const PROGRAM: u32 = 0x2000_0999;
/// Words that describe the RPC, behind the header of the Call.
const WORDS: usize = 8;

/// Flags of an RPC.
const ELIGIBLE: u32 = 1;
const FROM_FILE: u32 = 2;
const PROTECTED: u32 = 4;

/// An RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rpc {
    pub(crate) xid: u32,
    /// Bytes of the Call before, in and after its data item.
    call: [u32; 3],
    /// The same of the Reply.
    reply: [u32; 3],
    flags: u32,
}

/// A length at or near where something changes.
fn length(most: u32) -> u32 {
    const EDGES: [u32; 12] = [0, 1, 3, 4, 5, 512, 900, 1024, 4095, 4096, 4097, 8192];
    let len = match below(4) {
        0 => EDGES[below(EDGES.len())],
        1 => below(64) as u32,
        2 => below(2000) as u32,
        _ => below(most as usize + 1) as u32,
    };
    len.min(most)
}

fn words(len: u32) -> u32 {
    len & !3
}

impl Rpc {
    /// A random RPC, with data items of up to `most` bytes.
    pub(crate) fn any(xid: u32, most: u32) -> Self {
        let mut items = [0, 0];
        for item in &mut items {
            if below(2) == 0 {
                *item = length(most);
            }
        }
        let flags = [0, ELIGIBLE, ELIGIBLE | FROM_FILE, PROTECTED][below(4)];
        Self {
            xid,
            call: [words(length(700)), items[0], words(length(40))],
            reply: [words(length(700)), items[1], words(length(40))],
            flags,
        }
    }

    /// A random RPC that fits a message of any size.
    pub(crate) fn short() -> Self {
        Self {
            xid: 0,
            call: [words(length(800)), 0, 0],
            reply: [words(length(800)), 0, 0],
            flags: 0,
        }
    }

    /// An RPC whose Call has `len` bytes without its header, and no data item.
    pub(crate) fn long(len: u32) -> Self {
        Self {
            xid: 0,
            call: [len, 0, 0],
            reply: [0; 3],
            flags: 0,
        }
    }

    /// An RPC whose Call has a data item of `len` bytes, as a WRITE.
    pub(crate) fn write(xid: u32, len: u32) -> Self {
        Self {
            xid,
            call: [0, words(len), 0],
            reply: [0; 3],
            flags: 0,
        }
    }

    /// The same shape for a consumer that knows where each part of the Reply is: the data item of
    /// the Reply is of whole words.
    pub(crate) fn with_words(mut self) -> Self {
        self.reply[1] = words(self.reply[1]);
        if self.is_protected() {
            self.flags = 0;
        }
        self
    }

    /// The same shape with one data item of nearly `most` bytes, which is eligible, as that of a
    /// READ or WRITE.
    pub(crate) fn with_large_item(mut self, most: u32) -> Self {
        let item = words(most - length(most / 4));
        let items = [[item, 0], [0, item]][below(2)];
        [self.call[1], self.reply[1]] = items;
        self.flags |= ELIGIBLE;
        self
    }

    /// The same shape with another XID.
    pub(crate) fn with_xid(mut self, xid: u32) -> Self {
        self.xid = xid;
        self
    }

    /// The Call as a consumer of SUNRPC encodes it: head, data, and the rest with the roundup.
    pub(crate) fn call_parts(&self, attempt: u32) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let mut call = self.call(attempt);
        let item = self.call_item();
        let tail = call.split_off(item.end);
        let data = call.split_off(item.start);
        (call, data, tail)
    }

    /// Whether the data of the Reply may be placed directly.
    pub(crate) fn is_eligible(&self) -> bool {
        self.flags & ELIGIBLE != 0 && self.reply[1] > 0
    }

    /// Whether the data of the Reply are in pages of a file.
    pub(crate) fn is_from_file(&self) -> bool {
        self.flags & FROM_FILE != 0
    }

    /// Whether the Reply must not be reduced.
    pub(crate) fn is_protected(&self) -> bool {
        self.flags & PROTECTED != 0
    }

    /// The Call as transmission number `attempt`.
    pub(crate) fn call(&self, attempt: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = [self.xid, 0, 2, PROGRAM, 1, 1, 0, 0, 0, 0];
        let about = [attempt, self.flags];
        for word in header
            .iter()
            .chain(&about)
            .chain(&self.call)
            .chain(&self.reply)
        {
            bytes.extend(word.to_be_bytes());
        }
        fill(&mut bytes, self.xid, self.call);
        bytes
    }

    /// Where the data item of the Call is.
    pub(crate) fn call_item(&self) -> core::ops::Range<usize> {
        let start = CALL_HEADER + 4 * WORDS + self.call[0] as usize;
        start..start + self.call[1] as usize
    }

    /// The RPC of a Call, and the number of the transmission; `None` if any byte of the Call is not
    /// as it was sent.
    pub(crate) fn of_call(bytes: &[u8]) -> Option<(Self, u32)> {
        let word = |at: usize| {
            let bytes = bytes.get(4 * at..4 * at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?))
        };
        let about = CALL_HEADER / 4;
        let rpc = Self {
            xid: word(0)?,
            flags: word(about + 1)?,
            call: [word(about + 2)?, word(about + 3)?, word(about + 4)?],
            reply: [word(about + 5)?, word(about + 6)?, word(about + 7)?],
        };
        let attempt = word(about)?;
        if rpc.call.iter().chain(&rpc.reply).any(|len| *len > 1 << 21) {
            return None;
        }
        (rpc.call(attempt) == bytes).then_some((rpc, attempt))
    }

    /// The Reply, as nfsd encodes it: head, data, and the rest with the roundup of the data.
    pub(crate) fn reply_parts(&self) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let mut reply = self.reply();
        let item = self.reply_item();
        let tail = reply.split_off(item.end);
        let data = reply.split_off(item.start);
        (reply, data, tail)
    }

    /// Where the data item of the Reply is.
    pub(crate) fn reply_item(&self) -> core::ops::Range<usize> {
        let start = REPLY_HEADER + self.reply[0] as usize;
        start..start + self.reply[1] as usize
    }

    /// The Reply.
    pub(crate) fn reply(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.xid, 1, 0, 0, 0, 0_u32] {
            bytes.extend(word.to_be_bytes());
        }
        fill(&mut bytes, !self.xid, self.reply);
        bytes
    }
}

/// Adds the three parts, the second of which is rounded up.
fn fill(bytes: &mut Vec<u8>, seed: u32, [head, item, tail]: [u32; 3]) {
    let part = |bytes: &mut Vec<u8>, len: u32| {
        let start = bytes.len();
        let content = (start..start + len as usize).map(|n| {
            let n = n as u32;
            (seed
                .wrapping_mul(31)
                .wrapping_add(n.wrapping_mul(7) ^ (n >> 8))
                % 251
                + 1) as u8
        });
        bytes.extend(content);
    };
    part(bytes, head);
    part(bytes, item);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    part(bytes, tail);
}
