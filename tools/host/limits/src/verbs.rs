// SPDX-License-Identifier: GPL-2.0

//! Plain values of the room of that name.

#[path = "../../../../rust/verbs/mr/rkey.rs"]
mod rkeys;
#[path = "../../../../rust/verbs/device/attrs.rs"]
mod sizes;

pub(crate) use sizes::DeviceAttrs;
pub(crate) use sizes::QueueDepths;
pub(crate) use sizes::SenderSizes;

#[cfg(test)]
mod tests {
    use super::rkeys::RkeySequence;

    /// Whatever is thrown, a byte stays away for long, and others do not depend on the last.
    #[test]
    fn rkey_is_not_reused_soon() {
        for thrown in [|_| 0, |n: u32| n as u8, |n| (n * n * 7 + n / 3) as u8] {
            let mut rkeys = RkeySequence::having(77);
            let mut last = [None; 256];
            last[77] = Some(0);
            for n in 1..10_000 {
                let key = usize::from(rkeys.draw(thrown(n)));
                assert!(last[key].is_none_or(|before| n - before > 96), "{n}");
                last[key] = Some(n);
            }
        }
    }

    #[test]
    fn rkey_is_not_predictable() {
        let mut rkeys = RkeySequence::having(0);
        for n in 0..10_000_u32 {
            rkeys.draw((n * 13) as u8);
            let mut drawn: Vec<u8> = (0..=255).map(|thrown| rkeys.clone().draw(thrown)).collect();
            drawn.dedup();
            assert!(drawn.len() >= 64, "{}", drawn.len());
        }
    }
}
