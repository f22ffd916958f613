//! From a type's tree to the rows of a declaration: members in their order, holes, and where lines begin.

use super::{
    model::{Elements, Hole, LineRow, Member, Row},
    uses::Uses,
};
use crate::{
    hint,
    names::{self, Language, Part, Role, TypeKind, TypeTree},
    report::model::Hex,
};

/// Rows of one layout.
const MOST_ROWS: usize = 1 << 14;
/// Elements of one array that are listed each by itself.
const MOST_ELEMENTS: usize = 16;
/// Alignment above which it is worth a word: more than that of any scalar of the x86-64 and AArch64 psABIs.
const LARGE_ALIGNMENT: u64 = 16;

/// Where an object is.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// Position of its first byte in its place's numbering.
    pub(super) position: u64,
    /// A virtual address of its first byte.
    pub(super) address: Option<u64>,
    /// Size in bytes.
    pub(super) size: u64,
    /// Bytes of a line.
    pub(super) line: u64,
    /// Position of the finding's line.
    pub(super) finding: u64,
}

impl At {
    /// Bytes from the start of a line to the object.
    pub(super) fn into_line(self) -> u64 {
        self.position % self.line.max(1)
    }

    /// Lines that hold some of it.
    pub(super) fn lines(self) -> u64 {
        (self.into_line().saturating_add(self.size)).div_ceil(self.line.max(1))
    }
}

/// The rows, and whether some are missing.
pub(super) fn rows(
    tree: &TypeTree,
    at: At,
    language: Option<Language>,
    uses: &Uses,
) -> (Vec<Row>, bool) {
    let mut walk = Walk {
        at,
        language,
        uses,
        rows: Vec::new(),
        next_line: 0,
        is_cut: tree.is_cut,
    };
    walk.lines_up_to(0, None);
    walk.whole(tree);
    (walk.rows, walk.is_cut)
}

/// Where the walk is: the enclosing type's first byte, its path, how deep, and whether others share its bytes.
#[derive(Clone)]
struct Place {
    base: u64,
    path: String,
    depth: usize,
    shared: bool,
}

struct Walk<'a> {
    at: At,
    language: Option<Language>,
    uses: &'a Uses,
    rows: Vec<Row>,
    /// Number of the next line that has not been told.
    next_line: u64,
    is_cut: bool,
}

impl Walk<'_> {
    fn push(&mut self, row: Row) {
        if self.rows.len() < MOST_ROWS {
            self.rows.push(row);
        } else {
            self.is_cut = true;
        }
    }

    fn whole(&mut self, tree: &TypeTree) {
        let place = Place {
            base: 0,
            path: String::new(),
            depth: 0,
            shared: false,
        };
        let part = Part {
            role: Role::Member,
            name: String::new(),
            offset: 0,
            bits: None,
            alignment: None,
            tree: tree.clone(),
        };
        self.part(&part, &place);
    }

    /// Byte of the object at which a line begins; for line 0 the object's own first.
    fn start_of(&self, number: u64) -> u64 {
        number
            .saturating_mul(self.at.line)
            .saturating_sub(self.at.into_line())
    }

    /// Tells the lines that begin at or before a byte of the object; `end` is that of the row above, if they may
    /// have begun in it.
    fn lines_up_to(&mut self, byte: u64, end: Option<u64>) {
        let first = self.next_line;
        let lines = self.at.lines().max(1);
        if first >= lines || self.start_of(first) > byte {
            return;
        }
        // One row tells of all that begin in the same member: no need to count them one by one.
        let beyond = byte.saturating_add(self.at.into_line()) / self.at.line.max(1) + 1;
        self.next_line = beyond.min(lines).max(first + 1);
        let last = self.next_line - 1;
        let offset = self.start_of(first);
        let stop = self.start_of(last + 1).min(self.at.size);
        let (threads, shared) = self.uses.threads(offset, stop);
        let line_position = |number: u64| {
            let start = self.at.position - self.at.into_line();
            start.saturating_add(number.saturating_mul(self.at.line))
        };
        let of_finding = (line_position(first)..=line_position(last)).contains(&self.at.finding);
        let address = self.at.address.map(|address| {
            let line = address.wrapping_sub(self.at.into_line());
            Hex(line.wrapping_add(first.wrapping_mul(self.at.line)))
        });
        self.push(Row::Line(LineRow {
            first,
            last,
            address,
            offset,
            behind: end
                .and_then(|end| end.checked_sub(offset))
                .filter(|n| *n > 0),
            threads,
            shared,
            of_finding,
        }));
    }

    fn part(&mut self, part: &Part, place: &Place) {
        if self.rows.len() >= MOST_ROWS {
            self.is_cut = true;
            return;
        }
        let offset = place.base.saturating_add(part.offset);
        let path = match (part.role, part.name.as_str()) {
            (Role::Member | Role::Variant, name) if !name.is_empty() => {
                format!("{}.{name}", place.path)
            }
            _ => place.path.clone(),
        };
        self.lines_up_to(offset, None);
        let inside = Place {
            base: offset,
            path: path.clone(),
            depth: place.depth + 1,
            shared: place.shared || matches!(part.tree.kind, TypeKind::Union | TypeKind::Variants),
        };
        let mut member = self.member(part, offset, path, place.depth);
        let end = offset.saturating_add(member.size.unwrap_or(0));
        let listed: Vec<u64> = match part.tree.kind {
            TypeKind::Array { stride, .. } => self.listed(part, stride, offset),
            _ => Vec::new(),
        };
        let is_array = matches!(part.tree.kind, TypeKind::Array { .. });
        if part.tree.parts.is_empty() || part.bits.is_some() || (is_array && listed.is_empty()) {
            // A variant without payload has no bytes of its own, nor has an empty base.
            let has_bytes = part.role != Role::Variant && member.size != Some(0);
            if has_bytes {
                let end = end.max(offset.saturating_add(1));
                member.uses = self.uses.of(offset, end, &member.path, place.shared);
            }
            self.push(Row::Member(member));
        } else {
            self.push(Row::Begin(member.clone()));
            match part.tree.kind {
                TypeKind::Array { stride, .. } => self.elements(part, stride, &listed, &inside),
                _ => self.members(&part.tree, &inside),
            }
            self.push(Row::End(member));
        }
        self.crossed(end);
    }

    /// Tells the lines that began before a byte.
    fn crossed(&mut self, end: u64) {
        if let Some(before) = end.checked_sub(1) {
            self.lines_up_to(before, Some(end));
        }
    }

    /// Members and holes by their place; of a union, holes last.
    fn members(&mut self, tree: &TypeTree, place: &Place) {
        let size = tree.size.unwrap_or(0).saturating_mul(8);
        let mut holes = tree.holes.iter().peekable();
        for part in &tree.parts {
            let first = part
                .bits
                .map_or(part.offset.saturating_mul(8), |(first, _)| first);
            while let Some(hole) = holes.next_if(|hole| hole.first_bit < first) {
                self.hole(*hole, size, place);
            }
            self.part(part, place);
        }
        for hole in holes {
            self.hole(*hole, size, place);
        }
    }

    fn hole(&mut self, hole: names::Hole, size: u64, place: &Place) {
        let offset = place.base.saturating_add(hole.first_bit / 8);
        let end_bit = hole.first_bit.saturating_add(hole.bits);
        let end = place.base.saturating_add(end_bit.div_ceil(8));
        self.lines_up_to(offset, None);
        // What is left of a byte with bit-fields is not told apart from them.
        let whole = hole.first_bit.is_multiple_of(8) && hole.bits >= 8 && !place.shared;
        self.push(Row::Hole(Hole {
            depth: place.depth,
            offset,
            first_bit: hole.first_bit % 8,
            bits: hole.bits,
            at_end: end_bit >= size,
            uses: if whole {
                self.uses.in_hole(offset, end)
            } else {
                Vec::new()
            },
        }));
        self.crossed(end);
    }

    /// Elements to list each by itself: those in use; of a structure nobody uses the first, as an example.
    fn listed(&self, part: &Part, stride: u64, offset: u64) -> Vec<u64> {
        let end = part
            .tree
            .size
            .map_or(self.at.size, |size| offset.saturating_add(size));
        let mut listed = self
            .uses
            .elements(offset, stride, end.min(self.at.size), MOST_ELEMENTS);
        let has_parts = part
            .tree
            .parts
            .first()
            .is_some_and(|element| !element.tree.parts.is_empty());
        if listed.is_empty() && has_parts && self.count(part, stride, offset) > 0 {
            listed.push(0);
        }
        listed
    }

    /// Elements; where the type does not say, as many as the object has room for.
    fn count(&self, part: &Part, stride: u64, offset: u64) -> u64 {
        let room = || self.at.size.saturating_sub(offset) / stride.max(1);
        part.tree.count().unwrap_or_else(room)
    }

    fn elements(&mut self, part: &Part, stride: u64, listed: &[u64], place: &Place) {
        let Some(element) = part.tree.parts.first() else {
            return;
        };
        let count = self.count(part, stride, place.base);
        let mut next = 0;
        for &index in listed.iter().filter(|index| **index < count) {
            self.skipped(next, index, stride, place);
            let mut one = element.clone();
            one.offset = index.saturating_mul(stride);
            let at = Place {
                path: format!("{}{}", place.path, subscripts(&part.tree.kind, index)),
                ..place.clone()
            };
            self.part(&one, &at);
            next = index + 1;
        }
        self.skipped(next, count, stride, place);
    }

    fn skipped(&mut self, first: u64, end: u64, stride: u64, place: &Place) {
        if first >= end {
            return;
        }
        let offset = place.base.saturating_add(first.saturating_mul(stride));
        let size = (end - first).saturating_mul(stride);
        self.lines_up_to(offset, None);
        self.push(Row::Elements(Elements {
            depth: place.depth,
            first,
            last: end - 1,
            offset,
            size,
        }));
        self.crossed(offset.saturating_add(size));
    }

    fn member(&self, part: &Part, offset: u64, path: String, depth: usize) -> Member {
        let alignment = part.alignment.filter(|bytes| *bytes > LARGE_ALIGNMENT);
        let bits = part.bits.map(|(_, count)| count);
        // A nested type's name has the language of its unit; what is declared here is declared in this one.
        let declaration = match part.role {
            Role::Variant => format!("{},", part.name),
            Role::Base => format!("{};", part.tree.type_name),
            Role::Element => last_subscript(&path).to_owned(),
            Role::Member => hint::shown(
                self.language,
                &part.tree.type_name,
                &part.name,
                bits,
                alignment,
            ),
        };
        Member {
            depth,
            role: part.role,
            shape: part.tree.kind.clone(),
            name: part.name.clone(),
            path,
            type_name: part.tree.type_name.clone(),
            declaration,
            offset,
            size: match part.role {
                // An empty base has a size of one byte, but shares it.
                Role::Base if part.tree.parts.is_empty() => Some(0),
                _ => part.size(),
            },
            first_bit: part.bits.map(|(first, _)| first % 8),
            bits,
            alignment,
            has_virtual_base: part.tree.has_virtual_base,
            uses: Vec::new(),
        }
    }
}

/// `[1][2]` for an element of an array of several dimensions.
fn subscripts(kind: &TypeKind, index: u64) -> String {
    let TypeKind::Array { dimensions, .. } = kind else {
        return String::new();
    };
    let mut rest = index;
    let mut out = String::new();
    for count in dimensions
        .iter()
        .skip(1)
        .rev()
        .flatten()
        .filter(|count| **count > 0)
    {
        out.insert_str(0, &format!("[{}]", rest % count));
        rest /= count;
    }
    format!("[{rest}]{out}")
}

/// The subscripts at the end of a path.
fn last_subscript(path: &str) -> &str {
    let name = path.rfind('.').map_or(0, |at| at + 1);
    let tail = &path[name..];
    tail.find('[').map_or(tail, |at| &tail[at..])
}

/// Bytes of padding in a type, and in how many holes. What is unused in one arm of a union another arm may use.
pub(super) fn unused(tree: &TypeTree) -> (u64, u64) {
    let of_parts = || {
        tree.parts
            .iter()
            .map(|part| unused(&part.tree))
            .fold((0u64, 0u64), |sum, one| {
                (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
            })
    };
    match tree.kind {
        TypeKind::Scalar | TypeKind::Union | TypeKind::Variants => (0, 0),
        TypeKind::Structure => {
            let bits = tree.holes.iter().map(|hole| hole.bits);
            let bytes = bits.fold(0u64, u64::saturating_add) / 8;
            let inside = of_parts();
            (
                inside.0.saturating_add(bytes),
                inside.1.saturating_add(tree.holes.len() as u64),
            )
        }
        TypeKind::Array { .. } => {
            let inside = of_parts();
            let count = tree.count().unwrap_or(0);
            (
                inside.0.saturating_mul(count),
                inside.1.saturating_mul(count),
            )
        }
    }
}
