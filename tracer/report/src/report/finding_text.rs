//! One finding as text: what, where, a map of the line, who does what where in the code, why, the fix.

use super::{
    access_text, allocation, bytemap, cost_words, gain,
    model::{Finding, Group, Thread},
    named::kind_name,
    printable::columns,
    shorten,
    style::Role,
    text::{Lines, WIDTH},
};
use crate::access::Place;
use crate::finding::{Confidence, Verdict};
use crate::names::{ObjectKind, type_words};
use crate::number::{count, grouped, list, percent};

/// Up to this many groups are described one by one, with their threads' ids.
const NAMED_GROUPS: usize = 4;

/// Fields named as what a line is about.
const NAMED_FIELDS: usize = 3;

/// Entries of the legend otherwise.
const LEGEND: usize = 6;

/// Where labels end and text begins.
const INDENT: &str = "     ";

/// Prints it; with `explain`, a sentence says what this kind of sharing is.
pub(super) fn print(out: &mut Lines, finding: &Finding, explain: bool) {
    title(out, finding);
    if explain && let Some(text) = explanation(finding.kind) {
        out.prose(INDENT, text);
    }
    out.prose("  at ", &place(finding));
    for line in allocation::lines(finding) {
        out.prose("from ", &line);
    }
    if bytemap::has_parts(finding) {
        out.blank();
        map(out, finding);
    }
    out.blank();
    access_text::print(out, finding);
    out.blank();
    for (n, fact) in finding.facts.iter().enumerate() {
        out.prose(if n == 0 { " why " } else { INDENT }, fact);
    }
    if let Some(known) = &finding.gain {
        out.prose("gain ", &gain::sentence(known, finding.kind));
    }
    if let Some(advice) = &finding.advice.text {
        out.paragraphs(" fix ", advice);
    }
}

fn title(out: &mut Lines, finding: &Finding) {
    let (role, kind) = headed(finding.kind, finding.confidence);
    let right = if cost_words::is_unmeasured(out.unit, finding.cost.share) {
        "cost not measured".to_owned()
    } else {
        format!(
            "{} {}",
            percent(finding.cost.share),
            cost_words::of(out.unit)
        )
    };
    let used = columns(&finding.id.to_string()) + 2 + columns(&kind) + 2;
    let room = WIDTH.saturating_sub(used + columns(&right) + 2);
    let subject = out.options.name(&subject_within(finding, room));
    let subject = shorten::name(&subject, room);
    let left = format!(
        "{}  {}  {}",
        finding.id,
        out.options.paint(role, &kind),
        out.options.paint(Role::Strong, &subject)
    );
    out.both_ends(&left, used + columns(&subject), &right);
}

/// A kind in words: `false sharing`.
pub(super) fn kind_words(kind: Option<Verdict>) -> String {
    kind_name(kind).replace('-', " ")
}

/// The kind as a title has it, `FALSE SHARING, confirmed`, and its colour.
pub(super) fn headed(kind: Option<Verdict>, confidence: Confidence) -> (Role, String) {
    let role = match kind {
        Some(Verdict::FalseSharing) => Role::False,
        Some(Verdict::TrueSharing) => Role::True,
        Some(Verdict::MixedSharing) | None => Role::Mixed,
    };
    let sure = match confidence {
        Confidence::Confirmed => ", confirmed",
        Confidence::Sampled => "",
    };
    (role, kind_words(kind).to_uppercase() + sure)
}

fn explanation(kind: Option<Verdict>) -> Option<&'static str> {
    Some(match kind? {
        Verdict::FalseSharing => {
            "Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes the \
             neighbours' bytes away too, and threads wait for each other without sharing any data."
        }
        Verdict::TrueSharing => {
            "Threads use the same bytes and some of them store there, so the cache line that holds them has to \
             move from CPU to CPU."
        }
        Verdict::MixedSharing => {
            "Both at once: threads share some of the bytes, and other bytes of the same cache line only happen to \
             be their neighbours."
        }
    })
}

/// What the line is about, in a few words: `stats.hits and stats.misses`, `heap memory at 0x5581..`.
pub(super) fn subject(finding: &Finding) -> String {
    let object = &finding.object;
    if let Some(lines) = &finding.lines {
        let name = lines.name.as_deref().unwrap_or(memory_words(object.kind));
        return format!("{name} on {}", count(lines.count, "line", "lines"));
    }
    let fields = fields(finding);
    let of_thread = of_thread(finding);
    if !fields.is_empty() {
        return list(&fields, NAMED_FIELDS) + &of_thread;
    }
    match (&object.name, &finding.line.address) {
        (Some(name), _) => name.clone() + &of_thread,
        (None, Some(address)) => format!("{} at {address}", memory_words(object.kind)),
        (None, None) => match finding.line.key.0 {
            Place::Physical { addr } => format!("memory at the physical address {addr:#x}"),
            _ => memory_words(object.kind).to_owned(),
        },
    }
}

/// The same in so many columns: `ring.head, .tail and 2 more`, and less where that is too much.
pub(super) fn subject_within(finding: &Finding, width: usize) -> String {
    let whole = subject(finding);
    if columns(&whole) <= width || finding.lines.is_some() {
        return shorten::name(&whole, width);
    }
    let mut fields = fields(finding);
    let object = finding.object.spoken().unwrap_or_default().to_owned();
    for field in fields.iter_mut().skip(1).filter(|_| !object.is_empty()) {
        match field.strip_prefix(&object) {
            Some(part) if part.starts_with(['.', '[']) => *field = part.to_owned(),
            _ => {}
        }
    }
    let of_thread = of_thread(finding);
    for most in (1..=NAMED_FIELDS).rev() {
        let text = list(&fields, most) + &of_thread;
        if columns(&text) <= width {
            return text;
        }
    }
    let Some(first) = fields.first() else {
        return shorten::name(&whole, width);
    };
    let others = match fields.len() {
        1 => of_thread,
        n => format!(" and {} more{of_thread}", n - 1),
    };
    let room = width.saturating_sub(columns(&others));
    shorten::name(first, room) + &others
}

/// The fields of the line by their full names.
fn fields(finding: &Finding) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for field in finding.groups.iter().flat_map(|group| &group.fields) {
        let full = access_text::full_name(finding.object.spoken(), Some(field));
        if !fields.contains(&full) {
            fields.push(full);
        }
    }
    fields
}

/// Of a thread-local variable, whose it is.
fn of_thread(finding: &Finding) -> String {
    let thread = finding.object.thread.as_ref();
    thread.map_or_else(String::new, |thread| format!(" of thread {thread}"))
}

pub(super) fn memory_words(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Global => "global variable",
        ObjectKind::Heap => "heap memory",
        ObjectKind::Stack => "memory on a thread's stack",
        ObjectKind::Tls => "thread-local variable",
        ObjectKind::Mapping => "mapped memory",
        ObjectKind::Kernel => "kernel memory",
        ObjectKind::Unknown => "unknown memory",
    }
}

fn place(finding: &Finding) -> String {
    let object = &finding.object;
    let mut text = memory_words(object.kind).to_owned();
    if let Some(name) = &object.name {
        text.push_str(&format!(" `{}`", shorten::symbol(name, 60)));
    }
    text.push_str(&of_thread(finding));
    if let Some(type_name) = &object.type_name {
        let variable = object.name.as_ref().filter(|_| object.allocation.is_none());
        let variable = variable.or(object.called.as_ref());
        let type_name = type_words(type_name, variable.map(String::as_str));
        text.push_str(&format!(" of type `{}`", shorten::symbol(&type_name, 60)));
    }
    if let Some(size) = object.size {
        text.push_str(&format!(", {}", count(size, "byte", "bytes")));
    }
    if let Some(file) = &object.file {
        let line = object
            .line
            .map_or_else(String::new, |line| format!(":{line}"));
        text.push_str(&format!(
            ", {} at {}",
            if object.name.is_some() {
                "declared"
            } else {
                "a type declared"
            },
            shorten::path(&format!("{file}{line}"), 60)
        ));
    }
    let line = &finding.line;
    if finding.lines.is_some() {
        text.push_str("; the worst of its lines is drawn");
    }
    text.push_str(&format!("; cache line {line}, {} bytes", line.bytes));
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
        let letter = bytemap::cased(letter, !group.writers.is_empty());
        let mut users = users(group, finding, by_name);
        if !group.writers.is_empty() && group.stored != group.bytes {
            let small = bytemap::cased(letter, false);
            users.push_str(&format!(" ({small}: only read)"));
        }
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
            [one] if one.comm.is_none() => format!("thread {}", one.tid),
            threads => access_text::threads_words(threads),
        }
    };
    match (group.writers.is_empty(), group.readers.is_empty()) {
        // Nobody was sampled writing, and somebody does.
        (true, _) if finding.moves => format!("read by {}", who(&group.readers)),
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
