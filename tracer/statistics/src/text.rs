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

/// Least and most columns of keys' labels.
const LABELS: (usize, usize) = (12, 30);
/// Keys of a statistic that are printed, unless all are asked for: the greatest ones, where there are more or where they
/// have names.
const MOST_KEYS: usize = 16;
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
    let page = Page::of(table, options);
    for (at, column) in table.columns.iter().enumerate() {
        if column.unknown.is_none() {
            statistic(&mut text, table, at, column, &page);
        }
    }
    unknown(&mut text, table);
    if table.slices.interval_ns().is_some() {
        legend(&mut text, page.each);
        slices(&mut text, table, &page);
    }
    for caveat in &table.caveats {
        let _ = writeln!(text, "\ncaution: {}", printable(caveat, options.ascii));
    }
    text
}

/// What all lines have in common.
struct Page {
    options: TextOptions,
    /// Columns of a label.
    label: usize,
    /// Columns of an interval; 0 where there are none.
    intervals: usize,
    /// Slices of a character.
    each: usize,
}

impl Page {
    fn of(table: &Table, options: TextOptions) -> Page {
        let labels = table.rows.iter().map(|row| columns(&row.label));
        let label = labels.max().unwrap_or(0).clamp(LABELS.0, LABELS.1);
        let mut totals = table.rows.iter().flat_map(|row| &row.total);
        let any = totals.any(|value| value.estimate.is_some());
        let intervals = if any { INTERVAL } else { 0 };
        let taken = label + NUMBER + intervals + 7;
        let wide = options.width.saturating_sub(taken);
        Page {
            options,
            label,
            intervals,
            each: slices_of_character(table.slice_count as usize, wide),
        }
    }

    fn label(&self, text: &str) -> String {
        let text = printable(text, self.options.ascii);
        let text = cut(&text, self.label);
        let blanks = self.label.saturating_sub(columns(text));
        format!("{text}{}", " ".repeat(blanks))
    }
}

fn statistic(text: &mut String, table: &Table, at: usize, column: &Column, page: &Page) {
    let (name, sums) = (column.statistic.name(), column.statistic.sums());
    let _ = writeln!(text, "\n{name} ({})", unit(column.statistic.unit()));
    let numbers = |row: &Row| -> Vec<Option<f64>> {
        let of_slices = row.slices.get(at).into_iter().flatten();
        of_slices.map(|value| value.number(sums)).collect()
    };
    // The whole has a scale of its own: it is darker than each of its keys.
    let keys = table.rows.iter().skip(1).flat_map(numbers).flatten();
    let most_of_keys = keys.fold(0.0, f64::max);
    let strips = table.slices.interval_ns().is_some() && sums != Sums::Run;
    let (rows, left_out) = shown(table, at, sums, page.options.all);
    for (number, row) in rows.into_iter().enumerate() {
        let Some(total) = row.total.get(at) else {
            continue;
        };
        let drawn = strips.then(|| {
            let numbers = numbers(row);
            let own = numbers.iter().flatten().copied().fold(0.0, f64::max);
            let most = if number == 0 { own } else { most_of_keys };
            format!("|{}|", strip(&numbers, most, page.each))
        });
        let intervals = page.intervals;
        let line = format!(
            "  {} {:>NUMBER$}  {:<intervals$}{}",
            page.label(&row.label),
            said(total, column),
            interval(total, column),
            drawn.unwrap_or_default()
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if left_out > 0 {
        let _ = writeln!(text, "  {} more", grouped(left_out as u64));
    }
}

/// The whole, and the keys that are printed of a statistic; how many that are not nothing are left out.
fn shown(table: &Table, at: usize, sums: Sums, all: bool) -> (Vec<&Row>, usize) {
    let amount = |row: &Row| row.total.get(at).and_then(|total| total.amount);
    let mut rows: Vec<&Row> = table.rows.iter().collect();
    if sums == Sums::Run {
        rows.retain(|row| amount(row).is_some());
    }
    let few = rows.len() <= MOST_KEYS + 1 && !table.per.is_by_name();
    if all || few || rows.is_empty() {
        return (rows, 0);
    }
    let mut keys = rows.split_off(1);
    keys.retain(|row| amount(row).is_some_and(|amount| amount > 0));
    keys.sort_by_key(|row| std::cmp::Reverse(amount(row)));
    let left_out = keys.len().saturating_sub(MOST_KEYS);
    rows.extend(keys.into_iter().take(MOST_KEYS));
    (rows, left_out)
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
fn slices(text: &mut String, table: &Table, page: &Page) {
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
    // Of many keys, most have nothing in most slices.
    let many = table.per.is_by_name() || keys.len() > MOST_KEYS;
    let is_said = |value: &Value| !many || page.options.all || value.amount != Some(0);
    let said_of = |row: &Row| -> usize {
        let values = known().filter_map(|(at, _)| row.slices.get(at)).flatten();
        values.filter(|value| is_said(value)).count()
    };
    let all: usize = keys.iter().map(said_of).sum();
    let most = if page.options.all { all } else { MOST_ROWS };
    let wide = page.label;
    let _ = writeln!(
        text,
        "\n{:>11}  {:<wide$} {:>NUMBER$} {:<9} statistic",
        "from", "key", "value", "unit"
    );
    let of_slices = (0..table.slice_count).flat_map(|slice| {
        keys.iter().flat_map(move |row| {
            known().filter_map(move |(at, column)| {
                let value = row.slices.get(at)?.get(slice as usize)?;
                is_said(value).then_some((slice, row, column, value))
            })
        })
    });
    for (slice, row, column, value) in of_slices.take(most) {
        let (from, _) = table.slices.bounds_ns(slice);
        let _ = writeln!(
            text,
            "{:>11}  {} {:>NUMBER$} {:<9} {}",
            seconds(from),
            page.label(&row.label),
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
