//! Data by instruction: exact names, what must stay without a name, and damaged input.

use cohtrace_skips::skipped_core;
use std::{fmt::Write, process::Command};

use symbolizer::{Module, Operand, Storage, Untraced};

use crate::toolchain::{Built, build, line_of, parse};

/// What each load on a marked line is, the function's own variables left out.
fn loads(built: &Built, function: &str, mark: &str) -> Vec<Result<(String, String), Untraced>> {
    let module = built.module();
    let line = line_of("access/names.c", mark);
    let (start, size) = built.symbol(function);
    let mut found = Vec::new();
    for svma in start..start + size {
        let frames = module.frames(svma).frames;
        if frames.first().and_then(|frame| frame.line) != Some(line) {
            continue;
        }
        match module.access(svma, Operand::Load) {
            Ok(accessed) if accessed.storage == Storage::Frame => {}
            Ok(accessed) => found.push(Ok((accessed.expression, accessed.type_name))),
            Err(Untraced::Undecodable | Untraced::NoMemoryOperand | Untraced::Spill) => {}
            Err(reason) => found.push(Err(reason)),
        }
    }
    found
}

fn for_each_build(check: impl Fn(&str, &Built)) {
    for compiler in ["cc", "clang"] {
        for level in ["-O0", "-O2", "-O3"] {
            // clang 14 does not know `noipa`; nothing is inlined that way either.
            let flags = [
                "-g",
                level,
                "-fno-inline",
                "-Wno-attributes",
                "-Wno-unknown-attributes",
            ];
            if let Some(built) = build(compiler, "access/names.c", &flags) {
                check(&format!("{compiler} {level}"), &built);
            }
        }
    }
}

#[test]
fn pointers_are_named_as_the_source_writes_them() {
    for_each_build(|label, built| {
        for (function, mark, expression, ty) in [
            ("member", "// MEMBER", "n->stats.misses", "struct node"),
            (
                "chained",
                "// CHAINED",
                "n->next->next->count",
                "struct node",
            ),
            ("indexed", "// INDEXED", "n->weights[]", "struct node"),
            ("element", "// ELEMENT", "nodes[].stats.hits", "struct node"),
            ("last", "// LAST", "s->items[]", "struct stack"),
            (
                "global",
                "// GLOBAL",
                "table[].stats.misses",
                "struct node [8]",
            ),
        ] {
            let found = loads(built, function, mark);
            let wanted = Ok((expression.to_owned(), ty.to_owned()));
            assert_eq!(found.last(), Some(&wanted), "{label} {function}: {found:?}");
        }
    });
}

#[test]
fn an_element_at_a_constant_index_has_its_number_and_the_name_that_all_functions_have_for_it() {
    for compiler in ["cc", "clang"] {
        for level in ["-O0", "-O2"] {
            let Some(built) = build(compiler, "access/rows.c", &["-g", level]) else {
                continue;
            };
            let module = built.module();
            let answers = |function: &str| -> Vec<_> {
                let (start, size) = built.symbol(function);
                (start..start + size)
                    .flat_map(|svma| [Operand::Load, Operand::Store].map(|operand| (svma, operand)))
                    .filter_map(|(svma, operand)| module.access(svma, operand).ok())
                    .map(|accessed| {
                        let object = accessed.everywhere.then_some(accessed.object);
                        (accessed.expression, object, accessed.concluded)
                    })
                    .collect()
            };
            let told = |function: &str, expression: &str, object: Option<&str>| {
                let expected = (expression.to_owned(), object.map(str::to_owned), true);
                let answers = answers(function);
                assert!(
                    answers.contains(&expected),
                    "{compiler} {level}: {answers:?}"
                );
            };
            told("third", "recs[3].in", Some("recs[3]"));
            told("fifth", "from[5].out", None);
            told("before", "middle[-2].in", None);
            told("nested", "lanes[2].span.last", Some("lanes[2]"));
            told("varying", "from[4].ends[]", None);
            told("member", "pool.lanes[6].span.first", Some("pool.lanes[6]"));
            let by_index = answers("sum");
            assert!(
                by_index.iter().all(|(.., concluded)| !concluded),
                "{by_index:?}"
            );
        }
    }
}

#[test]
fn what_has_no_one_type_gets_no_name() {
    for_each_build(|label, built| {
        for (function, mark, reasons) in [
            ("untyped", "// UNTYPED", &[Untraced::Untyped][..]),
            (
                "punned",
                "// PUNNED",
                &[Untraced::Conflict, Untraced::Untyped],
            ),
            (
                "either",
                "// EITHER",
                &[Untraced::Conflict, Untraced::Untyped],
            ),
            (
                "relative",
                "// RELATIVE",
                &[Untraced::Computed, Untraced::OutsideType, Untraced::Untyped],
            ),
            ("beyond", "// BEYOND", &[Untraced::OutsideType]),
            ("around", "// AROUND", &[Untraced::OutsideType]),
        ] {
            let found = loads(built, function, mark);
            let last = found.last();
            // Both sides may be loaded from at once.
            let refused = matches!(last, Some(Err(reason)) if reasons.contains(reason));
            assert!(refused, "{label} {function}: {found:?}");
        }
    });
}

/// What a compiler says of a variable's places, as LLVM's tool shows it.
fn tells_only_of_the_entry(built: &Built, function: &str) -> Option<bool> {
    let tool = Command::new("llvm-dwarfdump")
        .args(["-c", &format!("--name={function}")])
        .arg(&built.path)
        .output();
    let text = String::from_utf8(tool.ok()?.stdout).ok()?;
    Some(text.contains("DW_OP_entry_value") || text.contains("DW_OP_GNU_entry_value"))
}

#[test]
fn a_pointer_that_is_told_of_only_at_the_entry_is_a_reason_of_its_own_unless_flow_knows_better() {
    for compiler in ["cc", "clang"] {
        let Some(built) = build(compiler, "access/entry.c", &["-g", "-O2"]) else {
            continue;
        };
        let module = built.module();
        let loaded = |function: &str| {
            let (start, size) = built.symbol(function);
            // The load from behind `%rax`; of `followed`, from behind whatever register.
            let answers = (start..start + size).map(|svma| module.access(svma, Operand::Load));
            let answers = answers.filter(|answer| {
                !matches!(
                    answer,
                    Err(Untraced::Undecodable | Untraced::NoMemoryOperand | Untraced::Spill)
                )
            });
            answers.collect::<Vec<_>>()
        };
        match tells_only_of_the_entry(&built, "lost") {
            Some(told) => assert!(
                told,
                "{compiler}: the fixture is compiled to something else"
            ),
            None => skipped_core("llvm-dwarfdump is not installed"),
        }
        assert_eq!(loaded("lost"), [Err(Untraced::EntryValue)], "{compiler}");
        // What it points to does not reach so far, or it is still where it was.
        assert_eq!(loaded("small"), [Err(Untraced::Computed)], "{compiler}");
        let kept = loaded("kept");
        assert_eq!(kept[0], Err(Untraced::Computed), "{compiler}");
        assert!(kept[1..].iter().all(Result::is_ok), "{compiler}: {kept:?}");
        let followed = loaded("followed");
        let count = |answer: &Result<symbolizer::Accessed, _>| {
            answer
                .as_ref()
                .is_ok_and(|accessed| accessed.field.path == ".count")
        };
        assert!(followed.iter().all(count), "{compiler}: {followed:?}");
    }
}

#[test]
fn an_instruction_is_asked_for_at_its_first_byte_and_by_an_operand_that_it_has() {
    let built = build("cc", "access/names.c", &["-g", "-O2"]).unwrap();
    let module = built.module();
    let (start, _) = built.symbol("member");
    assert!(module.access(start, Operand::Load).is_ok());
    // The same bytes said to be another machine's.
    let mut bytes = built.bytes();
    bytes[18..20].copy_from_slice(&object::elf::EM_AARCH64.0.to_le_bytes());
    assert_eq!(
        parse(bytes).access(start, Operand::Load),
        Err(Untraced::Undecodable)
    );
    assert_eq!(
        module.access(start, Operand::Store),
        Err(Untraced::NoMemoryOperand)
    );
    assert_eq!(
        module.access(start + 1, Operand::Load),
        Err(Untraced::Undecodable)
    );
    assert_eq!(
        module.access(u64::MAX, Operand::Load),
        Err(Untraced::NoFunction)
    );
    let plain = build("cc", "access/names.c", &["-O2"]).unwrap();
    let (start, _) = plain.symbol("member");
    assert_eq!(
        plain.module().access(start, Operand::Load),
        Err(Untraced::NoDebugInfo)
    );
}

/// Asks for every address of every function.
fn ask_all(module: &Module, functions: &[(String, u64, u64)]) -> usize {
    let mut named = 0;
    for (_, start, size) in functions {
        for svma in *start..start + (*size).min(4096) {
            for operand in [Operand::Load, Operand::Store] {
                named += usize::from(module.access(svma, operand).is_ok());
            }
        }
    }
    named
}

#[test]
fn damaged_code_and_debug_info_is_answered_all_the_same() {
    let built = build("cc", "access/names.c", &["-g", "-O2"]).unwrap();
    let bytes = built.bytes();
    let names = [
        "member", "chained", "indexed", "element", "either", "relative", "global", "main",
    ];
    let functions: Vec<_> = built
        .symbols()
        .into_iter()
        .filter(|(name, ..)| names.contains(&name.as_str()))
        .collect();
    assert!(ask_all(&parse(bytes.clone()), &functions) > 8);
    let file = object::File::parse(&*bytes).unwrap();
    let ranges: Vec<(u64, u64)> = [
        ".text",
        ".debug_info",
        ".debug_loclists",
        ".debug_abbrev",
        ".eh_frame",
    ]
    .iter()
    .filter_map(|name| object::Object::section_by_name(&file, name))
    .filter_map(|section| object::ObjectSection::file_range(&section))
    .collect();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below.max(1)
    };
    for round in 0..300 {
        let mut damaged = bytes.clone();
        let (start, size) = ranges[round % ranges.len()];
        for _ in 0..=random(12) {
            let at = (start + random(size)) as usize;
            damaged[at] = random(256) as u8;
        }
        ask_all(&parse(damaged), &functions);
    }
}

#[test]
fn a_function_of_any_bytes_is_followed_to_an_end() {
    let mut seed = 88_172_645_463_325_252_u64;
    for round in 0..16 {
        let mut source =
            String::from(".globl _start\n.type _start, @function\n_start:\n.cfi_startproc\n");
        for _ in 0..3000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            writeln!(source, ".byte {}", seed & 0xff).unwrap();
        }
        source += ".cfi_endproc\n.size _start, .-_start\n";
        let built = crate::toolchain::assemble_with(&source, &["-g"]);
        let (start, _) = built.symbol("_start");
        let module = built.module();
        for svma in start..start + 64 {
            assert!(module.access(svma, Operand::Load).is_err(), "round {round}");
        }
    }
}
