//! Traps compared with what really ran: random programs, breakpoints on what their instructions touch.

use iced_x86::{
    IcedError, Mnemonic,
    code_asm::{
        AsmRegister32, AsmRegister64, CodeAssembler, byte_ptr, dword_ptr, eax, edx, esi, qword_ptr,
        r9, r9d, r12, rax, rdx, rsi,
    },
};
use proptest::prelude::{ProptestConfig, any, proptest};

use super::{
    START,
    differential::{Author, decoded},
    execution::{Dice, Executed, Machine},
};
use crate::{
    access::Pid,
    decode::{
        Registers,
        trap::{FunctionText, Hit, Stopped, Text, TrapCode, Trapped, Unit},
    },
    event::{Unresolved, WatchedWord},
};

/// The program as one function.
struct Code<'a>(&'a [u8]);

impl Text for Code<'_> {
    type Key = ();

    fn unit(&mut self, _: u64) -> Result<Unit<()>, Unresolved> {
        Ok(Unit { key: (), bias: 0 })
    }

    fn function(&mut self, _: u64) -> Result<FunctionText, Unresolved> {
        Ok(FunctionText {
            start: START,
            bytes: self.0.to_vec(),
            starts: None,
        })
    }

    fn bytes(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

/// Whether `bytes` from `addr` on touch the word.
fn touches(word: &WatchedWord, addr: u64, bytes: u64) -> bool {
    word.addr.wrapping_sub(addr) < bytes || addr.wrapping_sub(word.addr) < u64::from(word.len)
}

/// Breakpoints around an access: some of the aligned words of all lengths near it.
fn watches(dice: &mut Dice, near: u64) -> Vec<WatchedWord> {
    let word = |dice: &mut Dice| {
        let len = 1u64 << dice.below(4);
        let addr = near.wrapping_add(dice.below(24)).wrapping_sub(8);
        WatchedWord {
            pid: Pid(1),
            addr: addr & !(len - 1),
            len: len as u8,
        }
    };
    let mut words: Vec<WatchedWord> = (0..=dice.below(3)).map(|_| word(dice)).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[derive(Debug, Default)]
struct Score {
    hits: u64,
    exact: u64,
    within: u64,
    ambiguous: u64,
}

impl Score {
    fn add(&mut self, other: &Score) {
        self.hits += other.hits;
        self.exact += other.exact;
        self.within += other.within;
        self.ambiguous += other.ambiguous;
    }
}

/// The access that was told, among those that ran: itself, or within what was told.
fn ran(executed: &Executed, told: &Trapped) -> bool {
    executed.ip == told.ip
        && executed.accesses.iter().any(|&(addr, size, op)| {
            let ahead = addr.wrapping_sub(told.addr);
            let inside = match told.within {
                0 => (addr, size) == (told.addr, told.size),
                within => ahead.wrapping_add(u64::from(size)) <= u64::from(within),
            };
            inside && op == told.op
        })
}

/// Watches what each instruction of a run touches, and asks what its trap tells.
fn check(bytes: &[u8], trace: &[Executed], dice: &mut Dice) -> Score {
    let mut score = Score::default();
    let mut code = TrapCode::default();
    for pair in trace.windows(2) {
        let [executed, next] = pair else { continue };
        // What they do to the stack is not in the run's accesses.
        let stack = matches!(
            executed.mnemonic,
            Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Ret
        );
        // Places are found by their alignment.
        let is_aligned = |(addr, size, _): &(u64, u16, _)| addr % u64::from(*size) == 0;
        if stack || executed.accesses.is_empty() || !executed.accesses.iter().all(is_aligned) {
            continue;
        }
        let near = executed.accesses[0].0;
        let is_hit = |word: &WatchedWord| {
            let mut accesses = executed.accesses.iter();
            accesses.any(|(addr, size, _)| touches(word, *addr, u64::from(*size)))
        };
        let (words, alone): (Vec<_>, Vec<_>) = watches(dice, near).into_iter().partition(is_hit);
        if words.is_empty() {
            continue;
        }
        let registers = Registers {
            gpr: next.before,
            ip: next.ip,
            fs_base: None,
            gs_base: None,
        };
        let hit = Hit {
            stopped: Stopped::After(&registers),
            words: &words,
            alone: &alone,
            packed: false,
            stack_top: None,
            kernel: false,
        };
        let mut told = Vec::new();
        score.hits += 1;
        match code.resolve(&mut Code(bytes), &hit, &mut told) {
            Err(Unresolved::AmbiguousPath) => score.ambiguous += 1,
            Err(reason) => panic!("{reason:?} at {:#x}: {words:x?}", executed.ip),
            Ok(()) => {
                for access in &told {
                    assert!(
                        ran(executed, access),
                        "{:#x} {:x?}: {access:x?} {words:x?} {alone:x?}",
                        executed.ip,
                        executed.accesses
                    );
                }
                let explained = |word: &WatchedWord| {
                    let reach = |t: &Trapped| u64::from(t.size.max(u16::from(t.within)));
                    told.iter().any(|t| touches(word, t.addr, reach(t)))
                };
                assert!(words.iter().all(explained), "{words:x?} {told:x?}");
                let exact = told.iter().all(|access| access.within == 0);
                score.exact += u64::from(exact);
                score.within += u64::from(!exact);
            }
        }
    }
    score
}

/// Loads and exchanges that overwrite their own base, some of them after a copy of it.
fn overwriting(author: &mut Author, a: &mut CodeAssembler) -> Result<(), IcedError> {
    const BASES: [(AsmRegister64, AsmRegister32); 4] =
        [(rax, eax), (rdx, edx), (rsi, esi), (r9, r9d)];
    let (wide, narrow) = author.dice.pick(&BASES);
    let offset = author.dice.below(32) as i32 * 4;
    if author.dice.below(3) == 0 {
        a.lea(wide, qword_ptr(r12 + author.dice.below(4) as i32 * 4))?;
    }
    match author.dice.below(5) {
        0 => a.mov(narrow, dword_ptr(wide + offset)),
        1 => a.movzx(narrow, byte_ptr(wide + offset)),
        2 => a.mov(wide, qword_ptr(wide + offset)),
        3 => a.lock().xadd(dword_ptr(wide + offset), narrow),
        _ => a.xchg(dword_ptr(wide + offset), narrow),
    }?;
    // What was loaded is no pointer.
    a.mov(wide, 0x4000_0000 + author.dice.below(1 << 20) * 8)
}

/// A program without jumps.
fn straight(seed: u64) -> Score {
    let mut author = Author {
        dice: Dice(seed | 1),
        entering: Vec::new(),
    };
    let mut a = CodeAssembler::new(64).unwrap();
    for _ in 0..40 {
        if author.dice.below(3) == 0 {
            overwriting(&mut author, &mut a).unwrap();
        } else {
            author.plain(&mut a).unwrap();
        }
    }
    a.ret().unwrap();
    let bytes = a.assemble(START).unwrap();
    let mut machine = Machine::new(seed);
    for value in &mut machine.gpr {
        // Aligned, so that most of what is computed from them is.
        *value = author.dice.below(1 << 40) << 3;
    }
    let trace = machine.run(&decoded(&bytes), 100);
    check(&bytes, &trace, &mut author.dice)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Whatever the registers: what is told as exact are the bytes that were accessed, and the others lie where it says.
    #[test]
    fn no_trapped_access_lies_about_its_bytes(seed in any::<u64>()) {
        straight(seed);
    }
}

#[test]
fn in_programs_with_loops_and_forks_traps_tell_what_ran() {
    let mut total = Score::default();
    for seed in 1..=300u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut author = Author {
            dice: Dice(seed),
            entering: Vec::new(),
        };
        let mut a = CodeAssembler::new(64).unwrap();
        author.block(&mut a, 0, 3).unwrap();
        a.ret().unwrap();
        let bytes = a.assemble(START).unwrap();
        let trace = Machine::new(seed).run(&decoded(&bytes), 2000);
        total.add(&check(&bytes, &trace, &mut author.dice));
        total.add(&straight(seed));
    }
    // Of this fixed set.
    assert!(total.hits > 10_000, "{total:?}");
    assert!(total.exact * 10 > total.hits * 9, "{total:?}");
    assert!(total.within > 100, "{total:?}");
    assert!(total.ambiguous * 100 < total.hits, "{total:?}");
}
