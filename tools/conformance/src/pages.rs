// SPDX-License-Identifier: GPL-2.0

//! The tables as reStructuredText.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
    path::Path,
};

use crate::data::{BugClass, Compliance, Guard, Port, Reference, Requirements, Tables};

/// A file below the directory of the documents, and its text.
type Page = (String, String);

/// All pages.
pub(crate) fn all(tables: &Tables) -> Vec<Page> {
    let mut pages = Vec::new();
    requirements(&tables.requirements, &mut pages);
    bugs(&tables.bugs, &mut pages);
    ports(&tables.ports, &mut pages);
    pages
}

/// A page for each document, which may be of several files: `r8166-3.3.toml` is of `r8166`.
fn requirements<P: AsRef<Path>>(files: &[(P, Requirements)], pages: &mut Vec<Page>) {
    let mut documents: BTreeMap<String, Vec<&Requirements>> = BTreeMap::new();
    for (path, table) in files {
        let name = path
            .as_ref()
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let name = name.split('-').next().unwrap_or_default();
        documents.entry(name.into()).or_default().push(table);
    }

    let mut summary = Table::new(&["Document", "Requirements"], Compliance::ALL, &[]);
    for (name, tables) in documents {
        let title = tables.first().map_or("", |table| &table.document);
        let states = || {
            tables
                .iter()
                .flat_map(|table| &table.requirement)
                .map(|record| record.state)
        };
        let mut row = vec![
            format!(":doc:`conformance/{name}`"),
            states().count().to_string(),
        ];
        row.extend(Compliance::ALL.iter().map(|one| count(states(), *one)));
        summary.row(&row);

        let mut page = heading(title, '=');
        for table in tables {
            page += &section(table);
        }
        pages.push((format!("conformance/{name}.rst"), page));
    }
    pages.push(("conformance/summary.inc".into(), summary.text));
}

fn section(table: &Requirements) -> String {
    let mut text = String::new();
    if let Some(title) = &table.title {
        text += &heading(title, '-');
    }
    if let Some(about) = &table.about {
        text += &format!("{}\n\n", about.trim());
    }
    let mut rows = Table::new::<&str>(
        &[
            "Requirement",
            "Force",
            "End",
            "What it asks",
            "State",
            "Where",
            "Shown by",
        ],
        &[],
        &[11, 7, 7, 27, 8, 20, 20],
    );
    for req in &table.requirement {
        rows.row(&[
            format!("_`{}`", req.id),
            req.force.to_string(),
            req.end.to_string(),
            req.asks.clone(),
            req.state.to_string(),
            references(&req.code),
            shown(&req.shown, req.note.as_deref()),
        ]);
    }
    text + &rows.text
}

/// A page for each class.
fn bugs<P: AsRef<Path>>(files: &[(P, BugClass)], pages: &mut Vec<Page>) {
    let mut summary = Table::new(&["Class", "Entries"], Guard::ALL, &[]);
    for (path, table) in files {
        let name = path
            .as_ref()
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let states = || table.entry.iter().map(|record| record.state);
        let mut row = vec![
            format!(":doc:`bug-classes/{name}`"),
            states().count().to_string(),
        ];
        row.extend(Guard::ALL.iter().map(|one| count(states(), *one)));
        summary.row(&row);

        let mut rows = Table::new::<&str>(
            &[
                "Entry",
                "What goes wrong",
                "State",
                "Prevented by",
                "Shown by",
            ],
            &[],
            &[6, 36, 6, 22, 30],
        );
        for bug in &table.entry {
            rows.row(&[
                format!("_`{}`", bug.id),
                bug.failure.clone(),
                bug.state.to_string(),
                references(&bug.code),
                shown(&bug.shown, bug.note.as_deref()),
            ]);
        }
        let page = heading(&format!("{}: {}", table.class, table.title), '=') + &rows.text;
        pages.push((format!("bug-classes/{name}.rst"), page));
    }
    pages.push(("bug-classes/summary.inc".into(), summary.text));
}

/// Two tables: what is here, by file of the C module, and what is not.
fn ports(ports: &[Port], pages: &mut Vec<Page>) {
    if ports.is_empty() {
        return;
    }
    let mut files: Vec<&str> = Vec::new();
    for row in ports {
        if !files.contains(&&*row.c_file) {
            files.push(&row.c_file);
        }
    }

    let mut here = String::new();
    for c_file in files {
        let mut rows: Vec<(&str, Vec<&Port>)> = Vec::new();
        for row in ports
            .iter()
            .filter(|row| row.c_file == c_file && !row.file.is_empty())
        {
            match rows.iter_mut().find(|(name, _)| *name == row.c_name) {
                Some((_, same)) => same.push(row),
                None => rows.push((&row.c_name, vec![row])),
            }
        }
        if rows.is_empty() {
            continue;
        }
        let mut table = Table::new::<&str>(&[c_file, "Here", ""], &[], &[30, 40, 30]);
        for (name, same) in rows {
            let all: Vec<_> = same
                .iter()
                .map(|row| reference(&row.file, &row.item))
                .collect();
            let notes: Vec<_> = same.iter().map(|row| &*row.note).collect();
            table.row(&[
                format!("``{name}``"),
                all.join(", "),
                notes.join(" ").trim().into(),
            ]);
        }
        here += &table.text;
    }
    pages.push(("from-xprtrdma/here.inc".into(), here));

    let mut table = Table::new::<&str>(
        &["File", "Function or structure", "Why not"],
        &[],
        &[20, 30, 50],
    );
    for row in ports.iter().filter(|row| row.file.is_empty()) {
        table.row(&[
            row.c_file.clone(),
            format!("``{}``", row.c_name),
            row.note.clone(),
        ]);
    }
    pages.push(("from-xprtrdma/not-here.inc".into(), table.text));
}

/// A list-table.
struct Table {
    text: String,
}

impl Table {
    /// A table with a row of titles. The widths of the columns are parts of a hundred.
    fn new<T: Display>(columns: &[&str], more: &[T], widths: &[u32]) -> Self {
        let mut table = Self {
            text: ".. list-table::\n   :header-rows: 1\n".into(),
        };
        if !widths.is_empty() {
            let widths: Vec<_> = widths.iter().map(ToString::to_string).collect();
            // Writing to a string does not fail.
            _ = writeln!(table.text, "   :widths: {}", widths.join(" "));
        }
        table.text.push('\n');
        let more = more.iter().map(ToString::to_string);
        table.row(
            &columns
                .iter()
                .map(ToString::to_string)
                .chain(more)
                .collect::<Vec<_>>(),
        );
        table
    }

    /// Each row ends with an empty line, so that what follows a table is apart from it.
    fn row(&mut self, cells: &[String]) {
        for (number, cell) in cells.iter().enumerate() {
            let cell = cell.split_whitespace().collect::<Vec<_>>().join(" ");
            let bullet = if number == 0 { "   * -" } else { "     -" };
            _ = writeln!(self.text, "{}", format!("{bullet} {cell}").trim_end());
        }
        self.text.push('\n');
    }
}

fn heading(title: &str, line: char) -> String {
    let line: String = [line].iter().cycle().take(title.chars().count()).collect();
    format!("{title}\n{line}\n\n")
}

fn count<T: PartialEq>(states: impl Iterator<Item = T>, one: T) -> String {
    states.filter(|state| *state == one).count().to_string()
}

fn reference(file: &str, item: &str) -> String {
    if item.is_empty() {
        format!("``{file}``")
    } else {
        format!("``{file}`` (``{item}``)")
    }
}

fn references(all: &[Reference]) -> String {
    let all: Vec<_> = all
        .iter()
        .map(|each| match each {
            Reference::HostTest(name) => reference(name, ""),
            Reference::File(file) => reference(file, ""),
            Reference::Item(file, item) => reference(file, item),
        })
        .collect();
    all.join(", ")
}

fn shown(all: &[Reference], note: Option<&str>) -> String {
    match (references(all), note) {
        (tests, None) => tests,
        (tests, Some(note)) if tests.is_empty() => note.into(),
        (tests, Some(note)) => format!("{tests}. {note}"),
    }
}
