//! A descriptor of this process that is named by a path, as `/dev/stdout` and `/dev/fd/63` do.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

/// A duplicate of the descriptor that a path without links, such as `/proc/4242/fd/1`, means; `None` where it means none of
/// ours. What is written to it goes on where the last writer stopped, unlike a file that is opened again.
pub fn of(path: &Path) -> Option<io::Result<OwnedFd>> {
    let ours = Path::new("/proc").join(std::process::id().to_string());
    let inside = path.strip_prefix(ours).ok()?;
    // The second where /proc/thread-self led there.
    let folder = inside.parent()?;
    if folder != Path::new("fd") && !(folder.starts_with("task") && folder.ends_with("fd")) {
        return None;
    }
    let number: i32 = inside.file_name()?.to_str()?.parse().ok()?;
    if number < 0 {
        return None;
    }
    // SAFETY: the number is not -1, and where nothing is open under it the call says so; it is used for the call only.
    let named = unsafe { BorrowedFd::borrow_raw(number) };
    Some(named.try_clone_to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _, os::fd::AsRawFd as _};

    use super::*;

    #[test]
    fn a_descriptor_goes_on_where_it_was_and_other_paths_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one ").unwrap();
        let ours = format!("/proc/{}/fd", std::process::id());
        let number = file.as_raw_fd().to_string();
        let again = of(&Path::new(&ours).join(number)).unwrap().unwrap();
        File::from(again).write_all(b"two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two");
        for other in ["/proc/1/fd/1", "/tmp/1", "/proc/self"] {
            assert!(of(Path::new(other)).is_none(), "{other}");
        }
        assert!(of(&Path::new(&ours).join("-1")).is_none());
        assert!(of(&Path::new(&ours).join("1000000")).unwrap().is_err());
    }
}
