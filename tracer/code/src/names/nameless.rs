//! Types without a name, in words: by the variable that has the type.

/// How debug info of C, and how that of C++ and of the kernel, is put into words where a type has no name.
const KEYWORDS: [&str; 4] = ["struct", "union", "class", "enum"];

/// Whether a type, or the element of an array type, has no name.
pub(super) fn is_nameless(type_name: &str) -> bool {
    named_by(type_name, "").is_some()
}

/// A type in words: `struct rec`, and of one without a name `struct of counters [4]`.
pub fn type_words(type_name: &str, variable: Option<&str>) -> String {
    variable
        // `*table`, `recs[3]`, `pool.items`: what the declaration has.
        .map(|variable| variable.trim_start_matches(['*', '(']))
        .and_then(|variable| variable.split(['[', '.', '-', ')']).next())
        .filter(|root| !root.is_empty())
        .and_then(|root| named_by(type_name, root))
        .unwrap_or_else(|| type_name.to_owned())
}

fn named_by(type_name: &str, root: &str) -> Option<String> {
    KEYWORDS.iter().find_map(|keyword| {
        let forms = [
            format!("{keyword} (anonymous)"),
            format!("(anonymous {keyword})"),
        ];
        let form = forms
            .iter()
            .find(|form| type_name.contains(form.as_str()))?;
        Some(type_name.replace(form.as_str(), &format!("{keyword} of {root}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_without_a_name_is_that_of_its_variable() {
        for (type_name, variable, words) in [
            (
                "struct (anonymous) [4]",
                "counters",
                "struct of counters [4]",
            ),
            ("(anonymous struct)", "*pool", "struct of pool"),
            ("union (anonymous)", "recs[3]", "union of recs"),
            ("struct (anonymous)", "pool.items[]", "struct of pool"),
            ("struct rec", "recs[3]", "struct rec"),
            (
                "(anonymous namespace)::Rec",
                "recs",
                "(anonymous namespace)::Rec",
            ),
        ] {
            assert_eq!(type_words(type_name, Some(variable)), words);
        }
        assert_eq!(type_words("struct (anonymous)", None), "struct (anonymous)");
        assert!(is_nameless("struct (anonymous) [4]") && is_nameless("(anonymous class)"));
        assert!(!is_nameless("(anonymous namespace)::Rec") && !is_nameless("long"));
    }
}
