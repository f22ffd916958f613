//! How to load a line that is going to be stored to: with ownership, so that the store needs no request of
//! its own.

use super::file::{Expected, FollowingStore, HintedCode, StoreKind};
use crate::names::Language;

/// Its stable name in reports.
pub const FETCH_FOR_OWNERSHIP: &str = "fetch-for-ownership";

/// x86-64: prefetch with intent to write (AMD64 Architecture Programmer's Manual volume 3, PREFETCHW; in
/// Intel processors since Broadwell, CPUID.80000001H:ECX.PREFETCHW).
pub const X86: &str = "prefetchw";

/// aarch64: prefetch for store into the first level, to be kept (Arm ARM C6.2, PRFM).
pub const AARCH64: &str = "prfm pstl1keep";

/// What the compiler, or the programmer, should do about a load. `load` and `store` name the places, and the language is that
/// of the load's source.
pub fn sentence(load: &str, store: &str, language: Option<Language>) -> String {
    let follows = format!("The load at {load} is followed by a store to the same line at {store}.");
    let ways = match language {
        Some(Language::C | Language::Cpp) | None => {
            "`__builtin_prefetch(address, 1)` in C and C++, "
        }
        Some(Language::Rust) => "inline assembly in Rust: ",
        Some(Language::Go | Language::Java) => {
            return format!("{follows} {}", without_prefetch(language));
        }
        Some(Language::Other(_)) => "",
    };
    format!(
        "{follows} Fetch the line for ownership before the load ({ways}`{X86}` on x86-64, `{AARCH64}` on aarch64): then one \
         request brings what now takes two."
    )
}

/// C and C++: what to write before the load.
const IN_C: &str = "__builtin_prefetch(&x, 1)";

/// Rust: what to write before the load.
const IN_RUST: &str = "unsafe { core::arch::asm!(\"prefetchw [{}]\", in(reg) p, options(nostack, preserves_flags, readonly)) }";

/// What a source of this language should have before the load, or instead of it.
pub fn how(language: Option<Language>) -> String {
    match language {
        Some(Language::Rust) => {
            format!("Before the load, with its address as `p`: `{IN_RUST}`.")
        }
        Some(Language::C | Language::Cpp) | None => format!(
            "Before the load of x: `{IN_C}`, compiled with `-mprfchw` or for a CPU that has {X86} (broadwell, znver1 and \
             later); without, it becomes `prefetcht0` and asks for no ownership."
        ),
        Some(Language::Go | Language::Java) => without_prefetch(language),
        Some(Language::Other(name)) => format!(
            "Before the load, whatever {name} has for a prefetch with the intent to write: it must become `{X86}` on x86-64, \
             `{AARCH64}` on aarch64."
        ),
    }
}

/// For languages that have no prefetch for a write.
fn without_prefetch(language: Option<Language>) -> String {
    let (why, atomics) = if language == Some(Language::Java) {
        (
            "Java has no prefetch",
            "`VarHandle.getAndAdd` or `getAndSet`",
        )
    } else {
        (
            "Go has no prefetch for a write, and a function of assembly costs a call",
            "`atomic.AddInt64` or `atomic.SwapInt64`",
        )
    };
    format!(
        "{why}: where one atomic instruction can do the load and the store ({atomics}), one request brings what now takes two."
    )
}

/// What a log showed of a load, what a hint changes, and how to write it. The store is the one that follows most often.
pub fn advice(load: &HintedCode, store: Option<&FollowingStore>, expected: &Expected) -> String {
    let mut text = format!(
        "The load at {} misses {} of {} times. ",
        place(load),
        expected.requests,
        expected.executions
    );
    if let Some(store) = store {
        text += &format!(
            "{} times the next request for its line was the same CPU's, for ownership: mostly the store at {}. ",
            expected.followed_by_store,
            place(&store.code)
        );
    }
    text += &format!(
        "Fetched for ownership, it takes {} messages less, net of {} that it adds. ",
        expected.net(),
        expected.lost
    );
    text += match store.map(|store| store.kind) {
        Some(StoreKind::Atomic | StoreKind::CompareAndSwap | StoreKind::Fenced) => {
            "The CPU waits for that store, so the hint gains time wherever another CPU has a clean copy. "
        }
        Some(StoreKind::Plain | StoreKind::ReadModifyWrite) => {
            "The store buffer mostly hides that store's request, so the hint gains traffic rather than time. "
        }
        Some(StoreKind::Unknown) | None => "",
    };
    if expected.found_dirty > expected.requests / 2 {
        text += "Mostly another CPU had written the line: CPUs that hand such a line over with its ownership, as AMD's Zen 4 \
                 does, gain nothing here. ";
    }
    text += &how(load.file.as_deref().and_then(Language::of_file));
    text
}

/// `worker.c:31`, or what else is known of the instruction.
fn place(code: &HintedCode) -> String {
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let address = code.offset.as_ref().unwrap_or(&code.ip);
    match (&code.file, code.line, &code.function, &code.module) {
        (Some(file), Some(line), ..) => format!("{}:{line}", last(file)),
        (_, _, Some(function), _) => format!("{function} ({address})"),
        (_, _, None, Some(module)) => format!("{}+{address}", last(module)),
        (_, _, None, None) => address.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_language_gets_words_of_another() {
        let languages = [
            Language::Rust,
            Language::Go,
            Language::Java,
            Language::Other("Fortran"),
        ];
        for language in languages {
            for text in [sentence("a:1", "a:2", Some(language)), how(Some(language))] {
                assert!(!text.contains("__builtin"), "{language:?}: {text}");
                let has_no_prefetch = matches!(language, Language::Go | Language::Java);
                assert_eq!(text.contains("prefetchw"), !has_no_prefetch, "{text}");
            }
        }
        assert!(sentence("a:1", "a:2", Some(Language::Java)).contains("VarHandle"));
        assert!(how(Some(Language::C)).contains("__builtin_prefetch"));
    }

    fn advised(file: &str, kind: StoreKind, found_dirty: u64) -> String {
        let load = HintedCode {
            file: Some(format!("/src/{file}")),
            line: Some(7),
            ..HintedCode::default()
        };
        let store = FollowingStore {
            code: HintedCode {
                function: Some("bump".to_owned()),
                offset: Some("0x1149".to_owned()),
                ..HintedCode::default()
            },
            count: 9,
            kind,
        };
        let expected = Expected {
            executions: 20,
            requests: 10,
            followed_by_store: 9,
            found_dirty,
            saved: 36,
            lost: 4,
            ..Expected::default()
        };
        advice(&load, Some(&store), &expected)
    }

    #[test]
    fn advice_says_what_was_seen_and_how_to_write_it() {
        expect_test::expect!["The load at t.c:7 misses 10 of 20 times. 9 times the next request for its line was the same CPU's, for ownership: mostly the store at bump (0x1149). Fetched for ownership, it takes 32 messages less, net of 4 that it adds. The CPU waits for that store, so the hint gains time wherever another CPU has a clean copy. Mostly another CPU had written the line: CPUs that hand such a line over with its ownership, as AMD's Zen 4 does, gain nothing here. Before the load of x: `__builtin_prefetch(&x, 1)`, compiled with `-mprfchw` or for a CPU that has prefetchw (broadwell, znver1 and later); without, it becomes `prefetcht0` and asks for no ownership."].assert_eq(&advised("t.c", StoreKind::CompareAndSwap, 10));
        expect_test::expect![[r#"The load at main.rs:7 misses 10 of 20 times. 9 times the next request for its line was the same CPU's, for ownership: mostly the store at bump (0x1149). Fetched for ownership, it takes 32 messages less, net of 4 that it adds. The store buffer mostly hides that store's request, so the hint gains traffic rather than time. Before the load, with its address as `p`: `unsafe { core::arch::asm!("prefetchw [{}]", in(reg) p, options(nostack, preserves_flags, readonly)) }`."#]].assert_eq(&advised("main.rs", StoreKind::Plain, 0));
    }
}
