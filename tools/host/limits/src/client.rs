// SPDX-License-Identifier: GPL-2.0

//! The limits of the client.

#[path = "../../../../rust/client/limits.rs"]
mod limits;

/// The tunables. Each test thread has its own.
mod tunables {
    use std::cell::Cell;

    thread_local! {
        pub(super) static PULLED_REPLIES: Cell<u32> = const { Cell::new(0) };
        pub(super) static INLINE_READ: Cell<u32> = const { Cell::new(4096) };
        pub(super) static INLINE_WRITE: Cell<u32> = const { Cell::new(4096) };
        pub(super) static REMOTE_INVALIDATION: Cell<u32> = const { Cell::new(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::limits::Limits;
    use super::limits::Unsupported;
    use super::limits::DONES;
    use super::tunables::INLINE_READ;
    use super::tunables::INLINE_WRITE;
    use super::tunables::PULLED_REPLIES;
    use crate::engine::agreement::Agreement;
    use crate::engine::agreement::Extensions;
    use crate::engine::credit::receives_to_post;
    use crate::engine::requester::call::XdrLens;
    use crate::verbs::DeviceAttrs;
    use crate::wire::private_data::PrivateData;
    use crate::wire::private_data::MAX_SIZE;
    use crate::wire::private_data::MIN_SIZE;
    use crate::wire::size;
    use crate::wire::MIN_LEN;
    use kernel::page::PAGE_SIZE;

    /// Calls `check` with the limits for each supported device.
    fn each(mut check: impl FnMut(&DeviceAttrs, &Limits)) {
        let mut checked = 0;
        for pulled in [0, 1] {
            PULLED_REPLIES.set(pulled);
            for slots in [4, 128, 16_384] {
                for backchannel in [1, 16, 64] {
                    for device in crate::devices() {
                        if let Ok(limits) = Limits::for_device(&device, slots, backchannel) {
                            checked += 1;
                            assert!((1..=slots).contains(&limits.credits));
                            assert!((1..=backchannel).contains(&limits.backchannel));
                            check(&device, &limits);
                        }
                    }
                }
            }
        }
        assert!(checked > 10_000);
    }

    #[test]
    fn client_queues_have_room_for_all_wrs() {
        each(|device, limits| {
            let queues = limits.queue_depths();
            let most = device.max_qp_wr.min(device.max_cqe);
            assert!(
                queues.send_wr <= most && queues.recv_wr <= most,
                "{device:?}"
            );
            assert!(
                queues.send_cqe <= most && queues.recv_cqe <= most,
                "{device:?}"
            );
            // WRs of all Calls: Sends, and a registration and an invalidation for each MR. One MR
            // of each Call may be registered again before the Send is seen to complete.
            let mrs = limits.max_mrs();
            let all = limits.credits * (limits.mrs_per_call + 1 + limits.mrs_per_call);
            let calls = all.min(limits.credits + mrs + limits.credits + mrs);
            let others = limits.backchannel + limits.ctrl_sends() + limits.reply_read_entries;
            let dones = if limits.read_depth > 0 { DONES } else { 0 };
            assert!(calls + others + dones < queues.send_wr, "{device:?}");
            assert!(queues.send_wr <= queues.send_cqe);
        });
    }

    /// Any Call finds enough MRs. For 128 Calls, a common device needs less than 1,024 entries, 112
    /// of which are for RDMA Reads of Replies.
    #[test]
    fn send_queue_is_for_few_large_calls() {
        each(|device, limits| {
            let (mrs, most) = (limits.max_mrs(), limits.credits * limits.mrs_per_call);
            assert!(mrs >= limits.mrs_per_call && mrs <= most, "{device:?}");
            assert!(mrs == most || mrs >= 2 * limits.credits, "{device:?}");
            if limits.credits <= 128 && limits.backchannel <= 16 {
                let depth = limits.queue_depths().send_wr;
                assert!(
                    depth - limits.reply_read_entries < 1_024 - 112,
                    "{device:?}"
                );
            }
        });
    }

    #[test]
    fn halved_queues_carry_a_call() {
        each(|device, limits| {
            let mut halved = *limits;
            while halved.halve() {
                assert!(halved.credits >= 1);
                assert!(
                    halved.queue_depths().send_wr < limits.queue_depths().send_wr,
                    "{device:?}"
                );
            }
            assert_eq!(halved.credits, 1);
        });
    }

    /// A device with short queues supports NFS with pulled Replies, with at least half as many
    /// Calls as without.
    #[test]
    fn pulled_replies_reduce_requests_by_half_at_most() {
        let mut given_up = 0;
        for device in crate::devices() {
            PULLED_REPLIES.set(0);
            let without = Limits::for_device(&device, 128, 16);
            PULLED_REPLIES.set(1);
            let with = Limits::for_device(&device, 128, 16);
            match (without, with) {
                (Ok(without), Ok(with)) => {
                    assert!(with.credits >= without.credits / 2, "{device:?}");
                    let able = device.max_qp_init_rd_atom > 0 && !device.registers_to_read;
                    given_up += usize::from(able && with.read_depth == 0);
                    assert_eq!(with.read_depth > 0, with.reply_read_entries > 0);
                }
                (without, with) => assert_eq!(without.err(), with.err(), "{device:?}"),
            }
        }
        assert!(given_up > 0);
    }

    #[test]
    fn ri3_2_1_1_client_requires_fast_registration() {
        for mut device in crate::devices().filter(|device| device.max_fast_reg_pages > 0) {
            device.mem_mgt_extensions = false;
            let refused = Limits::for_device(&device, 128, 16).err();
            assert_eq!(refused, Some(Unsupported::Registration), "{device:?}");
        }
    }

    #[test]
    fn client_requires_local_invalidation() {
        for mut device in crate::devices().filter(|device| device.max_fast_reg_pages > 0) {
            device.refuses_local_inv = true;
            let refused = Limits::for_device(&device, 128, 16).err();
            assert_eq!(refused, Some(Unsupported::Invalidation), "{device:?}");
        }
    }

    #[test]
    fn receive_queues_have_room_for_a_batch() {
        each(|device, limits| {
            let needed = limits.credits + limits.backchannel;
            let most = (0..needed).map(|n| n + receives_to_post(n, needed, limits.receive_batch()));
            assert!(
                most.max().unwrap() < limits.queue_depths().recv_wr,
                "{device:?}"
            );
        });
    }

    #[test]
    fn mr_size_is_within_the_device_limit() {
        each(|device, limits| {
            let pages = limits.sender().mr_pages;
            assert!(
                (1..=device.max_fast_reg_pages).contains(&pages),
                "{device:?}"
            );
        });
    }

    #[test]
    fn mrs_suffice_for_the_largest_transfer() {
        let own = PrivateData {
            remote_invalidation: false,
            send_size: MIN_SIZE,
            receive_size: MIN_SIZE,
        };
        let agreement = Agreement::between(&own, &own);
        each(|device, limits| {
            let call = limits.call_limits(&agreement, &Extensions::default(), true);
            for page_offset in [0, 1, 4092, 4095] {
                let data = call.segments_for(page_offset, 1 << 20);
                assert!(data <= call.segments, "{device:?}");
                // With sec=krb5p, one chunk has the whole message.
                let all = call.segments_for_all(&XdrLens {
                    head: 200,
                    data: 1 << 20,
                    page_offset,
                    tail: 100,
                });
                assert!(all <= call.segments, "{device:?}");
                assert!(all <= limits.mrs_per_call, "{device:?}");
            }
            assert!(size::max_call(call.segments as usize) <= MIN_SIZE as usize);
        });
    }

    /// Messages shrink down to 4 KiB with any page size.
    #[test]
    fn messages_shrink_to_four_kib() {
        INLINE_WRITE.set(MAX_SIZE);
        INLINE_READ.set(MAX_SIZE);
        let device = crate::devices().last().unwrap();
        let mut limits = Limits::for_device(&device, 128, 16).unwrap();
        while limits.shrink() {}
        assert_eq!(
            (limits.own.send_size, limits.own.receive_size),
            (4096, 4096)
        );
    }

    /// A backchannel Reply is copied into the send buffer, behind its header.
    #[test]
    fn backchannel_reply_fits_the_send_buffer() {
        let peer = PrivateData {
            remote_invalidation: false,
            send_size: MAX_SIZE,
            receive_size: MAX_SIZE,
        };
        for send_size in [MIN_SIZE, 2048, 4096, 8192, 65_536, MAX_SIZE] {
            INLINE_WRITE.set(send_size);
            INLINE_READ.set(MAX_SIZE);
            each(|device, limits| {
                let payload = limits.backchannel_payload(&Agreement::between(&limits.own, &peer));
                let room = limits.sender().buffer - MIN_LEN;
                assert!(payload as usize <= room, "{send_size} {device:?}");
                assert!(payload as usize <= PAGE_SIZE);
                assert!(payload >= MIN_SIZE - MIN_LEN as u32);
            });
        }
    }
}
