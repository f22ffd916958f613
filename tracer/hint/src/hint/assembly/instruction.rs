//! What an instruction does to memory, in words for every processor.

use super::{a64, line::Marks, operand::Operand, x86};

/// What the instruction on a line does to memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Does<'t> {
    /// It reads this operand and does nothing else to memory.
    Loads {
        text: &'t str,
        operand: Operand,
        /// Bytes, where the mnemonic or a register tells.
        width: Option<u8>,
    },
    /// It prefetches this operand for writing.
    PrefetchesOwn(&'t str),
    /// It reads memory, and is not to be touched.
    Keeps(Kept),
    /// No read of memory.
    Nothing,
}

/// Why an instruction that reads memory gets no prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kept {
    /// It writes what it read: it fetches for ownership itself.
    ReadModifyWrite,
    /// Its segment's base is not in the operand.
    Segment,
    /// A string instruction.
    String,
    /// A gather, or masked lanes: what it reads depends on registers.
    Masked,
    /// A push, pop, call or jump through memory.
    Control,
    /// A slot that the linker fills.
    LinkerSlot,
    /// Written by hand in the source (`asm`), in a macro, or beside other statements on one line.
    ByHand,
    /// No prefetch has this form of address.
    NoSuchForm,
    /// Not in this tool's list of loads.
    Unknown,
}

impl Kept {
    /// The reason as a phrase after "the instruction there".
    pub fn phrase(self) -> &'static str {
        match self {
            Kept::ReadModifyWrite => "also writes, and so fetches for ownership itself",
            Kept::Segment => "is relative to a segment (thread-local memory)",
            Kept::String => "is a string instruction",
            Kept::Masked => "reads what masks or vectors of addresses choose",
            Kept::Control => "pushes, pops, calls or jumps through memory",
            Kept::LinkerSlot => "reads a slot that the linker fills",
            Kept::ByHand => "is inline assembly, in a macro, or shares its line",
            Kept::NoSuchForm => "has a form of address that no prefetch has",
            Kept::Unknown => "is not known to only read memory",
        }
    }
}

/// Processors whose assembly is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Processor {
    X86,
    A64,
}

impl Processor {
    /// By the first line that is of one of them only; x86 where none is.
    pub(super) fn of(text: &[u8]) -> Processor {
        let holds = |line: &[u8], what: &[u8]| line.windows(what.len()).any(|part| part == what);
        for line in text.split(|byte| *byte == b'\n') {
            let start = line.trim_ascii_start();
            if start.starts_with(b".arch armv") || start.starts_with(b".arch\tarmv") {
                return Processor::A64;
            }
            if start.starts_with(b".") || start.starts_with(b"#") || start.starts_with(b"/") {
                continue;
            }
            if holds(line, b"%r") || holds(line, b"%e") || holds(line, b"%xmm") {
                return Processor::X86;
            }
            if holds(line, b"[x") || holds(line, b"[sp") {
                return Processor::A64;
            }
        }
        Processor::X86
    }

    pub(super) fn marks(self) -> Marks {
        match self {
            Processor::X86 => Marks::X86,
            Processor::A64 => Marks::A64,
        }
    }

    /// What an instruction without its comment does.
    pub(super) fn does(self, statement: &str) -> Does<'_> {
        match self {
            Processor::X86 => x86::does(statement),
            Processor::A64 => a64::does(statement),
        }
    }

    /// An operand as the assembler writes it.
    pub(super) fn operand(self, text: &str) -> Option<Operand> {
        match self {
            Processor::X86 => Operand::parse(text),
            Processor::A64 => a64::operand(text),
        }
    }

    /// The line that fetches an operand for ownership.
    pub(super) fn prefetch(self, operand: &str) -> String {
        match self {
            Processor::X86 => format!("{} {operand}", super::super::load::X86),
            Processor::A64 => a64::prefetch(operand),
        }
    }
}
