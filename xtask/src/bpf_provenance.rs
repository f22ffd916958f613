//! What the committed BPF objects were made of: a text file beside them.
//!
//! With the same compiler at hand the objects are built again and compared. Without it, the digest of
//! the sources still tells objects that were forgotten from objects that are right.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{bpf_toolchain::Versions, root};

const SOURCES: &str = "sources ";

/// The file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provenance {
    /// Of the compiler and the linker.
    pub versions: Versions,
    /// Of the kernel half's sources, by [`digest`].
    pub sources: String,
}

impl Provenance {
    /// Of the objects that are committed.
    pub(crate) fn committed() -> Result<Provenance> {
        let path = path();
        let text = fs::read_to_string(&path)
            .with_context(|| format!("reading {}; `cargo xtask ebpf` writes it", path.display()))?;
        Ok(Provenance::parse(&text))
    }

    /// Of objects built from the sources as they are.
    pub(crate) fn now(versions: Versions) -> Result<Provenance> {
        let sources = digest_of_sources()?;
        Ok(Provenance { versions, sources })
    }

    /// Beside the objects.
    pub(crate) fn write(&self) -> Result<()> {
        let path = path();
        let text = format!("{}\n{SOURCES}{}\n", self.versions, self.sources);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    fn parse(text: &str) -> Provenance {
        let (sources, versions): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with(SOURCES));
        let sources = sources.first().and_then(|line| line.strip_prefix(SOURCES));
        Provenance {
            versions: Versions::parse(&versions.join("\n")),
            sources: sources.unwrap_or_default().to_owned(),
        }
    }
}

fn path() -> PathBuf {
    root().join("tracer-ebpf/prebuilt/BUILT-WITH")
}

/// Of every file that the objects are built from, the compiler's and the registry's apart.
pub(crate) fn digest_of_sources() -> Result<String> {
    let package = root().join("tracer-ebpf");
    let mut files = vec![package.join("Cargo.toml")];
    collect(&package.join("src"), &mut files)?;
    files.sort();
    let mut contents = Vec::new();
    for file in &files {
        let name = file.strip_prefix(&package).unwrap_or(file);
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        contents.push((name.display().to_string(), bytes));
    }
    Ok(digest(&contents))
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// FNV-1a, 64 bits, over names, lengths and contents. It guards against forgetting, not against malice.
fn digest(files: &[(String, Vec<u8>)]) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut absorb = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (name, contents) in files {
        absorb(format!("{name}\0{}\0", contents.len()).as_bytes());
        absorb(contents);
    }
    format!("fnv1a64:{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> String {
        let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().to_vec());
        digest(&files.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_digest_of_nothing_is_the_published_offset_basis() {
        assert_eq!(files(&[]), "fnv1a64:cbf29ce484222325");
    }

    #[test]
    fn moving_a_byte_from_one_file_to_the_next_changes_the_digest() {
        let one = files(&[("a", "xy"), ("b", "z")]);
        assert_eq!(one, files(&[("a", "xy"), ("b", "z")]));
        assert_ne!(one, files(&[("a", "x"), ("b", "yz")]));
        assert_ne!(one, files(&[("a", "xy"), ("c", "z")]));
    }

    #[test]
    fn what_was_written_is_read() {
        let text = "rustc release: 1.96.0\nbpf-linker 0.13.0\nsources fnv1a64:12\n";
        let provenance = Provenance::parse(text);
        assert_eq!(provenance.sources, "fnv1a64:12");
        let versions = "rustc release: 1.96.0\nbpf-linker 0.13.0";
        assert_eq!(provenance.versions.to_string(), versions);
    }

    #[test]
    fn the_committed_objects_were_built_from_these_sources() {
        let committed = Provenance::committed().unwrap();
        assert_eq!(
            committed.sources,
            digest_of_sources().unwrap(),
            "run `cargo xtask ebpf` and commit what it writes"
        );
    }
}
