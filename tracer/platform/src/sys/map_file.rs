//! The bytes of a file that others may write and shorten, for readers that want one slice.

use std::{fs::File, io, os::unix::fs::FileExt as _, sync::Arc};

use memmap2::Mmap;

use super::torn_pages::{self, Watched};
use crate::event::FileStamp;

/// Files from this size on are mapped, so that only the pages that are looked at take memory: a
/// system-wide run opens every library there is. Smaller ones are copied.
const MAPPED_FROM_BYTES: u64 = 1 << 20;

/// A file's bytes as they are, or as they were when it was opened.
pub struct FileBytes(Kept);

enum Kept {
    Copied(Vec<u8>),
    Mapped(MappedFile),
}

struct MappedFile {
    // Before the mapping: while its pages are watched, they are there.
    watched: Watched,
    bytes: Mmap,
    file: File,
    opened: FileStamp,
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Kept::Copied(bytes) => bytes,
            Kept::Mapped(mapped) => &mapped.bytes,
        }
    }
}

/// Bytes that no file can change.
impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> FileBytes {
        FileBytes(Kept::Copied(bytes))
    }
}

impl FileBytes {
    /// Whether pages were missing when they were read, so that what was read there was zeros: somebody shortened the
    /// file. Costs nothing.
    pub fn is_torn(&self) -> bool {
        match &self.0 {
            Kept::Copied(_) => false,
            Kept::Mapped(mapped) => mapped.watched.is_torn(),
        }
    }

    /// Whether the bytes may be others by now than when the file was opened. Asks the file system.
    pub fn has_changed(&self) -> bool {
        match &self.0 {
            Kept::Copied(_) => false,
            Kept::Mapped(mapped) => {
                let now = mapped.file.metadata();
                let same = now.is_ok_and(|now| FileStamp::of(&now).same_bytes(&mapped.opened));
                mapped.watched.is_torn() || !same
            }
        }
    }
}

/// The bytes of a regular file. Anything else (a pipe would block, a device has no end) is
/// `InvalidInput`.
pub fn map_file(file: File) -> io::Result<Arc<FileBytes>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let opened = FileStamp::of(&metadata);
    if metadata.len() >= MAPPED_FROM_BYTES {
        // SAFETY: the mapping is private and read-only, and only checked parsers read it, which any bytes are good
        // for: whoever writes to the file under it changes them, which `has_changed` tells. Pages that are missing
        // because it was shortened read as zeros once it is watched, before anybody reads.
        let bytes = unsafe { Mmap::map(&file) }?;
        let watched = torn_pages::watch(&bytes)?;
        return Ok(Arc::new(FileBytes(Kept::Mapped(MappedFile {
            watched,
            bytes,
            file,
            opened,
        }))));
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
    Ok(Arc::new(FileBytes::from(bytes)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn large(bytes: u64) -> (tempfile::NamedTempFile, Arc<FileBytes>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"first").unwrap();
        file.as_file().set_len(bytes).unwrap();
        let mapped = map_file(file.reopen().unwrap()).unwrap();
        (file, mapped)
    }

    #[test]
    fn small_and_large_files_read_as_they_are() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"small").unwrap();
        let small = map_file(file).unwrap();
        assert_eq!((*small).as_ref(), b"small");
        let (_file, large) = large(MAPPED_FROM_BYTES);
        assert_eq!((*large).as_ref().len() as u64, MAPPED_FROM_BYTES);
        assert_eq!(&(*large).as_ref()[..6], b"first\0");
        assert!(!large.is_torn() && !large.has_changed());
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        for path in ["/dev/zero", "/proc"] {
            let error = map_file(File::open(path).unwrap()).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_shortened_under_us_reads_as_zeros_and_says_so() {
        let (file, shortened) = large(4 * MAPPED_FROM_BYTES);
        let (_other, whole) = large(4 * MAPPED_FROM_BYTES);
        file.as_file().set_len(4096).unwrap();
        for bytes in [&shortened, &whole] {
            let bytes: &[u8] = (**bytes).as_ref();
            assert!(bytes[4096..].iter().all(|byte| *byte == 0));
            assert_eq!(&bytes[..5], b"first");
        }
        assert!(shortened.is_torn() && shortened.has_changed());
        assert!(!whole.is_torn() && !whole.has_changed());
    }

    #[test]
    fn a_file_that_is_written_to_under_us_has_changed() {
        let (mut file, mapped) = large(MAPPED_FROM_BYTES);
        // Times of files are as coarse as the kernel's tick.
        std::thread::sleep(std::time::Duration::from_millis(20));
        file.as_file_mut().write_all(b"second").unwrap();
        assert!(mapped.has_changed() && !mapped.is_torn());
    }

    #[test]
    fn many_files_are_torn_at_once_and_each_is_told_from_the_others() {
        let files: Vec<_> = (0..64).map(|_| large(MAPPED_FROM_BYTES)).collect();
        for (file, _) in files.iter().step_by(2) {
            file.as_file().set_len(1).unwrap();
        }
        std::thread::scope(|scope| {
            for (_, mapped) in &files {
                scope.spawn(|| {
                    (**mapped)
                        .as_ref()
                        .iter()
                        .map(|byte| u64::from(*byte))
                        .sum::<u64>()
                });
            }
        });
        for (at, (_, mapped)) in files.iter().enumerate() {
            assert_eq!(mapped.is_torn(), at % 2 == 0, "{at}");
        }
    }
}
