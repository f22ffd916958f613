//! Members of one struct.

use super::{COUNTERS, own, private, scene, structure};
use crate::{
    access::{LineKey, LineSize, Place},
    hint::{AdviceKind, Scene, advise},
    names::{Author, Language, ObjectKind, ObjectName},
};

#[test]
fn fields_of_a_c_struct_are_told_apart_by_alignas() {
    let objects = [structure("struct stats", Language::C, 24, &COUNTERS)];
    let units = [own(0, 8, ".hits"), own(8, 8, ".misses")];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.kind, AdviceKind::SeparateFields);
    assert_eq!(advice.fields, [".hits", ".misses"]);
    // hits 0..8 | misses 64..72, total 72..80, rounded to 128; 128 - 24 = 104.
    assert_eq!(advice.bytes, Some(104));
    assert!(
        advice
            .text
            .contains("\n    _Alignas(64) unsigned long misses;\n"),
        "{}",
        advice.text
    );
    assert!(advice.text.contains("<stdalign.h>"));
    assert!(
        advice
            .text
            .contains("`struct stats` grows from 24 to 128 bytes (+104)."),
        "{}",
        advice.text
    );
}

#[test]
fn fields_of_a_librarys_struct_are_for_its_authors_and_those_of_the_languages_own_stay() {
    let units = [own(0, 8, ".hits"), own(8, 8, ".misses")];
    let advice = |author| {
        let mut library = structure("struct stats", Language::C, 24, &COUNTERS);
        if let Some(layout) = &mut library.layout {
            layout.author = author;
        }
        advise(&scene(&[library], &units))
    };
    let package = advice(Author::Package);
    assert_eq!(package.kind, AdviceKind::SeparateFields);
    assert!(
        package.text.starts_with(
            "`struct stats` is declared by a library, whose authors can change that; until then: Let each thread use an object"
        ),
        "{}",
        package.text
    );
    assert!(
        package
            .text
            .contains("\n    _Alignas(64) unsigned long misses;\n")
    );
    let language = advice(Author::Language);
    assert_eq!(language.kind, AdviceKind::ReduceSharing);
    assert!(!language.text.contains("_Alignas"), "{}", language.text);
}

#[test]
fn one_unit_in_a_struct_needs_no_alignment() {
    let objects = [structure("struct stats", Language::C, 24, &COUNTERS)];
    let units = [own(0, 24, ".hits")];
    assert_ne!(
        advise(&scene(&objects, &units)).kind,
        AdviceKind::SeparateFields
    );
}

#[test]
fn pairs_of_lines_ask_for_twice_the_room() {
    let objects = [structure("stats", Language::Cpp, 24, &COUNTERS)];
    let units = [own(0, 8, ".hits"), own(8, 8, ".misses")];
    let advice = advise(&Scene {
        line_size: LineSize::B128,
        line: private(0x404000),
        ..scene(&objects, &units)
    });
    // The object starts at byte 64 of the pair, so the units lie before it: nothing is known of them.
    assert_eq!(advice.kind, AdviceKind::SeparateBytes);
    let units = [own(64, 8, ".hits"), own(72, 8, ".misses")];
    let advice = advise(&Scene {
        line_size: LineSize::B128,
        line: private(0x404000),
        ..scene(&objects, &units)
    });
    // hits 0..8 | misses 128..136, total 136..144, rounded to 256; 256 - 24 = 232.
    assert_eq!(advice.bytes, Some(232));
    assert!(
        advice
            .text
            .contains("\n    alignas(128) unsigned long misses;\n"),
        "{}",
        advice.text
    );
    assert!(!advice.text.contains("64"), "{}", advice.text);
}

#[test]
fn fields_of_a_rust_struct_are_wrapped() {
    let atomic = "core::sync::atomic::AtomicU64";
    let list = [("head", 0, 8, atomic), ("tail", 8, 8, atomic)];
    let objects = [structure("demo::Queue", Language::Rust, 16, &list)];
    let units = [own(0, 8, ".head"), own(8, 8, ".tail")];
    let advice = advise(&scene(&objects, &units));
    // Two lines of 64; 128 - 16 = 112. With 128-byte wrappers 256 - 16 = 240.
    assert_eq!(advice.bytes, Some(112));
    assert!(
        advice
            .text
            .contains("#[repr(align(64))] struct Line<T>(T);"),
        "{}",
        advice.text
    );
    assert!(
        advice
            .text
            .contains("\n    head: Line<std::sync::atomic::AtomicU64>,\n    tail: Line<std::sync::atomic::AtomicU64>,\n"),
        "{}",
        advice.text
    );
    assert!(
        advice.text.contains("CachePadded") && advice.text.contains("256 bytes (+240)"),
        "{}",
        advice.text
    );
}

#[test]
fn members_of_alternating_threads_are_reordered_first() {
    let list = [
        ("a0", 0, 8, "long"),
        ("b0", 8, 8, "long"),
        ("a1", 16, 8, "long"),
        ("b1", 24, 8, "long"),
    ];
    let objects = [structure("struct s", Language::C, 32, &list)];
    let mut a = own(0, 8, ".a0");
    a.pieces.push((16, 8));
    let mut b = own(8, 8, ".b0");
    b.pieces.push((24, 8));
    let advice = advise(&scene(&objects, &[a, b]));
    assert!(
        advice.text.contains("(`a0`, `a1`; `b0`, `b1`)"),
        "{}",
        advice.text
    );
    // a0 a1 | b0 b1 -> 128; 128 - 32 = 96.
    assert_eq!(advice.bytes, Some(96));
}

#[test]
fn a_heap_struct_is_told_how_to_allocate() {
    let heap = ObjectName {
        kind: ObjectKind::Heap,
        ..structure("struct stats", Language::C, 24, &COUNTERS)
    };
    let units = [own(0, 8, ".hits"), own(8, 8, ".misses")];
    assert!(
        advise(&scene(&[heap], &units))
            .text
            .contains("aligned_alloc(64, size)")
    );
    let global = [structure("struct stats", Language::C, 24, &COUNTERS)];
    assert!(
        !advise(&scene(&global, &units))
            .text
            .contains("aligned_alloc")
    );
}

#[test]
fn bit_fields_are_described_and_not_aligned() {
    let list = [("a", 0, 4, "unsigned"), ("b", 0, 4, "unsigned")];
    let objects = [structure("struct bits", Language::C, 4, &list)];
    let units = [own(0, 1, ".a"), own(1, 1, ".b")];
    assert_eq!(
        advise(&scene(&objects, &units)).kind,
        AdviceKind::SeparateBytes
    );
}

#[test]
fn kernel_structs_get_the_kernels_macro() {
    let line = LineKey(Place::Kernel {
        addr: 0xffff_8880_0000_0000,
    });
    let mut kernel = structure("struct lruvec", Language::C, 24, &COUNTERS);
    (kernel.kind, kernel.start) = (ObjectKind::Kernel, Some(0xffff_8880_0000_0000));
    let units = [own(0, 8, ".hits"), own(8, 8, ".misses")];
    let advice = advise(&Scene {
        line,
        ..scene(std::slice::from_ref(&kernel), &units)
    });
    assert!(
        advice
            .text
            .contains("\n    unsigned long misses ____cacheline_aligned_in_smp;\n"),
        "{}",
        advice.text
    );
    assert!(!advice.text.contains("_Alignas"));
}
