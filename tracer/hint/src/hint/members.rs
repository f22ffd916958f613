//! Members of one struct that different threads use.

use std::ops::Range;

use super::{
    AdviceKind, Scene, Unit,
    dialect::{CACHE_PADDED, Dialect, Form},
    layout::{Step, dialect},
    place::{Piece, line_of},
    relayout::{self, Group, Relayout},
    variables::join_words,
};
use crate::names::{Author, MemberLayout, ObjectKind, ObjectLayout, ObjectName};

/// Declarations shown as code; the others are counted.
const SHOWN: usize = 4;

/// What helps where the layout is not the program's.
const OWN_OR_LESS: &str = "Let each thread use an object of its own, or use this one less often.";

/// Moves members of different units to different lines.
pub(super) fn separate(
    scene: &Scene,
    object: &ObjectName,
    layout: &ObjectLayout,
    pieces: &[Piece],
) -> Option<Step> {
    let dialect = dialect(scene, Some(object));
    let members = &layout.members;
    let used = Used::of(scene, members, pieces, line_of(scene, object.start?))?;
    let what = type_words(object.type_name.as_deref(), object.spoken());
    if layout.author == Author::Language {
        return Some(Step {
            kind: AdviceKind::ReduceSharing,
            text: format!(
                "{what} is of the language's own library, which decides what lies beside what in it. {OWN_OR_LESS}"
            ),
            bytes: None,
        });
    }
    let plan = Relayout::new(members, &used, layout.size, dialect)?;
    let is_of_package = layout.author == Author::Package;
    if is_of_package && plan.starts.is_empty() {
        return Some(Step {
            kind: AdviceKind::ReduceSharing,
            text: format!("{what} is declared by a library. {OWN_OR_LESS}"),
            bytes: None,
        });
    }
    if plan.starts.is_empty() {
        return align(scene, object, object.start?, &what, layout, dialect);
    }
    let grown = plan.size.saturating_sub(layout.size);
    let mut text = format!(
        "{}\n{}{}",
        plan.sentences(object.type_name.as_deref(), members, &used, dialect),
        sentence(&dialect.note()),
        if grown == 0 {
            format!("{what} keeps its {} bytes.", layout.size)
        } else {
            format!(
                "{what} grows from {} to {} bytes (+{grown}).",
                layout.size, plan.size
            )
        },
    );
    // With crossbeam's wrapper, where that is something else.
    let padded = (dialect.form() == Form::Wrapped)
        .then(|| relayout::wrapped(members, &used.groups, CACHE_PADDED));
    if let Some(all) = padded.filter(|all| *all != plan.size) {
        text.push_str(&format!(
            " `crossbeam_utils::CachePadded` in place of `Line` does the same with {CACHE_PADDED} bytes each on x86-64, which \
             keeps the adjacent-line prefetcher apart too: {all} bytes (+{}).",
            all.saturating_sub(layout.size)
        ));
    }
    if object.kind == ObjectKind::Heap
        && let Some(allocation) = dialect.allocation()
    {
        text.push_str(&format!(" On the heap it needs {allocation}."));
    }
    if is_of_package {
        text = format!(
            "{what} is declared by a library, whose authors can change that; until then: {OWN_OR_LESS} In the library: {text}"
        );
    }
    Some(Step {
        kind: AdviceKind::SeparateFields,
        text,
        bytes: (!is_one_of_many(scene, object)).then_some(grown),
    })
}

/// There are others of its kind, nobody knows how many.
fn is_one_of_many(scene: &Scene, object: &ObjectName) -> bool {
    scene.many.is_some() && object.kind == ObjectKind::Heap
}

/// Members that are on lines of their own as soon as the object starts at a line.
fn align(
    scene: &Scene,
    object: &ObjectName,
    start: u64,
    what: &str,
    layout: &ObjectLayout,
    dialect: Dialect,
) -> Option<Step> {
    let line = dialect.line;
    let into_line = start % line;
    let type_name = object.type_name.as_deref();
    let variable = || {
        let name = object.name.as_deref()?;
        dialect.variable(object.kind, type_name, object.size, name)
    };
    let how = match (object.kind, dialect.allocation()) {
        (ObjectKind::Heap, Some(allocation)) => format!("That takes {allocation}."),
        (ObjectKind::Heap, None) => dialect.apart(),
        _ => match (variable(), type_name) {
            (Some(code), _) => format!("Start it at a line:\n    {}", code.join("\n    ")),
            (None, Some(type_name)) => {
                let alignment = relayout::struct_alignment(&layout.members);
                let first = layout.members.first();
                dialect.own_lines(type_name, layout.size, alignment.unwrap_or(1), first)
            }
            (None, None) => dialect.apart(),
        },
    };
    let is_many = is_one_of_many(scene, object);
    let starts = if is_many {
        "each object starts at a line; one that was looked at starts"
    } else {
        "it starts at a line; now it starts"
    };
    (into_line != 0).then(|| Step {
        kind: AdviceKind::AlignObject,
        text: format!(
            "The members of {what} lie on different lines as soon as {starts} {into_line} bytes into one. {how}{}This costs at \
             most {} bytes{}.",
            if how.contains('\n') { "\n" } else { " " },
            line - 1,
            if is_many { " each" } else { "" },
        ),
        bytes: (!is_many).then_some(line - 1),
    })
}

/// Who uses each member.
pub(super) struct Used {
    /// Its unit, where it has one.
    pub(super) units: Vec<Option<usize>>,
    pub(super) groups: Vec<Group>,
}

impl Used {
    /// `line` are the bytes of the struct that are on the scene's line. `None` where units that should be apart are within
    /// one member.
    pub(super) fn of(
        scene: &Scene,
        members: &[MemberLayout],
        pieces: &[Piece],
        line: Range<u64>,
    ) -> Option<Used> {
        let mut used = Used {
            units: Vec::with_capacity(members.len()),
            groups: Vec::with_capacity(members.len()),
        };
        for member in members {
            let end = member.offset.saturating_add(member.size);
            let inside = |piece: &&Piece| piece.offset < end && member.offset < piece.end();
            let mut here = pieces.iter().filter(inside);
            let on_line = member.offset < line.end && line.start < end;
            let Some(first) = here.next() else {
                used.units.push(None);
                used.groups.push(if on_line {
                    Group::Idle
                } else {
                    Group::Elsewhere
                });
                continue;
            };
            let group = group_of(scene.units, first.unit);
            if here.any(|piece| group_of(scene.units, piece.unit) != group) {
                return None;
            }
            used.units.push(Some(first.unit));
            used.groups.push(group);
        }
        Some(used)
    }
}

fn group_of(units: &[Unit], unit: usize) -> Group {
    match units.get(unit) {
        Some(unit) if unit.writers == 0 => Group::Read,
        _ => Group::Stored(unit),
    }
}

/// Changes to the declaration of a struct.
impl Relayout {
    /// `None` when nothing that is stored is beside others, or it cannot be moved apart by the struct's own declaration.
    pub(super) fn new(
        members: &[MemberLayout],
        used: &Used,
        old_size: u64,
        dialect: Dialect,
    ) -> Option<Relayout> {
        let groups = &used.groups;
        if let Some(means) = dialect.means() {
            let mut plan = relayout::separate(members, groups, means)?;
            plan.size = plan.size.max(old_size);
            plan.name_the_stored(members, groups, dialect);
            return Some(plan);
        }
        if dialect.form() != Form::Wrapped {
            return None;
        }
        let is_stored = |group: &Group| matches!(group, Group::Stored(_));
        // Variants of an enumeration, and what they share, are no fields that could be wrapped.
        let is_fixed = |(member, group): (&MemberLayout, &Group)| {
            is_stored(group) && (member.is_inner || member.name == "discriminant")
        };
        if members.iter().zip(groups).any(is_fixed) {
            return None;
        }
        let mut distinct: Vec<Group> = Vec::new();
        for group in groups {
            if (is_stored(group) || *group == Group::Read) && !distinct.contains(group) {
                distinct.push(*group);
            }
        }
        if distinct.len() < 2 {
            return None;
        }
        let size = relayout::wrapped(members, groups, dialect.line);
        let starts: Vec<usize> = (0..members.len())
            .filter(|&n| is_stored(&groups[n]))
            .collect();
        Some(Relayout {
            gaps: vec![0; starts.len()],
            starts,
            order: Vec::new(),
            places: Vec::new(),
            size,
        })
    }

    /// How to change the declaration, with code. `owner` is the struct's name.
    pub(super) fn sentences(
        &self,
        owner: Option<&str>,
        members: &[MemberLayout],
        used: &Used,
        dialect: Dialect,
    ) -> String {
        let line = dialect.line;
        let named = |n: &usize| format!("`{}`", members[*n].name);
        let names: Vec<String> = self.starts.iter().map(named).collect();
        let code: Option<Vec<String>> = (self.starts.iter().zip(&self.gaps))
            .take(SHOWN)
            .map(|(&n, &gap)| dialect.member(owner, &members[n], gap))
            .collect::<Option<Vec<_>>>()
            .map(|code| code.concat());
        let mut text = if dialect.form() == Form::Wrapped {
            let crowded = self.starts.iter().enumerate().any(|(at, &n)| {
                let unit = used.units[n];
                self.starts[..at].iter().any(|&m| used.units[m] == unit)
            });
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
            let lines = if names.len() == 1 {
                format!("a new {line}-byte line")
            } else {
                format!("new {line}-byte lines")
            };
            format!("Start {} on {lines}{}", listed(&names), behind(dialect))
        } else {
            format!(
                "Order the members by the threads that use them ({}), and start {} on {line}-byte lines{}",
                self.groups(members, used),
                listed(&names),
                behind(dialect)
            )
        };
        let is_wrapped = dialect.form() == Form::Wrapped;
        if let Some(code) = code {
            text.push_str(if is_wrapped { "" } else { ":" });
            for declaration in &code {
                text.push_str(&format!("\n    {declaration}"));
            }
            if self.starts.len() > SHOWN {
                text.push_str(&format!(
                    "\nand {} more likewise.",
                    self.starts.len() - SHOWN
                ));
            }
        } else {
            text.push_str(if is_wrapped { "\n" } else { ". " });
            text.push_str(&dialect.in_words(&listed(&names), &self.gaps));
        }
        let others = |n: &&usize| used.groups[**n] == Group::Elsewhere;
        let others: Vec<String> = self.starts.iter().filter(others).map(named).collect();
        if !others.is_empty() {
            text.push_str(&format!(
                "\n{} {} on another line today, and should not come to those that are moved.",
                listed(&others),
                if others.len() == 1 { "is" } else { "are" }
            ));
        }
        text
    }

    fn groups(&self, members: &[MemberLayout], used: &Used) -> String {
        let mut out = String::new();
        let mut previous = None;
        for &n in self.order.iter().filter(|&&n| used.units[n].is_some()) {
            if previous.is_some() {
                out.push_str(if previous == Some(used.groups[n]) {
                    ", "
                } else {
                    "; "
                });
            }
            out.push_str(&format!("`{}`", members[n].name));
            previous = Some(used.groups[n]);
        }
        out
    }
}

impl Relayout {
    /// Where only what is read starts a line, because what is stored is at the beginning: shows that the stored one has its
    /// line from there on.
    fn name_the_stored(&mut self, members: &[MemberLayout], groups: &[Group], dialect: Dialect) {
        let is_stored = |n: &usize| matches!(groups[*n], Group::Stored(_));
        let may_start = |n: usize| !members[n].is_bit_field && !members[n].is_inner;
        if !matches!(dialect.form(), Form::Aligned(_) | Form::KernelAligned)
            || self.starts.is_empty()
            || self.starts.iter().any(is_stored)
        {
            return;
        }
        let first = (0..members.len()).find(|n| is_stored(n) && may_start(*n));
        if let Some(first) = first.filter(|&n| self.places[n].is_multiple_of(dialect.line)) {
            self.starts.insert(0, first);
            self.gaps.insert(0, 0);
        }
    }
}

/// Go pads instead of aligning.
fn behind(dialect: Dialect) -> &'static str {
    match dialect.form() {
        Form::Padded => ", by padding before",
        _ => "",
    }
}

/// `` `a`, `b` and 3 more ``.
fn listed(names: &[String]) -> String {
    if names.len() > SHOWN {
        return format!(
            "{} and {} more",
            names[..SHOWN].join(", "),
            names.len() - SHOWN
        );
    }
    join_words(names)
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
