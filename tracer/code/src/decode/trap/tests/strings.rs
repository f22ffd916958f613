//! String instructions, once, in the middle of repetitions, and at their end.

use iced_x86::{
    IcedError, Register,
    code_asm::{CodeAssembler, qword_ptr, rax, rdi},
};

use super::{DATA, STACK, Scene, word};

const NONE: [&str; 1] = ["no_covering_access"];
/// Far from the destination.
const SOURCE: u64 = STACK;

fn told(
    at: usize,
    pointers: (u64, u64),
    addr: u64,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Vec<String> {
    let (source, destination) = pointers;
    let set = [
        (Register::RSI, source),
        (Register::RDI, destination),
        (Register::RCX, 5),
    ];
    Scene::at(at, &set, &[word(addr, 8)], |a| {
        build(a)?;
        a.nop()?;
        a.ret()
    })
    .told()
}

#[test]
fn a_single_move_has_its_pointers_moved_on() {
    let movsq = |a: &mut CodeAssembler| a.movsq();
    assert_eq!(
        told(1, (SOURCE + 8, DATA + 8), DATA, movsq),
        ["0 store 8 data+0"]
    );
    assert_eq!(
        told(1, (SOURCE + 8, DATA + 8), SOURCE, movsq),
        ["0 load 8 stack+0"]
    );
    assert_eq!(told(1, (SOURCE + 8, DATA + 8), DATA + 8, movsq), NONE);
    assert_eq!(told(1, (SOURCE, DATA), DATA, CodeAssembler::lodsq), NONE);
    assert_eq!(
        told(1, (DATA + 8, 0), DATA, CodeAssembler::lodsq),
        ["0 load 8 data+0"]
    );
    assert_eq!(
        told(1, (0, DATA + 1), DATA, CodeAssembler::stosb),
        ["0 store 1 data+0"]
    );
    assert_eq!(
        told(1, (0, DATA + 1), DATA, CodeAssembler::scasb),
        ["0 load 1 data+0"]
    );
}

#[test]
fn a_move_between_two_watched_words_is_two_accesses() {
    let set = [(Register::RSI, SOURCE + 8), (Register::RDI, DATA + 8)];
    let words = [word(DATA, 8), word(SOURCE, 8)];
    let scene = Scene::at(1, &set, &words, |a| {
        a.movsq()?;
        a.nop()
    });
    let mut lines = scene.told();
    lines.sort();
    assert_eq!(lines, ["0 load 8 stack+0", "0 store 8 data+0"]);
}

#[test]
fn in_the_middle_the_ip_stays_at_it() {
    let rep = |a: &mut CodeAssembler| a.rep().movsb();
    assert_eq!(told(0, (SOURCE, DATA + 1), DATA, rep), ["0 store 1 data+0"]);
    // Processors that move groups of bytes may have touched the ones before it just as well.
    let third = "1 data+0 in 3";
    assert_eq!(
        told(0, (SOURCE, DATA + 3), DATA, rep),
        [format!("0 store {third}")]
    );
    assert_eq!(
        told(0, (DATA + 3, SOURCE), DATA, rep),
        [format!("0 load {third}")]
    );
    let cmps = |a: &mut CodeAssembler| a.repe().cmpsb();
    assert_eq!(
        told(0, (SOURCE, DATA + 8), DATA, cmps),
        ["0 load 1 data+0 in 8"]
    );
    // Without a prefix it has no middle.
    assert_eq!(
        told(0, (SOURCE, DATA + 3), DATA, CodeAssembler::movsb),
        NONE
    );
}

#[test]
fn at_the_end_the_last_element_is_exact() {
    let rep = |a: &mut CodeAssembler| a.rep().stosq();
    assert_eq!(told(1, (0, DATA + 8), DATA, rep), ["0 store 8 data+0"]);
    assert_eq!(told(1, (0, DATA + 4), DATA, rep), ["0 store 8 data-4"]);
    assert_eq!(
        told(1, (0, DATA + 12), DATA, rep),
        ["0 store 8 data-4 in 16"]
    );
}

#[test]
fn what_lies_further_behind_the_pointers_is_possible() {
    let rep = |a: &mut CodeAssembler| a.rep().movsb();
    for at in [0, 1] {
        assert_eq!(
            told(at, (SOURCE, DATA + 64), DATA, rep),
            ["0 store 1 data+0 in 8"]
        );
        assert_eq!(told(at, (SOURCE, DATA + 5000), DATA, rep), NONE);
        // An element as wide as the word is all of it.
        assert_eq!(
            told(at, (SOURCE, DATA + 64), DATA, |a| a.rep().movsq()),
            ["0 store 8 data+0"]
        );
        assert_eq!(
            told(at, (SOURCE, DATA + 4096), DATA, rep),
            ["0 store 1 data+0 in 8"]
        );
        // Not reached yet.
        assert_eq!(told(at, (SOURCE, DATA), DATA, rep), NONE);
    }
}

#[test]
fn the_instruction_before_a_repetition_goes_first_where_it_fits() {
    let set = [
        (Register::RDI, DATA),
        (Register::RSI, SOURCE),
        (Register::RCX, 5),
    ];
    let build = |a: &mut CodeAssembler| {
        a.mov(qword_ptr(rdi), rax)?;
        a.rep().stosq()?;
        a.nop()
    };
    assert_eq!(
        Scene::at(1, &set, &[word(DATA, 8)], build).told(),
        ["0 store 8 data+0"]
    );
    // One element further, the store before it is elsewhere and the repetition fits.
    let set = [(Register::RDI, DATA + 8), (Register::RCX, 4)];
    assert_eq!(
        Scene::at(1, &set, &[word(DATA, 8)], build).told(),
        ["1 store 8 data+0"]
    );
}
