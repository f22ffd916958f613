//! The source language, from DWARF or guessed from the mangling of a symbol.

/// Source language of a piece of code or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// C of any standard.
    C,
    /// C++ of any standard.
    Cpp,
    /// Rust.
    Rust,
    /// Another one, by its `DW_LANG` code (DWARF 5, section 7.12).
    Other(u16),
}

impl Language {
    /// From a `DW_AT_language` value.
    pub(crate) fn of_dwarf(code: gimli::DwLang) -> Language {
        match code {
            gimli::DW_LANG_C
            | gimli::DW_LANG_C89
            | gimli::DW_LANG_C99
            | gimli::DW_LANG_C11
            | gimli::DW_LANG_C17 => Language::C,
            gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20 => Language::Cpp,
            gimli::DW_LANG_Rust => Language::Rust,
            other => Language::Other(other.0),
        }
    }

    /// From the mangling scheme of a symbol; a plain name proves nothing.
    pub(crate) fn of_symbol(raw: &str) -> Option<Language> {
        if rustc_demangle::try_demangle(raw).is_ok() {
            // Legacy Rust mangling is a subset of the Itanium one; its `17h<hash>E` ending tells them apart,
            // and the demangler checks it.
            Some(Language::Rust)
        } else if raw.starts_with("_Z") {
            Some(Language::Cpp)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Language;

    #[test]
    fn the_mangling_tells_rust_from_cpp_and_says_nothing_about_plain_names() {
        assert_eq!(
            Language::of_symbol("_ZN4demo4main17h0123456789abcdefE"),
            Some(Language::Rust)
        );
        assert_eq!(
            Language::of_symbol("_RNvCs1234_4demo4main"),
            Some(Language::Rust)
        );
        assert_eq!(Language::of_symbol("_ZN4demo4mainEv"), Some(Language::Cpp));
        assert_eq!(Language::of_symbol("main"), None);
    }
}
