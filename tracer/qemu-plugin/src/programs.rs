//! Programs that an emulated one becomes (`execve`): they are started in the emulator, too, instead of without it.

use std::{
    ffi::{CString, c_char, c_int, c_void},
    fs::File,
    io::Read as _,
    os::fd::FromRawFd as _,
};

use crate::program::Tool;

unsafe extern "C" {
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn access(path: *const c_char, mode: c_int) -> c_int;
    fn execve(
        path: *const c_char,
        arguments: *const *const c_char,
        environment: *const *const c_char,
    ) -> c_int;
    fn process_vm_readv(
        pid: c_int,
        to: *const Stretch,
        to_len: u64,
        from: *const Stretch,
        from_len: u64,
        flags: u64,
    ) -> isize;
}

/// `struct iovec`.
#[repr(C)]
struct Stretch {
    at: *mut c_void,
    len: usize,
}

const O_CLOEXEC: c_int = 0o2_000_000;
const O_NONBLOCK: c_int = 0o4000;
const X_OK: c_int = 1;
/// Arguments of a program that is followed.
const MOST_ARGUMENTS: usize = 1 << 16;
/// Bytes of a script's first line, as Linux reads them.
const FIRST_LINE: usize = 256;

/// Becomes the program, in the emulator. Returns where that cannot be: the file is no program for it, or none at all.
/// `path`, `arguments` and `environment` are the emulated program's, whose addresses are the process's own; they may lead
/// anywhere, so only the kernel follows them.
pub(crate) fn follow(tool: &Tool, path: u64, arguments: u64, environment: u64) -> Option<()> {
    let path = std::ptr::with_exposed_provenance::<c_char>(path as usize);
    // SAFETY: the kernel reads the path, and refuses one that is not there.
    if unsafe { access(path, X_OK) } != 0 {
        return None;
    }
    let given = words(arguments)?;
    let (first, rest) = given.split_first()?;
    let start = first_bytes(path)?;
    let qemu = CString::new(
        std::fs::read_link("/proc/self/exe")
            .ok()?
            .into_os_string()
            .into_encoded_bytes(),
    );
    let qemu = qemu.ok()?;
    let Tool {
        pid,
        memory,
        plugin,
    } = tool;
    let file = format!("/proc/{pid}/fd/{plugin}");
    // Where the tool's descriptors are out of reach, nothing could be observed, and the program would not even run.
    std::fs::metadata(&file).ok()?;
    let option = format!("{file},memory={memory},plugin={plugin},tool={pid},became=1");
    let option = CString::new(option).ok()?;
    let words = match start.strip_prefix(b"#!") {
        Some(line) => interpreter(line)?,
        None if is_for_us(&start) => Vec::new(),
        None => return None,
    };
    let mut all = vec![qemu.as_ptr(), c"-plugin".as_ptr(), option.as_ptr()];
    if let Some(interpreter) = words.first() {
        if !is_for_us(&first_bytes(interpreter.as_ptr())?) {
            return None;
        }
        // As the kernel does it: interpreter, its argument, the script, and what it was given.
        all.extend(words.iter().map(|word| word.as_ptr()));
    } else {
        all.extend([c"-0".as_ptr(), *first]);
    }
    all.push(path);
    all.extend(rest);
    all.push(std::ptr::null());
    let environment = std::ptr::with_exposed_provenance(environment as usize);
    // SAFETY: the list ends with null, and what is in it of ours ends with a zero byte; the kernel checks the rest.
    unsafe { execve(qemu.as_ptr(), all.as_ptr(), environment) };
    None
}

/// A list of pointers that ends with null, at an address that may be none.
fn words(at: u64) -> Option<Vec<*const c_char>> {
    let mut words = Vec::new();
    for n in 0..MOST_ARGUMENTS as u64 {
        let mut word = 0_u64;
        let to = Stretch {
            at: (&raw mut word).cast(),
            len: 8,
        };
        let from = std::ptr::with_exposed_provenance_mut(at.wrapping_add(n * 8) as usize);
        let from = Stretch { at: from, len: 8 };
        let pid = std::process::id() as c_int;
        // SAFETY: the kernel writes to `word` alone, and refuses to read where nothing is.
        if unsafe { process_vm_readv(pid, &raw const to, 1, &raw const from, 1, 0) } != 8 {
            return None;
        }
        if word == 0 {
            return Some(words);
        }
        words.push(std::ptr::with_exposed_provenance(word as usize));
    }
    None
}

fn first_bytes(path: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: the kernel reads the path, and refuses one that is not there.
    let fd = unsafe { open(path, O_CLOEXEC | O_NONBLOCK) };
    if fd < 0 {
        return None;
    }
    // SAFETY: just opened, and nobody else's.
    let file = unsafe { File::from_raw_fd(fd) };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FIRST_LINE as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// An ELF program for x86-64, of 64 bits.
fn is_for_us(start: &[u8]) -> bool {
    start.starts_with(b"\x7fELF\x02\x01") && start.get(18..20) == Some(&[62, 0])
}

/// The words of a script's first line, behind `#!`: a path, and what follows it as one word.
fn interpreter(line: &[u8]) -> Option<Vec<CString>> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (path, rest) = line.split_at(end.unwrap_or(line.len()));
    let words = [path, rest.trim_ascii()].into_iter();
    let words: Option<Vec<CString>> = words
        .filter(|word| !word.is_empty())
        .map(|word| CString::new(word).ok())
        .collect();
    words.filter(|words| !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_first_line_is_a_path_and_at_most_one_word_more() {
        let check = |line: &[u8], words: Option<&[&std::ffi::CStr]>| {
            let found = interpreter(line);
            let found = found
                .as_ref()
                .map(|words| words.iter().map(CString::as_c_str).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), words);
        };
        check(b"/bin/sh\necho", Some(&[c"/bin/sh"]));
        check(
            b" /usr/bin/env  python3 -u \n",
            Some(&[c"/usr/bin/env", c"python3 -u"]),
        );
        check(b"\n/bin/sh", None);
    }
}
