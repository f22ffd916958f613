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
    /// Go.
    Go,
    /// Java, compiled ahead of time.
    Java,
    /// Another one, by its usual name.
    Other(&'static str),
    /// None of a program: an assembler wrote it, whatever the data's language is.
    Assembly,
}

impl Language {
    /// From a `DW_AT_language` value: DWARF 5, table 7.17, and the codes that its committee has assigned since
    /// (dwarfstd.org/languages.html). `None` for codes that are no one's.
    pub(crate) fn of_dwarf(code: gimli::DwLang) -> Option<Language> {
        Some(match code.0 {
            // C89, C, C99, Objective-C, C11, C17, C23.
            0x01 | 0x02 | 0x0c | 0x10 | 0x1d | 0x2c | 0x3e => Language::C,
            // C++, Objective-C++, C++03, C++11, C++14, C++17, C++20, HIP, SYCL, C++23.
            0x04 | 0x11 | 0x19 | 0x1a | 0x21 | 0x2a | 0x2b | 0x30 | 0x39 | 0x3a => Language::Cpp,
            0x1c => Language::Rust,
            0x16 => Language::Go,
            0x0b => Language::Java,
            0x31 | 0x8001 | 0x9001 | 0x9101 => Language::Assembly,
            0x03 | 0x0d | 0x2e | 0x2f => Language::Other("Ada"),
            0x05 | 0x06 => Language::Other("COBOL"),
            0x07 | 0x08 | 0x0e | 0x22 | 0x23 | 0x2d | 0x3f => Language::Other("Fortran"),
            0x09 | 0xb000 => Language::Other("Pascal"),
            0x0a => Language::Other("Modula-2"),
            0x0f => Language::Other("PL/I"),
            0x12 => Language::Other("UPC"),
            0x13 => Language::Other("D"),
            0x14 => Language::Other("Python"),
            0x15 | 0x37 | 0x38 => Language::Other("OpenCL"),
            0x17 => Language::Other("Modula-3"),
            0x18 => Language::Other("Haskell"),
            0x1b => Language::Other("OCaml"),
            0x1e => Language::Other("Swift"),
            0x1f => Language::Other("Julia"),
            0x20 => Language::Other("Dylan"),
            0x24 | 0x8e57 => Language::Other("RenderScript"),
            0x25 => Language::Other("BLISS"),
            0x26 => Language::Other("Kotlin"),
            0x27 => Language::Other("Zig"),
            0x28 => Language::Other("Crystal"),
            0x32 => Language::Other("C#"),
            0x33 => Language::Other("Mojo"),
            0x34 | 0x35 => Language::Other("GLSL"),
            0x36 => Language::Other("HLSL"),
            0x3b => Language::Other("Odin"),
            0x3d => Language::Other("Metal"),
            0x40 => Language::Other("Ruby"),
            0x41 => Language::Other("Move"),
            0x42 => Language::Other("Hylo"),
            _ => return None,
        })
    }

    /// From a `DW_AT_language_name` value, with which DWARF 6 parts the name from the version.
    pub(crate) fn of_name(code: u64) -> Option<Language> {
        Some(match code {
            0x03 | 0x11 => Language::C,
            0x04 | 0x12 | 0x25 => Language::Cpp,
            0x19 => Language::Rust,
            0x0a => Language::Go,
            0x0c => Language::Java,
            0x1d => Language::Assembly,
            0x01 => Language::Other("Ada"),
            0x02 => Language::Other("BLISS"),
            0x05 => Language::Other("COBOL"),
            0x06 => Language::Other("Crystal"),
            0x07 => Language::Other("D"),
            0x08 => Language::Other("Dylan"),
            0x09 => Language::Other("Fortran"),
            0x0b => Language::Other("Haskell"),
            0x0d => Language::Other("Julia"),
            0x0e => Language::Other("Kotlin"),
            0x0f => Language::Other("Modula-2"),
            0x10 => Language::Other("Modula-3"),
            0x13 => Language::Other("OCaml"),
            0x14 | 0x23 | 0x24 => Language::Other("OpenCL"),
            0x15 => Language::Other("Pascal"),
            0x16 => Language::Other("PL/I"),
            0x17 => Language::Other("Python"),
            0x18 => Language::Other("RenderScript"),
            0x1a => Language::Other("Swift"),
            0x1b => Language::Other("UPC"),
            0x1c => Language::Other("Zig"),
            0x1e => Language::Other("C#"),
            0x1f => Language::Other("Mojo"),
            0x20 | 0x21 => Language::Other("GLSL"),
            0x22 => Language::Other("HLSL"),
            0x26 => Language::Other("Ruby"),
            0x27 => Language::Other("Move"),
            0x28 => Language::Other("Hylo"),
            0x2c => Language::Other("Metal"),
            _ => return None,
        })
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

    #[test]
    fn the_codes_of_dwarf_are_those_of_its_names() {
        // What gimli knows by name must be the same language here.
        for code in 0..=0xffff {
            let Some(name) = gimli::DwLang(code).static_string() else {
                continue;
            };
            let ours = Language::of_dwarf(gimli::DwLang(code));
            let is_bound = name.ends_with("_user");
            assert_eq!(ours.is_none(), is_bound, "{name}");
            let is_cpp = name.contains("plus_plus");
            assert_eq!(ours == Some(Language::Cpp), is_cpp, "{name}");
            let is_assembler = name.contains("Assembler");
            assert_eq!(ours == Some(Language::Assembly), is_assembler, "{name}");
            if let Some(Language::Other(language)) = ours {
                let letters: String = language.chars().filter(char::is_ascii_alphabetic).collect();
                let known = name.to_lowercase().contains(&letters.to_lowercase());
                assert!(
                    known || name == "DW_LANG_BORLAND_Delphi",
                    "{name} is {language}"
                );
            }
        }
        assert_eq!(
            Language::of_dwarf(gimli::DW_LANG_Go),
            Language::of_name(0x0a)
        );
        assert_eq!(
            Language::of_dwarf(gimli::DW_LANG_Zig),
            Language::of_name(0x1c)
        );
    }
}
