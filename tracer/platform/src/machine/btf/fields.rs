//! Types in words, and from an offset in an object to the path of members, as the source would write the access.

use super::{
    Btf, DEPTH, KIND_ARRAY, KIND_CONST, KIND_ENUM, KIND_ENUM64, KIND_FLOAT, KIND_FUNC_PROTO,
    KIND_FWD, KIND_INT, KIND_PTR, KIND_RESTRICT, KIND_STRUCT, KIND_TYPE_TAG, KIND_TYPEDEF,
    KIND_UNION, KIND_VOLATILE, MEMBER_BUDGET, Type,
};

/// Deeper nesting of members in members than any kernel has.
const DEEPEST: u32 = 64;
/// Members told apart in one access; more are summed up as "from the first to the last".
const MOST_LEAVES: usize = 64;
/// Names given for one place in a union.
const MOST_ALTERNATIVES: usize = 3;
/// Members listed of one type.
const MOST_MEMBERS: usize = 1 << 14;

/// Types of one member, which the source uses by functions that are given the whole.
const COUNTERS: [&str; 8] = [
    "atomic_t",
    "atomic64_t",
    "atomic_long_t",
    "refcount_t",
    "file_ref_t",
    "rcuref_t",
    "local_t",
    "local64_t",
];

/// A member of a struct, those of anonymous structs and unions in it included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMember {
    /// As the source has it.
    pub name: String,
    /// Bytes from the struct's start.
    pub offset: u64,
    /// Bytes; those touched by a bit-field.
    pub size: u64,
    /// Its type.
    pub type_id: u32,
    /// It is a bit-field.
    pub is_bit_field: bool,
    /// It is declared in an anonymous member, not in the struct itself.
    pub is_inner: bool,
}

/// `struct btf_member`.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) name: u32,
    pub(super) type_id: u32,
    /// First bit from the start of the type around it.
    pub(super) bit: u64,
    /// How many, of a bit-field.
    pub(super) bits: Option<u64>,
}

impl Btf<'_> {
    /// The type as C names it: `struct rq`, `const char *`, `long [2][4]`.
    pub fn type_name(&self, type_id: u32) -> String {
        self.name_within(type_id, DEPTH)
    }

    fn name_within(&self, type_id: u32, depth: u32) -> String {
        let (Some(entry), Some(depth)) = (self.entry(type_id), depth.checked_sub(1)) else {
            return if type_id == 0 { "void" } else { "?" }.to_owned();
        };
        let target = || self.name_within(entry.size_or_target, depth);
        let tagged = |keyword: &str| match &*self.text(entry.name) {
            "" => format!("(anonymous {keyword})"),
            name => format!("{keyword} {name}"),
        };
        let qualified = |qualifier: &str| {
            let target = target();
            if target.ends_with('*') {
                format!("{target}{qualifier}")
            } else {
                format!("{qualifier} {target}")
            }
        };
        match entry.kind() {
            KIND_STRUCT => tagged("struct"),
            KIND_UNION => tagged("union"),
            // The kind flag of a forward declaration says that it is a union.
            KIND_FWD => tagged(if entry.has_bit_fields() {
                "union"
            } else {
                "struct"
            }),
            KIND_ENUM | KIND_ENUM64 => tagged("enum"),
            KIND_CONST => qualified("const"),
            KIND_VOLATILE => qualified("volatile"),
            KIND_RESTRICT => qualified("restrict"),
            KIND_TYPE_TAG => target(),
            KIND_FUNC_PROTO => format!("{} ()", target()),
            KIND_PTR => {
                let target = target();
                match target.strip_suffix("()") {
                    Some(result) => format!("{result}(*)()"),
                    None if target.ends_with('*') => format!("{target}*"),
                    None => format!("{target} *"),
                }
            }
            KIND_ARRAY => match self.array(entry) {
                Some((element, count)) => {
                    let name = self.name_within(element, depth);
                    // Outer dimensions come first.
                    match name.find(" [") {
                        Some(at) => format!("{} [{count}]{}", &name[..at], &name[at + 1..]),
                        None => format!("{name} [{count}]"),
                    }
                }
                None => "?".to_owned(),
            },
            _ => self.text(entry.name).into_owned(),
        }
    }

    /// Bytes of an object of the type; `None` for void, functions, and types that are only declared.
    pub fn size(&self, type_id: u32) -> Option<u64> {
        let mut count = 1u64;
        let mut type_id = type_id;
        for _ in 0..DEPTH {
            let entry = self.peel(type_id)?;
            match entry.kind() {
                KIND_INT | KIND_STRUCT | KIND_UNION | KIND_ENUM | KIND_ENUM64 | KIND_FLOAT => {
                    return count.checked_mul(u64::from(entry.size_or_target));
                }
                KIND_PTR => return count.checked_mul(size_of::<usize>() as u64),
                KIND_ARRAY => {
                    let (element, elements) = self.array(entry)?;
                    count = count.checked_mul(u64::from(elements))?;
                    type_id = element;
                }
                _ => return None,
            }
        }
        None
    }

    /// Element and number of elements, of an array.
    pub fn elements(&self, type_id: u32) -> Option<(u32, u32)> {
        self.array(self.peel(type_id)?)
    }

    pub(super) fn array(&self, entry: Type) -> Option<(u32, u32)> {
        let is_array = entry.kind() == KIND_ARRAY;
        // `struct btf_array`: element, type of the index, how many.
        let [element, _, count] = self.triple(entry, 0).filter(|_| is_array)?;
        Some((element, count))
    }

    /// The members of a struct or union; of others, none.
    pub fn members(&self, type_id: u32) -> Vec<KernelMember> {
        let mut list = Vec::new();
        let mut budget = MEMBER_BUDGET;
        // What was read before damage stands.
        let _ = self.list(type_id, 0, DEPTH, &mut budget, &mut list);
        list.sort_by_key(|member| member.offset);
        list
    }

    fn list(
        &self,
        type_id: u32,
        base: u64,
        depth: u32,
        budget: &mut u32,
        list: &mut Vec<KernelMember>,
    ) -> Option<()> {
        let entry = self.composite(type_id)?;
        let depth = depth.checked_sub(1)?;
        for index in 0..entry.entries() {
            *budget = budget.checked_sub(1)?;
            let member = self.member_at(entry, index)?;
            let offset = base.checked_add(member.bit / 8)?;
            let name = self.text(member.name);
            if name.is_empty() {
                if self.composite(member.type_id).is_some() {
                    self.list(member.type_id, offset, depth, budget, list)?;
                }
                continue;
            }
            let size = match member.bits {
                Some(bits) => Some((member.bit % 8 + bits).div_ceil(8)),
                None => self.size(member.type_id),
            };
            if let Some(size) = size
                && list.len() < MOST_MEMBERS
            {
                list.push(KernelMember {
                    name: name.into_owned(),
                    offset,
                    size,
                    type_id: member.type_id,
                    is_bit_field: member.bits.is_some(),
                    is_inner: depth + 1 < DEPTH,
                });
            }
        }
        Some(())
    }

    pub(super) fn member_at(&self, of: Type, index: usize) -> Option<Member> {
        let [name, type_id, encoded] = self.triple(of, index)?;
        let (mut bit, mut bits) = (u64::from(encoded), None);
        if of.has_bit_fields() {
            bit = u64::from(encoded & 0x00ff_ffff);
            bits = Some(u64::from(encoded >> 24)).filter(|&bits| bits > 0);
        } else if let Some(entry) = self.peel(type_id)
            && entry.kind() == KIND_INT
            && let Some(integer) = self.word(entry.rest)
        {
            // Before the flag, a bit-field had an integer type of its own: BTF_INT_OFFSET and BTF_INT_BITS.
            let width = u64::from(integer & 0xff);
            if width > 0 && width != 8 * u64::from(entry.size_or_target) || bit % 8 != 0 {
                bit += u64::from(integer >> 16 & 0xff);
                bits = Some(width);
            }
        }
        Some(Member {
            name,
            type_id,
            bit,
            bits,
        })
    }

    /// Whether a type is another name for a counter, at which paths end.
    fn is_counter(&self, mut type_id: u32) -> bool {
        for _ in 0..DEPTH {
            let Some(entry) = self.entry(type_id) else {
                return false;
            };
            match entry.kind() {
                KIND_TYPEDEF => {
                    let name = self.string(entry.name);
                    if COUNTERS.iter().any(|counter| name == counter.as_bytes()) {
                        return true;
                    }
                }
                KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_TYPE_TAG => {}
                _ => return false,
            }
            type_id = entry.size_or_target;
        }
        false
    }

    fn found(&self, type_id: u32, offset: u64, bytes: u64) -> Option<Found> {
        let start = offset.checked_mul(8)?;
        let mut walker = Walker {
            btf: self,
            start,
            end: bytes.max(1).checked_mul(8)?.checked_add(start)?,
            budget: MEMBER_BUDGET,
        };
        if offset >= self.size(type_id)? {
            return None;
        }
        walker.walk(type_id, 0, String::new(), 0)
    }

    /// Whether these bytes of an object of the type are whole members.
    pub fn is_whole(&self, type_id: u32, offset: u64, bytes: u64) -> bool {
        let Some(Found::Leaves(leaves)) = self.found(type_id, offset, bytes) else {
            return false;
        };
        let start = leaves.iter().map(|leaf| leaf.start).min();
        let end = leaves.iter().map(|leaf| leaf.end).max();
        let bits = |bytes: u64| bytes.checked_mul(8);
        start.is_some() && start == bits(offset) && end == offset.checked_add(bytes).and_then(bits)
    }

    /// What the bytes at `offset..offset + bytes` of an object of the type are: `.hits`, `[3].hits`, `.a and .b`, `.a to .z`,
    /// `.i or .f` (a union), `between .misses and .total` (padding); empty for an object without parts. `None` beyond
    /// its end, and where types nest without one.
    pub fn field(&self, type_id: u32, offset: u64, bytes: u64) -> Option<String> {
        match self.found(type_id, offset, bytes)? {
            Found::Leaves(leaves) => Some(path_of(&leaves)),
            Found::Hole(Some(before), Some(after)) => Some(format!("between {before} and {after}")),
            Found::Hole(Some(before), None) => Some(format!("after {before}")),
            Found::Hole(None, Some(after)) => Some(format!("before {after}")),
            Found::Hole(None, None) => Some("padding".to_owned()),
        }
    }
}

/// A member without parts.
struct Leaf {
    path: String,
    /// Bits from the start of the whole object.
    start: u64,
    end: u64,
}

enum Found {
    Leaves(Vec<Leaf>),
    /// No member, but maybe one before and one behind.
    Hole(Option<String>, Option<String>),
}

/// Members side by side, in words.
fn path_of(leaves: &[Leaf]) -> String {
    match leaves {
        [] => String::new(),
        [leaf] => leaf.path.clone(),
        [first, second] => format!("{} and {}", first.path, second.path),
        [first, .., last] => format!("{} to {}", first.path, last.path),
    }
}

/// One question's walk. Types may share members, so that their tree is far larger than the file: members are counted.
struct Walker<'b, 'a> {
    btf: &'b Btf<'a>,
    /// The accessed bits.
    start: u64,
    end: u64,
    budget: u32,
}

impl Walker<'_, '_> {
    /// What an object of the type that begins at bit `base` has in the window.
    fn walk(&mut self, type_id: u32, base: u64, path: String, depth: u32) -> Option<Found> {
        self.budget = self.budget.checked_sub(1)?;
        if depth > DEEPEST {
            return None;
        }
        match self.btf.peel(type_id) {
            Some(entry)
                if entry.kind() == KIND_STRUCT
                    && entry.entries() == 1
                    && self.btf.is_counter(type_id) =>
            {
                let inner = self.btf.member_at(entry, 0)?;
                self.walk(inner.type_id, base.checked_add(inner.bit)?, path, depth + 1)
            }
            Some(entry) if entry.kind() == KIND_STRUCT => {
                self.structure(entry, base, &path, depth, 0..entry.entries())
            }
            Some(entry) if entry.kind() == KIND_UNION => self.union(entry, base, &path, depth),
            Some(entry) if entry.kind() == KIND_ARRAY => self.array(entry, base, &path, depth),
            _ => {
                let bits = self.btf.size(type_id).unwrap_or(0).checked_mul(8)?;
                Some(Found::Leaves(vec![Leaf {
                    path,
                    start: base,
                    end: base.checked_add(bits)?,
                }]))
            }
        }
    }

    fn structure(
        &mut self,
        entry: Type,
        base: u64,
        path: &str,
        depth: u32,
        members: std::ops::Range<usize>,
    ) -> Option<Found> {
        let mut leaves: Vec<Leaf> = Vec::new();
        // The nearest members on both sides, in case the window turns out to be a hole.
        let mut before: Option<(u64, String)> = None;
        let mut after: Option<(u64, String)> = None;
        let mut hole = None;
        for index in members {
            self.budget = self.budget.checked_sub(1)?;
            let member = self.btf.member_at(entry, index)?;
            let start = base.checked_add(member.bit)?;
            let bits = match member.bits {
                Some(bits) => bits,
                None => self.btf.size(member.type_id).unwrap_or(0).checked_mul(8)?,
            };
            let end = start.checked_add(bits)?;
            let name = self.btf.text(member.name);
            let inner = match &*name {
                "" => path.to_owned(),
                name => format!("{path}.{name}"),
            };
            if end <= self.start || start >= self.end || bits == 0 {
                if name.is_empty() || bits == 0 {
                    continue;
                }
                if end <= self.start && before.as_ref().is_none_or(|known| known.0 <= end) {
                    before = Some((end, inner));
                } else if start >= self.end && after.as_ref().is_none_or(|known| start < known.0) {
                    after = Some((start, inner));
                }
                continue;
            }
            let found = if member.bits.is_some() {
                // Bits without a name are padding.
                if name.is_empty() {
                    continue;
                }
                let path = inner;
                Found::Leaves(vec![Leaf { path, start, end }])
            } else {
                self.walk(member.type_id, start, inner, depth + 1)?
            };
            match found {
                Found::Leaves(found) if leaves.len() < MOST_LEAVES => leaves.extend(found),
                Found::Leaves(found) => {
                    leaves.pop();
                    leaves.extend(found.into_iter().next_back());
                }
                Found::Hole(before, after) => hole = hole.or(Some((before, after))),
            }
        }
        if !leaves.is_empty() {
            return Some(Found::Leaves(leaves));
        }
        let (inner_before, inner_after) = hole.unwrap_or((None, None));
        Some(Found::Hole(
            inner_before.or(before.map(|(_, path)| path)),
            inner_after.or(after.map(|(_, path)| path)),
        ))
    }

    /// Members in the same place: the one that is exactly the accessed bytes, else all that could be meant.
    fn union(&mut self, entry: Type, base: u64, path: &str, depth: u32) -> Option<Found> {
        let mut candidates: Vec<Vec<Leaf>> = Vec::new();
        let mut hole = None;
        for index in 0..entry.entries() {
            match self.structure(entry, base, path, depth, index..index + 1)? {
                Found::Leaves(leaves) => candidates.push(leaves),
                found @ Found::Hole(..) => hole = hole.or(Some(found)),
            }
            if candidates.len() > MOST_LEAVES {
                break;
            }
        }
        let window = (self.start, self.end);
        let exact =
            |leaves: &Vec<Leaf>| matches!(&leaves[..], [leaf] if (leaf.start, leaf.end) == window);
        if candidates.iter().any(exact) {
            candidates.retain(exact);
        }
        match candidates.len() {
            0 => Some(hole.unwrap_or(Found::Hole(None, None))),
            1 => candidates.pop().map(Found::Leaves),
            count => {
                let all = || candidates.iter().flatten();
                let start = all().map(|leaf| leaf.start).min()?;
                let end = all().map(|leaf| leaf.end).max()?;
                let mut paths: Vec<String> = candidates.iter().map(|arm| path_of(arm)).collect();
                paths.dedup();
                // A long list says less than the name of the union.
                let path = if count > MOST_ALTERNATIVES && !path.is_empty() {
                    path.to_owned()
                } else {
                    paths.truncate(MOST_ALTERNATIVES);
                    paths.join(" or ")
                };
                Some(Found::Leaves(vec![Leaf { path, start, end }]))
            }
        }
    }

    /// An element and what is in it; of an access that spans several, the first, the second and the last of them.
    fn array(&mut self, entry: Type, base: u64, path: &str, depth: u32) -> Option<Found> {
        let (element, count) = self.btf.array(entry)?;
        let stride = self.btf.size(element)?.checked_mul(8)?;
        let last = u64::from(count).checked_sub(1)?;
        let first = self.start.saturating_sub(base).checked_div(stride)?;
        let last = (self.end - 1)
            .saturating_sub(base)
            .checked_div(stride)?
            .min(last);
        let mut leaves = Vec::new();
        let mut hole = None;
        let mut indexes = vec![first, (first + 1).min(last), last];
        indexes.dedup();
        for index in indexes {
            let start = base.checked_add(index.checked_mul(stride)?)?;
            match self.walk(element, start, format!("{path}[{index}]"), depth + 1)? {
                Found::Leaves(found) => leaves.extend(found),
                found @ Found::Hole(..) => hole = hole.or(Some(found)),
            }
        }
        if leaves.is_empty() {
            return hole;
        }
        Some(Found::Leaves(leaves))
    }
}

#[cfg(test)]
pub(super) mod tests;
