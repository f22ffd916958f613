//! Types as their declaration nests them: against what the source says, and against `pahole`.

use cohtrace_skips::skipped_core;
use std::{fmt::Write, process::Command};

use expect_test::{Expect, expect};
use symbolizer::{Module, Role, TypeKind, TypeTree};

use crate::toolchain::{Built, build, build_all};

fn tree_of(built: &Built, module: &Module, name: &str) -> TypeTree {
    let object = module.object(built.symbol(name).0).unwrap();
    module.type_tree(object.ty.unwrap()).unwrap()
}

/// One line per part and hole, offsets from the start of the whole.
fn text(tree: &TypeTree) -> String {
    let mut out = String::new();
    let alignment = tree.alignment.map_or("?".into(), |n| n.to_string());
    write!(out, "{}, aligned to {alignment}", heading(tree)).unwrap();
    out.push('\n');
    inside(&mut out, tree, 0, 1);
    assert!(!tree.is_cut);
    out
}

fn heading(tree: &TypeTree) -> String {
    let size = tree.size.map_or("?".into(), |n| n.to_string());
    let stride = match &tree.kind {
        TypeKind::Array { stride, .. } => {
            let count = tree.count().map_or("?".into(), |n| n.to_string());
            format!(", {count} every {stride}")
        }
        TypeKind::Union => ", union".into(),
        TypeKind::Variants => ", variants".into(),
        TypeKind::Scalar | TypeKind::Structure => String::new(),
    };
    format!("{}: {size} bytes{stride}", tree.type_name)
}

fn inside(out: &mut String, tree: &TypeTree, base: u64, depth: usize) {
    let indent = "  ".repeat(depth);
    let mut holes = tree.holes.iter().peekable();
    for part in &tree.parts {
        let first_bit = part.bits.map_or(part.offset * 8, |(first, _)| first);
        while let Some(hole) = holes.next_if(|hole| hole.first_bit < first_bit) {
            writeln!(
                out,
                "{indent}{}: hole of {} bits",
                base + hole.first_bit / 8,
                hole.bits
            )
            .unwrap();
        }
        let role = match part.role {
            Role::Member if part.name.is_empty() => "anonymous ".into(),
            Role::Member => format!("{} ", part.name),
            Role::Variant => format!("variant {} ", part.name),
            Role::Base => "base ".into(),
            Role::Element => "element ".into(),
        };
        let bits = part.bits.map_or(String::new(), |(first, count)| {
            format!(", bits {}+{count}", base * 8 + first)
        });
        let alignment = part
            .alignment
            .map_or(String::new(), |n| format!(", alignas {n}"));
        let at = base + part.offset;
        writeln!(
            out,
            "{indent}{at}: {role}{}{bits}{alignment}",
            heading(&part.tree)
        )
        .unwrap();
        inside(out, &part.tree, at, depth + 1);
    }
    for hole in holes {
        writeln!(
            out,
            "{indent}{}: hole of {} bits",
            base + hole.first_bit / 8,
            hole.bits
        )
        .unwrap();
    }
    if tree.has_virtual_base {
        writeln!(out, "{indent}virtual bases").unwrap();
    }
}

fn check(built: &[(String, Built)], names: &[&str], expected: &Expect) {
    let text_of = |built: &Built| -> String {
        let module = built.module();
        let trees = names
            .iter()
            .map(|name| text(&tree_of(built, &module, name)));
        trees.collect()
    };
    let Some((_, first)) = built.first() else {
        return;
    };
    let first = text_of(first);
    expected.assert_eq(&first);
    // gcc says nothing of `_Alignas` on a member before DWARF 5.
    let alike = |text: &str| {
        text.replace(", alignas 32", "")
            .replace(", alignas 2", "")
            .replace("aligned to 32", "aligned to ?")
    };
    for (label, built) in built {
        assert_eq!(alike(&text_of(built)), alike(&first), "{label}");
    }
}

#[test]
fn a_c_struct_shows_nesting_bit_fields_and_holes() {
    let built = build_all(&["cc", "clang"], "tree.c", &[]);
    check(
        &built,
        &["session", "plain", "open_end", "route"],
        &expect![[r#"
            struct session: 128 bytes, aligned to 32
              0: state char: 1 bytes
              1: hole of 56 bits
              8: id long: 8 bytes
              16: urgent unsigned int: 4 bytes, bits 128+1
              16: hole of 2 bits
              16: level unsigned int: 4 bytes, bits 131+3
              16: hole of 2 bits
              17: flags unsigned char: 1 bytes, bits 136+5
              17: hole of 19 bits
              20: from struct point: 8 bytes
                20: tag char: 1 bytes
                21: hole of 24 bits
                24: x int: 4 bytes
              28: path struct point [3]: 24 bytes, 3 every 8
                28: element struct point: 8 bytes
                  28: tag char: 1 bytes
                  29: hole of 24 bits
                  32: x int: 4 bytes
              52: hole of 32 bits
              56: anonymous union (anonymous): 8 bytes, union
                56: whole uint64_t: 8 bytes
                56: anonymous struct (anonymous): 8 bytes
                  56: low uint32_t: 4 bytes
                  60: high uint16_t: 2 bytes
                  62: hole of 16 bits
              64: name char [20]: 20 bytes, 20 every 1, alignas 32
                64: element char: 1 bytes
              84: grid short [2][3]: 12 bytes, 6 every 2
                84: element short: 2 bytes
              96: tail char: 1 bytes
              97: hole of 248 bits
            struct plain: 48 bytes, aligned to 8
              0: a char: 1 bytes
              1: hole of 56 bits
              8: inner struct (anonymous): 16 bytes
                8: b long: 8 bytes
                16: c char: 1 bytes
                17: hole of 56 bits
              24: d char: 1 bytes
              25: hole of 56 bits
              32: e long *: 8 bytes
              40: f char [3]: 3 bytes, 3 every 1
                40: element char: 1 bytes
              43: hole of 40 bits
            struct open_end: 4 bytes, aligned to 4
              0: length int: 4 bytes
              4: points struct point []: ? bytes, ? every 8
                4: element struct point: 8 bytes
                  4: tag char: 1 bytes
                  5: hole of 24 bits
                  8: x int: 4 bytes
            struct point [2][4]: 64 bytes, 8 every 8, aligned to 4
              0: element struct point: 8 bytes
                0: tag char: 1 bytes
                1: hole of 24 bits
                4: x int: 4 bytes
        "#]],
    );
}

#[test]
fn a_class_shows_bases_unions_and_whose_padding_is_used() {
    let built = build_all(&["c++", "clang++"], "tree.cpp", &[]);
    check(
        &built,
        &["reused", "shape", "anywhere"],
        &expect![[r#"
        Reused: 16 bytes, aligned to 8
          0: base Counted: 16 bytes
            0: big long: 8 bytes
            8: small int: 4 bytes
          12: own int: 4 bytes
        Shape: 80 bytes, aligned to 8
          0: base Empty: 1 bytes
          0: vptr int (**)(): 8 bytes
          8: base Counted: 16 bytes
            8: big long: 8 bytes
            16: small int: 4 bytes
            20: hole of 27 bits
          20: visible bool: 1 bytes, bits 160+1
          20: layer unsigned int: 4 bytes, bits 161+4
          24: anonymous (anonymous union): 8 bytes, union
            24: radius double: 8 bytes
            24: box (anonymous struct): 8 bytes
              24: width float: 4 bytes
              28: height float: 4 bytes
          32: users std::atomic<short>: 2 bytes, alignas 2
          34: hole of 48 bits
          40: lock std::mutex: 40 bytes
        Anywhere: 32 bytes, aligned to 8
          0: vptr int (**)(): 8 bytes
          8: mine char: 1 bytes
          virtual bases
    "#]],
    );
}

#[test]
fn rust_types_show_variants_tuples_and_the_order_in_memory() {
    let flags = ["-g", "--edition=2024", "--crate-name=demo"];
    let built: Vec<_> = build("rustc", "tree.rs", &flags)
        .map(|built| ("rustc".into(), built))
        .into_iter()
        .collect();
    check(
        &built,
        &["REORDERED", "EVENT", "PADDED"],
        &expect![[r#"
        demo::Reordered: 24 bytes, aligned to 8
          0: second u64: 8 bytes, alignas 8
          8: third (u16, u32): 8 bytes, alignas 4
            8: 0 u16: 2 bytes, alignas 2
            10: hole of 16 bits
            12: 1 u32: 4 bytes, alignas 4
          16: first u8: 1 bytes, alignas 1
          17: hole of 56 bits
        demo::Event: 24 bytes, variants, aligned to 8
          0: discriminant u32: 4 bytes, alignas 4
          0: variant Nothing demo::Event::Nothing: 24 bytes, alignas 8
            4: hole of 160 bits
          0: variant Moved demo::Event::Moved: 24 bytes, alignas 8
            4: hole of 32 bits
            8: x f32: 4 bytes, alignas 4
            12: hole of 32 bits
            16: y f64: 8 bytes, alignas 8
          0: variant Typed demo::Event::Typed: 24 bytes, alignas 8
            4: hole of 32 bits
            8: 0 u8: 1 bytes, alignas 1
            9: hole of 8 bits
            10: 1 u16: 2 bytes, alignas 2
            12: hole of 96 bits
        [demo::Padded; 2]: 128 bytes, 2 every 64, aligned to 64
          0: element demo::Padded: 64 bytes
            0: 0 core::sync::atomic::AtomicU64: 8 bytes, alignas 8
            8: hole of 448 bits
    "#]],
    );
}

/// A named member: its offset, of a bit-field its first bit, its size.
type Place = (String, u64, Option<u64>, u64);

/// What `pahole` says of one type: each named member's offset, first bit and size, and the bytes of holes and padding.
fn pahole(built: &Built, class: &str) -> Option<(Vec<Place>, u64)> {
    let output = Command::new("pahole")
        .arg("-C")
        .arg(class)
        .arg(&built.path)
        .output();
    let Ok(output) = output else {
        skipped_core(
            "pahole is not installed (package dwarves); offsets were not compared with it",
        );
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains('{'),
        "{class}: {text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut members = Vec::new();
    let mut unused = 0;
    for line in text.lines() {
        let Some((code, comment)) = line.split_once("/*") else {
            continue;
        };
        let comment = comment.trim_end_matches("*/").trim();
        if code.trim().is_empty() {
            let words: Vec<&str> = comment.split_whitespace().collect();
            match &words[..] {
                ["XXX", n, "bytes" | "byte", "hole,", ..] | ["padding:", n] => {
                    unused += n.parse::<u64>().unwrap();
                }
                _ => {}
            }
            continue;
        }
        let name = code.trim().trim_end_matches(';').trim();
        let name = name.split(" __attribute__").next().unwrap_or_default();
        let pointed = name
            .split_once("(*")
            .and_then(|(_, rest)| rest.split(')').next());
        let name = pointed.unwrap_or(name);
        let name = name.split(':').next().unwrap_or_default().trim();
        let name = name.split('[').next().unwrap_or_default();
        let name = name.rsplit([' ', '*', '}']).next().unwrap_or_default();
        let numbers = comment.replace(':', " : ");
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let number = |at: usize| numbers.get(at).and_then(|n| n.parse::<u64>().ok());
        let found = if numbers.get(1) == Some(&":") {
            (number(0), number(2), number(3))
        } else {
            (number(0), None, number(1))
        };
        if let (Some(offset), bit, Some(size)) = found
            && !name.is_empty()
        {
            members.push((name.to_owned(), offset, bit, size));
        }
    }
    Some((members, unused))
}

/// The same of ours: members of anonymous ones belong to what is around them.
fn ours(tree: &TypeTree, base: u64, members: &mut Vec<Place>) {
    for part in &tree.parts {
        let at = base + part.offset;
        if part.name.is_empty() || part.tree.type_name.contains("anonymous") {
            ours(&part.tree, at, members);
        }
        if !part.name.is_empty() {
            let first = part.bits.map(|(first, _)| base * 8 + first);
            members.push((part.name.clone(), at, first, part.tree.size.unwrap_or(0)));
        }
    }
}

#[test]
fn pahole_gives_every_member_the_same_place() {
    let mut compared = 0;
    let fixtures = [
        ("tree.c", vec!["session", "plain", "open_end"]),
        (
            "data.c",
            vec!["everything", "packed_pair", "aligned", "table"],
        ),
    ];
    for (fixture, types) in fixtures {
        let built = build("cc", fixture, &["-g", "-O0"]).unwrap();
        let module = built.module();
        for class in types {
            let Some((theirs, unused)) = pahole(&built, class) else {
                return;
            };
            let tree = tree_of(&built, &module, class);
            let mut own = Vec::new();
            ours(&tree, 0, &mut own);
            let mut bit_fields = false;
            for (name, offset, bit, size) in theirs {
                let of_name = own.iter().find(|(own, ..)| *own == name);
                let (_, own_offset, first_bit, own_size) =
                    of_name.unwrap_or_else(|| panic!("{class}.{name}: {own:?}"));
                match (bit, first_bit) {
                    // Theirs counts from the start of the storage unit.
                    (Some(bit), Some(first)) => {
                        assert_eq!(offset * 8 + bit, *first, "{class}.{name}");
                    }
                    (None, None) => {
                        assert_eq!((offset, size), (*own_offset, *own_size), "{class}.{name}");
                    }
                    _ => panic!("{class}.{name}: only one of us sees a bit-field"),
                }
                bit_fields |= bit.is_some();
                compared += 1;
            }
            if !bit_fields {
                let holes: u64 = tree.holes.iter().map(|hole| hole.bits / 8).sum();
                assert_eq!(holes, unused, "{class}: {:?}", tree.holes);
            }
        }
    }
    assert!(compared > 25, "{compared}");
}
