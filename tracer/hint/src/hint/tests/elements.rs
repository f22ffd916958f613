//! Elements of one array.

use super::{START, array, members, own, private, scene};
use crate::{
    hint::{AdviceKind, Scene, advise},
    names::{Language, ObjectKind, ObjectName},
};

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
        advice
            .text
            .contains("Put `alignas(64)` between `struct` or `class` and `slot`"),
        "{}",
        advice.text
    );
}
