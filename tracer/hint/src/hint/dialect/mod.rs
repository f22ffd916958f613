//! How each language says "starts on a cache line of its own": declarations that can be pasted, or words where a language
//! has no form, or a type cannot be written.

mod c;
mod go;
mod java;
mod rust;

use super::relayout::{self, Means};
use crate::names::{Language, MemberLayout, ObjectKind};

/// A language's way to align things to `line` bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    /// Language, where known.
    pub language: Option<Language>,
    /// Kernel code has its own macros.
    pub kernel: bool,
    /// Length of a cache line in bytes.
    pub line: u64,
}

/// By what a language keeps things apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// This word, with the number of bytes behind it in parentheses, in front of a declaration.
    Aligned(&'static str),
    /// The kernel's attribute behind it.
    KernelAligned,
    /// A type that is a line, around it.
    Wrapped,
    /// Padding fields.
    Padded,
    /// Nothing that could be declared from here.
    Words,
}

/// What crossbeam_utils::CachePadded aligns to on x86-64 and aarch64 (its documentation: adjacent
/// lines are fetched in pairs on x86-64, and some aarch64 parts have 128-byte lines).
pub(super) const CACHE_PADDED: u64 = 128;

/// `long slots[8];`, `int (*call)(void);`, `hits: AtomicU64,`: a member as its language declares it, for people; `bits` of a
/// bit-field, `alignment` where one is stated. Without a name the type alone.
pub fn shown(
    language: Option<Language>,
    type_name: &str,
    name: &str,
    bits: Option<u64>,
    alignment: Option<u64>,
) -> String {
    let word = match language {
        Some(Language::Rust) if name.is_empty() => return format!("{type_name},"),
        Some(Language::Rust) => return format!("{name}: {type_name},"),
        Some(Language::Go | Language::Java | Language::Other(_)) => {
            return format!("{name} {type_name}").trim_start().to_owned();
        }
        Some(Language::Cpp) => "alignas",
        Some(Language::C) | None => "_Alignas",
    };
    let aligned = alignment.map_or_else(String::new, |bytes| format!("{word}({bytes}) "));
    let bits = bits.map_or_else(String::new, |bits| format!(" : {bits}"));
    format!("{aligned}{}{bits};", c::declare(type_name, name))
}

impl Dialect {
    /// By what the language keeps things apart.
    pub(super) fn form(self) -> Form {
        match self.language {
            Some(Language::Rust) => Form::Wrapped,
            Some(Language::Go) => Form::Padded,
            Some(Language::Java | Language::Other(_)) => Form::Words,
            _ if self.kernel => Form::KernelAligned,
            Some(Language::Cpp) => Form::Aligned("alignas"),
            Some(Language::C) => Form::Aligned("_Alignas"),
            None => Form::Words,
        }
    }

    /// How a struct of the language can be laid out anew; `None` where its own compiler decides, or it is not known.
    pub(super) fn means(self) -> Option<Means> {
        match self.form() {
            Form::Aligned(_) | Form::KernelAligned => Some(Means::Alignment(self.line)),
            Form::Padded => Some(Means::Padding(self.line)),
            Form::Wrapped | Form::Words => None,
        }
    }

    /// Lines of code that declare a member which starts a line, with this many bytes of padding before it where the language
    /// pads. `owner` is the type that it is a member of. `None` where it cannot be written.
    pub(super) fn member(
        self,
        owner: Option<&str>,
        member: &MemberLayout,
        gap: u64,
    ) -> Option<Vec<String>> {
        let name = member.name.as_str();
        let type_name = member.type_name.as_deref()?;
        match self.form() {
            Form::Aligned(word) => {
                let declared = c::written(owner, type_name, name)?;
                Some(vec![format!("{word}({}) {declared};", self.line)])
            }
            Form::KernelAligned => {
                let declared = c::written(owner, type_name, name)?;
                Some(vec![format!("{declared} ____cacheline_aligned_in_smp;")])
            }
            Form::Wrapped => {
                let type_name = rust::written(owner?, type_name)?;
                Some(vec![format!("{}: Line<{type_name}>,", rust::name(name)?)])
            }
            Form::Padded => {
                let declared = go::member(owner?, type_name, name)?;
                Some(vec![go::padding(gap), declared])
            }
            Form::Words => None,
        }
    }

    /// What to do to the declarations of members, or variables, that start a line, where they cannot be written; `names` are
    /// listed in words. A sentence.
    pub(super) fn in_words(self, names: &str, gaps: &[u64]) -> String {
        let line = self.line;
        match self.form() {
            Form::Aligned(word) => {
                format!("Put `{word}({line})` in front of the declaration of {names}.")
            }
            Form::KernelAligned => {
                format!("Put `____cacheline_aligned_in_smp` behind the declaration of {names}.")
            }
            Form::Wrapped => format!("Wrap the type of {names} in it, and the value too."),
            Form::Padded => {
                let gap = gaps.iter().copied().max().unwrap_or(line);
                format!("Put a field `{}` in front of {names}.", go::padding(gap))
            }
            Form::Words => self.apart(),
        }
    }

    /// A declaration of a variable that starts a line, in lines of code; `None` where it cannot be written, or would lose its value.
    pub(super) fn variable(
        self,
        kind: ObjectKind,
        type_name: Option<&str>,
        size: Option<u64>,
        name: &str,
    ) -> Option<Vec<String>> {
        let type_name = type_name?;
        match self.form() {
            Form::Aligned(word) => {
                let declared = c::written(None, type_name, name)?;
                let of_thread = match (kind, self.language) {
                    (ObjectKind::Tls, Some(Language::Cpp)) => "thread_local ",
                    (ObjectKind::Tls, _) => "_Thread_local ",
                    _ => "",
                };
                Some(vec![format!(
                    "{of_thread}{word}({}) {declared};",
                    self.line
                )])
            }
            Form::KernelAligned => {
                let declared = c::written(None, type_name, name)?;
                Some(vec![format!("{declared} ____cacheline_aligned_in_smp;")])
            }
            Form::Padded => go::variable(type_name, name, size?, self.line),
            // A static of Rust needs its value, which is not known here.
            Form::Wrapped | Form::Words => None,
        }
    }

    /// A type of one value that fills whole lines, in lines of code, and how to reach the value; `size` and `alignment` are
    /// the value's. `None` where the type cannot be written.
    pub(super) fn element(
        self,
        type_name: Option<&str>,
        size: u64,
        alignment: u64,
    ) -> Option<(Vec<String>, &'static str)> {
        let line = self.line;
        let declared = |type_name| c::written(None, type_name, "value");
        match self.form() {
            Form::Wrapped => Some((vec![self.wrapper()], ".0")),
            Form::KernelAligned => {
                let value = declared(type_name?)?;
                let code = format!("struct slot {{ {value}; }} ____cacheline_aligned_in_smp;");
                Some((vec![code], ".value"))
            }
            Form::Aligned("alignas") => {
                let value = declared(type_name?)?;
                let code = format!("struct alignas({line}) slot {{ {value}; }};");
                Some((vec![code], ".value"))
            }
            Form::Aligned(word) => {
                let value = declared(type_name?)?;
                let code = format!("struct slot {{ {word}({line}) {value}; }};");
                Some((vec![code], ".value"))
            }
            Form::Padded => {
                let padding = relayout::padding_behind(size, alignment, line);
                let value = go::member("main.slot", type_name?, "value")?;
                let code = [
                    "type slot struct {".to_owned(),
                    format!("    {value}"),
                    format!("    {}", go::padding(padding)),
                    "}".to_owned(),
                ];
                Some((code.into(), ".value"))
            }
            Form::Words => None,
        }
    }

    /// Bytes from one element to the next when each is kept apart; `None` where that is not known.
    pub(super) fn stride(self, size: u64, alignment: u64) -> Option<u64> {
        match self.form() {
            Form::Words => None,
            Form::Padded => {
                let padding = relayout::padding_behind(size, alignment, self.line);
                Some(size.saturating_add(padding))
            }
            Form::Aligned(_) | Form::KernelAligned | Form::Wrapped => {
                Some(relayout::round_up(size, self.line))
            }
        }
    }

    /// How the objects of a type get whole lines, as a sentence; `size` and `alignment` are the type's, `first` is its first
    /// member.
    pub(super) fn own_lines(
        self,
        type_name: &str,
        size: u64,
        alignment: u64,
        first: Option<&MemberLayout>,
    ) -> String {
        let line = self.line;
        let plain = type_name.trim_start_matches("struct ");
        match self.form() {
            Form::KernelAligned => {
                format!(
                    "Put `____cacheline_aligned_in_smp` behind the closing brace of `{type_name}`."
                )
            }
            Form::Wrapped => format!("Put `#[repr(align({line}))]` on `{type_name}`."),
            Form::Aligned("alignas") => {
                format!(
                    "Put `alignas({line})` between `struct` or `class` and `{plain}` where it is defined."
                )
            }
            Form::Aligned(word) => {
                let member = first.and_then(|member| self.member(Some(type_name), member, 0));
                match member {
                    Some(code) => format!(
                        "Align the first member of `{type_name}`:\n    {}\n{}",
                        code.join("\n    "),
                        self.note()
                    ),
                    None => {
                        format!(
                            "Put `{word}({line})` in front of the first member of `{type_name}`."
                        )
                    }
                }
            }
            Form::Padded => {
                let padding = relayout::padding_behind(size, alignment, line);
                format!(
                    "End `{}` with a field `{}`.",
                    go::base(type_name),
                    go::padding(padding)
                )
            }
            Form::Words => self.apart(),
        }
    }

    /// As [`Dialect::own_lines`], of a type that a library declares.
    pub(super) fn wrapped(self, type_name: &str, size: u64, alignment: u64) -> String {
        match self.element(Some(type_name), size, alignment) {
            Some((code, access)) => format!(
                "`{type_name}` is declared by a library: have a type of your own around it\n    {}\nand use its `{access}`. {}",
                code.join("\n    "),
                self.note()
            ),
            None => self.apart(),
        }
    }

    /// Rust: the type that starts and fills lines.
    pub(super) fn wrapper(self) -> String {
        format!("#[repr(align({}))] struct Line<T>(T);", self.line)
    }

    /// How to keep things apart in a language that has no form here.
    pub(super) fn apart(self) -> String {
        let line = self.line;
        match (self.kernel, self.language) {
            (true, None) => "The kernel's word is `____cacheline_aligned_in_smp`.".to_owned(),
            (_, Some(Language::Java)) => java::apart(line),
            (_, Some(Language::Go)) => format!(
                "In Go, put a field `{}` between them: no variable of Go can be aligned.",
                go::padding(line)
            ),
            (_, Some(Language::Rust)) => {
                format!("That takes `#[repr(align({line}))]` on the type of each part.")
            }
            (_, Some(Language::Cpp)) => {
                format!("That takes `alignas({line})` on each variable or member.")
            }
            (_, Some(Language::C)) => {
                format!("That takes `_Alignas({line})` on each variable or member.")
            }
            (_, Some(Language::Other(name))) => format!(
                "{name} has words of its own for alignment or padding: what counts is that the parts end up on different \
                 {line}-byte lines."
            ),
            (false, None) => format!(
                "That takes `_Alignas({line})` (C), `alignas({line})` (C++), `#[repr(align({line}))]` (Rust) or a padding field \
                 (Go)."
            ),
        }
    }

    /// What else there is to know about the words used.
    pub(super) fn note(self) -> String {
        match self.form() {
            Form::Aligned("alignas") if self.line == 64 => {
                "C++17 also names the number: `std::hardware_destructive_interference_size`."
                    .to_owned()
            }
            Form::Aligned("_Alignas") => format!(
                "`alignas({})` is the same word after `#include <stdalign.h>` (C11), and built in since C23.",
                self.line
            ),
            Form::Padded => {
                "`_ cpu.CacheLinePad` of golang.org/x/sys/cpu is a padding field that is a whole line of the machine it is \
                 built for."
                    .to_owned()
            }
            Form::Aligned(_) | Form::KernelAligned | Form::Wrapped | Form::Words => String::new(),
        }
    }

    /// How to get memory that starts at a line, as after "it needs"; `None` where the language needs nothing, or has no way.
    pub(super) fn allocation(self) -> Option<String> {
        let line = self.line;
        Some(match self.form() {
            Form::KernelAligned => "a `kmem_cache_create` with SLAB_HWCACHE_ALIGN".to_owned(),
            Form::Wrapped => format!(
                "a type with `#[repr(align({line}))]`, which every allocation then respects"
            ),
            Form::Aligned("alignas") => format!(
                "a type declared `alignas({line})`, which `new` and the containers respect since C++17"
            ),
            Form::Aligned(_) => format!(
                "`aligned_alloc({line}, size)` instead of `malloc`, which aligns to 16 bytes only"
            ),
            Form::Words if self.language.is_none() && !self.kernel => format!(
                "`aligned_alloc({line}, size)` in C, `alignas({line})` on the type in C++, `#[repr(align({line}))]` in Rust"
            ),
            Form::Padded | Form::Words => return None,
        })
    }
}

#[cfg(test)]
mod tests;
