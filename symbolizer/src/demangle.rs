//! Symbol names as the source has them.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest name that is demangled, and longest text it may become. Real C++ template names reach tens of
/// kilobytes; back references let a short hostile name expand without bound.
const LONGEST: usize = 1 << 16;
/// Nesting allowed in a C++ name; at this depth the demangler stays below 1 MiB of stack.
const DEEPEST: u32 = 128;

/// Demangles a C++ (Itanium) or Rust (legacy or v0) name; any other name comes back as it is.
///
/// Rust names lose their hash (`demo::main`, not `demo::main::h0123456789abcdef`). C++ names read as
/// `c++filt` prints them, parameters included.
pub fn demangle(raw: &str) -> String {
    // A suffix such as `.cold`, `.constprop.0` or `.llvm.123` is the compiler's, not part of the mangling.
    try_demangle(raw).unwrap_or_else(|| raw.to_owned())
}

pub(crate) fn try_demangle(raw: &str) -> Option<String> {
    if raw.len() > LONGEST || !(raw.starts_with("_Z") || raw.starts_with("_R")) {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        let mut text = Bounded(String::new());
        return match std::fmt::write(&mut text, format_args!("{rust:#}")) {
            Ok(()) => Some(text.0),
            Err(std::fmt::Error) => None,
        };
    }
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = Symbol::new_with_options(raw, &parse).ok()?;
    let mut text = Bounded(String::new());
    let options = DemangleOptions::default().recursion_limit(DEEPEST);
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// Text that refuses to grow beyond [`LONGEST`].
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        if self.0.len() + part.len() > LONGEST {
            return Err(std::fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn cpp_and_rust_names_read_as_in_the_source() {
        assert_eq!(demangle("_ZN2ns5Stats3addEl"), "ns::Stats::add(long)");
        assert_eq!(demangle("_ZN2ns5totalE"), "ns::total");
        assert_eq!(demangle("_ZN4demo4main17h0123456789abcdefE"), "demo::main");
        assert_eq!(demangle("_RNvCs1234_4demo4main"), "demo::main");
        assert_eq!(
            demangle("_ZN2ns5Stats3addEl.cold"),
            "ns::Stats::add(long) [clone .cold]"
        );
    }

    #[test]
    fn plain_and_broken_names_stay_as_they_are() {
        for name in [
            "main",
            "_start",
            "_Z",
            "_ZN",
            "_R",
            "",
            "_ZSt99999999999999999999",
        ] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn back_references_that_double_the_text_at_each_step_are_given_up() {
        // S_ chains: each template argument repeats the one before twice.
        let mut name = String::from("_Z1fI1AIiiE");
        for step in 0..60 {
            name.push_str("1AI");
            let reference = if step == 0 {
                "S0_".to_owned()
            } else {
                format!("S{}_", base36(step))
            };
            name.push_str(&reference);
            name.push_str(&reference);
            name.push('E');
        }
        name.push_str("Evv");
        assert!(demangle(&name).len() <= super::LONGEST.max(name.len()));
    }

    fn base36(value: u32) -> char {
        char::from_digit(value % 36, 36)
            .unwrap()
            .to_ascii_uppercase()
    }
}
