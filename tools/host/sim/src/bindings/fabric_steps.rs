// SPDX-License-Identifier: GPL-2.0

//! The steps of the device, and the workers of its completion queues.

use kernel::sched;

use super::fabric::*;
use super::*;

enum Step {
    /// This work request takes effect.
    Execute(u32, usize),
    /// This work request completes.
    End(u32, usize),
    /// The peer does not answer any more.
    Unanswered(u32),
    /// The peer has posted no Receive for what is sent.
    Unexpected(u32),
    FlushSend(u32),
    FlushRecv(u32),
    /// A worker handles completions.
    Poll(u32),
}

impl Fabric {
    /// The steps of a Send Queue. Its work requests take effect and complete in order. Over iWARP,
    /// Reads and all others do so apart: siw completes a Send when it is transmitted, even if an
    /// older Read has no response yet.
    fn send_steps(&self, number: u32, qp: &Qp, steps: &mut Vec<Step>) {
        let other = qp.other.and_then(|other| self.qps.get(&other));
        let failed = |wqe: &Wqe| wqe.result.is_some_and(|status| status != 0);
        let fails = qp.send.iter().any(failed);
        let apart = self.device.iwarp && qp.cqs.is_some();
        for reads in [false, true] {
            let is_next = |wqe: &Wqe| (apart && wqe.is_read()) == reads;
            let first = qp.send.iter().position(is_next);
            if let Some(at) = first.filter(|at| qp.send[*at].result.is_some()) {
                steps.push(Step::End(number, at));
            }
            let next = |wqe: &Wqe| is_next(wqe) && wqe.result.is_none();
            let Some(at) = qp.send.iter().position(next).filter(|_| !fails) else {
                continue;
            };
            // A Read begins when all others in front of it have ended, as the registration of its
            // sink.
            let mut before = qp.send.iter().take(at);
            if reads && before.any(|wqe| !wqe.is_read()) {
                continue;
            }
            match &qp.send[at].op {
                Op::StalledRead | Op::StalledSend => {}
                Op::Register { .. } | Op::Invalidate { .. } | Op::Drain => {
                    steps.push(Step::Execute(number, at));
                }
                op => match other {
                    Some(other) if other.state == QpState::Rts => {
                        let needs = matches!(op, Op::Send { .. } | Op::Immediate { .. });
                        if !needs || !other.recv.is_empty() {
                            steps.push(Step::Execute(number, at));
                        } else if self.device.honest && qp.honest && other.honest {
                            steps.push(Step::Unexpected(number));
                        }
                    }
                    Some(other) if other.state == QpState::Init => {}
                    _ => steps.push(Step::Unanswered(number)),
                },
            }
        }
    }

    /// The steps that can be next.
    fn steps(&self, steps: &mut Vec<Step>) {
        for (&number, qp) in &self.qps {
            match qp.state {
                QpState::Init => {}
                QpState::Rts => self.send_steps(number, qp, steps),
                QpState::Error => {
                    if !qp.send.is_empty() {
                        steps.push(Step::FlushSend(number));
                    }
                    if !qp.recv.is_empty() {
                        steps.push(Step::FlushRecv(number));
                    }
                }
            }
        }
        for (&number, cq) in &self.cqs {
            if !cq.queue.is_empty() && !cq.busy {
                steps.push(Step::Poll(number));
            }
        }
    }
}

/// The steps of all devices.
pub(crate) struct FabricSteps;

impl sched::Source for FabricSteps {
    fn pending(&self) -> usize {
        let mut steps = Vec::new();
        fabric(|f| f.steps(&mut steps));
        steps.len()
    }

    fn run(&self, nth: usize) {
        let mut steps = Vec::new();
        fabric(|f| f.steps(&mut steps));
        let step = steps.swap_remove(nth);
        match step {
            Step::Execute(qp, at) => fabric(|f| f.execute(qp, at)),
            Step::End(qp, at) => fabric(|f| {
                let status = f.qp(qp).send[at].result.expect("an end");
                f.end(qp, at, status);
            }),
            Step::Unanswered(qp) => fabric(|f| {
                f.end(qp, 0, ib_wc_status_IB_WC_RETRY_EXC_ERR);
                f.set_error(qp);
            }),
            Step::Unexpected(qp) => {
                sched::fail(format_args!(
                    "QP {qp} sends more than there are Receives for"
                ));
            }
            Step::FlushSend(qp) => {
                let lucky = sched::one_in(2);
                fabric(|f| {
                    // What has reached the peer may be acknowledged, or not.
                    let status = match f.qp(qp).send[0].result {
                        Some(0) if lucky => ib_wc_status_IB_WC_SUCCESS,
                        _ => ib_wc_status_IB_WC_WR_FLUSH_ERR,
                    };
                    let status = match f.qp(qp).send[0].op {
                        Op::Drain => ib_wc_status_IB_WC_WR_FLUSH_ERR,
                        _ => status,
                    };
                    f.end(qp, 0, status);
                });
            }
            Step::FlushRecv(qp) => fabric(|f| f.flush_recv(qp)),
            Step::Poll(cq) => {
                fabric(|f| f.cqs.get_mut(&cq).expect("a CQ").busy = true);
                let most = 1 + sched::below(16);
                sched::spawn(format!("CQ {cq}"), move || poll(cq, most));
            }
        }
    }
}

/// A key that nothing wakes.
const LATE: usize = 14;

/// Handles up to `most` completions.
fn poll(cq: u32, most: usize) {
    if sched::one_in(fabric(|f| f.device.late)) {
        let ms = 1 + sched::below(3000) as u64;
        sched::wait_until(LATE, sched::now() + ms * 1_000_000);
    }
    for _ in 0..most {
        let next = fabric(|f| {
            let cq = f.cqs.get_mut(&cq)?;
            let cqe = cq.queue.pop_front()?;
            f.handled += 1;
            if let Some((qp, retired)) = cqe.retires {
                if let Some(qp) = f.qps.get_mut(&qp) {
                    qp.used -= retired;
                }
            }
            Some((cq.raw, cqe.wc))
        });
        let Some((raw, mut wc)) = next else {
            break;
        };
        // SAFETY: The handler of what was posted gets its completion once.
        unsafe {
            let cqe = *wc.__bindgen_anon_1.wr_cqe.as_ref();
            let done = (*cqe).done.expect("a handler");
            sched::module_code(|| done(raw, &mut wc));
        }
    }
    fabric(|f| {
        if let Some(cq) = f.cqs.get_mut(&cq) {
            cq.busy = false;
        }
    });
    sched::wake(worker_key(cq));
}

pub(super) fn worker_key(cq: u32) -> usize {
    (1 << 40) | cq as usize
}
