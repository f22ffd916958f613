//! How each language says "starts on a cache line of its own".

use crate::names::{Language, MemberLayout};

/// A language's way to align things to `line` bytes.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Language, where known.
    pub language: Option<Language>,
    /// Kernel code has its own macros.
    pub kernel: bool,
    /// Bytes.
    pub line: u64,
}

/// What crossbeam_utils::CachePadded aligns to on x86-64 and aarch64 (its documentation: adjacent
/// lines are fetched in pairs on x86-64, and some aarch64 parts have 128-byte lines).
pub const CACHE_PADDED: u64 = 128;

impl Dialect {
    /// A declaration `type name;` that starts a line; without a type, or with one that does not stand
    /// before the name (arrays, function pointers), the name alone.
    pub fn declaration(self, type_name: Option<&str>, name: &str) -> String {
        let line = self.line;
        let simple = type_name.filter(|t| !t.contains(['[', '(']));
        match (self.kernel, self.language) {
            (_, Some(Language::Rust)) => match type_name {
                Some(t) => format!("{name}: Line<{t}>,"),
                None => format!("{name}: Line<..>,"),
            },
            (true, _) => match simple {
                Some(t) => format!("{t} {name} ____cacheline_aligned_in_smp;"),
                None => format!(".. {name} ____cacheline_aligned_in_smp;"),
            },
            (false, language) => {
                let keyword = if language == Some(Language::Cpp) {
                    "alignas"
                } else {
                    "_Alignas"
                };
                match simple {
                    Some(t) => format!("{keyword}({line}) {t} {name};"),
                    None => format!("{keyword}({line}) .. {name};"),
                }
            }
        }
    }

    /// A member's [`Dialect::declaration`].
    pub fn member(self, member: &MemberLayout) -> String {
        self.declaration(member.type_name.as_deref(), &member.name)
    }

    /// A struct of one value that fills a line, and how to reach the value.
    pub fn element(self, type_name: Option<&str>) -> (String, &'static str) {
        let line = self.line;
        match (self.kernel, self.language) {
            (_, Some(Language::Rust)) => (self.wrapper(), ".0"),
            (true, _) => {
                let t = type_name.unwrap_or("..");
                (
                    format!("struct slot {{ {t} value; }} ____cacheline_aligned_in_smp;"),
                    ".value",
                )
            }
            (false, Some(Language::Cpp)) => {
                let t = type_name.unwrap_or("..");
                (
                    format!("struct alignas({line}) slot {{ {t} value; }};"),
                    ".value",
                )
            }
            _ => {
                let t = type_name.unwrap_or("..");
                (
                    format!("struct slot {{ _Alignas({line}) {t} value; }};"),
                    ".value",
                )
            }
        }
    }

    /// Rust: the type that starts and fills lines.
    pub fn wrapper(self) -> String {
        format!("#[repr(align({}))] struct Line<T>(T);", self.line)
    }

    /// What else there is to know about the words used.
    pub fn note(self) -> String {
        match (self.kernel, self.language) {
            (true, _) | (false, Some(Language::Rust)) => String::new(),
            (false, Some(Language::Cpp)) => {
                if self.line == 64 {
                    "C++17 also names the number: `std::hardware_destructive_interference_size`."
                        .to_owned()
                } else {
                    String::new()
                }
            }
            (false, Some(Language::C)) => format!(
                "`alignas({})` is the same word after `#include <stdalign.h>` (C11), and built in since C23.",
                self.line
            ),
            (false, None) => format!(
                "That is C11; C++ says `alignas({0})`, Rust `#[repr(align({0}))]`.",
                self.line
            ),
        }
    }

    /// How to get memory that starts at a line.
    pub fn allocation(self) -> String {
        let line = self.line;
        match (self.kernel, self.language) {
            (true, _) => "a `kmem_cache_create` with SLAB_HWCACHE_ALIGN".to_owned(),
            (false, Some(Language::Rust)) => {
                format!(
                    "a type with `#[repr(align({line}))]`, which every allocation then respects"
                )
            }
            (false, Some(Language::Cpp)) => {
                format!(
                    "a type declared `alignas({line})`, which `new` and the containers respect since C++17"
                )
            }
            (false, Some(Language::C)) => {
                format!(
                    "`aligned_alloc({line}, size)` instead of `malloc`, which aligns to 16 bytes only"
                )
            }
            (false, None) => format!(
                "`aligned_alloc({line}, size)` in C, `alignas({line})` on the type in C++, `#[repr(align({line}))]` in Rust"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(language: Option<Language>, kernel: bool, line: u64) -> Dialect {
        Dialect {
            language,
            kernel,
            line,
        }
    }

    #[test]
    fn each_language_has_its_own_word_for_alignment() {
        let say = |language, kernel| dialect(language, kernel, 64).declaration(Some("long"), "x");
        assert_eq!(say(Some(Language::C), false), "_Alignas(64) long x;");
        assert_eq!(say(Some(Language::Cpp), false), "alignas(64) long x;");
        assert_eq!(say(Some(Language::Rust), false), "x: Line<long>,");
        assert_eq!(
            say(Some(Language::C), true),
            "long x ____cacheline_aligned_in_smp;"
        );
        assert_eq!(say(None, false), "_Alignas(64) long x;");
    }

    #[test]
    fn types_that_wrap_around_the_name_are_left_to_the_reader() {
        let c = dialect(Some(Language::C), false, 128);
        assert_eq!(c.declaration(Some("int[4]"), "x"), "_Alignas(128) .. x;");
        assert_eq!(
            c.declaration(Some("void (*)(int)"), "f"),
            "_Alignas(128) .. f;"
        );
        let rust = dialect(Some(Language::Rust), false, 128);
        assert_eq!(rust.declaration(Some("[u8; 4]"), "x"), "x: Line<[u8; 4]>,");
    }

    #[test]
    fn only_c_needs_to_be_told_of_the_header() {
        assert!(
            dialect(Some(Language::C), false, 64)
                .note()
                .contains("<stdalign.h>")
        );
        assert!(
            !dialect(Some(Language::Cpp), false, 64)
                .note()
                .contains("stdalign")
        );
        assert_eq!(dialect(Some(Language::C), true, 64).note(), "");
    }
}
