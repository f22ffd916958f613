//! Lines of standard libraries, which belong to everybody who calls them: `AtomicU64::load` is one line for all atomics of
//! a program. Such a line is told from its copies by the calls that were inlined, out to code that is of no library.

use super::path::name;
use crate::hint::file::CallPlace;

/// Whether code at the line of a hint was inlined by the same calls, so far as they are part of the place. Of code that no
/// calls are known of, it is.
pub(super) fn same_callers(file: &str, wanted: &[CallPlace], seen: &[CallPlace]) -> bool {
    let inside = std::iter::once(Some(file)).chain(wanted.iter().map(|call| call.file.as_deref()));
    let parts = inside.take_while(|file| file.is_some_and(is_library));
    let calls = &wanted[..parts.count().min(wanted.len())];
    // The directories of a program may be others than when it was recorded, and a line and column tell enough.
    let place = |call: &CallPlace| (call.line, call.column);
    let same = |(wanted, seen): (&CallPlace, &CallPlace)| {
        wanted.file.as_deref().map(name) == seen.file.as_deref().map(name)
            && place(wanted) == place(seen)
    };
    seen.len() >= calls.len() && calls.iter().zip(seen).all(same)
}

/// Code of a standard library, by where distributions and rustup put its source.
fn is_library(path: &str) -> bool {
    let roots = ["/rustc/", "/usr/include/", "/usr/lib/"];
    let inside = ["/lib/rustlib/src/rust/", "/include/c++/"];
    roots.iter().any(|root| path.starts_with(root)) || inside.iter().any(|part| path.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATOMIC: &str = "/rustc/5980/library/core/src/sync/atomic.rs";

    fn call(file: &str, line: u32) -> CallPlace {
        CallPlace {
            file: Some(file.to_owned()),
            line: Some(line),
            column: Some(9),
        }
    }

    #[test]
    fn a_line_of_a_library_is_that_of_its_caller_and_no_further_out() {
        let wanted = [
            call(ATOMIC, 700),
            call("/a/main.rs", 5),
            call("/a/main.rs", 80),
        ];
        let is = |seen: &[CallPlace]| same_callers(ATOMIC, &wanted, seen);
        assert!(is(&wanted));
        assert!(is(&wanted[..2]));
        assert!(is(&[
            call(ATOMIC, 700),
            call("/a/main.rs", 5),
            call("/a/other.rs", 1)
        ]));
        assert!(!is(&[call(ATOMIC, 700), call("/a/main.rs", 6)]));
        assert!(!is(&[call(ATOMIC, 700), call("/a/other.rs", 5)]));
        assert!(!is(&[call(ATOMIC, 700)]));
        assert!(!is(&[]));
    }

    #[test]
    fn a_line_of_the_programs_own_is_all_of_its_copies() {
        let wanted = [call("/a/main.rs", 5)];
        assert!(same_callers("/a/list.rs", &wanted, &[]));
        assert!(same_callers(
            "/a/list.rs",
            &wanted,
            &[call("/a/main.rs", 6)]
        ));
    }

    #[test]
    fn a_hint_that_names_no_calls_is_for_every_copy() {
        assert!(same_callers(ATOMIC, &[], &[call("/a/main.rs", 6)]));
    }
}
