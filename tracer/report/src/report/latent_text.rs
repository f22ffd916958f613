//! Sharing that is not there yet, for people: a section of its own behind the findings.

use super::{
    access_text::{self, full_name},
    finding_text::memory_words,
    latent::{LatentBasis, LatentCost, LatentSharing, MovingBlock, OneMoreThread, OneMoves},
    model::{AccessRow, Report},
    named::op_name,
    shorten,
    table::{self, Column},
    text::{Lines, WIDTH},
};
use crate::number::{count, grouped, list};

/// Printed in full; the others are counted.
const IN_FULL: usize = 10;
/// Rows of a line.
const ROWS: usize = 3;
/// Names of neighbours.
const NAMES: usize = 4;

const WAYS: [Column; 7] = [
    Column::left("it begins", 20, shorten::end),
    Column::right("at", 3, shorten::end),
    Column::right("lines of", 8, shorten::end),
    Column::right("hand-offs", 9, shorten::end),
    Column::right("for neighbours", 9, shorten::end),
    Column::right("messages", 8, shorten::end),
    Column::left("malloc may", 8, shorten::end),
];

/// Where nothing was replayed.
const PLACES: [Column; 4] = [
    Column::left("it begins", 20, shorten::end),
    Column::right("at", 3, shorten::end),
    Column::right("lines of", 8, shorten::end),
    Column::left("malloc may", 8, shorten::end),
];

const USES: [Column; 6] = [
    Column::left("line", 4, shorten::end),
    Column::left("what", 10, shorten::name),
    Column::left("op", 5, shorten::end),
    Column::left("thread", 8, shorten::end),
    Column::right("seen", 6, shorten::end),
    Column::left("source", 20, shorten::path),
];

/// Prints all of it; nothing where nobody asked for it.
pub(super) fn print(out: &mut Lines, report: &Report) {
    let Some(latent) = &report.latent else {
        return;
    };
    out.blank();
    if latent.is_empty() {
        out.prose(
            "",
            "No sharing that is not there yet: with its memory elsewhere, or with lines of 128 bytes, the program would \
             not fight for more than it does today.",
        );
        return;
    }
    out.strong("Sharing that is not there yet:");
    out.prose(
        "",
        "Threads use neighbouring lines, so that it depends on where the memory begins, and on how long lines are, whether \
         they fight. These are no findings.",
    );
    out.prose("", cost_words(latent));
    for sharing in latent.iter().take(IN_FULL) {
        out.blank();
        one(out, sharing);
    }
    out.and_more(latent.len(), IN_FULL);
}

/// Where the figures are from.
fn cost_words(latent: &[LatentSharing]) -> &'static str {
    let by_samples = latent
        .iter()
        .any(|sharing| sharing.basis == LatentBasis::Samples);
    if by_samples {
        "Not replayed: the order is not known. Samples show which bytes threads use at the same time, and so where they would \
         meet; what that would cost, only `cohtrace record --source emulate` tells."
    } else {
        "What they cost was replayed, not seen."
    }
}

fn one(out: &mut Lines, sharing: &LatentSharing) {
    let title = format!("{}  LATENT SHARING  {}", sharing.id, subject(sharing));
    let title = out.options.name(&title);
    out.strong(&shorten::end(&title, WIDTH));
    out.prose("  at ", &format!("{}.", place(sharing)));
    out.blank();
    let fighting = sharing.ways.iter().filter(|way| way.fights);
    let rows: Vec<Vec<String>> = [&sharing.today]
        .into_iter()
        .chain(fighting)
        .map(cells)
        .collect();
    if rows.len() > 1 {
        let columns: &[Column] = match sharing.basis {
            LatentBasis::Order => &WAYS,
            LatentBasis::Samples => &PLACES,
        };
        for line in table::layout(columns, &rows, WIDTH - 5) {
            out.line(&format!("     {line}"));
        }
        out.blank();
    }
    if let Some(one_more) = &sharing.one_more_thread {
        out.prose(" add ", &one_more_words(one_more));
        out.blank();
    }
    if !sharing.one_moves.is_empty() {
        out.prose(" one ", &one_moves_words(&sharing.one_moves));
        out.blank();
    }
    let why = why(sharing);
    if !why.is_empty() {
        out.prose(" why ", &why);
        out.blank();
    }
    let rows = uses(out, sharing);
    for line in table::layout(&USES, &rows, WIDTH - 5) {
        out.line(&format!("     {line}"));
    }
    out.blank();
    out.prose(" fix ", &sharing.advice);
}

/// `One more thread, with an element of 32 bytes behind the last of 3, would add 120 hand-offs, ..`.
fn one_more_words(one_more: &OneMoreThread) -> String {
    let moved = match one_more.behind_moved_bytes {
        0 => String::new(),
        bytes => format!(
            " What lies behind would move by {} to make room.",
            count(bytes, "byte", "bytes")
        ),
    };
    format!(
        "One more thread, with an element of {} behind the last of {}, would add {}, {} of them for neighbours, and {}.{moved}",
        count(one_more.element_bytes, "byte", "bytes"),
        grouped(one_more.elements),
        count(one_more.hand_offs, "hand-off", "hand-offs"),
        grouped(one_more.falsely + one_more.dragged),
        count(one_more.messages, "message", "messages"),
    )
}

/// `If only one of two blocks moves, it adds: the first 16 bytes later, 120 hand-offs and 480 messages; ..`.
fn one_moves_words(moves: &[OneMoves]) -> String {
    let words = moves.iter().map(|moved| {
        let block = match moved.moves {
            MovingBlock::First => "the first",
            MovingBlock::Second => "the second",
        };
        let way = if moved.moved_bytes < 0 {
            "earlier"
        } else {
            "later"
        };
        let bytes = moved.moved_bytes.unsigned_abs();
        format!(
            "{block} {bytes} bytes {way}, {} and {}",
            count(moved.hand_offs, "hand-off", "hand-offs"),
            count(moved.messages, "message", "messages"),
        )
    });
    let words: Vec<String> = words.collect();
    format!(
        "If only one of two blocks moves, it adds: {}.",
        words.join("; ")
    )
}

/// `No worse than today: 40 bytes later.`, and why some starts are not told.
fn why(sharing: &LatentSharing) -> String {
    let may_be = |way: &&LatentCost| way.keeps_alignment != Some(false);
    let clean = sharing.ways.iter().filter(|way| !way.fights);
    let clean: Vec<String> = clean.filter(may_be).map(words).collect();
    let mut why = Vec::new();
    if !clean.is_empty() {
        let clean = list(&clean, clean.len());
        why.push(format!("No worse than today: {clean}."));
    }
    let is_bound = !sharing.ways.iter().all(|way| may_be(&way));
    if let Some(alignment) = sharing.alignment.filter(|_| is_bound) {
        let bytes = count(alignment, "byte", "bytes");
        why.push(format!(
            "The program asks for a start at a multiple of {bytes}: no other is told."
        ));
    }
    why.join(" ")
}

/// `struct part`, `a and b`, `heap memory`.
fn subject(sharing: &LatentSharing) -> String {
    match &sharing.names[..] {
        [] => memory_words(sharing.object.kind).to_owned(),
        names => list(names, NAMES),
    }
}

/// `heap memory (parts[]) on 5 lines, used by 4 threads`.
fn place(sharing: &LatentSharing) -> String {
    let object = &sharing.object;
    let called = object
        .called
        .as_ref()
        .filter(|called| !sharing.names.contains(called));
    let called = called.map_or_else(String::new, |called| format!(" (`{called}`)"));
    let declared = match (&object.file, object.line) {
        (Some(file), Some(line)) => format!(", declared at {file}:{line},"),
        _ => String::new(),
    };
    format!(
        "{}{called}{declared} on {}, used by {}",
        memory_words(object.kind),
        count(sharing.lines, "line", "lines"),
        count(sharing.threads, "thread", "threads"),
    )
}

/// `where it does`, `24 bytes later`.
fn begins(way: &LatentCost) -> String {
    match way.moved_bytes {
        0 => "where it does".to_owned(),
        bytes => format!("{bytes} bytes later"),
    }
}

/// `40 bytes later`, `where it does, with lines of 128 bytes`.
fn words(way: &LatentCost) -> String {
    match way.line_bytes {
        64 => begins(way),
        bytes => format!("{} with lines of {bytes} bytes", begins(way)),
    }
}

fn cells(way: &LatentCost) -> Vec<String> {
    let mut cells = vec![
        begins(way),
        way.start_offset
            .map_or_else(String::new, |at| at.to_string()),
        way.line_bytes.to_string(),
    ];
    if let (Some(hand_offs), Some(messages)) = (way.hand_offs, way.messages) {
        let for_neighbours = way.falsely.unwrap_or(0) + way.dragged.unwrap_or(0);
        cells.extend([hand_offs, for_neighbours, messages].map(grouped));
    }
    cells.push(match way.malloc_may {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => String::new(),
    });
    cells
}

/// Who does what on the two lines that threads would fight for most.
fn uses(out: &Lines, sharing: &LatentSharing) -> Vec<Vec<String>> {
    let numbers = ["1st", "2nd"].into_iter();
    let lines = sharing.neighbours.iter().zip(numbers);
    let rows = lines.flat_map(|(line, number)| {
        let rows = line.accesses.iter().take(ROWS);
        rows.map(move |row| (number, row))
    });
    rows.map(|(number, row)| {
        vec![
            number.to_owned(),
            out.options.name(&what(sharing, row)),
            op_name(row.op).unwrap_or("?").to_owned(),
            out.options.name(&access_text::threads_words(&row.threads)),
            grouped(row.count),
            out.options.name(&access_text::source(&row.code)),
        ]
    })
    .collect()
}

fn what(sharing: &LatentSharing, row: &AccessRow) -> String {
    match row.field.as_deref() {
        Some(field) if field.starts_with(['.', '[']) => field.to_owned(),
        field => full_name(sharing.object.name.as_deref(), field),
    }
}
