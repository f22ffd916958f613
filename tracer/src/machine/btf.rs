//! Where fields lie in the running kernel's structs, from its BTF.
//!
//! Pure and total: every offset and length is checked, modifiers and anonymous structs are followed to
//! a fixed depth and within a fixed budget, so that any bytes give an answer or `None`.
//! The format is Documentation/bpf/btf.rst in the kernel's tree.

mod fields;
mod variables;

use std::{borrow::Cow, ops::Range};

pub use fields::KernelMember;
pub use variables::{KernelTypes, KernelVariable};

/// Why bytes are not usable BTF.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BtfError {
    /// No file to read.
    #[error(
        "{path} cannot be read ({reason}): without it forks are not followed and thread-local \
         addresses are unknown; use a kernel with CONFIG_DEBUG_INFO_BTF, and mount /sys"
    )]
    Unreadable {
        /// Which file.
        path: &'static str,
        /// The kernel's answer.
        reason: String,
    },
    /// Another format, or another machine's byte order.
    #[error("not BTF of this machine's byte order; is /sys/kernel/btf/vmlinux from this kernel?")]
    NotBtf,
    /// A length or an offset points outside.
    #[error("BTF cut short at {0}; is /sys/kernel/btf/vmlinux whole?")]
    Truncated(&'static str),
    /// A kind this reader does not know, hence of unknown length.
    #[error("BTF with the unknown kind {0}: the kernel is newer than this program; update it")]
    UnknownKind(u32),
}

/// Where the kernel publishes its BTF.
const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// The offsets that the kernel half needs, in bytes; each `None` where the struct has no such field.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TaskOffsets {
    /// `task_struct.tgid`.
    pub tgid: Option<u32>,
    /// The running thread's user thread pointer in `task_struct`.
    pub thread_pointer: Option<u32>,
}

impl TaskOffsets {
    /// In these types.
    pub fn of(btf: &Btf<'_>) -> TaskOffsets {
        let thread_pointer: &[&str] = if cfg!(target_arch = "aarch64") {
            &["thread", "uw", "tp_value"]
        } else {
            &["thread", "fsbase"]
        };
        TaskOffsets {
            tgid: btf.member_offset("task_struct", &["tgid"]),
            thread_pointer: btf.member_offset("task_struct", thread_pointer),
        }
    }

    /// In the kernel that runs.
    pub fn of_running_kernel() -> Result<TaskOffsets, BtfError> {
        let bytes = std::fs::read(VMLINUX).map_err(|error| BtfError::Unreadable {
            path: VMLINUX,
            reason: error.to_string(),
        })?;
        Ok(TaskOffsets::of(&Btf::parse(&bytes)?))
    }
}

const KIND_INT: u32 = 1;
const KIND_PTR: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FWD: u32 = 7;
const KIND_TYPEDEF: u32 = 8;
const KIND_VOLATILE: u32 = 9;
const KIND_CONST: u32 = 10;
const KIND_RESTRICT: u32 = 11;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_FLOAT: u32 = 16;
const KIND_DECL_TAG: u32 = 17;
const KIND_TYPE_TAG: u32 = 18;
const KIND_ENUM64: u32 = 19;

/// Bytes of `struct btf_type` and of `struct btf_member`.
const ENTRY_BYTES: usize = 12;

/// Deeper nesting of anonymous structs or of modifiers than any kernel has.
const DEPTH: u32 = 16;

/// More members than a search looks at in any kernel; stops types that contain themselves.
const MEMBER_BUDGET: u32 = 100_000;

/// Longer than any name: symbols of the kernel have at most 512 bytes (KSYM_NAME_LEN).
const LONGEST_NAME: usize = 512;

/// Types of one kernel.
#[derive(Debug)]
pub struct Btf<'a> {
    bytes: Cow<'a, [u8]>,
    types: Range<usize>,
    strings: Range<usize>,
    /// Offset in `types` of type id n + 1; id 0 is void.
    offsets: Vec<u32>,
}

/// `struct btf_type`.
#[derive(Debug, Clone, Copy)]
struct Type {
    name: u32,
    info: u32,
    size_or_target: u32,
    /// Offset in `types` of what follows.
    rest: usize,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn entries(self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// Whether member offsets carry a bit-field's width in their top byte.
    fn has_bit_fields(self) -> bool {
        self.info >> 31 == 1
    }

    fn is_composite(self) -> bool {
        matches!(self.kind(), KIND_STRUCT | KIND_UNION)
    }

    /// Bytes that follow the entry.
    fn rest_bytes(self) -> Result<usize, BtfError> {
        let entries = self.entries();
        match self.kind() {
            KIND_PTR | KIND_FWD | KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT
            | KIND_FUNC | KIND_FLOAT | KIND_TYPE_TAG => Ok(0),
            KIND_INT | KIND_VAR | KIND_DECL_TAG => Ok(4),
            KIND_ARRAY => Ok(12),
            KIND_ENUM | KIND_FUNC_PROTO => Ok(entries * 8),
            KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => Ok(entries * 12),
            unknown => Err(BtfError::UnknownKind(unknown)),
        }
    }
}

impl<'a> Btf<'a> {
    /// Checks the header and the extent of every type.
    pub fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, BtfError> {
        Btf::check(Cow::Borrowed(bytes))
    }

    /// As [`Btf::parse`], of bytes that are kept with it.
    pub fn owned(bytes: Vec<u8>) -> Result<Btf<'static>, BtfError> {
        Btf::check(Cow::Owned(bytes))
    }

    fn check(bytes: Cow<'a, [u8]>) -> Result<Btf<'a>, BtfError> {
        const MAGIC: u16 = 0xeb9f;
        let magic = bytes.first_chunk().map(|magic| u16::from_ne_bytes(*magic));
        if magic != Some(MAGIC) || bytes.get(2) != Some(&1) {
            return Err(BtfError::NotBtf);
        }
        let field = |offset| word(&bytes, offset).ok_or(BtfError::Truncated("the header"));
        let header = field(4)? as usize;
        let section = |offset: u32, len: u32, what| {
            let start = header.saturating_add(offset as usize);
            let section = start..start.saturating_add(len as usize);
            let is_there = bytes.get(section.clone()).is_some();
            is_there.then_some(section).ok_or(BtfError::Truncated(what))
        };
        let types = section(field(8)?, field(12)?, "the types")?;
        let strings = section(field(16)?, field(20)?, "the strings")?;
        let mut btf = Btf {
            bytes,
            types,
            strings,
            offsets: Vec::new(),
        };
        let end = btf.types.len();
        let mut offset = 0;
        while offset < end {
            let entry = btf
                .entry_at(offset)
                .ok_or(BtfError::Truncated("a type's entry"))?;
            btf.offsets.push(offset as u32);
            offset = entry.rest + entry.rest_bytes()?;
            if offset > end {
                return Err(BtfError::Truncated("a type's members"));
            }
        }
        Ok(btf)
    }

    /// Byte offset of a member from the start of the named struct; each further name is a member of
    /// the one before. Anonymous structs and unions are looked through. `None` for a bit-field.
    pub fn member_offset(&self, name: &str, path: &[&str]) -> Option<u32> {
        let mut composite = self.struct_named(name)?;
        let mut offset: u32 = 0;
        let mut budget = MEMBER_BUDGET;
        for (index, member) in path.iter().enumerate() {
            let (within, type_id) = self.member(composite, member, DEPTH, &mut budget)?;
            offset = offset.checked_add(within)?;
            if index + 1 < path.len() {
                composite = self.composite(type_id)?;
            }
        }
        (!path.is_empty()).then_some(offset)
    }

    fn struct_named(&self, name: &str) -> Option<Type> {
        self.offsets
            .iter()
            .filter_map(|offset| self.entry_at(*offset as usize))
            .find(|entry| entry.kind() == KIND_STRUCT && self.string(entry.name) == name.as_bytes())
    }

    /// Byte offset and type of a member, looking through anonymous ones.
    fn member(&self, of: Type, name: &str, depth: u32, budget: &mut u32) -> Option<(u32, u32)> {
        for index in 0..of.entries() {
            *budget = budget.checked_sub(1)?;
            let [member_name, type_id, encoded] = self.triple(of, index)?;
            let member_name = self.string(member_name);
            let (bits, is_bit_field) = if of.has_bit_fields() {
                (encoded & 0x00ff_ffff, encoded >> 24 != 0)
            } else {
                (encoded, encoded % 8 != 0)
            };
            let offset = bits / 8;
            if member_name == name.as_bytes() {
                return (!is_bit_field).then_some((offset, type_id));
            }
            if member_name.is_empty()
                && depth > 0
                && let Some(inner) = self.composite(type_id)
                && let Some((within, type_id)) = self.member(inner, name, depth - 1, budget)
            {
                return Some((offset.checked_add(within)?, type_id));
            }
        }
        None
    }

    /// The struct or union behind typedefs and qualifiers.
    fn composite(&self, type_id: u32) -> Option<Type> {
        self.peel(type_id).filter(|entry| entry.is_composite())
    }

    /// What is behind typedefs and qualifiers; `None` for void.
    fn peel(&self, mut type_id: u32) -> Option<Type> {
        for _ in 0..DEPTH {
            let entry = self.entry(type_id)?;
            match entry.kind() {
                KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_TYPE_TAG => {
                    type_id = entry.size_or_target;
                }
                _ => return Some(entry),
            }
        }
        None
    }

    /// A type by its id.
    fn entry(&self, type_id: u32) -> Option<Type> {
        let offset = *self.offsets.get(type_id.checked_sub(1)? as usize)?;
        self.entry_at(offset as usize)
    }

    /// The three words of a member (name, type, place) or of a section's variable (type, offset, size).
    fn triple(&self, of: Type, index: usize) -> Option<[u32; 3]> {
        let at = of.rest + index * ENTRY_BYTES;
        Some([self.word(at)?, self.word(at + 4)?, self.word(at + 8)?])
    }

    /// A word of the types.
    fn word(&self, offset: usize) -> Option<u32> {
        word(self.bytes.get(self.types.clone())?, offset)
    }

    fn entry_at(&self, offset: usize) -> Option<Type> {
        Some(Type {
            name: self.word(offset)?,
            info: self.word(offset + 4)?,
            size_or_target: self.word(offset + 8)?,
            rest: offset + ENTRY_BYTES,
        })
    }

    /// A name to be shown, as far as names of kernels go.
    fn text(&self, offset: u32) -> Cow<'_, str> {
        let name = self.string(offset);
        String::from_utf8_lossy(&name[..name.len().min(LONGEST_NAME)])
    }

    /// Up to the NUL; empty when it is not there.
    fn string(&self, offset: u32) -> &[u8] {
        let strings = self.bytes.get(self.strings.clone()).unwrap_or_default();
        let rest = strings.get(offset as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

/// Types and variables for tests of those who use them.
#[cfg(test)]
pub(crate) fn sample_types() -> Vec<u8> {
    fields::tests::sample().bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes BTF by hand: types in order of their ids, from 1.
    #[derive(Default)]
    pub(super) struct Writer {
        pub(super) types: Vec<u32>,
        strings: Vec<u8>,
    }

    impl Writer {
        pub(super) fn name(&mut self, name: &str) -> u32 {
            if self.strings.is_empty() {
                self.strings.push(0);
            }
            if name.is_empty() {
                return 0;
            }
            let offset = self.strings.len() as u32;
            self.strings.extend_from_slice(name.as_bytes());
            self.strings.push(0);
            offset
        }

        pub(super) fn int(&mut self) {
            let name = self.name("int");
            self.types.extend([name, KIND_INT << 24, 4, 32]);
        }

        pub(super) fn modifier(&mut self, kind: u32, name: &str, of: u32) {
            let name = self.name(name);
            self.types.extend([name, kind << 24, of]);
        }

        pub(super) fn composite(&mut self, kind: u32, name: &str, members: &[(&str, u32, u32)]) {
            let name = self.name(name);
            let info = kind << 24 | members.len() as u32;
            self.types.extend([name, info, 64]);
            for (member, type_id, bits) in members {
                let member = self.name(member);
                self.types.extend([member, *type_id, *bits]);
            }
        }

        /// An entry with all its words, in the order of the format.
        pub(super) fn entry(&mut self, name: &str, info: u32, rest: &[u32]) {
            let name = self.name(name);
            self.types.extend([name, info]);
            self.types.extend(rest);
        }

        /// A struct or union of some bytes: name, type, first bit, and bits of a bit-field.
        pub(super) fn sized(
            &mut self,
            kind: u32,
            name: &str,
            size: u32,
            members: &[(&str, u32, u32, u32)],
        ) {
            self.entry(name, 1 << 31 | kind << 24 | members.len() as u32, &[size]);
            for (member, type_id, bit, bits) in members {
                let member = self.name(member);
                self.types.extend([member, *type_id, bits << 24 | bit]);
            }
        }

        pub(super) fn array(&mut self, element: u32, count: u32) {
            self.entry("", KIND_ARRAY << 24, &[0, element, 1, count]);
        }

        /// A section: variable's type, offset, bytes.
        pub(super) fn section(&mut self, name: &str, variables: &[[u32; 3]]) {
            self.entry(name, KIND_DATASEC << 24 | variables.len() as u32, &[0]);
            self.types.extend(variables.as_flattened());
        }

        pub(super) fn bytes(&self) -> Vec<u8> {
            let types: Vec<u8> = self
                .types
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect();
            let mut bytes = 0xeb9f_u16.to_ne_bytes().to_vec();
            bytes.extend([1, 0]);
            let (types_len, strings_len) = (types.len() as u32, self.strings.len() as u32);
            for word in [24, 0, types_len, types_len, strings_len] {
                bytes.extend(u32::to_ne_bytes(word));
            }
            bytes.extend(types);
            bytes.extend(&self.strings);
            bytes
        }
    }

    /// `struct outer { int first; struct { union { int deep; }; }; const wrapped inner; }` with
    /// `typedef struct { int leaf; int bits: 3; } wrapped`.
    fn sample() -> Vec<u8> {
        let mut writer = Writer::default();
        writer.int();
        writer.composite(KIND_UNION, "", &[("deep", 1, 0)]);
        writer.composite(KIND_STRUCT, "", &[("pad", 1, 0), ("", 2, 32)]);
        writer.composite(KIND_STRUCT, "", &[("leaf", 1, 32), ("bits", 1, 67)]);
        writer.modifier(KIND_TYPEDEF, "wrapped", 4);
        writer.modifier(KIND_CONST, "", 5);
        let members = [("first", 1, 0), ("", 3, 64), ("inner", 6, 128)];
        writer.composite(KIND_STRUCT, "outer", &members);
        writer.bytes()
    }

    #[test]
    fn members_are_found_through_anonymous_and_named_structs() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        let offset = |path: &[&str]| btf.member_offset("outer", path);
        assert_eq!(offset(&["first"]), Some(0));
        assert_eq!(offset(&["deep"]), Some(12));
        assert_eq!(offset(&["inner"]), Some(16));
        assert_eq!(offset(&["inner", "leaf"]), Some(20));
    }

    #[test]
    fn what_is_not_there_is_none() {
        let bytes = sample();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.member_offset("outer", &["absent"]), None);
        assert_eq!(btf.member_offset("outer", &["first", "leaf"]), None);
        assert_eq!(btf.member_offset("outer", &["inner", "bits"]), None);
        assert_eq!(btf.member_offset("outer", &[]), None);
        assert_eq!(btf.member_offset("absent", &["first"]), None);
    }

    #[test]
    fn a_struct_that_contains_itself_ends() {
        let mut writer = Writer::default();
        let members = [("", 1, 0); 200];
        writer.composite(KIND_STRUCT, "loop", &members);
        writer.modifier(KIND_CONST, "", 2);
        writer.composite(KIND_STRUCT, "modifiers", &[("", 2, 0), ("end", 2, 0)]);
        let bytes = writer.bytes();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.member_offset("loop", &["absent"]), None);
        assert_eq!(btf.member_offset("modifiers", &["end", "further"]), None);
        assert_eq!(btf.member_offset("modifiers", &["end"]), Some(0));
    }

    #[test]
    fn other_formats_and_newer_kinds_are_refused() {
        assert_eq!(Btf::parse(b"").err(), Some(BtfError::NotBtf));
        assert_eq!(Btf::parse(b"\x7fELF\x02\x01").err(), Some(BtfError::NotBtf));
        let mut swapped = sample();
        swapped.swap(0, 1);
        assert_eq!(Btf::parse(&swapped).err(), Some(BtfError::NotBtf));
        let mut writer = Writer::default();
        writer.modifier(31, "future", 0);
        let future = writer.bytes();
        assert_eq!(Btf::parse(&future).err(), Some(BtfError::UnknownKind(31)));
    }

    #[test]
    fn every_shorter_prefix_is_refused() {
        let bytes = sample();
        for len in 0..bytes.len() {
            assert!(Btf::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    proptest::proptest! {
        #[test]
        fn damaged_bytes_give_an_answer_or_none(
            damage in proptest::collection::vec((0usize..400, proptest::num::u8::ANY), 1..6),
        ) {
            let mut bytes = sample();
            for (at, value) in damage {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            if let Ok(btf) = Btf::parse(&bytes) {
                for path in [&["deep"][..], &["inner", "leaf"], &["absent"]] {
                    let _ = btf.member_offset("outer", path);
                }
            }
        }
    }

    #[test]
    fn the_running_kernel_has_the_fields_the_sampler_needs() {
        let offsets = match TaskOffsets::of_running_kernel() {
            Ok(offsets) => offsets,
            Err(error) => return println!("NOT RUN: {error}"),
        };
        // The first 4 KiB of a struct of some 10 KiB, 4-byte aligned; `thread` is its last member.
        let tgid = offsets.tgid.unwrap();
        assert!(tgid % 4 == 0 && tgid > 16 && tgid < 8192, "{tgid}");
        let thread_pointer = offsets.thread_pointer.unwrap();
        assert!(
            thread_pointer % 8 == 0 && thread_pointer > tgid,
            "{thread_pointer}"
        );
    }
}
