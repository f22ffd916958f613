//! Where a file that was asked for goes: beside its place first, then there whole; never through a link of somebody else,
//! and never into a file of somebody else.

use std::{
    fs::{self, File, Metadata, OpenOptions, Permissions},
    io::{self, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::sys::{capabilities::OwnRights, own_descriptor};

/// As many links as the kernel follows (MAXSYMLINKS).
const MOST_LINKS: usize = 40;
/// Mode of a new file, of which the umask takes its part.
const MODE: u32 = 0o666;
/// Between looking and writing others may write the same file.
const TRIES: usize = 3;

/// What is at a path, behind links that may be followed.
enum Place {
    /// One of our own descriptors (`/dev/stdout`, `/dev/fd/63`).
    Descriptor(OwnedFd),
    /// A device of characters, or a pipe of our own.
    Stream(PathBuf),
    /// A regular file of our own, or none yet.
    File(PathBuf, Option<Metadata>),
}

/// Whether the file could be written, as far as can be told before there is anything to write. Opens nothing.
pub(super) fn check(path: &Path) -> Result<()> {
    let _own = own_rights()?;
    let place = resolve(path).with_context(|| cannot(path))?;
    if let Place::File(path, None) = &place {
        let folder = folder(path);
        if !folder.is_dir() {
            bail!(
                "{}: there is no directory {}",
                cannot(path),
                folder.display()
            );
        }
    }
    Ok(())
}

/// Writes the whole file. What was there before stays as it was until then, and after an error.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let _own = own_rights()?;
    for _ in 0..TRIES {
        let written = match resolve(path).with_context(|| cannot(path))? {
            Place::Descriptor(descriptor) => File::from(descriptor).write_all(bytes),
            Place::Stream(path) => OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NOCTTY)
                .open(path)
                .and_then(|mut stream| stream.write_all(bytes)),
            Place::File(path, found) => write_file(&path, found.as_ref(), bytes),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.with_context(|| cannot(path)),
        }
    }
    bail!("{}: somebody else makes it again and again", cannot(path))
}

/// Opens a file to write at its end, made if it is not there.
pub(super) fn append(path: &Path) -> Result<File> {
    let _own = own_rights()?;
    match resolve(path)? {
        Place::Descriptor(descriptor) => Ok(descriptor.into()),
        Place::Stream(path) => Ok(OpenOptions::new().append(true).open(path)?),
        Place::File(path, _) => Ok(OpenOptions::new()
            .append(true)
            .create(true)
            .mode(MODE)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?),
    }
}

/// The place of a regular file that is to be made, or replaced; and what is there.
pub(super) fn regular(path: &Path) -> Result<(PathBuf, Option<Metadata>)> {
    match resolve(path).with_context(|| cannot(path))? {
        Place::File(path, found) => Ok((path, found)),
        Place::Descriptor(_) | Place::Stream(_) => bail!("{} is no file", path.display()),
    }
}

/// Where a file in the making is.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whoever asks for a file may ask for those of theirs.
fn own_rights() -> Result<OwnRights> {
    OwnRights::take().context("laying down rights")
}

fn cannot(path: &Path) -> String {
    format!("writing {}", path.display())
}

fn resolve(path: &Path) -> Result<Place> {
    let us = rustix::process::geteuid().as_raw();
    let is_ours = |found: &Metadata| found.uid() == us;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(name) = path.file_name() else {
            bail!("{} is a directory", path.display());
        };
        no_foreign_links(folder(&path), us)?;
        let inside =
            fs::canonicalize(folder(&path)).with_context(|| folder(&path).display().to_string())?;
        let here = inside.join(name);
        if let Some(descriptor) = own_descriptor::of(&here) {
            return Ok(Place::Descriptor(descriptor?));
        }
        let found = match fs::symlink_metadata(&here) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Place::File(here, None));
            }
            Err(error) => return Err(error.into()),
        };
        let kind = found.file_type();
        if kind.is_symlink() {
            if !is_ours(&found) && found.uid() != 0 {
                bail!(
                    "it is a symbolic link of user {}, which is not followed: remove it, or choose another name",
                    found.uid()
                );
            }
            path = inside.join(fs::read_link(&here)?);
        } else if kind.is_dir() {
            bail!("it is a directory");
        } else if kind.is_char_device() {
            return Ok(Place::Stream(here));
        } else if kind.is_block_device() || kind.is_socket() {
            bail!("it is a disk or a socket: choose another name");
        } else if !is_ours(&found) {
            bail!(
                "it belongs to user {}, and files of others are not replaced: remove it, or choose another name",
                found.uid()
            );
        } else if kind.is_fifo() {
            return Ok(Place::Stream(here));
        } else {
            return Ok(Place::File(here, Some(found)));
        }
    }
    bail!("too many symbolic links")
}

/// Refuses what the kernel refuses where it protects links (fs.protected_symlinks): a folder that is reached by a link of
/// somebody else in a directory that everybody writes to.
fn no_foreign_links(folder: &Path, us: u32) -> Result<()> {
    const EVERYBODYS: u32 = libc::S_ISVTX | libc::S_IWOTH;
    for path in folder.ancestors() {
        let Ok(found) = fs::symlink_metadata(path) else {
            continue;
        };
        if !found.is_symlink() || found.uid() == us || found.uid() == 0 {
            continue;
        }
        let above = fs::metadata(self::folder(path))?;
        if above.mode() & EVERYBODYS == EVERYBODYS && above.uid() != found.uid() {
            bail!(
                "{} is a symbolic link of user {}, which is not followed: choose another directory",
                path.display(),
                found.uid()
            );
        }
    }
    Ok(())
}

fn write_file(path: &Path, found: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    match replace(path, found, bytes) {
        // The folder takes no new file, or the file is a mount of its own; what is there may still take it.
        Err(error) if can_still_write(&error) => match found {
            Some(found) => overwrite(path, found, bytes),
            None => Err(error),
        },
        other => other,
    }
}

fn can_still_write(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | ResourceBusy
    )
}

fn replace(path: &Path, found: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    // Its name is nobody's, it follows no link, and it is gone when dropped.
    let mut file = tempfile::Builder::new()
        .prefix(".cohtrace-")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder(path))?;
    file.write_all(bytes)?;
    let persisted = if let Some(found) = found {
        // Who could not read it before cannot read it then.
        let mode = found.mode() & 0o777;
        file.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    persisted.map(drop).map_err(|failed| failed.error)
}

/// Into a file of our own that cannot be replaced.
fn overwrite(path: &Path, found: &Metadata, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let opened = file.metadata()?;
    if (opened.dev(), opened.ino()) != (found.dev(), found.ino()) || opened.nlink() != 1 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    file.set_len(0)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
