//! The kernel's side-band records, from bytes to meaning.
//!
//! Their layouts are in [`crate::perf_format`]; here they are of events opened
//! for the side-band and for output of BPF programs (`sys/perf_event.rs`). Pure and total:
//! a record that is shorter than its fields, or not as long as it says, is [`Malformed`].

use crate::{
    access::{Cpu, Pid, Tid},
    event::{Mapping, path_text},
    perf_format::{
        fields::{ByteOrder, Fields},
        frame::Frame,
        mapping::{MAP_SHARED, PROT_EXEC, PROT_WRITE},
        record, sample_type as sample,
        side_band::{Details, FileIdentity, MappingRecord, Short, SideBand},
        trailer::Trailer,
    },
};

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Whose and when; records in the ring of a BPF program's output have none.
    pub id: Option<SampleId>,
    /// What the record tells, with the fields of its type.
    pub kind: RecordKind<'a>,
}

/// The trailer that `sample_id_all` puts behind every side-band record: TID, TIME and CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleId {
    /// Process that caused the record.
    pub pid: Pid,
    /// Thread that caused the record.
    pub tid: Tid,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// CPU it was written on.
    pub cpu: Cpu,
}

/// The kinds of record that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKind<'a> {
    /// A mapping was made (`PERF_RECORD_MMAP2`).
    Mapping {
        /// Process that the record is about.
        pid: Pid,
        /// By which thread.
        tid: Tid,
        /// The mapping.
        mapping: Mapping,
    },
    /// A thread got a name (`PERF_RECORD_COMM`).
    Comm {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
        /// The name.
        comm: String,
        /// By an exec.
        exec: bool,
    },
    /// A thread or process was made (`PERF_RECORD_FORK`).
    Fork {
        /// Process of the new thread.
        pid: Pid,
        /// The new thread.
        tid: Tid,
        /// Process of the thread that made it.
        parent_pid: Pid,
        /// The thread that made it.
        parent_tid: Tid,
    },
    /// A thread ended (`PERF_RECORD_EXIT`).
    Exit {
        /// Process.
        pid: Pid,
        /// Thread.
        tid: Tid,
    },
    /// This many records found no room before this one (`PERF_RECORD_LOST`).
    Lost(u64),
    /// What a BPF program put out (`PERF_RECORD_SAMPLE` with `PERF_SAMPLE_RAW` only), with up to
    /// seven bytes of padding behind.
    Raw(&'a [u8]),
    /// Another kind, by its number; nothing here needs it.
    Other(u32),
}

impl RecordKind<'_> {
    /// The process it is about; `None` for counts and samples.
    pub fn pid(&self) -> Option<Pid> {
        match self {
            RecordKind::Mapping { pid, .. }
            | RecordKind::Comm { pid, .. }
            | RecordKind::Fork { pid, .. }
            | RecordKind::Exit { pid, .. } => Some(*pid),
            RecordKind::Lost(_) | RecordKind::Raw(_) | RecordKind::Other(_) => None,
        }
    }
}

/// A record that is not as long as its kind, or as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a perf record of type {kind} and {len} bytes ends inside {field}; the ring is damaged")]
pub struct Malformed {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// Bytes there are.
    pub len: usize,
    /// What is missing.
    pub field: &'static str,
}

/// What the trailers of our events have.
const TRAILER: u64 = sample::TID | sample::TIME | sample::CPU;

/// Body of `PERF_RECORD_LOST`. The ring of a BPF program's output has no sample ids behind it: they
/// would cost 24 bytes in each sample too.
const LOST_BYTES: usize = 16;

/// Reads one record, header included, as a ring hands it out.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, Malformed> {
    let malformed = |kind, field| Malformed {
        kind,
        len: bytes.len(),
        field,
    };
    let mut fields = Fields::new(bytes, ByteOrder::NATIVE);
    let frame = Frame::take(&mut fields).ok_or_else(|| malformed(0, "the header"))?;
    let malformed = |field| malformed(frame.kind, field);
    if frame.len != bytes.len() {
        return Err(malformed("its own length"));
    }
    if frame.kind == record::SAMPLE {
        let len = fields.u32().ok_or_else(|| malformed("the raw length"))?;
        let raw = fields.take(u64::from(len));
        let kind = RecordKind::Raw(raw.ok_or_else(|| malformed("the raw data"))?);
        return Ok(Record { id: None, kind });
    }
    let (body, id) = if frame.kind == record::LOST && fields.rest().len() == LOST_BYTES {
        (fields, None)
    } else {
        let (body, id) = sample_id(fields).ok_or_else(|| malformed("the sample id"))?;
        (body, Some(id))
    };
    let read = SideBand::read(frame.kind, frame.misc, body);
    let kind = match read.map_err(|Short(field)| malformed(field))? {
        Some(SideBand::Mapping(made)) if frame.kind == record::MMAP2 => RecordKind::Mapping {
            pid: Pid(made.pid),
            tid: Tid(made.tid),
            mapping: mapping(&made),
        },
        Some(SideBand::Comm {
            pid,
            tid,
            name,
            exec,
        }) => RecordKind::Comm {
            pid: Pid(pid),
            tid: Tid(tid),
            comm: path_text::text(name),
            exec,
        },
        Some(SideBand::Fork(task)) => RecordKind::Fork {
            pid: Pid(task.pid),
            tid: Tid(task.tid),
            parent_pid: Pid(task.parent_pid),
            parent_tid: Tid(task.parent_tid),
        },
        Some(SideBand::Exit(task)) => RecordKind::Exit {
            pid: Pid(task.pid),
            tid: Tid(task.tid),
        },
        Some(SideBand::Lost { records, .. }) => RecordKind::Lost(records),
        Some(SideBand::Mapping(_) | SideBand::LostSamples(_)) | None => {
            RecordKind::Other(frame.kind)
        }
    };
    Ok(Record { id, kind })
}

fn sample_id(fields: Fields<'_>) -> Option<(Fields<'_>, SampleId)> {
    let (body, trailer) = Trailer::split(fields, TRAILER)?;
    let (pid, tid) = trailer.task?;
    let id = SampleId {
        pid: Pid(pid),
        tid: Tid(tid),
        time_ns: trailer.time?,
        cpu: Cpu(trailer.cpu?),
    };
    Some((body, id))
}

/// The mapping that a record tells of, without its build-id.
pub fn mapping(record: &MappingRecord<'_>) -> Mapping {
    let (dev, inode) = match record.details {
        Details::New {
            file:
                FileIdentity::Inode {
                    major,
                    minor,
                    inode,
                    ..
                },
            ..
        } => (u64::from(major) << 32 | u64::from(minor), inode),
        Details::New { .. } | Details::Old { .. } => (0, 0),
    };
    let (shared, executable, writable) = match record.details {
        Details::Old { data } => (false, !data, data),
        Details::New {
            protection, flags, ..
        } => (
            flags & MAP_SHARED != 0,
            protection & PROT_EXEC != 0,
            protection & PROT_WRITE != 0,
        ),
    };
    Mapping {
        start: record.start,
        len: record.len,
        file_offset: record.file_offset,
        dev,
        inode,
        shared,
        executable,
        writable,
        name: path_text::text(record.name),
        build_id: None,
        stamp: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with a true length.
    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + body.len() as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// pid 7, tid 8, time 9, CPU 3.
    fn id() -> Vec<u8> {
        words(&[7, 8, 9, 0, 3, 0])
    }

    const ID: SampleId = SampleId {
        pid: Pid(7),
        tid: Tid(8),
        time_ns: 9,
        cpu: Cpu(3),
    };

    fn mmap2(protection: u32, flags: u32, name: &[u8]) -> Vec<u8> {
        let mut body = words(&[11, 12, 0x1000, 1, 0x2000, 0, 0x3000, 0, 8, 1, 99, 0, 5, 0]);
        body.extend(words(&[protection, flags]));
        body.extend(name);
        body.extend(id());
        record(record::MMAP2, 0, &body)
    }

    #[test]
    fn a_mapping_has_its_range_its_file_and_its_rights() {
        let bytes = mmap2(5, 2, b"/lib/x.so\0\0\0\0\0\0\0");
        let mapping = Mapping {
            start: 0x1_0000_1000,
            len: 0x2000,
            file_offset: 0x3000,
            dev: 8 << 32 | 1,
            inode: 99,
            shared: false,
            executable: true,
            writable: false,
            name: "/lib/x.so".to_owned(),
            build_id: None,
            stamp: None,
        };
        let kind = RecordKind::Mapping {
            pid: Pid(11),
            tid: Tid(12),
            mapping,
        };
        assert_eq!(parse(&bytes), Ok(Record { id: Some(ID), kind }));
    }

    #[test]
    fn shared_and_writable_are_told_from_private_and_read_only() {
        let rights = |bytes: &[u8]| match parse(bytes).unwrap().kind {
            RecordKind::Mapping { mapping, .. } => {
                (mapping.shared, mapping.writable, mapping.executable)
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(rights(&mmap2(3, 1, b"//anon\0\0")), (true, true, false));
        assert_eq!(rights(&mmap2(1, 2, b"//anon\0\0")), (false, false, false));
    }

    #[test]
    fn a_name_by_exec_is_told_from_a_name_by_choice() {
        let mut body = words(&[20, 21]);
        body.extend(b"worker\0\0");
        body.extend(id());
        let comm = |exec| {
            Ok(Record {
                id: Some(ID),
                kind: RecordKind::Comm {
                    pid: Pid(20),
                    tid: Tid(21),
                    comm: "worker".to_owned(),
                    exec,
                },
            })
        };
        assert_eq!(parse(&record(record::COMM, 0, &body)), comm(false));
        assert_eq!(
            parse(&record(record::COMM, record::flag::COMM_EXEC, &body)),
            comm(true)
        );
    }

    #[test]
    fn forks_name_both_sides_and_exits_one() {
        let mut body = words(&[30, 31, 32, 33, 9, 0]);
        body.extend(id());
        let fork = RecordKind::Fork {
            pid: Pid(30),
            tid: Tid(32),
            parent_pid: Pid(31),
            parent_tid: Tid(33),
        };
        let exit = RecordKind::Exit {
            pid: Pid(30),
            tid: Tid(32),
        };
        for (kind, expected) in [(record::FORK, fork), (record::EXIT, exit)] {
            assert_eq!(parse(&record(kind, 0, &body)).unwrap().kind, expected);
        }
    }

    #[test]
    fn lost_records_are_counted_and_unknown_kinds_kept_apart() {
        let mut body = words(&[1, 0, 44, 0]);
        body.extend(id());
        let without_id = record(record::LOST, 0, &body[..16]);
        let kind = RecordKind::Lost(44);
        assert_eq!(parse(&without_id), Ok(Record { id: None, kind }));
        let throttle = 5;
        for (kind, expected) in [
            (record::LOST, RecordKind::Lost(44)),
            (throttle, RecordKind::Other(throttle)),
        ] {
            assert_eq!(parse(&record(kind, 0, &body)).unwrap().kind, expected);
        }
    }

    #[test]
    fn raw_data_comes_out_without_its_length() {
        let mut body = words(&[4]);
        body.extend([1, 2, 3, 4]);
        let bytes = record(record::SAMPLE, 0, &body);
        let kind = RecordKind::Raw(&[1, 2, 3, 4]);
        assert_eq!(parse(&bytes), Ok(Record { id: None, kind }));
    }

    #[test]
    fn raw_data_shorter_than_its_length_is_refused() {
        let mut body = words(&[5]);
        body.extend([1, 2, 3, 4]);
        let error = parse(&record(record::SAMPLE, 0, &body)).unwrap_err();
        assert_eq!(error.field, "the raw data");
    }

    #[test]
    fn every_record_cut_short_is_refused_and_so_is_one_that_is_longer_than_it_says() {
        let mut fork = words(&[30, 31, 32, 33]);
        fork.extend(id());
        let fork = record(record::FORK, 0, &fork);
        assert!(parse(&fork).is_ok());
        for whole in [mmap2(5, 2, b"/lib/x.so\0\0\0\0\0\0\0"), fork] {
            for len in 0..whole.len() {
                assert!(parse(&whole[..len]).is_err(), "{len} bytes");
            }
            let mut long = whole;
            long.extend([0; 8]);
            assert_eq!(parse(&long).unwrap_err().field, "its own length");
        }
    }

    #[test]
    fn a_mapping_without_room_for_its_flags_is_refused() {
        let mut body = words(&[11, 12, 0, 0, 0, 0]);
        body.extend(id());
        let error = parse(&record(record::MMAP2, 0, &body)).unwrap_err();
        assert_eq!((error.kind, error.field), (10, "the file offset"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_record_or_malformed(
            kind in 0u32..20,
            misc in proptest::num::u16::ANY,
            body in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        ) {
            let _ = parse(&record(kind, misc, &body));
            let _ = parse(&body);
        }
    }
}
