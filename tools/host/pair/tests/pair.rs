// SPDX-License-Identifier: GPL-2.0

//! Many seeds, in all weathers. `PAIR_SEEDS` sets how many; `PAIR_SEED` repeats one.

use rpcrdma_pair::live;
use rpcrdma_pair::History;
use rpcrdma_pair::Weather;

/// Lives through many seeds; returns the sum of their histories.
fn many(weather: Weather) -> History {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let seeds = match number("PAIR_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PAIR_SEEDS").unwrap_or(150),
    };
    let mut sum = History::default();
    for seed in seeds {
        // Shown only if the test fails.
        println!("PAIR_SEED={seed}");
        let history = live(seed, weather);
        sum.replies += history.replies;
        sum.refused += history.refused;
        sum.cancelled += history.cancelled;
        sum.losses += history.losses;
        sum.invalidated += history.invalidated;
        sum.moved += history.moved;
        sum.exposed += history.exposed;
        sum.chunked += history.chunked;
        sum.backchannel += history.backchannel;
        sum.backchannel_refused += history.backchannel_refused;
        sum.defaced += history.defaced;
        sum.steps += history.steps;
    }
    println!("{sum:?}");
    sum
}

const FAIR: Weather = Weather {
    rpcs: 40,
    calls: 20,
    odd: 0,
    credits: 0,
    loss: 0,
    cancel: 0,
    patience: 0,
    hostile_server: 0,
    hostile_client: 0,
};

#[test]
fn no_faults() {
    let history = many(FAIR);
    assert_eq!(history.losses, 0);
    assert_eq!(history.refused, 0);
    assert!(history.replies > 0 && history.moved > 0 && history.invalidated > 0);
    assert!(history.backchannel > 0 && history.backchannel_refused == 0);
    assert!(history.exposed > 0 && history.chunked > 0);
}

#[test]
fn connections_are_lost() {
    let history = many(Weather { loss: 300, ..FAIR });
    assert!(history.losses > 0 && history.refused == 0);
}

#[test]
fn rpcs_are_cancelled() {
    let history = many(Weather {
        cancel: 100,
        ..FAIR
    });
    assert!(history.cancelled > 0);
}

#[test]
fn exposed_replies_expire() {
    let history = many(Weather {
        patience: 60,
        ..FAIR
    });
    assert!(history.exposed > 0 && history.losses > 0 && history.refused == 0);
}

#[test]
fn losses_cancellations_and_expiry() {
    many(Weather {
        loss: 500,
        cancel: 200,
        patience: 300,
        ..FAIR
    });
}

/// RFC 8167 Sections 2.3 and 4.3.1: Receives suffice without any traffic forward.
#[test]
fn r8167_2_3_1_backchannel_only() {
    let history = many(Weather {
        rpcs: 0,
        calls: 400,
        ..FAIR
    });
    assert!(history.replies == 0 && history.backchannel > 0);
}

/// RFC 8167 Section 4.1: each direction has its own credits, and one is enough.
#[test]
fn r8167_4_1_1_one_credit_each_way() {
    let history = many(Weather { credits: 1, ..FAIR });
    assert!(history.replies > 0 && history.backchannel > 0);
}

/// RFC 8167 Section 5.3: what cannot be taken is refused, the caller is told at once, and the
/// connection is kept.
#[test]
fn r8167_5_3_3_illegal_backchannel_calls_are_refused() {
    let history = many(Weather { odd: 2, ..FAIR });
    assert!(history.backchannel > 0 && history.backchannel_refused > 0);
    assert_eq!(history.losses, 0);
}

/// RFC 8167 Section 5.4: what was not answered is sent again on the next connection.
#[test]
fn r8167_5_4_1_backchannel_calls_outlive_connections() {
    let history = many(Weather {
        loss: 200,
        odd: 4,
        ..FAIR
    });
    assert!(history.losses > 0 && history.backchannel > 0);
}

/// RFC 8166 Section 3.3.1: a Call that was given up counts until it is answered.
#[test]
fn r8166_3_3_1_3_cancelled_calls_keep_their_credit() {
    for credits in [1, 2] {
        let history = many(Weather {
            credits,
            cancel: 40,
            ..FAIR
        });
        assert!(history.cancelled > 0 && history.replies > 0);
    }
}

#[test]
fn hostile_server() {
    let history = many(Weather {
        hostile_server: 6,
        ..FAIR
    });
    assert!(history.defaced > 0);
}

#[test]
fn hostile_client() {
    let history = many(Weather {
        hostile_client: 6,
        ..FAIR
    });
    assert!(history.defaced > 0 && history.refused > 0);
}

#[test]
fn all_faults() {
    many(Weather {
        loss: 700,
        cancel: 300,
        patience: 400,
        hostile_server: 10,
        hostile_client: 10,
        odd: 4,
        ..FAIR
    });
}

#[test]
fn same_seed_same_run() {
    let weather = Weather {
        loss: 500,
        cancel: 200,
        hostile_server: 10,
        ..FAIR
    };
    assert_eq!(live(7, weather), live(7, weather));
}
