//! Declarations of C and C++.

/// `unsigned long hits`, `long slots[8]`, `int (*call)(void)`: a type as the symbolizer writes it, around a name. Always gives
/// something, for types are shown too that cannot be declared; see [`written`].
pub(super) fn declare(type_name: &str, name: &str) -> String {
    match place(type_name) {
        _ if name.is_empty() => type_name.to_owned(),
        Some(at) => {
            let (before, after) = type_name.split_at(at);
            let space = if before.ends_with(['*', '&', '(', ' ']) {
                ""
            } else {
                " "
            };
            format!("{before}{space}{name}{after}")
                .replace(&format!(" {name} ["), &format!(" {name}["))
        }
        None if type_name.ends_with(['*', '&']) => format!("{type_name}{name}"),
        None => format!("{type_name} {name}"),
    }
}

/// As [`declare`], for source; `None` where a compiler would not take it, or it would not say what the source does: types
/// without a name, shortened ones, members of a template's instance.
pub(super) fn written(owner: Option<&str>, type_name: &str, name: &str) -> Option<String> {
    /// What debug information writes for what the source does not name.
    const NAMELESS: [&str; 6] = [
        "anonymous",
        "?",
        "lambda",
        "pointer to member",
        "()::",
        "unnamed",
    ];
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with("_vptr")
        && name != "vptr";
    let is_instance = owner.is_some_and(|owner| owner.contains(['<', '>']));
    // gcc writes `complex float` for `_Complex float`, and clang only `complex`.
    let is_complex = type_name.starts_with("complex");
    let has_name = !is_complex && !NAMELESS.iter().any(|part| type_name.contains(part));
    (is_name && !is_instance && has_name && !type_name.is_empty() && is_whole(type_name))
        .then(|| declare(type_name, name))
}

/// Whether a name was not shortened for people: `std::map<..>`. Three dots are C's own.
pub(super) fn is_whole(type_name: &str) -> bool {
    !type_name.replace("...", "").contains("..")
}

/// Where in a C type the name goes, if not behind it: before the bounds of an array, behind the star of a pointer
/// to a function or array.
fn place(type_name: &str) -> Option<usize> {
    // Template arguments may hold anything.
    let mut depth = 0u32;
    let mut plain = type_name.char_indices().filter(|(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let (at, first) = plain.find(|(_, c)| matches!(c, '[' | '('))?;
    if first == '[' {
        return Some(type_name[..at].trim_end().len());
    }
    let inside = &type_name[at + 1..];
    let marks = inside.len() - inside.trim_start_matches(['*', '&']).len();
    if marks == 0 {
        return None;
    }
    // `(*const)(int)`: what qualifies the pointer comes before the name.
    let words =
        inside[marks..].trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | ' '));
    Some(type_name.len() - words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_what_the_language_would_write() {
        assert_eq!(declare("unsigned long", "hits"), "unsigned long hits");
        assert_eq!(declare("short [2][3]", "grid"), "short grid[2][3]");
        assert_eq!(declare("struct stats *", "next"), "struct stats *next");
        assert_eq!(
            declare("int (*)(struct stats *, int)", "call"),
            "int (*call)(struct stats *, int)"
        );
        assert_eq!(
            declare("long (*[2])(void)", "calls"),
            "long (*calls[2])(void)"
        );
        assert_eq!(declare("char []", "data"), "char data[]");
        assert_eq!(
            declare("int (* const)(int)", "call"),
            "int (* const call)(int)"
        );
        assert_eq!(declare("union (anonymous)", ""), "union (anonymous)");
        assert_eq!(
            declare("std::map<int [2], void (*)()>", "m"),
            "std::map<int [2], void (*)()> m"
        );
        assert_eq!(declare("int &", "r"), "int &r");
        assert_eq!(declare("int (&)[4]", "r"), "int (&r)[4]");
    }

    #[test]
    fn damaged_types_are_declared_somehow() {
        for type_name in ["", "[", "(", "(*", "<", ">", "<<[", "é[", "(*é", "(* é"] {
            assert!(declare(type_name, "x").contains('x'), "{type_name}");
        }
    }

    #[test]
    fn what_no_compiler_takes_is_not_written() {
        let member = |type_name| written(Some("struct s"), type_name, "x");
        assert_eq!(member("long").as_deref(), Some("long x"));
        assert_eq!(
            member("int (*)(const char *, ...)").as_deref(),
            Some("int (*x)(const char *, ...)")
        );
        for type_name in [
            "struct (anonymous)",
            "(anonymous union)",
            "std::map<..>",
            "?",
            "pointer to member",
            "main()::local",
            "complex float",
            "complex",
            "",
        ] {
            assert_eq!(member(type_name), None, "{type_name}");
        }
        for name in ["", "_vptr.Base", "a.b", "0", "vptr", "x y"] {
            assert_eq!(written(None, "long", name), None, "{name}");
        }
        // The source says `T`, wherever debug information says `long`.
        assert_eq!(written(Some("Queue<long>"), "long", "x"), None);
        assert!(written(Some("Queue"), "std::atomic<long>", "x").is_some());
    }
}
