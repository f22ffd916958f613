//! The table of one finding: which bytes, by whom, from where in the code, costliest first.

use super::{
    bytemap, cost_words,
    model::{AccessRow, Code, Finding, Thread},
    named::op_name,
    printable::columns,
    shorten,
    style::Role,
    table::{self, Column},
    text::{Lines, WIDTH},
};
use crate::access::Basis;
use crate::number::{count, grouped, percent, ranges, short};

/// Rows of the access table shown; the others are summed up.
const ROWS: usize = 10;

/// Columns of the longest name in a row.
const WHAT: usize = 24;

/// Position of the bytes among the columns.
const BYTES_COLUMN: usize = 1;

/// Position of the name among the columns.
const WHAT_COLUMN: usize = 2;

/// Position of who it was among the columns.
const THREAD_COLUMN: usize = 4;

/// Positions of the columns that only a PMU fills.
const MEASURED: std::ops::Range<usize> = 7..9;

/// Spaces before the table; the letters of the groups stand in the last two.
const INDENT: &str = "     ";

/// The table, with a remark on what is left out of it.
pub(super) fn print(out: &mut Lines, finding: &Finding) {
    let letters = bytemap::letters(&finding.groups);
    // Rows of many lines have no place on the one that is drawn.
    let many = finding.lines.is_some();
    let lettered = !many && bytemap::has_parts(finding);
    let mut rows: Vec<Vec<String>> = finding
        .accesses
        .iter()
        .take(ROWS)
        .map(|row| {
            let letter = if lettered {
                let size = if row.within.is_some() { 0 } else { row.size };
                bytemap::letters_of(&finding.groups, &letters, row.offset, size)
            } else {
                String::new()
            };
            access_cells(row, finding, letter)
                .into_iter()
                .map(|cell| out.options.name(&cell))
                .collect()
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    if many {
        for row in &mut rows {
            row[BYTES_COLUMN].clear();
        }
    }
    // A name that is the same everywhere is in the title already.
    if rows
        .iter()
        .all(|row| row[WHAT_COLUMN] == rows[0][WHAT_COLUMN])
    {
        for row in &mut rows {
            row[WHAT_COLUMN].clear();
        }
    }
    let measured = finding.coherence.is_some();
    if !measured {
        for row in &mut rows {
            row.drain(MEASURED);
        }
    }
    let mut table = vec![
        Column::left("", 1, shorten::end),
        Column::left("bytes", 7, shorten::end),
        Column::left("what", 10, shorten::name),
        Column::left("op", 5, shorten::end),
        Column::left("thread", 10, shorten::middle),
        Column::left("cpu", 3, shorten::end),
        Column::right("seen", 4, shorten::end),
        Column::right("hitm", 4, shorten::end),
        Column::right("cycles", 6, shorten::end),
        Column::right(cost_words::column(out.unit), 6, shorten::end),
        Column::left("function", 14, shorten_function),
        Column::left("source", 14, shorten_source),
    ];
    if !measured {
        table.drain(MEASURED);
    } else if finding
        .coherence
        .is_some_and(|c| c.local_hitm + c.remote_hitm == 0 && c.peer > 0)
    {
        table[MEASURED.start] = Column::right("peer", 4, shorten::end);
    }
    let indent = if lettered { "   " } else { INDENT };
    let width = WIDTH - indent.len();
    // Where it is tight, what the title has or all rows say gives way first.
    let object = out
        .options
        .name(finding.object.spoken().unwrap_or_default());
    if !object.is_empty() && !table::fits(&table, &rows, width) {
        for row in &mut rows {
            if let Some(part) = row[WHAT_COLUMN].strip_prefix(object.as_str())
                && !part.is_empty()
            {
                row[WHAT_COLUMN] = part.into();
            }
        }
    }
    if !table::fits(&table, &rows, width) {
        without_names(&finding.accesses, &mut rows);
    }
    let lines = table::layout(&table, &rows, width);
    for (n, line) in lines.iter().enumerate() {
        let line = if n == 0 {
            out.options.paint(Role::Quiet, line)
        } else {
            line.clone()
        };
        out.line(&format!("{indent}{line}"));
    }
    let hidden = finding.accesses.get(ROWS..).unwrap_or_default();
    if !hidden.is_empty() {
        let share: f64 = hidden.iter().map(|row| row.cost_share).sum();
        out.prose(
            INDENT,
            &format!(
                "and {} with {} {}; all of them are in the JSON form (--json).",
                count(hidden.len() as u64, "more row", "more rows"),
                percent(share),
                cost_words::of(out.unit)
            ),
        );
    }
    let shown = || finding.accesses.iter().take(ROWS);
    if shown().any(is_only_trapped) {
        out.prose(
            INDENT,
            "(n): seen in watch windows only; no sample was taken there.",
        );
    }
    if shown().any(|row| row.basis == Basis::Harvested) {
        out.prose(
            INDENT,
            "~ is inferred from the sampled loop; the other rows were in the sampled code itself.",
        );
    }
    if shown().any(|row| row.within.is_some()) {
        out.prose(
            INDENT,
            "? lies somewhere in these bytes and proves nothing: the instruction overwrites its own address.",
        );
    }
}

/// Leaves the name of the threads out of the rows where it is the same in all: `4 x worker` is `4 threads`.
fn without_names(accesses: &[AccessRow], rows: &mut [Vec<String>]) {
    let mut threads = accesses.iter().flat_map(|row| &row.threads);
    let Some(comm) = threads.next().and_then(|first| first.comm.as_ref()) else {
        return;
    };
    if threads.any(|thread| thread.comm.as_ref() != Some(comm)) {
        return;
    }
    for (row, access) in rows.iter_mut().zip(accesses) {
        row[THREAD_COLUMN] = match access.threads.as_slice() {
            [one] => one.tid.to_string(),
            threads => count(threads.len() as u64, "thread", "threads"),
        };
    }
}

fn access_cells(row: &AccessRow, finding: &Finding, letter: String) -> Vec<String> {
    let size = row.size.max(row.within.map_or(1, u16::from));
    let last = u32::from(row.offset) + u32::from(size) - 1;
    let bytes = if !row.size_known {
        format!("{}-?", row.offset)
    } else if row.within.is_some() {
        format!("{}-{last}?", row.offset)
    } else if row.size <= 1 {
        row.offset.to_string()
    } else {
        format!("{}-{last}", row.offset)
    };
    let mut cpus: Vec<u32> = row
        .threads
        .iter()
        .flat_map(|thread| thread.cpus.iter().copied())
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let is_weak = row.basis == Basis::Harvested;
    let weak = if is_weak { "~" } else { "" };
    vec![
        letter,
        bytes,
        what(finding, row),
        op_name(row.op).unwrap_or("?").to_owned(),
        threads_words(&row.threads),
        ranges(&cpus),
        if is_only_trapped(row) {
            format!("({})", short(row.trapped))
        } else {
            format!("{weak}{}", short(row.count))
        },
        taken_words(row),
        row.latency_cycles
            .map_or_else(String::new, |cycles| grouped(cycles.round() as u64)),
        // A PMU that measures no latency there says nothing of the cost.
        if is_only_trapped(row) || finding.coherence.is_some() && row.latency_cycles.is_none() {
            String::new()
        } else {
            percent(row.cost_share)
        },
        function(&row.code),
        source(&row.code),
    ]
}

/// Whether watch windows alone saw it: no sample says what it costs.
fn is_only_trapped(row: &AccessRow) -> bool {
    row.count == 0 && row.trapped > 0
}

/// Loads that found the line modified elsewhere; where none did, those that another CPU's cache served.
fn taken_words(row: &AccessRow) -> String {
    match row.coherence {
        Some(seen) if seen.local_hitm + seen.remote_hitm > 0 => {
            grouped(seen.local_hitm + seen.remote_hitm)
        }
        Some(seen) if seen.peer > 0 => grouped(seen.peer),
        _ => String::new(),
    }
}

/// The row's bytes by name; of an object with a long name only the part, which the title completes.
fn what(finding: &Finding, row: &AccessRow) -> String {
    let full = full_name(finding.object.spoken(), row.field.as_deref());
    match &row.field {
        Some(part) if columns(&full) > WHAT => part.clone(),
        _ => full,
    }
}

/// What stands between an inlined function and the one it is inlined in.
const INSIDE: &str = " in ";

/// The function whose source it is; where it was inlined, into which.
fn function(code: &Code) -> String {
    match (code.inlined.first(), &code.symbol) {
        (Some(inner), Some(outer)) => format!("{inner}{INSIDE}{outer}"),
        (Some(inner), None) => inner.clone(),
        (None, Some(symbol)) => symbol.clone(),
        (None, None) => String::new(),
    }
}

/// Shortens both names of `inner in outer`; the outer one keeps a third at most.
fn shorten_function(text: &str, width: usize) -> String {
    match text.rsplit_once(INSIDE) {
        Some((inner, outer)) if columns(text) > width && width >= 20 => {
            let room = width - INSIDE.len();
            let inner = shorten::symbol(inner, room - columns(outer).min(room / 3));
            let outer = shorten::symbol(outer, room - columns(&inner));
            format!("{inner}{INSIDE}{outer}")
        }
        _ => shorten::symbol(text, width),
    }
}

/// Shortens `file:line:column`: where the file's own name does not fit with both numbers, the column
/// goes before the name suffers.
fn shorten_source(text: &str, width: usize) -> String {
    let file = text.rsplit('/').next().unwrap_or(text);
    match text.rsplit_once(':') {
        Some((without, column)) if columns(file) > width && column.parse::<u32>().is_ok() => {
            shorten::path(without, width)
        }
        _ => shorten::path(text, width),
    }
}

/// `file:line:column`, or the module and the address in it; of the kernel, where in the function.
pub(super) fn source(code: &Code) -> String {
    match (&code.file, code.line, code.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(file), Some(line), None) => format!("{file}:{line}"),
        _ => match &code.module {
            Some(module) => {
                let file = module.rsplit('/').next().unwrap_or(module);
                match &code.symbol_offset {
                    Some(offset) => format!("+{offset} {file}"),
                    None => format!("{file}+{}", code.ip),
                }
            }
            None => code.ip.to_string(),
        },
    }
}

/// `worker 4242`, `4 x worker`, `7 threads`.
pub(super) fn threads_words(threads: &[Thread]) -> String {
    match threads {
        [] => String::new(),
        [one] => match &one.comm {
            Some(comm) => format!("{comm} {}", one.tid),
            None => one.tid.to_string(),
        },
        [first, rest @ ..] => match &first.comm {
            Some(comm) if rest.iter().all(|thread| thread.comm == first.comm) => {
                format!("{} x {comm}", threads.len())
            }
            _ => format!("{} threads", grouped(threads.len() as u64)),
        },
    }
}

/// A field as the rows have it, behind the object's name where it is only a part of one.
pub(super) fn full_name(object: Option<&str>, field: Option<&str>) -> String {
    match (object, field) {
        (Some(object), Some(part)) if part.starts_with(['.', '[']) => {
            match (object.strip_prefix('*'), part.strip_prefix('.')) {
                (Some(pointer), Some(member)) => format!("{pointer}->{member}"),
                (Some(_), None) => format!("({object}){part}"),
                (None, _) => format!("{object}{part}"),
            }
        }
        (_, Some(field)) => field.to_owned(),
        (Some(object), None) => object.to_owned(),
        (None, None) => String::new(),
    }
}

/// Where the costliest access is: `count_hits demo.c:31:9`.
pub(super) fn first_place(finding: &Finding) -> String {
    let Some(row) = finding.accesses.first() else {
        return String::new();
    };
    let function = row.code.inlined.first().or(row.code.symbol.as_ref());
    let source = shorten_source(&source(&row.code), 30);
    match function {
        Some(function) => format!("{} {source}", shorten::symbol(function, 30)),
        None => source,
    }
}
