//! Damaged and cut recordings: an error or a caveat, never a panic; and whole ones before the damage.

use std::path::Path;

use super::{layouts::COMMON, *};
use crate::perf_format::fields::ByteOrder;
use crate::perf_format::sample_type as field;

/// A little of everything, in some 2,000 bytes.
fn everything(order: ByteOrder) -> Recording {
    let events = vec![
        TestEvent {
            read_format: 12,
            branches: 1 << 17,
            user_registers: 3,
            interrupt_registers: 1,
            ..TestEvent::new(
                COMMON
                    | field::IDENTIFIER
                    | field::READ
                    | field::CALLCHAIN
                    | field::RAW
                    | field::BRANCH_STACK
                    | field::REGS_USER
                    | field::STACK_USER
                    | field::REGS_INTR
                    | field::AUX,
            )
        }
        .id(1),
        TestEvent::new(COMMON | field::IDENTIFIER).id(2),
    ];
    let mut recording = Recording::new(order, events);
    recording.text_feature(3, "host").text_feature(6, "x86_64");
    let at = |id, n| TestSample {
        id,
        ..TestSample::load(n)
    };
    let mut mapping = recording.words();
    mapping.u32(100).u32(100).all(&[0x1000, 0x1000, 0]);
    mapping
        .u32(8)
        .u32(1)
        .all(&[7, 0])
        .u32(5)
        .u32(2)
        .name("/bin/x");
    let body = mapping.bytes;
    recording.about(0, (10, 2), &body, &at(1, 0));
    let mut comm = recording.words();
    comm.u32(100).u32(100).name("x");
    let body = comm.bytes;
    recording.about(1, (3, 0), &body, &at(2, 1));
    recording
        .sample(0, &at(1, 2))
        .sample(1, &at(2, 3))
        .end_round();
    let body = recording.words().all(&[1, 5]).bytes.clone();
    recording.about(1, (2, 0), &body, &at(2, 4));
    recording.sample(1, &at(2, 5)).end_round();
    recording
}

/// Found by the fuzzer: in a release build the sum became a small number, without a word.
#[test]
fn losses_that_no_counter_holds_are_as_many_as_one_holds() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON).id(1)]);
    let of_event = |n| TestSample {
        id: 1,
        ..TestSample::load(n)
    };
    recording.sample(0, &of_event(1)).end_round();
    for n in [2, 3] {
        let body = recording.words().all(&[1, u64::MAX]).bytes.clone();
        recording.about(0, (2, 0), &body, &of_event(n));
    }
    recording.sample(0, &of_event(4)).end_round();
    let read = read(&recording.file()).unwrap();
    assert_eq!(read.all.tally.lost_total(), u64::MAX);
    assert_eq!(read.all.tally.produced, u64::MAX);
    assert_eq!(read.all.accesses.len(), 2);
}

/// With `UPDATE_EXPECT=1`, writes them.
#[test]
fn what_the_fuzzer_begins_with_is_what_is_made_here() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/perf_data");
    let packed = |kind| {
        let mut recording = everything(ByteOrder::Little);
        recording.compressed(kind);
        recording
    };
    for (name, bytes) in [
        ("file", everything(ByteOrder::Little).file()),
        ("file-big-endian", everything(ByteOrder::Big).file()),
        ("pipe", everything(ByteOrder::Little).pipe()),
        ("compressed-file", packed(81).file()),
        ("compressed-pipe", packed(83).pipe()),
    ] {
        let path = seeds.join(name);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::create_dir_all(&seeds).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        // How well zstd packs may change with its version; what is in it may not.
        let committed = std::fs::read(&path).unwrap();
        assert_eq!(read(&committed).unwrap(), read(&bytes).unwrap(), "{name}");
    }
}

#[test]
fn every_byte_damaged_in_several_ways_gives_an_error_or_a_reading() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let whole = everything(order);
        let mut packed = everything(order);
        packed.compressed(83);
        for bytes in [whole.file(), whole.pipe(), packed.file(), packed.pipe()] {
            assert_eq!(read(&bytes).unwrap().all.accesses.len(), 3);
            for at in 0..bytes.len() {
                for flip in [1, 0x80, 0xff, 0x10] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    if let Ok(read) = read(&damaged) {
                        assert!(read.all.accesses.len() <= 4, "byte {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_file_cut_anywhere_gives_what_is_whole_and_says_that_it_is_cut() {
    let whole = everything(ByteOrder::Little);
    let all = read(&whole.file()).unwrap();
    let data_end = {
        let bytes = whole.file();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        (word(40) + word(48)) as usize
    };
    let bytes = whole.file();
    let mut seen = 0;
    for len in 0..bytes.len() {
        let Ok(cut) = read(&bytes[..len]) else {
            assert_eq!(seen, 0, "{len} bytes are an error after fewer were not");
            continue;
        };
        let found = cut.all.accesses.len();
        assert!(found >= seen && cut.all.accesses[..] == all.all.accesses[..found]);
        seen = found;
        if len < data_end {
            assert!(cut.description.cut_short.is_some(), "{len} bytes");
        } else {
            assert_eq!(cut.all.accesses, all.all.accesses);
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn a_pipe_cut_anywhere_gives_what_is_whole() {
    let mut packed = everything(ByteOrder::Little);
    packed.compressed(83);
    for bytes in [everything(ByteOrder::Little).pipe(), packed.pipe()] {
        let mut seen = 0;
        for len in 16..=bytes.len() {
            if let Ok(cut) = read(&bytes[..len]) {
                assert!(cut.all.accesses.len() >= seen);
                seen = cut.all.accesses.len();
            }
        }
        assert_eq!(seen, 3);
    }
}

#[test]
fn a_record_of_no_length_ends_the_reading_there() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    recording.sample(0, &TestSample::load(1));
    recording.bytes(&[0; 8]);
    recording.sample(0, &TestSample::load(2));
    let read = read(&recording.file()).unwrap();
    assert_eq!(read.all.accesses.len(), 1);
    assert!(
        read.description
            .cut_short
            .unwrap()
            .contains("damaged at byte")
    );
}

#[test]
fn records_shorter_than_their_event_says_are_counted() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    recording.record(9, 2, &[0; 16]).record(3, 0, &[0; 8]);
    recording.sample(0, &TestSample::load(1));
    let read = read(&recording.file()).unwrap();
    assert_eq!(read.all.tally.samples, 1);
    assert!(says(&read, "2 records are shorter"));
}

#[test]
fn lengths_that_no_memory_holds_are_not_believed() {
    let recording = everything(ByteOrder::Little);
    // Attributes, records, ids, and the first section of the header.
    for at in [32, 48, 104 + 120] {
        let mut bytes = recording.file();
        bytes[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let _ = read(&bytes);
        bytes[at..at + 8].copy_from_slice(&(1u64 << 62).to_le_bytes());
        let _ = read(&bytes);
    }
}

proptest::proptest! {
    #[test]
    fn any_records_are_read_or_refused(body in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
        let mut recording = everything(ByteOrder::Little);
        recording.bytes(&body);
        let _ = read(&recording.file());
        let _ = read(&recording.pipe());
    }
}
