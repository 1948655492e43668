// SPDX-License-Identifier: GPL-2.0

//! Findings of `explain` and `doctor`, as text.

use std::io;

use super::table::{printable, FAULT, GOOD, LIMIT, PLAIN, TITLE};
use crate::{
    doctor::Chapter,
    explain::Explanation,
    finding::{Finding, Level},
    model::snapshot::Missing,
    source::values::Values,
};

/// Prints an explanation.
///
/// # Errors
///
/// As of the stream.
pub fn explanation(
    out: &mut dyn io::Write,
    explanation: &Explanation,
    missing: &[Missing],
) -> io::Result<()> {
    writeln!(out, "{TITLE}{}{TITLE:#}", printable(&explanation.subject))?;
    chapter(out, "Agreed", &explanation.agreed, "nothing is known")?;
    chapter(
        out,
        "What limits it",
        &explanation.limits,
        "nothing that can be seen here",
    )?;
    chapter(
        out,
        "What went wrong",
        &explanation.faults,
        "nothing that can be seen here",
    )?;
    for detail in &explanation.details {
        writeln!(out, "{TITLE}All of {}{TITLE:#}", printable(&detail.title))?;
        values(out, &detail.values)?;
    }
    not_known(out, missing)
}

/// The width of lines of names and values.
const WIDTH: usize = 96;

/// Prints names and values, as many in a line as have room.
fn values(out: &mut dyn io::Write, values: &Values) -> io::Result<()> {
    let mut line = String::new();
    for (name, value) in values.iter() {
        let pair = printable(&format!("{name} {value}"));
        if !line.is_empty() && line.chars().count() + 2 + pair.chars().count() > WIDTH {
            writeln!(out, "  {line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(&pair);
    }
    writeln!(out, "  {line}")
}

/// Prints what the doctor found.
///
/// # Errors
///
/// As of the stream.
pub fn chapters(
    out: &mut dyn io::Write,
    chapters: &[Chapter],
    missing: &[Missing],
) -> io::Result<()> {
    for each in chapters {
        chapter(out, each.title, &each.findings, "")?;
    }
    not_known(out, missing)
}

fn chapter(
    out: &mut dyn io::Write,
    title: &str,
    findings: &[Finding],
    otherwise: &str,
) -> io::Result<()> {
    writeln!(out, "{TITLE}{title}{TITLE:#}")?;
    if findings.is_empty() {
        writeln!(out, "  {otherwise}")?;
    }
    for finding in findings {
        let (style, mark) = match finding.level {
            Level::Good => (GOOD, "ok"),
            Level::Note => (PLAIN, "--"),
            Level::Limit => (LIMIT, "**"),
            Level::Fault => (FAULT, "!!"),
        };
        writeln!(out, "  {style}{mark}{style:#} {}", printable(&finding.what))?;
        if let Some(next) = &finding.next {
            writeln!(out, "     next: {}", printable(next))?;
        }
    }
    Ok(())
}

/// Prints what could not be read.
///
/// # Errors
///
/// As of the stream.
pub fn not_known(out: &mut dyn io::Write, missing: &[Missing]) -> io::Result<()> {
    for each in missing {
        writeln!(
            out,
            "not shown: {} ({}); to see them: {}",
            each.what, each.why, each.next
        )?;
    }
    Ok(())
}
