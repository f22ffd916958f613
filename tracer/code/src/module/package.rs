//! Which package has the debug info of a file, in the words of the system's package manager.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::Path,
};

/// Lists of files that packages hold, one a package; more than any system has installed.
const MOST_LISTS: usize = 100_000;
/// Directories that are, on a merged system, the same below `/usr` and without it; packages list either.
const MERGED: [&str; 7] = [
    "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libo32/", "/libx32/",
];

/// What to do for the debug info of each of the files, by the file; without those that no package holds, or
/// where no package manager that is known says so.
pub(super) fn debug_packages<'p>(
    root: &Path,
    files: impl IntoIterator<Item = &'p str>,
) -> HashMap<&'p str, String> {
    let dpkg = root.join("var/lib/dpkg/info");
    if dpkg.is_dir() {
        return of_dpkg(&dpkg, files);
    }
    let rpm = ["var/lib/rpm", "usr/lib/sysimage/rpm"];
    if !rpm.iter().any(|database| root.join(database).is_dir()) {
        return HashMap::new();
    }
    // Its database takes its own library to read, but its tool finds the package by the file.
    let advice = |file| format!("debuginfo-install {file}");
    let installed = files.into_iter().filter(|file| {
        let below_usr = file.starts_with("/usr/") && !file.starts_with("/usr/local/");
        below_usr || MERGED.iter().any(|directory| file.starts_with(directory))
    });
    installed.map(|file| (file, advice(file))).collect()
}

/// By dpkg's lists of files (`PACKAGE.list` or, for packages of one architecture among several,
/// `PACKAGE:ARCHITECTURE.list`).
fn of_dpkg<'p>(lists: &Path, files: impl IntoIterator<Item = &'p str>) -> HashMap<&'p str, String> {
    let mut sought: HashMap<&str, Vec<&'p str>> = HashMap::new();
    for file in files.into_iter().filter(|file| file.starts_with('/')) {
        sought.entry(unmerged(file)).or_default().push(file);
    }
    let mut found = HashMap::new();
    let entries = fs::read_dir(lists).into_iter().flatten();
    for entry in entries.take(MOST_LISTS).flatten() {
        if sought.is_empty() {
            break;
        }
        let name = entry.file_name();
        let Some(package) = name.to_str().and_then(|name| name.strip_suffix(".list")) else {
            continue;
        };
        let package = package.split(':').next().unwrap_or(package);
        let Ok(list) = File::open(entry.path()) else {
            continue;
        };
        for line in BufReader::new(list).split(b'\n').map_while(Result::ok) {
            let Some(files) = std::str::from_utf8(&line)
                .ok()
                .and_then(|line| sought.remove(unmerged(line)))
            else {
                continue;
            };
            let advice = format!("install {}", debug_package(package));
            found.extend(files.into_iter().map(|file| (file, advice.clone())));
        }
    }
    found
}

/// Debian's rule: debug packages are made for all, but the C library makes its own.
fn debug_package(package: &str) -> String {
    match package {
        "libc6" => "libc6-dbg".to_owned(),
        other => format!("{other}-dbgsym"),
    }
}

/// A path as it was before `/bin` and its like were merged into `/usr`.
fn unmerged(path: &str) -> &str {
    path.strip_prefix("/usr")
        .filter(|rest| MERGED.iter().any(|directory| rest.starts_with(directory)))
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(root: &Path, file: &str) -> Option<String> {
        debug_packages(root, [file]).remove(file)
    }

    fn debian() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let info = root.path().join("var/lib/dpkg/info");
        fs::create_dir_all(&info).unwrap();
        let write = |name: &str, content: &[u8]| fs::write(info.join(name), content).unwrap();
        write(
            "libc6:amd64.list",
            b"/.\n/lib\n/lib/x86_64-linux-gnu/libc.so.6\n",
        );
        write("coreutils.list", b"/.\n/usr/bin/sort\n\xff\xff\n/bin/cat\n");
        write("libfoo1:i386.list", b"/usr/lib/i386-linux-gnu/libfoo.so.1");
        write("coreutils.md5sums", b"/usr/bin/other\n");
        root
    }

    #[test]
    fn the_package_that_lists_a_file_is_named_with_its_debug_package() {
        let root = debian();
        for (file, package) in [
            ("/lib/x86_64-linux-gnu/libc.so.6", "install libc6-dbg"),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", "install libc6-dbg"),
            ("/usr/bin/sort", "install coreutils-dbgsym"),
            ("/bin/sort", "install coreutils-dbgsym"),
            ("/usr/bin/cat", "install coreutils-dbgsym"),
            (
                "/usr/lib/i386-linux-gnu/libfoo.so.1",
                "install libfoo1-dbgsym",
            ),
        ] {
            assert_eq!(
                advice(root.path(), file).as_deref(),
                Some(package),
                "{file}"
            );
        }
    }

    #[test]
    fn a_file_of_no_package_has_no_advice() {
        let root = debian();
        for file in [
            "/usr/bin/other",
            "/home/me/sort",
            "/usr/share/bin/sort",
            "[vdso]",
            "",
        ] {
            assert_eq!(advice(root.path(), file), None, "{file}");
        }
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(advice(empty.path(), "/usr/bin/sort"), None);
    }

    #[test]
    fn a_system_of_rpm_packages_is_told_its_own_command() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("usr/lib/sysimage/rpm")).unwrap();
        let told = advice(root.path(), "/usr/lib64/libc.so.6");
        assert_eq!(
            told.as_deref(),
            Some("debuginfo-install /usr/lib64/libc.so.6")
        );
        assert_eq!(advice(root.path(), "/usr/local/lib/libmine.so"), None);
        assert_eq!(advice(root.path(), "/home/me/program"), None);
    }

    #[test]
    fn dpkg_itself_names_the_same_package_for_a_file_of_this_system() {
        let dpkg = std::process::Command::new("dpkg")
            .args(["-S", "*/libc.so.6"])
            .output();
        let Some(output) = dpkg.ok().filter(|output| output.status.success()) else {
            cohtrace_skips::skipped("no dpkg that knows libc.so.6");
            return;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let (owner, file) = text.lines().next().unwrap().split_once(": ").unwrap();
        if owner.split(':').next() != Some("libc6") {
            cohtrace_skips::skipped(format_args!("libc.so.6 is of {owner}"));
            return;
        }
        assert_eq!(
            advice(Path::new("/"), file).as_deref(),
            Some("install libc6-dbg")
        );
    }
}
