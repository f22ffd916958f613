//! What is kept between hits.

use iced_x86::{
    Register,
    code_asm::{qword_ptr, rax, rdi},
};

use super::{DATA, Memory, START, Scene, resolve, word};
use crate::{
    access::Op,
    decode::trap::{Hit, MOST_CANDIDATES, Stopped, TrapCode, a64},
    event::Unresolved,
};

#[test]
fn a_place_is_decoded_once_and_judged_by_each_hits_registers() {
    let scene = |addr, rdi_value| {
        Scene::at(1, &[(Register::RDI, rdi_value)], &[word(addr, 8)], |a| {
            a.mov(qword_ptr(rdi), rax)?;
            a.nop()
        })
    };
    let mut memory = Memory::default().with(START, &scene(DATA, DATA).bytes);
    let mut code = TrapCode::default();
    let first = resolve(&mut code, &mut memory, &scene(DATA, DATA)).unwrap();
    let second = resolve(&mut code, &mut memory, &scene(DATA + 64, DATA + 64)).unwrap();
    assert_eq!(memory.asked, 1);
    assert_eq!((first[0].addr, second[0].addr), (DATA, DATA + 64));
    assert!(resolve(&mut code, &mut memory, &scene(DATA, DATA + 64)).is_err());
    assert_eq!(memory.asked, 1);
}

#[test]
fn what_is_kept_is_bounded() {
    let mut scene = Scene::at(1, &[(Register::RDI, DATA)], &[word(DATA, 8)], |a| {
        for _ in 0..100 {
            a.mov(qword_ptr(rdi), rax)?;
        }
        a.ret()
    });
    let mut memory = Memory::default().with(START, &scene.bytes);
    let mut code = TrapCode::default();
    // More places than are kept, in functions that are short to decode.
    for number in 0..MOST_CANDIDATES as u64 {
        let start = START + 1000 * number;
        memory.functions[0].0 = start;
        scene.registers.ip = start + 3;
        resolve(&mut code, &mut memory, &scene).unwrap();
        assert!(code.candidates <= MOST_CANDIDATES);
        assert!(code.places.len() <= code.candidates);
    }
    assert_eq!(memory.asked, MOST_CANDIDATES);
}

#[test]
fn on_aarch64_the_pc_is_the_instruction_itself() {
    let mut registers = a64::Registers {
        x: [0; 31],
        sp: 0,
        pc: START + 4,
    };
    registers.x[1] = DATA;
    let words = [word(DATA, 8)];
    // nop; str x0, [x1], #16; nop
    let code: Vec<u8> = [0xd503_201fu32, 0xf801_0420, 0xd503_201f]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let mut memory = Memory::default().bare(START, &code);
    let mut told = |pc| {
        registers.pc = pc;
        let hit = Hit {
            stopped: Stopped::Before(&registers),
            words: &words,
            alone: &[],
            packed: false,
            stack_top: None,
            kernel: false,
        };
        let mut out = Vec::new();
        let found = TrapCode::default().resolve(&mut memory, &hit, &mut out);
        found.map(|()| out.iter().map(|t| (t.ip, t.op, t.addr)).collect())
    };
    assert_eq!(told(START + 4), Ok(vec![(START + 4, Op::Store, DATA)]));
    assert_eq!(told(START + 8), Err(Unresolved::NoMemoryOperand));
    assert_eq!(told(START + 12), Err(Unresolved::NoMapping));
}
