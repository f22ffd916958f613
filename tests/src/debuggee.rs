//! A running program as a debugger sees it: its threads, and where its variables are.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    process::Command,
};

use anyhow::{Context, bail};

/// The threads of a process: id and name.
pub fn threads(pid: u32) -> anyhow::Result<Vec<(u32, String)>> {
    let directory = format!("/proc/{pid}/task");
    let mut threads = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("reading {directory}"))? {
        let path = entry?.path();
        let tid = path.file_name().and_then(|name| name.to_str());
        let tid = tid.and_then(|name| name.parse().ok());
        // A thread may end while the list is read.
        let Ok(name) = fs::read_to_string(path.join("comm")) else {
            continue;
        };
        threads.push((
            tid.context("a thread has a number")?,
            name.trim_end().to_owned(),
        ));
    }
    Ok(threads)
}

/// Address of a global of the program in the running process.
pub fn address_of(program: &Path, pid: u32, variable: &str) -> anyhow::Result<u64> {
    let output = Command::new("nm")
        .arg(program)
        .output()
        .context("starting nm; binutils must be installed")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let in_file = address_in(&text, variable)
        .with_context(|| format!("{} has no {variable}", program.display()))?;
    // A position-independent executable is mapped from its first byte on at the start of its first mapping.
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let program = program.to_string_lossy();
    let first = maps.lines().find(|line| line.ends_with(&*program));
    let start = first.and_then(|line| line.split('-').next());
    match start.map(|start| u64::from_str_radix(start, 16)) {
        Some(Ok(start)) => Ok(start + in_file),
        _ => bail!("{pid} does not run {program}"),
    }
}

/// From what `nm` prints: address, kind, name.
fn address_in(symbols: &str, variable: &str) -> Option<u64> {
    symbols.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next()?;
        (words.nth(1)? == variable).then(|| u64::from_str_radix(address, 16).ok())?
    })
}

/// Eight bytes of a process's memory.
pub fn read_word(pid: u32, addr: u64) -> anyhow::Result<u64> {
    let mut word = [0; 8];
    File::open(format!("/proc/{pid}/mem"))
        .and_then(|memory| memory.read_exact_at(&mut word, addr))
        .with_context(|| format!("reading {addr:#x} of {pid}"))?;
    Ok(u64::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let symbols =
            "0000000000004100 B laps_total\n                 U printf\n0000000000004200 B laps\n";
        assert_eq!(address_in(symbols, "laps"), Some(0x4200));
        assert_eq!(address_in(symbols, "lap"), None);
        assert_eq!(address_in(symbols, "printf"), None);
    }

    #[test]
    fn a_process_is_read_by_its_own_words() {
        let word = 0x5a3c_17e9_u64;
        let addr = (&raw const word).addr() as u64;
        assert_eq!(read_word(std::process::id(), addr).unwrap(), word);
        assert!(read_word(std::process::id(), 8).is_err());
        assert!(!threads(std::process::id()).unwrap().is_empty());
    }
}
