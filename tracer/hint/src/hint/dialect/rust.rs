//! Types of Rust, from the full paths of debug information to what the source can name.

use super::c::is_whole;

/// Where the standard library shows what it defines elsewhere: modules of `core` and `alloc` are private, or have other names.
const PUBLIC: [(&str, &[&str]); 14] = [
    ("", &["Vec", "String", "Box", "Option", "Result"]),
    (
        "std::sync::",
        &[
            "Arc", "Mutex", "RwLock", "Condvar", "Once", "OnceLock", "LazyLock", "Barrier",
        ],
    ),
    ("std::sync::mpsc::", &["Sender", "Receiver", "SyncSender"]),
    ("std::rc::", &["Rc"]),
    (
        "std::cell::",
        &["Cell", "RefCell", "UnsafeCell", "OnceCell", "LazyCell"],
    ),
    (
        "std::collections::",
        &[
            "HashMap",
            "HashSet",
            "BTreeMap",
            "BTreeSet",
            "VecDeque",
            "BinaryHeap",
            "LinkedList",
        ],
    ),
    ("std::time::", &["Duration", "Instant", "SystemTime"]),
    ("std::marker::", &["PhantomData", "PhantomPinned"]),
    ("std::ptr::", &["NonNull"]),
    ("std::mem::", &["ManuallyDrop", "MaybeUninit"]),
    ("std::num::", &["NonZero", "Wrapping", "Saturating"]),
    ("std::pin::", &["Pin"]),
    ("std::thread::", &["JoinHandle", "Thread", "ThreadId"]),
    ("std::path::", &["PathBuf"]),
];

/// Arguments that the source leaves out.
const DEFAULTS: [&str; 2] = ["alloc::alloc::Global", "std::hash::random::RandomState"];

/// Words that are no paths.
const PLAIN: [&str; 22] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64", "bool", "char", "str", "mut", "const", "fn", "extern", "unsafe",
];

/// A type as the source can write it in the declaration of `owner`, a type or static with its path. `None` where it cannot be
/// told: references, whose lifetime is not known, closures, trait objects, what other crates may not show, members of an
/// instance of a generic type.
pub(super) fn written(owner: &str, type_name: &str) -> Option<String> {
    let is_plain = type_name.chars().all(|c| {
        c.is_alphanumeric()
            || matches!(
                c,
                '_' | ':' | '<' | '>' | ',' | ' ' | '[' | ']' | ';' | '(' | ')' | '*' | '-'
            )
    });
    if !is_plain || type_name.is_empty() || !is_whole(owner) || owner.contains('<') {
        return None;
    }
    let mut stripped = type_name.to_owned();
    for default in DEFAULTS {
        stripped = stripped.replace(&format!(", {default}"), "");
    }
    let mut out = String::new();
    let mut rest = stripped.as_str();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if end == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (path, after) = rest.split_at(end);
        if first.is_ascii_digit() {
            out.push_str(path);
        } else {
            out.push_str(&shown(owner, path)?);
        }
        rest = after;
    }
    Some(out)
}

/// A path as the owner's module can name it.
fn shown(owner: &str, path: &str) -> Option<String> {
    if !path.contains("::") {
        return PLAIN.contains(&path).then(|| path.to_owned());
    }
    let (start, last) = (path.split("::").next()?, path.rsplit("::").next()?);
    if matches!(start, "core" | "alloc" | "std") {
        if let Some(atomic) = path.strip_prefix("core::sync::atomic::") {
            // Newer ones are all `Atomic<T>`, which is not stable to name.
            return atomic
                .starts_with("Atomic")
                .then_some(atomic)
                .filter(|atomic| *atomic != "Atomic")
                .map(|atomic| format!("std::sync::atomic::{atomic}"));
        }
        let public = PUBLIC.iter().find(|(_, names)| names.contains(&last));
        return public.map(|(module, _)| format!("{module}{last}"));
    }
    let (module, _) = owner.rsplit_once("::")?;
    let (own_crate, _) = owner.split_once("::")?;
    if path
        .strip_suffix(last)
        .and_then(|path| path.strip_suffix("::"))
        == Some(module)
    {
        return Some(last.to_owned());
    }
    let inside = path.strip_prefix(own_crate)?.strip_prefix("::")?;
    Some(format!("crate::{inside}"))
}

/// A field's name; `None` for those of tuples, which have none.
pub(super) fn name(name: &str) -> Option<&str> {
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_the_owners_module_can_name_them() {
        let written = |type_name| written("demo::stats::Table", type_name);
        for (type_name, expected) in [
            ("u64", "u64"),
            (
                "core::sync::atomic::AtomicU64",
                "std::sync::atomic::AtomicU64",
            ),
            (
                "core::sync::atomic::AtomicPtr<u8>",
                "std::sync::atomic::AtomicPtr<u8>",
            ),
            ("alloc::vec::Vec<u64, alloc::alloc::Global>", "Vec<u64>"),
            (
                "alloc::sync::Arc<std::sync::poison::mutex::Mutex<u64>, alloc::alloc::Global>",
                "std::sync::Arc<std::sync::Mutex<u64>>",
            ),
            (
                "std::collections::hash::map::HashMap<u64, alloc::string::String, std::hash::random::RandomState, \
                 alloc::alloc::Global>",
                "std::collections::HashMap<u64, String>",
            ),
            ("[u16; 4]", "[u16; 4]"),
            ("(u64, demo::stats::Slot)", "(u64, Slot)"),
            ("*mut demo::other::Node", "*mut crate::other::Node"),
            ("fn(u64) -> u64", "fn(u64) -> u64"),
            ("()", "()"),
        ] {
            assert_eq!(written(type_name).as_deref(), Some(expected), "{type_name}");
        }
    }

    #[test]
    fn what_the_source_may_not_be_able_to_name_is_left_to_words() {
        for type_name in [
            "&str",
            "&[u8]",
            "alloc::boxed::Box<(dyn core::ops::function::Fn<(u64), Output=u64> + core::marker::Send), alloc::alloc::Global>",
            "demo::main::{closure_env#0}",
            "lock_api::mutex::Mutex<parking_lot::raw_mutex::RawMutex, u64>",
            "core::sync::atomic::Atomic<u64>",
            "core::task::wake::Waker",
            "alloc::vec::Vec<..>",
            "",
            "AtomicU64",
        ] {
            assert_eq!(written("demo::Table", type_name), None, "{type_name}");
        }
        assert_eq!(written("demo::Queue<u64>", "u64"), None);
        assert_eq!(name("0"), None);
        assert_eq!(name("hits"), Some("hits"));
    }
}
