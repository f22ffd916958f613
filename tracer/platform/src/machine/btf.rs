//! Where fields lie in the running kernel's structs, from its BTF.
//!
//! Pure and total: every offset and length is checked, modifiers and anonymous structs are followed to
//! a fixed depth and within a fixed budget, so that any bytes give an answer or `None`.
//! The format is Documentation/bpf/btf.rst in the kernel's tree.

mod fields;
mod functions;
#[cfg(any(test, feature = "fixtures"))]
mod sample;
mod variables;

use std::{borrow::Cow, ops::Range};

pub use fields::KernelMember;
pub use variables::{GETS_CURRENT, KernelTypes, KernelVariable};

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
}

/// Where a PMU's sample lies behind a perf_event program's context, in bytes; each `None` where the kernel has
/// no such field. The structs were reordered again and again (6.1, 6.3, 6.8), so no table would do.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOffsets {
    /// `bpf_perf_event_data_kern.data`: the pointer to the sample. Without it none of the others is of use.
    pub sample: Option<u32>,
    /// `perf_sample_data.sample_flags`: which fields hold anything. Since 6.1; the fields were all set before.
    pub sample_flags: Option<u32>,
    /// `perf_sample_data.period`.
    pub period: Option<u32>,
    /// `perf_sample_data.addr`.
    pub addr: Option<u32>,
    /// `perf_sample_data.weight`.
    pub weight: Option<u32>,
    /// `perf_sample_data.data_src`.
    pub data_src: Option<u32>,
    /// `perf_sample_data.phys_addr`.
    pub phys_addr: Option<u32>,
}

impl MemoryOffsets {
    /// In these types.
    pub fn of(btf: &Btf<'_>) -> MemoryOffsets {
        let field = |name| btf.member_offset("perf_sample_data", &[name]);
        MemoryOffsets {
            sample: btf.member_offset("bpf_perf_event_data_kern", &["data"]),
            sample_flags: field("sample_flags"),
            period: field("period"),
            addr: field("addr"),
            weight: field("weight"),
            data_src: field("data_src"),
            phys_addr: field("phys_addr"),
        }
    }
}

/// All offsets of one kernel.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct KernelOffsets {
    /// In its tasks.
    pub task: TaskOffsets,
    /// In its PMU samples.
    pub memory: MemoryOffsets,
}

impl KernelOffsets {
    /// In the kernel that runs.
    pub fn of_running_kernel() -> Result<KernelOffsets, BtfError> {
        let bytes = std::fs::read(VMLINUX).map_err(|error| BtfError::Unreadable {
            path: VMLINUX,
            reason: error.to_string(),
        })?;
        let btf = Btf::parse(&bytes)?;
        Ok(KernelOffsets {
            task: TaskOffsets::of(&btf),
            memory: MemoryOffsets::of(&btf),
        })
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
#[cfg(any(test, feature = "fixtures"))]
pub fn sample_types() -> Vec<u8> {
    sample::types().bytes()
}

/// Prototypes for tests of those who use them.
#[cfg(any(test, feature = "fixtures"))]
pub fn sample_prototypes() -> Vec<u8> {
    sample::prototypes()
}

#[cfg(test)]
mod tests;
