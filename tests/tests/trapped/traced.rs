//! A child that runs given code on the real processor, with its debug registers and single steps in our
//! hands: the truth about where traps land.

use std::{io, mem::offset_of, ptr::null_mut, thread::sleep, time::Duration};

/// Bytes of code, and where the helper function begins in them.
pub(super) const CODE_BYTES: usize = 4096;
pub(super) const HELPER: u64 = 0x800;
/// Bytes of data; the stack pointer starts in the middle of its upper half.
pub(super) const DATA_BYTES: usize = 8192;
pub(super) const STACK: u64 = 6144;

/// A watched word: offset in the data, bytes, whether loads trap too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub offset: u64,
    pub len: u8,
    pub loads: bool,
}

/// A stop at a breakpoint, or after one step.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    /// Of the instruction that ran, where it was stepped over.
    pub stepped_ip: Option<u64>,
    /// rax rcx rdx rbx rsp rbp rsi rdi r8..r15.
    pub gpr: [u64; 16],
    pub ip: u64,
    /// Bit n: watch n was hit.
    pub hits: u8,
    pub stack_top: u64,
}

/// Code and data, at the same addresses in this process and its children.
pub(super) struct Arena {
    pub code: u64,
    pub data: u64,
}

fn check(result: libc::c_long, what: &str) -> libc::c_long {
    assert!(result != -1, "{what}: {}", io::Error::last_os_error());
    result
}

fn map(bytes: usize, protection: libc::c_int) -> u64 {
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert!(at != libc::MAP_FAILED, "{}", io::Error::last_os_error());
    at as u64
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena {
            code: map(CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC),
            data: map(DATA_BYTES, libc::PROT_READ | libc::PROT_WRITE),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (at, bytes) in [(self.code, CODE_BYTES), (self.data, DATA_BYTES)] {
            // SAFETY: a mapping that `new` made, to which this process keeps no reference.
            unsafe { libc::munmap(at as *mut libc::c_void, bytes) };
        }
    }
}

/// A stopped child.
pub(super) struct Traced<'a> {
    pid: libc::pid_t,
    arena: &'a Arena,
}

impl Traced<'_> {
    /// A child about to run `code`; its other code is `int3`, its data `data`, both cut to their sizes.
    pub(super) fn start<'a>(arena: &'a Arena, code: &[u8], data: &[u8]) -> Traced<'a> {
        // SAFETY: the child calls only what is safe after a fork of many threads.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            trace_me();
        }
        check(pid.into(), "fork");
        let child = Traced { pid, arena };
        assert_eq!(child.wait(), Some(libc::SIGSTOP));
        let mut text = vec![0xcc; CODE_BYTES];
        text[..code.len()].copy_from_slice(code);
        child.write(arena.code, &text);
        child.write(arena.data, data);
        child
    }

    fn ptrace(&self, request: libc::c_uint, addr: u64, data: u64) -> libc::c_long {
        // SAFETY: requests that read and write the child only; those that write to `data` are given the
        // address of a structure of their size by `registers` alone.
        unsafe { libc::ptrace(request, self.pid, addr, data) }
    }

    fn write(&self, to: u64, bytes: &[u8]) {
        for (number, word) in bytes.chunks(8).enumerate() {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let at = to + 8 * number as u64;
            let word = u64::from_le_bytes(padded);
            check(self.ptrace(libc::PTRACE_POKEDATA, at, word), "POKEDATA");
        }
    }

    fn debug_register(number: u64) -> u64 {
        offset_of!(libc::user, u_debugreg) as u64 + 8 * number
    }

    /// Arms up to four watches.
    pub(super) fn watch(&self, watches: &[Watch]) {
        let mut control = 0u64;
        for (number, watch) in (0..).zip(watches) {
            self.set_debug_register(number, self.arena.data + watch.offset);
            let kind = if watch.loads { 3 } else { 1 };
            let len = match watch.len {
                8 => 2,
                len => u64::from(len) - 1,
            };
            control |= 1 << (2 * number) | (kind | len << 2) << (16 + 4 * number);
        }
        self.set_debug_register(7, control);
    }

    /// Waits while others (another test, a debugger) have all of them.
    fn set_debug_register(&self, number: u64, value: u64) {
        let register = Traced::debug_register(number);
        let mut tries = 0;
        while self.ptrace(libc::PTRACE_POKEUSER, register, value) == -1 {
            let error = io::Error::last_os_error();
            let taken = error.raw_os_error() == Some(libc::ENOSPC);
            assert!(taken && tries < 300, "debug register {number}: {error}");
            tries += 1;
            sleep(Duration::from_millis(100));
        }
    }

    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: all integers, for which zero is a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let to = (&raw mut registers) as u64;
        check(self.ptrace(libc::PTRACE_GETREGS, 0, to), "GETREGS");
        registers
    }

    /// Sets the general registers and goes to the code's start.
    pub(super) fn set(&self, gpr: &[u64; 16]) {
        let mut r = self.registers();
        let [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, ..] = *gpr;
        (r.rax, r.rcx, r.rdx, r.rbx) = (rax, rcx, rdx, rbx);
        (r.rsp, r.rbp, r.rsi, r.rdi) = (rsp, rbp, rsi, rdi);
        (r.r8, r.r9, r.r10, r.r11) = (gpr[8], gpr[9], gpr[10], gpr[11]);
        (r.r12, r.r13, r.r14, r.r15) = (gpr[12], gpr[13], gpr[14], gpr[15]);
        r.rip = self.arena.code;
        // No system call is to be restarted.
        r.orig_rax = u64::MAX;
        let from = (&raw const r) as u64;
        check(self.ptrace(libc::PTRACE_SETREGS, 0, from), "SETREGS");
    }

    /// The signal that the child stopped with; `None` when it is gone.
    fn wait(&self) -> Option<libc::c_int> {
        let mut status = 0;
        // SAFETY: waits for our child and writes to a local.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        check(pid.into(), "waitpid");
        libc::WIFSTOPPED(status).then(|| libc::WSTOPSIG(status))
    }

    /// Runs to the next hit, or one instruction; `None` at the end, which is `int3`.
    pub(super) fn go(&self, step: bool) -> Option<Stop> {
        let stepped_ip = step.then(|| self.registers().rip);
        let request = if step {
            libc::PTRACE_SINGLESTEP
        } else {
            libc::PTRACE_CONT
        };
        check(self.ptrace(request, 0, 0), "resume");
        let signal = self.wait();
        let r = self.registers();
        assert_eq!(
            signal,
            Some(libc::SIGTRAP),
            "at {:#x}",
            r.rip - self.arena.code
        );
        let status_at = Traced::debug_register(6);
        let status = self.ptrace(libc::PTRACE_PEEKUSER, status_at, 0) as u64;
        check(self.ptrace(libc::PTRACE_POKEUSER, status_at, 0), "DR6");
        let hits = (status & 15) as u8;
        let single = status & 1 << 14 != 0;
        let stop = Stop {
            stepped_ip,
            gpr: [
                r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
                r.r12, r.r13, r.r14, r.r15,
            ],
            ip: r.rip,
            hits,
            stack_top: self.ptrace(libc::PTRACE_PEEKDATA, r.rsp, 0) as u64,
        };
        (hits != 0 || single).then_some(stop)
    }

    /// All stops until the end.
    pub(super) fn run(&self, step: bool) -> Vec<Stop> {
        let stops: Vec<Stop> = std::iter::from_fn(|| self.go(step)).take(10_000).collect();
        assert!(stops.len() < 10_000, "it does not end");
        stops
    }
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        // SAFETY: ends our own child, which nobody else waits for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: as above; writes to a local.
        unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
    }
}

/// What the child does: stops, and is never continued here.
fn trace_me() -> ! {
    // Copies of other tests' pipes and files would keep them open.
    // SAFETY: closes the child's own descriptors, which nothing uses here.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    // SAFETY: asks to be traced by the parent; touches no memory.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
    // SAFETY: a signal to itself.
    unsafe { libc::raise(libc::SIGSTOP) };
    // SAFETY: ends this process at once, without the parent's exit handlers.
    unsafe { libc::_exit(1) }
}
