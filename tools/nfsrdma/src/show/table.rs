// SPDX-License-Identifier: GPL-2.0

//! Tables of text with colours. The stream that they are written to removes the colours where it
//! is no terminal.

use std::io;

use anstyle::{AnsiColor, Style};

/// A title.
pub const TITLE: Style = Style::new().bold();
/// The names of columns.
pub const HEAD: Style = Style::new().dimmed();
/// Something is as it should be.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Something costs time or memory.
pub const LIMIT: Style = AnsiColor::Yellow.on_default();
/// Something is broken.
pub const FAULT: Style = AnsiColor::Red.on_default().bold();
/// No colour.
pub const PLAIN: Style = Style::new();

/// A cell: its text and colour.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: printable(&text.into()),
            style: PLAIN,
        }
    }
}

impl Cell {
    /// A number, or `-` if it is not known.
    pub fn number(number: Option<u64>) -> Self {
        number.map_or("-".into(), |number| number.to_string().into())
    }

    /// A text, or `-` if there is none.
    pub fn known(text: &str) -> Self {
        if text.is_empty() { "-" } else { text }.into()
    }

    /// The cell in a colour.
    pub fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table with these columns.
    pub fn new(columns: &[&str]) -> Self {
        let head = columns.iter().map(|&name| Cell::from(name).styled(HEAD));
        Self {
            head: head.collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints it, with as little space between columns as they need.
    ///
    /// # Errors
    ///
    /// As of the stream.
    pub fn print(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            let cells = lines().filter_map(|cells| cells.get(column));
            cells
                .map(|cell| cell.text.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.head.len()).map(width).collect();
        for cells in lines() {
            write!(out, " ")?;
            let last = cells.len().min(widths.len()).saturating_sub(1);
            for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                let style = cell.style;
                let blanks = match column == last {
                    true => 0,
                    false => width.saturating_sub(cell.text.chars().count()),
                };
                write!(out, " {style}{}{style:#}{:blanks$}", cell.text, "")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Replaces tabs and control characters.
pub fn printable(text: &str) -> String {
    let visible = |c: char| if c.is_control() { '?' } else { c };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["A", "LONG"]);
        table.row(["longer".into(), Cell::number(None)]);
        table.row(["x\x1b".into(), Cell::number(Some(5)).styled(GOOD)]);
        let mut out = anstream::StripStream::new(Vec::new());
        table.print(&mut out).unwrap();
        let text = String::from_utf8(out.into_inner()).unwrap();
        assert_eq!(text, "  A      LONG\n  longer -\n  x?     5\n");
    }
}
