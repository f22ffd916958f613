//! One finding as text: what, where, a map of the line, who does what where in the code, why, the fix.

use super::{
    bytemap,
    model::{AccessRow, Code, Finding, Group, Thread},
    number::{count, grouped, list, percent, ranges},
    printable::columns,
    shorten,
    style::Role,
    table::{self, Column},
    text::{Lines, WIDTH},
};

/// Rows of the access table shown; the others are summed up.
const ROWS: usize = 10;

/// Up to this many groups are described one by one, with their threads' ids.
const NAMED_GROUPS: usize = 4;

/// Entries of the legend otherwise.
const LEGEND: usize = 6;

/// Where labels end and text begins.
const INDENT: &str = "     ";

/// Prints it; with `explain`, a sentence says what this kind of sharing is.
pub(super) fn print(out: &mut Lines, finding: &Finding, explain: bool) {
    title(out, finding);
    if explain && let Some(text) = explanation(&finding.kind) {
        out.prose(INDENT, text);
    }
    out.prose("  at ", &place(finding));
    if finding.kind != "true-sharing" || finding.groups.len() > 1 {
        out.blank();
        map(out, finding);
    }
    out.blank();
    accesses(out, finding);
    out.blank();
    for (n, fact) in finding.facts.iter().enumerate() {
        out.prose(if n == 0 { " why " } else { INDENT }, fact);
    }
    if !finding.advice.text.is_empty() {
        out.paragraphs(" fix ", &finding.advice.text);
    }
}

fn title(out: &mut Lines, finding: &Finding) {
    let role = match finding.kind.as_str() {
        "false-sharing" => Role::False,
        "true-sharing" => Role::True,
        _ => Role::Mixed,
    };
    let kind = finding.kind.to_uppercase().replace('-', " ");
    let right = format!("{} of the time", percent(finding.cost.share));
    let used = columns(&finding.id) + 2 + columns(&kind) + 2;
    let subject = out.options.name(&subject(finding));
    let subject = shorten::middle(&subject, WIDTH.saturating_sub(used + columns(&right) + 2));
    let left = format!(
        "{}  {}  {}",
        finding.id,
        out.options.paint(role, &kind),
        out.options.paint(Role::Strong, &subject)
    );
    out.both_ends(&left, used + columns(&subject), &right);
}

fn explanation(kind: &str) -> Option<&'static str> {
    match kind {
        "false-sharing" => Some(
            "Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes the \
             neighbours' bytes away too, and threads wait for each other without sharing any data.",
        ),
        "true-sharing" => Some(
            "Threads use the same bytes and some of them store there, so the cache line that holds them has to \
             move from CPU to CPU.",
        ),
        "mixed-sharing" => Some(
            "Both at once: threads share some of the bytes, and other bytes of the same cache line only happen to \
             be their neighbours.",
        ),
        _ => None,
    }
}

/// What the line is about, in a few words: `stats.hits and stats.misses`, `heap memory at 0x5581..`.
pub(super) fn subject(finding: &Finding) -> String {
    let object = &finding.object;
    let mut fields: Vec<String> = Vec::new();
    for field in finding.groups.iter().flat_map(|group| &group.fields) {
        let full = full_name(object.name.as_deref(), Some(field));
        if !fields.contains(&full) {
            fields.push(full);
        }
    }
    if !fields.is_empty() {
        return list(&fields, 3);
    }
    match (&object.name, &finding.line.address) {
        (Some(name), _) => name.clone(),
        (None, Some(address)) => format!("{} at {address}", kind_words(&object.kind)),
        (None, None) => kind_words(&object.kind).to_owned(),
    }
}

/// A field as the rows have it, behind the object's name where it is only a part of one.
fn full_name(object: Option<&str>, field: Option<&str>) -> String {
    match (object, field) {
        (Some(object), Some(part)) if part.starts_with(['.', '[']) => format!("{object}{part}"),
        (_, Some(field)) => field.to_owned(),
        (Some(object), None) => object.to_owned(),
        (None, None) => String::new(),
    }
}

fn kind_words(kind: &str) -> &'static str {
    match kind {
        "global" => "global variable",
        "heap" => "heap memory",
        "stack" => "memory on a thread's stack",
        "tls" => "thread-local variable",
        "mapping" => "mapped memory",
        "kernel" => "kernel memory",
        _ => "unknown memory",
    }
}

fn place(finding: &Finding) -> String {
    let object = &finding.object;
    let mut text = kind_words(&object.kind).to_owned();
    if let Some(name) = &object.name {
        text.push_str(&format!(" `{}`", shorten::symbol(name, 60)));
    }
    if let Some(type_name) = &object.type_name {
        text.push_str(&format!(" of type `{}`", shorten::symbol(type_name, 60)));
    }
    if let Some(size) = object.size {
        text.push_str(&format!(", {}", count(size, "byte", "bytes")));
    }
    if let Some(file) = &object.file {
        let line = object
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        text.push_str(&format!(
            ", declared at {}",
            shorten::path(&format!("{file}{line}"), 60)
        ));
    }
    let line = &finding.line;
    match &line.address {
        Some(address) => text.push_str(&format!("; cache line {address}, {} bytes", line.bytes)),
        None => text.push_str(&format!("; cache line {}, {} bytes", line.key, line.bytes)),
    }
    if let Some(offset) = object.offset_in_object
        && offset > 0
    {
        text.push_str(&format!(
            ", touched from byte {} of the object on",
            grouped(offset)
        ));
    }
    text
}

fn map(out: &mut Lines, finding: &Finding) {
    let lines = bytemap::draw(&finding.groups, finding.line.bytes, out.options);
    for line in lines {
        out.line(&format!("{INDENT}{line}"));
    }
    out.prose(INDENT, &legend(finding));
}

/// Whose letters these are; neighbours with the same users are one entry: `A-D: each written by one worker`.
fn legend(finding: &Finding) -> String {
    let letters = bytemap::letters(&finding.groups);
    // With many groups their threads are better read in the table.
    let by_name = finding.groups.len() <= NAMED_GROUPS;
    let mut entries: Vec<(char, char, String)> = Vec::new();
    for (group, letter) in finding.groups.iter().zip(letters) {
        let users = users(group, finding, by_name);
        match entries.last_mut() {
            Some((_, last, known)) if !by_name && *known == users => *last = letter,
            _ => entries.push((letter, letter, users)),
        }
    }
    let most = if by_name { NAMED_GROUPS } else { LEGEND };
    let mut words: Vec<String> = entries
        .iter()
        .take(most)
        .map(|(first, last, users)| {
            if first == last {
                format!("{first}: {users}")
            } else {
                format!("{first}-{last}: each {users}")
            }
        })
        .collect();
    if entries.len() > most {
        words.push(format!(
            "and {}",
            count((entries.len() - most) as u64, "more part", "more parts")
        ));
    }
    words.join("; ")
}

/// `written by worker 4242, read by 3 threads`; without names, `written by one worker`.
fn users(group: &Group, finding: &Finding, by_name: bool) -> String {
    let who = |tids: &[u32]| -> String {
        let threads: Vec<Thread> = tids.iter().map(|&tid| thread_of(finding, tid)).collect();
        match threads.as_slice() {
            [one] if !by_name => format!("one {}", one.comm.as_deref().unwrap_or("thread")),
            threads => threads_words(threads),
        }
    };
    match (group.writers.is_empty(), group.readers.is_empty()) {
        (true, _) => format!("only read, by {}", who(&group.readers)),
        (false, true) => format!("written by {}", who(&group.writers)),
        (false, false) => format!(
            "written by {}, read by {}",
            who(&group.writers),
            who(&group.readers)
        ),
    }
}

fn thread_of(finding: &Finding, tid: u32) -> Thread {
    let known = finding
        .accesses
        .iter()
        .flat_map(|row| &row.threads)
        .find(|thread| thread.tid == tid);
    known.cloned().unwrap_or(Thread {
        pid: tid,
        tid,
        comm: None,
        cpus: Vec::new(),
    })
}

/// `worker 4242`, `4 x worker`, `7 threads`.
fn threads_words(threads: &[Thread]) -> String {
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

fn accesses(out: &mut Lines, finding: &Finding) {
    let letters = bytemap::letters(&finding.groups);
    let lettered = finding.kind != "true-sharing" || finding.groups.len() > 1;
    let rows: Vec<Vec<String>> = finding
        .accesses
        .iter()
        .take(ROWS)
        .map(|row| {
            let letter = if lettered {
                bytemap::letters_of(&finding.groups, &letters, row.offset, row.size)
            } else {
                String::new()
            };
            access_cells(row, finding, letter)
                .into_iter()
                .map(|cell| out.options.name(&cell))
                .collect()
        })
        .collect();
    let columns = [
        Column {
            title: "",
            right: false,
            min: 1,
            shorten: shorten::end,
        },
        Column {
            title: "bytes",
            right: false,
            min: 7,
            shorten: shorten::end,
        },
        Column {
            title: "what",
            right: false,
            min: 10,
            shorten: shorten::middle,
        },
        Column {
            title: "op",
            right: false,
            min: 5,
            shorten: shorten::end,
        },
        Column {
            title: "thread",
            right: false,
            min: 10,
            shorten: shorten::middle,
        },
        Column {
            title: "cpu",
            right: false,
            min: 3,
            shorten: shorten::end,
        },
        Column {
            title: "seen",
            right: true,
            min: 4,
            shorten: shorten::end,
        },
        Column {
            title: "time",
            right: true,
            min: 6,
            shorten: shorten::end,
        },
        Column {
            title: "function",
            right: false,
            min: 14,
            shorten: shorten_function,
        },
        Column {
            title: "source",
            right: false,
            min: 14,
            shorten: shorten::path,
        },
    ];
    let indent = if lettered { "   " } else { INDENT };
    let lines = table::layout(&columns, &rows, WIDTH - indent.len());
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
                "and {} with {} of the time; all of them are in the JSON form (--json).",
                count(hidden.len() as u64, "more row", "more rows"),
                percent(share)
            ),
        );
    }
    if finding
        .accesses
        .iter()
        .take(ROWS)
        .any(|row| row.basis == "harvested")
    {
        out.prose(
            INDENT,
            "~ is inferred from the sampled loop; the other rows were in the sampled code itself.",
        );
    }
}

fn access_cells(row: &AccessRow, finding: &Finding, letter: String) -> Vec<String> {
    let last = u32::from(row.offset) + u32::from(row.size.max(1)) - 1;
    let bytes = if row.size <= 1 {
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
    let weak = if row.basis == "harvested" { "~" } else { "" };
    vec![
        letter,
        bytes,
        full_name(finding.object.name.as_deref(), row.field.as_deref()),
        row.op.clone(),
        threads_words(&row.threads),
        ranges(&cpus),
        format!("{weak}{}", grouped(row.count)),
        percent(row.cost_share),
        function(&row.code),
        source(&row.code),
    ]
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

/// `file:line:column`, or the module and the address in it.
fn source(code: &Code) -> String {
    match (&code.file, code.line, code.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(file), Some(line), None) => format!("{file}:{line}"),
        _ => match &code.module {
            Some(module) => {
                let file = module.rsplit('/').next().unwrap_or(module);
                format!("{file}+{}", code.ip)
            }
            None => code.ip.clone(),
        },
    }
}

/// Where the costliest access is: `count_hits demo.c:31:9`.
pub(super) fn first_place(finding: &Finding) -> String {
    let Some(row) = finding.accesses.first() else {
        return String::new();
    };
    let function = row.code.inlined.first().or(row.code.symbol.as_ref());
    let source = shorten::path(&source(&row.code), 30);
    match function {
        Some(function) => format!("{} {source}", shorten::symbol(function, 30)),
        None => source,
    }
}
