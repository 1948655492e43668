// SPDX-License-Identifier: GPL-2.0

//! `nfsrdma graph`: throughput, latency by procedure and credits over time, as SVG.

use std::collections::{BTreeMap, BTreeSet};

use plotters::{
    coord::Shift,
    prelude::{
        ChartBuilder, DrawingArea, IntoDrawingArea, LineSeries, PathElement, SVGBackend,
        SeriesLabelPosition, BLACK, WHITE,
    },
    style::{Color, IntoFont, Palette, Palette99},
};

use crate::{error::Error, model::rate::Rates};

/// The size of the picture.
const SIZE: (u32, u32) = (1000, 1050);

/// The operations that are drawn: those that took most time together.
const OPERATIONS: usize = 6;

/// A line: its name and points.
type Lines = BTreeMap<String, Vec<(f64, f64)>>;

/// Draws the rates of a run.
///
/// # Errors
///
/// If the picture cannot be drawn.
pub fn draw(rates: &[Rates]) -> Result<String, Error> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let parts = area.split_evenly((3, 1));
        let charts = [
            ("Throughput, MiB/s", throughput(rates)),
            ("Time of an RPC, ms", latency(rates)),
            ("Credits: granted, in use", credits(rates)),
        ];
        for (part, (title, lines)) in parts.iter().zip(&charts) {
            chart(part, title, lines)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Drawing(error.to_string())
}

/// Seconds since the start of the run, for each of the rates.
fn timed(rates: &[Rates]) -> impl Iterator<Item = (f64, &Rates)> {
    let start = rates.first().map_or(0, |first| first.time_ms);
    let seconds = move |rates: &Rates| rates.time_ms.saturating_sub(start) as f64 / 1000.0;
    rates.iter().map(move |each| (seconds(each), each))
}

fn throughput(rates: &[Rates]) -> Lines {
    const MIB: f64 = 1_048_576.0;
    let mut lines = Lines::new();
    for (at, rates) in timed(rates) {
        for (target, mount) in &rates.mounts {
            let mut add = |what: &str, bytes: f64| {
                lines
                    .entry(format!("{target} {what}"))
                    .or_default()
                    .push((at, bytes / MIB));
            };
            add("read", mount.read_bytes);
            add("written", mount.written_bytes);
        }
        for (what, name) in [
            ("read", "nfsd_read_bytes"),
            ("written", "nfsd_written_bytes"),
        ] {
            if let Some(bytes) = rates.totals.get(name) {
                lines
                    .entry(format!("nfsd {what}"))
                    .or_default()
                    .push((at, bytes / MIB));
            }
        }
    }
    // Those that never move would only hide the others.
    lines.retain(|_, points| points.iter().any(|&(_, value)| value > 0.0));
    lines
}

fn latency(rates: &[Rates]) -> Lines {
    let mut spent: BTreeMap<String, f64> = BTreeMap::new();
    let mut lines = Lines::new();
    for (at, rates) in timed(rates) {
        for (target, mount) in &rates.mounts {
            for (name, op) in &mount.ops {
                let line = format!("{target} {name}");
                *spent.entry(line.clone()).or_default() += op.total_ms * op.operations;
                lines.entry(line).or_default().push((at, op.total_ms));
            }
        }
    }
    let mut most: Vec<_> = spent.into_iter().collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1));
    let drawn: BTreeSet<_> = most
        .into_iter()
        .take(OPERATIONS)
        .map(|(line, _)| line)
        .collect();
    lines.retain(|line, _| drawn.contains(line));
    lines
}

fn credits(rates: &[Rates]) -> Lines {
    let mut lines = Lines::new();
    for (at, rates) in timed(rates) {
        for (end, connections) in [("client", &rates.client), ("server", &rates.server)] {
            for (title, credits) in connections {
                let mut add = |what: &str, number: u64| {
                    let line = format!("{end} {title} {what}");
                    lines.entry(line).or_default().push((at, number as f64));
                };
                add("granted", credits.granted);
                add("in use", credits.used);
            }
        }
    }
    lines
}

fn chart(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    lines: &Lines,
) -> Result<(), Error> {
    let points = || lines.values().flatten();
    let end = points().map(|&(at, _)| at).fold(1.0, f64::max);
    let top = points().map(|&(_, value)| value).fold(0.0, f64::max);
    let top = if top.is_finite() && top > 0.0 {
        top * 1.1
    } else {
        1.0
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18).into_font())
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..top)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .label_style(("sans-serif", 14))
        .x_desc("seconds")
        .draw()
        .map_err(failed)?;
    for (index, (name, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(index).mix(1.0);
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                color.stroke_width(2),
            ))
            .map_err(failed)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
    }
    if !lines.is_empty() {
        chart
            .configure_series_labels()
            .label_font(("sans-serif", 14))
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()
            .map_err(failed)?;
    }
    Ok(())
}
