//! From a data breakpoint's hit to the access that caused it; pure.
//!
//! On x86 the trap comes *after* the access: the ip is the instruction that runs next, and the registers
//! are those that the access left behind. So the access is looked for among the instructions that can run
//! right before the ip, and proves itself by touching a watched word:
//!
//! ```text
//!   mov  8(%rbx),%rax    <- candidate: undo what it did to registers, compute its operands' addresses,
//!   test %rax,%rax       <- ip         take it if one of them overlaps a watched word
//! ```
//!
//! Candidates, in order: the instruction that ends at the ip; a repeated string instruction at the ip; what
//! a jump to the ip was fused with; indirect jumps of the function; the call that led to a function's
//! entry, or the stub between; the `ret` that led back to a call's end. An operand whose address is
//! known and is elsewhere is never taken. A known address that fits goes before an unknown one, whichever
//! candidate comes first.
//!
//! Measured on AMD family 1Ah under KVM: the trap comes right after the instruction, also between a
//! comparison and the jump that would fuse with it, after the very repetition of a string instruction, at
//! the target of `call`, `jmp` and `ret`; two words that one instruction touches are one trap with two hits.
//!
//! What a hit does not prove is said to be [`within`](Trapped::within) some bytes, or nothing is told of it:
//!
//! - An access that overwrote its own address (`mov 4(%rax),%eax`; also segments whose base is not known) lies where it
//!   explains which words were hit and which were left alone (`placing`). Of such places the aligned ones are taken
//!   where there are any, as compilers align scalars of up to 8 bytes, unless some data on the line is seen not to be: an
//!   8-byte pointer that is followed fills its word and is exact. What the code before computed the address from may tell it too (`run`). That other
//!   executions of the instruction, which samples caught before the load, went to certain bytes says nothing of
//!   this one, and what is read from memory afterwards may be younger: neither is used. Narrower words are: see
//!   the planner of windows.
//! - Masked vectors, gathers and areas of `xsave` touched a byte at least of each word that was hit.
//! - A repeated string instruction touched elements up to its pointers. Which of those in the word this hit is for
//!   depends on the processor: AMD family 1Ah traps after each repetition, others after groups of them.
//! - Where several instructions may have run before the ip (indirect jumps, jumps that were fused with a comparison,
//!   code without function bounds that can be cut in several ways), the access lies in what any of them touches.
//!   If they disagree on the direction, the hit is [`Unresolved::AmbiguousPath`].
//! - Which `ret` led back to a call's end is not known. That it loaded the word below the stack pointer is.
//!
//! On aarch64 the trap comes *before* the access: the pc is the instruction, see [`a64`]. [`Stopped`] is
//! where the two part.
//!
//! `landing` finds candidates in a function's text, or in code of which it was seen where it runs
//! (`decode/pieces.rs`); `unbounded` where neither tells, `entry` at
//! return addresses; `cover` judges one candidate, `placing` and `run` find lost addresses. Start reading at [`TrapCode::resolve`].

pub mod a64;
mod candidate;
mod cover;
mod entry;
mod landing;
mod placing;
mod run;
#[cfg(test)]
mod tests;
mod unbounded;

use std::{hash::Hash, rc::Rc};

use rustc_hash::FxHashMap;

use self::{
    candidate::Candidate,
    cover::{Best, Rank, Sight},
    landing::Landing,
    placing::Span,
};
use super::Registers;
use crate::{
    access::Op,
    event::{Unresolved, WatchedWord},
};

/// Candidates kept, at about 200 bytes each. What is hit often is found again at once, so beyond this
/// everything is let go rather than the oldest sought.
const MOST_CANDIDATES: usize = 1 << 14;

/// One access that a breakpoint trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trapped {
    /// Run-time address of the accessing instruction. Of the load by a callee's `ret` it is that of the
    /// call, since which `ret` it was cannot be told.
    pub ip: u64,
    /// Virtual address of the first byte.
    pub addr: u64,
    /// Bytes, 1 to 64: of larger operands (fxsave, xsave) the part on the watched word's 64-byte block.
    pub size: u16,
    /// Direction. A flush of the line (`clflush`, `clwb`) traps too and is a [`Op::Prefetch`] here as it
    /// is elsewhere; prefetches do not trap.
    pub op: Op,
    /// A lock prefix, or `xchg` with memory, which locks by itself.
    pub locked: bool,
    /// Bytes from `addr` on in which the access lies, somewhere; 0 where `addr` is its first byte. As in
    /// [`Access::within`](crate::access::Access::within).
    pub within: u8,
}

impl Trapped {
    fn span(&self) -> Span {
        Span {
            addr: self.addr,
            size: self.size,
            within: self.within,
        }
    }

    fn set_span(&mut self, span: Span) {
        (self.addr, self.size, self.within) = (span.addr, span.size, span.within);
    }

    /// Whether it may touch the word.
    fn touches(&self, word: &WatchedWord) -> bool {
        cover::overlap(self.addr, self.span().reach(), word)
    }
}

/// The machine state at a hit. What the ip means differs by architecture, and only here.
#[derive(Clone, Copy, Debug)]
pub enum Stopped<'a> {
    /// x86-64, after the access.
    After(&'a Registers),
    /// aarch64, before the access.
    Before(&'a a64::Registers),
}

/// One or several hits of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'a> {
    /// The registers.
    pub stopped: Stopped<'a>,
    /// The watched words that were hit. An instruction that touches two of them hits twice with equal
    /// registers: give both.
    pub words: &'a [WatchedWord],
    /// The words that were watched at the same time and were not hit: no byte of them was touched.
    pub alone: &'a [WatchedWord],
    /// There is data around them that is not aligned, as in packed structures.
    pub packed: bool,
    /// The 8 bytes at the stack pointer, where they could be read: at a function's entry, the return
    /// address.
    pub stack_top: Option<u64>,
    /// In kernel mode, where gs is based on per-CPU data, not on what user mode has there.
    pub kernel: bool,
}

/// The text of one function, or of code without bounds.
#[derive(Clone, Debug)]
pub struct FunctionText {
    /// Run-time address of the first byte.
    pub start: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Of code without function bounds: run-time addresses at which instructions ran, from where alone it can be decoded.
    /// `None` for a function, which is decoded from its first byte on.
    pub starts: Option<Vec<u64>>,
}

/// A file's code at one place: equal units have equal text at equal `address - bias`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<K> {
    /// Which file, or the kernel.
    pub key: K,
    /// What to add to the file's addresses (svma) for run-time addresses.
    pub bias: u64,
}

/// Where code text comes from.
pub trait Text {
    /// Names what does not change its text: modules, the kernel.
    type Key: Copy + Eq + Hash;
    /// The unit that holds a run-time address; asked for each hit. An error where text has no name under
    /// which it could be kept.
    fn unit(&mut self, addr: u64) -> Result<Unit<Self::Key>, Unresolved>;
    /// The function that holds a run-time address; asked once per place and unit.
    fn function(&mut self, addr: u64) -> Result<FunctionText, Unresolved>;
    /// Copies code from a run-time address on, bounds unknown, and says how many bytes could be read.
    fn bytes(&mut self, addr: u64, buffer: &mut [u8]) -> usize;
}

/// Which side of an address candidates are kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// What runs right before the instruction there.
    Landing,
    /// The call that returns there.
    Return,
}

/// Candidates of every place that was hit. `K` as in [`Text::Key`].
#[derive(Debug)]
pub struct TrapCode<K> {
    places: FxHashMap<(K, u64, Place), Rc<Landing>>,
    candidates: usize,
    best: Best,
}

impl<K> Default for TrapCode<K> {
    fn default() -> Self {
        TrapCode {
            places: FxHashMap::default(),
            candidates: 0,
            best: Best::default(),
        }
    }
}

impl<K: Copy + Eq + Hash> TrapCode<K> {
    /// Appends the accesses of one instruction that touch the watched words, each operand once. An error
    /// appends nothing: [`Unresolved::NoCoveringAccess`] when the code is known and nothing in it fits,
    /// otherwise why the code is not known. At a place that was hit before nothing is decoded; code
    /// that has no unit is read and decoded each time, since a JIT compiler may change it.
    pub fn resolve<T: Text<Key = K>>(
        &mut self,
        text: &mut T,
        hit: &Hit<'_>,
        out: &mut Vec<Trapped>,
    ) -> Result<(), Unresolved> {
        match hit.stopped {
            Stopped::After(registers) => {
                let sight = Sight::new(registers, hit);
                self.after(text, registers.ip, &sight, hit.stack_top, out)
            }
            Stopped::Before(registers) => {
                let mut word = [0; 4];
                if text.bytes(registers.pc, &mut word) < word.len() {
                    return Err(Unresolved::NoMapping);
                }
                a64::resolve(registers, u32::from_le_bytes(word), hit, out)
            }
        }
    }

    fn after<T: Text<Key = K>>(
        &mut self,
        text: &mut T,
        ip: u64,
        sight: &Sight<'_>,
        stack_top: Option<u64>,
        out: &mut Vec<Trapped>,
    ) -> Result<(), Unresolved> {
        self.best.clear();
        let mut entry = true;
        let mut reason = Unresolved::NoCoveringAccess;
        match self.landing(text, ip) {
            Ok((landing, bias)) => {
                entry = landing.entry;
                self.best.judge(&landing.candidates, sight, bias);
            }
            Err(unknown) => {
                let read = unbounded::judge(text, ip, sight, &mut self.best);
                if !read {
                    reason = unknown;
                }
            }
        }
        // In the middle of a function the top of the stack is a return address by chance only, but code
        // is entered in its middle too (assembly with several entries, symbols that are missing).
        if let Some(stack_top) = stack_top
            && (self.best.rank() == Rank::Nothing || (entry && self.best.rank() < Rank::Exact))
        {
            self.called(text, ip, stack_top, sight);
        }
        if self.best.rank() == Rank::Nothing {
            return Err(reason);
        }
        out.extend_from_slice(self.best.settle()?);
        Ok(())
    }

    /// Judges what ran before the first instruction of a function: the call, or the stub it went through.
    fn called<T: Text<Key = K>>(
        &mut self,
        text: &mut T,
        ip: u64,
        return_address: u64,
        sight: &Sight<'_>,
    ) {
        if let Ok(unit) = text.unit(return_address) {
            let key = (
                unit.key,
                return_address.wrapping_sub(unit.bias),
                Place::Return,
            );
            let known = self.places.get(&key).cloned();
            let found = known.or_else(|| {
                let candidates = entry::calls(text, return_address, unit.bias)?;
                Some(self.keep(
                    key,
                    Landing {
                        candidates,
                        entry: false,
                    },
                ))
            });
            if let Some(landing) = found {
                let at = ip.wrapping_sub(unit.bias);
                let leads_here = |candidate: &&Candidate| candidate.leads_to(at);
                let candidates = landing.candidates.iter().filter(leads_here);
                self.best.judge(candidates, sight, unit.bias);
                return;
            }
        }
        entry::judge_unbounded(text, ip, return_address, sight, &mut self.best);
    }

    /// The candidates before `ip`, and the bias of their unit.
    fn landing<T: Text<Key = K>>(
        &mut self,
        text: &mut T,
        ip: u64,
    ) -> Result<(Rc<Landing>, u64), Unresolved> {
        let unit = text.unit(ip)?;
        let at = ip.wrapping_sub(unit.bias);
        let key = (unit.key, at, Place::Landing);
        if let Some(landing) = self.places.get(&key) {
            return Ok((landing.clone(), unit.bias));
        }
        let function = text.function(ip)?;
        let start = function.start.wrapping_sub(unit.bias);
        let landing = match &function.starts {
            None => landing::find(start, &function.bytes, at)?,
            // Such code has no place of its own in a file.
            Some(starts) => landing::find_piece(start, &function.bytes, starts, at)?,
        };
        Ok((self.keep(key, landing), unit.bias))
    }

    fn keep(&mut self, key: (K, u64, Place), landing: Landing) -> Rc<Landing> {
        // A place without candidates takes room as well.
        let weight = landing.candidates.len() + 1;
        self.candidates += weight;
        if self.candidates > MOST_CANDIDATES {
            self.places.clear();
            self.candidates = weight;
        }
        let landing = Rc::new(landing);
        self.places.insert(key, landing.clone());
        landing
    }
}
