//! Units for aarch64.

use super::{load, prefetches, unit, with_one};
use crate::hint::assembly::{
    Kept,
    instruction::{Does, Processor},
};

#[test]
fn loads_with_an_address_that_a_prefetch_takes_get_one() {
    for (statement, prefetch) in [
        ("ldr\tx1, [x0, 8]", "prfm pstl1keep, [x0, 8]"),
        ("ldr\tx1, [x0, #8]", "prfm pstl1keep, [x0, #8]"),
        ("ldrb\tw1, [x0]", "prfm pstl1keep, [x0]"),
        ("ldrb\tw1, [x0, 3]", "prfum pstl1keep, [x0, 3]"),
        ("ldur\tx1, [x0, -8]", "prfum pstl1keep, [x0, -8]"),
        (
            "ldr\tx1, [x0, x2, lsl 3]",
            "prfm pstl1keep, [x0, x2, lsl 3]",
        ),
        (
            "ldr\td0, [x0, w2, sxtw 3]",
            "prfm pstl1keep, [x0, w2, sxtw 3]",
        ),
        ("ldp\tx1, x2, [sp, 16]", "prfm pstl1keep, [sp, 16]"),
        ("ldar\tw1, [x0]", "prfm pstl1keep, [x0]"),
        (
            "ldr\tx1, [x0, #:lo12:table]",
            "prfm pstl1keep, [x0, #:lo12:table]",
        ),
    ] {
        let text =
            unit(&format!("\t.loc 1 7 3\n\t{statement}\n")).replace("\t.text", "\t.arch armv8-a");
        let hint = load("/src/t.c", 7, 3, "");
        let found = prefetches(&with_one(&text, hint));
        let expected = if statement.contains("sp") {
            vec![]
        } else {
            vec![format!("{prefetch} | {statement}")]
        };
        assert_eq!(found, expected, "{statement}");
    }
}

#[test]
fn what_writes_its_register_back_is_exclusive_or_has_no_form_is_kept() {
    let does = |statement| Processor::A64.does(statement);
    for (statement, why) in [
        ("ldr x1, [x0], 8", Kept::NoSuchForm),
        ("ldr x1, [x0, 8]!", Kept::NoSuchForm),
        ("ldr w1, [x0, x2, lsl 2]", Kept::NoSuchForm),
        ("ldrb w1, [x0, 4095]", Kept::NoSuchForm),
        ("ldr w1, [x0, :lo12:table]", Kept::LinkerSlot),
        ("ldr x1, [x0, :got_lo12:table]", Kept::LinkerSlot),
        ("ldaxr x1, [x0]", Kept::ReadModifyWrite),
        ("ldadd x1, x2, [x0]", Kept::ReadModifyWrite),
        ("cas x1, x2, [x0]", Kept::ReadModifyWrite),
        ("ld1 {v0.4s}, [x0]", Kept::Unknown),
    ] {
        assert_eq!(does(statement), Does::Keeps(why), "{statement}");
    }
    for statement in [
        "str x1, [x0]",
        "stp x1, x2, [x0]",
        "stlxr w0, x1, [x2]",
        "add x0, x1, x2",
        "prfm pldl1keep, [x0]",
        "ret",
    ] {
        assert_eq!(does(statement), Does::Nothing, "{statement}");
    }
}

#[test]
fn operands_tell_loads_apart_here_too() {
    let text = unit("\t.loc 1 7 3\n\tldr x1, [x0, 8]\n\tldr x2, [x0, 16]\n");
    let mut hint = load("/src/t.c", 7, 3, "");
    hint.operand = Some("[x5, #16]".to_owned());
    assert_eq!(
        prefetches(&with_one(&text, hint)),
        ["prfm pstl1keep, [x0, 16] | ldr x2, [x0, 16]"]
    );
}
