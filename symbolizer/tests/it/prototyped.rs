//! Data by instruction from prototypes and types alone, against the source of the fixture.

use std::collections::BTreeMap;

use symbolizer::{Operand, Prototyped, Prototypes, Reached, Untraced};

use crate::toolchain::{Built, build};

const INODE: u32 = 1;
const FILE: u32 = 2;
const TABLE: u32 = 3;
const FILE_POINTER: u32 = 4;

/// What the source says of types and functions.
struct Known {
    functions: BTreeMap<u64, &'static str>,
    table: u64,
}

impl Known {
    fn of(built: &Built) -> Known {
        let names = [
            "put",
            "touch",
            "open_file",
            "opened",
            "in_global",
            "either",
            "checked",
            "of_private",
            "outer",
            "kept",
            "tagged",
            "traced",
            "with_tracer",
        ];
        Known {
            functions: names.map(|name| (built.symbol(name).0, name)).into(),
            table: built.symbol("global_table").0,
        }
    }
}

impl Prototypes for Known {
    fn parameters(&self, function: u64) -> Vec<Option<u32>> {
        match self.functions.get(&function).copied() {
            Some("put" | "of_private" | "with_tracer") => vec![Some(FILE)],
            Some("touch") => vec![None, Some(FILE)],
            Some("open_file" | "opened" | "checked") => vec![Some(TABLE)],
            Some("either") => vec![Some(FILE), Some(INODE)],
            Some("outer") => vec![Some(INODE)],
            Some("kept") => vec![Some(FILE), Some(TABLE)],
            _ => Vec::new(),
        }
    }

    fn keeps_registers(&self, function: u64) -> bool {
        self.functions.get(&function) == Some(&"traced")
    }

    fn result(&self, function: u64) -> Option<u32> {
        (self.functions.get(&function) == Some(&"open_file")).then_some(FILE)
    }

    fn pointer_at(&self, ty: u32, offset: u64) -> Option<u32> {
        match (ty, offset) {
            (FILE, 32) => Some(INODE),
            (TABLE, 8) => Some(FILE_POINTER),
            (FILE_POINTER, 0) => Some(FILE),
            _ => None,
        }
    }

    fn size(&self, ty: u32) -> Option<u64> {
        Some(match ty {
            FILE => 56,
            FILE_POINTER => 8,
            _ => 16,
        })
    }

    fn variable(&self, address: u64) -> Option<(u32, u64)> {
        (self.table..self.table + 16)
            .contains(&address)
            .then_some((TABLE, self.table))
    }

    fn of_processor(&self, _offset: u64) -> Option<(u32, u64)> {
        None
    }
}

/// What is reached by all operands of a function, the frame left out: type and offset, in the order of the code.
fn reached(built: &Built, function: &str) -> Vec<Result<(u32, u64), Untraced>> {
    let known = Known::of(built);
    let module = built.module();
    let (start, size) = built.symbol(function);
    let code = module.code(start, start + size).unwrap();
    let followed = Prototyped::new(code, start, &known).unwrap();
    let mut found = Vec::new();
    for svma in start..start + size {
        for operand in [Operand::Load, Operand::Store] {
            match followed.access(svma, operand) {
                Ok(Reached { ty, offset, .. }) => found.push(Ok((ty, offset))),
                Err(Untraced::Undecodable | Untraced::NoMemoryOperand | Untraced::Spill) => {}
                Err(reason) => found.push(Err(reason)),
            }
        }
    }
    found.dedup();
    found
}

fn for_each_build(check: impl Fn(&str, &Built)) {
    for compiler in ["cc", "clang"] {
        for level in ["-O1", "-O2"] {
            let flags = [
                level,
                "-fno-inline",
                "-Wno-attributes",
                "-Wno-unknown-attributes",
            ];
            if let Some(built) = build(compiler, "access/kernel.c", &flags) {
                check(&format!("{compiler} {level}"), &built);
            }
        }
    }
}

#[test]
fn pointers_that_a_function_is_given_lead_to_the_types_of_its_operands() {
    for_each_build(|label, built| {
        for (function, last) in [
            ("put", (FILE, 24)),
            ("touch", (INODE, 8)),
            ("open_file", (FILE_POINTER, 0)),
            ("opened", (FILE, 24)),
            ("in_global", (FILE, 24)),
            ("checked", (FILE, 24)),
            ("kept", (INODE, 8)),
            ("with_tracer", (FILE, 24)),
        ] {
            let found = reached(built, function);
            assert_eq!(
                found.last(),
                Some(&Ok(last)),
                "{label} {function}: {found:?}"
            );
            assert!(
                found.iter().all(Result::is_ok),
                "{label} {function}: {found:?}"
            );
        }
    });
}

#[test]
fn what_prototypes_do_not_tell_has_no_type() {
    for_each_build(|label, built| {
        for function in ["either", "of_private", "outer", "tagged"] {
            let found = reached(built, function);
            assert!(
                found.last().unwrap().is_err(),
                "{label} {function}: {found:?}"
            );
        }
    });
}

#[test]
fn code_that_is_cut_or_changed_neither_panics_nor_hangs() {
    let built = build("cc", "access/kernel.c", &["-O2"]).unwrap();
    let known = Known::of(&built);
    let module = built.module();
    let (start, size) = built.symbol("checked");
    let code = module.code(start, start + size).unwrap().to_vec();
    for length in 0..code.len() {
        let _ = Prototyped::new(&code[..length], start, &known);
    }
    for at in 0..code.len() {
        for bit in 0..8 {
            let mut changed = code.clone();
            changed[at] ^= 1 << bit;
            if let Ok(followed) = Prototyped::new(&changed, start, &known) {
                for svma in start..start + size {
                    let _ = followed.access(svma, Operand::Load);
                }
            }
        }
    }
}
