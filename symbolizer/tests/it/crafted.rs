//! Debug info no compiler writes: cycles, towers, trees larger than the file.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use symbolizer::{Missing, Module};

use crate::toolchain::{Built, assemble};

/// Abbreviations used below: the entries are written by number.
const ABBREVIATIONS: &str = "
.section .debug_abbrev
    # 1: compile_unit with children: language (data1)
    .uleb128 1, 0x11; .byte 1; .uleb128 0x13, 0x0b, 0, 0
    # 2: structure_type with children: name (string), byte_size (data1)
    .uleb128 2, 0x13; .byte 1; .uleb128 0x03, 0x08, 0x0b, 0x0b, 0, 0
    # 3: member: name (string), type (ref4), data_member_location (data1)
    .uleb128 3, 0x0d; .byte 0; .uleb128 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0, 0
    # 4: variable: name (string), type (ref4), location (exprloc)
    .uleb128 4, 0x34; .byte 0; .uleb128 0x03, 0x08, 0x49, 0x13, 0x02, 0x18, 0, 0
    # 5: typedef: type (ref4)
    .uleb128 5, 0x16; .byte 0; .uleb128 0x49, 0x13, 0, 0
    # 6: lexical_block with children
    .uleb128 6, 0x0b; .byte 1; .uleb128 0, 0
    # 7: base_type: name (string), byte_size (data1)
    .uleb128 7, 0x24; .byte 0; .uleb128 0x03, 0x08, 0x0b, 0x0b, 0, 0
    # 8: array_type with children: type (ref4)
    .uleb128 8, 0x01; .byte 1; .uleb128 0x49, 0x13, 0, 0
    # 9: subrange_type: upper_bound (udata)
    .uleb128 9, 0x21; .byte 0; .uleb128 0x2f, 0x0f, 0, 0
    # 10: variable: specification (ref4), location (exprloc)
    .uleb128 10, 0x34; .byte 0; .uleb128 0x47, 0x13, 0x02, 0x18, 0, 0
    # 11: subroutine_type with children: type (ref4)
    .uleb128 11, 0x15; .byte 1; .uleb128 0x49, 0x13, 0, 0
    # 12: formal_parameter: type (ref4)
    .uleb128 12, 0x05; .byte 0; .uleb128 0x49, 0x13, 0, 0
    # 13: pointer_type: type (ref4)
    .uleb128 13, 0x0f; .byte 0; .uleb128 0x49, 0x13, 0, 0
    # 14: structure_type: name (string), declaration (flag_present)
    .uleb128 14, 0x13; .byte 0; .uleb128 0x03, 0x08, 0x3c, 0x19, 0, 0
    # 15: inlined_subroutine with children: low_pc (addr), high_pc (data4)
    .uleb128 15, 0x1d; .byte 1; .uleb128 0x11, 0x01, 0x12, 0x06, 0, 0
    # 16: subprogram with children: name (string), low_pc (addr), high_pc (data4)
    .uleb128 16, 0x2e; .byte 1; .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
    .byte 0
";

/// A program with one 64-byte variable `object` and these entries. Labels make references: `.long name - unit`.
fn program(entries: &str) -> Built {
    assemble(&format!(
        ".text\n.globl _start\n.type _start, %function\n_start: .fill 64, 1, 0x90\n.size _start, 64\n\
         .data\n.globl object\n.type object, %object\nobject: .fill 64\n.size object, 64\n\
         {ABBREVIATIONS}\n.section .debug_info\nunit: .long end - begin\nbegin: .short 4\n\
         .long 0\n.byte 8\n.uleb128 1; .byte 0x0c\n{entries}\n.byte 0\nend:\n"
    ))
}

/// `object` with a type.
fn variable(ty: &str) -> String {
    format!(".uleb128 4; .asciz \"object\"; .long {ty} - unit\n.uleb128 9; .byte 3; .quad object\n")
}

fn long() -> &'static str {
    "long: .uleb128 7; .asciz \"long\"; .byte 8\n"
}

/// The questions must be answered at once, whatever the answer.
fn quickly<T>(question: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let answer = question();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "took {:?}",
        start.elapsed()
    );
    answer
}

fn open(built: &Built) -> (Module, u64) {
    (built.module(), built.symbol("object").0)
}

#[test]
fn a_sane_program_made_this_way_is_understood() {
    let built = program(&format!(
        "{}{}pair: .uleb128 2; .asciz \"pair\"; .byte 16\n\
         .uleb128 3; .asciz \"a\"; .long long - unit; .byte 0\n\
         .uleb128 3; .asciz \"b\"; .long long - unit; .byte 8\n.byte 0\n",
        variable("pair"),
        long()
    ));
    let (module, address) = open(&built);
    let object = module.object(address).unwrap();
    assert_eq!(object.type_name.as_deref(), Some("struct pair"));
    assert_eq!(module.field(object.ty.unwrap(), 8, 8).unwrap().path, ".b");
}

#[test]
fn typedefs_in_a_circle_are_given_up() {
    let built = program(&format!(
        "{}one: .uleb128 5; .long two - unit\ntwo: .uleb128 5; .long one - unit\n",
        variable("one")
    ));
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    assert_eq!(object.missing, Some(Missing::TooDeep));
    assert_eq!(object.size, Some(64));
    let ty = object.ty.unwrap();
    assert_eq!(quickly(|| module.field(ty, 0, 1)), Err(Missing::TooDeep));
    assert_eq!(quickly(|| module.layout(ty)), Err(Missing::TooDeep));
}

#[test]
fn a_variable_that_completes_itself_is_found_by_its_symbol() {
    let built = program("own: .uleb128 10; .long own - unit\n.uleb128 9; .byte 3; .quad object\n");
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    assert_eq!(
        (object.name.as_str(), object.missing),
        ("object", Some(Missing::NoType))
    );
}

#[test]
fn a_structure_inside_of_itself_is_given_up() {
    let built = program(&format!(
        "{}own: .uleb128 2; .asciz \"own\"; .byte 64\n\
         .uleb128 3; .asciz \"again\"; .long own - unit; .byte 0\n.byte 0\n",
        variable("own")
    ));
    let (module, address) = open(&built);
    let ty = module.object(address).unwrap().ty.unwrap();
    assert_eq!(quickly(|| module.field(ty, 0, 64)), Err(Missing::TooDeep));
    let layout = quickly(|| module.layout(ty).unwrap());
    assert_eq!((layout.members.len(), layout.alignment), (1, None));
}

#[test]
fn a_tree_of_members_far_larger_than_the_file_is_given_up() {
    // Each level has the next one eight times: 8^40 members in two kilobytes.
    let mut entries = variable("level0");
    for level in 0..40 {
        writeln!(
            entries,
            "level{level}: .uleb128 2; .asciz \"level\"; .byte 64"
        )
        .unwrap();
        for offset in 0..8 {
            let name = if level % 2 == 0 { "" } else { "member" };
            writeln!(
                entries,
                ".uleb128 3; .asciz \"{name}\"; .long level{} - unit; .byte {}",
                level + 1,
                offset % 2
            )
            .unwrap();
        }
        entries += ".byte 0\n";
    }
    entries += "level40: .uleb128 7; .asciz \"long\"; .byte 64\n";
    let built = program(&entries);
    let (module, address) = open(&built);
    let ty = module.object(address).unwrap().ty.unwrap();
    for (offset, size) in [(0, 1), (0, 64), (63, 1)] {
        assert!(quickly(|| module.field(ty, offset, size)).is_err());
    }
    // The members of the first level are known; how they are aligned is not.
    assert_eq!(quickly(|| module.layout(ty).unwrap()).alignment, None);
}

#[test]
fn parameters_that_double_at_each_step_make_no_endless_name() {
    let mut entries = variable("pointer0");
    for level in 0..60 {
        let next = level + 1;
        write!(
            entries,
            "pointer{level}: .uleb128 13; .long function{level} - unit\n\
             function{level}: .uleb128 11; .long pointer{next} - unit\n\
             .uleb128 12; .long pointer{next} - unit\n\
             .uleb128 12; .long pointer{next} - unit\n.byte 0\n"
        )
        .unwrap();
    }
    entries += "pointer60: .uleb128 7; .asciz \"long\"; .byte 8\n";
    let built = program(&entries);
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    assert!(object.type_name.unwrap().len() < 1 << 20);
}

#[test]
fn arrays_larger_than_the_address_space_have_no_size() {
    let built = program(&format!(
        "{}{}huge: .uleb128 8; .long long - unit\n.uleb128 9, 0xfffffffffffffff\n\
         .uleb128 9, 0xfffffffffffffff\n.byte 0\n",
        variable("huge"),
        long()
    ));
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    let ty = object.ty.unwrap();
    assert_eq!(quickly(|| module.layout(ty).unwrap()).size, None);
    assert_eq!(quickly(|| module.field(ty, 8, 8).unwrap()).path, "[0][1]");
    let end = quickly(|| module.field(ty, 0, u64::MAX).unwrap());
    assert!(end.path.starts_with("[0][0] to "), "{end:?}");
}

#[test]
fn blocks_nested_deeper_than_any_stack_are_walked_without_one() {
    const DEPTH: usize = 200_000;
    let built = program(&format!(
        ".fill {DEPTH}, 1, 6\n{}.fill {DEPTH}, 1, 0\n{}",
        variable("long"),
        long()
    ));
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    assert_eq!(object.name, "object");
    assert_eq!(object.type_name.as_deref(), Some("long"));
    assert!(
        quickly(|| module.frames(built.symbol("_start").0))
            .frames
            .is_empty()
    );
}

#[test]
fn calls_inlined_deeper_than_any_stack_are_walked_without_one() {
    const DEPTH: usize = 100_000;
    let built = program(&format!(
        ".uleb128 16; .asciz \"outer\"; .quad _start; .long 64\n\
         .rept {DEPTH}\n.uleb128 15; .quad _start; .long 64\n.endr\n.fill {DEPTH} + 1, 1, 0\n"
    ));
    let (module, _) = open(&built);
    let (start, _) = built.symbol("_start");
    let frames = quickly(|| module.frames(start)).frames;
    assert!((2..1000).contains(&frames.len()), "{}", frames.len());
    assert_eq!(frames.last().unwrap().function.as_deref(), Some("outer"));
}

#[test]
fn many_declarations_of_one_name_are_looked_up_once() {
    let mut entries = variable("declared");
    for _ in 0..20_000 {
        entries += ".uleb128 2; .asciz \"other\"; .byte 8\n.byte 0\n";
    }
    entries += "declared: .uleb128 14; .asciz \"wanted\"\n";
    let built = program(&entries);
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    assert_eq!(object.missing, Some(Missing::DeclarationOnly));
    quickly(|| (0..1000).for_each(|_| drop(module.object(address))));
}

#[test]
fn many_members_of_a_type_that_is_slow_to_size_are_given_up() {
    // Twenty kilobytes that would take sixteen million entries to understand.
    let built = program(&format!(
        "{}{}wide: .uleb128 2; .asciz \"wide\"; .byte 64\n\
         .rept 4000\n.uleb128 3; .asciz \"m\"; .long tall - unit; .byte 0\n.endr\n.byte 0\n\
         tall: .uleb128 8; .long long - unit\n.rept 4000\n.uleb128 9, 0\n.endr\n.byte 0\n",
        variable("wide"),
        long()
    ));
    let (module, address) = open(&built);
    let object = quickly(|| module.object(address).unwrap());
    assert_eq!((object.name.as_str(), object.size), ("object", Some(64)));
    let ty = object.ty.unwrap();
    assert_eq!(quickly(|| module.field(ty, 0, 8)), Err(Missing::TooDeep));
    assert_eq!(quickly(|| module.layout(ty)), Err(Missing::TooDeep));
}
