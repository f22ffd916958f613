//! The table as CSV (RFC 4180): a row for each value.

use std::fmt::Write as _;

use crate::{Table, Value, printable::printable, statistic::Statistic};

/// The first line. `slice` is empty in the rows of the whole run; times are nanoseconds from the start of the run.
const HEADER: [&str; 12] = [
    "slice",
    "from_ns",
    "to_ns",
    "key",
    "statistic",
    "unit",
    "amount",
    "whole",
    "value",
    "low",
    "high",
    "reason",
];

/// All values, those of the whole run first, then slice by slice. What is not known is an empty field with a reason in the
/// last. Of a share `amount` and `whole` are the counts that it is made of.
pub fn csv(table: &Table) -> String {
    let mut text = String::new();
    line(&mut text, &HEADER.map(str::to_owned));
    let whole = ["", "0"].map(str::to_owned);
    let end = table.slices.duration_ns().map(text_of).unwrap_or_default();
    for row in &table.rows {
        for (column, value) in table.columns.iter().zip(&row.total) {
            let time = [whole[0].clone(), whole[1].clone(), end.clone()];
            one(&mut text, time, &row.label, column.statistic, value);
        }
    }
    if table.slices.interval_ns().is_none() {
        return text;
    }
    for slice in 0..table.slice_count {
        let (from, to) = table.slices.bounds_ns(slice);
        let time = [
            text_of(slice.into()),
            text_of(from),
            to.map(text_of).unwrap_or_default(),
        ];
        for row in &table.rows {
            for (column, values) in table.columns.iter().zip(&row.slices) {
                if let Some(value) = values.get(slice as usize) {
                    one(&mut text, time.clone(), &row.label, column.statistic, value);
                }
            }
        }
    }
    text
}

fn one(
    text: &mut String,
    [slice, from, to]: [String; 3],
    label: &str,
    statistic: &dyn Statistic,
    value: &Value,
) {
    let number = |number: Option<f64>| number.map(|n| n.to_string()).unwrap_or_default();
    line(
        text,
        &[
            slice,
            from,
            to,
            printable(label, false).into_owned(),
            statistic.name().to_owned(),
            statistic.unit().name().to_owned(),
            value.amount.map(text_of).unwrap_or_default(),
            value.whole.map(text_of).unwrap_or_default(),
            // A count is its own value, to the last digit.
            match value.whole {
                Some(_) => number(value.number(statistic.sums())),
                None => value.amount.map(text_of).unwrap_or_default(),
            },
            number(value.estimate.map(|estimate| estimate.low)),
            number(value.estimate.map(|estimate| estimate.high)),
            value.reason.unwrap_or_default().to_owned(),
        ],
    );
}

fn text_of(number: u64) -> String {
    number.to_string()
}

fn line(text: &mut String, fields: &[String; HEADER.len()]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) {
            let _ = write!(text, "\"{}\"", field.replace('"', "\"\""));
        } else {
            text.push_str(field);
        }
    }
    text.push('\n');
}

/// Lines of CSV, each as its fields. What is not CSV gives some fields, too.
pub fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                field.push('"');
                letters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                fields.push(std::mem::take(&mut field));
                lines.push(std::mem::take(&mut fields));
            }
            other => field.push(other),
        }
    }
    if !field.is_empty() || !fields.is_empty() {
        fields.push(field);
        lines.push(fields);
    }
    lines
}
