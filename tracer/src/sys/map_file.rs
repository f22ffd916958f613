//! The bytes of a file, for readers that want one slice.

use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

use memmap2::Mmap;

/// A file's bytes, shared by all who read it.
pub type FileBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Files from this size on are mapped, so that only the pages that are looked at take memory: a
/// system-wide run opens every library there is. Smaller ones are copied, which cannot raise SIGBUS.
const MAPPED_FROM_BYTES: u64 = 1 << 20;

/// The bytes of a regular file. Anything else (a pipe would block, a device has no end) is
/// `InvalidInput`.
pub fn map_file(file: &File) -> io::Result<FileBytes> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    if metadata.len() >= MAPPED_FROM_BYTES {
        // SAFETY: the mapping is private and read-only. Whoever shortens the file under it makes us
        // end by SIGBUS on the missing pages, and whoever writes it changes bytes that only checked
        // parsers read; installers and linkers replace large binaries by a rename and do neither.
        let mapping = unsafe { Mmap::map(file) }?;
        return Ok(Arc::new(mapping));
    }
    let mut bytes = vec![0; metadata.len() as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            // Shortened since.
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(Arc::new(bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn small_and_large_files_read_as_they_are() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"small").unwrap();
        let small = map_file(&file).unwrap();
        assert_eq!((*small).as_ref(), b"small");
        file.set_len(MAPPED_FROM_BYTES).unwrap();
        let large = map_file(&file).unwrap();
        assert_eq!((*large).as_ref().len() as u64, MAPPED_FROM_BYTES);
        assert_eq!(&(*large).as_ref()[..6], b"small\0");
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        for path in ["/dev/zero", "/proc"] {
            let error = map_file(&File::open(path).unwrap()).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }
}
