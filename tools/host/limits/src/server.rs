// SPDX-License-Identifier: GPL-2.0

//! The listening end.

#[path = "../../../../rust/server/limits.rs"]
mod limits;

#[cfg(test)]
mod tests {
    use super::limits::Limits;
    use crate::admin::server::MAX_BC_REQUESTS;
    use crate::admin::server::MAX_REQUESTS;
    use crate::engine::queue::refill;
    use crate::verbs::DeviceAttrs;
    use crate::verbs::QueueDepths;

    /// What is made of every device that can serve a Call.
    fn each(mut check: impl FnMut(&DeviceAttrs, u32, &Limits)) {
        let mut checked = 0;
        for wanted in [4, 128, 16_384] {
            for reverse in [1, 16, 64] {
                MAX_REQUESTS.set(wanted);
                MAX_BC_REQUESTS.set(reverse);
                for device in crate::devices() {
                    for places in [0, 16, 256] {
                        if let Ok(limits) = Limits::new(&device, places) {
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
            assert!(limits.reverse >= 1);
            let depths = limits.depths(0, 0, device);
            // Calls, Replies to reverse Calls and RDMA_DONEs may come at the same time.
            let needed = limits.credits + limits.reverse + limits.places;
            assert!(limits.receives >= needed, "{device:?} {limits:?}");
            // The most that are posted, and the mark that ends the queue.
            let most = (0..limits.receives).map(|n| n + refill(n, limits.receives, limits.batch));
            let most = most.max().unwrap();
            assert!(most < depths.recv_wr, "{device:?} {limits:?}");
            assert!(most < depths.recv_cqe, "{device:?} {limits:?}");
        });
    }

    #[test]
    fn messages_are_as_many_as_a_client_may_wait_for() {
        each(|_, _, limits| {
            let most = limits.credits + limits.reverse + limits.places;
            for entries in [1, most, 2 * most, 12_345, 1 << 20] {
                // Who waits for all that was granted waits for no entry.
                let share = limits.share(entries);
                assert!((1..=entries).contains(&share), "{entries} {limits:?}");
                assert!(most.min(entries) * share <= entries, "{entries} {limits:?}");
                assert!(entries / share <= 4 * most, "{entries} {limits:?}");
            }
        });
    }

    #[test]
    fn queues_are_what_the_device_has() {
        each(|device, _, limits| {
            for (transfers, entries) in [(0, 0), (1, 2), (1_000, 3_000), (u32::MAX, u32::MAX)] {
                let depths = limits.depths(transfers, entries, device);
                assert!(depths.recv_wr <= device.max_qp_wr, "{device:?} {limits:?}");
                assert!(depths.recv_cqe <= device.max_cqe, "{device:?} {limits:?}");
                assert!(depths.send_wr <= device.max_qp_wr, "{device:?} {limits:?}");
                assert!(depths.send_cqe <= device.max_cqe, "{device:?} {limits:?}");
                assert!(depths.send_sge <= device.max_send_sge);
                // The core adds an entry for each transfer, at least.
                let opened = QueueDepths {
                    send_wr: depths
                        .send_wr
                        .saturating_add(transfers)
                        .min(device.max_qp_wr),
                    ..depths
                };
                // Room for a message, the mark, and what exposes Replies.
                let free = limits.send_entries(&opened);
                let all = opened.send_wr.min(opened.send_cqe);
                assert!(
                    free >= 1 && free + 1 + limits.places * 8 <= all,
                    "{device:?} {limits:?}"
                );
            }
        });
    }
}
