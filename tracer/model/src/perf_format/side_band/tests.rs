//! What is put is read, and nothing past the end.

use super::*;
use crate::perf_format::{
    fields::ByteOrder,
    frame::{Frame, HEADER_BYTES},
    sample_type as sample,
};

const TRAILER: Trailer = Trailer {
    task: Some((7, 8)),
    time: Some(9),
    id: None,
    cpu: Some(3),
};
const SAMPLE_TYPE: u64 = sample::TID | sample::TIME | sample::CPU;

fn records() -> Vec<SideBand<'static>> {
    let task = Task {
        pid: 1,
        parent_pid: 2,
        tid: 3,
        parent_tid: 4,
        time: Some(5),
    };
    let place = FileIdentity::Inode {
        major: 8,
        minor: 1,
        inode: 99,
        generation: 5,
    };
    let new = |file| Details::New {
        file,
        protection: 5,
        flags: 2,
    };
    let mapping = |details| {
        SideBand::Mapping(MappingRecord {
            pid: 11,
            tid: 12,
            start: 0x1_0000_1000,
            len: 0x2000,
            file_offset: 0x3000,
            details,
            name: b"/lib/x.so",
        })
    };
    let comm = |exec| SideBand::Comm {
        pid: 20,
        tid: 21,
        name: b"worker",
        exec,
    };
    vec![
        mapping(Details::Old { data: false }),
        mapping(Details::Old { data: true }),
        mapping(new(place)),
        mapping(new(FileIdentity::BuildId(&[1; 20]))),
        mapping(new(FileIdentity::BuildId(&[2; 8]))),
        mapping(new(FileIdentity::BuildId(&[]))),
        comm(false),
        comm(true),
        SideBand::Fork(task),
        SideBand::Exit(task),
        SideBand::Lost {
            event: 1,
            records: 44,
        },
        SideBand::LostSamples(45),
    ]
}

#[test]
fn what_is_put_is_read() {
    for record in records() {
        let mut out = Vec::new();
        record.put(&mut out, flag::USER, &TRAILER, SAMPLE_TYPE);
        assert_eq!(out.len() % 8, 0);
        let mut fields = Fields::new(&out, ByteOrder::Little);
        let frame = Frame::take(&mut fields).unwrap();
        assert_eq!(
            (frame.len, frame.misc & flag::CPU_MODE),
            (out.len(), flag::USER)
        );
        let (body, trailer) = Trailer::split(fields, SAMPLE_TYPE).unwrap();
        assert_eq!(trailer, TRAILER);
        assert_eq!(
            SideBand::read(frame.kind, frame.misc, body),
            Ok(Some(record))
        );
    }
}

#[test]
fn a_record_cut_before_its_name_is_short_and_another_kind_is_none() {
    for record in records() {
        let mut out = Vec::new();
        record.put(&mut out, 0, &TRAILER, 0);
        let (kind, misc) = record.kind_and_flags();
        let fixed = match record {
            SideBand::Mapping(MappingRecord {
                details: Details::New { .. },
                ..
            }) => 64,
            SideBand::Mapping(_) => 32,
            // The time of a task may be missing.
            SideBand::Fork(_) | SideBand::Exit(_) | SideBand::Lost { .. } => 16,
            SideBand::Comm { .. } | SideBand::LostSamples(_) => 8,
        };
        for len in 0..fixed {
            let body = &out[HEADER_BYTES..HEADER_BYTES + len];
            let read = SideBand::read(kind, misc, Fields::new(body, ByteOrder::Little));
            assert!(read.is_err(), "{record:?} of {len} bytes");
        }
    }
    let nothing = Fields::new(&[], ByteOrder::Big);
    assert_eq!(SideBand::read(kind::THROTTLE, 0, nothing), Ok(None));
}
