//! Loops over lines of memory of our own, timed by the time stamp counter: what is asked of the machine to learn its costs.
//!
//! A single access cannot be timed: where the counter ticks by its base clock it steps by dozens of cycles. So a block of
//! lines is timed, in an order that prefetchers do not follow, and each access waits for the one before it: a load by the
//! address that it loads, another operation by a fence, and a locked one by both (locked instructions overlap otherwise).

use std::{
    arch::{asm, x86_64},
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};

/// From one line of a block to the next, bytes: a page and a line. A page has one line, since prefetchers learn which lines of
/// a page come together, in whatever order (with four lines of each page, chained loads of another CPU's lines took 76 ns or
/// 122 ns, by what else was loaded meanwhile); and each line is of another set of a cache.
const STRIDE: usize = 4096 + 64;
/// Bytes of a line that hold the next one's address; the word behind it is what is stored to.
const WORD: usize = 8;

/// What a loop does with each line of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A load, whose address the one before it loaded.
    ChainedLoad,
    /// A load that depends on no other.
    IndependentLoad,
    /// A store and a full fence.
    StoreFence,
    /// A locked exchange-and-add, and a fence that later instructions wait for.
    ExchangeAdd,
    /// A locked compare-and-swap that succeeds, and the same fence.
    CompareSwap,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 5] = [
        Operation::ChainedLoad,
        Operation::IndependentLoad,
        Operation::StoreFence,
        Operation::ExchangeAdd,
        Operation::CompareSwap,
    ];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Operation::ChainedLoad => "chained-load",
            Operation::IndependentLoad => "independent-load",
            Operation::StoreFence => "store-fence",
            Operation::ExchangeAdd => "exchange-add",
            Operation::CompareSwap => "compare-swap",
        }
    }
}

/// Dependent additions between two loads of a chain that [`Block::chained_with_work`] knows.
pub const WORKS: [u32; 7] = [0, 4, 16, 32, 64, 128, 256];

/// Lines of anonymous memory that the threads of a measurement share.
#[derive(Debug)]
pub struct Block {
    memory: MmapRaw,
    /// Offsets of its lines, in the order of the chain.
    order: Vec<u64>,
}

impl Block {
    /// So many lines, which the calling thread touches first; the chain goes through them in the order of these numbers,
    /// which must be a permutation.
    ///
    /// # Errors
    /// No memory; or the numbers are no permutation.
    pub fn new(permutation: &[usize]) -> io::Result<Block> {
        let mut seen = vec![false; permutation.len()];
        for n in permutation {
            match seen.get_mut(*n) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        let bytes = (permutation.len() * STRIDE).max(1);
        let memory = MmapRaw::from(MmapOptions::new().len(bytes).map_anon()?);
        let order: Vec<u64> = permutation.iter().map(|n| (n * STRIDE) as u64).collect();
        let block = Block { memory, order };
        let next = block.order.iter().cycle().skip(1);
        for (at, next) in block.order.iter().zip(next) {
            block
                .word(*at)
                .store(block.base() + next, Ordering::Relaxed);
        }
        Ok(block)
    }

    /// Lines.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether it has no line.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Addresses of its lines, in the order of the chain.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.order.iter().map(|at| self.base() + at)
    }

    fn base(&self) -> u64 {
        self.memory.as_mut_ptr() as u64
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        // SAFETY: `at` is an offset of a line of the mapping, 64-byte aligned, and lives as long as it; all accesses to it
        // are atomic or by the loops below, which are no accesses to the compiler.
        unsafe { AtomicU64::from_ptr((self.base() + at) as *mut u64) }
    }

    /// Loads each line.
    pub fn read(&self) {
        for at in &self.order {
            std::hint::black_box(self.word(*at).load(Ordering::Relaxed));
        }
        fence();
    }

    /// Stores to each line, behind its link.
    pub fn write(&self) {
        for at in &self.order {
            self.word(at + WORD as u64).store(0, Ordering::Relaxed);
        }
        fence();
    }

    /// Takes each line out of all caches.
    pub fn flush(&self) {
        for at in &self.order {
            // SAFETY: an address of the mapping.
            unsafe { x86_64::_mm_clflush((self.base() + at) as *const u8) };
        }
        fence();
    }

    /// Does this with each line once, and says how many ticks of the time stamp counter it took.
    pub fn time(&self, operation: Operation) -> u64 {
        match operation {
            Operation::ChainedLoad => self.chained::<0>(),
            Operation::IndependentLoad => self.each(independent_loads),
            Operation::StoreFence => self.each(stores_with_fence),
            Operation::ExchangeAdd => self.each(exchange_adds),
            Operation::CompareSwap => self.each(compare_swaps),
        }
    }

    /// [`Operation::ChainedLoad`] with so many dependent additions behind each load; `None` of a number that is not one of
    /// [`WORKS`].
    pub fn chained_with_work(&self, additions: u32) -> Option<u64> {
        Some(match additions {
            0 => self.chained::<0>(),
            4 => self.chained::<4>(),
            16 => self.chained::<16>(),
            32 => self.chained::<32>(),
            64 => self.chained::<64>(),
            128 => self.chained::<128>(),
            256 => self.chained::<256>(),
            _ => return None,
        })
    }

    fn chained<const WORK: usize>(&self) -> u64 {
        let Some(first) = self.order.first() else {
            return 0;
        };
        timed(|| {
            // SAFETY: follows the links of the mapping, which no store of ours changes.
            unsafe {
                asm!(
                    "2:",
                    "mov {at}, [{at}]",
                    ".rept {work}",
                    "add {at}, {zero}",
                    ".endr",
                    "dec {left}",
                    "jnz 2b",
                    work = const WORK,
                    at = inout(reg) self.base() + first => _,
                    zero = in(reg) 0_u64,
                    left = inout(reg) self.order.len() => _,
                    options(nostack, readonly),
                );
            }
        })
    }

    fn each(&self, operation: unsafe fn(u64, &[u64])) -> u64 {
        if self.order.is_empty() {
            return 0;
        }
        // SAFETY: the offsets are of lines of the mapping, and there is one.
        timed(|| unsafe { operation(self.base() + WORD as u64, &self.order) })
    }
}

/// A function that goes through offsets from an address, and does some instructions with each: `{base} + {at}` is its word.
macro_rules! with_each_line {
    ($name:ident: $($instruction:literal),+; $($operands:tt)*) => {
        /// # Safety
        /// All are addresses of one [`Block`], and there is at least one.
        unsafe fn $name(base: u64, order: &[u64]) {
            // SAFETY: as above. The words stored to are zero and stay so, and nobody reads them.
            unsafe {
                asm!(
                    "2:",
                    "mov {at}, [{order}]",
                    $($instruction,)+
                    "add {order}, 8",
                    "dec {left}",
                    "jnz 2b",
                    at = out(reg) _,
                    base = in(reg) base,
                    order = inout(reg) order.as_ptr() => _,
                    left = inout(reg) order.len() => _,
                    $($operands)*
                );
            }
        }
    };
}

with_each_line!(independent_loads: "mov {at}, [{base} + {at}]"; options(nostack, readonly));
with_each_line!(stores_with_fence: "mov qword ptr [{base} + {at}], 0", "mfence"; options(nostack));
with_each_line!(
    exchange_adds:
    "add {at}, {loaded}",
    "xor {loaded:e}, {loaded:e}",
    "lock xadd [{base} + {at}], {loaded}",
    "lfence";
    loaded = inout(reg) 0_u64 => _,
    options(nostack)
);
with_each_line!(
    compare_swaps:
    "add {at}, rax",
    "xor eax, eax",
    "lock cmpxchg [{base} + {at}], {zero}",
    "lfence";
    zero = in(reg) 0_u64,
    inout("rax") 0_u64 => _,
    options(nostack)
);

impl Block {
    /// Exchanges of the block's first word for the caller's number, not 0, so many times, with so many additions after each that
    /// wait for it: what threads do that fight over a line. The number stays there, so that the block is for nothing else
    /// afterwards.
    pub fn take_turns(&self, number: u64, additions: u64, times: u64) -> Turns {
        let Some(first) = self.order.first() else {
            return Turns::default();
        };
        let mut gone = 0_u64;
        let ticks = timed(|| {
            // SAFETY: the word is one of the mapping, which only such instructions change.
            unsafe {
                asm!(
                    "2:",
                    "mov {found}, {number}",
                    "xchg [{at}], {found}",
                    "mov {think}, {found}",
                    // Another number than ours was there: the carry is counted.
                    "xor {found}, {number}",
                    "neg {found}",
                    "adc {gone}, 0",
                    "and {think}, 0",
                    "add {think}, {additions}",
                    "jz 4f",
                    "3:",
                    "dec {think}",
                    "jnz 3b",
                    "4:",
                    // Zero by now: the next one's address is known when the additions are over, and nothing is fetched before.
                    "add {at}, {think}",
                    "dec {left}",
                    "jnz 2b",
                    at = inout(reg) self.base() + first + WORD as u64 => _,
                    number = in(reg) number,
                    found = out(reg) _,
                    think = out(reg) _,
                    gone = inout(reg) gone,
                    additions = in(reg) additions,
                    left = inout(reg) times.max(1) => _,
                    options(nostack),
                );
            }
        });
        Turns { ticks, gone }
    }
}

/// What came of [`Block::take_turns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Ticks of the time stamp counter.
    pub ticks: u64,
    /// Turns before which another thread had taken one.
    pub gone: u64,
}

/// So many rounds of eight additions that do not wait for each other: as many as a core has units for, so that two threads
/// of one core slow each other down. Ticks of the time stamp counter.
pub fn wide_additions(rounds: u64) -> u64 {
    timed(|| {
        // SAFETY: registers only.
        unsafe {
            asm!(
                "2:",
                ".rept 16",
                "add {a}, 1",
                "add {b}, 1",
                "add {c}, 1",
                "add {d}, 1",
                "add {e}, 1",
                "add {f}, 1",
                "add {g}, 1",
                "add {h}, 1",
                ".endr",
                "dec {left}",
                "jnz 2b",
                a = out(reg) _,
                b = out(reg) _,
                c = out(reg) _,
                d = out(reg) _,
                e = out(reg) _,
                f = out(reg) _,
                g = out(reg) _,
                h = out(reg) _,
                left = inout(reg) rounds.max(1) => _,
                options(nostack, nomem),
            );
        }
    })
}

/// So many additions, each of which waits for the one before it: a core cycle each. Ticks of the time stamp counter.
pub fn additions(thousands: u64) -> u64 {
    timed(|| {
        // SAFETY: registers only.
        unsafe {
            asm!(
                "2:",
                ".rept 1000",
                "add {sum}, {one}",
                ".endr",
                "dec {left}",
                "jnz 2b",
                sum = inout(reg) 0_u64 => _,
                one = in(reg) 1_u64,
                left = inout(reg) thousands.max(1) => _,
                options(nostack, nomem),
            );
        }
    })
}

/// The time stamp counter, behind all that was asked for before.
pub fn ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the instructions are in every x86-64 processor; user space may use them where Linux runs.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high, options(nostack, nomem));
    }
    u64::from(high) << 32 | u64::from(low)
}

fn timed(run: impl FnOnce()) -> u64 {
    let start = ticks();
    run();
    ticks().saturating_sub(start)
}

fn fence() {
    // SAFETY: the instruction is in every x86-64 processor.
    unsafe { x86_64::_mm_mfence() };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_its_permutation_says_and_nothing_else_is_one() {
        assert_eq!(Block::new(&[2, 0, 1]).unwrap().len(), 3);
        for wrong in [&[0, 0][..], &[1], &[0, 2]] {
            assert!(Block::new(wrong).is_err());
        }
        let empty = Block::new(&[]).unwrap();
        assert!(empty.is_empty());
        for operation in Operation::ALL {
            assert_eq!(empty.time(operation), 0);
        }
    }

    #[test]
    fn every_operation_leaves_links_and_words_as_they_were() {
        let block = Block::new(&[1, 3, 0, 2]).unwrap();
        let words = || -> Vec<(u64, u64)> {
            let of = |at: &u64| block.word(*at).load(Ordering::Relaxed);
            block
                .order
                .iter()
                .map(|at| (of(at), of(&(at + WORD as u64))))
                .collect()
        };
        let before = words();
        for operation in Operation::ALL {
            block.time(operation);
        }
        assert!(
            WORKS
                .iter()
                .all(|work| block.chained_with_work(*work).is_some())
        );
        assert_eq!(block.chained_with_work(5), None);
        block.write();
        block.read();
        block.flush();
        assert_eq!(words(), before);
        let turns = [0, 1000].map(|rest| block.take_turns(7, rest, 10));
        assert!(turns.iter().all(|turns| turns.ticks > 0));
        // The word held nothing at first, and then our own number.
        assert_eq!(turns.map(|turns| turns.gone), [1, 0]);
    }

    #[test]
    fn lines_at_hand_take_less_than_those_in_memory() {
        let permutation: Vec<usize> = (0..64).map(|n| n * 37 % 64).collect();
        let block = Block::new(&permutation).unwrap();
        let median = |prepare: &dyn Fn(&Block)| {
            let mut all: Vec<u64> = (0..101)
                .map(|_| {
                    prepare(&block);
                    block.time(Operation::ChainedLoad)
                })
                .collect();
            all.sort_unstable();
            all[50]
        };
        let (own, memory) = (median(&Block::read), median(&Block::flush));
        assert!(own * 4 < memory, "{own} {memory}");
    }
}
