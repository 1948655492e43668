// SPDX-License-Identifier: GPL-2.0

//! No content of any file makes the command panic, or write control characters to a terminal.

mod bed;

use bed::{Bed, ADDRESS};
use nfsrdma::{
    doctor, explain,
    model::{rate::Rates, sample::Sample, snapshot::Snapshot},
    show,
    source::{capture::Capture, root::Root},
};
use proptest::prelude::{any, prop, prop_oneof, proptest, Just, ProptestConfig, Strategy};

/// The captured files, as text in which proptest changes things.
fn text() -> String {
    let root = Bed::new().root().copying();
    let _ = Snapshot::take(&root);
    root.into_copies().to_string()
}

/// Runs everything on the files, and returns what is printed.
fn everything(root: &Root) -> String {
    let all = Snapshot::take(root);
    let mut out = anstream::StripStream::new(Vec::new());
    show::status::print(&mut out, &all).unwrap();
    show::findings::chapters(&mut out, &doctor::examine(&all), &all.missing).unwrap();
    for subject in ["/mnt", ADDRESS, "", "[", ":"] {
        if let Ok(case) = explain::case(&all, root, subject) {
            let explanation = explain::explain(subject, &case);
            show::findings::explanation(&mut out, &explanation, &all.missing).unwrap();
        }
    }
    serde_json::to_string(&all).unwrap();
    let mut later = Sample::of(&all);
    later.time_ms = later.time_ms.saturating_add(1000);
    if let Some(rates) = Rates::between(&Sample::of(&all), &later) {
        show::rates::print(&mut out, &rates).unwrap();
        show::graph::draw(&[rates]).unwrap();
    }
    String::from_utf8(out.into_inner()).unwrap()
}

/// What a number, a word or a line may become.
fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(u64::MAX.to_string()),
        Just(i64::MIN.to_string()),
        Just("99999999999999999999999999".to_string()),
        Just("-1".to_string()),
        Just("NaN".to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        "\\PC{0,12}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn damaged_files_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd()), 1..40),
    ) {
        let text = text();
        let mut words: Vec<String> = text.split_inclusive([' ', '\n', '=', ':', ',', '\t'])
            .map(str::to_string).collect();
        for (index, odd) in &changes {
            let word = index.get_mut(&mut words);
            let end = word.chars().last().filter(|c| " \n=:,\t".contains(*c));
            *word = odd.clone();
            word.extend(end);
        }
        let printed = everything(&Root::captured(Capture::parse(&words.concat())));
        assert!(!printed.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }

    #[test]
    fn cut_files_never_panic(at in any::<prop::sample::Index>()) {
        let text = text();
        let at = at.index(text.len());
        let cut = String::from_utf8_lossy(&text.as_bytes()[..at]).into_owned();
        everything(&Root::captured(Capture::parse(&cut)));
    }

    #[test]
    fn other_files_never_panic(content in any::<String>()) {
        let mut capture = Capture::parse(&text());
        for path in ["/proc/self/mountstats", "/proc/self/mountinfo", "/dev/kmsg", "/proc/net/tcp",
            "/proc/net/rpc/nfsd", "/proc/uptime", bed::CLIENT, bed::SERVER] {
            capture.insert(path, Ok(content.clone()));
        }
        everything(&Root::captured(capture));
    }
}
