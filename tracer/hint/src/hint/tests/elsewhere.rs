//! Several variables, and memory whose type is not known.

use super::{START, array, object, own, own_in, private, scene, structure};
use crate::{
    access::{LineKey, Place},
    hint::{AdviceKind, Field, Scene, advise},
    names::{ElementLayout, Language, ObjectKind, ObjectName},
};

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

#[test]
fn parts_of_a_nested_array_are_told_which_member_to_align() {
    let list = [
        ("head", 0, 16, "char [16]"),
        ("slots", 16, 128, "struct slot [2]"),
    ];
    let objects = [structure("struct table", Language::C, 144, &list)];
    let units = [own(24, 8, ".slots[0].last"), own(32, 8, ".slots[1].served")];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.kind, AdviceKind::SeparateBytes);
    assert!(
        advice.text.contains("the member `slots`, at byte 16")
            && advice.text.contains("_Alignas(64)"),
        "{}",
        advice.text
    );
    // Twin: without the type there is no member to name, and the reason is said.
    let objects = [object("table", START, 144, Language::C)];
    let advice = advise(&scene(&objects, &units));
    assert!(
        advice.text.contains("no debug information"),
        "{}",
        advice.text
    );
}

#[test]
fn memory_without_fields_is_still_known_to_be_on_the_heap() {
    let heap = ObjectName {
        kind: ObjectKind::Heap,
        ..ObjectName::default()
    };
    let mut units = [own(32, 8, ""), own(40, 8, "")];
    for unit in &mut units {
        unit.fields.clear();
    }
    let objects = [heap];
    let advice = advise(&scene(&objects, &units));
    assert!(advice.text.contains("on the heap"), "{}", advice.text);
}

/// An object on the heap of which only the type is known.
fn nameless(start: u64) -> ObjectName {
    let members: &[_] = &[("done", 0, 8, "unsigned long")];
    ObjectName {
        kind: ObjectKind::Heap,
        name: None,
        start: Some(start),
        ..structure("struct jobs", Language::C, 8, members)
    }
}

#[test]
fn objects_of_one_type_get_lines_of_their_own_by_the_type() {
    let objects = [nameless(START), nameless(START + 8)];
    let units = [own_in(0, 0, 8, ".done"), own_in(1, 8, 8, ".done")];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.kind, AdviceKind::AlignObject);
    for part in [
        "2 objects of type `struct jobs`, which different threads use, share the line.",
        "_Alignas(64) unsigned long done;",
        "Each grows from 8 to 64 bytes.",
        "aligned_alloc",
    ] {
        assert!(advice.text.contains(part), "{part}: {}", advice.text);
    }
}

#[test]
fn objects_of_a_scalar_type_are_described_by_bytes() {
    let scalar = |start| ObjectName {
        type_name: Some("unsigned long".to_owned()),
        layout: None,
        ..nameless(start)
    };
    let objects = [scalar(START), scalar(START + 8)];
    let units = [own_in(0, 0, 8, "counts[]"), own_in(1, 8, 8, "counts[]")];
    let advice = advise(&scene(&objects, &units));
    assert_eq!(advice.kind, AdviceKind::SeparateBytes);
}
