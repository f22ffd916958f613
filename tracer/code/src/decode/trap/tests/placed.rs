//! Accesses that overwrote their own address: what other words and the code before tell of them.

use iced_x86::{
    IcedError, Register,
    code_asm::{
        CodeAssembler, byte_ptr, dword_ptr, eax, ebx, ecx, qword_ptr, rax, rbx, rcx, rdi, rdx, rsi,
        rsp,
    },
};

use super::{DATA, STACK, START, Scene, word};
use crate::event::WatchedWord;

/// What a trap after the last of these instructions tells, where words were hit and others were left alone.
fn told(
    hit: &[WatchedWord],
    alone: &[WatchedWord],
    set: &[(Register, u64)],
    build: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Vec<String> {
    let count = super::ips(START, &super::assemble(START, |a| build(a))).len();
    let mut scene = Scene::at(count, set, hit, |a| {
        build(a)?;
        a.nop()?;
        a.ret()
    });
    scene.alone = alone.to_vec();
    scene.told()
}

const HALVES: [WatchedWord; 2] = [
    WatchedWord {
        pid: crate::access::Pid(1),
        addr: DATA,
        len: 4,
    },
    WatchedWord {
        pid: crate::access::Pid(1),
        addr: DATA + 4,
        len: 4,
    },
];

#[test]
fn a_watched_part_tells_where_in_its_word_an_access_was() {
    let [low, high] = HALVES;
    let load = |a: &mut CodeAssembler| a.mov(eax, dword_ptr(rax));
    assert_eq!(told(&[low], &[high], &[], load), ["0 load 4 data+0"]);
    assert_eq!(told(&[high], &[low], &[], load), ["0 load 4 data+4"]);
    let all = word(DATA, 8);
    assert_eq!(told(&[all], &[], &[], load), ["0 load 4 data+0 in 8"]);
    // As wide as both: it hits both.
    let load = |a: &mut CodeAssembler| a.mov(rax, qword_ptr(rax));
    assert_eq!(told(&[low, high], &[], &[], load), ["0 load 8 data+0"]);
    let load = |a: &mut CodeAssembler| a.movzx(eax, byte_ptr(rax));
    assert_eq!(told(&[high], &[low], &[], load), ["0 load 1 data+4 in 4"]);
    let byte = word(DATA + 6, 1);
    assert_eq!(told(&[byte], &[low], &[], load), ["0 load 1 data+6"]);
}

#[test]
fn what_was_left_alone_forbids_aligned_places_before_others() {
    let [low, high] = HALVES;
    let load = |a: &mut CodeAssembler| a.mov(rax, qword_ptr(rax));
    // Aligned, it would have touched the lower half as well.
    assert_eq!(told(&[high], &[low], &[], load), ["0 load 8 data+4 in 11"]);
    let next = word(DATA + 8, 8);
    assert_eq!(
        told(&[low, high, next], &[], &[], load),
        ["0 load 8 data+1 in 10"]
    );
    // Bytes 4 to 7 alone cannot be eight.
    assert_eq!(
        told(&[high], &[low, next], &[], load),
        ["no_covering_access"]
    );
    // Packed: from the upper half into the next word.
    let load = |a: &mut CodeAssembler| a.mov(eax, dword_ptr(rax));
    assert_eq!(
        told(&[high, next], &[low], &[], load),
        ["0 load 4 data+5 in 6"]
    );
}

#[test]
fn copies_and_sums_tell_an_address_that_is_gone() {
    let set = [(Register::RDI, DATA), (Register::RSI, 3)];
    let all = [word(DATA + 8, 8)];
    assert_eq!(
        told(&all, &[], &set, |a| {
            a.mov(rax, rdi)?;
            a.mov(eax, dword_ptr(rax + 12))
        }),
        ["1 load 4 data+12"]
    );
    assert_eq!(
        told(&all, &[], &set, |a| {
            a.lea(rax, qword_ptr(rdi + rsi * 4))?;
            a.add(rdx, 1)?;
            a.lock().xadd(dword_ptr(rax), eax)
        }),
        ["2 rmw 4 data+12 locked"]
    );
    // The copy is made from what is overwritten.
    assert_eq!(
        told(&all, &[], &[(Register::RBX, DATA + 8)], |a| {
            a.mov(rbx, rax)?;
            a.movzx(eax, byte_ptr(rax + 2))
        }),
        ["1 load 1 data+10"]
    );
}

#[test]
fn what_is_not_told_stays_within_the_word() {
    let set = [(Register::RDI, DATA), (Register::RSI, DATA)];
    let all = [word(DATA + 8, 8)];
    let within = ["load 4 data+8 in 8"];
    let check = |build: &dyn Fn(&mut CodeAssembler) -> Result<(), IcedError>| {
        let lines = told(&all, &[], &set, build);
        let line = lines[0].split_once(' ').map(|(_, line)| line.to_owned());
        assert_eq!(line.as_deref(), Some(within[0]));
    };
    // From memory, which may have changed since.
    check(&|a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(eax, dword_ptr(rax + 12))
    });
    // The copy was made before, and the original changed after it.
    check(&|a| {
        a.mov(rdi, rax)?;
        a.mov(rax, qword_ptr(rcx))?;
        a.mov(eax, dword_ptr(rax + 12))
    });
    // A call leaves nothing as it was.
    check(&|a| {
        a.mov(rax, rdi)?;
        a.call(START + 0x200)?;
        a.mov(eax, dword_ptr(rax + 12))
    });
    // What the code computes is elsewhere, so the code was not entered as it seems.
    check(&|a| {
        a.lea(rax, qword_ptr(rdi + 0x100))?;
        a.mov(eax, dword_ptr(rax + 12))
    });
}

#[test]
fn only_code_that_surely_ran_is_followed() {
    let set = [(Register::RDI, DATA)];
    let all = [word(DATA + 8, 8)];
    // A jump leads between the copy and the load.
    let jumped = |a: &mut CodeAssembler| {
        let mut over = a.create_label();
        a.test(rcx, rcx)?;
        a.jne(over)?;
        a.mov(rax, rdi)?;
        a.set_label(&mut over)?;
        a.mov(eax, dword_ptr(rax + 12))
    };
    assert_eq!(told(&all, &[], &set, jumped), ["3 load 4 data+8 in 8"]);
    let scene = |last: &dyn Fn(&mut CodeAssembler) -> Result<(), IcedError>| {
        Scene::at(2, &set, &all, |a| {
            a.mov(rax, rdi)?;
            a.mov(eax, dword_ptr(rax + 12))?;
            a.add(rbx, rax)?;
            last(a)
        })
        .told()
    };
    assert_eq!(scene(&|a| a.ret()), ["1 load 4 data+12"]);
    // A jump table may lead anywhere, and code outside of the function back to anywhere.
    let within = ["1 load 4 data+8 in 8"];
    assert_eq!(scene(&|a| a.jmp(rbx)), within);
    assert_eq!(scene(&|a| a.je(START + 0x400)), within);
    assert_eq!(scene(&|a| a.jmp(START)), ["1 load 4 data+12"]);
}

#[test]
fn pointers_followed_from_one_to_the_next_fill_their_word() {
    let all = [word(DATA, 8)];
    let set = [(Register::RSP, STACK)];
    assert_eq!(
        told(&all, &[], &set, |a| a.mov(rdx, qword_ptr(rdx))),
        ["0 load 8 data+0"]
    );
    assert_eq!(
        told(&all, &[], &set, |a| a.add(rdx, qword_ptr(rsp + rdx))),
        ["0 load 8 data+0"]
    );
    // 32-bit pointers, as of x32 and compressed heaps, do not.
    assert_eq!(
        told(&all, &[], &set, |a| a.mov(ecx, dword_ptr(ecx))),
        ["0 load 4 data+0 in 8"]
    );
    assert_eq!(
        told(&all, &[], &set, |a| a.mov(ebx, dword_ptr(rax + rbx * 8))),
        ["0 load 4 data+0 in 8"]
    );
}

#[test]
fn beside_data_that_is_not_aligned_alignment_says_nothing() {
    let [low, high] = HALVES;
    let told = |hit: &[WatchedWord], alone: &[WatchedWord]| {
        let mut scene = Scene::at(1, &[], hit, |a| {
            a.mov(eax, dword_ptr(rax))?;
            a.nop()
        });
        scene.alone = alone.to_vec();
        scene.packed = true;
        scene.told()
    };
    assert_eq!(told(&[word(DATA, 8)], &[]), ["0 load 4 data-3 in 14"]);
    assert_eq!(told(&[high], &[low]), ["0 load 4 data+4 in 7"]);
    let next = word(DATA + 8, 8);
    assert_eq!(told(&[high], &[low, next]), ["0 load 4 data+4"]);
}
