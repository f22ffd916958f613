//! What went wrong, in words: each cause once, and what to do where a limit of this process is the cause.

use std::io;

use crate::sys::limits;

/// The error and its causes; a cause that was said already is not said again.
pub(super) fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !says(&text, &cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// The same, and what helps.
pub(super) fn words(error: &anyhow::Error) -> String {
    let text = causes(error);
    let errno = |cause: &&(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>()?.raw_os_error()
    };
    match error.chain().find_map(|cause| advice(errno(&cause)?)) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// Whether the text has the words, and not only as a part of other words.
fn says(text: &str, words: &str) -> bool {
    let whole = |(at, found): (usize, &str)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        ![before, after]
            .into_iter()
            .flatten()
            .any(char::is_alphanumeric)
    };
    words.trim().is_empty() || text.match_indices(words).any(whole)
}

fn advice(errno: i32) -> Option<String> {
    let number = |limit: Option<u64>| limit.map_or("no".to_owned(), |limit| limit.to_string());
    Some(match errno {
        libc::EMFILE => format!(
            "this process may have {} files open: raise the hard limit (ulimit -Hn, limits.conf, LimitNOFILE= of a \
             service), or watch fewer processes",
            number(limits::descriptors())
        ),
        libc::ENFILE => {
            "this machine has as many files open as it may: raise fs.file-max (sysctl)".to_owned()
        }
        libc::EFBIG => format!(
            "this process may write files of {} bytes: raise the limit (ulimit -f, LimitFSIZE= of a service)",
            number(limits::file_bytes())
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("writing x: {source}; make room")]
    struct Says {
        source: io::Error,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the window cannot be opened")]
    struct Keeps(#[source] io::Error);

    #[test]
    fn a_cause_that_was_said_is_not_said_again_and_one_that_was_not_is() {
        let denied = || io::Error::from_raw_os_error(libc::EACCES);
        let said = anyhow::Error::new(Says { source: denied() }).context("recording");
        assert_eq!(
            causes(&said),
            "recording: writing x: Permission denied (os error 13); make room"
        );
        let kept = anyhow::Error::new(Keeps(denied()));
        assert_eq!(
            causes(&kept),
            "the window cannot be opened: Permission denied (os error 13)"
        );
    }

    #[test]
    fn a_part_of_a_word_is_not_what_was_said() {
        let error = Err::<(), _>(anyhow::anyhow!("read")).context("cannot thread it");
        assert_eq!(causes(&error.unwrap_err()), "cannot thread it: read");
        let error = Err::<(), _>(anyhow::anyhow!("read")).context("cannot read it");
        assert_eq!(causes(&error.unwrap_err()), "cannot read it");
    }

    #[test]
    fn limits_say_what_to_do_and_other_errors_do_not() {
        let of = |errno| words(&anyhow::Error::new(io::Error::from_raw_os_error(errno)));
        assert!(of(libc::EMFILE).contains("ulimit -Hn"));
        assert!(of(libc::EFBIG).contains("ulimit -f"));
        assert_eq!(of(libc::EACCES), "Permission denied (os error 13)");
    }
}
