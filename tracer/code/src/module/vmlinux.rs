//! The running kernel: its symbols, and its file with debug info where a package put one.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicU64,
};

use symbolizer::Module;

use super::{
    LoadedModule, ModuleId,
    debug_files::{DebugDirectories, hex},
    opened_files::OpenedFiles,
};
use crate::{
    event::path_text,
    machine::{btf::KernelTypes, kallsyms::Kallsyms},
    sys::{found_file::FoundFile, map_file::map_file},
};

/// Why the kernel's addresses have no names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelMissing {
    /// The addresses are of a kernel that does not run any more.
    #[error("recorded under another boot: the kernel's addresses are others now")]
    OtherBoot,
    /// All addresses in it are zero.
    #[error("/proc/kallsyms shows no addresses: run as root, with kernel.kptr_restrict at most 1")]
    Hidden,
    /// Not there, or not readable.
    #[error(
        "/proc/kallsyms cannot be read: the kernel is built without CONFIG_KALLSYMS, or /proc is not mounted"
    )]
    Unreadable,
    /// Functions are listed, variables are not.
    #[error(
        "the kernel lists no variables (CONFIG_KALLSYMS_ALL is off) and no vmlinux of it was found"
    )]
    NoVariables,
    /// Nothing is listed there.
    #[error(
        "no kernel symbol covers this address: memory that the kernel allocated, the area of one CPU, or a stack"
    )]
    NotCovered,
}

/// The symbols of the kernel whose files are below a root.
pub(super) fn symbols(root: &Path) -> Result<Kallsyms, KernelMissing> {
    let symbols = Kallsyms::read(&root.join("proc")).map_err(|_| KernelMissing::Unreadable)?;
    if symbols.is_empty() {
        return Err(KernelMissing::Hidden);
    }
    Ok(symbols)
}

/// The kernel's own file, and what to subtract (wrapping) from its run-time addresses: where it was loaded is
/// chosen at boot (`CONFIG_RANDOMIZE_BASE`). Only a file of the very build that runs is taken.
pub(super) fn open(root: &Path, symbols: &Kallsyms, id: ModuleId) -> Option<(LoadedModule, u64)> {
    let running = build_id(&fs::read(root.join("sys/kernel/notes")).ok()?)?;
    candidates(root, &running).into_iter().find_map(|path| {
        let bytes = map_file(FoundFile::at(&path).ok()?.open().ok()?).ok()?;
        let shown = Path::new("/").join(path.strip_prefix(root).unwrap_or(&path));
        let files = OpenedFiles::new(&bytes);
        let debug = DebugDirectories::new(vec![root.to_owned()], &shown, files.clone());
        let elf = Module::parse(bytes, Box::new(debug)).ok()?;
        if elf.build_id() != Some(&*running) {
            return None;
        }
        // `_stext` is the first byte of `.text` (arch/*/kernel/vmlinux.lds.S of x86 and arm64).
        let text = elf.section_range(".text")?.start;
        let bias = symbols.text()?.wrapping_sub(text);
        let path = path_text::of(&shown);
        Some((
            LoadedModule {
                id,
                path,
                elf,
                files,
                used: AtomicU64::new(0),
            },
            bias,
        ))
    })
}

/// The types that the kernel itself describes; none where it does not, or in a format that is not known.
pub(super) fn types(root: &Path, symbols: &Kallsyms) -> Option<KernelTypes> {
    let bytes = fs::read(root.join("sys/kernel/btf/vmlinux")).ok()?;
    KernelTypes::new(bytes, symbols).ok()
}

/// Where distributions put it, those with debug info first.
fn candidates(root: &Path, build_id: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(release) = fs::read_to_string(root.join("proc/sys/kernel/osrelease")) {
        let release = release.trim();
        if !release.is_empty() && !release.contains('/') {
            found.extend([
                root.join(format!("usr/lib/debug/boot/vmlinux-{release}")),
                root.join(format!("usr/lib/debug/lib/modules/{release}/vmlinux")),
                root.join(format!("lib/modules/{release}/build/vmlinux")),
            ]);
            found.push(root.join(format!("boot/vmlinux-{release}")));
        }
    }
    if let Some((first, rest)) = build_id.split_first() {
        let by_id = format!(
            "usr/lib/debug/.build-id/{}/{}.debug",
            hex(&[*first]),
            hex(rest)
        );
        // Before a file that may have none.
        found.insert(found.len().saturating_sub(1), root.join(by_id));
    }
    found
}

/// The note of type 3 of `GNU` among the kernel's notes: name size, content size, type, then both, each
/// padded to four bytes (elf(5)).
fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let field = |at: usize| {
            let bytes = notes.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        let (name, content, kind) = (field(0)? as usize, field(4)? as usize, field(8)?);
        let at = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let end = at.checked_add(content)?;
        if kind == 3 && notes.get(12..12 + name) == Some(b"GNU\0") {
            return Some(notes.get(at..end)?.to_vec());
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], content: &[u8], kind: u32) -> Vec<u8> {
        let padded = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let words = [name.len() as u32, content.len() as u32, kind];
        let head: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        [head, padded(name), padded(content)].concat()
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let id = b"twenty bytes of hash";
        let xen = note(b"Xen\0", b"\x01\x02", 18);
        let notes = [
            xen.clone(),
            note(b"GNU\0", id, 3),
            note(b"Linux\0", b"6.1", 257),
        ]
        .concat();
        assert_eq!(build_id(&notes).as_deref(), Some(&id[..]));
        assert_eq!(build_id(&xen), None);
        assert_eq!(build_id(&note(b"GNU\0", id, 5)), None);
    }

    #[test]
    fn notes_that_are_cut_or_claim_more_than_there_is_are_none() {
        let whole = note(b"GNU\0", b"twenty bytes of hash", 3);
        for cut in 0..whole.len() {
            assert_eq!(build_id(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(build_id(&[0xff; 64]), None);
        assert_eq!(build_id(&[0; 64]), None);
    }
}
