//! Elements of one array that different threads use.

use super::{
    AdviceKind, Scene,
    dialect::{CACHE_PADDED, Dialect, Form},
    layout::{Step, dialect},
    members::{Used, sentence, type_words},
    place::{Piece, line_of},
    relayout::{Relayout, round_up, struct_alignment},
    role::Named,
};
use crate::names::{Author, ElementLayout, ObjectKind, ObjectLayout, ObjectName};

/// From this cost on, a way that costs nothing is named too.
const LARGE: u64 = 16 * 1024;

/// What has to change about an array.
pub(super) enum Change {
    /// Threads meet in one element: its members move apart. Who uses each, and the plan.
    Members(Used, Relayout),
    /// Elements of whole lines begin this many bytes into one.
    Align(u64),
    /// Elements grow, to this many bytes where the language says by how much.
    Pad(Option<u64>),
}

impl Change {
    /// `None` where nothing helps.
    pub(super) fn of(
        scene: &Scene,
        object: &ObjectName,
        layout: &ObjectLayout,
        element: &ElementLayout,
        pieces: &[Piece],
        dialect: Dialect,
    ) -> Option<Change> {
        if element.stride == 0 {
            return None;
        }
        let cut = by_element(pieces, element);
        if let Some(conflict) = conflict_inside(&cut).filter(|_| layout.author == Author::Program) {
            let inside = cut.iter().filter(|c| c.element == conflict);
            let pieces: Vec<Piece> = inside.map(|c| c.piece).collect();
            let inside = conflict.checked_mul(element.stride)?;
            let line = line_of(scene, object.start?.saturating_add(inside));
            let used = Used::of(scene, &layout.members, &pieces, line)?;
            let plan = Relayout::new(&layout.members, &used, element.stride, dialect)?;
            // Members that lie apart already ask for no other element, but for a start at a line.
            if !plan.starts.is_empty() {
                return Some(Change::Members(used, plan));
            }
        }
        let line = dialect.line;
        if dialect.form() != Form::Padded && element.stride.is_multiple_of(line) {
            let into_line = object.start? % line;
            return (into_line != 0).then_some(Change::Align(into_line));
        }
        let grown = dialect.stride(element.stride, element_alignment(layout, element));
        Some(Change::Pad(grown))
    }
}

/// Pads the elements, aligns the array, or moves the members of the element apart.
pub(super) fn separate(
    scene: &Scene,
    object: &ObjectName,
    layout: &ObjectLayout,
    element: &ElementLayout,
    pieces: &[Piece],
) -> Option<Step> {
    let dialect = dialect(scene, Some(object));
    Some(
        match Change::of(scene, object, layout, element, pieces, dialect)? {
            Change::Members(used, plan) => {
                members_of_element(object, layout, element, &used, &plan, dialect)
            }
            Change::Align(into_line) => align(object, element, into_line, dialect),
            Change::Pad(stride) => {
                let cut = by_element(pieces, element);
                pad(scene, object, layout, element, &cut, dialect, stride)
            }
        },
    )
}

/// What an element starts at a multiple of: as its members say, or as the elements of a scalar are.
fn element_alignment(layout: &ObjectLayout, element: &ElementLayout) -> u64 {
    let of_members = struct_alignment(&layout.members);
    of_members.unwrap_or_else(|| 1 << element.stride.trailing_zeros().min(3))
}

/// A piece cut at element boundaries: the element it is in, its place there.
#[derive(Debug, Clone, Copy)]
struct Cut {
    element: u64,
    piece: Piece,
}

fn by_element(pieces: &[Piece], element: &ElementLayout) -> Vec<Cut> {
    let mut out = Vec::new();
    for piece in pieces {
        let mut offset = piece.offset;
        while offset < piece.end() {
            let index = offset / element.stride;
            let next = (index + 1).saturating_mul(element.stride).min(piece.end());
            let inside = Piece {
                unit: piece.unit,
                offset: offset % element.stride,
                size: next - offset,
            };
            out.push(Cut {
                element: index,
                piece: inside,
            });
            offset = next;
        }
    }
    out
}

/// The first element that several units touch.
fn conflict_inside(cut: &[Cut]) -> Option<u64> {
    let mut sorted = cut.to_vec();
    sorted.sort_by_key(|c| (c.element, c.piece.offset));
    let several = |pair: &[Cut]| {
        pair[0].element == pair[1].element && pair[0].piece.unit != pair[1].piece.unit
    };
    sorted
        .windows(2)
        .find(|pair| several(pair))
        .map(|pair| pair[0].element)
}

fn members_of_element(
    object: &ObjectName,
    layout: &ObjectLayout,
    element: &ElementLayout,
    used: &Used,
    plan: &Relayout,
    dialect: Dialect,
) -> Step {
    let what = type_words(element.type_name.as_deref(), object.spoken());
    let grown = plan.size.saturating_sub(element.stride);
    let bytes = element.count.saturating_mul(grown);
    let text = format!(
        "{}\n{}{what} grows from {} to {} bytes; {} of them cost {bytes} bytes more.",
        plan.sentences(element.type_name.as_deref(), &layout.members, used, dialect),
        sentence(&dialect.note()),
        element.stride,
        plan.size,
        element.count,
    );
    Step {
        kind: AdviceKind::SeparateFields,
        text,
        bytes: Some(bytes),
    }
}

/// Elements of whole lines that start in the middle of one.
fn align(object: &ObjectName, element: &ElementLayout, into_line: u64, dialect: Dialect) -> Step {
    let line = dialect.line;
    let name = type_words(None, object.spoken());
    let element_type = type_words(element.type_name.as_deref(), None);
    let how = match (object.kind, dialect.form(), dialect.allocation()) {
        (_, Form::Wrapped, _) => format!("Put `#[repr(align({line}))]` on {element_type}."),
        (ObjectKind::Heap, _, Some(allocation)) => format!("That takes {allocation}."),
        (_, Form::Words, _) => dialect.apart(),
        _ => {
            let array = element
                .type_name
                .as_ref()
                .map(|t| format!("{t} [{}]", element.count));
            let name = object.name.as_deref().unwrap_or_default();
            match dialect.variable(object.kind, array.as_deref(), object.size, name) {
                Some(code) => format!(
                    "Start the array at a line:\n    {}\n{}",
                    code.join("\n    "),
                    dialect.note()
                ),
                None => dialect.apart(),
            }
        }
    };
    let text = format!(
        "{} of {name} is {} bytes, whole lines, but the array starts {into_line} bytes into a line, so each \
         line holds the end of one element and the beginning of the next. {} This costs at most {} bytes.",
        if element.type_name.is_some() {
            format!("An element {element_type}")
        } else {
            "An element".to_owned()
        },
        element.stride,
        how.trim_end(),
        line - 1
    );
    Step {
        kind: AdviceKind::AlignObject,
        text,
        bytes: Some(line - 1),
    }
}

/// Elements that share a line because they are small, or because they do not fill whole lines.
fn pad(
    scene: &Scene,
    object: &ObjectName,
    layout: &ObjectLayout,
    element: &ElementLayout,
    cut: &[Cut],
    dialect: Dialect,
    stride: Option<u64>,
) -> Step {
    let line = dialect.line;
    let more = |new: u64| {
        element
            .count
            .saturating_mul(new.saturating_sub(element.stride))
    };
    let bytes = stride.map(more);
    let name = type_words(None, object.spoken());
    let aligned = element_alignment(layout, element);
    let how = match &element.type_name {
        // A struct of the program's own takes the alignment itself.
        Some(t) if !layout.members.is_empty() && layout.author == Author::Program => {
            dialect.own_lines(t, element.stride, aligned, layout.members.first())
        }
        t => {
            let array = object.spoken().unwrap_or("array");
            match dialect.element(t.as_deref(), element.stride, aligned) {
                Some((code, access)) => format!(
                    "Make each element\n    {}\nand use `{array}[i]{access}`. {}",
                    code.join("\n    "),
                    dialect.note()
                ),
                None => dialect.apart(),
            }
        }
    };
    let mut text = format!(
        "Give each element of {name} {} of its own. {}",
        if element.stride <= line {
            format!("a {line}-byte line")
        } else {
            format!("whole {line}-byte lines")
        },
        how.trim_end(),
    );
    if let Some((stride, bytes)) = stride.zip(bytes) {
        text.push_str(&format!(
            "\nAn element grows from {} to {stride} bytes; {} of them cost {bytes} bytes more.",
            element.stride, element.count,
        ));
    }
    if dialect.form() == Form::Wrapped && line != CACHE_PADDED {
        text.push_str(&format!(
            " `crossbeam_utils::CachePadded` does the same with {CACHE_PADDED} bytes on x86-64, which keeps the adjacent-line \
             prefetcher apart too: {} bytes more.",
            more(round_up(element.stride, CACHE_PADDED))
        ));
    }
    if object.kind == ObjectKind::Heap
        && dialect.form() != Form::Wrapped
        && let Some(allocation) = dialect.allocation()
    {
        text.push_str(&format!(" On the heap it needs {allocation}."));
    }
    let own_slots = match scene.many {
        Some(many) => many.own_pieces,
        None => cut.iter().all(|c| scene.units[c.piece.unit].writers <= 1),
    };
    let is_lock = |name: &String| Named::of(name) == Some(Named::Lock);
    // A lock's value is of no use elsewhere.
    if own_slots && !element.type_name.as_ref().is_some_and(is_lock) {
        text.push_str(
            " Without more memory: let each thread work on a local variable and store to its element seldom, \
             for example once at the end.",
        );
    }
    if bytes.is_some_and(|bytes| bytes >= LARGE) && element.stride < line {
        text.push_str(&format!(
            " Or hand the elements out to threads in blocks that start at a line and fill it ({} elements each).",
            elements_per_block(element.stride, line)
        ));
    }
    Step {
        kind: AdviceKind::PadElements,
        text,
        bytes,
    }
}

/// The fewest elements that fill whole lines: line / gcd(stride, line), a power of two.
fn elements_per_block(stride: u64, line: u64) -> u64 {
    line >> stride.trailing_zeros().min(line.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_elements_fill_whole_lines() {
        assert_eq!(elements_per_block(8, 64), 8);
        assert_eq!(elements_per_block(24, 64), 8);
        assert_eq!(elements_per_block(1, 128), 128);
        assert_eq!(elements_per_block(5, 64), 64);
    }

    #[test]
    fn a_piece_over_a_boundary_belongs_to_both_elements() {
        let element = ElementLayout {
            type_name: None,
            stride: 64,
            count: 4,
        };
        let cut = by_element(
            &[Piece {
                unit: 0,
                offset: 60,
                size: 8,
            }],
            &element,
        );
        let seen: Vec<_> = cut
            .iter()
            .map(|c| (c.element, c.piece.offset, c.piece.size))
            .collect();
        assert_eq!(seen, [(0, 60, 4), (1, 0, 4)]);
    }
}
