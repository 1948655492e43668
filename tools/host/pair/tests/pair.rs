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
        sum.reverse += history.reverse;
        sum.defaced += history.defaced;
        sum.steps += history.steps;
    }
    println!("{sum:?}");
    sum
}

const FAIR: Weather = Weather {
    rpcs: 40,
    loss: 0,
    cancel: 0,
    patience: 0,
    hostile_server: 0,
    hostile_client: 0,
};

#[test]
fn fair_weather() {
    let history = many(FAIR);
    assert_eq!(history.losses, 0);
    assert_eq!(history.refused, 0);
    assert!(history.replies > 0 && history.moved > 0 && history.invalidated > 0);
    assert!(history.reverse > 0 && history.exposed > 0);
}

#[test]
fn connections_are_lost() {
    let history = many(Weather { loss: 300, ..FAIR });
    assert!(history.losses > 0 && history.refused == 0);
}

#[test]
fn consumers_give_up() {
    let history = many(Weather {
        cancel: 100,
        ..FAIR
    });
    assert!(history.cancelled > 0);
}

#[test]
fn server_is_impatient() {
    let history = many(Weather {
        patience: 60,
        ..FAIR
    });
    assert!(history.exposed > 0 && history.losses > 0 && history.refused == 0);
}

#[test]
fn foul_weather() {
    many(Weather {
        loss: 500,
        cancel: 200,
        patience: 300,
        ..FAIR
    });
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
fn everything_at_once() {
    many(Weather {
        loss: 700,
        cancel: 300,
        patience: 400,
        hostile_server: 10,
        hostile_client: 10,
        ..FAIR
    });
}

#[test]
fn seeds_repeat() {
    let weather = Weather {
        loss: 500,
        cancel: 200,
        hostile_server: 10,
        ..FAIR
    };
    assert_eq!(live(7, weather), live(7, weather));
}
