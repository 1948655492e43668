// SPDX-License-Identifier: GPL-2.0

//! The files of `rust/verbs` that use nothing of the kernel.

#[path = "../../../../rust/verbs/device/attrs.rs"]
mod attrs;
#[path = "../../../../rust/verbs/mr/rkey.rs"]
mod rkey;

pub(crate) use attrs::DeviceAttrs;
pub(crate) use attrs::QueueDepths;
pub(crate) use attrs::SenderSizes;

#[cfg(test)]
mod tests {
    use super::rkey::RkeySequence;

    /// For any random input, a value is not drawn again within 96 draws.
    #[test]
    fn rkey_is_not_reused_soon() {
        for random in [|_| 0, |n: u32| n as u8, |n| (n * n * 7 + n / 3) as u8] {
            let mut rkeys = RkeySequence::having(77);
            let mut last = [None; 256];
            last[77] = Some(0);
            for n in 1..10_000 {
                let key = usize::from(rkeys.draw(random(n)));
                assert!(last[key].is_none_or(|before| n - before > 96), "{n}");
                last[key] = Some(n);
            }
        }
    }

    /// Depending on the random input, the next value is one of at least 64.
    #[test]
    fn rkey_is_not_predictable() {
        let mut rkeys = RkeySequence::having(0);
        for n in 0..10_000_u32 {
            rkeys.draw((n * 13) as u8);
            let mut drawn: Vec<u8> = (0..=255).map(|random| rkeys.clone().draw(random)).collect();
            drawn.dedup();
            assert!(drawn.len() >= 64, "{}", drawn.len());
        }
    }
}
