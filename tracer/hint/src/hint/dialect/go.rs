//! Declarations of Go. It has no alignment: padding fields keep things apart.

use super::c::is_whole;
use crate::hint::relayout::padding_behind;

/// A field that nobody can name, of this many bytes.
pub(super) fn padding(bytes: u64) -> String {
    format!("_ [{bytes}]byte")
}

/// A field of a struct; `None` where its type cannot be written.
pub(super) fn member(owner: &str, type_name: &str, name: &str) -> Option<String> {
    if owner.contains('[') || !is_name(name) {
        return None;
    }
    let type_name = written(package(owner), type_name)?;
    // An embedded field has the name of its type.
    let is_embedded = type_name.trim_start_matches('*').rsplit('.').next() == Some(name);
    Some(if is_embedded {
        type_name
    } else {
        format!("{name} {type_name}")
    })
}

/// A variable with padding behind it.
pub(super) fn variable(type_name: &str, name: &str, size: u64, line: u64) -> Option<Vec<String>> {
    let short = base(name);
    let type_name = written(package(name), type_name)?;
    let padding = padding_behind(size, size.clamp(1, 8).next_power_of_two(), line);
    is_name(short).then(|| {
        vec![
            format!("var {short} struct {{"),
            format!("    value {type_name}"),
            format!("    {}", self::padding(padding)),
            "}".to_owned(),
        ]
    })
}

fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts && name != "_" && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// `stats` of `main.stats` or `example.com/x/y.stats`.
pub(super) fn base(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split_once('.').map_or(last, |(_, base)| base)
}

/// The path of the package that a name begins with: `example.com/x/y`.
fn package(name: &str) -> &str {
    let slash = name.rfind('/').map_or(0, |slash| slash + 1);
    name[slash..]
        .find('.')
        .map_or("", |dot| &name[..slash + dot])
}

/// A type as a file of the package writes it: without the package's own path, and with the last part of others'. `None` where
/// it is one of the compiler's own.
fn written(package: &str, type_name: &str) -> Option<String> {
    const INTERNAL: [&str; 5] = ["go.shape", "noalg", "·", "{...}", "?"];
    if type_name.is_empty()
        || !is_whole(type_name)
        || INTERNAL.iter().any(|part| type_name.contains(part))
    {
        return None;
    }
    let mut out = String::new();
    let mut rest = type_name;
    while let Some(first) = rest.chars().next() {
        let is_part =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '%' | '~' | '-');
        // `<-chan` and `...` are no names.
        let end = if first.is_alphabetic() || first == '_' {
            rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        out.push_str(&qualified(package, word)?);
        rest = after;
    }
    Some(out)
}

/// `sync.Mutex` of `sync.Mutex`, `y.T` of `example.com/x/y.T`; `T` in that package itself.
fn qualified(package: &str, word: &str) -> Option<String> {
    let of = self::package(word);
    if of.is_empty() {
        return Some(word.to_owned());
    }
    let base = base(word);
    if of == package {
        return Some(base.to_owned());
    }
    let mut parts = of.rsplit('/');
    let mut last = parts.next()?;
    // The name of `example.com/y/v2` is y.
    let is_version = last.len() > 1
        && last
            .strip_prefix('v')
            .is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
    if is_version {
        last = parts.next().unwrap_or(last);
    }
    // A dot in a path is escaped, and what the package calls itself is another name then.
    (!last.contains(['%', '-'])).then(|| format!("{last}.{base}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_declared_as_in_their_package() {
        let main = |type_name, name| member("main.stats", type_name, name);
        for (type_name, expected) in [
            ("int64", "x int64"),
            ("[]uint8", "x []uint8"),
            ("map[string]*main.node", "x map[string]*node"),
            ("*example.com/x/y.T", "x *y.T"),
            ("example.com/y/v2.T", "x y.T"),
            ("sync/atomic.Int64", "x atomic.Int64"),
            ("func(int, ...string) error", "x func(int, ...string) error"),
            ("chan<- int", "x chan<- int"),
            ("<-chan main.node", "x <-chan node"),
            ("interface {}", "x interface {}"),
            (
                "struct { main.p int; Q main.node }",
                "x struct { p int; Q node }",
            ),
            ("[3]main.inner", "x [3]inner"),
            ("main.pair[int64]", "x pair[int64]"),
        ] {
            assert_eq!(
                main(type_name, "x").as_deref(),
                Some(expected),
                "{type_name}"
            );
        }
        assert_eq!(main("main.inner", "inner").as_deref(), Some("inner"));
        assert_eq!(main("*sync.Mutex", "Mutex").as_deref(), Some("*sync.Mutex"));
        for type_name in [
            "",
            "go.shape.int_0",
            "main.pair[..]",
            "gopkg.in/yaml%2ev3.Node",
        ] {
            assert_eq!(main(type_name, "x"), None, "{type_name}");
        }
        assert_eq!(member("main.pair[int64]", "int64", "x"), None);
        assert_eq!(main("int64", "_"), None);
    }

    #[test]
    fn variables_get_padding_behind_them() {
        let code = variable("int64", "main.hits", 8, 64).unwrap();
        assert_eq!(
            code,
            [
                "var hits struct {",
                "    value int64",
                "    _ [56]byte",
                "}"
            ]
        );
        let code = variable("example.com/x/y.T", "example.com/x/y.total", 24, 64).unwrap();
        assert_eq!(code[1..3], ["    value T", "    _ [56]byte"]);
    }
}
