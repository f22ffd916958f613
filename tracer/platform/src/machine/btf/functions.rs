//! What functions take and return, and where pointers lie in types: what leads from a function's registers to the types
//! of its operands.

use std::collections::HashMap;

use super::{
    Btf, DEPTH, KIND_ARRAY, KIND_ENUM, KIND_ENUM64, KIND_FUNC, KIND_FUNC_PROTO, KIND_INT, KIND_PTR,
    KIND_STRUCT, KIND_UNION, MEMBER_BUDGET,
};

/// Bytes of a pointer, and of a register.
const WORD: u64 = size_of::<usize>() as u64;
/// Parameters that are passed in registers.
const MOST_PARAMETERS: usize = 6;

/// What lies at an offset of a type.
enum Word {
    /// A pointer to something with a type.
    Pointer(u32),
    /// Something else, or several things.
    Other,
    /// No member is there.
    Nothing,
}

impl Btf<'_> {
    /// The types of functions by name; `None` of a name that several functions of different types have.
    pub fn functions(&self) -> HashMap<Box<str>, Option<u32>> {
        let mut found: HashMap<Box<str>, Option<u32>> = HashMap::new();
        for offset in &self.offsets {
            let Some(entry) = self.entry_at(*offset as usize) else {
                continue;
            };
            if entry.kind() == KIND_FUNC {
                let ty = Some(entry.size_or_target);
                let known = found.entry(self.text(entry.name).into()).or_insert(ty);
                if *known != ty {
                    *known = None;
                }
            }
        }
        found
    }

    /// What each of the first parameters of a function type points to; `None` for one that is no pointer, or to nothing
    /// with members. Nothing after one that is not passed in one register.
    pub fn parameters(&self, function: u32) -> Vec<Option<u32>> {
        let Some(entry) = self.peel(function) else {
            return Vec::new();
        };
        if entry.kind() != KIND_FUNC_PROTO {
            return Vec::new();
        }
        // `struct btf_param`: name, type.
        let types = (0..entry.entries()).map_while(|index| self.word(entry.rest + index * 8 + 4));
        let in_registers = types.take(MOST_PARAMETERS).take_while(|&ty| {
            let kind = self.peel(ty).map(super::Type::kind);
            let is_plain = matches!(kind, Some(KIND_PTR | KIND_INT | KIND_ENUM | KIND_ENUM64));
            let is_small = self.size(ty).is_some_and(|size| size <= WORD);
            is_small && (is_plain || matches!(kind, Some(KIND_STRUCT | KIND_UNION)))
        });
        in_registers.map(|ty| self.pointee(ty)).collect()
    }

    /// What the pointer that a function type returns points to.
    pub fn result(&self, function: u32) -> Option<u32> {
        let entry = self.peel(function)?;
        let is_function = entry.kind() == KIND_FUNC_PROTO;
        self.pointee(entry.size_or_target).filter(|_| is_function)
    }

    /// What a pointer type points to, if that has members or is a pointer itself. A number behind a pointer says nothing
    /// that its access does not.
    fn pointee(&self, pointer: u32) -> Option<u32> {
        let entry = self.peel(pointer)?;
        let target = entry.size_or_target;
        let to = self.peel(target)?;
        let says = matches!(to.kind(), KIND_STRUCT | KIND_UNION | KIND_PTR);
        (entry.kind() == KIND_PTR && says).then(|| self.plain(target))
    }

    /// The type without qualifiers, and without the other names of one that has its own.
    fn plain(&self, type_id: u32) -> u32 {
        let mut at = type_id;
        let mut named = None;
        for _ in 0..DEPTH {
            let Some(entry) = self.entry(at) else { break };
            match entry.kind() {
                super::KIND_TYPEDEF => {
                    named = named.or(Some(at));
                    at = entry.size_or_target;
                }
                super::KIND_CONST
                | super::KIND_VOLATILE
                | super::KIND_RESTRICT
                | super::KIND_TYPE_TAG => at = entry.size_or_target,
                _ if self.string(entry.name).is_empty() => return named.unwrap_or(at),
                _ => return at,
            }
        }
        named.unwrap_or(at)
    }

    /// What the pointer at an offset of an object points to; nothing where something else may be there.
    pub fn pointer_at(&self, type_id: u32, offset: u64) -> Option<u32> {
        let mut budget = MEMBER_BUDGET;
        match self.word_at(type_id, offset, DEPTH, &mut budget)? {
            Word::Pointer(target) => Some(target),
            Word::Other | Word::Nothing => None,
        }
    }

    fn word_at(&self, type_id: u32, offset: u64, depth: u32, budget: &mut u32) -> Option<Word> {
        let depth = depth.checked_sub(1)?;
        let entry = self.peel(type_id)?;
        match entry.kind() {
            KIND_PTR => Some(match self.pointee(type_id) {
                Some(target) if offset == 0 => Word::Pointer(target),
                _ => Word::Other,
            }),
            KIND_ARRAY => {
                let (element, count) = self.array(entry)?;
                let stride = self.size(element).filter(|&stride| stride > 0)?;
                if offset / stride >= u64::from(count) {
                    return Some(Word::Nothing);
                }
                self.word_at(element, offset % stride, depth, budget)
            }
            KIND_STRUCT | KIND_UNION => {
                let mut found = Word::Nothing;
                for index in 0..entry.entries() {
                    *budget = budget.checked_sub(1)?;
                    let member = self.member_at(entry, index)?;
                    let start = member.bit / 8;
                    let size = match member.bits {
                        Some(bits) => (member.bit % 8 + bits).div_ceil(8),
                        None => self.size(member.type_id).unwrap_or(0),
                    };
                    let end = start.checked_add(size)?;
                    if offset >= end || offset + WORD <= start {
                        continue;
                    }
                    let inside = offset.checked_sub(start).filter(|_| member.bits.is_none());
                    let word = match inside {
                        Some(inside) => self.word_at(member.type_id, inside, depth, budget)?,
                        None => Word::Other,
                    };
                    found = match (found, word) {
                        (Word::Nothing, word) | (word, Word::Nothing) => word,
                        (Word::Pointer(one), Word::Pointer(other)) if one == other => {
                            Word::Pointer(one)
                        }
                        _ => Word::Other,
                    };
                }
                Some(found)
            }
            _ => Some(Word::Other),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
