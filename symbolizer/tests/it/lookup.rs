//! Names of variables and of their parts to addresses: the way back from what `data` tests, and what is said where
//! there is no such way.

use cohtrace_skips::skipped;
use symbolizer::{FieldKind, Module, NamedVariable};

use crate::toolchain::{Built, build, build_all, build_parts};

/// Every byte of the objects that has a member of its own is found again by that member's path.
fn check_round_trip(label: &str, built: &Built, names: &[&str]) {
    let module = built.module();
    let mut found = 0;
    for name in names {
        let (address, size) = built.symbol(name);
        let object = module.object(address).unwrap();
        let ty = object.ty.unwrap();
        for offset in 0..size {
            let Ok(field) = module.field(ty, offset, 1) else {
                continue;
            };
            // A union's members are told apart by more than one byte.
            if field.kind != FieldKind::Member || field.path.contains(" or ") {
                continue;
            }
            let path = format!("{}{}", object.name, field.path);
            let variable = module
                .variable(&path)
                .unwrap_or_else(|error| panic!("{label}: {path}: {error}"));
            let expected = (address + field.member_offset, field.member_size);
            let whole = field.path.is_empty() || field.ty.is_none();
            assert_eq!(variable.address, expected.0, "{label}: {path}");
            assert!(
                whole || variable.size == expected.1,
                "{label}: {path}: {variable:?}"
            );
            if field.type_name.is_some() {
                assert_eq!(variable.type_name, field.type_name, "{label}: {path}");
            }
            assert_eq!(variable.name, path, "{label}");
            found += 1;
        }
    }
    assert!(
        found > 10 * names.len(),
        "{label}: {found} bytes were found again"
    );
}

#[test]
fn every_member_of_a_c_object_is_found_by_the_path_that_names_it() {
    let names = [
        "global_stats",
        "everything",
        "array",
        "matrix",
        "packed_pair",
        "table",
        "aligned",
        "point",
    ];
    for more in [&[][..], &["-no-pie"], &["-fdebug-types-section"]] {
        for (label, built) in build_all(&["cc", "clang"], "data.c", more) {
            check_round_trip(&label, &built, &names);
        }
    }
}

#[test]
fn every_member_of_a_cpp_object_is_found_through_bases_and_wrappers() {
    let names = ["_ZN2ns5statsE", "_ZN2ns5slotsE", "derived"];
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &[]) {
        check_round_trip(&label, &built, &names);
    }
}

#[test]
fn every_member_of_a_rust_static_is_found_through_cells_tuples_and_enums() {
    for mangling in ["legacy", "v0"] {
        let mangling = format!("-Csymbol-mangling-version={mangling}");
        let flags = ["-g", "--edition=2024", "--crate-name=demo", &mangling];
        let unstable = mangling.ends_with("legacy");
        let flags = if unstable { &flags[..3] } else { &flags[..] };
        let Some(built) = build("rustc", "data.rs", flags) else {
            return;
        };
        let names = [
            "8COUNTERS",
            "5SLOTS",
            "6SHARED",
            "6PADDED",
            "3RAW",
            "5STATE",
        ];
        check_round_trip(&mangling, &built, &names);
    }
}

fn found(module: &Module, text: &str) -> NamedVariable {
    module
        .variable(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(module: &Module, text: &str) -> String {
    match module.variable(text) {
        Ok(variable) => panic!("{text} is {variable:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn scopes_may_be_left_out_and_wrong_ones_find_nothing() {
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &[]) {
        let module = built.module();
        let stats = built.symbol("_ZN2ns5statsE").0;
        let at = |text| found(&module, text).address;
        for text in [
            "ns::stats",
            "stats",
            "_ZN2ns5statsE",
            " data.cpp:ns::stats ",
        ] {
            assert_eq!(at(text), stats, "{label}: {text}");
        }
        let calls = built.symbol("_ZZN2ns5Stats3addElE5calls").0;
        for text in ["calls", "Stats::add::calls", "ns::Stats::add::calls"] {
            assert_eq!(at(text), calls, "{label}: {text}");
        }
        for text in [
            "other::stats",
            "ns::ns::stats",
            "tats",
            "stats2",
            "other.cpp:stats",
        ] {
            let why = refused(&module, text);
            assert!(why.contains("is called `"), "{label}: {text}: {why}");
        }
    }
}

#[test]
fn an_unnamed_namespace_need_not_be_said() {
    for compiler in ["c++", "clang++"] {
        let Some(built) = build(compiler, "data.cpp", &["-g", "-O0"]) else {
            continue;
        };
        let module = built.module();
        let hidden = built.symbol("hidden").0;
        let whole = "ns::(anonymous namespace)::hidden";
        for text in ["hidden", "ns::hidden", whole] {
            let variable = found(&module, text);
            assert_eq!((variable.address, variable.name.as_str()), (hidden, whole));
        }
    }
}

#[test]
fn members_of_anonymous_structures_and_of_unions_have_their_places() {
    for (label, built) in build_all(&["cc", "clang"], "data.c", &[]) {
        let module = built.module();
        let everything = built.symbol("everything").0;
        let at = |text: &str| {
            let variable = found(&module, text);
            (variable.address - everything, variable.size)
        };
        assert_eq!(at("everything"), (0, 104), "{label}");
        assert_eq!(at("everything.inner"), (8, 32));
        assert_eq!(at("everything.anonymous_a"), (40, 4));
        assert_eq!(at("everything.anonymous_c"), (44, 4));
        assert_eq!(at("everything.word.whole"), (48, 8));
        assert_eq!(at("everything.word.half"), (48, 8));
        assert_eq!(at("everything.word.half[1]"), (52, 4));
        assert_eq!(at("everything.grid[1]"), (82, 6));
        assert_eq!(at("everything.grid[1][2]"), (86, 2));
        // Bit-fields share bytes: those that are touched.
        assert_eq!(at("everything.ready"), (56, 1));
        assert_eq!(at("everything.level"), (56, 2));
        let row = found(&module, "matrix[2]").type_name;
        assert_eq!(row.as_deref(), Some("long [5]"));
        // A flexible array goes on to the end that the symbol gives the object.
        let table = built.symbol("table").0;
        let slots = found(&module, "table.slots");
        assert_eq!((slots.address - table, slots.size), (8, 24), "{label}");
        assert_eq!(found(&module, "table.slots[2]").address - table, 24);
        let why = refused(&module, "table.slots[3]");
        assert_eq!(
            why, "`table.slots` has 3 elements, so there is no [3]",
            "{label}"
        );
    }
}

#[test]
fn what_the_type_does_not_have_is_answered_with_what_it_has() {
    for (label, built) in build_all(&["cc", "clang"], "data.c", &[]) {
        let module = built.module();
        let check = |text: &str, expected: &str| {
            assert_eq!(refused(&module, text), expected, "{label}");
        };
        check(
            "global_stats.hit",
            "`global_stats` (struct stats) has no field `hit`; it has: hits, misses, state, total",
        );
        check(
            "global_stats.hits.low",
            "`global_stats.hits` (long) has no field `low`",
        );
        check(
            "everything.next.hits",
            "`everything.next` (struct stats *) has no field `hits`; what a pointer points to is no part of the \
             variable: give its address",
        );
        check("array[4]", "`array` has 4 elements, so there is no [4]");
        check(
            "matrix[1][5]",
            "`matrix[1]` has 5 elements, so there is no [5]",
        );
        check(
            "matrix[1].x",
            "`matrix[1]` (long [5]) has no field `x`; it has: [0] to [4]",
        );
        check(
            "array.hits",
            "`array` (struct stats [4]) has no field `hits`; it has: [0] to [3]",
        );
        check("point[0]", "`point` (point_t) is no array; it has: x, y");
        check("point.x[0]", "`point.x` (int) is no array");
        check(
            "thread_counter",
            "`thread_counter` is thread-local: each thread has its own, so that no address is the variable's",
        );
        check("main", "no global or static variable is called `main`");
        let why = refused(&module, "everything.nothing");
        assert!(
            why.contains("inner, anonymous_a, anonymous_b, anonymous_c, word"),
            "{why}"
        );
    }
}

#[test]
fn a_member_of_a_virtual_base_has_no_fixed_place() {
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &[]) {
        let module = built.module();
        assert_eq!(found(&module, "anywhere.mine").size, 8, "{label}");
        let why = refused(&module, "anywhere.base_count");
        assert!(why.contains("virtual base"), "{label}: {why}");
    }
}

fn names(flags: &[&str]) -> Built {
    build_parts("cc", &[("names_a.c", flags), ("names_b.c", flags)]).unwrap()
}

#[test]
fn two_statics_of_one_name_are_told_apart_by_file_or_function() {
    for flags in [&["-g", "-O0"], &["-g", "-O2"]] {
        let built = names(flags);
        let module = built.module();
        let why = refused(&module, "counters.hits");
        assert!(
            why.starts_with("`counters` is the name of several variables: "),
            "{why}"
        );
        assert!(
            why.contains("names_a.c:10)") && why.contains("names_b.c:3)"),
            "{why}"
        );
        assert!(
            why.contains("(`names_a.c:counters`)") || why.contains("(`names_b.c:counters`)"),
            "{why}"
        );
        let hits = found(&module, "names_a.c:counters.hits");
        let misses = found(&module, "fixtures/names_b.c:counters.misses");
        assert_ne!(hits.address, misses.address);
        assert_eq!(
            found(&module, "names_a.c:counters.slots[2].served").address,
            hits.address + 8 + 32
        );
        let failed = found(&module, "names_a.c:counters.slots[0].failed");
        assert_eq!(failed.address, hits.address + 16);
        assert!(refused(&module, "es_a.c:counters").contains("is called `es_a.c:counters`"));
        // Statics of functions: by the function, or by the number the compiler gave.
        assert!(refused(&module, "calls").contains("`main::calls`"));
        let symbols = built.symbols();
        for text in ["main::calls", "names_b::calls"] {
            let address = found(&module, text).address;
            let (symbol, ..) = symbols
                .iter()
                .find(|(name, at, _)| *at == address && name.starts_with("calls."))
                .unwrap();
            let file = if text.starts_with("main") { "a" } else { "b" };
            let numbered = format!("names_{file}.c:{symbol}");
            assert_eq!(found(&module, &numbered).name, text);
        }
        let place = found(&module, "only_here[1][2]");
        assert_eq!(place.address, built.symbol("only_here").0 + 40);
    }
}

#[test]
fn without_debug_info_the_whole_variable_is_found_and_the_field_is_not() {
    let built = names(&["-O0"]);
    let module = built.module();
    let (address, size) = built.symbol("only_here");
    let whole = found(&module, "only_here");
    assert_eq!(
        (whole.address, whole.size, whole.type_name),
        (address, size, None)
    );
    let why = refused(&module, "shared_name.x");
    assert!(
        why.contains("no debug info")
            && why.contains("only the whole of it has a name: `shared_name`"),
        "{why}"
    );
    // Symbols alone tell the statics of a name apart by nothing.
    assert!(refused(&module, "counters").contains("several variables"));
    assert!(refused(&module, "mine").contains("thread-local"));
    built.run("strip", &["program"]);
    let why = refused(&built.module(), "only_here");
    assert!(
        why.contains("`only_here` (no symbols: the file is stripped"),
        "{why}"
    );
}

#[test]
fn names_that_nearly_fit_are_offered_nearest_first() {
    for flags in [&["-g"], &["-O0"]] {
        let module = names(flags).module();
        let similar = |text: &str| {
            let names = module.similar_variables(text, 3).into_iter();
            names.map(|(_, name)| name).collect::<Vec<_>>()
        };
        assert_eq!(similar("shared_nam"), ["shared_name"], "{flags:?}");
        assert_eq!(similar("Only_Her.x"), ["only_here"], "{flags:?}");
        assert_eq!(similar("nothing_like_this"), [""; 0], "{flags:?}");
        assert_eq!(similar("other::shared_name"), ["shared_name"], "{flags:?}");
        assert!(
            similar("slot").contains(&"first_slot".to_owned()),
            "{flags:?}"
        );
    }
}

#[test]
fn rust_statics_are_found_with_or_without_crate_and_module() {
    let flags = ["-g", "--edition=2024", "--crate-name=demo"];
    let Some(built) = build("rustc", "data.rs", &flags) else {
        return;
    };
    let module = built.module();
    let nested = built.symbol("6NESTED").0;
    for text in ["demo::inner::NESTED", "inner::NESTED", "NESTED"] {
        assert_eq!(found(&module, text).address, nested, "{text}");
    }
    assert!(refused(&module, "demo::NESTED").contains("is called `demo::NESTED`"));
    let shared = built.symbol("6SHARED").0;
    let place = found(&module, "SHARED.0.b.1");
    assert_eq!((place.address, place.size), (shared + 16, 8));
    assert_eq!(place.type_name.as_deref(), Some("u64"));
    let why = refused(&module, "SHARED.0.c");
    assert!(why.ends_with("has no field `c`; it has: a, b"), "{why}");
    let why = refused(&module, "COUNTERS.hit");
    assert!(why.ends_with("it has: hits, misses, flag, total"), "{why}");
    assert_eq!(
        found(&module, "demo::PADDED[1]").address,
        built.symbol("6PADDED").0 + 64
    );
}

#[test]
fn an_element_of_a_static_that_the_optimiser_split_is_found_in_its_part() {
    let flags = ["-g", "--edition=2024", "--crate-name=demo", "-Copt-level=2"];
    let Some(built) = build("rustc", "data.rs", &flags) else {
        return;
    };
    let module = built.module();
    let symbols = built.symbols();
    let part = symbols
        .iter()
        .find(|(name, ..)| name.contains("3RAW") && name.ends_with(".1"));
    // Whether it is split is the compiler's choice.
    let Some((_, address, _)) = part else {
        skipped("this compiler does not split the static");
        return;
    };
    let elements = ["RAW[0]", "RAW[1]", "RAW[2]", "RAW[3]"];
    let places = elements.map(|text| module.variable(text));
    let here = places
        .iter()
        .flatten()
        .filter(|place| place.address == *address);
    assert_eq!(here.count(), 1, "{places:?}");
    let why = refused(&module, "demo::RAW");
    assert!(why.contains("split `demo::RAW` into parts"), "{why}");
}
