//! Whether two contenders say the same.

/// One frame as printed: unknown is the empty text and line 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub function: String,
    pub file: String,
    pub line: u32,
}

/// The frames of one address, innermost first.
pub type Answer = Vec<Place>;

/// How two answers differ in the innermost frame's place, and in the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub compared: usize,
    /// Another function name in the innermost frame.
    pub function: usize,
    /// Another file or line there.
    pub place: usize,
    /// Another number of frames.
    pub depth: usize,
}

/// Compares answer by answer; the first few that differ are handed over as (index, ours, theirs).
pub fn compare(
    ours: &[Answer],
    theirs: &[Answer],
    mut example: impl FnMut(usize, &str),
) -> Differences {
    let mut differences = Differences::default();
    for (index, (a, b)) in ours.iter().zip(theirs).enumerate() {
        differences.compared += 1;
        let empty = Place::default();
        let (first, second) = (a.first().unwrap_or(&empty), b.first().unwrap_or(&empty));
        let function = function_name(&first.function) != function_name(&second.function);
        let place = base_name(&first.file) != base_name(&second.file) || first.line != second.line;
        let depth = a.len().max(1) != b.len().max(1);
        differences.function += usize::from(function);
        differences.place += usize::from(place);
        differences.depth += usize::from(depth);
        let kinds = [(function, "function"), (place, "place"), (depth, "depth")];
        for (_, kind) in kinds.iter().filter(|(differs, _)| *differs) {
            example(index, kind);
        }
    }
    differences
}

/// Some give the directory and some do not.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The last part without scopes, generic arguments, parameters and hashes: what all of them give in some form.
pub fn function_name(name: &str) -> &str {
    let name = name.split(" [clone").next().unwrap_or(name);
    // Rust's first mangling ends in a hash, which tools that take it for C++ print.
    let name = match name.rsplit_once("::h") {
        Some((name, hash))
            if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            name
        }
        _ => name,
    };
    let mut depth = 0usize;
    let mut start = 0;
    let mut end = name.len();
    let bytes = name.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'(' if depth == 0 && at > 0 && bytes[at - 1] != b':' => {
                end = at;
                break;
            }
            b'<' | b'(' | b'{' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && !name[at + 1..].starts_with(['<', ':']) => start = at + 1,
            _ => {}
        }
    }
    let part = &name[start.min(end)..end];
    let part = part.split('<').next().unwrap_or(part).trim_end_matches(':');
    part.strip_prefix("h")
        .filter(|hash| hash.len() == 16)
        .map_or(part, |_| "")
}

#[cfg(test)]
mod tests {
    use super::function_name;

    #[test]
    fn names_in_different_styles_have_the_same_last_part() {
        for name in [
            "core::ptr::drop_in_place<alloc::string::String>",
            "drop_in_place<alloc::string::String>",
            "drop_in_place",
            "core::ptr::drop_in_place::<alloc::string::String>",
        ] {
            assert_eq!(function_name(name), "drop_in_place", "{name}");
        }
        assert_eq!(function_name("ns::Stats::add(long)"), "add");
        assert_eq!(
            function_name("_$LT$T$u20$as$u20$a..B$GT$::next::h0123456789abcdef"),
            "next"
        );
        assert_eq!(function_name("<T as a::B>::next"), "next");
        assert_ne!(function_name("a::b"), function_name("a::c"));
    }
}
