//! Shortens names so that the telling part stays: a symbol's last component, a path's file and line.
//!
//! Every function returns at most `width` columns, for any input, in time linear in its length
//! (times the nesting depth it is asked to look at, which is bounded).

use super::printable::{char_columns, columns};

/// What stands for the part that was cut.
const CUT: &str = "..";

/// Columns in which the beginning of an object's name still tells something.
const NAME: usize = 6;

/// A function or type: first parameter lists go, then template and generic arguments from the inside
/// out, then leading namespaces, then the middle.
pub(super) fn symbol(name: &str, width: usize) -> String {
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

/// A variable, an object or a field: of the variable's own name first what stands in angle brackets and its namespaces
/// go, then its middle; of `object.member.field` then the members between the first and the last. A list keeps its
/// beginning.
pub(super) fn name(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.to_owned();
    }
    if name.contains(", ") && !name.contains('<') {
        return end(name, width);
    }
    let (base, members) = name.split_at(members_at(name));
    let room = width.saturating_sub(columns(members));
    if room >= NAME {
        return format!("{}{members}", symbol(base, room));
    }
    let last = members.rfind(['.', '[']).map_or("", |at| &members[at..]);
    let last = last.trim_start_matches('.');
    let room = width.saturating_sub(columns(last) + CUT.len());
    if !last.is_empty() && last.len() + 1 < members.len() && room >= NAME {
        let bare = without_arguments_below(base, 1);
        let own = bare.rsplit("::").next().unwrap_or(&bare);
        return format!("{}{CUT}{last}", head(own, room));
    }
    middle(name, width)
}

/// Where the members of an object begin: at the first `.` or `[` outside of brackets and of a cut.
fn members_at(name: &str) -> usize {
    let mut depth = 0usize;
    let mut previous = ' ';
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '{' => depth += 1,
            '>' | ')' | '}' => depth = depth.saturating_sub(1),
            '.' | '[' if depth == 0 && at > 0 && previous != '.' => return at,
            _ => {}
        }
        previous = c;
    }
    name.len()
}

/// Several texts of one column: what differs is not equal when it is short. Where shortening would make two of them
/// equal, they keep the part in which they differ, or else get numbers.
pub(super) fn apart(
    texts: &[&str],
    width: usize,
    shorten: fn(&str, usize) -> String,
) -> Vec<String> {
    let mut short: Vec<String> = texts.iter().map(|text| shorten(text, width)).collect();
    for n in 0..texts.len() {
        let alike: Vec<usize> = (n..texts.len()).filter(|&m| short[m] == short[n]).collect();
        if alike.iter().all(|&m| texts[m] == texts[n]) {
            continue;
        }
        let same = alike.iter().map(|&m| common(texts[n], texts[m])).min();
        let same = same.unwrap_or(0);
        let mut known: Vec<(&str, String)> = Vec::new();
        for m in alike {
            let earlier = known.iter().find(|(text, _)| *text == texts[m]);
            short[m] = if let Some((_, cut)) = earlier {
                cut.clone()
            } else {
                let mut cut = from(texts[m], same, width);
                if known.iter().any(|(_, other)| *other == cut) {
                    let number = format!("#{}", known.len() + 1);
                    let room = width.saturating_sub(number.len());
                    cut = format!("{}{number}", end(texts[m], room));
                }
                known.push((texts[m], cut.clone()));
                cut
            };
        }
    }
    short
}

/// Bytes that two texts begin with alike.
fn common(one: &str, other: &str) -> usize {
    let pairs = one.char_indices().zip(other.chars());
    let differs = pairs.into_iter().find(|((_, a), b)| a != b);
    differs.map_or(one.len().min(other.len()), |((at, _), _)| at)
}

/// The text from a little before byte `at`, which is where it gets telling.
fn from(text: &str, at: usize, width: usize) -> String {
    let room = width.saturating_sub(CUT.len());
    let before = tail(&text[..at], room / 3);
    if before.len() == at {
        return end(text, width);
    }
    end(&format!("{CUT}{before}{}", &text[at..]), width)
}

/// A path: leading directories go, one by one; a file name too long for itself is cut in the middle.
/// What follows the file name (`:line:column`) is part of it.
pub(super) fn path(path: &str, width: usize) -> String {
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
pub(super) fn end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    if width <= CUT.len() {
        return CUT[..width].to_owned();
    }
    format!("{}{CUT}", head(text, width - CUT.len()))
}

/// Any text: the middle goes.
pub(super) fn middle(text: &str, width: usize) -> String {
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
    fn an_object_keeps_its_last_member_and_both_ends_of_its_name() {
        assert_eq!(name("queue.head", 10), "queue.head");
        let queue = "fastflow::MPMC_Ptr_Queue<std::atomic<long>, 64>::instance.buffer[3].sequence";
        let short = |width| name(queue, width);
        assert_eq!(
            short(60),
            "fastflow::MPMC_Ptr_Queue<..>::instance.buffer[3].sequence"
        );
        assert_eq!(short(40), "instance.buffer[3].sequence");
        assert_eq!(short(24), "instance..sequence");
        assert_eq!(short(16), "instan..sequence");
        assert_eq!(
            name("a_global_of_a_very_long_name.x", 16),
            "a_gl..ong_name.x"
        );
        assert_eq!(
            name("ring.slot, .mask, .head and 1 more", 20),
            "ring.slot, .mask, .."
        );
    }

    #[test]
    fn names_that_differ_still_differ_when_they_are_short() {
        let names = [
            "table_of_users.hits",
            "table_of_goods.hits",
            "table_of_users.hits",
        ];
        let cut = |text: &str, width: usize| end(text, width);
        assert_eq!(
            apart(&names, 12, cut),
            ["table_of_u..", "table_of_g..", "table_of_u.."]
        );
        assert_eq!(
            apart(&names, 10, cut),
            ["..f_user..", "..f_good..", "..f_user.."]
        );
        let names = [
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
        ];
        assert_eq!(apart(&names, 8, cut), ["..aab", "..aac"]);
        assert_eq!(apart(&["same", "same"], 3, cut), ["s..", "s.."]);
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
        fn different_names_of_one_column_stay_different(
            names in proptest::collection::vec("[a-c.]{1,40}", 1..12),
            width in 8usize..30,
        ) {
            let texts: Vec<&str> = names.iter().map(String::as_str).collect();
            let short = apart(&texts, width, name);
            for (one, short_one) in texts.iter().zip(&short) {
                prop_assert!(columns(short_one) <= width);
                for (other, short_other) in texts.iter().zip(&short) {
                    prop_assert_eq!(one == other, short_one == short_other, "{} {}", one, other);
                }
            }
        }

        #[test]
        fn nothing_is_ever_wider_than_asked(name in "[a-z<>():*& ,漢/é]{0,300}", width in 0usize..120) {
            prop_assert!(columns(&symbol(&name, width)) <= width);
            prop_assert!(columns(&path(&name, width)) <= width);
            prop_assert!(columns(&middle(&name, width)) <= width);
            prop_assert!(columns(&super::name(&name, width)) <= width);
            prop_assert!(columns(&end(&name, width)) <= width);
        }
    }
}
