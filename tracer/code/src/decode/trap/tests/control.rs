//! Accesses by, or right before, jumps, calls and returns.

use iced_x86::{
    IcedError, Register,
    code_asm::{CodeAssembler, dword_ptr, ebx, qword_ptr, rax, rbx, rcx, rdi, rsp},
};

use super::{DATA, Memory, STACK, START, Scene, assemble, ips, word};

const NONE: [&str; 1] = ["no_covering_access"];
/// Where the caller's function begins.
const CALLER: u64 = START + 0x1000;
/// Where a stub begins.
const STUB: u64 = START + 0x2000;

fn told(
    at: usize,
    addr: u64,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) -> Vec<String> {
    Scene::at(at, &[(Register::RDI, DATA)], &[word(addr, 8)], build).told()
}

/// compare, jump to the return, nop, return.
fn compare_and_jump(a: &mut CodeAssembler) -> Result<(), IcedError> {
    let mut out = a.create_label();
    a.cmp(qword_ptr(rdi), rcx)?;
    a.jne(out)?;
    a.nop()?;
    a.mov(rax, rcx)?;
    a.set_label(&mut out)?;
    a.ret()
}

#[test]
fn a_comparison_before_its_jump() {
    assert_eq!(told(1, DATA, compare_and_jump), ["0 load 8 data+0"]);
}

#[test]
fn a_comparison_fused_with_its_jump_is_found_on_both_sides() {
    assert_eq!(told(2, DATA, compare_and_jump), ["0 load 8 data+0"]);
    assert_eq!(told(4, DATA, compare_and_jump), ["0 load 8 data+0"]);
    assert_eq!(told(4, DATA + 8, compare_and_jump), NONE);
    // Neither reached by the jump nor by falling through it.
    assert_eq!(told(3, DATA, compare_and_jump), NONE);
}

#[test]
fn what_does_not_fuse_is_not_looked_for_behind_a_jump() {
    let build = |a: &mut CodeAssembler| {
        let mut out = a.create_label();
        a.dec(qword_ptr(rdi))?;
        a.jne(out)?;
        a.nop()?;
        a.set_label(&mut out)?;
        a.ret()
    };
    assert_eq!(told(1, DATA, build), ["0 rmw 8 data+0"]);
    assert_eq!(told(2, DATA, build), NONE);
    assert_eq!(told(3, DATA, build), NONE);
}

#[test]
fn an_indirect_jump_leads_anywhere_in_its_function() {
    let build = |a: &mut CodeAssembler| {
        a.jmp(qword_ptr(rdi + rcx * 8))?;
        a.nop()?;
        a.nop()?;
        a.ret()
    };
    let told = |at, index| {
        let set = [(Register::RDI, DATA), (Register::RCX, index)];
        Scene::at(at, &set, &[word(DATA + 16, 8)], build).told()
    };
    assert_eq!(told(2, 2), ["0 load 8 data+16"]);
    assert_eq!(told(3, 2), ["0 load 8 data+16"]);
    assert_eq!(told(3, 3), NONE);
}

#[test]
fn what_ran_before_a_jump_away_is_not_before_the_next_instruction() {
    let build = |a: &mut CodeAssembler| {
        a.ret()?;
        a.nop()?;
        a.ret()
    };
    // The return address that `ret` would have loaded is below the stack pointer.
    assert_eq!(told(1, STACK - 8, build), NONE);
}

#[test]
fn a_known_address_that_fits_goes_before_an_unknown_one() {
    let build = |a: &mut CodeAssembler| {
        a.mov(rbx, qword_ptr(rbx))?;
        a.nop()?;
        a.jmp(qword_ptr(rdi))
    };
    assert_eq!(told(1, DATA, build), ["2 load 8 data+0"]);
    assert_eq!(told(1, DATA + 8, build), ["0 load 8 data+8"]);
}

#[test]
fn where_two_instructions_may_have_run_the_access_is_in_what_either_touches() {
    let build = |a: &mut CodeAssembler| {
        a.mov(ebx, dword_ptr(rbx))?;
        a.nop()?;
        a.jmp(qword_ptr(rdi))
    };
    assert_eq!(told(1, DATA, build), ["2 load 8 data+0 in 8"]);
    // Not even the direction is known.
    let build = |a: &mut CodeAssembler| {
        a.lock().xadd(dword_ptr(rbx), ebx)?;
        a.nop()?;
        a.jmp(qword_ptr(rdi))
    };
    assert_eq!(told(1, DATA, build), ["ambiguous_path"]);
    assert_eq!(told(1, DATA + 8, build), ["0 rmw 4 data+8 locked in 8"]);
}

/// A trap at the first instruction of a function that was called from `caller`, whose call is its
/// instruction `call`.
fn at_entry(
    caller: &[u8],
    call: usize,
    set: &[(Register, u64)],
    addr: u64,
    memory: Memory,
) -> Vec<String> {
    let mut scene = Scene::at(0, set, &[word(addr, 8)], |a| {
        a.nop()?;
        a.ret()
    });
    let mut ends = ips(CALLER, caller);
    ends.push(CALLER + caller.len() as u64);
    scene.stack_top = Some(ends[call + 1]);
    scene
        .told_in(memory.with(CALLER, caller))
        .into_iter()
        .map(
            |line| match line.strip_prefix(&format!("{:#x} ", ends[call])) {
                Some(rest) => format!("call {rest}"),
                None => line,
            },
        )
        .collect()
}

#[test]
fn an_entered_function_was_called_through_memory() {
    let caller = assemble(CALLER, |a| {
        a.nop()?;
        a.call(qword_ptr(rdi + 8))?;
        a.ret()
    });
    let set = [(Register::RDI, DATA)];
    let told = |addr| at_entry(&caller, 1, &set, addr, Memory::default());
    assert_eq!(told(DATA + 8), ["call load 8 data+8"]);
    assert_eq!(told(DATA), NONE);
    assert_eq!(told(STACK), ["call store 8 stack+0"]);
    assert_eq!(told(STACK + 8), NONE);
}

#[test]
fn the_callers_stack_pointer_was_higher() {
    let caller = assemble(CALLER, |a| {
        a.call(qword_ptr(rsp + 8))?;
        a.ret()
    });
    let told = |addr| at_entry(&caller, 0, &[], addr, Memory::default());
    assert_eq!(told(STACK + 16), ["call load 8 stack+16"]);
    assert_eq!(told(STACK + 8), NONE);
}

#[test]
fn a_direct_call_pushes_its_return_address() {
    let caller = assemble(CALLER, |a| {
        a.call(START)?;
        a.ret()
    });
    assert_eq!(
        at_entry(&caller, 0, &[], STACK, Memory::default()),
        ["call store 8 stack+0"]
    );
    // The one that ends there calls something else.
    let caller = assemble(CALLER, |a| {
        a.call(START + 1)?;
        a.ret()
    });
    assert_eq!(at_entry(&caller, 0, &[], STACK, Memory::default()), NONE);
}

#[test]
fn an_operand_relative_to_the_ip_is_moved_with_its_module() {
    let caller = assemble(CALLER, |a| {
        a.call(qword_ptr(START + 0x3000))?;
        a.ret()
    });
    assert_eq!(
        at_entry(&caller, 0, &[], START + 0x3000, Memory::default()),
        ["call load 8 0x404000"]
    );
}

#[test]
fn a_call_through_a_stub_reads_the_stubs_slot() {
    let caller = assemble(CALLER, |a| {
        a.call(STUB)?;
        a.ret()
    });
    let stub = assemble(STUB, |a| {
        a.endbr64()?;
        a.bnd().jmp(qword_ptr(START + 0x3000))?;
        a.nop()
    });
    let slot = START + 0x3000;
    let jump = format!("{:#x} load 8 0x404000", STUB + 4);
    // A PLT has no function's bounds, a thunk has.
    for memory in [
        Memory::default().bare(STUB, &stub),
        Memory::default().with(STUB, &stub),
    ] {
        assert_eq!(at_entry(&caller, 0, &[], slot, memory), [jump.as_str()]);
    }
    let memory = Memory::default().bare(STUB, &stub);
    assert_eq!(at_entry(&caller, 0, &[], slot + 8, memory), NONE);
}

#[test]
fn a_virtual_call_through_a_thunk() {
    let caller = assemble(CALLER, |a| {
        a.call(STUB)?;
        a.ret()
    });
    let thunk = assemble(STUB, |a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.jmp(qword_ptr(rax + 16))
    });
    let set = [(Register::RAX, DATA)];
    let memory = Memory::default().with(STUB, &thunk);
    assert_eq!(
        at_entry(&caller, 0, &set, DATA + 16, memory),
        [format!("{:#x} load 8 data+16", STUB + 3)]
    );
}

#[test]
fn a_caller_without_bounds_is_found_by_its_bytes() {
    let direct = assemble(CALLER, |a| {
        a.nop()?;
        a.call(START)?;
        a.ret()
    });
    let scene = |addr, top| {
        let mut scene = Scene::at(0, &[(Register::R8, DATA)], &[word(addr, 8)], |a| {
            a.nop()?;
            a.ret()
        });
        scene.stack_top = Some(top);
        scene
    };
    let memory = Memory::default().bare(CALLER, &direct);
    assert_eq!(
        scene(STACK, CALLER + 6).told_in(memory),
        [format!("{:#x} store 8 stack+0", CALLER + 1)]
    );
    let memory = Memory::default().bare(CALLER, &direct);
    assert_eq!(scene(STACK, CALLER + 5).told_in(memory), NONE);
    let indirect = [0x90, 0x41, 0xff, 0x50, 0x08, 0xc3]; // call *8(%r8)
    let memory = Memory::default().bare(CALLER, &indirect);
    assert_eq!(
        scene(DATA + 8, CALLER + 5).told_in(memory),
        [format!("{:#x} load 8 data+8", CALLER + 1)]
    );
}

#[test]
fn after_a_call_the_word_below_the_stack_was_loaded_by_the_callees_return() {
    let build = |a: &mut CodeAssembler| {
        a.call(START + 0x100)?;
        a.nop()?;
        a.ret()
    };
    assert_eq!(told(1, STACK - 8, build), ["0 load 8 stack-8"]);
    assert_eq!(told(1, STACK, build), NONE);
    assert_eq!(told(2, STACK - 8, build), NONE);
}

#[test]
fn what_a_call_reads_is_not_before_what_runs_when_it_has_returned() {
    let build = |a: &mut CodeAssembler| {
        a.call(qword_ptr(rdi))?;
        a.nop()?;
        a.ret()
    };
    assert_eq!(told(1, DATA, build), NONE);
}

#[test]
fn a_call_within_the_function_pushes_too() {
    // A retpoline's inner call.
    let build = |a: &mut CodeAssembler| {
        let mut inner = a.create_label();
        a.call(inner)?;
        a.pause()?;
        a.set_label(&mut inner)?;
        a.mov(qword_ptr(rsp), rax)?;
        a.ret()
    };
    assert_eq!(told(2, STACK, build), ["0 store 8 stack+0"]);
    assert_eq!(told(1, STACK, build), NONE);
}

#[test]
fn an_ip_within_an_instruction_is_searched_backwards() {
    let mut scene = Scene::at(1, &[(Register::RDI, DATA)], &[word(DATA, 8)], |a| {
        a.mov(rax, qword_ptr(rdi))?;
        a.mov(rbx, 0x1122_3344_5566_7788u64)?;
        a.ret()
    });
    scene.registers.ip += 1;
    // Nothing that ends there touches the word.
    assert_eq!(scene.told(), NONE);
}
