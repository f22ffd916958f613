use super::*;
use crate::machine::btf::{
    KIND_TYPEDEF,
    sample::{Writer, types as sample},
};
use cohtrace_skips::{skipped, skipped_core};

const OUTER: u32 = 7;
const TYPEDEF: u32 = 11;
const VOLATILE: u32 = 12;

#[test]
fn a_counter_is_called_by_the_member_that_has_it() {
    let mut writer = Writer::default();
    writer.int();
    writer.sized(KIND_STRUCT, "", 4, &[("counter", 1, 0, 0)]);
    writer.modifier(KIND_TYPEDEF, "atomic_t", 2);
    writer.sized(KIND_STRUCT, "refcount_struct", 4, &[("refs", 3, 0, 0)]);
    writer.modifier(KIND_TYPEDEF, "refcount_t", 4);
    writer.modifier(KIND_TYPEDEF, "plain_t", 2);
    let members = [
        ("usage", 5, 0, 0),
        ("plain", 6, 32, 0),
        ("atomic", 3, 64, 0),
    ];
    writer.sized(KIND_STRUCT, "task", 12, &members);
    let bytes = writer.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let path = |offset| btf.field(7, offset, 4);
    assert_eq!(path(0).as_deref(), Some(".usage"));
    assert_eq!(path(4).as_deref(), Some(".plain.counter"));
    assert_eq!(path(8).as_deref(), Some(".atomic"));
    assert!(btf.is_whole(7, 0, 4) && !btf.is_whole(7, 0, 2) && !btf.is_whole(7, 12, 4));
    assert!(btf.is_whole(7, 0, 8) && !btf.is_whole(7, 2, 4));
}

#[test]
fn bytes_are_named_through_structs_unions_arrays_and_bit_fields() {
    let bytes = sample().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    for (offset, size, path) in [
        (0, 4, ".first"),
        (8, 8, ".whole"),
        (8, 4, ".half[0]"),
        (12, 4, ".half[1]"),
        (14, 1, ".whole or .half[1]"),
        (16, 4, ".in.a"),
        (24, 8, ".in.b"),
        (20, 4, "between .in.a and .in.b"),
        (32, 1, ".flags and .mode"),
        (33, 1, "between .mode and .slots"),
        (4, 2, "between .first and .in"),
        (40, 4, ".slots[0].a"),
        (64, 8, ".slots[1].b"),
        (64, 16, ".slots[1].b and .next"),
        (40, 32, ".slots[0].a to .slots[1].b"),
        (72, 8, ".next"),
    ] {
        for ty in [OUTER, TYPEDEF, VOLATILE] {
            let found = btf.field(ty, offset, size);
            assert_eq!(found.as_deref(), Some(path), "{offset} {size}");
        }
    }
    assert_eq!(btf.field(3, 16, 8).as_deref(), Some("[2]"));
    assert_eq!(btf.field(16, 40, 8).as_deref(), Some("[1][1]"));
    // A number has no parts.
    assert_eq!(btf.field(2, 0, 8).as_deref(), Some(""));
}

#[test]
fn members_in_one_place_are_chosen_by_the_part_of_an_access_that_is_there() {
    let mut writer = Writer::default();
    writer.int();
    writer.array(1, 2);
    writer.entry("long", KIND_INT << 24, &[8, 64]);
    writer.entry("char", KIND_INT << 24, &[1, 8]);
    let halves = [("whole", 3, 0, 0), ("half", 2, 0, 0)];
    writer.sized(KIND_UNION, "", 8, &halves);
    let bits = [("bits", 1, 0, 3), ("byte", 4, 0, 0)];
    writer.sized(KIND_UNION, "", 4, &bits);
    let members = [
        ("first", 1, 0, 0),
        ("", 5, 64, 0),
        ("next", 3, 128, 0),
        ("", 6, 192, 0),
        ("last", 1, 224, 0),
        ("end", 1, 256, 0),
    ];
    writer.sized(KIND_STRUCT, "outer", 40, &members);
    writer.array(7, 2);
    let bytes = writer.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let path = |offset, size| btf.field(7, offset, size);
    assert_eq!(path(8, 16).as_deref(), Some(".whole and .next"));
    assert_eq!(path(12, 8).as_deref(), Some(".half[1] and .next"));
    // Bits are accessed by the bytes that they are in.
    assert_eq!(path(24, 1).as_deref(), Some(".bits or .byte"));
    // What has no name of its own is nobody's neighbour.
    assert_eq!(path(4, 4).as_deref(), Some("between .first and .next"));
    let hole = btf.field(8, 36, 4);
    assert_eq!(hole.as_deref(), Some("between [0].end and [1]"));
}

#[test]
fn what_lies_beyond_or_has_no_size_has_no_name() {
    let bytes = sample().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.field(OUTER, 80, 1), None);
    assert_eq!(btf.field(OUTER, u64::MAX, 8), None);
    assert_eq!(btf.field(OUTER, 0, u64::MAX), None);
    assert_eq!(btf.field(0, 0, 1), None);
    assert_eq!(btf.field(9999, 0, 1), None);
    // A variable or a section is no type.
    assert_eq!(btf.field(13, 0, 1), None);
    assert_eq!(btf.field(15, 0, 1), None);
}

#[test]
fn types_are_called_as_c_calls_them() {
    let mut writer = sample();
    writer.modifier(KIND_FUNC_PROTO, "", 1);
    writer.modifier(KIND_PTR, "", 19);
    writer.modifier(KIND_CONST, "", 1);
    writer.modifier(KIND_PTR, "", 21);
    writer.modifier(KIND_PTR, "", 0);
    writer.entry("gone", 1 << 31 | KIND_FWD << 24, &[0]);
    writer.modifier(KIND_CONST, "", 10);
    writer.array(22, 3);
    let bytes = writer.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    for (ty, name) in [
        (0, "void"),
        (2, "long"),
        (4, "(anonymous union)"),
        (OUTER, "struct outer"),
        (8, "const struct inner"),
        (9, "struct inner [2]"),
        (10, "struct outer *"),
        (TYPEDEF, "outer_t"),
        (VOLATILE, "volatile outer_t"),
        (16, "long [2][4]"),
        (20, "int (*)()"),
        (22, "const int *"),
        (23, "void *"),
        (24, "union gone"),
        (25, "struct outer *const"),
        (26, "const int * [3]"),
    ] {
        assert_eq!(btf.type_name(ty), name);
    }
}

#[test]
fn members_are_listed_with_those_of_anonymous_ones() {
    let bytes = sample().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let members = btf.members(VOLATILE);
    let listed: Vec<_> = members
        .iter()
        .map(|member| (&*member.name, member.offset, member.size))
        .collect();
    let wanted = [
        ("first", 0, 4),
        ("whole", 8, 8),
        ("half", 8, 8),
        ("in", 16, 16),
        ("flags", 32, 1),
        ("mode", 32, 1),
        ("slots", 40, 32),
        ("next", 72, 8),
    ];
    assert_eq!(listed, wanted);
    assert_eq!(btf.members(1), []);
}

#[test]
fn bit_fields_of_the_older_encoding_are_told_apart_too() {
    let mut writer = Writer::default();
    writer.int();
    // An `int` of three bits; without the kind flag, places are bits.
    writer.entry("int", KIND_INT << 24, &[4, 3]);
    writer.composite(
        KIND_STRUCT,
        "old",
        &[("low", 2, 0), ("high", 2, 8), ("word", 1, 32)],
    );
    let bytes = writer.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.field(3, 0, 1).as_deref(), Some(".low"));
    assert_eq!(btf.field(3, 1, 1).as_deref(), Some(".high"));
    assert_eq!(btf.field(3, 0, 4).as_deref(), Some(".low and .high"));
    assert_eq!(btf.field(3, 4, 4).as_deref(), Some(".word"));
}

/// Asks everything of every type.
fn ask(btf: &Btf<'_>) {
    for ty in 0..24 {
        let _ = (btf.type_name(ty), btf.size(ty), btf.members(ty));
        for offset in [0, 8, 33, 79] {
            for size in [1, 8, 64] {
                let _ = btf.field(ty, offset, size);
            }
        }
    }
    let _ = btf.sections();
}

#[test]
fn types_that_contain_themselves_and_arrays_without_end_are_answered() {
    let mut writer = Writer::default();
    writer.int();
    writer.sized(KIND_STRUCT, "loop", 64, &[("", 2, 0, 0); 40]);
    writer.sized(KIND_UNION, "turn", 64, &[("x", 3, 0, 0); 40]);
    writer.array(4, u32::MAX);
    writer.array(1, u32::MAX);
    writer.array(5, u32::MAX);
    writer.array(6, u32::MAX);
    writer.sized(
        KIND_STRUCT,
        "huge",
        u32::MAX,
        &[("x", 7, 0, 0), ("y", 7, 0xff_ffff, 0)],
    );
    writer.modifier(KIND_PTR, "", 9);
    writer.modifier(KIND_CONST, "", 10);
    writer.section(".data", &[[11, u32::MAX, u32::MAX]]);
    let bytes = writer.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    ask(&btf);
    assert_eq!(btf.field(2, 0, 8), None);
    assert_eq!(btf.field(5, 4, 4).as_deref(), Some("[1]"));
}

#[test]
fn every_shorter_prefix_is_refused() {
    let bytes = sample().bytes();
    for len in 0..bytes.len() {
        assert!(Btf::owned(bytes[..len].to_vec()).is_err(), "{len} bytes");
    }
    ask(&Btf::owned(bytes).unwrap());
}

proptest::proptest! {
    #[test]
    fn damaged_bytes_are_answered_all_the_same(
        damage in proptest::collection::vec((0usize..1000, proptest::num::u8::ANY), 1..6),
    ) {
        let mut bytes = sample().bytes();
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok(btf) = Btf::owned(bytes) {
            ask(&btf);
        }
    }
}

/// Offset, bytes and name of the plain members that pahole shows of a struct.
fn shown(text: &str) -> Vec<(u64, u64, String)> {
    let members = text.lines().filter_map(|line| {
        // Members of the struct itself are one tab in.
        let line = line
            .strip_prefix('\t')
            .filter(|line| !line.starts_with('\t'))?;
        let (declared, place) = line.split_once("/*")?;
        let declared = declared.trim_end().strip_suffix(';')?;
        let mut numbers = place.trim_end_matches("*/").split_whitespace();
        let (offset, size) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        let name = declared
            .split_whitespace()
            .next_back()?
            .trim_start_matches('*');
        let is_plain = name
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_');
        (is_plain && !declared.contains(':')).then(|| (offset, size, name.to_owned()))
    });
    members.collect()
}

#[test]
fn the_running_kernels_structs_are_as_pahole_shows_them() {
    const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
    let Ok(bytes) = std::fs::read(VMLINUX) else {
        return skipped(format_args!("{VMLINUX} cannot be read"));
    };
    let btf = Btf::owned(bytes).unwrap();
    let sections = btf.sections();
    let per_cpu = sections.iter().find(|(name, _)| name == ".data..percpu");
    let runqueues = per_cpu.and_then(|(_, variables)| {
        variables
            .iter()
            .find(|variable| variable.name == "runqueues")
    });
    let Some(runqueues) = runqueues else {
        return skipped("no runqueues for each CPU are described");
    };
    assert_eq!(btf.type_name(runqueues.type_id), "struct rq");
    assert_eq!(btf.size(runqueues.type_id), Some(u64::from(runqueues.size)));
    let within = btf.member_offset("rq", &["cfs", "nr_queued"]);
    let within = within.or_else(|| btf.member_offset("rq", &["cfs", "nr_running"]));
    let path = btf
        .field(runqueues.type_id, u64::from(within.unwrap()), 4)
        .unwrap();
    assert!(path.starts_with(".cfs.nr_"), "{path}");
    let pahole = std::process::Command::new("pahole")
        .args(["-C", "rq", VMLINUX])
        .output();
    let Ok(pahole) = pahole.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    else {
        return skipped_core("pahole is not installed");
    };
    let members = shown(&pahole);
    assert!(members.len() > 20, "{pahole}");
    let listed = btf.members(runqueues.type_id);
    for (offset, size, name) in members {
        let ours = listed.iter().find(|member| member.name == name).unwrap();
        assert_eq!((ours.offset, ours.size), (offset, size), "{name}");
        let path = btf
            .field(runqueues.type_id, offset, size)
            .unwrap_or_default();
        assert!(
            path.starts_with(&format!(".{name}")) || size == 0,
            "{name}: {path}"
        );
    }
}
