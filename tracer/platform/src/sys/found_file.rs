//! Files whose names somebody else may have chosen, or what is behind them: modules, debug files, sources.

use std::{
    fs::{File, Metadata},
    io,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _},
    path::Path,
    time::SystemTime,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, open, openat, openat2},
    io::Errno,
};

use crate::event::FileStamp;

/// What is at a path, looked at and not yet opened: a pipe would block, and opening a device may do anything.
#[derive(Debug)]
pub struct FoundFile {
    /// Without the right to read.
    seen: File,
    metadata: Metadata,
}

/// How a path is looked at.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// How often a path is looked for that is renamed meanwhile.
const TRIES: usize = 3;

impl FoundFile {
    /// What is at that path, behind all links.
    pub fn at(path: &Path) -> io::Result<FoundFile> {
        FoundFile::new(File::from(openat(CWD, path, LOOK, Mode::empty())?))
    }

    /// What is at that path below a root, as a process sees it whose root that is: links, absolute ones and `..` too, stay
    /// inside. Kernels before 5.6 follow absolute links outside.
    pub fn below(root: &Path, path: &Path) -> io::Result<FoundFile> {
        FoundFile::looked_at(root, path, LOOK)
    }

    /// The same, of what must be no link itself: a link there is found, and is no regular file.
    pub fn itself_below(root: &Path, path: &Path) -> io::Result<FoundFile> {
        FoundFile::looked_at(root, path, LOOK | OFlags::NOFOLLOW)
    }

    fn looked_at(root: &Path, path: &Path, look: OFlags) -> io::Result<FoundFile> {
        let root = open(root, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        let path = path.strip_prefix("/").unwrap_or(path);
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        let seen = loop {
            match openat2(&root, path, look, Mode::empty(), inside) {
                Err(Errno::AGAIN) if tries < TRIES => tries += 1,
                Err(Errno::NOSYS) => break openat(&root, path, look, Mode::empty())?,
                seen => break seen?,
            }
        };
        FoundFile::new(File::from(seen))
    }

    fn new(seen: File) -> io::Result<FoundFile> {
        let metadata = seen.metadata()?;
        Ok(FoundFile { seen, metadata })
    }

    /// Its length and times.
    pub fn stamp(&self) -> FileStamp {
        FileStamp::of(&self.metadata)
    }

    /// When it was made, where the file system says so.
    pub fn born(&self) -> Option<SystemTime> {
        self.metadata.created().ok()
    }

    /// When it was last written, where the file system says so.
    pub fn written(&self) -> Option<SystemTime> {
        self.metadata.modified().ok()
    }

    /// The user whose it is.
    pub fn owner(&self) -> u32 {
        self.metadata.uid()
    }

    /// Its number in its file system.
    pub fn inode(&self) -> u64 {
        self.metadata.ino()
    }

    /// Its file system, and its number in it.
    pub fn identity(&self) -> (u64, u64) {
        (self.metadata.dev(), self.metadata.ino())
    }

    /// Its length, bytes.
    pub fn bytes(&self) -> u64 {
        self.metadata.len()
    }

    /// Opens it to read: the very file that was looked at, whatever has its name by now. What is no regular file is
    /// `InvalidInput`.
    pub fn open(&self) -> io::Result<File> {
        if !self.metadata.is_file() {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io::Error::new(kind, "not a regular file"));
        }
        File::open(format!("/proc/self/fd/{}", self.seen.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Read as _,
        os::unix::{fs::symlink, net::UnixListener},
    };

    use rustix::fs::{FileType, mknodat};

    use super::*;

    fn text(found: io::Result<FoundFile>) -> io::Result<String> {
        let mut text = String::new();
        found?.open()?.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_regular_file_is_read_and_what_is_none_is_refused_and_never_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("plain"), "plain").expect("writable");
        symlink(at("plain"), at("link")).expect("writable");
        for name in ["plain", "link"] {
            assert_eq!(text(FoundFile::at(&at(name))).expect(name), "plain");
        }
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("writable");
        symlink("/dev/zero", at("device")).expect("writable");
        let _socket = UnixListener::bind(at("socket")).expect("writable");
        for name in ["pipe", "device", "socket", "."] {
            let refused = text(FoundFile::at(&at(name))).expect_err(name);
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{name}");
            let below = FoundFile::below(directory.path(), Path::new(name));
            assert!(text(below).is_err(), "{name}");
        }
    }

    #[test]
    fn below_a_root_an_absolute_link_and_dots_stay_inside() {
        let (outside, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "outside").unwrap();
        fs::write(root.path().join("file"), "inside").unwrap();
        let link = |name: &str, to: &Path| symlink(to, root.path().join(name)).unwrap();
        link("in", Path::new("/file"));
        link("dots", Path::new("../../../file"));
        link("out", &outside.path().join("secret"));
        let below = |path: &str| text(FoundFile::below(root.path(), Path::new(path)));
        for path in ["file", "/file", "in", "dots", "../../file"] {
            assert_eq!(below(path).expect(path), "inside", "{path}");
        }
        let refused = below("out").expect_err("it is not inside");
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        // A link on the way is followed, and as the last of a path only by those who mean to.
        symlink("/", root.path().join("way")).unwrap();
        let itself = |path: &str| text(FoundFile::itself_below(root.path(), Path::new(path)));
        assert_eq!(itself("way/file").unwrap(), "inside");
        let refused = itself("way/in").expect_err("it is a link");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        // Without a root the same link leads there.
        let out = FoundFile::at(&root.path().join("out"));
        assert_eq!(text(out).unwrap(), "outside");
    }

    #[test]
    fn what_was_looked_at_is_opened_and_not_what_took_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "first").unwrap();
        let found = FoundFile::at(&path);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "second").unwrap();
        assert_eq!(text(found).unwrap(), "first");
    }
}
