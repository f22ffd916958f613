//! Functions as gcc and clang compile them, and twins that differ in what decides.

use iced_x86::code_asm::*;

use super::{CallConvention, Outcome, WordUse, Written, word_use};

const START: u64 = 0x1000;
/// Where the words are: far from the code, as the linker puts them.
const WORD: u64 = 0x4000;
const OTHER: u64 = 0x4008;

/// Assembles a function; `n` is the instruction that is asked for, from 0, `nop`s not counted.
fn asked(
    n: usize,
    write: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Option<WordUse> {
    let mut code = CodeAssembler::new(64).unwrap();
    write(&mut code).unwrap();
    let bytes = code.assemble(START).unwrap();
    let decoder = iced_x86::Decoder::with_ip(64, &bytes, START, 0);
    let ip = decoder.into_iter().nth(n).unwrap().ip();
    word_use(START, &bytes, ip, CallConvention::SystemV)
}

fn word() -> AsmMemoryOperand {
    dword_ptr(WORD)
}

#[test]
fn a_lock_is_taken_by_constants() {
    // while (atomic_exchange(&lock, 1)) ;
    let taken = asked(2, |a| {
        let mut again = a.create_label();
        a.mov(edx, 1)?;
        a.set_label(&mut again)?;
        a.mov(eax, edx)?;
        a.xchg(word(), eax)?;
        a.test(eax, eax)?;
        a.jne(again)?;
        a.ret()
    });
    let new = Written::Constant(1);
    let outcome = Outcome::Tested;
    assert_eq!(taken, Some(WordUse::Exchange { new, outcome }));

    // The constant comes from before two loops, and a third lets time pass.
    let taken = asked(5, |a| {
        let (mut round, mut again, mut wait) =
            (a.create_label(), a.create_label(), a.create_label());
        let mut got = a.create_label();
        a.mov(edx, 1)?;
        a.test(rdi, rdi)?;
        a.je(got)?;
        a.set_label(&mut round)?;
        a.inc(rcx)?;
        a.set_label(&mut again)?;
        a.mov(eax, edx)?;
        a.xchg(word(), eax)?;
        a.test(eax, eax)?;
        a.je(got)?;
        a.mov(eax, 16)?;
        a.set_label(&mut wait)?;
        a.pause()?;
        a.sub(eax, 1)?;
        a.jne(wait)?;
        a.jmp(again)?;
        a.set_label(&mut got)?;
        a.mov(word(), 0)?;
        a.cmp(rcx, rdi)?;
        a.jne(round)?;
        a.ret()
    });
    assert_eq!(taken, Some(WordUse::Exchange { new, outcome }));

    // The inner loop is jumped into, and padded in front.
    let taken = asked(5, |a| {
        let (mut round, mut again, mut wait) =
            (a.create_label(), a.create_label(), a.create_label());
        a.mov(edx, 1)?;
        a.set_label(&mut round)?;
        a.jmp(again)?;
        a.nop()?;
        a.set_label(&mut wait)?;
        a.pause()?;
        a.set_label(&mut again)?;
        a.mov(eax, edx)?;
        a.xchg(word(), eax)?;
        a.test(eax, eax)?;
        a.jne(wait)?;
        a.mov(word(), 0)?;
        a.dec(rdi)?;
        a.jne(round)?;
        a.ret()
    });
    assert_eq!(taken, Some(WordUse::Exchange { new, outcome }));

    // A compare-and-swap from 0, hoisted out of the loop, as gcc does.
    let taken = asked(3, |a| {
        let mut again = a.create_label();
        a.xor(ecx, ecx)?;
        a.mov(edx, 1)?;
        a.set_label(&mut again)?;
        a.mov(eax, ecx)?;
        a.lock().cmpxchg(word(), edx)?;
        a.jne(again)?;
        a.ret()
    });
    let expected = Written::Constant(0);
    assert_eq!(taken, Some(WordUse::CompareAndSwap { expected, new }));
}

#[test]
fn a_release_is_a_constant_whose_old_value_nobody_wants() {
    let stored = asked(0, |a| {
        a.mov(word(), 0)?;
        a.ret()
    });
    assert_eq!(stored, Some(WordUse::Write(Written::Constant(0))));
    let exchanged = asked(1, |a| {
        a.xor(eax, eax)?;
        a.xchg(word(), eax)?;
        a.xor(eax, eax)?;
        a.ret()
    });
    let new = Written::Constant(0);
    let outcome = Outcome::Unused;
    assert_eq!(exchanged, Some(WordUse::Exchange { new, outcome }));
    // As a function of its own, it may give the old value back.
    let returned = asked(1, |a| {
        a.xor(eax, eax)?;
        a.xchg(word(), eax)?;
        a.ret()
    });
    let outcome = Outcome::Unknown;
    assert_eq!(returned, Some(WordUse::Exchange { new, outcome }));
}

#[test]
fn an_index_is_moved_from_what_it_was() {
    let moved = asked(4, |a| {
        let mut out = a.create_label();
        a.mov(rax, qword_ptr(WORD))?;
        a.cmp(rax, 99)?;
        a.jg(out)?;
        a.lea(rdx, ptr(rax + 1))?;
        a.lock().cmpxchg(qword_ptr(WORD), rdx)?;
        a.set_label(&mut out)?;
        a.ret()
    });
    let expected = Written::Advanced(Some(0));
    let new = Written::Advanced(Some(1));
    assert_eq!(moved, Some(WordUse::CompareAndSwap { expected, new }));
    // In a loop what is expected comes from the load or from the attempt before.
    let moved = asked(2, |a| {
        let mut again = a.create_label();
        a.mov(rax, qword_ptr(rdi + 8))?;
        a.set_label(&mut again)?;
        a.lea(rdx, ptr(rax - 3))?;
        a.lock().cmpxchg(qword_ptr(rdi + 8), rdx)?;
        a.jne(again)?;
        a.ret()
    });
    let new = Written::Advanced(Some(-3));
    assert_eq!(moved, Some(WordUse::CompareAndSwap { expected, new }));
    // The twin reads another word first.
    let other = asked(2, |a| {
        a.mov(rax, qword_ptr(OTHER))?;
        a.lea(rdx, ptr(rax + 1))?;
        a.lock().cmpxchg(qword_ptr(WORD), rdx)?;
        a.ret()
    });
    let (expected, new) = (Written::Other, Written::Other);
    assert_eq!(other, Some(WordUse::CompareAndSwap { expected, new }));
}

#[test]
fn the_head_of_a_list_moves_to_the_node_behind() {
    let pop = asked(4, |a| {
        let mut again = a.create_label();
        let mut out = a.create_label();
        a.mov(rax, qword_ptr(WORD))?;
        a.set_label(&mut again)?;
        a.test(rax, rax)?;
        a.je(out)?;
        a.mov(rdx, qword_ptr(rax + 16))?;
        a.lock().cmpxchg(qword_ptr(WORD), rdx)?;
        a.jne(again)?;
        a.set_label(&mut out)?;
        a.ret()
    });
    let expected = Written::Advanced(Some(0));
    let new = Written::Followed;
    assert_eq!(pop, Some(WordUse::CompareAndSwap { expected, new }));
    // Push: the old head went into the node and came back.
    let push = asked(3, |a| {
        let mut again = a.create_label();
        a.mov(rax, qword_ptr(WORD))?;
        a.set_label(&mut again)?;
        a.mov(qword_ptr(rdi), rax)?;
        a.mov(rax, qword_ptr(rdi))?;
        a.lock().cmpxchg(qword_ptr(WORD), rdi)?;
        a.jne(again)?;
        a.ret()
    });
    let new = Written::Other;
    assert_eq!(push, Some(WordUse::CompareAndSwap { expected, new }));
}

#[test]
fn what_becomes_of_a_sum_tells_counters_from_reference_counts_and_tickets() {
    let add = |step, outcome| {
        Some(WordUse::Add {
            step: Some(step),
            outcome,
        })
    };
    let counted = asked(0, |a| {
        a.lock().add(qword_ptr(WORD), 1)?;
        a.ret()
    });
    assert_eq!(counted, add(1, Outcome::Unused));
    let put = asked(0, |a| {
        let mut free = a.create_label();
        a.lock().sub(qword_ptr(WORD), 1)?;
        a.je(free)?;
        a.ret()?;
        a.set_label(&mut free)?;
        a.jmp(0x9000)
    });
    assert_eq!(put, add(-1, Outcome::Tested));
    // As shared_ptr does it.
    let put = asked(1, |a| {
        let mut free = a.create_label();
        a.mov(eax, u32::MAX)?;
        a.lock().xadd(dword_ptr(rdi + 8), eax)?;
        a.cmp(eax, 1)?;
        a.je(free)?;
        a.ret()?;
        a.set_label(&mut free)?;
        a.jmp(0x9000)
    });
    assert_eq!(put, add(-1, Outcome::Tested));
    // An overflow check of a reference is no test for zero.
    let get = asked(0, |a| {
        let mut abort = a.create_label();
        a.lock().inc(qword_ptr(rdi))?;
        a.jle(abort)?;
        a.ret()?;
        a.set_label(&mut abort)?;
        a.ud2()
    });
    assert_eq!(get, add(1, Outcome::Used));
    let ticket = asked(1, |a| {
        let mut check = a.create_label();
        a.mov(edx, 1)?;
        a.lock().xadd(word(), edx)?;
        a.set_label(&mut check)?;
        a.mov(eax, dword_ptr(OTHER))?;
        a.cmp(eax, edx)?;
        a.jne(check)?;
        a.ret()
    });
    assert_eq!(ticket, add(1, Outcome::Turn));
    let slot = asked(1, |a| {
        a.mov(eax, 1)?;
        a.lock().xadd(word(), eax)?;
        a.mov(qword_ptr(rdi + rax * 8), rsi)?;
        a.ret()
    });
    assert_eq!(slot, add(1, Outcome::Used));
    let given_back = asked(1, |a| {
        a.mov(eax, 1)?;
        a.lock().xadd(word(), eax)?;
        a.ret()
    });
    assert_eq!(given_back, add(1, Outcome::Unknown));
    let by_register = asked(0, |a| {
        a.lock().add(qword_ptr(WORD), rsi)?;
        a.ret()
    });
    assert_eq!(
        by_register,
        Some(WordUse::Add {
            step: None,
            outcome: Outcome::Unused
        })
    );
}

#[test]
fn a_store_is_known_by_what_it_stores() {
    // head = head + 1, where the pointer to the queue is read again in between.
    let advanced = asked(5, |a| {
        a.mov(rcx, qword_ptr(OTHER))?;
        a.mov(rax, qword_ptr(rcx + 16))?;
        a.mov(qword_ptr(rsi), rax)?;
        a.mov(rcx, qword_ptr(OTHER))?;
        a.add(rax, 1)?;
        a.mov(qword_ptr(rcx + 16), rax)?;
        a.ret()
    });
    assert_eq!(advanced, Some(WordUse::Write(Written::Advanced(Some(1)))));
    // Begun again at the end of the ring.
    let wrapped = asked(5, |a| {
        let mut store = a.create_label();
        a.mov(eax, word())?;
        a.inc(eax)?;
        a.cmp(eax, 64)?;
        a.jne(store)?;
        a.xor(eax, eax)?;
        a.set_label(&mut store)?;
        a.mov(word(), eax)?;
        a.ret()
    });
    assert_eq!(wrapped, Some(WordUse::Write(Written::Advanced(None))));
    let masked = asked(3, |a| {
        a.mov(eax, word())?;
        a.inc(eax)?;
        a.and(eax, 63)?;
        a.mov(word(), eax)?;
        a.ret()
    });
    assert_eq!(masked, Some(WordUse::Write(Written::Advanced(None))));
    // A counter of the loop itself, stored: it begins at a constant and is none.
    let counted = asked(2, |a| {
        let mut again = a.create_label();
        a.xor(eax, eax)?;
        a.set_label(&mut again)?;
        a.inc(rax)?;
        a.mov(qword_ptr(WORD), rax)?;
        a.cmp(rax, rdi)?;
        a.jne(again)?;
        a.ret()
    });
    assert_eq!(counted, Some(WordUse::Write(Written::Other)));
    let either = asked(3, |a| {
        a.xor(eax, eax)?;
        a.cmp(rdi, 5)?;
        a.setg(al)?;
        a.mov(byte_ptr(WORD), al)?;
        a.ret()
    });
    assert_eq!(either, Some(WordUse::Write(Written::Choice)));
}

#[test]
fn unoptimised_code_keeps_its_constants_on_the_stack() {
    let taken = asked(5, |a| {
        let mut again = a.create_label();
        a.push(rbp)?;
        a.mov(rbp, rsp)?;
        a.set_label(&mut again)?;
        a.mov(dword_ptr(rbp - 4), 0)?;
        a.mov(edx, 1)?;
        a.mov(eax, dword_ptr(rbp - 4))?;
        a.lock().cmpxchg(word(), edx)?;
        a.jne(again)?;
        a.ret()
    });
    let expected = Written::Constant(0);
    let new = Written::Constant(1);
    assert_eq!(taken, Some(WordUse::CompareAndSwap { expected, new }));
    // The twin puts there what the word held.
    let moved = asked(7, |a| {
        a.push(rbp)?;
        a.mov(rbp, rsp)?;
        a.mov(eax, word())?;
        a.mov(dword_ptr(rbp - 4), eax)?;
        a.mov(edx, dword_ptr(rbp - 4))?;
        a.add(edx, 1)?;
        a.mov(eax, dword_ptr(rbp - 4))?;
        a.lock().cmpxchg(word(), edx)?;
        a.ret()
    });
    let expected = Written::Advanced(Some(0));
    let new = Written::Advanced(Some(1));
    assert_eq!(moved, Some(WordUse::CompareAndSwap { expected, new }));
}

#[test]
fn readers_test_compare_again_or_just_use() {
    let polled = asked(0, |a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.mov(eax, word())?;
        a.test(eax, eax)?;
        a.je(again)?;
        a.ret()
    });
    assert_eq!(polled, Some(WordUse::Read(Outcome::Tested)));
    let polled = asked(0, |a| {
        let mut again = a.create_label();
        a.set_label(&mut again)?;
        a.cmp(word(), 3)?;
        a.je(again)?;
        a.ret()
    });
    assert_eq!(polled, Some(WordUse::Read(Outcome::Tested)));
    let sequence = |n| {
        asked(n, |a| {
            let mut again = a.create_label();
            a.set_label(&mut again)?;
            a.mov(eax, word())?;
            a.mov(rdx, qword_ptr(OTHER))?;
            a.test(al, 1)?;
            a.jne(again)?;
            a.mov(esi, word())?;
            a.cmp(eax, esi)?;
            a.jne(again)?;
            a.mov(rax, rdx)?;
            a.ret()
        })
    };
    assert_eq!(sequence(0), Some(WordUse::Read(Outcome::Tested)));
    assert_eq!(sequence(4), Some(WordUse::Read(Outcome::Again)));
    let used = asked(0, |a| {
        a.mov(eax, word())?;
        a.add(rdi, rax)?;
        a.mov(rax, rdi)?;
        a.ret()
    });
    assert_eq!(used, Some(WordUse::Read(Outcome::Used)));
    let bounded = asked(0, |a| {
        let mut out = a.create_label();
        a.mov(eax, word())?;
        a.cmp(eax, 100)?;
        a.jg(out)?;
        a.inc(edx)?;
        a.set_label(&mut out)?;
        a.ret()
    });
    assert_eq!(bounded, Some(WordUse::Read(Outcome::Used)));
}

#[test]
fn a_call_in_between_keeps_what_the_convention_keeps() {
    let across = |convention| {
        let mut a = CodeAssembler::new(64).unwrap();
        a.mov(ebx, 1).unwrap();
        a.call(0x9000).unwrap();
        a.mov(word(), ebx).unwrap();
        a.ret().unwrap();
        let bytes = a.assemble(START).unwrap();
        let ip = iced_x86::Decoder::with_ip(64, &bytes, START, 0)
            .into_iter()
            .nth(2)
            .unwrap()
            .ip();
        word_use(START, &bytes, ip, convention)
    };
    assert_eq!(
        across(CallConvention::SystemV),
        Some(WordUse::Write(Written::Constant(1)))
    );
    assert_eq!(
        across(CallConvention::PointersOnly),
        Some(WordUse::Write(Written::Other))
    );
}

#[test]
fn blocks_of_memory_and_addresses_between_instructions_tell_nothing() {
    assert_eq!(asked(0, |a| a.rep().movsq()), None);
    assert_eq!(asked(0, |a| a.mov(eax, ebx)), None);
    let bytes = [0xc7, 0x07, 0, 0, 0, 0, 0xc3]; // movl $0, (%rdi); ret
    assert!(word_use(START, &bytes, START, CallConvention::SystemV).is_some());
    for ip in [START + 1, START + 7, START - 1, 0, u64::MAX] {
        assert_eq!(
            word_use(START, &bytes, ip, CallConvention::SystemV),
            None,
            "{ip:#x}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_give_an_answer(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        at in 0u64..200,
    ) {
        let _ = word_use(START, &bytes, START + at, CallConvention::SystemV);
    }

    /// A chain of copies as long as a function may be.
    #[test]
    fn long_chains_take_a_bounded_stack(copies in 1usize..20_000) {
        let mut bytes = Vec::new();
        for _ in 0..copies / 2 {
            bytes.extend([0x89, 0xc8, 0x89, 0xc1]); // movl %ecx, %eax; movl %eax, %ecx
        }
        bytes.extend([0x89, 0x0f, 0xc3]); // movl %ecx, (%rdi); ret
        let at = START + bytes.len() as u64 - 3;
        let found = word_use(START, &bytes, at, CallConvention::SystemV);
        proptest::prop_assert_eq!(found, Some(WordUse::Write(Written::Other)));
    }

    /// Long functions of jumps and copies are the worst for a search along all ways.
    #[test]
    fn tangled_code_takes_bounded_time(targets in proptest::collection::vec(0i8..100, 40)) {
        let mut bytes = Vec::new();
        for target in &targets {
            // movl %ecx, %eax; je ..; movl %eax, %ecx; jne ..
            bytes.extend([0x89, 0xc8, 0x74, target.wrapping_sub(50).cast_unsigned()]);
            bytes.extend([0x89, 0xc1, 0x75, target.wrapping_sub(20).cast_unsigned()]);
        }
        bytes.extend([0x89, 0x07, 0xc3]); // movl %eax, (%rdi); ret
        let at = START + bytes.len() as u64 - 3;
        let begun = std::time::Instant::now();
        let _ = word_use(START, &bytes, at, CallConvention::SystemV);
        proptest::prop_assert!(begun.elapsed().as_secs() < 2);
    }
}
