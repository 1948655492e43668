// SPDX-License-Identifier: GPL-2.0

//! `/dev/kmsg`: what the module wrote to the kernel log.

use serde::Serialize;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Microseconds after the boot.
    pub at: u64,
    /// The text behind `rpcrdma: `.
    pub text: String,
}

/// Parses records of `/dev/kmsg`, `PRIORITY,NUMBER,TIME,FLAGS;TEXT`, and keeps those of the module.
pub fn parse(text: &str) -> Vec<Message> {
    let each = text.lines().filter_map(|line| {
        let (head, text) = line.split_once(';')?;
        let text = text.strip_prefix("rpcrdma: ")?;
        let at = head.split(',').nth(2)?.parse().ok()?;
        Some(Message {
            at,
            text: text.trim_end().to_string(),
        })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_of_the_module_are_kept() {
        let text = "6,1,100,-;Linux version 7.2\n\
            3,2,200,-;rpcrdma: mlx5_0 cannot carry NFS: it lacks FRWR\n SUBSYSTEM=x\n\
            broken;rpcrdma: x\n";
        let messages = parse(text);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].at, 200);
        assert_eq!(messages[0].text, "mlx5_0 cannot carry NFS: it lacks FRWR");
    }
}
