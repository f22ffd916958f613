//! A layout as text: the declaration at the left, offsets and sizes in the middle, who uses it at the right.

use super::model::{Hole, Layout, LineRow, Member, Proposal, Row, Use};
use crate::names::{self, TypeKind};
use crate::number::{count, grouped, percent};
use crate::report::{
    access_text::threads_words,
    cost_words,
    finding_text::{headed, memory_words},
    model::Thread,
    named::op_name,
    printable::columns,
    shorten,
    style::{Role, TextOptions},
    text::{Lines, WIDTH},
};

/// Spaces per level.
const STEP: usize = 4;
/// Spaces before everything.
const MARGIN: usize = 2;
/// Columns of the widest declaration.
const DECLARATION: usize = 48;
/// Columns of an offset, and of a size.
const NUMBER: usize = 7;
/// Rows printed; the JSON form has all.
const MOST_ROWS: usize = 600;

/// The layout as text, with a newline at the end.
pub fn render(layout: &Layout, options: TextOptions) -> String {
    let mut out = Lines {
        text: String::new(),
        options,
        unit: layout.cost_unit,
    };
    title(&mut out, layout);
    out.prose("  at ", &place(layout));
    out.blank();
    declaration(&mut out, layout);
    proposal(&mut out, layout);
    if let Some(gain) = &layout.gain {
        out.blank();
        out.prose("gain ", gain);
    }
    if let Some(advice) = &layout.advice {
        out.blank();
        out.paragraphs(" fix ", advice);
    }
    out.text
}

fn title(out: &mut Lines, layout: &Layout) {
    let (role, kind) = headed(layout.kind, layout.confidence);
    let right = format!(
        "{} {}",
        percent(layout.cost_share),
        cost_words::of(out.unit)
    );
    let used = columns(&layout.finding.to_string()) + 2 + columns(&kind) + 2;
    let name = layout
        .object
        .name
        .as_deref()
        .unwrap_or(&layout.object.type_name);
    let thread = layout.object.thread.as_ref();
    let name = thread.map_or_else(
        || name.to_owned(),
        |thread| format!("{name} of thread {thread}"),
    );
    let name = shorten::symbol(
        &out.options.name(&name),
        WIDTH.saturating_sub(used + columns(&right) + 2),
    );
    let left = format!(
        "{}  {}  {}",
        layout.finding,
        out.options.paint(role, &kind),
        out.options.paint(Role::Strong, &name)
    );
    out.both_ends(&left, used + columns(&name), &right);
}

fn place(layout: &Layout) -> String {
    let object = &layout.object;
    let kind = memory_words(object.kind);
    let thread = object.thread.as_ref();
    let of_thread = thread.map_or_else(String::new, |thread| format!(" of thread {thread}"));
    let mut text = format!(
        "{kind}{of_thread} of type `{}`",
        shorten::symbol(&object.type_name, 60)
    );
    if let Some(file) = &object.file {
        let line = object
            .declared_line
            .map_or_else(String::new, |line| format!(":{line}"));
        text.push_str(&format!(
            ", declared at {}",
            shorten::path(&format!("{file}{line}"), 60)
        ));
    }
    text.push_str(&format!(", {}", count(object.size, "byte", "bytes")));
    if let Some(alignment) = object.alignment {
        text.push_str(&format!(", aligned to {alignment}"));
    }
    if object.holes > 0 {
        text.push_str(&format!(
            ", {} of them unused in {}",
            grouped(object.holes_bytes),
            count(object.holes, "hole", "holes")
        ));
    }
    if let Some(address) = &object.address {
        text.push_str(&format!("; this object is at {address}"));
    }
    text.push_str(&match object.into_line {
        0 => format!(
            ", starts a line and has bytes on {}",
            count(object.lines, "line", "lines")
        ),
        into => format!(
            ", starts at byte {into} of a {}-byte line and has bytes on {}",
            layout.line.bytes,
            count(object.lines, "line", "lines")
        ),
    });
    text
}

/// What one row says at the left, in the middle, and at the right.
struct Cells {
    indent: usize,
    left: String,
    offset: String,
    size: String,
    uses: Vec<String>,
}

fn declaration(out: &mut Lines, layout: &Layout) {
    let rows: Vec<Printed> = layout
        .rows
        .iter()
        .take(MOST_ROWS)
        .map(|row| printed(out.options, row))
        .collect();
    let widest = rows.iter().filter_map(|row| match row {
        Printed::Cells(cells) => Some(cells.indent + columns(&cells.left)),
        Printed::Comment(..) => None,
    });
    let width = widest.max().unwrap_or(0).min(DECLARATION);
    out.line(&out.options.paint(
        Role::Quiet,
        &format!(
            "{}{:width$}{:>NUMBER$}{:>NUMBER$}",
            " ".repeat(MARGIN),
            "",
            "offset",
            "size"
        ),
    ));
    for row in &rows {
        match row {
            Printed::Comment(indent, text, role) => {
                let indent = MARGIN + (*indent).min(DECLARATION / 2);
                let text = shorten::middle(text, WIDTH.saturating_sub(indent));
                let text = role.map_or_else(|| text.clone(), |role| out.options.paint(role, &text));
                out.line(&format!("{}{text}", " ".repeat(indent)));
            }
            Printed::Cells(cells) => cells.print(out, width),
        }
    }
    let hidden = layout.rows.len().saturating_sub(MOST_ROWS);
    if hidden > 0 || layout.is_cut {
        out.prose(
            "  ",
            &if hidden > 0 {
                format!(
                    "and {} more rows; all of them are in the JSON form (--json).",
                    grouped(hidden as u64)
                )
            } else {
                "The type is too large to be listed whole.".to_owned()
            },
        );
    }
}

impl Cells {
    fn print(&self, out: &mut Lines, width: usize) {
        let indent = self.indent.min(DECLARATION / 2);
        let left = shorten::middle(&self.left, width.saturating_sub(indent).max(1));
        let pad = " ".repeat(width.saturating_sub(indent + columns(&left)));
        let head = format!(
            "{}{left}{pad}{:>NUMBER$}{:>NUMBER$}",
            " ".repeat(MARGIN + indent),
            self.offset,
            self.size
        );
        let room = WIDTH.saturating_sub(columns(&head) + 2);
        let Some((first, rest)) = self.uses.split_first() else {
            out.line(&head);
            return;
        };
        let hot = |text: &str| {
            out.options
                .paint(Role::Strong, &shorten::middle(text, room))
        };
        let first = format!("{head}  {}", hot(first));
        let rest: Vec<String> = rest
            .iter()
            .map(|text| format!("{}{}", " ".repeat(columns(&head) + 2), hot(text)))
            .collect();
        out.line(&first);
        for line in rest {
            out.line(&line);
        }
    }
}

enum Printed {
    Cells(Cells),
    Comment(usize, String, Option<Role>),
}

fn printed(options: TextOptions, row: &Row) -> Printed {
    match row {
        Row::Line(line) => {
            let role = if line.shared {
                Role::False
            } else {
                Role::Quiet
            };
            Printed::Comment(STEP, options.name(&line_words(line)), Some(role))
        }
        Row::Member(member) => Printed::Cells(Cells {
            uses: uses(options, &member.uses),
            ..cells(options, member, &plain(member))
        }),
        Row::Begin(member) => Printed::Cells(Cells {
            offset: String::new(),
            size: String::new(),
            ..cells(options, member, &opening(member))
        }),
        Row::End(member) => Printed::Cells(cells(options, member, &closing(member))),
        Row::Hole(hole) if hole.uses.is_empty() => {
            Printed::Comment(hole.depth * STEP, hole_words(hole), None)
        }
        Row::Hole(hole) => Printed::Cells(Cells {
            indent: hole.depth * STEP,
            left: hole_words(hole),
            offset: String::new(),
            size: String::new(),
            uses: uses(options, &hole.uses),
        }),
        Row::Elements(skipped) => {
            let which = if skipped.first == skipped.last {
                format!("[{}]", skipped.first)
            } else {
                format!("[{}] to [{}]", skipped.first, skipped.last)
            };
            Printed::Cells(Cells {
                indent: skipped.depth * STEP,
                left: format!("/* {which} likewise */"),
                offset: skipped.offset.to_string(),
                size: skipped.size.to_string(),
                uses: Vec::new(),
            })
        }
    }
}

fn cells(options: TextOptions, member: &Member, left: &str) -> Cells {
    let first_bit = member
        .first_bit
        .map_or_else(String::new, |bit| format!(":{bit}"));
    Cells {
        indent: member.depth * STEP,
        left: options.name(left),
        offset: format!("{}{first_bit}", member.offset),
        size: match (member.bits, member.size) {
            (Some(1), _) => "1 bit".to_owned(),
            (Some(bits), _) => format!("{bits} bits"),
            (None, Some(size)) => size.to_string(),
            (None, None) => "?".to_owned(),
        },
        uses: Vec::new(),
    }
}

fn plain(member: &Member) -> String {
    match member.role {
        names::Role::Base => format!("{} /* base */", member.declaration),
        _ if member.depth == 0 => format!("{};", member.type_name),
        _ => member.declaration.clone(),
    }
}

/// What opens an inside: the type, or in Rust the member with it.
fn opening(member: &Member) -> String {
    let declaration = member.declaration.trim_end_matches([';', ',']);
    let is_array = matches!(member.shape, TypeKind::Array { .. });
    let text = match member.role {
        names::Role::Member if member.depth == 0 || is_array => declaration,
        // C names the member behind its inside.
        names::Role::Member if member.declaration.ends_with(';') => &member.type_name,
        _ => declaration,
    };
    format!("{text} {{")
}

fn closing(member: &Member) -> String {
    let virtual_base = if member.has_virtual_base {
        " /* and virtual bases */"
    } else {
        ""
    };
    let is_array = matches!(member.shape, TypeKind::Array { .. });
    let text = match member.role {
        names::Role::Base => "}; /* base */".to_owned(),
        names::Role::Member
            if member.depth > 0 && !is_array && member.declaration.ends_with(';') =>
        {
            if member.name.is_empty() {
                "};".to_owned()
            } else {
                format!("}} {};", member.name)
            }
        }
        _ if member.declaration.ends_with(',') && member.depth > 0 => "},".to_owned(),
        _ => "};".to_owned(),
    };
    format!("{text}{virtual_base}")
}

fn hole_words(hole: &Hole) -> String {
    let what = match (hole.bits / 8, hole.bits % 8) {
        (0, bits) => count(bits, "bit", "bits"),
        (bytes, 0) => count(bytes, "byte", "bytes"),
        (bytes, bits) => format!(
            "{} and {}",
            count(bytes, "byte", "bytes"),
            count(bits, "bit", "bits")
        ),
    };
    if hole.at_end {
        format!("/* {what} unused at the end */")
    } else {
        format!("/* {what} unused */")
    }
}

fn line_words(line: &LineRow) -> String {
    let mut text = "/* --- ".to_owned();
    if line.first == line.last {
        text.push_str(&format!("line {}", line.first));
    } else {
        text.push_str(&format!("lines {} to {}", line.first, line.last));
    }
    if let Some(address) = &line.address {
        text.push_str(&format!(" at {address}"));
    }
    match (line.behind, line.first) {
        (Some(behind), _) => text.push_str(&format!(", {} back", count(behind, "byte", "bytes"))),
        (None, 0) => {}
        (None, _) => text.push_str(&format!(" ({} bytes)", grouped(line.offset))),
    }
    if !line.threads.is_empty() {
        let how = if line.shared { "shared by" } else { "used by" };
        text.push_str(&format!(": {how} {}", threads(&line.threads)));
    }
    text.push_str(" --- */");
    text
}

/// Up to three by name.
fn threads(threads: &[Thread]) -> String {
    if threads.len() > 3 {
        return threads_words(threads);
    }
    let words: Vec<String> = threads
        .iter()
        .map(|thread| threads_words(std::slice::from_ref(thread)))
        .collect();
    words.join(", ")
}

fn uses(options: TextOptions, uses: &[Use]) -> Vec<String> {
    let mark = if options.unicode { '▲' } else { '^' };
    uses.iter()
        .map(|one| {
            let share = percent(one.cost_share);
            options.name(&format!(
                "{mark} {} {} {share}",
                op_name(one.op).unwrap_or("access"),
                threads(&one.threads)
            ))
        })
        .collect()
}

fn proposal(out: &mut Lines, layout: &Layout) {
    let Some(proposal) = &layout.proposal else {
        return;
    };
    out.blank();
    out.prose("  proposed ", &sizes(proposal));
    let members: Vec<Cells> = proposal
        .members
        .iter()
        .map(|member| Cells {
            indent: STEP,
            left: out.options.name(&member.declaration),
            offset: member
                .offset
                .map_or_else(String::new, |offset| offset.to_string()),
            size: member.size.to_string(),
            uses: match member.threads.as_slice() {
                [] => Vec::new(),
                some => vec![out.options.name(&threads(some))],
            },
        })
        .collect();
    let widest = members
        .iter()
        .map(|cells| cells.indent + columns(&cells.left));
    let width = widest.max().unwrap_or(0).min(DECLARATION);
    for cells in members {
        cells.print(out, width);
    }
}

fn sizes(proposal: &Proposal) -> String {
    let what = match &proposal.type_name {
        Some(name) => format!("`{}`", shorten::symbol(name, 50)),
        None => "the object".to_owned(),
    };
    let each = if proposal.count > 1 {
        format!(" each, {} of them", grouped(proposal.count))
    } else {
        String::new()
    };
    format!(
        "{what} from {} to {} bytes{each}; from {} to {}, starting at a multiple of {} bytes",
        grouped(proposal.size),
        grouped(proposal.new_size),
        count(proposal.lines, "line", "lines"),
        count(proposal.new_lines, "line", "lines"),
        proposal.alignment
    )
}
