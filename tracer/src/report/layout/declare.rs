//! How a language declares a member of a type.

use crate::names::Language;

/// `long slots[8];`, `int (*call)(void);`, `hits: AtomicU64,`; `bits` of a bit-field, `alignment` where one is
/// stated. Without a name the type alone.
pub(super) fn declare(
    language: Option<Language>,
    type_name: &str,
    name: &str,
    bits: Option<u64>,
    alignment: Option<u64>,
) -> String {
    if language == Some(Language::Rust) {
        return match name {
            "" => format!("{type_name},"),
            name => format!("{name}: {type_name},"),
        };
    }
    let aligned = alignment.map_or_else(String::new, |bytes| match language {
        Some(Language::Cpp) => format!("alignas({bytes}) "),
        _ => format!("_Alignas({bytes}) "),
    });
    let bits = bits.map_or_else(String::new, |bits| format!(" : {bits}"));
    let declared = match place(type_name) {
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
    };
    format!("{aligned}{declared}{bits};")
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
    let stars = inside.len() - inside.trim_start_matches(['*', '&']).len();
    (stars > 0).then_some(at + 1 + stars)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_what_the_language_would_write() {
        let c = |type_name, name| declare(Some(Language::C), type_name, name, None, None);
        assert_eq!(c("unsigned long", "hits"), "unsigned long hits;");
        assert_eq!(c("short [2][3]", "grid"), "short grid[2][3];");
        assert_eq!(c("struct stats *", "next"), "struct stats *next;");
        assert_eq!(
            c("int (*)(struct stats *, int)", "call"),
            "int (*call)(struct stats *, int);"
        );
        assert_eq!(c("long (*[2])(void)", "calls"), "long (*calls[2])(void);");
        assert_eq!(c("char []", "data"), "char data[];");
        assert_eq!(c("union (anonymous)", ""), "union (anonymous);");
        let cpp = |type_name, name| declare(Some(Language::Cpp), type_name, name, None, Some(64));
        assert_eq!(
            cpp("std::map<int [2], void (*)()>", "m"),
            "alignas(64) std::map<int [2], void (*)()> m;"
        );
        let rust = |name| declare(Some(Language::Rust), "[u64; 4]", name, None, Some(8));
        assert_eq!(
            (rust("raw"), rust("")),
            ("raw: [u64; 4],".into(), "[u64; 4],".into())
        );
        assert_eq!(
            declare(None, "unsigned", "ready", Some(3), None),
            "unsigned ready : 3;"
        );
    }

    #[test]
    fn damaged_types_are_declared_somehow() {
        for type_name in ["", "[", "(", "(*", "<", ">", "<<[", "é[", "(*é"] {
            assert!(
                declare(None, type_name, "x", None, None).contains('x'),
                "{type_name}"
            );
        }
    }
}
