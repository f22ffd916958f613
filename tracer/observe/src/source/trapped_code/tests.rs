//! Resolving in this very process, whose code is known to run.

use std::{path::Path, sync::Arc};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};

use super::{LiveText, TrappedCode};
use crate::{
    access::{Op, Pid},
    decode::{
        Registers,
        trap::{Hit, Stopped, Text, Trapped},
    },
    event::{Unresolved, WatchedWord},
    module::ModuleStore,
    space::{AddressSpaces, KERNEL_START},
    sys::proc_snapshot,
};

const STACK: u64 = 0x7000_0000;

fn own_pid() -> Pid {
    Pid(std::process::id())
}

fn own_spaces() -> AddressSpaces {
    let mut spaces = AddressSpaces::default();
    for context in proc_snapshot::process(Path::new("/proc"), own_pid(), 0) {
        spaces.apply(&context);
    }
    spaces
}

fn modules() -> Arc<ModuleStore> {
    Arc::new(ModuleStore::new("/".into(), true))
}

/// A trap at `ip` of an access to the word at the top of the stack.
fn resolve(
    ip: u64,
    read_kernel: &mut dyn FnMut(u64, usize) -> Option<Vec<u8>>,
) -> Result<Vec<Trapped>, Unresolved> {
    let mut gpr = [0; 16];
    gpr[4] = STACK;
    let registers = Registers {
        gpr,
        ip,
        fs_base: None,
        gs_base: None,
    };
    let word = WatchedWord {
        pid: own_pid(),
        addr: STACK,
        len: 8,
    };
    let hit = Hit {
        stopped: Stopped::After(&registers),
        words: &[word],
        alone: &[],
        packed: false,
        stack_top: None,
        kernel: ip >= KERNEL_START,
    };
    let mut out = Vec::new();
    let mut code = TrappedCode::new(modules());
    code.resolve(&mut own_spaces(), own_pid(), &hit, read_kernel, &mut out)?;
    Ok(out)
}

/// The first `push` of a register in a function of this program, and the instruction after it.
fn a_push() -> (u64, u64) {
    let mut spaces = own_spaces();
    let modules = modules();
    let function = proc_snapshot::process as fn(&Path, Pid, u64) -> Vec<crate::event::Context>;
    let mut text = LiveText {
        modules: &modules,
        space: spaces.space(own_pid()),
        spaces: &spaces,
        pid: own_pid(),
        read_kernel: &mut |_, _| None,
        nameless: &mut crate::source::nameless_code::NamelessCode::default(),
    };
    let found = text.function(function as usize as u64).unwrap();
    let push = Decoder::with_ip(64, &found.bytes, found.start, DecoderOptions::NONE)
        .into_iter()
        .take_while(|i| i.flow_control() != FlowControl::Return)
        .find(|i| i.mnemonic() == Mnemonic::Push && i.op0_kind() == OpKind::Register)
        .unwrap();
    (push.ip(), push.next_ip())
}

#[test]
fn code_of_a_module_is_read_from_its_file() {
    let (push, next) = a_push();
    let accesses = resolve(next, &mut |_, _| None).unwrap();
    assert_eq!(
        accesses,
        [Trapped {
            ip: push,
            addr: STACK,
            size: 8,
            op: Op::Store,
            locked: false,
            within: 0,
        }]
    );
    // What is before the push is not a push of the same word.
    assert_ne!(resolve(push, &mut |_, _| None), Ok(accesses));
}

#[test]
fn an_unmapped_ip_says_so() {
    assert_eq!(resolve(16, &mut |_, _| None), Err(Unresolved::NoMapping));
}

#[test]
fn code_in_no_file_is_read_from_memory() {
    // Bytes on the heap are as good as a JIT compiler's: nop.., push %rax, nop..
    let mut code = vec![0x90u8; 256];
    code[200] = 0x50;
    // The compiler does not see who reads it.
    let code = std::hint::black_box(code);
    let start = code.as_ptr() as u64;
    let accesses = resolve(start + 201, &mut |_, _| None).unwrap();
    assert_eq!((accesses[0].ip, accesses[0].op), (start + 200, Op::Store));
    let elsewhere = resolve(start + 200, &mut |_, _| None);
    assert_eq!(elsewhere, Err(Unresolved::NoCoveringAccess));
}

#[test]
fn kernel_code_is_asked_for() {
    // No function is at this address: the bytes around it are read instead.
    let ip = KERNEL_START + 0x1000;
    let mut asked = Vec::new();
    let accesses = resolve(ip, &mut |addr, len| {
        asked.push(addr);
        let mut bytes = vec![0x90; len];
        if let Some(last) = bytes.last_mut().filter(|_| addr + len as u64 == ip) {
            *last = 0x50;
        }
        Some(bytes)
    });
    assert!(asked.iter().all(|addr| *addr >= KERNEL_START));
    assert_eq!(accesses.unwrap()[0].ip, ip - 1);
    assert_eq!(resolve(ip, &mut |_, _| None), Err(Unresolved::KernelText));
}
