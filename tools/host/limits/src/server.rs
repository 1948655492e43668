// SPDX-License-Identifier: GPL-2.0

//! The limits of the server.

#[path = "../../../../rust/server/limits.rs"]
mod limits;

/// The tunables. Each test thread has its own.
mod tunables {
    use std::cell::Cell;

    thread_local! {
        pub(super) static MAX_REQUESTS: Cell<u32> = const { Cell::new(128) };
        pub(super) static MAX_BC_REQUESTS: Cell<u32> = const { Cell::new(16) };
        pub(super) static MAX_REQ_SIZE: Cell<u32> = const { Cell::new(4096) };
        pub(super) static MAX_REPLY_SIZE: Cell<u32> = const { Cell::new(0) };
        pub(super) static REMOTE_INVALIDATION: Cell<u32> = const { Cell::new(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::limits::Limits;
    use super::tunables::MAX_BC_REQUESTS;
    use super::tunables::MAX_REPLY_SIZE;
    use super::tunables::MAX_REQUESTS;
    use super::tunables::MAX_REQ_SIZE;
    use crate::engine::credit::receives_to_post;
    use crate::verbs::DeviceAttrs;
    use crate::verbs::QueueDepths;

    /// Calls `check` with the limits for each supported device.
    fn each(mut check: impl FnMut(&DeviceAttrs, u32, &Limits)) {
        let mut checked = 0;
        for wanted in [4, 128, 16_384] {
            for backchannel in [1, 16, 64] {
                MAX_REQUESTS.set(wanted);
                MAX_BC_REQUESTS.set(backchannel);
                for device in crate::devices() {
                    for slots in [0, 16, 256] {
                        if let Ok(limits) = Limits::for_device(&device, slots) {
                            checked += 1;
                            check(&device, wanted, &limits);
                        }
                    }
                }
            }
        }
        assert!(checked > 100_000);
    }

    #[test]
    fn grants_have_receives_on_any_device() {
        each(|device, wanted, limits| {
            assert!((1..=wanted).contains(&limits.credits));
            assert!(limits.backchannel >= 1);
            let depths = limits.queue_depths(0, 0, device);
            // Calls, backchannel Replies and RDMA_DONEs may arrive at the same time.
            let needed = limits.credits + limits.backchannel + limits.exposed_slots;
            assert!(limits.receives >= needed, "{device:?} {limits:?}");
            // The most Receives that are posted, and the WR that marks the end of the drain.
            let most = (0..limits.receives)
                .map(|n| n + receives_to_post(n, limits.receives, limits.batch));
            let most = most.max().unwrap();
            assert!(most < depths.recv_wr, "{device:?} {limits:?}");
            assert!(most < depths.recv_cqe, "{device:?} {limits:?}");
        });
    }

    #[test]
    fn sq_share_serves_all_credits() {
        each(|_, _, limits| {
            let most = limits.credits + limits.backchannel + limits.exposed_slots;
            for entries in [1, most, 2 * most, 12_345, 1 << 20] {
                // All messages for which the client has credits fit the queue at once.
                let each = limits.min_sq_entries(entries);
                assert!((1..=entries).contains(&each), "{entries} {limits:?}");
                assert!(most.min(entries) * each <= entries, "{entries} {limits:?}");
                assert!(entries / each <= 4 * most, "{entries} {limits:?}");
            }
        });
    }

    #[test]
    fn unadmitted_clients_use_part_of_the_queue() {
        each(|_, _, limits| {
            for entries in [1, 100, 560, 12_345, 1 << 20] {
                let share = limits.unadmitted_entries(entries);
                assert!(share >= entries / 2 && (share <= entries / 2 || share <= 128));
            }
        });
    }

    /// Messages of the larger direction shrink first, down to 4 KiB with any page size.
    #[test]
    fn larger_messages_shrink_first() {
        const SIZES: [u32; 4] = [1 << 10, 4 << 10, 100 << 10, 256 << 10];
        let device = crate::devices().last().unwrap();
        for (receive, send) in SIZES.into_iter().flat_map(|r| SIZES.map(|s| (r, s))) {
            MAX_REQ_SIZE.set(receive);
            MAX_REPLY_SIZE.set(send);
            let mut limits = Limits::for_device(&device, 0).unwrap();
            assert_eq!((limits.receive_size, limits.send_size), (receive, send));
            let mut rounds = 0;
            let mut largest = receive.max(send);
            while limits.shrink() {
                rounds += 1;
                largest = (largest / 2).max(4096) & !1023;
                assert_eq!(limits.receive_size.max(limits.send_size), largest);
                assert_eq!(limits.receive_size, receive.min(largest));
                assert_eq!(limits.send_size, send.min(largest));
            }
            assert!(largest <= 4096 && rounds <= 6);
        }
    }

    #[test]
    fn queues_are_within_device_limits() {
        each(|device, _, limits| {
            for (transfers, entries) in [(0, 0), (1, 3), (1_000, 3_000), (u32::MAX, u32::MAX)] {
                for registers_to_read in [false, true] {
                    let device = DeviceAttrs {
                        registers_to_read,
                        ..*device
                    };
                    let depths = limits.queue_depths(transfers, entries, &device);
                    assert!(depths.recv_wr <= device.max_qp_wr, "{device:?} {limits:?}");
                    assert!(depths.recv_cqe <= device.max_cqe, "{device:?} {limits:?}");
                    assert!(depths.send_wr <= device.max_qp_wr, "{device:?} {limits:?}");
                    assert!(depths.send_cqe <= device.max_cqe, "{device:?} {limits:?}");
                    assert!(depths.send_sge <= device.max_send_sge);
                    let opened = opened(&depths, &device);
                    // Room for a message, the drain WR, and the WRs that expose Replies.
                    let free = limits.send_entries(&opened);
                    let all = opened.send_wr.min(opened.send_cqe);
                    assert!(
                        free >= 1 && free + 1 + limits.exposed_slots * 8 <= all,
                        "{device:?} {limits:?}"
                    );
                }
            }
        });
    }

    /// The depths of the QP that the RDMA core creates: three more entries for each context.
    fn opened(depths: &QueueDepths, device: &DeviceAttrs) -> QueueDepths {
        let added = depths.rdma_ctxs.saturating_mul(3);
        QueueDepths {
            send_wr: depths.send_wr.saturating_add(added).min(device.max_qp_wr),
            ..*depths
        }
    }

    /// On a device with enough entries, the depth is the same whether the RDMA core adds entries
    /// for registrations or not.
    #[test]
    fn rdma_core_does_not_deepen_the_queue() {
        each(|device, _, limits| {
            let depths = |registers_to_read| {
                let device = DeviceAttrs {
                    registers_to_read,
                    ..*device
                };
                opened(&limits.queue_depths(1_000, 3_000, &device), &device).send_wr
            };
            if device.max_qp_wr >= 32_768 && limits.credits <= 128 {
                assert_eq!(depths(false), depths(true), "{device:?} {limits:?}");
            }
        });
    }

    /// Each reason for which transfers need MRs gives the QP `rdma_rw` contexts, and so MRs.
    #[test]
    fn transfers_that_need_mrs_get_them() {
        let device = crate::devices().last().unwrap();
        let limits = Limits::for_device(&device, 16).unwrap();
        let contexts = |device| limits.queue_depths(1_000, 3_000, &device).rdma_ctxs;
        let [mut iwarp, mut long, mut all] = [device; 3];
        iwarp.registers_to_read = true;
        long.registers_long_reads = true;
        all.registers_all = true;
        assert_eq!(
            [device, iwarp, long, all].map(contexts),
            [0, 1_000, 1_000, 1_000]
        );
        let reads = [device, iwarp, long, all].map(|device| device.reads_need_mrs());
        assert_eq!(reads, [false, true, true, false]);
    }

    /// With the default tunables, a Send Queue for READs of 1 MiB has 1,024 entries, of which a
    /// READ takes less than an eighth. More credits make it deeper, and so do MRs.
    #[test]
    fn sq_holds_some_large_calls() {
        let device = crate::devices().last().unwrap();
        let limits = Limits::for_device(&device, 16).unwrap();
        let entries = |limits: &Limits, device: &DeviceAttrs| {
            let entries = limits.rw_entries(3_072, 256, device);
            (entries, limits.queue_depths(3_072, entries, device).send_wr)
        };
        let (reads, depth) = entries(&limits, &device);
        assert!(
            depth < 1_024 && reads >= 8 * (256 / limits.sges + 16),
            "{depth}"
        );
        let mrs = DeviceAttrs {
            registers_to_read: true,
            ..device
        };
        assert_eq!(entries(&limits, &mrs).0, 3_072);
        MAX_REQUESTS.set(1_024);
        let more = Limits::for_device(&device, 16).unwrap();
        assert!(entries(&more, &device).0 > reads);
        MAX_REQUESTS.set(4);
        let few = Limits::for_device(&device, 16).unwrap();
        assert_eq!(few.rw_entries(96, 256, &device), 96);
    }

    /// Minimum depth with pulled Replies: the drain WR, the WRs that expose Replies, and a Call.
    /// Without pulled Replies there is no minimum.
    fn least(limits: &Limits) -> u32 {
        match limits.exposed_slots {
            0 => 0,
            slots => 1 + slots * 8 + 64,
        }
    }

    #[test]
    fn halved_queues_serve_a_call() {
        each(|device, _, limits| {
            let mut depths = limits.queue_depths(1_000, 3_000, device);
            let mut times = 0;
            let mut last = depths;
            while limits.halve(&mut depths, 4) {
                assert!(depths.send_wr <= last.send_wr, "{device:?} {limits:?}");
                // Room for a Call, the drain WR, and the WRs that expose Replies.
                assert!(depths.send_wr >= least(limits) || depths.send_wr == last.send_wr);
                last = depths;
                times += 1;
            }
            assert!(times < 32);
            assert!(depths.send_wr <= depths.recv_wr.max(least(limits)));
            let free = limits.send_entries(&depths);
            let all = depths.send_wr.min(depths.send_cqe);
            assert!(free >= 1 && free + 1 + limits.exposed_slots * 8 <= all);
        });
        let device = crate::devices().last().unwrap();
        let mut limits = Limits::for_device(&device, 16).unwrap();
        limits.expose_none();
        assert_eq!(limits.receives, limits.credits + limits.backchannel);
        let regions = QueueDepths {
            send_wr: 100,
            recv_wr: 80,
            send_sge: 5,
            rdma_ctxs: 100,
            send_cqe: 400,
            recv_cqe: 80,
        };
        let mut depths = regions;
        while limits.halve(&mut depths, 4) {}
        assert_eq!((depths.send_wr, depths.rdma_ctxs), (80, 12));
        assert_eq!((depths.recv_wr, depths.send_cqe), (80, 400));
    }
}
