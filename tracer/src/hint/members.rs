//! Members of one struct that different threads use.

use super::{
    AdviceKind, Scene,
    declaration::{CACHE_PADDED, Dialect},
    layout::{Step, dialect},
    place::Piece,
    relayout,
};
use crate::names::{Language, MemberLayout, ObjectKind, ObjectLayout, ObjectName};

/// Declarations shown as code; the others are counted.
const SHOWN: usize = 4;

/// Moves members of different units to different lines.
pub(super) fn separate(
    scene: &Scene,
    object: &ObjectName,
    layout: &ObjectLayout,
    pieces: &[Piece],
) -> Option<Step> {
    let dialect = dialect(scene, Some(object));
    let units = units_of(&layout.members, pieces);
    let what = type_words(object.type_name.as_deref(), object.name.as_deref());
    let plan = Plan::new(&layout.members, &units, layout.size, dialect)?;
    let mut text = plan.sentences(&layout.members, &units, dialect);
    text.push_str(&format!(
        "\n{}{what} grows from {} to {} bytes (+{}).",
        sentence(&dialect.note()),
        layout.size,
        plan.size,
        plan.size.saturating_sub(layout.size)
    ));
    if let Some(all) = plan.cache_padded {
        text.push_str(&format!(
            " `crossbeam_utils::CachePadded` in place of `Line` does the same with {CACHE_PADDED} bytes each on x86-64, which \
             keeps the adjacent-line prefetcher apart too: {all} bytes (+{}).",
            all.saturating_sub(layout.size)
        ));
    }
    if object.kind == ObjectKind::Heap {
        text.push_str(&format!(" On the heap it needs {}.", dialect.allocation()));
    }
    Some(Step {
        kind: AdviceKind::SeparateFields,
        text,
        bytes: Some(plan.size.saturating_sub(layout.size)),
    })
}

/// The changes to a struct's declaration.
pub(super) struct Plan {
    pub(super) aligned: Vec<usize>,
    pub(super) order: Vec<usize>,
    /// New first byte of each member; empty in Rust, where the compiler places them.
    pub(super) places: Vec<u64>,
    pub(super) size: u64,
    /// Rust: bytes with crossbeam's wrapper, where that is something else.
    cache_padded: Option<u64>,
}

impl Plan {
    /// `None` when no two units are in different members.
    pub(super) fn new(
        members: &[MemberLayout],
        units: &[Option<usize>],
        old_size: u64,
        dialect: Dialect,
    ) -> Option<Plan> {
        let mut distinct: Vec<usize> = units.iter().flatten().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < 2 {
            return None;
        }
        if dialect.language == Some(Language::Rust) {
            let size = relayout::wrapped(members, units, dialect.line);
            let padded = relayout::wrapped(members, units, CACHE_PADDED);
            return Some(Plan {
                aligned: (0..members.len()).filter(|&n| units[n].is_some()).collect(),
                order: Vec::new(),
                places: Vec::new(),
                size,
                cache_padded: (padded != size).then_some(padded),
            });
        }
        let plan = relayout::separate(members, units, dialect.line);
        if plan.inseparable || plan.aligned.is_empty() {
            return None;
        }
        Some(Plan {
            aligned: plan.aligned,
            order: plan.order,
            places: plan.places,
            size: plan.size.max(old_size),
            cache_padded: None,
        })
    }

    /// How to change the declaration, with code.
    pub(super) fn sentences(
        &self,
        members: &[MemberLayout],
        units: &[Option<usize>],
        dialect: Dialect,
    ) -> String {
        let line = dialect.line;
        let mut text = if dialect.language == Some(Language::Rust) {
            let crowded = self
                .aligned
                .windows(2)
                .any(|pair| units[pair[0]] == units[pair[1]]);
            let first = if crowded {
                "Put the fields that one thread uses alone into a struct of their own, and wrap"
            } else {
                "Wrap"
            };
            format!(
                "{first} each in a type that fills {line}-byte lines:\n    {}",
                dialect.wrapper()
            )
        } else if self.order.is_empty() {
            let first: Vec<String> = self
                .aligned
                .iter()
                .take(SHOWN)
                .map(|&n| format!("`{}`", members[n].name))
                .collect();
            let more = if self.aligned.len() > SHOWN {
                " .."
            } else {
                ""
            };
            format!(
                "Start {}{more} on {} {line}-byte {}:",
                first.join(", "),
                if self.aligned.len() == 1 {
                    "a new"
                } else {
                    "new"
                },
                if self.aligned.len() == 1 {
                    "line"
                } else {
                    "lines"
                }
            )
        } else {
            format!(
                "Order the members by the thread that uses them ({}), and start each group on a {line}-byte line:",
                self.groups(members, units)
            )
        };
        for &n in self.aligned.iter().take(SHOWN) {
            text.push_str(&format!("\n    {}", dialect.member(&members[n])));
        }
        if self.aligned.len() > SHOWN {
            text.push_str(&format!(
                "\nand {} more likewise.",
                self.aligned.len() - SHOWN
            ));
        }
        text
    }

    fn groups(&self, members: &[MemberLayout], units: &[Option<usize>]) -> String {
        let mut out = String::new();
        let mut previous = None;
        for &n in self.order.iter().filter(|&&n| units[n].is_some()) {
            if previous.is_some() {
                out.push_str(if previous == units[n] { ", " } else { "; " });
            }
            out.push_str(&format!("`{}`", members[n].name));
            previous = units[n];
        }
        out
    }
}

/// The unit of each member: the one with the most of its bytes; `None` for untouched members.
pub(super) fn units_of(members: &[MemberLayout], pieces: &[Piece]) -> Vec<Option<usize>> {
    let of_member = |member: &MemberLayout| {
        let overlap = |piece: &Piece| {
            let end = piece.end().min(member.offset.saturating_add(member.size));
            end.saturating_sub(piece.offset.max(member.offset))
        };
        let best = pieces
            .iter()
            .max_by_key(|piece| (overlap(piece), std::cmp::Reverse(piece.unit)))?;
        (overlap(best) > 0).then_some(best.unit)
    };
    members.iter().map(of_member).collect()
}

/// `` `struct stats` ``, or the variable where the type has no name.
pub(super) fn type_words(type_name: Option<&str>, name: Option<&str>) -> String {
    match (type_name, name) {
        (Some(type_name), _) => format!("`{type_name}`"),
        (None, Some(name)) => format!("`{name}`"),
        (None, None) => "The object".to_owned(),
    }
}

/// The sentence and a space behind it, if there is one.
pub(super) fn sentence(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{text} ")
    }
}
