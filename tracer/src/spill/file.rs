//! The file without a name: whatever ends the process, its room is free again.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::Arc,
};

use super::error::SpillError;

/// Bytes written at once.
const WRITE_BYTES: usize = 1 << 20;

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

    /// Writes from `at` on, in large pieces.
    pub(super) fn writer(&self, at: u64) -> Writer<'_> {
        Writer {
            file: self,
            at,
            out: Vec::with_capacity(WRITE_BYTES + 4096),
        }
    }

    /// Fills the buffer from `at` on.
    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), SpillError> {
        let read = self.file.read_exact_at(buffer, at);
        read.map_err(|source| self.unreadable(source))
    }

    /// What was read is not what was written.
    pub(super) fn changed(&self) -> SpillError {
        self.unreadable(io::Error::new(
            ErrorKind::InvalidData,
            "it is not as it was written",
        ))
    }

    fn unreadable(&self, source: io::Error) -> SpillError {
        SpillError::Read {
            directory: self.directory.clone(),
            source,
        }
    }
}

/// Appends to the file.
pub(super) struct Writer<'a> {
    file: &'a SpillFile,
    at: u64,
    /// What is not written yet; append to it.
    pub(super) out: Vec<u8>,
}

impl Writer<'_> {
    /// Where the next byte goes.
    pub(super) fn position(&self) -> u64 {
        self.at + self.out.len() as u64
    }

    /// Writes when there is enough to write.
    pub(super) fn pass(&mut self) -> Result<(), SpillError> {
        if self.out.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), SpillError> {
        let written = self.file.file.write_all_at(&self.out, self.at);
        written.map_err(|source| SpillError::Write {
            directory: self.file.directory.clone(),
            written_mib: self.at >> 20,
            source,
        })?;
        self.at += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }
}
