//! The session's directory: names, modes, and files that appear whole or not at all.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    error::{Damage, SessionError},
    meta::{FORMAT, Meta},
    origin::Origin,
    schema::{MAX_PART_BYTES, TABLES, Table},
    upgrade,
};
use crate::{printable, sys::found_file::FoundFile};

const META: &str = "meta.json";

/// `meta.json` is a few KiB; what is larger is not ours.
const MAX_META_BYTES: u64 = 16 << 20;

/// A session's directory, which exists.
#[derive(Debug)]
pub(super) struct Directory {
    pub path: PathBuf,
    /// What its parts say of where they are from; nothing of one that is being written.
    pub origin: Origin,
}

impl Directory {
    /// Makes the directory and a folder per table, mode 0700. What is there already is refused, or with
    /// `force` removed if it is a session and nothing else.
    pub(super) fn create(path: &Path, force: bool) -> Result<Directory, SessionError> {
        match make_directory(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !force {
                    return Err(SessionError::Exists {
                        path: path.to_owned(),
                    });
                }
                remove_session(path)?;
                make_directory(path)
            }
            made => made,
        }
        .map_err(|source| write_error(path, source))?;
        for table in TABLES {
            let folder = path.join(table.name);
            make_directory(&folder).map_err(|source| write_error(&folder, source))?;
        }
        Ok(Directory {
            path: path.to_owned(),
            origin: Origin::default(),
        })
    }

    /// The directory if it is a session, and its meta of today's shape.
    pub(super) fn open(path: &Path) -> Result<(Directory, Meta), SessionError> {
        let not_a_session = |reason: &str| SessionError::NotASession {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(not_a_session("it is no directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_a_session("there is nothing of that name"));
            }
            Err(error) => return Err(SessionError::read(path, error)),
        }
        let file = path.join(META);
        let text = match read_bounded(&file, MAX_META_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => {
                let limit = MAX_META_BYTES;
                return Err(SessionError::corrupt(&file, Damage::Size { limit }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_a_session("it has no meta.json"));
            }
            Err(error) => return Err(SessionError::read(&file, error)),
        };
        let meta = upgrade::read_meta(path, &file, &text)?;
        let path = path.to_owned();
        let origin = Origin::of(&meta);
        Ok((Directory { path, origin }, meta))
    }

    pub(super) fn meta_path(&self) -> PathBuf {
        self.path.join(META)
    }

    pub(super) fn part_path(&self, table: &Table, segment: u32) -> PathBuf {
        self.path.join(table.name).join(part_name(segment))
    }

    /// Replaces `meta.json`.
    pub(super) fn write_meta(&self, meta: &Meta) -> io::Result<()> {
        let text = printable::json(&serde_json::to_string_pretty(meta)?) + "\n";
        write_whole(&self.meta_path(), text.as_bytes())
    }

    /// Writes a part.
    pub(super) fn write_part(&self, table: &Table, segment: u32, part: &[u8]) -> io::Result<()> {
        write_whole(&self.part_path(table, segment), part)
    }

    /// Reads a part whole.
    pub(super) fn read_part(&self, table: &Table, segment: u32) -> Result<Vec<u8>, SessionError> {
        let path = self.part_path(table, segment);
        match read_bounded(&path, MAX_PART_BYTES) {
            Ok(Some(part)) => Ok(part),
            Ok(None) => {
                let limit = MAX_PART_BYTES;
                Err(SessionError::corrupt(&path, Damage::Size { limit }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SessionError::corrupt(&path, Damage::MissingPart))
            }
            Err(error) => Err(SessionError::read(&path, error)),
        }
    }

    /// Whether a part is there.
    pub(super) fn has_part(&self, table: &Table, segment: u32) -> bool {
        fs::symlink_metadata(self.part_path(table, segment)).is_ok()
    }

    /// Size of a part; 0 of one that is not there.
    pub(super) fn part_bytes(&self, table: &Table, segment: u32) -> u64 {
        let found = fs::metadata(self.part_path(table, segment));
        found.map_or(0, |found| found.len())
    }

    /// One more than the highest segment of which any part is there; 0 when there is none.
    pub(super) fn segments(&self) -> Result<u32, SessionError> {
        let mut segments = 0;
        for table in TABLES {
            let folder = self.path.join(table.name);
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                // Copies may leave out empty folders.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SessionError::read(&folder, error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| SessionError::read(&folder, error))?;
                if let Some(number) = entry.file_name().to_str().and_then(part_number) {
                    segments = segments.max(number.saturating_add(1));
                }
            }
        }
        Ok(segments)
    }
}

fn write_error(path: &Path, source: io::Error) -> SessionError {
    SessionError::Write {
        path: path.to_owned(),
        kept_segments: 0,
        source,
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn part_name(segment: u32) -> String {
    format!("part-{segment:05}.parquet")
}

/// The segment that a file name stands for; only the one spelling counts.
fn part_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    let number = digits.parse().ok()?;
    (name == part_name(number)).then_some(number)
}

/// Where a file is written before it gets its name. The dot keeps it out of `*.parquet`.
fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

/// Writes a file of mode 0600 that appears whole or not at all; on an error nothing of it stays.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = unfinished(path);
    let written = write_file(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        // The first error says more than this one could.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Into a file that was not there: where others may write to the folder above the session, a link could lie in its place.
fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let create = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600).open(path)
    };
    let mut file = match create() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            create()?
        }
        made => made?,
    };
    file.write_all(bytes)
}

/// A regular file's bytes; `None` when it is something else or longer than `limit`.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let found = FoundFile::at(path)?;
    if found.bytes() > limit {
        return Ok(None);
    }
    let file = match found.open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::with_capacity(found.bytes() as usize + 1);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// Removes a session. Whatever its schema version; but with one foreign file in it, it stays.
fn remove_session(path: &Path) -> Result<(), SessionError> {
    let refuse = |reason: String| SessionError::NotReplaceable {
        path: path.to_owned(),
        reason,
    };
    let metadata = fs::symlink_metadata(path).map_err(|error| SessionError::read(path, error))?;
    if !metadata.is_dir() {
        return Err(refuse("it is no directory".to_owned()));
    }
    if !is_session(path) {
        return Err(refuse("it has no meta.json of a session".to_owned()));
    }
    let foreign = foreign_entry(path).map_err(|error| SessionError::read(path, error))?;
    if let Some(foreign) = foreign {
        return Err(refuse(format!("{} is not ours", foreign.display())));
    }
    fs::remove_dir_all(path).map_err(|source| write_error(path, source))
}

fn is_session(path: &Path) -> bool {
    let Ok(Some(text)) = read_bounded(&path.join(META), MAX_META_BYTES) else {
        return false;
    };
    serde_json::from_slice::<serde_json::Value>(&text)
        .is_ok_and(|meta| meta.get("format").and_then(|format| format.as_str()) == Some(FORMAT))
}

/// The first entry that no session has. Tables of later schemas are folders of parts too.
fn foreign_entry(path: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            for part in fs::read_dir(entry.path())? {
                let part = part?;
                if !part.file_type()?.is_file()
                    || !is_ours(&part.file_name(), &|name| part_number(name).is_some())
                {
                    return Ok(Some(part.path()));
                }
            }
        } else if !entry.file_type()?.is_file()
            || !is_ours(&entry.file_name(), &|name| name == META)
        {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Whether a name, or the name that an unfinished file was to get, is one of ours.
fn is_ours(name: &std::ffi::OsStr, ours: &dyn Fn(&str) -> bool) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let finished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".unfinished"))
        .unwrap_or(name);
    ours(finished)
}
