// SPDX-License-Identifier: GPL-2.0

//! Compares the results of a run with the plan, and joins them with the records: a requirement is
//! met only if the tests that its record names ran and passed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use crate::{
    data::{Compliance, Guard, Reference, Tables},
    outputs::{Outcome, Outputs},
    plan::{Named, Plan, Planned},
    tree::Tree,
};

/// What the tests of a record have shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    /// All named tests passed, or no test is named.
    Shown,
    /// A named test has not passed.
    Failed,
    /// A suite with a named test did not run.
    NotRun,
}

/// The result of a record.
#[derive(Debug)]
struct Judged {
    id: String,
    state: String,
    verdict: Verdict,
    tests: usize,
    errors: Vec<String>,
}

/// All results of a run.
#[derive(Debug)]
pub(crate) struct Judgement {
    plan: BTreeSet<String>,
    skips: BTreeSet<String>,
    requirements: Vec<Judged>,
    bugs: Vec<Judged>,
}

impl Judgement {
    /// Judges the run with these outputs.
    pub(crate) fn new(tables: &Tables, tree: &Tree, plan: &Plan, outputs: &Outputs) -> Self {
        let mut skips = BTreeSet::new();
        let plan_errors = compare(plan, outputs, &mut skips);
        let requirements = tables.each_requirement().map(|(_, req)| {
            let claims = matches!(req.state, Compliance::Met | Compliance::Partly);
            let tagged = plan.tagged(tree, &req.id);
            let shown = if claims { &req.shown[..] } else { &[] };
            let tagged = if claims { tagged } else { Vec::new() };
            judge(plan, tree, outputs, (&req.id, &req.state), shown, tagged)
        });
        let requirements = requirements.collect();
        let bugs = tables.each_bug().map(|(_, bug)| {
            let claims = bug.state == Guard::Test;
            let shown = if claims { &bug.shown[..] } else { &[] };
            judge(
                plan,
                tree,
                outputs,
                (&bug.id, &bug.state),
                shown,
                Vec::new(),
            )
        });
        let bugs = bugs.collect();
        Self {
            plan: plan_errors,
            skips,
            requirements,
            bugs,
        }
    }

    /// Prints the judgement as KTAP, one test for each kind of error.
    pub(crate) fn print(&self) {
        println!("1..4");
        print_test(1, "planned tests ran, and no others", &self.plan);
        print_test(
            2,
            "no test is skipped without a planned reason",
            &self.skips,
        );
        print_records(3, "requirements", &self.requirements);
        print_records(4, "bug classes", &self.bugs);
    }

    /// The results of all records, tab-separated, with a line of titles.
    pub(crate) fn rows(&self) -> String {
        let mut rows = String::from("record\tstate\tresult\ttests\n");
        for judged in self.requirements.iter().chain(&self.bugs) {
            let result = match judged.verdict {
                Verdict::Failed => "failed",
                Verdict::NotRun => "not run",
                Verdict::Shown if judged.tests == 0 => "-",
                Verdict::Shown => "passed",
            };
            rows += &format!(
                "{}\t{}\t{result}\t{}\n",
                judged.id, judged.state, judged.tests
            );
        }
        rows
    }
}

/// The differences between plan and results, in suites that ran. Skipped tests without a planned
/// reason are added to `skips`.
fn compare(plan: &Plan, outputs: &Outputs, skips: &mut BTreeSet<String>) -> BTreeSet<String> {
    let mut errors = BTreeSet::new();
    let mut planned: BTreeMap<(&str, &str), Vec<&Planned>> = BTreeMap::new();
    for test in &plan.tests {
        planned
            .entry((&test.suite, &test.test))
            .or_default()
            .push(test);
    }
    for ((suite, test), all) in &planned {
        if outputs.has(suite) && outputs.of(suite, test).len() < all.len() {
            errors.insert(format!("{suite}: has not run: {test}"));
        }
    }
    for (suite, test, outcome) in outputs.each().filter(|(suite, ..)| plan.has(suite)) {
        let all = planned.get(&(suite, test)).map_or(&[][..], Vec::as_slice);
        if outputs.of(suite, test).len() > all.len() {
            errors.insert(format!("{suite}: is not in the plan: {test}"));
        }
        if let Outcome::Skipped(reason) | Outcome::Expected(reason) = outcome {
            if !all.iter().any(|test| test.skip.as_ref() == Some(reason)) {
                skips.insert(format!("{suite}: {test}: {reason}"));
            }
        }
    }
    errors
}

/// Judges one record by the tests that it names, and those that are tagged with it.
fn judge(
    plan: &Plan,
    tree: &Tree,
    outputs: &Outputs,
    (id, state): (&str, &dyn Display),
    shown: &[Reference],
    tagged: Vec<&Planned>,
) -> Judged {
    let mut tests: BTreeSet<&Planned> = tagged.into_iter().collect();
    for reference in shown {
        if let Named::Planned(named) = plan.find(tree, reference, id) {
            tests.extend(named);
        }
    }
    let mut verdict = Verdict::Shown;
    let mut errors = Vec::new();
    for planned in &tests {
        let Planned { suite, test, skip } = planned;
        if !outputs.has(suite) {
            if verdict == Verdict::Shown {
                verdict = Verdict::NotRun;
            }
            continue;
        }
        let outcomes = outputs.of(suite, test);
        let is_good = |outcome: &Outcome| match outcome {
            Outcome::Passed => true,
            Outcome::Skipped(_) => skip.is_some(),
            _ => false,
        };
        if outcomes.is_empty() || !outcomes.iter().all(is_good) {
            let what = if outcomes.is_empty() {
                "has not run"
            } else {
                "has not passed"
            };
            errors.push(format!("{suite}: {test} {what}"));
            verdict = Verdict::Failed;
        }
    }
    Judged {
        id: id.into(),
        state: state.to_string(),
        verdict,
        tests: tests.len(),
        errors,
    }
}

fn print_test(number: usize, name: &str, errors: &BTreeSet<String>) {
    for error in errors {
        println!("# {error}");
    }
    let verdict = if errors.is_empty() { "ok" } else { "not ok" };
    println!("{verdict} {number} - {name}");
}

/// Prints the records whose tests have not passed or not run, and how many are in each state.
fn print_records(number: usize, what: &str, all: &[Judged]) {
    let mut errors = BTreeSet::new();
    let mut counts: Vec<(String, usize)> = Vec::new();
    let mut not_run = Vec::new();
    for judged in all {
        let state = match judged.verdict {
            Verdict::Failed => "failed",
            Verdict::NotRun => "not judged",
            Verdict::Shown => &judged.state,
        };
        match counts.iter_mut().find(|(name, _)| name == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state.into(), 1)),
        }
        if judged.verdict == Verdict::NotRun {
            not_run.push(judged.id.as_str());
        }
        let with_id = |error| format!("{}: {error}", judged.id);
        errors.extend(judged.errors.iter().map(with_id));
    }
    for ids in not_run.chunks(8) {
        println!("# not judged: {}", ids.join(" "));
    }
    let counts: Vec<_> = counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    println!("# of {} {what}: {}", all.len(), counts.join(", "));
    print_test(
        number,
        &format!("{what}: the tests that show them passed"),
        &errors,
    );
}
