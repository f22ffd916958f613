//! Source languages, as far as advice differs by them.

/// Language of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Java, and what else runs in a Java virtual machine.
    Java,
    /// Another one, by its usual name.
    Other(&'static str),
}

impl Language {
    /// Of a source file, by how its name ends; `None` where that says nothing.
    pub fn of_file(path: &str) -> Option<Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension {
            "c" | "h" => Language::C,
            "cc" | "cpp" | "cxx" | "c++" | "C" | "H" | "hh" | "hpp" | "hxx" | "inl" | "ipp"
            | "tcc" | "cu" => Language::Cpp,
            "rs" => Language::Rust,
            "go" => Language::Go,
            "java" | "kt" | "scala" | "groovy" | "clj" => Language::Java,
            "f" | "for" | "f90" | "f95" | "f03" | "f08" | "F" | "F90" => Language::Other("Fortran"),
            "adb" | "ads" => Language::Other("Ada"),
            "d" => Language::Other("D"),
            "swift" => Language::Other("Swift"),
            "zig" => Language::Other("Zig"),
            "nim" => Language::Other("Nim"),
            "jl" => Language::Other("Julia"),
            "ml" => Language::Other("OCaml"),
            "hs" => Language::Other("Haskell"),
            "pas" | "pp" => Language::Other("Pascal"),
            "py" | "pyx" => Language::Other("Python"),
            "js" | "ts" => Language::Other("JavaScript"),
            "cs" => Language::Other("C#"),
            _ => return None,
        })
    }
}

/// The language of a unit of debug information, if it has data of its own.
pub(super) fn language(language: symbolizer::Language) -> Option<Language> {
    match language {
        symbolizer::Language::C => Some(Language::C),
        symbolizer::Language::Cpp => Some(Language::Cpp),
        symbolizer::Language::Rust => Some(Language::Rust),
        symbolizer::Language::Go => Some(Language::Go),
        symbolizer::Language::Java => Some(Language::Java),
        symbolizer::Language::Other(name) => Some(Language::Other(name)),
        // What assembly accesses is declared in some other language.
        symbolizer::Language::Assembly => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_language_that_its_name_ends_in() {
        assert_eq!(Language::of_file("/src/worker.c"), Some(Language::C));
        assert_eq!(Language::of_file("worker.hpp"), Some(Language::Cpp));
        assert_eq!(Language::of_file("/go/src/x.go"), Some(Language::Go));
        assert_eq!(Language::of_file("Main.kt"), Some(Language::Java));
        for none in ["/a.c/worker", "worker", "", "x.S", "."] {
            assert_eq!(Language::of_file(none), None, "{none}");
        }
    }
}
