//! Shortens names so that the telling part stays: a symbol's last component, a path's file and line.
//!
//! Every function returns at most `width` columns, for any input, in time linear in its length
//! (times the nesting depth it is asked to look at, which is bounded).

use super::printable::{char_columns, columns};

/// What stands for the part that was cut.
const CUT: &str = "..";

/// A function or type: first parameter lists go, then template and generic arguments from the inside
/// out, then leading namespaces, then the middle.
pub fn symbol(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.to_owned();
    }
    let mut short = without_parameters(name);
    // Deep nesting is not looked into beyond this: what is deeper goes at once.
    for depth in (1..=4).rev() {
        if columns(&short) <= width {
            return short;
        }
        short = without_arguments_below(&short, depth);
    }
    // Only separators outside of parentheses: a lambda's parameters are not its namespaces.
    while columns(&short) > width {
        match short.find("::") {
            Some(at) if at + 2 < short.len() && !short[..at].contains('(') => {
                short.drain(..at + 2);
            }
            _ => break,
        }
    }
    middle(&short, width)
}

/// A path: leading directories go, one by one; a file name too long for itself is cut in the middle.
/// What follows the file name (`:line:column`) is part of it.
pub fn path(path: &str, width: usize) -> String {
    if columns(path) <= width {
        return path.to_owned();
    }
    for (at, _) in path.char_indices().filter(|&(_, c)| c == '/') {
        let tail = &path[at..];
        if tail.len() > 1 && columns(tail) + CUT.len() <= width {
            return format!("{CUT}{tail}");
        }
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    middle(file, width)
}

/// Any text: the end goes.
pub fn end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width <= CUT.len() {
        return CUT[..width].to_owned();
    }
    format!("{}{CUT}", head(text, width - CUT.len()))
}

/// Any text: the middle goes.
pub fn middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width <= CUT.len() + 2 {
        return end(text, width);
    }
    let room = width - CUT.len();
    // The end of a name tells more than its beginning.
    let back = tail(text, room - room / 3);
    format!("{}{CUT}{back}", head(text, room / 3))
}

fn head(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += char_columns(c);
        if used > width {
            return &text[..at];
        }
    }
    text
}

fn tail(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += char_columns(c);
        if used > width {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Cuts the parameter list at the end of a demangled C++ function: `f(int, char) const` to `f`. The
/// parentheses of `operator()` and `(anonymous namespace)` stay.
fn without_parameters(name: &str) -> String {
    let mut depth = 0usize;
    let mut last_list = None;
    for (at, c) in name.char_indices() {
        let operator = is_part_of_operator(name, at);
        match c {
            '(' => {
                if depth == 0 {
                    last_list = Some(at);
                }
                depth += 1;
            }
            '<' if !operator => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '>' if !operator && !name[..at].ends_with('-') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let Some(at) = last_list else {
        return name.to_owned();
    };
    let after = name[at..]
        .rfind(')')
        .map_or("", |close| &name[at + close + 1..]);
    let ends_here = matches!(
        after.trim(),
        "" | "const" | "const &" | "const&" | "&" | "&&" | "volatile"
    );
    if at == 0 || !ends_here || name[..at].ends_with("operator") {
        return name.to_owned();
    }
    name[..at].to_owned()
}

/// Whether the bracket at `at` is part of an operator's name (`operator<`, `operator<<`, `operator->`).
fn is_part_of_operator(name: &str, at: usize) -> bool {
    let before = name[..at].trim_end_matches(['<', '>', '-', '=']);
    before.ends_with("operator")
}

/// Replaces what stands in angle brackets at nesting `depth` and deeper by `..`: `a<b<c>>` with depth 2
/// is `a<b<..>>`, with depth 1 `a<..>`. A Rust path's leading `<T as U>` counts like any other.
fn without_arguments_below(name: &str, depth: usize) -> String {
    let mut out = String::with_capacity(name.len());
    let mut level = 0usize;
    for (at, c) in name.char_indices() {
        let operator = is_part_of_operator(name, at);
        match c {
            '<' if !operator => {
                level += 1;
                if level < depth {
                    out.push('<');
                } else if level == depth {
                    out.push('<');
                    out.push_str(CUT);
                }
            }
            '>' if !operator && !name[..at].ends_with('-') && level > 0 => {
                if level <= depth {
                    out.push('>');
                }
                level -= 1;
            }
            _ if level < depth => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_symbol_stays_whole() {
        assert_eq!(symbol("count(int)", 10), "count(int)");
    }

    #[test]
    fn parameters_go_first_then_inner_template_arguments() {
        let name = "std::vector<std::atomic<int>, std::allocator<std::atomic<int>>>::push_back(std::atomic<int>&&)";
        assert_eq!(columns(name), 94);
        assert_eq!(
            symbol(name, 80),
            "std::vector<std::atomic<int>, std::allocator<std::atomic<int>>>::push_back"
        );
        assert_eq!(
            symbol(name, 60),
            "std::vector<std::atomic<..>, std::allocator<..>>::push_back"
        );
        assert_eq!(symbol(name, 30), "std::vector<..>::push_back");
        assert_eq!(symbol(name, 12), "push_back");
        assert_eq!(symbol(name, 8), "pu..back");
    }

    #[test]
    fn lambdas_and_call_operators_keep_their_parentheses() {
        assert_eq!(
            symbol("run(int)::{lambda()#1}::operator()(int) const", 36),
            "run(int)::{lambda()#1}::operator()"
        );
        assert_eq!(
            symbol("(anonymous namespace)::work(long, long)", 30),
            "(anonymous namespace)::work"
        );
        assert_eq!(
            symbol("ns::operator<<(std::ostream&, box const&)", 20),
            "ns::operator<<"
        );
    }

    #[test]
    fn rust_paths_lose_their_generics_before_their_names() {
        assert_eq!(
            symbol(
                "<alloc::vec::Vec<core::sync::atomic::AtomicU64> as demo::Count>::bump",
                24
            ),
            "<..>::bump"
        );
    }

    #[test]
    fn a_path_keeps_its_file_and_line() {
        assert_eq!(path("src/a.c:3:1", 20), "src/a.c:3:1");
        assert_eq!(
            path("/home/u/project/src/net/worker.c:31:9", 24),
            "../src/net/worker.c:31:9"
        );
        assert_eq!(
            path("/home/u/project/src/net/worker.c:31:9", 20),
            "../net/worker.c:31:9"
        );
        assert_eq!(
            path("a_file_with_a_very_long_name_indeed.c:31:9", 20),
            "a_file..ndeed.c:31:9"
        );
    }

    proptest! {
        #[test]
        fn nothing_is_ever_wider_than_asked(name in "[a-z<>():*& ,漢/é]{0,300}", width in 0usize..120) {
            prop_assert!(columns(&symbol(&name, width)) <= width);
            prop_assert!(columns(&path(&name, width)) <= width);
            prop_assert!(columns(&middle(&name, width)) <= width);
            prop_assert!(columns(&end(&name, width)) <= width);
        }
    }
}
