//! Tasks, mappings, losses, and what the header says.

use super::{layouts::COMMON, *};
use crate::perf_format::fields::ByteOrder;
use crate::{
    access::{Cpu, Pid, Tid},
    event::{ContextKind, Mapping},
    perf_format::sample_type as field,
};

fn mapping_body(
    recording: &Recording,
    pid: u32,
    start: u64,
    identity: &[u8],
    name: &str,
) -> Vec<u8> {
    let mut words = recording.words();
    words
        .u32(pid)
        .u32(pid)
        .all(&[start, 0x2000, 0x3000])
        .raw(identity);
    // Readable and executable, private.
    words.u32(5).u32(2).name(name);
    words.bytes
}

fn device(recording: &Recording) -> Vec<u8> {
    let mut words = recording.words();
    words.u32(8).u32(1).all(&[99, 0]);
    words.bytes
}

/// Length, three bytes that mean nothing, twenty of id.
fn build_id(id: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id.len() as u8, 0, 0, 0];
    bytes.extend(id);
    bytes.resize(24, 0);
    bytes
}

fn mappings(read: &Read) -> Vec<(Pid, Mapping)> {
    let of = |context: &Context| match &context.kind {
        ContextKind::Mapping { pid, mapping } => Some((*pid, (**mapping).clone())),
        _ => None,
    };
    read.all.context.iter().filter_map(of).collect()
}

#[test]
fn tasks_and_mappings_come_with_their_times_in_both_byte_orders_and_with_every_trailer() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for extra in [0, field::IDENTIFIER, field::ID | field::STREAM_ID] {
            let event = TestEvent::new(COMMON | extra).id(5);
            let mut recording = Recording::new(order, vec![event]);
            let at = |time| TestSample {
                id: 5,
                time,
                ..TestSample::load(0)
            };
            let body = device(&recording);
            let body = mapping_body(&recording, 100, 0x40_0000, &body, "/usr/bin/a");
            recording.about(0, (10, 2), &body, &at(40));
            let mut comm = recording.words();
            comm.u32(100).u32(101).name("worker");
            let (plain, exec) = (comm.bytes.clone(), comm.bytes);
            recording.about(0, (3, 0), &plain, &at(30));
            recording.about(0, (3, 1 << 13), &exec, &at(20));
            for (kind, time) in [(7, 10), (4, 50)] {
                let mut task = recording.words();
                task.u32(100).u32(90).u32(101).u32(91).u64(time);
                let body = task.bytes;
                recording.about(0, (kind, 0), &body, &at(time));
            }
            let read = read(&recording.file()).unwrap();
            let (pid, tid) = (Pid(100), Tid(101));
            let named = |exec| ContextKind::Comm {
                pid,
                tid,
                comm: "worker".to_owned(),
                exec,
            };
            let mapping = Mapping {
                start: 0x40_0000,
                len: 0x2000,
                file_offset: 0x3000,
                dev: 8 << 32 | 1,
                inode: 99,
                shared: false,
                executable: true,
                writable: false,
                name: "/usr/bin/a".to_owned(),
                build_id: None,
                stamp: None,
            };
            let kinds = [
                ContextKind::Fork {
                    pid,
                    tid,
                    parent_pid: Pid(90),
                },
                named(true),
                named(false),
                ContextKind::Mapping {
                    pid,
                    mapping: mapping.into(),
                },
                ContextKind::Exit { pid, tid },
            ];
            let expected = kinds.into_iter().zip([10, 20, 30, 40, 50]);
            let expected: Vec<Context> = expected
                .map(|(kind, time_ns)| Context { time_ns, kind })
                .collect();
            assert_eq!(read.all.context, expected);
        }
    }
}

#[test]
fn without_trailers_forks_have_their_own_time_and_names_come_where_the_file_has_them() {
    let event = TestEvent {
        sample_id_all: false,
        ..TestEvent::new(COMMON)
    };
    let mut recording = Recording::new(ByteOrder::Little, vec![event]);
    let mut task = recording.words();
    task.u32(7).u32(6).u32(7).u32(6).u64(77);
    let body = task.bytes;
    recording.record(7, 0, &body);
    let mut comm = recording.words();
    comm.u32(7).u32(7).name("x");
    let body = comm.bytes;
    recording.record(3, 0, &body);
    let read = read(&recording.file()).unwrap();
    let times: Vec<u64> = read
        .all
        .context
        .iter()
        .map(|context| context.time_ns)
        .collect();
    assert_eq!(times, [0, 77]);
}

#[test]
fn mappings_of_the_kernel_and_of_guests_are_of_no_process() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    let identity = device(&recording);
    for (misc, pid, start) in [
        (1, u32::MAX, 0xffff_ffff_8000_0000),
        (1, 0, 0x1000),
        (4, 5, 0x1000),
        (2, u32::MAX, 0x1000),
        (2, 5, 0xffff_ffff_8000_0000),
        (2, 5, 0x1000),
    ] {
        let body = mapping_body(&recording, pid, start, &identity, "/x");
        recording.about(0, (10, misc), &body, &TestSample::load(0));
    }
    let read = read(&recording.file()).unwrap();
    assert_eq!(mappings(&read).len(), 1);
}

#[test]
fn build_ids_come_from_the_record_or_from_the_header_by_name() {
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    let own = build_id(&[0xab; 20]);
    let body = mapping_body(&recording, 1, 0x1000, &own, "/own");
    recording.about(0, (10, 2 | 1 << 14), &body, &TestSample::load(1));
    for (n, (start, name)) in [(0x10_0000, "/listed"), (0x20_0000, "/not-listed")]
        .into_iter()
        .enumerate()
    {
        let identity = device(&recording);
        let body = mapping_body(&recording, 1, start, &identity, name);
        recording.about(0, (10, 2), &body, &TestSample::load(2 + n as u64));
    }
    // perf's first kind of mapping has no device, no inode and no rights.
    for (n, misc) in [2, 2 | 1 << 13].into_iter().enumerate() {
        let mut words = recording.words();
        words
            .u32(1)
            .u32(1)
            .all(&[0x30_0000 + n as u64 * 0x1000, 0x1000, 0])
            .name("/listed");
        let body = words.bytes;
        recording.about(0, (1, misc), &body, &TestSample::load(4 + n as u64));
    }
    let mut listed = recording.words();
    let name = recording.words().name("/listed").bytes.clone();
    listed
        .u32(2)
        .u16(2 | 1 << 15)
        .u16(8 + 4 + 24 + name.len() as u16)
        .u32(u32::MAX);
    listed
        .raw(&[0xcd; 16])
        .raw(&[0, 0, 0, 0, 16, 0, 0, 0])
        .raw(&name);
    let bytes = listed.bytes;
    recording.feature(2, bytes);
    let read = read(&recording.file()).unwrap();
    let found = mappings(&read);
    let ids: Vec<Option<&str>> = found.iter().map(|(_, m)| m.build_id.as_deref()).collect();
    let (own, listed) = ("ab".repeat(20), "cd".repeat(16));
    assert_eq!(
        ids,
        [
            Some(&*own),
            Some(&*listed),
            None,
            Some(&*listed),
            Some(&*listed)
        ]
    );
    assert_eq!(found[1].1.dev, 8 << 32 | 1);
    for unknown in [0, 3, 4] {
        assert_eq!(found[unknown].1.dev, Mapping::UNKNOWN_DEVICE);
        assert!(found[unknown].1.is_file());
    }
    assert_eq!(found[3].1.inode, found[4].1.inode, "one file, two mappings");
    assert_ne!(found[0].1.inode, found[3].1.inode, "two files");
    assert!(found[3].1.executable && !found[3].1.writable);
    assert!(!found[4].1.executable && found[4].1.writable);
}

#[test]
fn losses_are_counted_once() {
    let lost = |read_format, kernel: &[(u64, u32)], perf: u64, filtered: u64| {
        let event = TestEvent {
            read_format,
            ..TestEvent::new(COMMON)
        };
        let mut recording = Recording::new(ByteOrder::Little, vec![event]);
        for (n, cpu) in kernel {
            let body = recording.words().all(&[1, *n]).bytes.clone();
            let at = TestSample {
                cpu: *cpu,
                ..TestSample::load(0)
            };
            recording.about(0, (2, 0), &body, &at);
        }
        for (misc, n) in [(0, perf), (1 << 15, filtered)] {
            let body = recording.words().all(&[n]).bytes.clone();
            recording.about(0, (13, misc), &body, &TestSample::load(0));
        }
        read(&recording.file()).unwrap().all.tally
    };
    let plain = lost(0, &[(5, 1), (7, 2)], 10, 3);
    assert_eq!((plain.lost_total(), plain.filtered), (22, 3));
    assert_eq!(plain.lost[&Cpu(2)], 7);
    assert_eq!(plain.produced, 22);
    // PERF_FORMAT_LOST: the same ones again.
    assert_eq!(lost(16, &[(5, 1), (7, 2)], 10, 0).lost_total(), 12);
    assert_eq!(lost(16, &[(5, 1)], 10, 0).lost_total(), 10);
}

#[test]
fn the_header_says_where_and_how_it_was_recorded() {
    for pipe in [false, true] {
        let mut recording = Recording::new(ByteOrder::Big, vec![TestEvent::new(COMMON)]);
        recording
            .text_feature(3, "server")
            .text_feature(4, "6.1.0")
            .text_feature(6, "aarch64")
            .text_feature(8, "Some CPU");
        let cpus = recording.words().u32(8).u32(6).bytes.clone();
        let clock = recording
            .words()
            .u32(1)
            .u32(4)
            .all(&[5_000_000, 900_000])
            .bytes
            .clone();
        recording.feature(7, cpus).feature(29, clock);
        recording
            .sample(0, &TestSample::load(0))
            .sample(0, &TestSample::load(500));
        let bytes = if pipe {
            recording.pipe()
        } else {
            recording.file()
        };
        let found = read(&bytes).unwrap().description;
        assert_eq!(found.host.as_deref(), Some("server"));
        assert_eq!(found.kernel_release.as_deref(), Some("6.1.0"));
        assert_eq!(found.cpu_model.as_deref(), Some("Some CPU"));
        assert_eq!(found.online_cpus, Some(6));
        assert_eq!(found.clock, "CLOCK_MONOTONIC_RAW");
        assert_eq!(
            (found.start_ns, found.end_ns),
            (Some(1_000_000), Some(1_000_500))
        );
        assert_eq!(found.started_unix_ns, Some(5_100_000));
    }
    let mut silent = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    silent.sample(0, &TestSample::load(0));
    let found = read(&silent.file()).unwrap().description;
    assert_eq!((found.host, found.clock.as_str()), (None, "perf_clock"));
}

#[test]
fn recordings_that_would_be_read_wrongly_are_refused() {
    for arch in ["i686", "armv7l"] {
        let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
        recording
            .text_feature(6, arch)
            .sample(0, &TestSample::load(0));
        for bytes in [recording.file(), recording.pipe()] {
            assert!(
                matches!(read(&bytes), Err(PerfDataError::Kernel32Bit(_))),
                "{arch}"
            );
        }
    }
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    let version = recording.words().u64(1).bytes.clone();
    recording
        .feature(24, version)
        .sample(0, &TestSample::load(0));
    assert!(matches!(
        read(&recording.file()),
        Err(PerfDataError::Directory)
    ));
    assert!(matches!(
        read(b"PERFFILE12345678"),
        Err(PerfDataError::Version1)
    ));
    assert!(matches!(
        read(b"\x7fELF567812345678"),
        Err(PerfDataError::NotPerfData)
    ));
    let mut recording = Recording::new(ByteOrder::Little, vec![TestEvent::new(COMMON)]);
    let info = recording.words().u32(4).u32(0).u64(8).bytes.clone();
    recording.record(70, 0, &info);
    assert!(matches!(
        read(&recording.file()),
        Err(PerfDataError::ArmSpe)
    ));
    let nothing = Recording::new(ByteOrder::Little, Vec::new());
    for bytes in [nothing.file(), nothing.pipe()] {
        assert!(matches!(read(&bytes), Err(PerfDataError::NoEvents)));
    }
}
