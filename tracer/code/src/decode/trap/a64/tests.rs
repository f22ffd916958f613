//! Known encodings, as an assembler gives them.

use super::{
    super::{Hit, Stopped},
    Registers, describe, resolve,
};
use crate::{
    access::{Op, Pid},
    event::{Unresolved, WatchedWord},
};

const X1: u64 = 0x10_0000;
const SP: u64 = 0x7000_0000;
const PC: u64 = 0x40_0000;

/// x1 and x4 are pointers; w2 is -16 as a signed 32-bit number.
fn registers() -> Registers {
    let mut x = [0xdead_0000_0000; 31];
    x[1] = X1;
    x[2] = 0x1_ffff_fff0;
    x[4] = 0x40_0000_0000;
    Registers { x, sp: SP, pc: PC }
}

/// `rmw 8 x1+0x8 locked`.
fn told(instruction: u32) -> String {
    let Some(described) = describe(instruction) else {
        return "nothing".to_owned();
    };
    let op = match described.op {
        Op::Load => "load",
        Op::Store => "store",
        Op::Rmw => "rmw",
        Op::Prefetch | Op::PrefetchOwn => return "prefetch".to_owned(),
        Op::Unknown => return "unknown".to_owned(),
    };
    let address = match registers().address(&described) {
        None => "?".to_owned(),
        Some(address) => {
            let bases = [("x1", X1), ("sp", SP), ("pc", PC), ("x4", registers().x[4])];
            let near = |base: u64| address.wrapping_sub(base).cast_signed();
            match bases.iter().find(|(_, base)| near(*base).abs() < 0x1000) {
                Some((name, base)) => format!("{name}{:+}", near(*base)),
                None => format!("{address:#x}"),
            }
        }
    };
    let locked = if described.locked { " locked" } else { "" };
    format!("{op} {} {address}{locked}", described.size)
}

fn check(cases: &[(u32, &str, &str)]) {
    for (instruction, text, expected) in cases {
        assert_eq!(told(*instruction), *expected, "{text}");
    }
}

#[test]
fn single_registers_in_every_addressing_mode() {
    check(&[
        (0x3940_0020, "ldrb w0, [x1]", "load 1 x1+0"),
        (0x7980_0c20, "ldrsh x0, [x1, #6]", "load 2 x1+6"),
        (0xb980_0020, "ldrsw x0, [x1]", "load 4 x1+0"),
        (0xb940_0420, "ldr w0, [x1, #4]", "load 4 x1+4"),
        (0xf940_13e0, "ldr x0, [sp, #32]", "load 8 sp+32"),
        (0xf81f_8c20, "str x0, [x1, #-8]!", "store 8 x1-8"),
        (0xf801_0420, "str x0, [x1], #16", "store 8 x1+0"),
        (0xf85f_d020, "ldur x0, [x1, #-3]", "load 8 x1-3"),
        (0xb800_4820, "sttr w0, [x1, #4]", "store 4 x1+4"),
        (
            0xf862_7820,
            "ldr x0, [x1, x2, lsl #3]",
            "load 8 0x10000fff80",
        ),
        (0xb862_d820, "ldr w0, [x1, w2, sxtw #2]", "load 4 x1-64"),
        (
            0x3822_4820,
            "strb w0, [x1, w2, uxtw]",
            "store 1 0x1000ffff0",
        ),
        (0x5800_0040, "ldr x0, .+8", "load 8 pc+8"),
        (0x98ff_ffe0, "ldrsw x0, .-4", "load 4 pc-4"),
        (0xf820_1420, "ldraa x0, [x1, #8]", "load 8 ?"),
    ]);
}

#[test]
fn vectors_and_structures_of_them() {
    check(&[
        (0x3dc0_0820, "ldr q0, [x1, #32]", "load 16 x1+32"),
        (0x3d00_0020, "str b0, [x1]", "store 1 x1+0"),
        (0xfc22_6820, "str d0, [x1, x2]", "store 8 0x2000ffff0"),
        (0x3cc0_1020, "ldur q0, [x1, #1]", "load 16 x1+1"),
        (0x9c00_0080, "ldr q0, .+16", "load 16 pc+16"),
        (0xad01_0420, "stp q0, q1, [x1, #32]", "store 32 x1+32"),
        (0x6c40_8420, "ldnp d0, d1, [x1, #8]", "load 16 x1+8"),
        (0x4c40_7020, "ld1 {v0.16b}, [x1]", "load 16 x1+0"),
        (0x0cdf_a020, "ld1 {v0.8b, v1.8b}, [x1], #16", "load 16 x1+0"),
        (0x4c00_0820, "st4 {v0.4s..v3.4s}, [x1]", "store 64 x1+0"),
        (0x0c40_4020, "ld3 {v0.8b..v2.8b}, [x1]", "load 24 x1+0"),
        (0x4d00_8420, "st1 {v0.d}[1], [x1]", "store 8 x1+0"),
        (0x0d60_5820, "ld2 {v0.h, v1.h}[3], [x1]", "load 4 x1+0"),
        (0x0d60_e820, "ld4r {v0.2s..v3.2s}, [x1]", "load 16 x1+0"),
        (0x0dc2_1420, "ld1 {v0.b}[5], [x1], x2", "load 1 x1+0"),
    ]);
}

#[test]
fn pairs_count_both_registers() {
    check(&[
        (0x2941_0820, "ldp w0, w2, [x1, #8]", "load 8 x1+8"),
        (0xa9bf_0be0, "stp x0, x2, [sp, #-16]!", "store 16 sp-16"),
        (0xa8c1_0820, "ldp x0, x2, [x1], #16", "load 16 x1+0"),
        (0x6941_0820, "ldpsw x0, x2, [x1, #8]", "load 8 x1+8"),
        (0x6900_8820, "stgp x0, x2, [x1, #16]", "store 16 x1+16"),
    ]);
}

#[test]
fn exclusives_are_a_locked_load_and_a_locked_store() {
    check(&[
        (0xc85f_7c20, "ldxr x0, [x1]", "load 8 x1+0 locked"),
        (0x8803_fc20, "stlxr w3, w0, [x1]", "store 4 x1+0 locked"),
        (0x085f_fc20, "ldaxrb w0, [x1]", "load 1 x1+0 locked"),
        (0xc87f_0820, "ldxp x0, x2, [x1]", "load 16 x1+0 locked"),
        (0x8823_0820, "stxp w3, w0, w2, [x1]", "store 8 x1+0 locked"),
    ]);
}

#[test]
fn ordered_accesses_lock_nothing() {
    check(&[
        (0xc8df_fc20, "ldar x0, [x1]", "load 8 x1+0"),
        (0x089f_fc20, "stlrb w0, [x1]", "store 1 x1+0"),
        (0xb8bf_c020, "ldapr w0, [x1]", "load 4 x1+0"),
        (0xd95f_8020, "ldapur x0, [x1, #-8]", "load 8 x1-8"),
        (0x5900_2020, "stlurh w0, [x1, #2]", "store 2 x1+2"),
    ]);
}

#[test]
fn atomics_read_and_write_in_one() {
    check(&[
        (0x88a0_7c22, "cas w0, w2, [x1]", "rmw 4 x1+0 locked"),
        (0xc8e0_fc22, "casal x0, x2, [x1]", "rmw 8 x1+0 locked"),
        (
            0x4860_7c82,
            "caspa x0, x1, x2, x3, [x4]",
            "rmw 16 x4+0 locked",
        ),
        (
            0x0820_7c82,
            "casp w0, w1, w2, w3, [x4]",
            "rmw 8 x4+0 locked",
        ),
        (0xf820_0022, "ldadd x0, x2, [x1]", "rmw 8 x1+0 locked"),
        (0x38e0_0022, "ldaddalb w0, w2, [x1]", "rmw 1 x1+0 locked"),
        (0xb820_303f, "stset w0, [x1]", "rmw 4 x1+0 locked"),
        (0xf820_8022, "swp x0, x2, [x1]", "rmw 8 x1+0 locked"),
        (0x7820_6022, "ldumaxh w0, w2, [x1]", "rmw 2 x1+0 locked"),
        (0x1922_1020, "ldclrp x0, x2, [x1]", "rmw 16 x1+0 locked"),
        (0x1922_8020, "swpp x0, x2, [x1]", "rmw 16 x1+0 locked"),
        (0xf83f_9028, "st64b x8, [x1]", "store 64 x1+0"),
        (0xf83f_d028, "ld64b x8, [x1]", "load 64 x1+0"),
    ]);
}

#[test]
fn a_zeroed_block_is_a_store_and_hints_are_none() {
    check(&[
        (0xd50b_7421, "dc zva, x1", "store 64 x1+0"),
        (0xf980_0020, "prfm pldl1keep, [x1]", "prefetch"),
        (0xf880_1020, "prfum pldl1keep, [x1, #1]", "prefetch"),
        (0xd800_0040, "prfm pldl1keep, .+8", "prefetch"),
        (0xd50b_7e21, "dc civac, x1", "nothing"),
        (0x8b02_0020, "add x0, x1, x2", "nothing"),
        (0x1400_0000, "b .", "nothing"),
        (0xd503_201f, "nop", "nothing"),
        (0xd920_0820, "stg x0, [x1]", "nothing"),
        (0xd503_3bbf, "dmb ish", "nothing"),
        (0, "udf #0", "nothing"),
        (u32::MAX, "no instruction", "nothing"),
    ]);
}

fn hit<'a>(registers: &'a Registers, words: &'a [WatchedWord]) -> Hit<'a> {
    Hit {
        stopped: Stopped::Before(registers),
        words,
        alone: &[],
        packed: false,
        stack_top: None,
        kernel: false,
    }
}

fn resolved(instruction: u32, addr: u64) -> Result<String, Unresolved> {
    let word = WatchedWord {
        pid: Pid(1),
        addr,
        len: 8,
    };
    let mut out = Vec::new();
    let registers = registers();
    resolve(&registers, instruction, &hit(&registers, &[word]), &mut out)?;
    let t = out.first().expect("an access with every success");
    assert_eq!(t.ip, PC);
    Ok(format!(
        "{:?} {} {:#x} in {}",
        t.op, t.size, t.addr, t.within
    ))
}

#[test]
fn the_access_must_touch_the_watched_word() {
    let ldp = 0xa8c1_0820; // ldp x0, x2, [x1], #16
    let of_pair = Ok("Load 16 0x100000 in 0".to_owned());
    assert_eq!(resolved(ldp, X1 + 8), of_pair);
    assert_eq!(resolved(ldp, X1), of_pair);
    assert_eq!(resolved(ldp, X1 + 16), Err(Unresolved::NoCoveringAccess));
    assert_eq!(resolved(ldp, X1 - 8), Err(Unresolved::NoCoveringAccess));
}

#[test]
fn an_access_through_a_signed_pointer_is_where_the_watched_word_says() {
    let ldraa = 0xf820_1420;
    assert_eq!(resolved(ldraa, 0x5008), Ok("Load 8 0x5008 in 0".to_owned()));
}

#[test]
fn what_touches_no_memory_or_only_hints_resolves_to_nothing() {
    assert_eq!(resolved(0xd503_201f, X1), Err(Unresolved::NoMemoryOperand));
    assert_eq!(resolved(0xf980_0020, X1), Err(Unresolved::NoCoveringAccess));
}

#[test]
fn no_word_makes_the_decoder_fail() {
    let mut word = 1u32;
    let mut out = Vec::new();
    let watched = WatchedWord {
        pid: Pid(1),
        addr: X1,
        len: 4,
    };
    for _ in 0..1_000_000 {
        // xorshift32 (Marsaglia 2003)
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        out.clear();
        let registers = registers();
        let found = resolve(&registers, word, &hit(&registers, &[watched]), &mut out);
        assert_eq!(found.is_ok(), out.len() == 1);
        assert!(out.iter().all(|t| (1..=64).contains(&t.size)));
    }
}
