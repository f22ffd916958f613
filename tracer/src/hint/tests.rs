//! Advice for every shape of object, with costs computed by hand.

use super::*;
use crate::{
    access::{LineKey, LineSize, Place, SpaceId},
    names::{ElementLayout, Language, MemberLayout, ObjectKind, ObjectLayout, ObjectName},
};

const START: u64 = 0x404040;

fn object(name: &str, start: u64, size: u64, language: Language) -> ObjectName {
    ObjectName {
        kind: ObjectKind::Global,
        name: Some(name.to_owned()),
        type_name: None,
        file: None,
        line: None,
        start: Some(start),
        size: Some(size),
        language: Some(language),
        layout: None,
    }
}

fn members(list: &[(&str, u64, u64, &str)]) -> Vec<MemberLayout> {
    list.iter()
        .map(|&(name, offset, size, type_name)| MemberLayout {
            name: name.to_owned(),
            offset,
            size,
            type_name: Some(type_name.to_owned()),
        })
        .collect()
}

fn structure(
    type_name: &str,
    language: Language,
    size: u64,
    list: &[(&str, u64, u64, &str)],
) -> ObjectName {
    ObjectName {
        type_name: Some(type_name.to_owned()),
        layout: Some(ObjectLayout {
            size,
            element: None,
            members: members(list),
        }),
        ..object("stats", START, size, language)
    }
}

fn array(element: &str, language: Language, start: u64, stride: u64, count: u64) -> ObjectName {
    ObjectName {
        layout: Some(ObjectLayout {
            size: stride * count,
            element: Some(ElementLayout {
                type_name: Some(element.to_owned()),
                stride,
                count,
            }),
            members: Vec::new(),
        }),
        ..object("slots", start, stride * count, language)
    }
}

/// Bytes that one thread stores.
fn own(offset: u8, size: u16, label: &str) -> Unit {
    own_in(0, offset, size, label)
}

fn own_in(object: usize, offset: u8, size: u16, label: &str) -> Unit {
    Unit {
        pieces: vec![(offset, size)],
        fields: vec![Field {
            object: Some(object),
            label: Some(label.to_owned()),
        }],
        writers: 1,
        readers: 0,
        code: vec![format!("worker.c:{}", 10 + u32::from(offset))],
    }
}

fn private(addr: u64) -> LineKey {
    LineKey(Place::Private {
        space: SpaceId(0),
        addr,
    })
}

fn scene<'a>(objects: &'a [ObjectName], units: &'a [Unit]) -> Scene<'a> {
    Scene {
        sharing: Sharing::False,
        line: private(START),
        line_size: LineSize::B64,
        objects,
        units,
        language: None,
        traffic: Traffic::default(),
        processes: 1,
    }
}

const COUNTERS: [(&str, u64, u64, &str); 3] = [
    ("hits", 0, 8, "unsigned long"),
    ("misses", 8, 8, "unsigned long"),
    ("total", 16, 8, "unsigned long"),
];

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
    let list = [("head", 0, 8, "AtomicU64"), ("tail", 8, 8, "AtomicU64")];
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
            .contains("\n    head: Line<AtomicU64>,\n    tail: Line<AtomicU64>,\n"),
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
fn small_elements_of_an_array_are_grown_to_a_line() {
    let units = [own(0, 8, "[0]"), own(8, 8, "[1]")];
    let objects = [array("long", Language::C, START, 8, 4)];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.kind, AdviceKind::PadElements);
    // 4 * (64 - 8) = 224.
    assert_eq!(advice.bytes, Some(224));
    assert!(
        advice
            .text
            .contains("struct slot { _Alignas(64) long value; };"),
        "{}",
        advice.text
    );
    assert!(
        advice
            .text
            .contains("from 8 to 64 bytes; 4 of them cost 224 bytes more."),
        "{}",
        advice.text
    );
    assert!(advice.text.contains("local variable"), "{}", advice.text);
    let objects = [array("AtomicU64", Language::Rust, START, 8, 4)];
    let advice = advise(&scene(&objects, &units));
    // crossbeam: 4 * (128 - 8) = 480.
    assert!(advice.text.contains("480 bytes more"), "{}", advice.text);
}

#[test]
fn elements_that_do_not_fill_whole_lines_are_rounded_up() {
    // Element 0 ends at byte 80 - 64 = 16 of the second line; element 1 starts there. 10 * (128 - 80) = 480.
    let objects = [array("struct slot", Language::C, START, 80, 10)];
    let units = [own(0, 16, "[0]"), own(16, 8, "[1]")];
    let advice = advise(&Scene {
        line: private(START + 64),
        ..scene(&objects, &units)
    });
    assert_eq!(
        (advice.kind, advice.bytes),
        (AdviceKind::PadElements, Some(480))
    );
}

#[test]
fn a_large_array_is_offered_a_way_that_costs_nothing() {
    let units = [own(0, 4, "[0]"), own(4, 4, "[1]")];
    let objects = [array("int", Language::C, START, 4, 1_000_000)];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.bytes, Some(60_000_000));
    assert!(advice.text.contains("16 elements each"), "{}", advice.text);
    let huge = [array("int", Language::C, START, 4, u64::MAX / 8)];
    assert_eq!(advise(&scene(&huge, &units)).bytes, Some(u64::MAX));
}

#[test]
fn elements_of_whole_lines_need_the_array_aligned() {
    let objects = [array("struct slot", Language::C, START + 16, 64, 8)];
    let units = [own(0, 16, "[0]"), own(16, 48, "[1]")];
    let advice = advise(&Scene {
        line: private(START + 64),
        ..scene(&objects, &units)
    });
    assert_eq!(
        (advice.kind, advice.bytes),
        (AdviceKind::AlignObject, Some(63))
    );
    assert!(
        advice.text.contains("starts 16 bytes into a line"),
        "{}",
        advice.text
    );
    assert!(
        advice
            .text
            .contains("\n    _Alignas(64) struct slot slots[8];\n"),
        "{}",
        advice.text
    );
    assert!(advice.text.contains("at most 63 bytes"), "{}", advice.text);
    let heap = ObjectName {
        kind: ObjectKind::Heap,
        ..objects[0].clone()
    };
    let advice = advise(&Scene {
        line: private(START + 64),
        ..scene(std::slice::from_ref(&heap), &units)
    });
    assert!(
        advice.text.contains("aligned_alloc(64, size)"),
        "{}",
        advice.text
    );
}

#[test]
fn members_inside_of_one_element_are_told_apart_in_its_type() {
    let mut slots = array("struct slot", Language::Cpp, START, 16, 100);
    if let Some(layout) = &mut slots.layout {
        layout.members = members(&[("head", 0, 8, "long"), ("tail", 8, 8, "long")]);
    }
    let units = [own(0, 8, "[0].head"), own(8, 8, "[0].tail")];
    let objects = [slots.clone()];
    let advice = advise(&scene(&objects, &units));
    // 16 -> 128 bytes; 100 * 112 = 11,200.
    assert_eq!(
        (advice.kind, advice.bytes),
        (AdviceKind::SeparateFields, Some(11_200))
    );
    assert!(
        advice.text.contains("alignas(64) long tail;"),
        "{}",
        advice.text
    );
    // The twin: whole elements of different threads.
    let units = [own(0, 16, "[0]"), own(16, 16, "[1]")];
    let advice = advise(&scene(&objects, &units));
    // 100 * (64 - 16) = 4,800.
    assert_eq!(
        (advice.kind, advice.bytes),
        (AdviceKind::PadElements, Some(4_800))
    );
    assert!(
        advice.text.contains("`struct alignas(64) slot`"),
        "{}",
        advice.text
    );
}

#[test]
fn two_variables_get_a_line_each() {
    let mut a = object("a", START, 8, Language::C);
    a.type_name = Some("long".to_owned());
    (a.file, a.line) = (Some("/src/main.c".to_owned()), Some(3));
    let mut b = object("b", START + 8, 8, Language::C);
    b.type_name = Some("long".to_owned());
    let objects = [a, b];
    let units = [own_in(0, 0, 8, "a"), own_in(1, 8, 8, "b")];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.kind, AdviceKind::SeparateVariables);
    // Two whole lines in place of two 8-byte words: 2 * 56 = 112.
    assert_eq!(advice.bytes, Some(112));
    assert_eq!(advice.fields, ["a", "b"]);
    assert!(
        advice
            .text
            .starts_with("`a` (main.c:3) and `b` are separate variables"),
        "{}",
        advice.text
    );
    assert!(
        advice
            .text
            .contains("\n    _Alignas(64) long a;\n    _Alignas(64) long b;\n"),
        "{}",
        advice.text
    );
}

#[test]
fn memory_of_unknown_type_is_described_by_bytes_and_code() {
    let heap = ObjectName {
        kind: ObjectKind::Heap,
        name: Some("[heap]".to_owned()),
        start: None,
        size: None,
        ..object("", 0, 0, Language::C)
    };
    let mut units = [own(0, 8, ""), own(24, 8, "")];
    for unit in &mut units {
        unit.fields = vec![Field {
            object: Some(0),
            label: None,
        }];
    }
    let objects = [heap];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(
        (advice.kind, advice.bytes),
        (AdviceKind::SeparateBytes, None)
    );
    assert!(
        advice.text.contains("bytes 0-7 (written at worker.c:10)"),
        "{}",
        advice.text
    );
    assert!(
        advice.text.contains("bytes 24-31 (written at worker.c:34)"),
        "{}",
        advice.text
    );
    assert!(
        advice
            .text
            .contains("`aligned_alloc(64, size)` instead of `malloc`"),
        "{}",
        advice.text
    );
    assert!(advice.fields.is_empty());
}

#[test]
fn neighbouring_words_on_the_heap_are_taken_for_an_array() {
    let heap = ObjectName {
        kind: ObjectKind::Heap,
        start: None,
        size: None,
        ..object("", 0, 0, Language::Cpp)
    };
    let objects = [heap];
    let units = [own(0, 4, ""), own(4, 4, ""), own(8, 4, "")];
    let advice = advise(&scene(&objects, &units));
    assert!(
        advice.text.contains("neighbouring 4-byte elements"),
        "{}",
        advice.text
    );
    assert!(
        advice.text.contains("struct alignas(64) slot"),
        "{}",
        advice.text
    );
    let apart = [own(0, 4, ""), own(8, 4, ""), own(32, 4, "")];
    assert!(
        !advise(&scene(&objects, &apart))
            .text
            .contains("neighbouring")
    );
}

#[test]
fn memory_that_processes_share_is_laid_out_by_all_of_them() {
    let mapping = ObjectName {
        kind: ObjectKind::Mapping,
        ..object("/dev/shm/x", 0, 4096, Language::C)
    };
    let objects = [mapping];
    let units = [own(0, 2, ""), own(2, 2, "")];
    let line = LineKey(Place::Shared {
        dev: 1,
        inode: 2,
        offset: 0,
    });
    let advice = advise(&Scene {
        line,
        processes: 2,
        ..scene(&objects, &units)
    });
    assert!(advice.text.contains("2 processes share"), "{}", advice.text);
    let alone = advise(&Scene {
        line,
        ..scene(&objects, &units)
    });
    assert!(!alone.text.contains("processes"), "{}", alone.text);
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

fn every_traffic() -> Vec<Traffic> {
    let mut out = Vec::new();
    for (writers, readers) in [(1, 1), (1, 5), (2, 0), (2, 3), (9, 0)] {
        for locked in [0, 10] {
            for (stores, unlocked_rmw) in [(0, 10), (10, 0), (10, 10)] {
                for named_lock in [false, true] {
                    out.push(Traffic {
                        writers,
                        readers,
                        locked,
                        unlocked_rmw,
                        stores,
                        loads: 5,
                        named_lock,
                    });
                }
            }
        }
    }
    out
}

#[test]
fn true_sharing_is_never_told_to_pad() {
    let shared = Unit {
        writers: 2,
        ..own(0, 8, ".hits")
    };
    for language in [Language::C, Language::Cpp, Language::Rust] {
        let objects = [structure("stats", language, 24, &COUNTERS)];
        for traffic in every_traffic() {
            let units = [shared.clone()];
            let scene = Scene {
                sharing: Sharing::True,
                traffic,
                language: Some(language),
                ..scene(&objects, &units)
            };
            let advice = advise(&scene);
            assert_eq!(advice.kind, AdviceKind::ReduceSharing);
            assert!(advice.fields.is_empty() && advice.bytes.is_none());
            let text = advice.text.to_lowercase();
            for word in ["pad", "align", "line of its own", "separate", "move apart"] {
                assert!(!text.contains(word), "{word}: {text}");
            }
        }
    }
}

#[test]
fn true_sharing_advice_depends_on_what_is_done_to_the_bytes() {
    let units = [Unit {
        writers: 4,
        ..own(0, 8, "total")
    }];
    let objects = [object("total", START, 8, Language::Rust)];
    let text = |traffic| {
        let language = Some(Language::Rust);
        advise(&Scene {
            sharing: Sharing::True,
            traffic,
            language,
            ..scene(&objects, &units)
        })
        .text
    };
    let counter = text(Traffic {
        writers: 4,
        locked: 100,
        ..Traffic::default()
    });
    assert!(
        counter.starts_with("4 threads update `total`") && counter.contains("thread_local!"),
        "{counter}"
    );
    let lock = text(Traffic {
        writers: 4,
        locked: 100,
        stores: 90,
        ..Traffic::default()
    });
    assert!(
        lock.contains("looks like a lock") && lock.contains("queue lock"),
        "{lock}"
    );
    let flag = text(Traffic {
        writers: 1,
        readers: 3,
        stores: 9,
        loads: 90,
        ..Traffic::default()
    });
    assert!(
        flag.starts_with("One thread writes `total` and 3 threads read it"),
        "{flag}"
    );
}

#[test]
fn mixed_sharing_names_what_moves_and_what_remains_shared() {
    let list = [("lock", 0, 4, "int"), ("count", 8, 8, "long")];
    let objects = [structure("struct table", Language::C, 16, &list)];
    let units = [
        Unit {
            writers: 2,
            ..own(0, 4, ".lock")
        },
        own(8, 8, ".count"),
    ];
    let traffic = Traffic {
        writers: 2,
        locked: 100,
        stores: 100,
        ..Traffic::default()
    };
    let advice = advise(&Scene {
        sharing: Sharing::Mixed,
        traffic,
        ..scene(&objects, &units)
    });
    assert_eq!(advice.kind, AdviceKind::SeparateAndReduce);
    assert_eq!(advice.fields, [".lock", ".count"]);
    // lock 0..4 | count 64..72 -> 128; 128 - 16 = 112.
    assert_eq!(advice.bytes, Some(112));
    assert!(
        advice.text.contains("_Alignas(64) long count;"),
        "{}",
        advice.text
    );
    let (_, remains) = advice.text.split_once("What remains shared: ").unwrap();
    assert!(
        remains.contains("`.lock`") && remains.contains("looks like a lock"),
        "{remains}"
    );
}

#[test]
fn damaged_layouts_give_words_and_no_panic() {
    let mut objects = [array("int", Language::C, u64::MAX - 7, 0, 0)];
    let units = [own(0, 200, "x"), own(255, u16::MAX, "y")];
    for (start, stride, count) in [
        (None, 0, 0),
        (Some(0), 1, u64::MAX),
        (Some(u64::MAX), u64::MAX, u64::MAX),
    ] {
        objects[0].start = start;
        objects[0].size = Some(u64::MAX);
        if let Some(layout) = &mut objects[0].layout {
            layout.element = Some(ElementLayout {
                type_name: None,
                stride,
                count,
            });
        }
        for line in [0, START, !63] {
            let advice = advise(&Scene {
                line: private(line),
                ..scene(&objects, &units)
            });
            assert!(!advice.text.is_empty());
        }
    }
    let nothing = advise(&scene(&[], &[]));
    assert_eq!(nothing.kind, AdviceKind::SeparateBytes);
}
