//! What each language writes. That compilers take it is for the tests of the tool.

use super::*;

fn dialect(language: Option<Language>, kernel: bool, line: u64) -> Dialect {
    Dialect {
        language,
        kernel,
        line,
    }
}

fn member(type_name: &str) -> MemberLayout {
    MemberLayout {
        name: "x".to_owned(),
        size: 8,
        type_name: Some(type_name.to_owned()),
        ..MemberLayout::default()
    }
}

#[test]
fn each_language_has_its_own_word_for_alignment() {
    let say = |language, kernel, owner| {
        let code = dialect(language, kernel, 64).member(Some(owner), &member("u64"), 56);
        code.map(|code| code.join("\n"))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        say(Some(Language::C), false, "struct s"),
        some("_Alignas(64) u64 x;")
    );
    assert_eq!(
        say(Some(Language::Cpp), false, "s"),
        some("alignas(64) u64 x;")
    );
    assert_eq!(
        say(Some(Language::Rust), false, "demo::S"),
        some("x: Line<u64>,")
    );
    assert_eq!(
        say(Some(Language::Go), false, "main.s"),
        some("_ [56]byte\nx u64")
    );
    assert_eq!(
        say(Some(Language::C), true, "struct s"),
        some("u64 x ____cacheline_aligned_in_smp;")
    );
    for language in [None, Some(Language::Java), Some(Language::Other("Fortran"))] {
        assert_eq!(say(language, false, "s"), None);
    }
}

#[test]
fn types_that_wrap_around_the_name_do() {
    let c = dialect(Some(Language::C), false, 128);
    let say = |type_name| c.member(None, &member(type_name), 0).unwrap().join("");
    assert_eq!(say("int [4]"), "_Alignas(128) int x[4];");
    assert_eq!(say("void (*)(int)"), "_Alignas(128) void (*x)(int);");
    let (code, access) = c.element(Some("int [4]"), 16, 4).unwrap();
    assert_eq!(code, ["struct slot { _Alignas(128) int value[4]; };"]);
    assert_eq!(access, ".value");
}

#[test]
fn no_language_but_c_hears_of_c() {
    let languages = [
        Some(Language::Rust),
        Some(Language::Go),
        Some(Language::Java),
        Some(Language::Other("Fortran")),
    ];
    for language in languages {
        let d = dialect(language, false, 64);
        let texts = [
            d.apart(),
            d.note(),
            d.allocation().unwrap_or_default(),
            d.own_lines("main.stats", 16, 8, None),
            d.in_words("`a`", &[56]),
        ];
        for text in texts {
            for word in [
                "_Alignas",
                "alignas",
                "aligned_alloc",
                "malloc",
                "stdalign",
                "struct ",
            ] {
                assert!(!text.contains(word), "{language:?} {word}: {text}");
            }
        }
    }
}

#[test]
fn only_c_needs_to_be_told_of_the_header() {
    let note = |language| dialect(Some(language), false, 64).note();
    assert!(note(Language::C).contains("<stdalign.h>"));
    assert!(!note(Language::Cpp).contains("stdalign"));
    assert_eq!(dialect(Some(Language::C), true, 64).note(), "");
}

#[test]
fn a_variable_of_a_thread_stays_one() {
    let say = |language, kind| {
        let d = dialect(Some(language), false, 64);
        d.variable(kind, Some("long"), Some(8), "x")
            .map(|code| code.join(" "))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        say(Language::C, ObjectKind::Global),
        some("_Alignas(64) long x;")
    );
    assert_eq!(
        say(Language::C, ObjectKind::Tls),
        some("_Thread_local _Alignas(64) long x;")
    );
    assert_eq!(
        say(Language::Cpp, ObjectKind::Tls),
        some("thread_local alignas(64) long x;")
    );
    // Its value is not known.
    assert_eq!(say(Language::Rust, ObjectKind::Global), None);
}

#[test]
fn a_shown_member_is_what_the_language_would_write() {
    let c = |type_name, name| shown(Some(Language::C), type_name, name, None, None);
    assert_eq!(c("short [2][3]", "grid"), "short grid[2][3];");
    assert_eq!(c("union (anonymous)", ""), "union (anonymous);");
    let cpp = shown(
        Some(Language::Cpp),
        "std::map<int [2], void (*)()>",
        "m",
        None,
        Some(64),
    );
    assert_eq!(cpp, "alignas(64) std::map<int [2], void (*)()> m;");
    // Rust states the alignment of every member; none is written there.
    let rust = |name| shown(Some(Language::Rust), "[u64; 4]", name, None, Some(64));
    assert_eq!(rust("raw"), "raw: [u64; 4],");
    assert_eq!(rust(""), "[u64; 4],");
    assert_eq!(
        shown(None, "unsigned", "ready", Some(3), None),
        "unsigned ready : 3;"
    );
    assert_eq!(
        shown(Some(Language::Go), "[]uint8", "list", None, None),
        "list []uint8"
    );
}
