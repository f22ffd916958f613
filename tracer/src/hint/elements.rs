//! Elements of one array that different threads use.

use super::{
    AdviceKind, Scene,
    declaration::{CACHE_PADDED, Dialect},
    layout::{Step, dialect},
    members::{Plan, sentence, type_words, units_of},
    neighbours::own_lines,
    place::Piece,
    relayout::round_up,
};
use crate::names::{ElementLayout, Language, ObjectKind, ObjectLayout, ObjectName};

/// From this cost on, a way that costs nothing is named too.
const LARGE: u64 = 16 * 1024;

/// What has to change about an array.
pub(super) enum Change {
    /// Threads meet in one element: its members move apart. The unit of each member, and the plan.
    Members(Vec<Option<usize>>, Plan),
    /// Elements of whole lines begin this many bytes into one.
    Align(u64),
    /// Elements grow to whole lines, this many bytes.
    Pad(u64),
}

impl Change {
    /// `None` where nothing helps.
    pub(super) fn of(
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
        if let Some(conflict) = conflict_inside(&cut) {
            let inside = cut.iter().filter(|c| c.element == conflict);
            let pieces: Vec<Piece> = inside.map(|c| c.piece).collect();
            let units = units_of(&layout.members, &pieces);
            let plan = Plan::new(&layout.members, &units, element.stride, dialect)?;
            return Some(Change::Members(units, plan));
        }
        let line = dialect.line;
        if element.stride.is_multiple_of(line) {
            let into_line = object.start? % line;
            return (into_line != 0).then_some(Change::Align(into_line));
        }
        Some(Change::Pad(round_up(element.stride, line)))
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
        match Change::of(object, layout, element, pieces, dialect)? {
            Change::Members(units, plan) => {
                members_of_element(object, layout, element, &units, &plan, dialect)
            }
            Change::Align(into_line) => align(object, element, into_line, dialect),
            Change::Pad(_) => pad(
                scene,
                object,
                element,
                &by_element(pieces, element),
                dialect,
            ),
        },
    )
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
    units: &[Option<usize>],
    plan: &Plan,
    dialect: Dialect,
) -> Step {
    let what = type_words(element.type_name.as_deref(), object.name.as_deref());
    let grown = plan.size.saturating_sub(element.stride);
    let bytes = element.count.saturating_mul(grown);
    let text = format!(
        "{}\n{}{what} grows from {} to {} bytes; {} of them cost {bytes} bytes more.",
        plan.sentences(&layout.members, units, dialect),
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
    let name = type_words(None, object.name.as_deref());
    let element_type = type_words(element.type_name.as_deref(), None);
    let how = match (object.kind, dialect.language) {
        (_, Some(Language::Rust)) => format!("Put `#[repr(align({line}))]` on {element_type}."),
        (ObjectKind::Heap, _) => format!("Allocate it with {}.", dialect.allocation()),
        _ => {
            let array = object.name.as_deref().unwrap_or("..");
            let declared = format!("{array}[{}]", element.count);
            let code = dialect.declaration(element.type_name.as_deref(), &declared);
            format!("Start the array at a line:\n    {code}\n{}", dialect.note())
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
    element: &ElementLayout,
    cut: &[Cut],
    dialect: Dialect,
) -> Step {
    let line = dialect.line;
    let stride = round_up(element.stride, line);
    let more = |new: u64| {
        element
            .count
            .saturating_mul(new.saturating_sub(element.stride))
    };
    let bytes = more(stride);
    let name = type_words(None, object.name.as_deref());
    let how = match (&element.type_name, &object.layout) {
        // A struct of the program's own takes the alignment itself.
        (Some(t), Some(layout)) if !layout.members.is_empty() => own_lines(t, layout, dialect),
        (t, _) => {
            let (code, access) = dialect.element(t.as_deref());
            let array = object.name.as_deref().unwrap_or("array");
            format!(
                "make each element\n    {code}\nand use `{array}[i]{access}`. {}",
                dialect.note()
            )
        }
    };
    let mut text = format!(
        "Give each element of {name} {} of its own: {}\nAn element grows from {} to {stride} bytes; {} of them cost {bytes} bytes more.",
        if stride == line {
            format!("a {line}-byte line")
        } else {
            format!("whole {line}-byte lines")
        },
        how.trim_end(),
        element.stride,
        element.count,
    );
    if dialect.language == Some(Language::Rust) && line != CACHE_PADDED {
        text.push_str(&format!(
            " `crossbeam_utils::CachePadded` does the same with {CACHE_PADDED} bytes on x86-64, which keeps the adjacent-line \
             prefetcher apart too: {} bytes more.",
            more(round_up(element.stride, CACHE_PADDED))
        ));
    }
    if object.kind == ObjectKind::Heap && dialect.language != Some(Language::Rust) {
        text.push_str(&format!(" On the heap it needs {}.", dialect.allocation()));
    }
    let own_slots = cut.iter().all(|c| scene.units[c.piece.unit].writers <= 1);
    if own_slots {
        text.push_str(
            " Without more memory: let each thread work on a local variable and store to its element seldom, \
             for example once at the end.",
        );
    }
    if bytes >= LARGE && element.stride < line {
        text.push_str(&format!(
            " Or hand the elements out to threads in blocks that start at a line and fill it ({} elements each).",
            elements_per_block(element.stride, line)
        ));
    }
    Step {
        kind: AdviceKind::PadElements,
        text,
        bytes: Some(bytes),
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
