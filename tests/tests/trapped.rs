//! Trap resolution against the processor: code runs in a child with armed debug registers, once in single
//! steps, which tell the truth, and once freely, as it is in a window.

#![cfg(target_arch = "x86_64")]

mod traced;

use cohtrace::{
    access::Pid,
    decode::{
        Registers,
        trap::{FunctionText, Hit, Stopped, Text, TrapCode, Trapped, Unit},
    },
    event::{Unresolved, WatchedWord},
};
use traced::{Arena, CODE_BYTES, DATA_BYTES, HELPER, STACK, Stop, Traced, Watch};

/// The slot in the data that holds the helper's address.
const SLOT: u64 = 0xf00;

/// The child's code: one function, and the helper.
struct Code<'a> {
    arena: &'a Arena,
    bytes: &'a [u8],
    /// Without function bounds.
    bare: bool,
}

impl Text for Code<'_> {
    type Key = ();

    fn unit(&mut self, _: u64) -> Result<Unit<()>, Unresolved> {
        if self.bare {
            return Err(Unresolved::NoModule);
        }
        Ok(Unit { key: (), bias: 0 })
    }

    fn function(&mut self, addr: u64) -> Result<FunctionText, Unresolved> {
        let (first, second) = self.bytes.split_at(HELPER as usize);
        let helper = self.arena.code + HELPER;
        Ok(if addr < helper {
            FunctionText {
                start: self.arena.code,
                bytes: first.to_vec(),
                starts: None,
            }
        } else {
            FunctionText {
                start: helper,
                bytes: second.to_vec(),
                starts: None,
            }
        })
    }

    fn bytes(&mut self, addr: u64, buffer: &mut [u8]) -> usize {
        let offset = addr.wrapping_sub(self.arena.code) as usize;
        let rest = self.bytes.get(offset..).unwrap_or_default();
        let got = rest.len().min(buffer.len());
        buffer[..got].copy_from_slice(&rest[..got]);
        got
    }
}

/// A program of the child, in which the helper is `ret` and the slot points to it.
struct Program {
    arena: Arena,
    bytes: Vec<u8>,
    data: Vec<u8>,
    gpr: [u64; 16],
}

impl Program {
    /// rdi and rax point at the data, rsi at its second KiB, rsp into its upper half, rcx is 16.
    fn new(code: &[u8]) -> Program {
        let arena = Arena::new();
        let mut bytes = vec![0xcc; CODE_BYTES];
        bytes[..code.len()].copy_from_slice(code);
        bytes[HELPER as usize] = 0xc3;
        let mut data = vec![0; DATA_BYTES];
        let helper = (arena.code + HELPER).to_le_bytes();
        data[SLOT as usize..][..8].copy_from_slice(&helper);
        let mut gpr = std::array::from_fn(|number| number as u64);
        gpr[0] = arena.data;
        gpr[1] = 16;
        gpr[4] = arena.data + STACK;
        gpr[5] = gpr[4];
        gpr[6] = arena.data + 1024;
        gpr[7] = arena.data;
        Program {
            arena,
            bytes,
            data,
            gpr,
        }
    }

    fn stops(&self, watches: &[Watch], step: bool) -> Vec<Stop> {
        let child = Traced::start(&self.arena, &self.bytes, &self.data);
        child.set(&self.gpr);
        child.watch(watches);
        child.run(step)
    }

    fn resolve(
        &self,
        stop: &Stop,
        watches: &[Watch],
        bare: bool,
    ) -> Result<Vec<Trapped>, Unresolved> {
        let chosen = |wanted: &dyn Fn(u32, &Watch) -> bool| -> Vec<WatchedWord> {
            (0..)
                .zip(watches)
                .filter(|(number, watch)| wanted(*number, watch))
                .map(|(_, watch)| WatchedWord {
                    pid: Pid(1),
                    addr: self.arena.data + watch.offset,
                    len: watch.len,
                })
                .collect()
        };
        let words = chosen(&|number, _| stop.hits >> number & 1 != 0);
        // Of one that traps stores alone, nothing is known.
        let alone = chosen(&|number, watch| stop.hits >> number & 1 == 0 && watch.loads);
        let registers = Registers {
            gpr: stop.gpr,
            ip: stop.ip,
            fs_base: None,
            gs_base: None,
        };
        let hit = Hit {
            stopped: Stopped::After(&registers),
            words: &words,
            alone: &alone,
            packed: false,
            stack_top: Some(stop.stack_top),
            kernel: false,
        };
        let mut text = Code {
            arena: &self.arena,
            bytes: &self.bytes,
            bare,
        };
        let mut out = Vec::new();
        TrapCode::default().resolve(&mut text, &hit, &mut out)?;
        Ok(out)
    }

    /// `3 Store 8 +0x10`: offset of the instruction, direction, bytes, offset in the data.
    fn line(&self, t: &Trapped) -> String {
        let locked = if t.locked { " locked" } else { "" };
        let within = match t.within {
            0 => String::new(),
            within => format!(" in {within}"),
        };
        let (ip, addr) = (t.ip - self.arena.code, t.addr.wrapping_sub(self.arena.data));
        format!("{ip} {:?} {} {addr:+}{locked}{within}", t.op, t.size)
    }
}

fn both(offset: u64, len: u8) -> Watch {
    Watch {
        offset,
        len,
        loads: true,
    }
}

/// The accesses of a program to a word, in order.
fn told(code: &[u8], watches: &[Watch]) -> Vec<String> {
    let program = Program::new(code);
    let mut lines = Vec::new();
    for stop in program.stops(watches, false) {
        match program.resolve(&stop, watches, false) {
            Ok(accesses) => lines.extend(accesses.iter().map(|t| program.line(t))),
            Err(reason) => lines.push(reason.name().to_owned()),
        }
    }
    lines
}

#[test]
fn loads_and_stores_of_every_size_and_alignment() {
    // movups (%rdi),%xmm0
    assert_eq!(told(b"\x0f\x10\x07\x90", &[both(8, 8)]), ["0 Load 16 +0"]);
    // mov %rcx,5(%rdi)
    assert_eq!(
        told(b"\x48\x89\x4f\x05\x90", &[both(8, 4)]),
        ["0 Store 8 +5"]
    );
    assert!(told(b"\x48\x89\x4f\x05\x90", &[both(16, 4)]).is_empty());
    // mov %rcx,60(%rdi), over a line's end
    for offset in [56, 64] {
        assert_eq!(
            told(b"\x48\x89\x4f\x3c\x90", &[both(offset, 8)]),
            ["0 Store 8 +60"]
        );
    }
    // mov (%rdi),%rdi
    assert_eq!(told(b"\x48\x8b\x3f\x90", &[both(0, 8)]), ["0 Load 8 +0"]);
    // mov 4(%rdi),%edi: the word does not tell which half, the halves do
    let half = b"\x8b\x7f\x04\x90";
    assert_eq!(told(half, &[both(0, 8)]), ["0 Load 4 +0 in 8"]);
    assert_eq!(told(half, &[both(0, 4), both(4, 4)]), ["0 Load 4 +4"]);
    // mov %rdi,%rax; mov 4(%rax),%eax
    assert_eq!(
        told(b"\x48\x89\xf8\x8b\x40\x04\x90", &[both(0, 8)]),
        ["3 Load 4 +4"]
    );
    // lock cmpxchg16b (%rdi); lock cmpxchg %rbx,(%rdi)
    assert_eq!(
        told(b"\xf0\x48\x0f\xc7\x0f\x90", &[both(8, 8)]),
        ["0 Rmw 16 +0 locked"]
    );
    assert_eq!(
        told(b"\xf0\x48\x0f\xb1\x1f\x90", &[both(0, 8)]),
        ["0 Rmw 8 +0 locked"]
    );
    // fxsave (%rdi)
    assert_eq!(
        told(b"\x0f\xae\x07\x90", &[both(128, 8)]),
        ["0 Store 64 +128"]
    );
}

#[test]
fn two_words_hit_by_one_instruction() {
    // movups; movsq
    let words = [both(0, 8), both(8, 8)];
    assert_eq!(told(b"\x0f\x11\x07\x90", &words), ["0 Store 16 +0"]);
    let words = [both(0, 8), both(1024, 8)];
    let mut lines = told(b"\x48\xa5\x90", &words);
    lines.sort();
    assert_eq!(lines, ["0 Load 8 +1024", "0 Store 8 +0"]);
}

#[test]
fn comparisons_before_jumps_that_are_taken_and_not() {
    for code in [
        // cmp %rcx,(%rdi); jne +5; je +5; test %rcx,(%rdi); jne +5; je +5
        b"\x48\x39\x0f\x75\x05\x90\x90\x90\x90\x90\x90",
        b"\x48\x39\x0f\x74\x05\x90\x90\x90\x90\x90\x90",
        b"\x48\x85\x0f\x75\x05\x90\x90\x90\x90\x90\x90",
        b"\x48\x85\x0f\x74\x05\x90\x90\x90\x90\x90\x90",
    ] {
        assert_eq!(told(code, &[both(0, 8)]), ["0 Load 8 +0"]);
    }
}

#[test]
fn the_stack_is_memory_too() {
    let below = [both(STACK - 8, 8)];
    // push %rax; pop %rbx
    assert_eq!(
        told(b"\x50\x5b\x90", &below),
        ["0 Store 8 +6136", "1 Load 8 +6136"]
    );
    // pushq (%rdi); popq 8(%rdi)
    assert_eq!(told(b"\xff\x37\x90", &[both(0, 8)]), ["0 Load 8 +0"]);
    assert_eq!(told(b"\x8f\x47\x08\x90", &[both(8, 8)]), ["0 Store 8 +8"]);
    // enter $16,$0; leave
    assert_eq!(
        told(b"\xc8\x10\x00\x00\xc9\x90", &below),
        ["0 Store 8 +6136", "4 Load 8 +6136"]
    );
}

#[test]
fn calls_jumps_and_returns() {
    // call the helper: it pushes, and the helper's `ret` loads.
    let call = b"\xe8\xfb\x07\x00\x00\x90";
    assert_eq!(
        told(call, &[both(STACK - 8, 8)]),
        ["0 Store 8 +6136", "0 Load 8 +6136"]
    );
    // call *0xf00(%rdi)
    let slot = [both(SLOT, 8)];
    assert_eq!(
        told(b"\xff\x97\x00\x0f\x00\x00\x90", &slot),
        ["0 Load 8 +3840"]
    );
    // call 6f; nop; jmp *0xf00(%rdi) at 6
    let through = b"\xe8\x01\x00\x00\x00\xcc\xff\xa7\x00\x0f\x00\x00";
    let lines = told(through, &slot);
    // The jump went to another function, from one that has no name of its own here.
    assert_eq!(lines, ["6 Load 8 +3840"]);
}

#[test]
fn repeated_string_instructions() {
    // rep stosb; rep movsb
    assert_eq!(told(b"\xf3\xaa\x90", &[both(5, 1)]), ["0 Store 1 +5"]);
    assert_eq!(told(b"\xf3\xa4\x90", &[both(15, 1)]), ["0 Store 1 +15"]);
    assert_eq!(told(b"\xf3\xa4\x90", &[both(1029, 1)]), ["0 Load 1 +1029"]);
    // rep stosq
    assert_eq!(told(b"\xf3\x48\xab\x90", &[both(16, 8)]), ["0 Store 8 +16"]);
}

#[test]
fn prefetches_do_not_trap() {
    assert!(told(b"\x0f\x0d\x0f\x90", &[both(0, 8)]).is_empty());
}

/// Numbers that only look random; the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        // xorshift64 (Marsaglia 2003)
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Instructions to make programs of. They leave rdi, rsi and rsp as they find them; an `X` byte is replaced
/// by a random offset below 128, a `Y` byte by one of aligned data.
const MENU: [&[u8]; 36] = [
    b"\x48\x8b\x47X",                                     // mov X(%rdi),%rax
    b"\x48\x89\x47X",                                     // mov %rax,X(%rdi)
    b"\x8b\x5fX",                                         // mov X(%rdi),%ebx
    b"\x88\x5fX",                                         // mov %bl,X(%rdi)
    b"\x48\xff\x47X",                                     // incq X(%rdi)
    b"\xf0\x48\x0f\xc1\x5fX",                             // lock xadd %rbx,X(%rdi)
    b"\x48\x87\x5fX",                                     // xchg %rbx,X(%rdi)
    b"\x0f\x10\x47X",                                     // movups X(%rdi),%xmm0
    b"\x0f\x11\x47X",                                     // movups %xmm0,X(%rdi)
    b"\x0f\xb6\x57X",                                     // movzbl X(%rdi),%edx
    b"\x4c\x0f\xbe\x47X",                                 // movsbq X(%rdi),%r8
    b"\x80\x7fX\x01\x75\x00",                             // cmpb $1,X(%rdi); jne .+2
    b"\x48\x39\x5fX\x74\x03\x90\x90\x90",                 // cmp %rbx,X(%rdi); je over three nops
    b"\x48\x85\x5fX\x75\x01\x90",                         // test %rbx,X(%rdi); jne over a nop
    b"\x48\x89\xf8\x48\x8b\x40X",                         // mov %rdi,%rax; mov X(%rax),%rax
    b"\x57\x48\x8b\x7fY\x5f",                             // push %rdi; mov Y(%rdi),%rdi; pop %rdi
    b"\x57\x8b\x7fY\x5f",                                 // push %rdi; mov Y(%rdi),%edi; pop %rdi
    b"\x57\x0f\xb6\x7fX\x5f", // push %rdi; movzbl X(%rdi),%edi; pop %rdi
    b"\x48\x8d\x57Y\xf0\x0f\xc1\x12", // lea Y(%rdi),%rdx; lock xadd %edx,(%rdx)
    b"\x57\x48\x8d\x7fY\x87\x3f\x5f", // push %rdi; lea Y(%rdi),%rdi; xchg %edi,(%rdi); pop %rdi
    b"\x53\x5b",              // push %rbx; pop %rbx
    b"\xff\x77X\x8f\x47X",    // pushq X(%rdi); popq X(%rdi)
    b"\x57\x56\x48\xa5\x5e\x5f", // movsq between pushes and pops
    b"\x57\xb9\x09\x00\x00\x00\x48\x8d\x7fX\xf3\xaa\x5f", // rep stosb of nine bytes
    b"\x57\x56\xb9\x03\x00\x00\x00\xf3\x48\xa5\x5e\x5f", // rep movsq of three
    b"\xff\x97\x00\x0f\x00\x00", // call *SLOT(%rdi)
    b"\x48\x83\xc0\x08",      // add $8,%rax
    b"\x48\x31\xc9",          // xor %rcx,%rcx
    b"\x48\x8d\x57X",         // lea X(%rdi),%rdx
    b"\x48\x01\x1c\x0f",      // add %rbx,(%rdi,%rcx)
    b"\xc8\x10\x00\x00\xc9",  // enter $16,$0; leave
    b"\x9c\x9d",              // pushf; popf
    b"\x48\x0f\x44\x5fX",     // cmove X(%rdi),%rbx
    b"\x0f\x94\x47X",         // sete X(%rdi)
    b"\x0f\x18\x4fX",         // prefetcht0 X(%rdi)
    b"\x48\xc7\xc1\x08\x00\x00\x00", // mov $8,%rcx
];

/// Whether one access may be the other, which is known better.
fn holds(wide: &Trapped, known: &Trapped) -> bool {
    let end = |t: &Trapped| t.addr + u64::from(t.size.max(u16::from(t.within)));
    wide.op == known.op && wide.addr <= known.addr && end(known) <= end(wide)
}

fn random_program(dice: &mut Dice) -> Program {
    // rcx is an index from the first instruction on.
    let mut code = b"\x48\x31\xc9".to_vec();
    for _ in 0..60 {
        let item = MENU[dice.below(MENU.len() as u64) as usize];
        let at = code.len();
        code.extend_from_slice(item);
        for byte in &mut code[at..] {
            match *byte {
                b'X' => *byte = dice.below(112) as u8,
                b'Y' => *byte = dice.below(14) as u8 * 8,
                _ => {}
            }
        }
    }
    Program::new(&code)
}

#[test]
fn random_programs_are_told_as_single_steps_tell_them() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut hits, mut exact, mut same, mut wrong) = (0, 0, 0, 0);
    for _ in 0..100 {
        let program = random_program(&mut dice);
        let watches: Vec<Watch> = (0..=dice.below(3))
            .map(|_| {
                let len = 1u64 << dice.below(4);
                let near = match dice.below(4) {
                    0 => STACK - 16 + dice.below(16),
                    1 => [SLOT, 1024][dice.below(2) as usize],
                    _ => dice.below(128),
                };
                Watch {
                    offset: near & !(len - 1),
                    len: len as u8,
                    loads: dice.below(4) != 0,
                }
            })
            .collect();
        let steps = program.stops(&watches, true);
        let truth: Vec<&Stop> = steps.iter().filter(|stop| stop.hits != 0).collect();
        let free = program.stops(&watches, false);
        assert_eq!(truth.len(), free.len(), "{watches:?}");
        for (step, stop) in truth.iter().zip(&free) {
            assert_eq!(step.hits, stop.hits);
            let ip = step.stepped_ip.expect("it was stepped");
            let found = program.resolve(stop, &watches, false);
            let what = || {
                let at = (ip - program.arena.code) as usize;
                let code = &program.bytes[at..at + 12];
                format!("{at:#x}: {code:x?} {stop:x?} {watches:?} {found:x?}")
            };
            let accesses = found.as_ref().unwrap_or_else(|_| panic!("{}", what()));
            hits += 1;
            exact += usize::from(accesses.iter().all(|t| t.within == 0));
            for t in accesses {
                // Of the load by a `ret`, the call is told.
                let by_return = ip == program.arena.code + HELPER;
                assert!(t.ip == ip || by_return, "{}", what());
            }
            // What is told touches every word that was hit, and if it is exact no other.
            for (number, watch) in watches.iter().enumerate() {
                let hit = stop.hits >> number & 1 != 0;
                let addr = program.arena.data + watch.offset;
                let mut told = accesses.iter().filter(|t| hit || t.within == 0);
                let touched = told.any(|t| {
                    let bytes = u64::from(t.size.max(u16::from(t.within)));
                    t.addr < addr + u64::from(watch.len) && addr < t.addr + bytes
                });
                assert!(touched == hit || !watch.loads, "{}", what());
            }
            let watches_loads = (0..)
                .zip(&watches)
                .any(|(number, watch)| stop.hits >> number & 1 != 0 && watch.loads);
            let stores = |t: &&Trapped| t.op.stores() || watches_loads;
            assert!(accesses.iter().any(|t| stores(&t)), "{}", what());
            // The same stop at a word that nothing touches can only be of an access whose address is lost.
            let elsewhere: Vec<Watch> = watches.iter().map(|_| both(5000, 8)).collect();
            if let Ok(wrong) = program.resolve(stop, &elsewhere, false) {
                assert!(wrong.iter().all(|t| t.ip == ip), "{} {wrong:x?}", what());
            }
            if let Ok(bare) = program.resolve(stop, &watches, true) {
                let told = accesses.iter().all(|t| bare.iter().any(|b| holds(b, t)));
                same += usize::from(bare == *accesses);
                wrong += usize::from(!told);
            }
        }
    }
    println!("{hits} hits, {exact} exact; without function bounds {same} the same, {wrong} wrong");
    assert!(hits > 500, "{hits}");
    assert!(exact * 10 > hits * 8, "{exact} of {hits}");
    assert!(exact < hits, "{exact} of {hits}");
    assert!(same * 10 > hits * 8, "{same} of {hits}");
    // Loads that overwrote an address that was not aligned, and that only the code before them tells.
    assert!(wrong * 50 < hits, "{wrong} of {hits}");
}
