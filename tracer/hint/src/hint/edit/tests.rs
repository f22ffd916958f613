//! Columns are those that gcc 12 and clang 14 write for these lines, at -O0 and -O2.

use super::*;

/// The expression in a function with this statement on its third line; the column is where `^` stands in `marks`.
fn found_with(
    statement: &str,
    marks: &str,
    object: Option<&str>,
    field: Option<&str>,
) -> Result<String, Refused> {
    let text = format!("long f(struct node *n, long *p, int i)\n{{\n{statement}\n}}\n");
    let wanted = Wanted {
        line: 3,
        column: marks.find('^').map(|at| at as u32 + 1),
        object,
        field,
    };
    insertion(&text, wanted, &BTreeSet::new()).map(|insertion| insertion.expression)
}

fn found(statement: &str, marks: &str) -> Result<String, Refused> {
    found_with(statement, marks, None, None)
}

#[test]
fn each_place_that_a_compiler_gives_to_a_load_leads_to_its_expression() {
    for (statement, marks, expression) in [
        // gcc -O0, then -O2 and clang.
        ("n->count++;", " ^", "n->count"),
        ("n->count++;", "        ^", "n->count"),
        ("n->count += i;", "         ^", "n->count"),
        ("long c = n->count;", "     ^", "n->count"),
        ("long c = n->count;", "            ^", "n->count"),
        ("long c = n->next->count;", "          ^", "n->next"),
        ("long c = n->next->count;", "            ^", "n->next"),
        (
            "long c = n->next->count;",
            "                  ^",
            "n->next->count",
        ),
        ("n->a[i] = n->a[i] * 7;", "              ^", "n->a[i]"),
        ("n->a[i] = n->a[i] * 7;", "                  ^", "n->a[i]"),
        ("n->a[i] = n->a[i] * 7;", "          ^", "n->a[i]"),
        ("*p = *p * 9;", "     ^", "*p"),
        ("*p = *p * 9;", "        ^", "*p"),
        ("++g[i];", "^", "g[i]"),
        ("++g[i];", "  ^", "g[i]"),
        ("if (n->ptr[i] > 3) n->ptr[i] = 3;", "   ^", "n->ptr[i]"),
        ("return p[i + 1] * 5;", "       ^", "p[i+1]"),
        ("return n->at.x.count;", "       ^", "n->at.x.count"),
        (
            "long v = cells[i].value;",
            "              ^",
            "cells[i].value",
        ),
        ("r->cells[i + 1].value += 4;", "   ^", "r->cells[i+1].value"),
        (
            "r->cells[i + 1].value += 4;",
            "                ^",
            "r->cells[i+1].value",
        ),
        ("use(n->count, 3);", "       ^", "n->count"),
    ] {
        assert_eq!(
            found(statement, marks),
            Ok(expression.to_owned()),
            "{statement}"
        );
    }
}

#[test]
fn names_of_fields_and_variables_choose_where_the_column_does_not() {
    let sum = "x = n->a + n->b;";
    let at_plus = "         ^";
    assert!(matches!(found(sum, at_plus), Err(Refused::Ambiguous(_))));
    let of = |object, field| found_with(sum, at_plus, object, field);
    assert_eq!(of(None, Some(".b")), Ok("n->b".to_owned()));
    assert_eq!(of(None, Some(".inner.a")), Ok("n->a".to_owned()));
    assert_eq!(of(None, Some(".c")), Err(Refused::NoExpression));
    let global = found_with("g = g * 13;", "      ^", Some("g"), None);
    assert_eq!(global, Ok("g".to_owned()));
    assert_eq!(
        found_with("c = c * 13;", "      ^", Some("g"), None),
        Err(Refused::NoExpression)
    );
    // Without a name, it may be any variable in a register.
    assert_eq!(found("g = g * 13;", "      ^"), Err(Refused::NoExpression));
}

#[test]
fn the_type_of_a_declaration_is_no_expression() {
    let of = |object| found_with("word by = n->a[0] * 3;", "          ^", object, None);
    assert_eq!(of(None), Ok("n->a[0]".to_owned()));
    // Memory without a name has its type for an object.
    assert_eq!(of(Some("word")), Ok("n->a[0]".to_owned()));
}

#[test]
fn the_line_before_has_the_indentation_and_the_end_of_the_line() {
    let text = "void f(struct n *n) {\r\n\t n->count++;\r\n}\r\n";
    let wanted = Wanted {
        line: 2,
        column: Some(11),
        ..Wanted::default()
    };
    let made = insertion(text, wanted, &BTreeSet::new()).unwrap();
    assert_eq!(
        made.text,
        "\t __builtin_prefetch((const void *)&(n->count), 1, 3);\r\n"
    );
    assert_eq!((made.line, made.offset), (2, 23));
}

#[test]
fn what_does_more_than_name_memory_is_left() {
    for (statement, marks) in [
        ("x = next(n)->count;", "             ^"),
        ("x = a[i++];", "    ^"),
        ("x = a[next()];", "    ^"),
        ("x = *p++;", "    ^"),
        ("x = *(long *)p;", "    ^"),
        ("n->count = 4;", "   ^"),
        ("x = &n->count;", "        ^"),
        ("n->call(3);", "   ^"),
        ("x = __atomic_load_n(p, 5);", "    ^"),
        ("x = sizeof(n->count);", "              ^"),
    ] {
        assert_eq!(
            found(statement, marks),
            Err(Refused::NoExpression),
            "{statement}"
        );
    }
}

#[test]
fn a_statement_is_put_only_where_it_is_run_once_and_always_before() {
    let refused = |statement: &str, marks: &str| found(statement, marks).unwrap_err();
    let body = refused("if (i)\n  n->count++;\nx();", "");
    assert_eq!(
        body,
        Refused::NoExpression,
        "without a column, the first line is asked for"
    );
    for (text, line, why) in [
        ("if (i)\nn->count++;", 2, Refused::NotAlone),
        ("if (i) x();\nelse\nn->count++;", 3, Refused::Unfit),
        ("do\nn->count++;\nwhile (i);", 2, Refused::LoopHeader),
        ("while (n->count > 3) i++;", 1, Refused::LoopHeader),
        ("do { x(); }\nwhile (n->count > 3);", 2, Refused::LoopHeader),
        (
            "for (i = 0; i < n->count; i++) x();",
            1,
            Refused::LoopHeader,
        ),
        ("switch (i) {\ncase 1: n->count++;\n}", 2, Refused::Label),
        ("again: n->count++;", 1, Refused::Label),
        ("x(); n->count++;", 1, Refused::NotAlone),
        ("{ n->count++; }", 1, Refused::NotAlone),
        ("x =\n  n->count + 1;", 2, Refused::NotAlone),
        ("if (i) n->count++;", 1, Refused::Conditional),
        ("x = i && n->count;", 1, Refused::Conditional),
        ("x = i ? n->count : 0;", 1, Refused::Conditional),
        ("x = next(&n) + n->count;", 1, Refused::Ordered),
        ("x = i++ + n->count;", 1, Refused::Ordered),
        ("x = (n = m) + n->count;", 1, Refused::Ordered),
        (
            "struct node *m = n, *o = m->next;",
            1,
            Refused::DeclaredHere,
        ),
        ("struct node m = m.count;", 1, Refused::DeclaredHere),
        ("static long c = n->count;", 1, Refused::Unfit),
        ("MAX(n->count, 3);", 1, Refused::Macro("MAX".to_owned())),
        ("LIST->count++;", 1, Refused::Macro("LIST".to_owned())),
        (
            "check(n->next->count);",
            1,
            Refused::Argument("check".to_owned()),
        ),
        ("struct { int a; } s = n->count;", 1, Refused::Declaration),
    ] {
        let source = format!("void f(void) {{\n{text}\n}}\n");
        let shown = source.lines().nth(line).unwrap();
        let column = ["count", "next;"]
            .iter()
            .filter_map(|word| shown.rfind(word))
            .max();
        let wanted = Wanted {
            line: line as u32 + 1,
            column: column.map(|at| at as u32 + 1),
            ..Wanted::default()
        };
        let got = insertion(&source, wanted, &BTreeSet::new());
        assert_eq!(got, Err(why), "{text}");
    }
}

#[test]
fn lines_outside_of_functions_and_of_macros_hold_no_statement() {
    let at = |text: &str, line| {
        let wanted = Wanted {
            line,
            ..Wanted::default()
        };
        insertion(text, wanted, &BTreeSet::new()).unwrap_err()
    };
    assert_eq!(at("long x = a.b;\n", 1), Refused::NoFunction);
    assert_eq!(
        at("struct s {\nlong x = a.b;\n};\n", 2),
        Refused::NoFunction
    );
    assert_eq!(
        at("int f() { int a[] = {\nn->x,\n}; }\n", 2),
        Refused::NoFunction
    );
    assert_eq!(
        at("int f() { g((struct s){\nn->x\n}); }\n", 2),
        Refused::NoFunction
    );
    assert_eq!(at("#define BUMP(n) \\\n n->count++\n", 2), Refused::NoCode);
    assert_eq!(at("// n->count++;\n", 1), Refused::NoCode);
    assert_eq!(at("// n->count++;\n", 7), Refused::NoLine);
    assert_eq!(
        at("#define it n\nvoid f() {\nit->x++;\n}\n", 3),
        Refused::Macro("it".to_owned())
    );
}

#[test]
fn bit_fields_are_known_by_their_declaration() {
    let text =
        "struct s { unsigned a : 3, b : 4; long c; int d:2; };\nint f(int x) { return x ? x : 3; }";
    let names = bit_fields(text);
    assert_eq!(
        names.iter().map(String::as_str).collect::<Vec<_>>(),
        ["a", "b", "d"]
    );
    let wanted = Wanted {
        line: 2,
        ..Wanted::default()
    };
    let source = "void f(struct s *n) {\nn->d++;\n}\n";
    assert_eq!(
        insertion(source, wanted, &names),
        Err(Refused::BitField("d".to_owned()))
    );
    assert!(insertion(&source.replace('d', "c"), wanted, &names).is_ok());
}

#[test]
fn a_file_is_c_or_cpp_by_its_name() {
    assert!(is_c("a.c") && is_c("x/a.hpp") && is_c("a.C"));
    assert!(!is_c("a.rs") && !is_c("c") && !is_c("a.cs"));
}

#[test]
fn source_cut_anywhere_is_refused_or_edited_but_never_harms() {
    let text = "void f(struct n *n) {\n if (n->a[i] > 3 && x(n)) {\n n->b += *p; }\n \u{e4} }\n";
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        for line in 0..5 {
            for column in [None, Some(0), Some(3), Some(6), Some(u32::MAX)] {
                let wanted = Wanted {
                    line,
                    column,
                    ..Wanted::default()
                };
                if let Ok(made) = insertion(&text[..end], wanted, &BTreeSet::new()) {
                    assert!(text[..end].is_char_boundary(made.offset));
                }
            }
        }
    }
}

#[test]
fn a_place_is_in_a_loop_when_a_loop_of_its_function_repeats_it() {
    let is = |text: &str| in_loop(text, text.find("x = ").expect("it is there"));
    for looped in [
        "void f(void) { for (;;) { x = 1; } }",
        "void f(void) { while (y) { if (z) { x = 1; } } }",
        "void f(void) { do { x = 1; } while (y); }",
        "void f(void) { list_for_each(a, b) { x = 1; } }",
    ] {
        assert!(is(looped), "{looped}");
    }
    for once in [
        "void f(void) { x = 1; }",
        "void f(void) { for (;;) { y(); } x = 1; }",
        "void f(void) { if (y) { x = 1; } }",
        "void f(void) { while (y) ; { x = 1; } }",
        "void for_each(void) { x = 1; }",
    ] {
        assert!(!is(once), "{once}");
    }
}
