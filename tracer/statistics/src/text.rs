//! The table for people: what each statistic was, with a strip of its slices, then the slices one by one.

use std::fmt::Write as _;

use crate::{
    Column, Row, Table, Value,
    heat_strip::{SHADES, slices_of_character, strip},
    number::grouped,
    printable::{columns, cut, printable},
    slices::words,
    statistic::{Sums, Unit},
};

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Columns of a line.
    pub width: usize,
    /// Only ASCII.
    pub ascii: bool,
    /// All slices, however many.
    pub all: bool,
}

/// Columns of a key's label.
const LABEL: usize = 22;
/// Columns of a number.
const NUMBER: usize = 17;
/// Columns of an interval.
const INTERVAL: usize = 26;
/// Rows of slices that are printed, unless all are asked for.
const MOST_ROWS: usize = 100;

/// The table of a run as text.
pub fn text(table: &Table, run: &str, options: TextOptions) -> String {
    let mut text = String::new();
    let run = printable(run, options.ascii);
    let length = table.slices.duration_ns().map_or("a run".into(), seconds);
    let _ = match table.slices.interval_ns() {
        Some(ns) => writeln!(
            text,
            "{run}: {length} in {} slices of {}, per {}",
            grouped(table.slice_count.into()),
            words(ns),
            table.per.name()
        ),
        None => writeln!(text, "{run}: {length}, per {}", table.per.name()),
    };
    let intervals = intervals(table);
    let wide = (options.width).saturating_sub(LABEL + NUMBER + intervals + 6);
    let each = slices_of_character(table.slice_count as usize, wide);
    for (at, column) in table.columns.iter().enumerate() {
        if column.unknown.is_none() {
            statistic(&mut text, table, at, column, (each, intervals), options);
        }
    }
    unknown(&mut text, table);
    if table.slices.interval_ns().is_some() {
        legend(&mut text, each);
        slices(&mut text, table, options);
    }
    for caveat in &table.caveats {
        let _ = writeln!(text, "\ncaution: {}", printable(caveat, options.ascii));
    }
    text
}

/// Columns that intervals take; 0 where there are none.
fn intervals(table: &Table) -> usize {
    let totals = table.rows.iter().flat_map(|row| &row.total);
    let any = totals.into_iter().any(|value| value.estimate.is_some());
    if any { INTERVAL } else { 0 }
}

fn statistic(
    text: &mut String,
    table: &Table,
    at: usize,
    column: &Column,
    (each, intervals): (usize, usize),
    options: TextOptions,
) {
    let (name, sums) = (column.statistic.name(), column.statistic.sums());
    let _ = writeln!(text, "\n{name} ({})", unit(column.statistic.unit()));
    let numbers = |row: &Row| -> Vec<Option<f64>> {
        let of_slices = row.slices.get(at).into_iter().flatten();
        of_slices.map(|value| value.number(sums)).collect()
    };
    // The whole has a scale of its own: it is darker than each of its keys.
    let keys = table.rows.iter().skip(1).flat_map(numbers).flatten();
    let most_of_keys = keys.fold(0.0, f64::max);
    for (number, row) in table.rows.iter().enumerate() {
        let Some(total) = row.total.get(at) else {
            continue;
        };
        if sums == Sums::Run && total.amount.is_none() {
            continue;
        }
        let strips = table.slices.interval_ns().is_some() && sums != Sums::Run;
        let drawn = strips.then(|| {
            let numbers = numbers(row);
            let own = numbers.iter().flatten().copied().fold(0.0, f64::max);
            let most = if number == 0 { own } else { most_of_keys };
            format!("|{}|", strip(&numbers, most, each))
        });
        let line = format!(
            "  {} {:>NUMBER$}  {:<intervals$}{}",
            label(&row.label, options.ascii),
            said(total, column),
            interval(total, column),
            drawn.unwrap_or_default()
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Statistics without values, by reason.
fn unknown(text: &mut String, table: &Table) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for column in &table.columns {
        let Some(reason) = column.unknown else {
            continue;
        };
        let name = column.statistic.name();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    for (reason, names) in reasons {
        let _ = writeln!(text, "\nNot known, {reason}:");
        let mut line = String::from(" ");
        for name in names {
            if line.len() + name.len() > 96 {
                let _ = writeln!(text, "{line}");
                line = String::from(" ");
            }
            let _ = write!(line, " {name}");
        }
        let _ = writeln!(text, "{line}");
    }
}

fn legend(text: &mut String, each: usize) {
    let shades: String = SHADES.iter().collect();
    let slices = match each {
        1 => "a character a slice".to_owned(),
        each => format!("a character the most of {} slices", grouped(each as u64)),
    };
    let _ = writeln!(
        text,
        "\nStrips: {slices}, \"{shades}\" from nothing to the most of any key; ? is not known."
    );
}

/// As `perf stat -I` prints them.
fn slices(text: &mut String, table: &Table, options: TextOptions) {
    let known = || {
        let columns = table.columns.iter().enumerate();
        columns
            .filter(|(_, column)| column.unknown.is_none() && column.statistic.sums() != Sums::Run)
    };
    // The whole is the sum of its keys, and is in the strips.
    let keys = table
        .rows
        .get(usize::from(table.rows.len() > 1)..)
        .unwrap_or_default();
    let all = table.slice_count as usize * keys.len() * known().count();
    let most = if options.all { all } else { MOST_ROWS };
    let _ = writeln!(
        text,
        "\n{:>11}  {:<LABEL$} {:>NUMBER$} {:<9} statistic",
        "from", "key", "value", "unit"
    );
    let of_slices = (0..table.slice_count).flat_map(|slice| {
        keys.iter().flat_map(move |row| {
            known().map(move |(at, column)| (slice, row, column, row.slices.get(at)))
        })
    });
    for (slice, row, column, values) in of_slices.take(most) {
        let Some(value) = values.and_then(|values| values.get(slice as usize)) else {
            continue;
        };
        let (from, _) = table.slices.bounds_ns(slice);
        let _ = writeln!(
            text,
            "{:>11}  {} {:>NUMBER$} {:<9} {}",
            seconds(from),
            label(&row.label, options.ascii),
            said(value, column),
            unit(column.statistic.unit()),
            column.statistic.name()
        );
    }
    if all > most {
        let rest = grouped((all - most) as u64);
        let _ = writeln!(
            text,
            "{rest} more rows: --verbose, --csv and --json have all."
        );
    }
}

fn label(text: &str, ascii: bool) -> String {
    let text = printable(text, ascii);
    let text = cut(&text, LABEL);
    let blanks = LABEL.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(blanks))
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ms",
        other => other.name(),
    }
}

fn said(value: &Value, column: &Column) -> String {
    let number = value.number(column.statistic.sums());
    match (value.amount, number) {
        (Some(amount), Some(number)) => amount_said(amount, number, column.statistic.unit()),
        _ => "not known".to_owned(),
    }
}

fn amount_said(amount: u64, number: f64, unit: Unit) -> String {
    match unit {
        Unit::Count(_) => grouped(amount),
        Unit::Nanoseconds => milliseconds(number),
        Unit::Percent => format!("{number:.1}"),
    }
}

/// `(45.1 - 56.0)`, in the unit of the value.
fn interval(value: &Value, column: &Column) -> String {
    let Some(estimate) = value.estimate else {
        return String::new();
    };
    let one = |number: f64| match column.statistic.unit() {
        Unit::Nanoseconds => milliseconds(number),
        Unit::Count(_) => grouped(number.round() as u64),
        Unit::Percent => format!("{number:.1}"),
    };
    format!("({} - {})", one(estimate.low), one(estimate.high))
}

/// Nanoseconds as milliseconds: `1,234.5`.
fn milliseconds(ns: f64) -> String {
    let tenths = (ns / 100_000.0).round() as u64;
    format!("{}.{}", grouped(tenths / 10), tenths % 10)
}

/// Nanoseconds as `1.234 s`.
fn seconds(ns: u64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}
