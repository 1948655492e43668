// SPDX-License-Identifier: GPL-2.0

//! Each play, with a hundred seeds.

use std::os::unix::process::CommandExt;
use std::process::Command;

const SEEDS: &str = "100";

/// Runs a play. It must have seen at least so many of what it is about.
fn play(name: &str, least: &[(&str, u64)]) {
    let output = Command::new(env!("CARGO_BIN_EXE_rpcrdma-sim"))
        .args([name, "0", SEEDS])
        .output()
        .expect("the program can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    print!("{text}");
    for (what, least) in least {
        let seen = text
            .split_once(&format!(" {what}="))
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .and_then(|number| number.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("no number of {what}: {text}"));
        assert!(seen >= *least, "{seen} {what}: {text}");
    }
}

#[test]
fn server_answers() {
    play("server_answers", &[("replies", 1_000)]);
}

#[test]
fn server_loses_connections() {
    play(
        "server_loses_connections",
        &[("replies", 1_000), ("connections", 300)],
    );
}

#[test]
fn server_lacks_memory() {
    play(
        "server_lacks_memory",
        &[("replies", 500), ("failed_allocations", 5_000)],
    );
}

#[test]
fn server_is_refused() {
    play(
        "server_is_refused",
        &[("replies", 500), ("failed_allocations", 10_000)],
    );
}

#[test]
fn both_ends_talk() {
    play("both_ends_talk", &[("replies", 1_000), ("pulled", 10)]);
}

#[test]
fn both_ends_lose_connections() {
    play(
        "both_ends_lose_connections",
        &[("replies", 1_000), ("connections", 50), ("pulled", 10)],
    );
}

#[test]
fn both_ends_lack_memory() {
    play(
        "both_ends_lack_memory",
        &[("replies", 1_000), ("failed_allocations", 5_000)],
    );
}

#[test]
fn server_meets_hostile_clients() {
    play(
        "server_meets_hostile_clients",
        &[("replies", 1_000), ("hostile_acts", 5_000)],
    );
}

#[test]
fn server_meets_hostile_iwarp_clients() {
    play(
        "server_meets_hostile_iwarp_clients",
        &[("replies", 1_000), ("hostile_acts", 5_000)],
    );
}

#[test]
fn server_meets_stalled_iwarp_reads() {
    play(
        "server_meets_stalled_iwarp_reads",
        &[("replies", 500), ("connections", 200)],
    );
}

#[test]
fn client_meets_hostile_server() {
    play(
        "client_meets_hostile_server",
        &[("replies", 500), ("hostile_acts", 5_000)],
    );
}

#[test]
fn client_refuses_illegal_calls() {
    play(
        "client_refuses_illegal_calls",
        &[("replies", 500), ("hostile_acts", 1_000)],
    );
}

/// A run follows from its seed alone.
#[test]
fn same_seed_same_story() {
    let run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_rpcrdma-sim"))
            .args(["client_meets_hostile_server", "7", "1"])
            .output()
            .expect("the program can be run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let first = run();
    assert!(first.contains(" steps="), "{first}");
    assert_eq!(first, run());
}

/// A run is the same in any process: what devices map does not depend on what the process has
/// allocated before, such as its arguments.
#[test]
fn process_does_not_change_the_run() {
    let run = |seed: u64, length| {
        let output = Command::new(env!("CARGO_BIN_EXE_rpcrdma-sim"))
            .arg0("x".repeat(length))
            .args(["both_ends_talk", &seed.to_string(), "quiet"])
            .output()
            .expect("the program can be run");
        let text = String::from_utf8_lossy(&output.stdout);
        // The last number is the time that it took.
        let seen = text.trim().rsplit_once(' ').map(|(seen, _)| seen);
        seen.expect("a line of numbers").to_owned()
    };
    for seed in 0..40 {
        assert_eq!(run(seed, 1), run(seed, 300), "seed {seed}");
    }
}

#[test]
fn both_ends_call() {
    play(
        "both_ends_call",
        &[("replies", 1_000), ("backward", 1_000), ("killed", 500)],
    );
}

#[test]
fn both_ends_give_up() {
    play(
        "both_ends_give_up",
        &[("replies", 1_000), ("refused", 50), ("killed", 100)],
    );
}

#[test]
fn both_ends_stall() {
    play("both_ends_stall", &[("replies", 500), ("killed", 100)]);
}

#[test]
fn both_ends_pull() {
    play("both_ends_pull", &[("replies", 1_000), ("pulled", 20)]);
}

/// A failure is shrunk to the choices that it takes, and the shortest run can be replayed.
#[test]
fn failures_are_shrunk_and_replayed() {
    let program = env!("CARGO_BIN_EXE_rpcrdma-sim");
    let path = std::env::temp_dir().join(format!("rpcrdma-sim-test-{}", std::process::id()));
    let run = |args: &[&std::ffi::OsStr]| {
        let output = Command::new(program)
            .args(args)
            .output()
            .expect("the program can be run");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let words = ["shrink", "planted", "4", "60"].map(std::ffi::OsStr::new);
    let shrunk = run(&[&words[..], &[path.as_os_str()]].concat());
    assert!(shrunk.contains("with 3 choices"), "{shrunk}");
    let told = run(&["replay".as_ref(), path.as_os_str()]);
    std::fs::remove_file(&path).expect("a file");
    assert!(told.contains("is number 3"), "{told}");
    assert!(told.ends_with("a planted failure\n"), "{told}");
}

#[test]
fn both_ends_lose_devices() {
    play(
        "both_ends_lose_devices",
        &[("replies", 1_000), ("connections", 1_000)],
    );
}

#[test]
fn both_ends_unload() {
    play(
        "both_ends_unload",
        &[("replies", 200), ("connections", 5_000)],
    );
}

#[test]
fn server_keeps_spare_pages() {
    play(
        "server_keeps_spare_pages",
        &[("replies", 500), ("connections", 100)],
    );
}

#[test]
fn client_waits_for_server() {
    play(
        "client_waits_for_server",
        &[("replies", 100), ("refused", 1_000)],
    );
}

#[test]
fn server_is_suspended() {
    play("server_is_suspended", &[("replies", 500)]);
}

#[test]
fn client_refuses_long_calls() {
    play(
        "client_refuses_long_calls",
        &[("replies", 300), ("refused", 100)],
    );
}

#[test]
fn client_is_not_answered() {
    play(
        "client_is_not_answered",
        &[("replies", 100), ("refused", 200)],
    );
}

#[test]
fn server_uses_iwarp() {
    play("server_uses_iwarp", &[("replies", 1_000)]);
}

#[test]
fn server_meets_silent_peers() {
    play("server_meets_silent_peers", &[("replies", 300)]);
}

#[test]
fn both_ends_lack_local_inv() {
    play("both_ends_lack_local_inv", &[("refused", 500)]);
}

#[test]
fn both_ends_bounce() {
    play("both_ends_bounce", &[("replies", 1_000)]);
}

#[test]
fn both_ends_use_all_mrs() {
    play("both_ends_use_all_mrs", &[("replies", 1_000)]);
}

#[test]
fn both_ends_use_iwarp() {
    play("both_ends_use_iwarp", &[("replies", 1_000)]);
}
