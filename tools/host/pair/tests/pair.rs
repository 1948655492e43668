// SPDX-License-Identifier: GPL-2.0

//! Runs of the simulation with many seeds, in several scenarios.
//!
//! `PAIR_SEEDS` sets the number of seeds. `PAIR_SEED` repeats one.

use rpcrdma_pair::run;
use rpcrdma_pair::Scenario;
use rpcrdma_pair::Stats;

/// Runs the simulation with many seeds; returns the sum of the statistics.
fn many(scenario: Scenario) -> Stats {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let seeds = match number("PAIR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PAIR_SEEDS").unwrap_or(150),
    };
    let mut sum = Stats::default();
    for seed in seeds {
        // Shown only if the test fails.
        println!("PAIR_SEED={seed}");
        let stats = run(seed, scenario);
        sum.replies += stats.replies;
        sum.refused += stats.refused;
        sum.cancelled += stats.cancelled;
        sum.disconnects += stats.disconnects;
        sum.invalidated += stats.invalidated;
        sum.rdma_bytes += stats.rdma_bytes;
        sum.exposed += stats.exposed;
        sum.reply_chunks += stats.reply_chunks;
        sum.backchannel += stats.backchannel;
        sum.backchannel_refused += stats.backchannel_refused;
        sum.mutated += stats.mutated;
        sum.steps += stats.steps;
    }
    println!("{sum:?}");
    sum
}

const NO_FAULTS: Scenario = Scenario {
    rpcs: 40,
    backchannel_calls: 20,
    illegal_calls: 0,
    credits: 0,
    disconnect: 0,
    cancel: 0,
    expiry: 0,
    hostile_server: 0,
    hostile_client: 0,
};

#[test]
fn no_faults() {
    let stats = many(NO_FAULTS);
    assert_eq!(stats.disconnects, 0);
    assert_eq!(stats.refused, 0);
    assert!(stats.replies > 0 && stats.rdma_bytes > 0 && stats.invalidated > 0);
    assert!(stats.backchannel > 0 && stats.backchannel_refused == 0);
    assert!(stats.exposed > 0 && stats.reply_chunks > 0);
}

#[test]
fn connections_are_lost() {
    let stats = many(Scenario {
        disconnect: 300,
        ..NO_FAULTS
    });
    assert!(stats.disconnects > 0 && stats.refused == 0);
}

#[test]
fn rpcs_are_cancelled() {
    let stats = many(Scenario {
        cancel: 100,
        ..NO_FAULTS
    });
    assert!(stats.cancelled > 0);
}

#[test]
fn exposed_replies_expire() {
    let stats = many(Scenario {
        expiry: 60,
        ..NO_FAULTS
    });
    assert!(stats.exposed > 0 && stats.disconnects > 0 && stats.refused == 0);
}

#[test]
fn losses_cancellations_and_expiry() {
    many(Scenario {
        disconnect: 500,
        cancel: 200,
        expiry: 300,
        ..NO_FAULTS
    });
}

/// RFC 8167 Sections 2.3 and 4.3.1: the backchannel works without forward Calls.
#[test]
fn r8167_2_3_1_backchannel_only() {
    let stats = many(Scenario {
        rpcs: 0,
        backchannel_calls: 400,
        ..NO_FAULTS
    });
    assert!(stats.replies == 0 && stats.backchannel > 0);
}

/// RFC 8167 Section 4.1: each direction has its own credits. One credit suffices.
#[test]
fn r8167_4_1_1_one_credit_each_way() {
    let stats = many(Scenario {
        credits: 1,
        ..NO_FAULTS
    });
    assert!(stats.replies > 0 && stats.backchannel > 0);
}

/// RFC 8167 Section 5.3: illegal backchannel Calls are answered with an error, and the connection
/// is kept.
#[test]
fn r8167_5_3_3_illegal_backchannel_calls_are_refused() {
    let stats = many(Scenario {
        illegal_calls: 2,
        ..NO_FAULTS
    });
    assert!(stats.backchannel > 0 && stats.backchannel_refused > 0);
    assert_eq!(stats.disconnects, 0);
}

/// RFC 8167 Section 5.4: unanswered Calls are sent again on the next connection.
#[test]
fn r8167_5_4_1_backchannel_calls_outlive_connections() {
    let stats = many(Scenario {
        disconnect: 200,
        illegal_calls: 4,
        ..NO_FAULTS
    });
    assert!(stats.disconnects > 0 && stats.backchannel > 0);
}

/// RFC 8166 Section 3.3.1: the Call of a cancelled RPC keeps its credit until it is answered.
#[test]
fn r8166_3_3_1_3_cancelled_calls_keep_their_credit() {
    for credits in [1, 2] {
        let stats = many(Scenario {
            credits,
            cancel: 40,
            ..NO_FAULTS
        });
        assert!(stats.cancelled > 0 && stats.replies > 0);
    }
}

#[test]
fn hostile_server() {
    let stats = many(Scenario {
        hostile_server: 6,
        ..NO_FAULTS
    });
    assert!(stats.mutated > 0);
}

#[test]
fn hostile_client() {
    let stats = many(Scenario {
        hostile_client: 6,
        ..NO_FAULTS
    });
    assert!(stats.mutated > 0 && stats.refused > 0);
}

#[test]
fn all_faults() {
    many(Scenario {
        disconnect: 700,
        cancel: 300,
        expiry: 400,
        hostile_server: 10,
        hostile_client: 10,
        illegal_calls: 4,
        ..NO_FAULTS
    });
}

#[test]
fn same_seed_same_run() {
    let scenario = Scenario {
        disconnect: 500,
        cancel: 200,
        hostile_server: 10,
        ..NO_FAULTS
    };
    assert_eq!(run(7, scenario), run(7, scenario));
}
