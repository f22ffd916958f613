//! Code without function bounds.

use iced_x86::{
    IcedError, Register,
    code_asm::{CodeAssembler, byte_ptr, dword_ptr, eax, qword_ptr, r8, rax, rbx, rcx, rdi, rdx},
};

use super::{DATA, Memory, START, Scene, assemble, line, registers, resolve, word};
use crate::{decode::trap::TrapCode, event::Unresolved};

/// What a trap after `len` bytes of nameless code tells.
fn told(code: &[u8], len: usize, set: &[(Register, u64)], addr: u64) -> Result<String, Unresolved> {
    let mut memory = Memory {
        nameless: true,
        ..Memory::default()
    }
    .bare(START, code);
    let mut all = vec![(Register::RDI, DATA)];
    all.extend_from_slice(set);
    let scene = Scene {
        bytes: Vec::new(),
        registers: registers(START + len as u64, &all),
        words: vec![word(addr, 8)],
        alone: Vec::new(),
        packed: false,
        stack_top: None,
        kernel: false,
    };
    let accesses = resolve(&mut TrapCode::default(), &mut memory, &scene)?;
    assert_eq!(accesses.len(), 1);
    let t = &accesses[0];
    Ok(format!("-{} {}", START + len as u64 - t.ip, line(t)))
}

/// Ordinary instructions, the one under test, more of them; traps after the tested one.
fn in_the_middle(
    addr: u64,
    set: &[(Register, u64)],
    build: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Result<String, Unresolved> {
    let before = |a: &mut CodeAssembler| {
        for _ in 0..4 {
            a.lea(rbx, qword_ptr(rcx + rdx * 4 + 0x40))?;
            a.add(rax, 0x1234)?;
            a.mov(dword_ptr(rcx + 0x48), eax)?;
            a.cmp(rbx, rdx)?;
        }
        Ok(())
    };
    let length = assemble(START, |a| {
        before(a)?;
        build(a)
    })
    .len();
    let code = assemble(START, |a| {
        before(a)?;
        build(a)?;
        a.add(rax, rbx)?;
        a.mov(qword_ptr(rcx), rax)?;
        a.ret()
    });
    told(&code, length, set, addr)
}

#[test]
fn decoding_in_step_tells_a_prefix_from_the_byte_before() {
    let is = |text: &str| Ok(text.to_owned());
    assert_eq!(
        in_the_middle(DATA, &[], |a| a.mov(qword_ptr(rdi), rax)),
        is("-3 store 8 data+0 in 8")
    );
    assert_eq!(
        in_the_middle(DATA, &[], |a| a.mov(dword_ptr(rdi), eax)),
        is("-2 store 4 data+0")
    );
    assert_eq!(
        in_the_middle(DATA, &[], |a| a.lock().inc(dword_ptr(rdi))),
        is("-3 rmw 4 data+0 locked")
    );
    assert_eq!(
        in_the_middle(DATA, &[(Register::R8, DATA)], |a| a.cmp(byte_ptr(r8), 0)),
        is("-4 load 1 data+0")
    );
    assert_eq!(
        in_the_middle(DATA, &[], |a| a.mov(rax, qword_ptr(rax))),
        is("-3 load 8 data+0 in 8")
    );
}

#[test]
fn nothing_that_touches_the_word_is_nothing() {
    let none = Err(Unresolved::NoModule);
    // Why there are no bounds is the reason only where nothing could be read.
    assert_eq!(told(&[], 0, &[], DATA), none);
    let none = Err(Unresolved::NoCoveringAccess);
    assert_eq!(
        in_the_middle(DATA + 8, &[], |a| a.mov(qword_ptr(rdi), rax)),
        none
    );
    assert_eq!(in_the_middle(DATA, &[], |a| a.add(rax, rbx)), none);
}

#[test]
fn at_the_start_of_readable_memory_fewer_bytes_do() {
    // START begins a page.
    let code = [0x48, 0x89, 0x07, 0x90];
    assert_eq!(
        told(&code, 3, &[], DATA),
        Ok("-3 store 8 data+0 in 8".to_owned())
    );
    // One reading only.
    let code = [0x89, 0x07, 0x90];
    assert_eq!(
        told(&code, 2, &[], DATA),
        Ok("-2 store 4 data+0".to_owned())
    );
}

#[test]
fn nothing_is_read_where_the_memory_in_the_middle_of_a_page_begins() {
    // The kernel reads whole pages or nothing; other readers may not.
    let mut code = vec![0; 0x300];
    code[0x2fe..].copy_from_slice(&[0x89, 0x07]);
    let mut memory = Memory {
        nameless: true,
        ..Memory::default()
    }
    .bare(START + 0x2fe, &code[0x2fe..]);
    let scene = Scene {
        bytes: Vec::new(),
        registers: registers(START + 0x300, &[(Register::RDI, DATA)]),
        words: vec![word(DATA, 8)],
        alone: Vec::new(),
        packed: false,
        stack_top: Some(START + 0x300),
        kernel: false,
    };
    let found = resolve(&mut TrapCode::default(), &mut memory, &scene);
    assert_eq!(found, Err(Unresolved::NoModule));
}

#[test]
fn a_repetition_at_the_ip_is_seen() {
    let code = [0x90, 0x90, 0xf3, 0xaa, 0xc3];
    let set = [(Register::RDI, DATA + 1)];
    assert_eq!(
        told(&code, 2, &set, DATA),
        Ok("-0 store 1 data+0".to_owned())
    );
}

#[test]
fn the_load_of_a_return_address_after_a_call() {
    let code = assemble(START, |a| {
        for _ in 0..8 {
            a.lea(rbx, qword_ptr(rcx + rdx * 4 + 0x40))?;
        }
        a.call(START + 0x100)?;
        a.nop()
    });
    let at = code.len() - 1;
    assert_eq!(
        told(&code, at, &[], super::STACK - 8),
        Ok("-5 load 8 stack-8".to_owned())
    );
}
