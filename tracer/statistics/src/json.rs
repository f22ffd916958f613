//! The table for programs: schema 1.

use serde::Serialize;

use crate::{Column, Key, Row, Table, Value, printable::printable, statistic::Sums};

const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document {
    schema: u32,
    kind: &'static str,
    /// Name of the run.
    run: String,
    /// On the clock of the run.
    start_ns: u64,
    duration_ns: Option<u64>,
    interval_ns: Option<u64>,
    slices: u32,
    per: &'static str,
    statistics: Vec<StatisticOf>,
    keys: Vec<KeyOf>,
    caveats: Vec<String>,
}

#[derive(Serialize)]
struct StatisticOf {
    name: &'static str,
    unit: &'static str,
    sums: &'static str,
    about: &'static str,
    /// Why it has no values in this run.
    unknown: Option<&'static str>,
}

#[derive(Serialize)]
struct KeyOf {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    values: Vec<ValuesOf>,
}

#[derive(Serialize)]
struct ValuesOf {
    statistic: &'static str,
    total: ValueOf,
    slices: Vec<ValueOf>,
}

#[derive(Serialize)]
struct ValueOf {
    value: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Exact(u64),
    Share(f64),
}

/// The table of a run as one JSON object and the end of a line. Counts are exact integers; a share has its part and whole.
pub fn json(table: &Table, run: &str) -> String {
    let document = Document {
        schema: SCHEMA,
        kind: "stats",
        run: printable(run, false).into_owned(),
        start_ns: table.slices.start_ns(),
        duration_ns: table.slices.duration_ns(),
        interval_ns: table.slices.interval_ns(),
        slices: table.slice_count,
        per: table.per.name(),
        statistics: table.columns.iter().map(statistic).collect(),
        keys: (table.rows.iter())
            .map(|row| key(row, &table.columns))
            .collect(),
        caveats: (table.caveats.iter())
            .map(|caveat| printable(caveat, false).into_owned())
            .collect(),
    };
    // Nothing in it can fail: all keys are names, all numbers are finite.
    let mut text = serde_json::to_string(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn statistic(column: &Column) -> StatisticOf {
    StatisticOf {
        name: column.statistic.name(),
        unit: column.statistic.unit().name(),
        sums: column.statistic.sums().name(),
        about: column.statistic.about(),
        unknown: column.unknown,
    }
}

fn key(row: &Row, columns: &[Column]) -> KeyOf {
    let (cpu, pid, tid) = match row.key {
        Key::Cpu(cpu) => (Some(cpu.0), None, None),
        Key::Thread(pid, tid) => (None, Some(pid.0), Some(tid.0)),
        Key::Process(pid) => (None, Some(pid.0), None),
        _ => (None, None, None),
    };
    let values = columns.iter().zip(row.total.iter().zip(&row.slices));
    KeyOf {
        key: printable(&row.label, false).into_owned(),
        cpu,
        pid,
        tid,
        values: values
            .map(|(column, (total, slices))| {
                let sums = column.statistic.sums();
                ValuesOf {
                    statistic: column.statistic.name(),
                    total: value(total, sums),
                    slices: slices.iter().map(|one| value(one, sums)).collect(),
                }
            })
            .collect(),
    }
}

fn value(value: &Value, sums: Sums) -> ValueOf {
    let share = sums == Sums::Share;
    ValueOf {
        value: if share {
            value.number(sums).map(Number::Share)
        } else {
            value.amount.map(Number::Exact)
        },
        part: value.amount.filter(|_| share),
        whole: value.whole,
        low: value.estimate.map(|estimate| estimate.low),
        high: value.estimate.map(|estimate| estimate.high),
        reason: value.reason,
    }
}
