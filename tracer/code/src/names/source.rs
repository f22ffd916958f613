//! Source files: whose they are, and how their paths are written.

use symbolizer::Frame;

/// Whose code a file holds, the program's own first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Author {
    /// The program.
    #[default]
    Program,
    /// A package that the program uses.
    Package,
    /// A language's own library. An atomic's `fetch_add` is inlined from there, and says nothing of who called it.
    Language,
}

/// Where languages have their own libraries. Go's are below its root, which has its version in its name where a
/// package or `go install golang.org/dl/..` put it.
const LANGUAGES: [&str; 14] = [
    "/rustc/",
    "/lib/rustlib/src/",
    "/usr/lib/gcc",
    "/include/c++/",
    "/usr/include/x86_64-linux-gnu/bits/",
    "/usr/include/bits/",
    "/sysdeps/",
    "/usr/lib/go-",
    "/usr/lib/go/",
    "/usr/share/go-",
    "/usr/lib/golang/",
    "/usr/local/go/src/",
    "/sdk/go1.",
    "/golang.org/toolchain@",
];

/// Where package managers put packages.
const PACKAGES: [&str; 6] = [
    "/usr/include/",
    "/usr/local/include/",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/usr/share/cargo/registry/",
    "/pkg/mod/",
];

/// Whose a source file is.
pub(super) fn author(path: &str) -> Author {
    let is_in = |places: &[&str]| places.iter().any(|place| path.contains(place));
    if is_in(&LANGUAGES) {
        Author::Language
    } else if is_in(&PACKAGES) {
        Author::Package
    } else {
        Author::Program
    }
}

/// Whether a source file is one of a language or of the headers of the system: what is there acts for its caller.
pub(super) fn is_library(path: &str) -> bool {
    author(path) == Author::Language || path.contains("/usr/include/")
}

/// The frame that says most of an instruction: the innermost of the program, else of a package it uses, else of all.
pub(super) fn telling(frames: &[Frame]) -> Option<&Frame> {
    let with_file = frames.iter().filter(|frame| frame.file.is_some());
    with_file
        .min_by_key(|frame| author(frame.file.as_deref().unwrap_or_default()))
        .or(frames.first())
}

/// A path without its empty steps: compilers join a directory `.` and a file `./x.c` as they are.
pub(super) fn source_path(path: &str) -> String {
    let path = path.replace("/./", "/");
    path.trim_start_matches("./").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_by(files: &[&str]) -> Option<String> {
        let frame = |file: &&str| Frame {
            file: Some((*file).into()),
            ..Frame::default()
        };
        let frames: Vec<Frame> = files.iter().map(frame).collect();
        telling(&frames)?.file.as_deref().map(str::to_owned)
    }

    #[test]
    fn inlined_library_code_is_told_by_its_caller() {
        let own = "/home/a/src/main.cpp";
        for library in [
            "/usr/include/c++/12/bits/atomic_base.h",
            "/usr/include/boost/atomic/detail/core_arch_ops_gcc_x86.hpp",
            "/usr/local/include/tbb/spin_mutex.h",
            "/rustc/abc/library/core/src/sync/atomic.rs",
            "/home/a/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/cell.rs",
            "/home/a/.cargo/registry/src/index.crates.io-1/ringbuf-0.2.2/src/consumer.rs",
            "/usr/lib/go-1.19/src/sync/atomic/type.go",
            "/usr/local/go/src/runtime/internal/atomic/types.go",
            "/home/a/go/pkg/mod/github.com/x/y@v1.2.3/z.go",
        ] {
            assert_eq!(told_by(&[library, own]).as_deref(), Some(own), "{library}");
        }
        // The innermost of its own.
        assert_eq!(
            told_by(&[own, "/home/a/src/other.cpp"]).as_deref(),
            Some(own)
        );
        // A program may be called like a library.
        let like = "/home/a/sync/atomic/rustc.go";
        assert_eq!(told_by(&[like, own]).as_deref(), Some(like));
        let of_go_path = "/home/a/go/src/github.com/me/x.go";
        assert_eq!(told_by(&[of_go_path, own]).as_deref(), Some(of_go_path));
    }

    #[test]
    fn of_libraries_alone_a_package_says_more_than_a_language_and_the_innermost_of_one_kind_most() {
        let core = "/rustc/abc/library/core/src/sync/atomic.rs";
        let package = "/home/a/.cargo/registry/src/index.crates.io-1/ringbuf-0.2.2/src/consumer.rs";
        assert_eq!(told_by(&[core, package]).as_deref(), Some(package));
        let cell = "/rustc/abc/library/core/src/cell.rs";
        assert_eq!(told_by(&[core, cell]).as_deref(), Some(core));
        assert_eq!(told_by(&[]), None);
        assert_eq!(telling(&[Frame::default()]), Some(&Frame::default()));
    }

    #[test]
    fn headers_of_the_system_allocate_for_their_callers_and_packages_for_themselves() {
        assert!(is_library("/usr/include/c++/12/bits/new_allocator.h"));
        assert!(is_library("/usr/include/boost/container/allocator.hpp"));
        assert!(!is_library(
            "/home/a/.cargo/registry/src/a/ringbuf-0.2.2/src/lib.rs"
        ));
        assert!(!is_library("/home/a/queue.c"));
    }
}
