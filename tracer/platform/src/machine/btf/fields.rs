//! Types in words, and from an offset in an object to the path of members, as the source would write the access.

use std::sync::Arc;

use symbolizer::{
    Missing,
    walk::{self, Array, Found, Members, Parts, Types, members_at},
};

use super::{
    Btf, DEPTH, KIND_ARRAY, KIND_CONST, KIND_ENUM, KIND_ENUM64, KIND_FLOAT, KIND_FUNC_PROTO,
    KIND_FWD, KIND_INT, KIND_PTR, KIND_RESTRICT, KIND_STRUCT, KIND_TYPE_TAG, KIND_TYPEDEF,
    KIND_UNION, KIND_VOLATILE, MEMBER_BUDGET, Type,
};

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

    /// The members as the walk wants them.
    fn described(&self, of: Type) -> Option<Members<u32>> {
        let mut fields = Vec::new();
        for index in 0..of.entries() {
            let member = self.member_at(of, index)?;
            let label = match &*self.text(member.name) {
                // Bits without a name are padding.
                "" if member.bits.is_some() => continue,
                "" => String::new(),
                name => format!(".{name}"),
            };
            let bits = || self.size(member.type_id).unwrap_or(0).saturating_mul(8);
            fields.push(walk::Member {
                label,
                bit_offset: member.bit,
                bit_size: Some(member.bits.unwrap_or_else(bits)),
                is_bit_field: member.bits.is_some(),
                is_base: false,
                ty: member.type_id,
                alignment: None,
            });
        }
        fields.sort_by_key(|member| member.bit_offset);
        Some(Members {
            fields,
            variants: Vec::new(),
            has_virtual_base: false,
        })
    }

    fn found(&self, type_id: u32, offset: u64, bytes: u64) -> Option<Found<u32>> {
        // Of more there is no number of bits.
        bytes.checked_mul(8)?;
        members_at(self, type_id, offset, bytes, false).ok()
    }

    /// Whether these bytes of an object of the type are whole members.
    pub fn is_whole(&self, type_id: u32, offset: u64, bytes: u64) -> bool {
        self.found(type_id, offset, bytes).is_some_and(|found| {
            matches!(found, Found::Leaves(_)) && found.bytes() == (offset..offset + bytes)
        })
    }

    /// What the bytes at `offset..offset + bytes` of an object of the type are, as [`Found::path`] says it. `None` beyond
    /// its end, and where types nest without one.
    pub fn field(&self, type_id: u32, offset: u64, bytes: u64) -> Option<String> {
        Some(self.found(type_id, offset, bytes)?.path())
    }
}

impl Types for Btf<'_> {
    type Type = u32;

    fn parts(&self, ty: u32, _: bool) -> Result<(Option<u64>, Parts<u32>), Missing> {
        let entry = self.peel(ty).ok_or(Missing::NoType)?;
        let members = || self.described(entry).ok_or(Missing::Malformed);
        let parts = match entry.kind() {
            KIND_STRUCT if entry.entries() == 1 && self.is_counter(ty) => {
                let only = members()?.fields.pop();
                Parts::Wrapped(only.ok_or(Missing::Malformed)?)
            }
            KIND_STRUCT => Parts::Structure(Arc::new(members()?)),
            KIND_UNION => Parts::Union(Arc::new(members()?)),
            KIND_ARRAY => {
                let (element, count) = self.array(entry).ok_or(Missing::Malformed)?;
                Parts::Elements(Array {
                    element,
                    stride: self.size(element).unwrap_or(0),
                    dimensions: vec![Some(u64::from(count))],
                })
            }
            _ => Parts::Nothing,
        };
        Ok((self.size(ty), parts))
    }
}

#[cfg(test)]
pub(super) mod tests;
