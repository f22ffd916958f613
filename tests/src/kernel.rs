//! What of a process's BPF programs and maps the kernel still holds: the proof that nothing is left behind.

use std::{collections::BTreeSet, fs, io, os::unix::fs::FileExt as _};

use anyhow::Context;

/// bpf(2) commands, include/uapi/linux/bpf.h.
const BPF_PROG_GET_NEXT_ID: libc::c_int = 11;
const BPF_MAP_GET_NEXT_ID: libc::c_int = 12;
const BPF_LINK_GET_NEXT_ID: libc::c_int = 31;

/// A BPF object by the kernel's own numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BpfObject {
    /// A loaded program.
    Program(u32),
    /// A map.
    Map(u32),
    /// An attachment that has its own file descriptor.
    Link(u32),
}

/// The BPF objects a process holds file descriptors of.
pub fn held_by(pid: u32) -> anyhow::Result<BTreeSet<BpfObject>> {
    let mut held = BTreeSet::new();
    let directory = format!("/proc/{pid}/fdinfo");
    for entry in fs::read_dir(&directory).with_context(|| format!("reading {directory}"))? {
        // A descriptor may be closed between the two calls.
        let Ok(text) = fs::read_to_string(entry?.path()) else {
            continue;
        };
        let number = |key: &str| {
            text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name == key).then(|| value.trim().parse().ok())?
            })
        };
        // A link's fdinfo names its program too.
        held.extend(number("link_id").map(BpfObject::Link));
        held.extend(number("prog_id").map(BpfObject::Program));
        held.extend(number("map_id").map(BpfObject::Map));
    }
    Ok(held)
}

/// All BPF objects that the kernel holds now, whoever made them.
pub fn loaded() -> io::Result<BTreeSet<BpfObject>> {
    let mut loaded = BTreeSet::new();
    for (command, object) in [
        (
            BPF_PROG_GET_NEXT_ID,
            BpfObject::Program as fn(u32) -> BpfObject,
        ),
        (BPF_MAP_GET_NEXT_ID, BpfObject::Map),
        (BPF_LINK_GET_NEXT_ID, BpfObject::Link),
    ] {
        let mut id = 0;
        while let Some(next) = next_id(command, id)? {
            loaded.insert(object(next));
            id = next;
        }
    }
    Ok(loaded)
}

/// Bytes of a library's code in a process that are not those of its file: a probed one is 0xcc in memory alone.
pub fn changed_code(pid: u32, library: &str) -> anyhow::Result<usize> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let line = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.contains(library))
        .with_context(|| format!("{pid} has no {library}"))?;
    let mut words = line.split_whitespace();
    let range = words.next().and_then(|range| range.split_once('-'));
    let (start, end) = range.context("a range")?;
    let [start, end] = [start, end].map(|n| u64::from_str_radix(n, 16));
    let (start, end) = (start?, end?);
    let offset = u64::from_str_radix(words.nth(1).context("an offset")?, 16)?;
    let path = words.next_back().context("a path")?;
    let read = |file: &str, at: u64| -> anyhow::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end - start)?];
        let got = fs::File::open(file)?.read_at(&mut bytes, at)?;
        bytes.truncate(got);
        Ok(bytes)
    };
    let memory = read(&format!("/proc/{pid}/mem"), start)?;
    let file = read(path, offset)?;
    let pairs = memory.iter().zip(&file);
    Ok(pairs.filter(|(now, was)| now != was).count())
}

/// The first id above the given one; `None` after the last.
fn next_id(command: libc::c_int, after: u32) -> io::Result<Option<u32>> {
    // union bpf_attr: { start_id, next_id, open_flags }.
    let mut attr = [after, 0, 0];
    // SAFETY: for these commands the kernel reads and writes at most `size_of_val(&attr)` bytes of `attr`,
    // which lives and is not otherwise used during the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            attr.as_mut_ptr(),
            size_of_val(&attr),
        )
    };
    if result == 0 {
        return Ok(Some(attr[1]));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT) => Ok(None),
        _ => Err(error),
    }
}

/// Whether this process is root in its user namespace.
pub fn is_root() -> bool {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
