//! Instructions that read memory, and whether a prefetch of the same bytes stands in front of them.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

/// An instruction with one memory operand that it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRead {
    /// Its address in the file.
    pub address: u64,
    /// It only reads, by an operand whose registers say what.
    pub plain: bool,
    /// The operand.
    pub operand: CodeOperand,
    /// Bytes, where the operand has a size.
    pub size: Option<u8>,
    /// What stands in front of it.
    pub before: Before,
}

/// A memory operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeOperand {
    /// Base register, in small letters.
    pub base: Option<String>,
    /// Index register.
    pub index: Option<String>,
    /// What the index is multiplied by.
    pub scale: u8,
    /// The number; of an operand that is relative to the instruction, the address.
    pub displacement: i64,
}

/// Instructions up to which a prefetch is in front of a load: compilers that know it as an instruction move others between.
const NEAREST: usize = 8;

/// What stands in front of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// A prefetch for ownership of the same operand.
    FetchesOwn,
    /// Another prefetch of it, by this mnemonic.
    Fetches(String),
    /// Neither.
    Nothing,
}

/// The reading instructions of a stretch of code, which begins at `address`. Bytes that are no code are stepped over.
pub fn reads(code: &[u8], address: u64) -> Vec<CodeRead> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let mut found = Vec::new();
    let mut fetched = Fetched::default();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if let Some(plain) = reading(&instruction, &mut factory) {
            found.push(CodeRead {
                address: instruction.ip(),
                plain,
                operand: operand(&instruction),
                size: u8::try_from(instruction.memory_size().size())
                    .ok()
                    .filter(|size| *size > 0),
                before: fetched.before(&instruction),
            });
        }
        fetched.step(&instruction, &mut factory);
    }
    found
}

/// What each instruction of a function prefetches for ownership; of padding, what the instruction before it does.
pub fn fetches(code: &[u8], address: u64) -> Vec<Option<CodeOperand>> {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut last = None;
    let fetched = |instruction: Instruction| {
        if instruction.mnemonic() != Mnemonic::Nop {
            let fetches = instruction.mnemonic() == Mnemonic::Prefetchw;
            last = fetches.then(|| operand(&instruction));
        }
        last.clone()
    };
    decoder.into_iter().map(fetched).collect()
}

/// Whether an explicit operand is read, and then whether that is all.
fn reading(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<bool> {
    let operands =
        (0..instruction.op_count()).filter(|number| instruction.op_kind(*number) == OpKind::Memory);
    if operands.count() != 1 || is_hint(instruction) {
        return None;
    }
    let info = factory.info(instruction);
    let mut reads = false;
    let mut writes = false;
    for memory in info.used_memory() {
        match memory.access() {
            OpAccess::Read | OpAccess::CondRead => reads = true,
            OpAccess::Write | OpAccess::CondWrite => writes = true,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => (reads, writes) = (true, true),
            OpAccess::None | OpAccess::NoMemAccess => {}
        }
    }
    let leaves = instruction.flow_control() != FlowControl::Next;
    let by_segment = matches!(instruction.memory_segment(), Register::FS | Register::GS);
    let plain = !writes && !leaves && !by_segment && !super::operand::is_masked(instruction);
    reads.then_some(plain)
}

fn is_hint(instruction: &Instruction) -> bool {
    is_prefetch(instruction) || matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
}

fn is_prefetch(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Prefetch
            | Mnemonic::Prefetchw
            | Mnemonic::Prefetchwt1
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta
    )
}

/// The prefetches that the next instruction has in front of it: on straight code, and of what it would fetch as well.
#[derive(Default)]
struct Fetched {
    /// With the number of instructions since.
    all: Vec<(Instruction, usize)>,
}

impl Fetched {
    fn before(&self, instruction: &Instruction) -> Before {
        let operand_of = operand(instruction);
        let same = |(fetch, _): &&(Instruction, usize)| operand(fetch) == operand_of;
        let mut same = self.all.iter().filter(same).map(|(fetch, _)| fetch);
        let Some(last) = same.clone().next_back() else {
            return Before::Nothing;
        };
        if same.any(|fetch| fetch.mnemonic() == Mnemonic::Prefetchw) {
            return Before::FetchesOwn;
        }
        Before::Fetches(format!("{:?}", last.mnemonic()).to_ascii_lowercase())
    }

    fn step(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) {
        if instruction.is_invalid() || instruction.flow_control() != FlowControl::Next {
            self.all.clear();
            return;
        }
        if is_prefetch(instruction) {
            self.all.push((*instruction, 0));
            return;
        }
        if self.all.is_empty() {
            return;
        }
        for (_, since) in &mut self.all {
            *since += 1;
        }
        let info = factory.info(instruction);
        let is_write = |access| {
            matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
        };
        let written = info.used_registers().iter();
        let written = written.filter(|used| is_write(used.access()));
        let written: Vec<Register> = written
            .map(|used| used.register().full_register())
            .collect();
        self.all.retain(|(fetch, since)| {
            let by = [fetch.memory_base(), fetch.memory_index()];
            *since < NEAREST && !by.iter().any(|by| written.contains(&by.full_register()))
        });
    }
}

fn operand(instruction: &Instruction) -> CodeOperand {
    let name = |register: Register| {
        (register != Register::None).then(|| format!("{register:?}").to_ascii_lowercase())
    };
    let index = name(instruction.memory_index());
    CodeOperand {
        base: name(instruction.memory_base()),
        scale: if index.is_some() {
            instruction.memory_index_scale() as u8
        } else {
            1
        },
        index,
        displacement: instruction.memory_displacement64() as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Bytes as GNU as writes them.
    const PREFETCHW: &[u8] = &[0x0f, 0x0d, 0x4f, 0x08]; // prefetchw 8(%rdi)
    const PREFETCHT0: &[u8] = &[0x0f, 0x18, 0x4f, 0x08]; // prefetcht0 8(%rdi)
    const LOAD: &[u8] = &[0x48, 0x8b, 0x47, 0x08]; // mov 8(%rdi),%rax
    const OTHER: &[u8] = &[0x48, 0x8b, 0x47, 0x10]; // mov 16(%rdi),%rax
    const ADD: &[u8] = &[0x48, 0x83, 0x47, 0x08, 0x01]; // addq $1,8(%rdi)
    const STORE: &[u8] = &[0x48, 0x89, 0x47, 0x08]; // mov %rax,8(%rdi)
    const NOP: &[u8] = &[0x90];
    const MOVED: &[u8] = &[0xff, 0xc7]; // inc %edi
    const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
    const JUMP: &[u8] = &[0x74, 0];
    const RELATIVE: &[u8] = &[
        0x0f, 0x0d, 0x0d, 0x10, 0, 0, 0, 0x48, 0x8b, 0x05, 0x09, 0, 0, 0,
    ]; // one address, twice

    fn before(code: &[&[u8]]) -> Vec<(bool, Before)> {
        reads(&code.concat(), 0x1000)
            .into_iter()
            .map(|read| (read.plain, read.before))
            .collect()
    }

    #[test]
    fn a_prefetch_counts_in_front_and_of_the_same_operand_only() {
        assert_eq!(before(&[PREFETCHW, LOAD]), [(true, Before::FetchesOwn)]);
        assert_eq!(before(&[PREFETCHW, OTHER]), [(true, Before::Nothing)]);
        assert_eq!(before(&[LOAD, PREFETCHW]), [(true, Before::Nothing)]);
        let last = |between: &[&[u8]]| {
            let code = [&[PREFETCHW][..], between, &[LOAD]].concat();
            before(&code).pop()
        };
        let nothing = Some((true, Before::Nothing));
        let own = Some((true, Before::FetchesOwn));
        assert_eq!(last(&[OTHER]), own);
        assert_eq!(last(&[NOP; NEAREST - 1]), own);
        assert_eq!(last(&[NOP; NEAREST]), nothing);
        // Another address, and code that may be reached without the prefetch.
        assert_eq!(last(&[MOVED]), nothing);
        assert_eq!(last(&[CALL]), nothing);
        assert_eq!(last(&[JUMP]), nothing);
        assert_eq!(before(&[LOAD]), [(true, Before::Nothing)]);
        assert_eq!(before(&[RELATIVE]), [(true, Before::FetchesOwn)]);
    }

    #[test]
    fn a_prefetch_for_reading_is_told_apart() {
        assert_eq!(
            before(&[PREFETCHT0, LOAD]),
            [(true, Before::Fetches("prefetcht0".to_owned()))]
        );
    }

    #[test]
    fn stores_are_no_reads_and_read_modify_writes_are_not_plain() {
        assert_eq!(before(&[STORE]), []);
        assert_eq!(before(&[ADD]), [(false, Before::Nothing)]);
    }

    #[test]
    fn bytes_that_are_no_code_end_in_an_answer() {
        for length in 0..32 {
            let bytes: Vec<u8> = (0..length).map(|at: u8| at.wrapping_mul(41)).collect();
            assert!(reads(&bytes, u64::MAX - 8).len() <= bytes.len());
        }
    }
}
