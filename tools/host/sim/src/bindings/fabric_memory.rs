// SPDX-License-Identifier: GPL-2.0

//! The memory that peers and work requests access: by rkey, or by SGE.

use kernel::ffi::{c_int, c_uint};
use kernel::sched;

use super::fabric::*;
use super::*;

impl Fabric {
    /// Finds what `rkey` gives access to, for the other end of a queue pair of domain `pd`.
    pub(super) fn reach(
        &mut self,
        pd: u32,
        rkey: u32,
        addr: u64,
        len: usize,
        access: c_uint,
    ) -> Result<&mut Valid, String> {
        let mr = self.mrs.get_mut(&(rkey >> 8)).filter(|mr| mr.pd == pd);
        let valid = mr.and_then(|mr| mr.valid.as_mut());
        let Some(valid) = valid.filter(|valid| valid.rkey == rkey) else {
            return Err(format!("rkey {rkey:#x} is not valid"));
        };
        if valid.access & access as c_int == 0 {
            return Err(format!("rkey {rkey:#x} gives other rights"));
        }
        let end = addr.checked_add(len as u64);
        if addr < valid.iova || end.is_none_or(|end| end > valid.iova + valid.length) {
            return Err(format!(
                "{len} bytes at {addr:#x} are beyond rkey {rkey:#x}"
            ));
        }
        Ok(valid)
    }

    pub(super) fn invalidate(&mut self, pd: u32, rkey: u32) -> Result<(), String> {
        let mr = self.mrs.get_mut(&(rkey >> 8)).filter(|mr| mr.pd == pd);
        match mr {
            Some(mr) if mr.valid.as_ref().is_some_and(|valid| valid.rkey == rkey) => {
                if let Some(Valid {
                    memory: Memory::Owned(bytes),
                    ..
                }) = mr.valid.take()
                {
                    mr.kept = bytes;
                }
                Ok(())
            }
            _ => Err(format!("rkey {rkey:#x} is invalidated and not valid")),
        }
    }
}

pub(super) fn length(sges: &[(u64, u32)]) -> usize {
    sges.iter().map(|(_, len)| *len as usize).sum()
}

pub(super) fn gather(sges: &[(u64, u32)], mut bytes: Vec<u8>) -> Vec<u8> {
    for (bus, len) in sges {
        bytes.extend(dma::device_reads(*bus, *len as usize));
    }
    bytes
}

pub(super) fn scatter(sges: &[(u64, u32)], mut bytes: &[u8]) {
    for (bus, len) in sges {
        let (now, later) = bytes.split_at((*len as usize).min(bytes.len()));
        dma::device_writes(*bus, now);
        bytes = later;
    }
}

/// The parts of a region's segments that `len` bytes from `skip` on are in.
fn parts(segments: &[(u64, u32)], mut skip: u64, mut len: usize) -> Vec<(u64, u32)> {
    let mut parts = Vec::new();
    for (bus, size) in segments {
        let size = u64::from(*size);
        if skip >= size {
            skip -= size;
            continue;
        }
        let take = (size - skip).min(len as u64);
        if take > 0 {
            parts.push((bus + skip, take as u32));
        }
        len -= take as usize;
        skip = 0;
    }
    parts
}

pub(super) fn store(valid: &mut Valid, addr: u64, bytes: &[u8]) {
    let skip = addr - valid.iova;
    valid.written = true;
    match &mut valid.memory {
        Memory::Owned(memory) => {
            memory[skip as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Memory::Mapped(segments) => scatter(&parts(segments, skip, bytes.len()), bytes),
    }
}

pub(super) fn load(valid: &Valid, addr: u64, len: usize) -> Vec<u8> {
    let skip = addr - valid.iova;
    match &valid.memory {
        Memory::Owned(memory) => memory[skip as usize..][..len].to_vec(),
        Memory::Mapped(segments) => gather(&parts(segments, skip, len), Vec::new()),
    }
}

/// Whether any of these bytes is not zero.
pub(super) fn is_filled(valid: &Valid, addr: u64, len: usize) -> bool {
    let filled = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    let skip = addr - valid.iova;
    match &valid.memory {
        Memory::Owned(memory) => filled(&memory[skip as usize..][..len]),
        Memory::Mapped(segments) => parts(segments, skip, len)
            .iter()
            .any(|(bus, len)| filled(&dma::content(*bus, *len as usize))),
    }
}

/// Memory was unmapped: no work request may refer to it, and no peer reach it.
pub(crate) fn unmapped(bus: u64, len: usize) {
    let end = bus + len as u64;
    let overlaps = |(start, size): &(u64, u32)| *start < end && bus < start + u64::from(*size);
    let why = fabric(|f| {
        for (number, qp) in &f.qps {
            let sends = qp.send.iter().any(|wqe| {
                let sinks = wqe.sink.is_some_and(|sink| f.is_sink(sink, overlaps));
                wqe.sges.iter().any(overlaps) || sinks
            });
            if sends || qp.recv.iter().any(|recv| overlaps(&recv.sge)) {
                return Some(format!("{bus:#x} is unmapped while posted on QP {number}"));
            }
        }
        for mr in f.mrs.values() {
            let Some(Valid {
                rkey,
                memory: Memory::Mapped(segments),
                ..
            }) = &mr.valid
            else {
                continue;
            };
            let can = f
                .qps
                .values()
                .any(|qp| qp.pd == mr.pd && qp.state == QpState::Rts);
            if can && segments.iter().any(overlaps) {
                return Some(format!(
                    "{bus:#x} is unmapped while the peer has rkey {rkey:#x}"
                ));
            }
        }
        None
    });
    if let Some(why) = why {
        sched::fail(why);
    }
}
