// SPDX-License-Identifier: GPL-2.0

//! Models of `ReadThrottle` and `ReadBacklog`.

use kernel::prelude::GFP_KERNEL;
use loom::sync::Arc;
use loom::thread;

use super::call::Buffer;
use super::call::User;
use super::ep::ServerEp;
use super::read_admission;
use crate::explore_full;

/// The pages of each Call: as many as one connection may use.
const PAGES: usize = 1;

fn call() -> Buffer {
    let Ok(memory) = Buffer::new_uninit(GFP_KERNEL) else {
        unreachable!()
    };
    memory.write(User::default())
}

/// Begins to read a Call, or has it wait.
fn begin(ctx: &ServerEp, mut buffer: Buffer) -> Option<Buffer> {
    if read_admission::begin(ctx, &mut buffer.user_mut().call, PAGES) {
        return Some(buffer);
    }
    read_admission::defer(ctx, buffer);
    None
}

/// The Reads of one Call end while two other Calls begin. Law: while a Call waits, Reads are
/// outstanding, or a thread was woken and finds the Call; all pages are uncharged in the end.
#[test]
fn call_that_waits_is_tried_again() {
    explore_full(|| {
        let ctx = Arc::new(ServerEp::new());
        let Some(mut first) = begin(&ctx, call()) else {
            panic!("nothing is outstanding")
        };
        let other = {
            let ctx = ctx.clone();
            thread::spawn(move || begin(&ctx, call()))
        };
        let worker = {
            let ctx = ctx.clone();
            thread::spawn(move || read_admission::end(&ctx, &mut first.user_mut().call))
        };
        let mut reading: Vec<_> = begin(&ctx, call()).into_iter().collect();
        reading.extend(other.join().unwrap());
        worker.join().unwrap();
        let mut read = reading.len();
        for _ in 0..4 {
            for mut buffer in reading.drain(..) {
                read_admission::end(&ctx, &mut buffer.user_mut().call);
            }
            let next = read_admission::next(&ctx, &mut ctx.incoming.lock());
            let Some(next) = next else { break };
            assert!(ctx.is_woken(), "no thread looks at the Call");
            let begun = begin(&ctx, next);
            read += begun.iter().count();
            reading.extend(begun);
        }
        assert_eq!(read, 2, "a Call waits for ever");
        assert_eq!(ctx.incoming.lock().read_backlog.len(), 0);
        assert_eq!(ctx.read_throttle.queued(), 0);
        assert_eq!(ctx.read_throttle.pages(), 0);
    });
}
