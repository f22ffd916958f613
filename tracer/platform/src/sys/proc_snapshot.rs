//! Processes that were there before we looked: their mappings and threads, from `/proc`.

use std::{fs, path::Path, sync::Arc};

use crate::{
    access::{Pid, Tid},
    event::{Context, ContextKind, Mapping, path_text},
};

/// Context of one running process, all at `time_ns`; empty when it is gone or unreadable.
pub fn process(proc: &Path, pid: Pid, time_ns: u64) -> Vec<Context> {
    let directory = proc.join(pid.0.to_string());
    let mut contexts = Vec::new();
    for Tid(tid) in threads(proc, pid) {
        let Ok(comm) = fs::read(directory.join(format!("task/{tid}/comm"))) else {
            continue;
        };
        let comm = path_text::text(comm.strip_suffix(b"\n").unwrap_or(&comm));
        let kind = ContextKind::Comm {
            pid,
            tid: Tid(tid),
            comm,
            exec: false,
        };
        contexts.push(Context { time_ns, kind });
    }
    let maps = fs::read(directory.join("maps")).unwrap_or_default();
    for line in path_text::text(&maps).lines() {
        if let Some(mapping) = parse_mapping(line) {
            let kind = ContextKind::Mapping {
                pid,
                mapping: Arc::new(mapping),
            };
            contexts.push(Context { time_ns, kind });
        }
    }
    contexts
}

/// All processes.
pub fn pids(proc: &Path) -> Vec<Pid> {
    numbers(proc).into_iter().map(Pid).collect()
}

/// The threads of a process; empty when it is gone.
pub fn threads(proc: &Path, pid: Pid) -> Vec<Tid> {
    let directory = proc.join(pid.0.to_string()).join("task");
    numbers(&directory).into_iter().map(Tid).collect()
}

/// The name of a thread that is there.
pub fn thread_name(proc: &Path, pid: Pid, tid: Tid) -> Option<String> {
    let name = fs::read(proc.join(format!("{}/task/{}/comm", pid.0, tid.0))).ok()?;
    Some(path_text::text(name.strip_suffix(b"\n").unwrap_or(&name)))
}

/// Whether a debugger is attached to the process.
pub fn is_traced(proc: &Path, pid: Pid) -> bool {
    let status = fs::read_to_string(proc.join(pid.0.to_string()).join("status"));
    let status = status.unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// Parent of a process, by its `stat`.
pub fn parent(proc: &Path, pid: Pid) -> Option<Pid> {
    let stat = fs::read(proc.join(pid.0.to_string()).join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name in parentheses may itself hold parentheses and spaces: the last one ends it.
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(1)?.parse().ok().map(Pid)
}

fn numbers(directory: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect()
}

/// One line of `/proc/PID/maps`:
/// `7f12a000-7f12b000 rw-s 00001000 00:01 1042  /dev/zero (deleted)`.
pub fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start_matches(' ');
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let mut permissions = word().bytes();
    let _read = permissions.next()?;
    let writable = permissions.next()? == b'w';
    let executable = permissions.next()? == b'x';
    let shared = permissions.next()? == b's';
    let file_offset = u64::from_str_radix(word(), 16).ok()?;
    let (major, minor) = word().split_once(':')?;
    let dev = u64::from_str_radix(major, 16).ok()? << 32 | u64::from_str_radix(minor, 16).ok()?;
    let inode = word().parse().ok()?;
    // The kernel writes a newline in a path as \012 (fs/proc/task_mmu.c, show_map_vma).
    let name = rest.trim_start_matches(' ').replace("\\012", "\n");
    let len = end.checked_sub(start)?;
    Some(Mapping {
        start,
        len,
        file_offset,
        dev,
        inode,
        shared,
        executable,
        writable,
        name,
        build_id: None,
        stamp: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maps_line_gives_range_permissions_file_and_name() {
        let line =
            "7f12a000-7f12c000 rw-s 00001000 fe:01 1042                       /a dir/x (deleted)";
        let mapping = parse_mapping(line).unwrap();
        assert_eq!(
            (mapping.start, mapping.len, mapping.file_offset),
            (0x7f12_a000, 0x2000, 0x1000)
        );
        assert_eq!((mapping.dev, mapping.inode), (0xfe_0000_0001, 1042));
        assert!(mapping.shared && mapping.writable && !mapping.executable);
        assert_eq!(mapping.name, "/a dir/x (deleted)");
    }

    #[test]
    fn anonymous_memory_has_no_name_and_garbage_is_no_mapping() {
        let mapping = parse_mapping("7ffe0000-7ffe1000 r-xp 00000000 00:00 0 ").unwrap();
        assert_eq!((mapping.name.as_str(), mapping.inode), ("", 0));
        assert!(mapping.executable && !mapping.shared);
        for garbage in [
            "",
            "7f-6f rw-p 0 0:0 0",
            "xyz",
            "1000-2000 rw",
            "1000-2000 rw-p 0 00:00",
        ] {
            assert!(parse_mapping(garbage).is_none(), "{garbage:?}");
        }
    }

    #[test]
    fn we_find_ourselves_with_our_threads_and_our_parent() {
        let proc = Path::new("/proc");
        let own = Pid(std::process::id());
        assert!(pids(proc).contains(&own));
        assert!(parent(proc, own).is_some());
        let contexts = process(proc, own, 7);
        let here = we_find_ourselves_with_our_threads_and_our_parent as fn() as usize as u64;
        assert!(contexts.iter().all(|c| c.time_ns == 7));
        assert!(contexts.iter().any(|c| matches!(&c.kind,
            ContextKind::Mapping { mapping, .. } if mapping.executable && mapping.contains(here))));
        assert!(contexts.iter().any(|c| matches!(&c.kind,
            ContextKind::Comm { tid, .. } if tid.0 == own.0)));
    }
}
