//! An unlinked temporary file: its disk space is free again however the process ends.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::Arc,
};

use super::error::SpillError;

/// The file, shared by the threads that read it.
#[derive(Debug, Clone)]
pub(super) struct SpillFile {
    file: Arc<File>,
    directory: PathBuf,
}

impl SpillFile {
    /// In the first directory that takes it.
    pub(super) fn create(
        directories: &[PathBuf],
        memory_bytes: u64,
    ) -> Result<SpillFile, SpillError> {
        let mut refused = (PathBuf::new(), io::Error::from(ErrorKind::NotFound));
        for directory in directories {
            // O_TMPFILE, or unlinked at once where the file system has none.
            match tempfile::tempfile_in(directory) {
                Ok(file) => {
                    return Ok(SpillFile {
                        file: Arc::new(file),
                        directory: directory.clone(),
                    });
                }
                Err(source) => refused = (directory.clone(), source),
            }
        }
        let (directory, source) = refused;
        Err(SpillError::Create {
            directory,
            memory_mib: memory_bytes >> 20,
            source,
        })
    }

    /// Writes from `at` on.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), SpillError> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|source| SpillError::Write {
            directory: self.directory.clone(),
            written_mib: at >> 20,
            source,
        })
    }

    /// Fills the buffer from `at` on.
    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), SpillError> {
        let read = self.file.read_exact_at(buffer, at);
        read.map_err(|source| self.unreadable(source))
    }

    /// What was read is not what was written.
    pub(super) fn changed(&self) -> SpillError {
        SpillError::changed(self.directory.clone())
    }

    fn unreadable(&self, source: io::Error) -> SpillError {
        SpillError::Read {
            directory: self.directory.clone(),
            source,
        }
    }
}
