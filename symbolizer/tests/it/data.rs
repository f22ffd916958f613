//! Data addresses of compiled fixtures, every byte of every object, against what the source says.

use cohtrace_skips::skipped;
use expect_test::{Expect, expect};
use symbolizer::{FieldKind, Missing};

use crate::{
    describe::{describe, describe_layout},
    toolchain::{Built, build, build_all},
};

/// The objects of these names, as the module describes them; checked against the symbols first.
fn objects(label: &str, built: &Built, names: &[&str]) -> String {
    let module = built.module();
    let mut text = String::new();
    for name in names {
        let (address, size) = built.symbol(name);
        for offset in [0, size - 1] {
            let object = module.object(address + offset).unwrap();
            assert_eq!(
                (object.address, object.size),
                (address, Some(size)),
                "{label}: {object:?}"
            );
            assert_eq!(object.missing, None, "{label}: {object:?}");
        }
        text += &describe(&module, &module.object(address).unwrap());
    }
    text
}

/// All builds must read alike, and as expected.
fn check(texts: &[(String, String)], expected: &Expect) {
    let Some((_, first)) = texts.first() else {
        return;
    };
    expected.assert_eq(first);
    for (label, text) in texts {
        // gcc has no word for atomic types before DWARF 5.
        let alike = |text: &str| text.replace("_Atomic ", "");
        assert_eq!(alike(text), alike(first), "{label}");
    }
}

const C_OBJECTS: &[&str] = &[
    "global_stats",
    "everything",
    "matrix",
    "packed_pair",
    "table",
    "aligned",
    "point",
    "color",
    "atomic_counter",
    "text",
    "functions",
    "calls",
];

#[test]
fn every_byte_of_a_c_object_has_the_name_the_source_gives_it() {
    let expected = expect![[r#"
        global_stats: struct stats, 32 bytes, data.c
            0..8   .hits: long [0+8]
            8..16  .misses: long [8+8]
           16..20  .state: int [16+4]
           20..24  between .state and .total: - [20+4]
           24..32  .total: long [24+8]
        everything: struct everything, 104 bytes, data.c
            0..1   .tag: char [0+1]
            1..8   between .tag and .inner: - [1+7]
            8..16  .inner.hits: long [8+8]
           16..24  .inner.misses: long [16+8]
           24..28  .inner.state: int [24+4]
           28..32  between .inner.state and .inner.total: - [28+4]
           32..40  .inner.total: long [32+8]
           40..44  .anonymous_a: int [40+4]
           44..48  .anonymous_b or .anonymous_c: - [44+4]
           48..52  .word.whole or .word.half[0] or .word.real: - [48+8]
           52..56  .word.whole or .word.half[1] or .word.real: - [48+8]
           56..57  .ready to .level: - [56+2]
           57..58  .level: unsigned int [56+2]
           58..64  between .level and .counter: - [58+6]
           64..72  .counter: long [64+8]
           72..76  .limit: const volatile int [72+4]
           76..78  .grid[0][0]: short [76+2]
           78..80  .grid[0][1]: short [78+2]
           80..82  .grid[0][2]: short [80+2]
           82..84  .grid[1][0]: short [82+2]
           84..86  .grid[1][1]: short [84+2]
           86..88  .grid[1][2]: short [86+2]
           88..96  .next: struct stats * [88+8]
           96..104 .callback: int (*)(struct stats *, int) [96+8]
        matrix: long [3][5], 120 bytes, data.c
            0..8   [0][0]: long [0+8]
            8..16  [0][1]: long [8+8]
           16..24  [0][2]: long [16+8]
           24..32  [0][3]: long [24+8]
           32..40  [0][4]: long [32+8]
           40..48  [1][0]: long [40+8]
           48..56  [1][1]: long [48+8]
           56..64  [1][2]: long [56+8]
           64..72  [1][3]: long [64+8]
           72..80  [1][4]: long [72+8]
           80..88  [2][0]: long [80+8]
           88..96  [2][1]: long [88+8]
           96..104 [2][2]: long [96+8]
          104..112 [2][3]: long [104+8]
          112..120 [2][4]: long [112+8]
        packed_pair: struct packed_pair, 9 bytes, data.c
            0..1   .first: char [0+1]
            1..9   .second: long [1+8]
        table: struct table, 32 bytes, data.c
            0..4   .length: int [0+4]
            4..8   between .length and .slots: - [4+4]
            8..16  .slots[0]: long [8+8]
           16..24  .slots[1]: long [16+8]
           24..32  .slots[2]: long [24+8]
        aligned: struct aligned, 128 bytes, data.c
            0..8   .a: long [0+8]
            8..64  between .a and .b: - [8+56]
           64..72  .b: long [64+8]
           72..128 after .b: - [72+56]
        point: point_t, 8 bytes, data.c
            0..4   .x: int [0+4]
            4..8   .y: int [4+4]
        color: enum color, 4 bytes, data.c
            0..4   : enum color [0+4]
        atomic_counter: atomic_int, 4 bytes, data.c
            0..4   : atomic_int [0+4]
        text: char *, 8 bytes, data.c
            0..8   : char * [0+8]
        functions: long (*[2])(void), 16 bytes, data.c
            0..8   [0]: long (*)(void) [0+8]
            8..16  [1]: long (*)(void) [8+8]
        count::calls: long, 8 bytes, data.c
            0..8   : long [0+8]
    "#]];
    let mut texts = Vec::new();
    for more in [&[][..], &["-no-pie"], &["-fdebug-types-section"]] {
        for (label, built) in build_all(&["cc", "clang"], "data.c", more) {
            let text = objects(&label, &built, C_OBJECTS);
            texts.push((label, text));
        }
    }
    check(&texts, &expected);
}

#[test]
fn a_layout_lists_the_members_as_declared() {
    let expected = expect![[r#"
        struct stats: 32 bytes, aligned to 8
            0+8   .hits: long
            8+8   .misses: long
           16+4   .state: int
           24+8   .total: long
        struct everything: 104 bytes, aligned to 8
            0+1   .tag: char
            8+32  .inner: struct stats
           40+4   .anonymous_a: int
           44+4   .anonymous_b: int
           44+4   .anonymous_c: float
           48+8   .word: union word
           56+1   .ready: unsigned int bits 448+1
           56+1   .busy: unsigned int bits 449+3
           56+2   .level: unsigned int bits 452+12
           64+8   .counter: long
           72+4   .limit: const volatile int
           76+12  .grid: short [2][3]
           88+8   .next: struct stats *
           96+8   .callback: int (*)(struct stats *, int)
        struct aligned: 128 bytes, aligned to 64
            0+8   .a: long
           64+8   .b: long
        struct packed_pair: 9 bytes, aligned to ?
            0+1   .first: char
            1+8   .second: long
        point_t: 8 bytes, aligned to 4
            0+4   .x: int
            4+4   .y: int
        struct stats [4]: 128 bytes, aligned to 8
          4 times struct stats every 32 bytes
        long [3][5]: 120 bytes, aligned to 8
          15 times long every 8 bytes
    "#]];
    let mut texts = Vec::new();
    for (label, built) in build_all(&["cc", "clang"], "data.c", &[]) {
        let module = built.module();
        let names = [
            "global_stats",
            "everything",
            "aligned",
            "packed_pair",
            "point",
            "array",
            "matrix",
        ];
        let mut text = String::new();
        for name in names {
            text += &describe_layout(&module, &module.object(built.symbol(name).0).unwrap());
        }
        texts.push((label, text));
    }
    check(&texts, &expected);
}

const CPP_OBJECTS: &[&str] = &[
    "_ZN2ns5statsE",
    "_ZN2ns5slotsE",
    "_ZN2ns5Stats9instancesE",
    "_ZZN2ns5Stats3addElE5calls",
    "vector_pointer",
    "unique",
    "reference",
    "inline_variable",
    "derived",
];

#[test]
fn cpp_objects_have_their_namespaces_bases_and_template_arguments() {
    let expected = expect![[r#"
        ns::stats: ns::Stats, 72 bytes, data.cpp
            0..8   .vptr: int (**)() [0+8]
            8..16  .base_count: long [8+8]
           16..24  .hits: std::atomic<long> [16+8]
           24..28  .small: std::atomic<int> [24+4]
           28..32  .recent[0]: int [28+4]
           32..36  .recent[1]: int [32+4]
           36..40  .recent[2]: int [36+4]
           40..44  .recent[3]: int [40+4]
           44..45  .done: bool [44+1]
           45..48  between .done and .total: - [45+3]
           48..56  .total: long [48+8]
           56..57  .nested.c: char [56+1]
           57..64  between .nested.c and .nested.d: - [57+7]
           64..72  .nested.d: double [64+8]
        ns::slots: ns::Slot<std::atomic<int>> [3], 24 bytes, data.cpp
            0..4   [0].value: std::atomic<int> [0+4]
            4..8   [0].spare: std::atomic<int> [4+4]
            8..12  [1].value: std::atomic<int> [8+4]
           12..16  [1].spare: std::atomic<int> [12+4]
           16..20  [2].value: std::atomic<int> [16+4]
           20..24  [2].spare: std::atomic<int> [20+4]
        ns::Stats::instances: long, 8 bytes, data.cpp
            0..8   : long [0+8]
        ns::Stats::add::calls: long, 8 bytes, data.cpp
            0..8   : long [0+8]
        vector_pointer: std::vector<std::atomic<int>, std::allocator<std::atomic<int>>> *, 8 bytes, data.cpp
            0..8   : std::vector<std::atomic<int>, std::allocator<std::atomic<int>>> * [0+8]
        unique: std::unique_ptr<ns::Stats, std::default_delete<ns::Stats>>, 8 bytes, data.cpp
            0..8   : std::unique_ptr<ns::Stats, std::default_delete<ns::Stats>> [0+8]
        reference: const long &, 8 bytes, data.cpp
            0..8   : const long & [0+8]
        inline_variable: long, 8 bytes, data.cpp
            0..8   : long [0+8]
        derived: Derived, 80 bytes, data.cpp
            0..8   .vptr: int (**)() [0+8]
            8..16  .base_count: long [8+8]
           16..24  .hits: std::atomic<long> [16+8]
           24..28  .small: std::atomic<int> [24+4]
           28..32  .recent[0]: int [28+4]
           32..36  .recent[1]: int [32+4]
           36..40  .recent[2]: int [36+4]
           40..44  .recent[3]: int [40+4]
           44..45  .done: bool [44+1]
           45..48  between .done and .total: - [45+3]
           48..56  .total: long [48+8]
           56..57  .nested.c: char [56+1]
           57..64  between .nested.c and .nested.d: - [57+7]
           64..72  .nested.d: double [64+8]
           72..80  .own: long [72+8]
    "#]];
    let mut texts = Vec::new();
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &["-std=c++17"]) {
        let text = objects(&label, &built, CPP_OBJECTS);
        texts.push((label, text));
    }
    check(&texts, &expected);
}

#[test]
fn a_variable_in_an_anonymous_namespace_says_so() {
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &["-std=c++17"]) {
        if !label.contains("-O0") {
            continue; // Optimised builds keep it in a register.
        }
        let (address, _) = built.symbol("_ZN2ns12_GLOBAL__N_16hiddenE");
        let object = built.module().object(address).unwrap();
        assert_eq!(object.name, "ns::(anonymous namespace)::hidden", "{label}");
    }
}

#[test]
fn what_may_be_a_virtual_base_is_not_called_padding() {
    for (label, built) in build_all(&["c++", "clang++"], "data.cpp", &["-std=c++17"]) {
        let module = built.module();
        let object = module.object(built.symbol("anywhere").0).unwrap();
        let ty = object.ty.unwrap();
        assert_eq!(module.field(ty, 8, 8).unwrap().path, ".mine", "{label}");
        // `base_count` is at 24 in both compilers' ABI, but the debug info only has a formula for it.
        assert_eq!(
            module.field(ty, 24, 8),
            Err(Missing::VirtualBase),
            "{label}"
        );
    }
}

const RUST_OBJECTS: &[&str] = &["8COUNTERS", "6PADDED", "6LOCKED", "5CALLS"];
/// Optimised builds split or drop these.
const UNOPTIMISED_RUST_OBJECTS: &[&str] =
    &["5SLOTS", "5STATE", "6HOLDER", "6SHARED", "3RAW", "6NESTED"];

#[test]
fn rust_statics_have_their_paths_and_atomics_are_not_looked_into() {
    let expected = expect![[r#"
        demo::COUNTERS: demo::Counters, 32 bytes, data.rs
            0..8   .hits: core::sync::atomic::AtomicU64 [0+8]
            8..16  .misses: core::sync::atomic::AtomicU64 [8+8]
           16..17  .flag: core::sync::atomic::AtomicBool [16+1]
           17..24  between .flag and .total: - [17+7]
           24..32  .total: u64 [24+8]
        demo::PADDED: [demo::Padded; 2], 128 bytes, data.rs
            0..8   [0].0: core::sync::atomic::AtomicU64 [0+8]
            8..64  between [0].0 and [1]: - [8+56]
           64..72  [1].0: core::sync::atomic::AtomicU64 [64+8]
           72..128 after [1].0: - [72+56]
        demo::LOCKED: std::sync::poison::mutex::Mutex<u64>, 16 bytes, data.rs
            0..4   .inner.futex: core::sync::atomic::AtomicU32 [0+4]
            4..5   .poison.failed: core::sync::atomic::AtomicBool [4+1]
            5..8   between .poison and .data: - [5+3]
            8..16  .data: core::cell::UnsafeCell<u64> [8+8]
        demo::Counters::calls::CALLS: core::sync::atomic::AtomicU64, 8 bytes, data.rs
            0..8   : core::sync::atomic::AtomicU64 [0+8]
    "#]];
    let mut texts = Vec::new();
    for optimisation in ["-Copt-level=0", "-Copt-level=2"] {
        for mangling in ["legacy", "v0"] {
            let flags = rust_flags(optimisation, mangling);
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            let Some(built) = build("rustc", "data.rs", &flags) else {
                return;
            };
            let text = objects(mangling, &built, RUST_OBJECTS);
            texts.push((flags.join(" "), text));
        }
    }
    check(&texts, &expected);
}

#[test]
fn rust_enums_tuples_and_cells_read_as_in_the_source() {
    let expected = expect![[r#"
        demo::SLOTS: [core::sync::atomic::AtomicU32; 8], 32 bytes, data.rs
            0..4   [0]: core::sync::atomic::AtomicU32 [0+4]
            4..8   [1]: core::sync::atomic::AtomicU32 [4+4]
            8..12  [2]: core::sync::atomic::AtomicU32 [8+4]
           12..16  [3]: core::sync::atomic::AtomicU32 [12+4]
           16..20  [4]: core::sync::atomic::AtomicU32 [16+4]
           20..24  [5]: core::sync::atomic::AtomicU32 [20+4]
           24..28  [6]: core::sync::atomic::AtomicU32 [24+4]
           28..32  [7]: core::sync::atomic::AtomicU32 [28+4]
        demo::STATE: demo::State, 16 bytes, data.rs
            0..4   .discriminant: u32 [0+4]
            4..8   .Running.1: u32 [4+4]
            8..16  .Running.0 or .Done.code: - [8+8]
        demo::HOLDER: demo::Holder, 8 bytes, data.rs
            0..8   .0.Some.0: alloc::boxed::Box<u64, alloc::alloc::Global> [0+8]
        demo::SHARED: demo::Shared, 24 bytes, data.rs
            0..4   .0.a: u32 [0+4]
            4..8   between .0.a and .0.b: - [4+4]
            8..10  .0.b.0: u16 [8+2]
           10..16  between .0.b.0 and .0.b.1: - [10+6]
           16..24  .0.b.1: u64 [16+8]
        demo::RAW: [u64; 4], 32 bytes, data.rs
            0..8   [0]: u64 [0+8]
            8..16  [1]: u64 [8+8]
           16..24  [2]: u64 [16+8]
           24..32  [3]: u64 [24+8]
        demo::inner::NESTED: core::sync::atomic::AtomicU64, 8 bytes, data.rs
            0..8   : core::sync::atomic::AtomicU64 [0+8]
    "#]];
    let flags = rust_flags("-Copt-level=0", "legacy");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let Some(built) = build("rustc", "data.rs", &flags) else {
        return;
    };
    let text = objects("rustc", &built, UNOPTIMISED_RUST_OBJECTS);
    check(&[("rustc".to_owned(), text)], &expected);
}

#[test]
fn the_parts_of_a_static_that_the_optimiser_split_are_still_parts_of_it() {
    let flags = rust_flags("-Copt-level=2", "legacy");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let Some(built) = build("rustc", "data.rs", &flags) else {
        return;
    };
    let split = built
        .symbols()
        .into_iter()
        .find(|(name, ..)| name.contains("3RAW") && name.ends_with(".1"));
    // Whether it is split is the compiler's choice; what is checked is the name if it did.
    let Some((_, address, _)) = split else {
        skipped("this compiler does not split the static");
        return;
    };
    let module = built.module();
    let object = module.object(address).unwrap();
    assert_eq!(object.name, "demo::RAW");
    let field = module
        .field(object.ty.unwrap(), address - object.address, 8)
        .unwrap();
    assert!(["[1]", "[2]"].contains(&field.path.as_str()), "{field:?}");
}

fn rust_flags(optimisation: &str, mangling: &str) -> Vec<String> {
    let mangling = if mangling == "legacy" {
        ""
    } else {
        "-Csymbol-mangling-version=v0"
    };
    [
        "-g",
        "--edition=2024",
        "--crate-name=demo",
        optimisation,
        mangling,
    ]
    .into_iter()
    .filter(|flag| !flag.is_empty())
    .map(str::to_owned)
    .collect()
}

#[test]
fn an_access_is_named_by_all_that_it_touches() {
    use FieldKind::{Member, Members, Padding};
    for (label, built) in build_all(&["cc", "clang"], "data.c", &[]) {
        let module = built.module();
        let path = |name: &str, offset, size| {
            let object = module.object(built.symbol(name).0).unwrap();
            let field = module.field(object.ty.unwrap(), offset, size);
            field.map(|field| {
                (
                    field.path,
                    field.kind,
                    field.member_offset,
                    field.member_size,
                )
            })
        };
        let found = |path: &str, kind, offset, size| Ok((path.to_owned(), kind, offset, size));
        assert_eq!(
            path("global_stats", 0, 8),
            found(".hits", Member, 0, 8),
            "{label}"
        );
        assert_eq!(path("global_stats", 4, 4), found(".hits", Member, 0, 8));
        assert_eq!(
            path("global_stats", 0, 16),
            found(".hits and .misses", Members, 0, 16)
        );
        assert_eq!(
            path("global_stats", 0, 32),
            found(".hits to .total", Members, 0, 32)
        );
        // Padding at the end of the access does not change what it is.
        assert_eq!(path("global_stats", 16, 8), found(".state", Member, 16, 4));
        let hole = "between .state and .total";
        assert_eq!(path("global_stats", 20, 4), found(hole, Padding, 20, 4));
        assert_eq!(path("array", 96, 8), found("[3].hits", Member, 96, 8));
        assert_eq!(
            path("array", 0, 64),
            found("[0].hits to [1].total", Members, 0, 64)
        );
        assert_eq!(
            path("matrix", 8, 16),
            found("[0][1] and [0][2]", Members, 8, 16)
        );
        // In a union the size of the access tells the members apart, where it can.
        let half = found(".word.half[1]", Member, 52, 4);
        assert_eq!(path("everything", 52, 4), half);
        let whole = found(".word.whole or .word.real", Member, 48, 8);
        assert_eq!(path("everything", 48, 8), whole);
        assert_eq!(path("global_stats", 32, 1), Err(Missing::OutOfBounds));
        assert_eq!(path("global_stats", u64::MAX, 8), Err(Missing::OutOfBounds));
        assert_eq!(path("array", 128, 8), Err(Missing::OutOfBounds));
        // A flexible array has no end of its own.
        assert_eq!(path("table", 24, 8), found(".slots[2]", Member, 24, 8));
    }
}

#[test]
fn thread_locals_are_found_by_their_offset_in_the_segment() {
    for (label, built) in build_all(&["cc", "clang"], "data.c", &[]) {
        let module = built.module();
        let (offset, size) = built.symbol("thread_counter");
        let object = module.thread_local_object(offset + size - 1).unwrap();
        assert_eq!(
            (object.name.as_str(), object.size),
            ("thread_counter", Some(8)),
            "{label}"
        );
        assert_eq!(object.type_name.as_deref(), Some("long"));
        assert!(module.thread_local_segment().unwrap().0 >= size);
        assert_eq!(
            module.thread_local_object(1 << 20),
            Err(Missing::NotCovered)
        );
    }
}

#[test]
fn addresses_of_nothing_are_not_covered() {
    let built = build("cc", "data.c", &["-g"]).unwrap();
    let module = built.module();
    for address in [0, 1, u64::MAX, module.memory().end] {
        assert_eq!(
            module.object(address),
            Err(Missing::NotCovered),
            "{address:#x}"
        );
        assert_eq!(module.function(address), None);
        assert!(module.frames(address).frames.is_empty());
    }
    // Code is no data.
    assert_eq!(
        module.object(built.symbol("main").0),
        Err(Missing::NotCovered)
    );
}

#[test]
fn an_array_of_256_elements_has_them_all() {
    // GCC writes the last index in one byte, 0xff, which is no -1.
    for (label, built) in build_all(&["cc", "clang"], "access/loops.c", &[]) {
        let module = built.module();
        let ty = module.object(built.symbol("series").0).unwrap().ty.unwrap();
        assert_eq!(module.layout(ty).unwrap().size, Some(2048), "{label}");
        assert_eq!(module.field(ty, 2040, 8).unwrap().path, "[255]", "{label}");
        assert_eq!(
            module.field(ty, 2048, 8),
            Err(Missing::OutOfBounds),
            "{label}"
        );
    }
}

#[test]
fn what_the_file_has_without_debug_info_is_not_what_it_has_none_of_at_all() {
    for flags in [&["-g"][..], &[]] {
        let built = build("cc", "data.c", flags).unwrap();
        // Of the start-up code, which distributions do not compile with -g.
        let (address, _) = built.symbol("completed");
        let object = built.module().object(address).unwrap();
        let reason = if flags.is_empty() {
            Missing::NoDebugInfo
        } else {
            Missing::Undescribed
        };
        assert_eq!(
            (object.ty, object.missing),
            (None, Some(reason)),
            "{object:?}"
        );
        let (start, _) = built.symbol("_start");
        assert_eq!(built.module().frames(start).missing, Some(reason));
    }
}
