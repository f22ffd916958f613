//! Types written by hand, and the running kernel's.

use super::{sample::Writer, *};
use cohtrace_skips::skipped;

/// `struct outer { int first; struct { union { int deep; }; }; const wrapped inner; }` with
/// `typedef struct { int leaf; int bits: 3; } wrapped`.
fn sample() -> Vec<u8> {
    let mut writer = Writer::default();
    writer.int();
    writer.composite(KIND_UNION, "", &[("deep", 1, 0)]);
    writer.composite(KIND_STRUCT, "", &[("pad", 1, 0), ("", 2, 32)]);
    writer.composite(KIND_STRUCT, "", &[("leaf", 1, 32), ("bits", 1, 67)]);
    writer.modifier(KIND_TYPEDEF, "wrapped", 4);
    writer.modifier(KIND_CONST, "", 5);
    let members = [("first", 1, 0), ("", 3, 64), ("inner", 6, 128)];
    writer.composite(KIND_STRUCT, "outer", &members);
    writer.bytes()
}

#[test]
fn members_are_found_through_anonymous_and_named_structs() {
    let bytes = sample();
    let btf = Btf::parse(&bytes).unwrap();
    let offset = |path: &[&str]| btf.member_offset("outer", path);
    assert_eq!(offset(&["first"]), Some(0));
    assert_eq!(offset(&["deep"]), Some(12));
    assert_eq!(offset(&["inner"]), Some(16));
    assert_eq!(offset(&["inner", "leaf"]), Some(20));
}

#[test]
fn what_is_not_there_is_none() {
    let bytes = sample();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.member_offset("outer", &["absent"]), None);
    assert_eq!(btf.member_offset("outer", &["first", "leaf"]), None);
    assert_eq!(btf.member_offset("outer", &["inner", "bits"]), None);
    assert_eq!(btf.member_offset("outer", &[]), None);
    assert_eq!(btf.member_offset("absent", &["first"]), None);
}

#[test]
fn a_struct_that_contains_itself_ends() {
    let mut writer = Writer::default();
    let members = [("", 1, 0); 200];
    writer.composite(KIND_STRUCT, "loop", &members);
    writer.modifier(KIND_CONST, "", 2);
    writer.composite(KIND_STRUCT, "modifiers", &[("", 2, 0), ("end", 2, 0)]);
    let bytes = writer.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.member_offset("loop", &["absent"]), None);
    assert_eq!(btf.member_offset("modifiers", &["end", "further"]), None);
    assert_eq!(btf.member_offset("modifiers", &["end"]), Some(0));
}

#[test]
fn other_formats_and_newer_kinds_are_refused() {
    assert_eq!(Btf::parse(b"").err(), Some(BtfError::NotBtf));
    assert_eq!(Btf::parse(b"\x7fELF\x02\x01").err(), Some(BtfError::NotBtf));
    let mut swapped = sample();
    swapped.swap(0, 1);
    assert_eq!(Btf::parse(&swapped).err(), Some(BtfError::NotBtf));
    let mut writer = Writer::default();
    writer.modifier(31, "future", 0);
    let future = writer.bytes();
    assert_eq!(Btf::parse(&future).err(), Some(BtfError::UnknownKind(31)));
}

#[test]
fn every_shorter_prefix_is_refused() {
    let bytes = sample();
    for len in 0..bytes.len() {
        assert!(Btf::parse(&bytes[..len]).is_err(), "{len} bytes");
    }
}

proptest::proptest! {
    #[test]
    fn damaged_bytes_give_an_answer_or_none(
        damage in proptest::collection::vec((0usize..400, proptest::num::u8::ANY), 1..6),
    ) {
        let mut bytes = sample();
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok(btf) = Btf::parse(&bytes) {
            for path in [&["deep"][..], &["inner", "leaf"], &["absent"]] {
                let _ = btf.member_offset("outer", path);
            }
        }
    }
}

#[test]
fn the_running_kernel_has_the_fields_the_sampler_needs() {
    let offsets = match KernelOffsets::of_running_kernel() {
        Ok(offsets) => offsets.task,
        Err(error) => return skipped(error),
    };
    // The first 4 KiB of a struct of some 10 KiB, 4-byte aligned; `thread` is its last member.
    let tgid = offsets.tgid.unwrap();
    assert!(tgid % 4 == 0 && tgid > 16 && tgid < 8192, "{tgid}");
    let thread_pointer = offsets.thread_pointer.unwrap();
    assert!(
        thread_pointer % 8 == 0 && thread_pointer > tgid,
        "{thread_pointer}"
    );
}

/// `perf_sample_data` and what points to it, with members at these offsets.
fn samples(fields: &[(&str, u32)]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.int();
    let members: Vec<(&str, u32, u32)> = (fields.iter())
        .map(|(name, offset)| (*name, 1, offset * 8))
        .collect();
    writer.composite(KIND_STRUCT, "perf_sample_data", &members);
    let kern = [("regs", 1, 0), ("data", 1, 64), ("event", 1, 128)];
    writer.composite(KIND_STRUCT, "bpf_perf_event_data_kern", &kern);
    writer.bytes()
}

/// As compiled from include/linux/perf_event.h of each: sample_flags, period, weight, data_src, addr, phys_addr.
#[test]
fn the_layouts_of_three_kernels_are_told_apart() {
    let names = [
        "sample_flags",
        "period",
        "weight",
        "data_src",
        "addr",
        "phys_addr",
    ];
    for (kernel, at) in [
        ("6.1", [0, 8, 24, 32, 48, 176]),
        ("6.12 and 6.18", [0, 8, 104, 112, 184, 192]),
    ] {
        let fields: Vec<(&str, u32)> = names.into_iter().zip(at).collect();
        let bytes = samples(&fields);
        let offsets = MemoryOffsets::of(&Btf::parse(&bytes).unwrap());
        let expected = MemoryOffsets {
            sample: Some(8),
            sample_flags: Some(at[0]),
            period: Some(at[1]),
            weight: Some(at[2]),
            data_src: Some(at[3]),
            addr: Some(at[4]),
            phys_addr: Some(at[5]),
        };
        assert_eq!(offsets, expected, "{kernel}");
    }
}

#[test]
fn a_kernel_without_sample_flags_has_the_other_fields() {
    // Before 6.1: addr, raw, br_stack, period, weight, txn, data_src.
    let bytes = samples(&[
        ("addr", 0),
        ("period", 24),
        ("weight", 32),
        ("data_src", 48),
    ]);
    let offsets = MemoryOffsets::of(&Btf::parse(&bytes).unwrap());
    assert_eq!((offsets.sample_flags, offsets.phys_addr), (None, None));
    assert_eq!((offsets.addr, offsets.data_src), (Some(0), Some(48)));
    assert_eq!(offsets.sample, Some(8));
}

#[test]
fn types_without_samples_give_no_offset() {
    let bytes = sample();
    let offsets = MemoryOffsets::of(&Btf::parse(&bytes).unwrap());
    assert_eq!(offsets, MemoryOffsets::default());
}

#[test]
fn the_running_kernel_has_the_fields_of_a_sample_apart_from_each_other() {
    let offsets = match KernelOffsets::of_running_kernel() {
        Ok(offsets) => offsets.memory,
        Err(error) => return skipped(error),
    };
    let fields = [
        offsets.period,
        offsets.addr,
        offsets.weight,
        offsets.data_src,
        offsets.phys_addr,
    ];
    let mut fields = fields.map(Option::unwrap);
    fields.sort_unstable();
    assert!(
        fields
            .iter()
            .all(|offset| offset % 8 == 0 && *offset < 1024)
    );
    assert!(
        fields.windows(2).all(|two| two[1] - two[0] >= 8),
        "{fields:?}"
    );
    assert_eq!(offsets.sample, Some(8));
}
