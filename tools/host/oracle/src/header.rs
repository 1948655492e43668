// SPDX-License-Identifier: GPL-2.0

//! Encoding a decoded header restores its bytes.

use rpcrdma_core::wire::Body;
use rpcrdma_core::wire::ChunkLists;
use rpcrdma_core::wire::ErrorReply;
use rpcrdma_core::wire::Header;
use rpcrdma_core::wire::HeaderWriter;
use rpcrdma_core::wire::Overflow;

/// Decodes `bytes` and encodes the result again. XDR has one encoding for each value, so the header
/// must be the same.
pub fn header(bytes: &[u8]) {
    let Ok(header) = Header::decode(bytes) else {
        return;
    };
    let mut again = vec![0xee; bytes.len()];
    let out = &mut again[..];
    let len = match header.body {
        Body::Msg { chunks, .. } => {
            lists(&chunks, bytes);
            encode(HeaderWriter::msg(out, header.xid, header.credits), &chunks)
        }
        Body::NoMsg { chunks } => {
            lists(&chunks, bytes);
            encode(
                HeaderWriter::nomsg(out, header.xid, header.credits),
                &chunks,
            )
        }
        Body::Done => HeaderWriter::done(out, header.xid, header.credits),
        Body::Error(error) => ErrorReply {
            xid: header.xid,
            vers: header.vers,
            error,
        }
        .encode(header.credits, out),
    }
    .expect("the buffer is as long as the message");
    assert_eq!(again[..len], bytes[..len]);
    if let Body::Msg { payload, .. } = header.body {
        assert_eq!(payload, &bytes[len..]);
    }
}

/// Encodes chunk lists; returns the length of the header.
fn encode(
    header: Result<HeaderWriter<'_>, Overflow>,
    chunks: &ChunkLists<'_>,
) -> Result<usize, Overflow> {
    let mut header = header?;
    for read in chunks.reads.segments() {
        header.read_segment(read)?;
    }
    let mut writes = header.no_more_reads()?;
    for chunk in chunks.writes.chunks() {
        writes.write_chunk(chunk.segments())?;
    }
    let end = writes.no_more_writes()?;
    match &chunks.reply {
        Some(chunk) => end.reply_chunk(chunk.segments()),
        None => end.no_reply_chunk(),
    }
}

/// Checks that the methods of the views are consistent.
fn lists(chunks: &ChunkLists<'_>, bytes: &[u8]) {
    assert_eq!(chunks.reads.segments().count(), chunks.reads.len());
    assert!(chunks.reads.segments().all(|read| read.position % 4 == 0));
    for chunk in chunks.writes.chunks().chain(chunks.reply) {
        assert_eq!(chunk.segments().count(), chunk.len());
        let total: u128 = chunk.segments().map(|s| u128::from(s.length)).sum();
        assert_eq!(u128::from(chunk.total()), total);
        assert!(chunk.len() * 16 <= bytes.len());
    }
    let again = chunks.outline().lists(bytes);
    assert_eq!(format!("{again:?}"), format!("{:?}", Some(chunks)));
}
