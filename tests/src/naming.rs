//! When two spellings name the same function, type or field.

/// Whether two names mean one thing: argument lists, hashes and the compiler's suffixes do not count, and the
/// enclosing path may be left out.
pub fn same_name(a: &str, b: &str) -> bool {
    let (a, b) = (bare_name(a), bare_name(b));
    a == b || a.ends_with(&format!("::{b}")) || b.ends_with(&format!("::{a}"))
}

/// The path without argument list, hash and suffix.
fn bare_name(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(bare, _)| bare);
    let name = match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            path
        }
        _ => name,
    };
    let suffix = [".part.", ".constprop.", ".isra.", ".cold", ".llvm."]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min();
    &name[..suffix.unwrap_or(name.len())]
}

/// A C type's name without the word for what it is.
pub fn without_keyword(name: &str) -> &str {
    ["struct ", "union ", "class ", "enum "]
        .iter()
        .find_map(|keyword| name.strip_prefix(keyword))
        .unwrap_or(name)
}

/// Whether the path is the expected one or leads further into it. A path that does not begin with its variable
/// (`.hits`, `[1]`, or nothing for all of it) is within the object.
pub fn same_field(got: Option<&str>, want: &str, object: Option<&str>) -> bool {
    let variable = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    let object = object.map(variable);
    let got = match (got, object) {
        (None, Some(object)) => object,
        (Some(path), Some(object)) if path.starts_with(['.', '[']) => object + path,
        (Some(path), _) => variable(path),
        (None, None) => return false,
    };
    let rest = got.strip_prefix(&variable(want));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_what_compilers_add() {
        assert!(same_name("count_words(void*)", "count_words"));
        assert!(same_name(
            "two_atomics::send::h0123456789abcdef",
            "two_atomics::send"
        ));
        assert!(same_name("send", "two_atomics::send"));
        assert!(same_name("serve.constprop.0", "serve"));
        assert!(!same_name("resend", "send"));
        assert!(!same_name("serve_reads", "serve"));
    }

    #[test]
    fn a_field_is_named_from_its_variable_or_from_the_object() {
        let same = |got: &str, want: &str| same_field(Some(got), want, Some("counters"));
        assert!(same("counters.hits", "counters.hits"));
        assert!(same(".hits", "counters.hits"));
        assert!(same(".hits.v.value", "counters.hits"));
        assert!(same("[1]", "counters[1]"));
        assert!(same("cache::counters.hits", "counters.hits"));
        assert!(same_field(None, "counters", Some("counters")));
        assert!(!same(".hits_total", "counters.hits"));
        assert!(!same(".misses", "counters.hits"));
        assert!(!same("misses", "counters"));
        assert!(!same_field(None, "counters.hits", Some("counters")));
    }
}
