//! A plugin for QEMU's user-mode emulator: it writes every load and store of the emulated program into memory that it
//! shares with the tool. It decides nothing but which accesses repeat one another (`lane`); what they mean is the
//! tool's business.
//!
//! Each thread of the program is a virtual CPU with a lane of its own in the shared memory (`layout`). QEMU calls
//! `accessed` after each access, in the thread that made it, and the threads truly run at the same time.
//!
//! Arguments: `memory=FD` (see `layout::Shared`), `plugin=FD` (this file), `tool=PID`; `became` where the descriptors are
//! the tool's own, because an emulated program became this one; `counts=FIRST-END`, hexadecimal addresses of code whose
//! executions are counted by instruction. Only to measure QEMU itself: `empty`, which has a callback
//! for each access that does nothing.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![expect(
    unsafe_code,
    reason = "QEMU calls us and is called by us; see each block's SAFETY comment"
)]
#![expect(
    clippy::inline_always,
    reason = "the way of an access is one function for each callback: it runs for every load and store"
)]

mod api;
mod directory;
mod lane;
#[cfg(test)]
mod laws;
#[expect(unreachable_pub, reason = "the tool is built with it, too")]
mod layout;
mod log;
mod process;
mod program;
mod programs;
mod shared_memory;
mod system_calls;
mod translation;

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

use api::{Api, Id};
use program::{Program, Tool};

/// The version of the interface that is spoken.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// Set once, before any callback is registered.
static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Called by QEMU when it has loaded the plugin, before it loads the program. Anything but 0 makes QEMU give up.
///
/// # Safety
///
/// `argv` points to `argc` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _info: *const c_void,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let arguments: Vec<String> = (0..argc as usize)
        .map(|n| {
            // SAFETY: `n` is below `argc`.
            let argument = unsafe { argv.add(n) };
            // SAFETY: as above.
            let argument = unsafe { *argument };
            // SAFETY: QEMU passes strings that end with a zero byte.
            unsafe { CStr::from_ptr(argument) }
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    match install(id, &arguments) {
        Ok(()) => 0,
        Err(why) => {
            say(&format!(
                "cohtrace: the plugin cannot run in this QEMU: {why}\n"
            ));
            1
        }
    }
}

/// To the user, by way of the program's standard error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn install(id: Id, arguments: &[String]) -> Result<(), String> {
    let api =
        Api::find().map_err(|name| format!("it has no function {}", name.to_string_lossy()))?;
    let says = |word: &str| arguments.iter().any(|argument| argument.starts_with(word));
    if says("empty") {
        return translation::count_nothing(id, api);
    }
    let number = |name: &str| {
        let value = arguments
            .iter()
            .find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse::<c_int>().ok())
    };
    let tool = Tool {
        memory: number("memory").ok_or("no shared memory was given")?,
        plugin: number("plugin").ok_or("no plugin was given")?,
        pid: number("tool").ok_or("no tool was given")?,
    };
    let all = if says("became") {
        process::map_of(tool.pid, tool.memory)
    } else {
        let all = process::map(tool.memory);
        process::close_fd(tool.memory);
        process::close_fd(tool.plugin);
        all
    };
    let all = all.ok_or("the shared memory cannot be mapped")?;
    let counted = arguments.iter().find_map(|argument| {
        let (first, end) = argument.strip_prefix("counts=")?.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        Some(address(first)?..address(end)?)
    });
    let program = Program::new(all, api, tool, counted.unwrap_or_default())?;
    let Ok(()) = PROGRAM.set(program) else {
        return Err("it is loaded twice".to_owned());
    };
    translation::register(id, api);
    system_calls::register(id, api);
    Ok(())
}

/// The program under observation. Callbacks come only after it was set.
fn program() -> &'static Program {
    match PROGRAM.get() {
        Some(program) => program,
        None => std::process::abort(),
    }
}
