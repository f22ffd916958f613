//! What must hold of the records, whatever the program does: tests of [`lane`](crate::lane) and
//! [`directory`](crate::directory) against the directory protocol itself.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use cohtrace::{
    access::Cpu,
    coherence::{self, Intent, Protocol, Request},
};
use proptest::prelude::*;

use crate::{
    directory::{Directory, LINE, SLOTS},
    lane::{Detached, Kind, Tagged, World, Writer},
    layout::{ACCESSES_PER_CHUNK, CHUNKS, Lane, QUIET, RECORDS, STORE},
};

/// A clock that ticks with each look, and a tool that takes nothing.
#[derive(Default)]
struct Still {
    now: Cell<u64>,
    waits: Cell<u32>,
}

impl World for Still {
    fn kind(&self, word: u32) -> Kind {
        Kind {
            size_log2: word >> 1,
            store: word & 1 != 0,
        }
    }
    fn stamp(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }
    fn stamp_after(&self) -> u64 {
        self.stamp()
    }
    fn wait(&self, _turn: u32) -> bool {
        self.waits.set(self.waits.get() + 1);
        self.waits.get() < 3
    }
    fn is_shared(&self, address: u64) -> bool {
        address >= SHARED
    }
    fn is_over(&self) -> bool {
        false
    }
    fn sealed(&self, _waiting: u64) {}
}

/// Memory from here on is shared with other processes.
const SHARED: u64 = 1 << 40;

/// What [`Still`] takes for QEMU's word.
fn word(size_log2: u32, store: bool) -> u32 {
    size_log2 << 1 | u32::from(store)
}

/// As the callback does it.
fn write(
    writer: &mut Writer,
    directory: &Directory,
    lane: &Lane,
    world: &Still,
    address: u64,
    word: u32,
    tagged: Tagged,
) -> Result<(), Detached> {
    if writer.repeats(directory, lane, || world, address, word, tagged)
        || writer.silent(directory, lane, world, address, word, tagged)
    {
        return Ok(());
    }
    writer.access(directory, lane, world, address, word, tagged)
}

fn directory() -> Box<Directory> {
    let zeroes: Vec<AtomicU64> = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
    let slots: Box<[AtomicU64; SLOTS]> = zeroes.into_boxed_slice().try_into().expect("as many");
    // SAFETY: the table is a struct of this array alone, without padding.
    unsafe { Box::from_raw(Box::into_raw(slots).cast::<Directory>()) }
}

fn lane() -> Box<Lane> {
    let lane = Box::<Lane>::new_zeroed();
    // SAFETY: all atomics, for which zeroes are valid.
    unsafe { lane.assume_init() }
}

/// An access, or a system call that ends a visit's chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    processor: u32,
    address: u64,
    bytes: u64,
    store: bool,
    instruction: u32,
}

/// Instructions of this number and above stand behind a `prefetchw`.
const HINTED: u32 = 2;

impl Access {
    fn lines(&self, line: u64) -> impl Iterator<Item = u64> {
        self.address / line..=(self.address + self.bytes - 1) / line
    }

    fn tagged(&self) -> Tagged {
        Tagged::new(self.instruction, self.hinted())
    }

    fn hinted(&self) -> bool {
        !self.store && (HINTED..7).contains(&self.instruction)
    }

    fn intent(&self) -> Intent {
        match (self.store, self.hinted()) {
            (true, _) => Intent::Store,
            (false, true) => Intent::BiasedLoad,
            (false, false) => Intent::Load,
        }
    }
}

/// Each size of lines with each variant of the protocol.
fn all_ways() -> impl Iterator<Item = (u64, Protocol)> {
    let sizes = [LINE, 2 * LINE].into_iter();
    sizes.flat_map(|bytes| all_protocols().map(move |protocol| (bytes, protocol)))
}

fn all_protocols() -> impl Iterator<Item = Protocol> {
    (0..8).map(|variants| Protocol {
        exclusive_on_first_read: variants & 1 != 0,
        migratory: variants & 2 != 0,
        relinquish: variants & 4 != 0,
    })
}

/// Time, access, repeats.
type Row = (u64, Access, u32);

fn rows(processor: u32, lane: &Lane) -> Vec<Row> {
    let chunks = &lane.chunks[..lane.head.load(Relaxed) as usize];
    let records = chunks
        .iter()
        .zip(&lane.records)
        .flat_map(|(chunk, records)| &records[..chunk.count.load(Relaxed) as usize]);
    let row = |record: &crate::layout::Record| {
        let place = record.place.load(Relaxed);
        let access = Access {
            processor,
            address: place & 0xffff_ffff_ffff,
            bytes: place >> 48 & 0x7f,
            store: place & STORE != 0,
            instruction: record.instruction.load(Relaxed),
        };
        (
            record.tsc.load(Relaxed),
            access,
            record.repeats.load(Relaxed),
        )
    };
    records.map(row).collect()
}

/// All rows of a run, in order of time. `true` is an end of a visit.
fn recorded(run: &[(Access, bool)]) -> Vec<Row> {
    let (directory, world) = (directory(), Still::default());
    let mut threads: BTreeMap<u32, (Writer, Box<Lane>)> = BTreeMap::new();
    for (access, seal) in run {
        let (writer, lane) = threads
            .entry(access.processor)
            .or_insert_with(|| (Writer::new(access.processor, access.processor), lane()));
        let tagged = access.tagged();
        let word = word(access.bytes.trailing_zeros(), access.store);
        assert!(
            write(
                writer,
                &directory,
                lane,
                &world,
                access.address,
                word,
                tagged
            )
            .is_ok()
        );
        if *seal {
            writer.seal(lane, &world);
        }
    }
    let mut all = Vec::new();
    for (processor, (mut writer, lane)) in threads {
        writer.seal(&lane, &world);
        assert_eq!(lane.state.load(Relaxed), QUIET);
        all.extend(rows(processor, &lane));
    }
    // Stable: rows of one thread may have one time, and are in order.
    all.sort_by_key(|(time, ..)| *time);
    all
}

/// What accesses ask for, in order: who, of which line, what, and the messages that it takes.
fn requests<'a>(
    accesses: impl Iterator<Item = &'a Access>,
    (bytes, protocol): (u64, Protocol),
) -> Vec<(u32, u64, Request, u64)> {
    let mut lines: BTreeMap<u64, coherence::Directory> = BTreeMap::new();
    let mut asked = Vec::new();
    for access in accesses {
        for line in access.lines(bytes) {
            let home = lines.entry(line);
            let home = home.or_insert_with(|| coherence::Directory::under(protocol));
            let outcome = home.access(Cpu(access.processor), access.intent());
            let messages = outcome.transactions.total();
            let request = outcome.request;
            asked.extend(request.map(|request| (access.processor, line, request, messages)));
        }
    }
    asked
}

/// Of an access, without where on its line it is.
fn what(access: &Access) -> (u32, u32, bool, Vec<u64>) {
    let lines = access.lines(LINE).collect();
    (access.processor, access.instruction, access.store, lines)
}

/// How often each instruction accessed each line.
fn counts<'a>(
    accesses: impl Iterator<Item = (&'a Access, u64)>,
) -> BTreeMap<(u32, u32, bool, Vec<u64>), u64> {
    let mut counts = BTreeMap::new();
    for (access, n) in accesses {
        *counts.entry(what(access)).or_default() += n;
    }
    counts
}

/// Which bytes each instruction accessed.
fn bytes<'a>(accesses: impl Iterator<Item = &'a Access>) -> BTreeSet<(u32, u32, bool, u64)> {
    let all = |access: &Access| {
        let (processor, instruction, store, _) = what(access);
        let bytes = access.address..access.address + access.bytes;
        bytes.map(move |byte| (processor, instruction, store, byte))
    };
    accesses.flat_map(all).collect()
}

fn any_access() -> impl Strategy<Value = (Access, bool)> {
    // Four lines side by side, the middle two in one of 128 bytes, and one far away that meets the second in the table:
    // its line has tag 1.
    let lines = prop_oneof![
        1 => Just(0x3ff_u64),
        3 => Just(0x400),
        3 => Just(0x401),
        1 => Just(0x402),
        1 => Just((1 << 20) | (0x400 ^ 0x9e3d))
    ];
    // The last two threads have no bit of their own.
    let processor = prop_oneof![Just(0_u32), Just(1), Just(2), Just(24), Just(25), Just(99)];
    let offset = prop_oneof![Just(0_u64), Just(8), Just(16), Just(60), Just(63)];
    let rest = (
        0..4_u32,
        any::<bool>(),
        0..3_u32,
        prop::bool::weighted(0.02),
    );
    (lines, processor, offset, rest).prop_map(
        |(line, processor, offset, (size_log2, store, instruction, seal))| {
            let address = line * LINE + offset;
            (
                Access {
                    processor,
                    address,
                    bytes: 1 << size_log2,
                    store,
                    instruction,
                },
                seal,
            )
        },
    )
}

/// Of each size of lines and each variant of the protocol: the rows ask for what all accesses do, in the same order.
fn asks_the_same(run: &[(Access, bool)]) -> Result<(), TestCaseError> {
    let rows = recorded(run);
    for way in all_ways() {
        prop_assert_eq!(
            requests(rows.iter().map(|(_, access, _)| access), way),
            requests(run.iter().map(|(access, _)| access), way),
            "{:?}",
            way
        );
    }
    Ok(())
}

/// What accesses ask for, line by line, if lines begin `from` bytes behind where they do.
fn requests_of_lines<'a>(
    accesses: impl Iterator<Item = &'a Access>,
    from: u64,
    (bytes, protocol): (u64, Protocol),
) -> BTreeMap<u64, Vec<(u32, Request, u64)>> {
    let moved: Vec<Access> = accesses
        .map(|access| Access {
            address: access.address - from,
            ..*access
        })
        .collect();
    let mut lines: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for (processor, line, request, messages) in requests(moved.iter(), (bytes, protocol)) {
        let asked = lines.entry(line).or_default();
        asked.push((processor, request, messages));
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_rows_ask_for_what_all_accesses_ask_for_and_their_repeats_count_them(
        run in prop::collection::vec(any_access(), 0..600),
    ) {
        asks_the_same(&run)?;
        let rows = recorded(&run);
        let all = run.iter().map(|(access, _)| access);
        prop_assert_eq!(
            counts(rows.iter().map(|(_, access, repeats)| (access, 1 + u64::from(*repeats)))),
            counts(all.clone().map(|access| (access, 1)))
        );
        prop_assert_eq!(bytes(rows.iter().map(|(_, access, _)| access)), bytes(all));
    }

    #[test]
    fn of_lines_that_begin_elsewhere_the_rows_ask_for_what_all_accesses_ask_for(
        run in prop::collection::vec(any_access(), 0..600),
    ) {
        let rows = recorded(&run);
        let from = (1..LINE).map(|from| (LINE, from)).chain([(2 * LINE, LINE)]);
        for (bytes, from) in from.filter(|(_, from)| from % 8 == 0 || *from == 5) {
            for protocol in all_protocols() {
                let way = (bytes, protocol);
                prop_assert_eq!(
                    requests_of_lines(rows.iter().map(|(_, access, _)| access), from, way),
                    requests_of_lines(run.iter().map(|(access, _)| access), from, way),
                    "{} {:?}",
                    from,
                    way
                );
            }
        }
    }
}

fn store(processor: u32, address: u64) -> Access {
    Access {
        processor,
        address,
        bytes: 8,
        store: true,
        instruction: 7,
    }
}

fn load(processor: u32, address: u64) -> Access {
    Access {
        store: false,
        instruction: 8,
        ..store(processor, address)
    }
}

#[test]
fn a_load_behind_a_prefetchw_takes_a_line_that_moved_from_its_reader() -> Result<(), TestCaseError>
{
    let [mine, theirs] = [store(2, 0x1000), load(24, 0x1000)];
    let hinted = Access {
        instruction: HINTED,
        ..load(2, 0x1000)
    };
    let run = [mine, theirs, theirs, hinted, theirs, theirs];
    asks_the_same(&run.map(|access| (access, false)))
}

/// Accesses and repeats.
fn short(run: &[Access]) -> Vec<(Access, u32)> {
    let run: Vec<_> = run.iter().map(|access| (*access, false)).collect();
    let rows = recorded(&run).into_iter();
    rows.map(|(_, access, repeats)| (access, repeats)).collect()
}

#[test]
fn what_nobody_disturbs_is_one_row_and_each_theft_is_another() {
    let (mine, theirs) = (store(0, 0x1000), load(1, 0x1008));
    assert_eq!(short(&[mine, mine, mine]), [(mine, 2)]);
    let interrupted = [mine, mine, theirs, theirs, mine, mine];
    assert_eq!(short(&interrupted), [(mine, 1), (theirs, 1), (mine, 1)]);
}

#[test]
fn a_loop_over_an_array_is_a_row_for_a_line_and_one_over_every_other_element_is_not() {
    let each: Vec<Access> = (0..16).map(|n| store(0, 0x1000 + n * 8)).collect();
    let line = |address| {
        (
            Access {
                bytes: 64,
                ..store(0, address)
            },
            7,
        )
    };
    assert_eq!(short(&each), [line(0x1000), line(0x1040)]);
    // A second time on the same bytes.
    let twice: Vec<Access> = each.iter().chain(&each[..3]).copied().collect();
    let (row, repeats) = line(0x1000);
    assert_eq!(short(&twice), [(row, repeats + 3), line(0x1040)]);
    let apart: Vec<Access> = each.iter().step_by(2).copied().collect();
    assert_eq!(short(&apart).len(), 8);
    // Somebody else's request ends a row, as it does without a loop.
    let theirs = load(1, 0x1008);
    let ended = [each[0], each[1], theirs, each[2], each[3]];
    let two = |address| {
        (
            Access {
                bytes: 16,
                ..store(0, address)
            },
            1,
        )
    };
    assert_eq!(short(&ended), [two(0x1000), (theirs, 0), two(0x1010)]);
}

#[test]
fn a_new_reader_begins_a_row_and_readers_that_have_a_copy_do_not() {
    let (one, two) = (load(0, 0x1000), load(1, 0x1000));
    assert_eq!(
        short(&[one, one, two, one, two, one]),
        [(one, 1), (two, 1), (one, 1)]
    );
}

#[test]
fn both_neighbours_of_64_bytes_count_as_the_line_does_and_what_is_beyond_does_not() {
    let mine = store(0, 0x1000);
    let theirs = |address| [store(1, address), load(1, address)];
    for theirs in [0x1040, 0x107f - 7, 0xfc0, 0xff8]
        .map(theirs)
        .as_flattened()
    {
        let theirs = *theirs;
        let interrupted = [mine, mine, theirs, theirs, mine, mine];
        let rows = [(mine, 1), (theirs, 1), (mine, 1)];
        assert_eq!(short(&interrupted), rows, "{theirs:?}");
    }
    for theirs in [0xf80, 0xfb8, 0x1080].map(theirs).as_flattened() {
        let theirs = *theirs;
        let apart = [mine, mine, theirs, theirs, mine, mine];
        assert_eq!(short(&apart), [(mine, 3), (theirs, 1)], "{theirs:?}");
    }
}

#[test]
fn a_first_touch_of_a_neighbour_is_a_row() {
    let (first, second) = (load(0, 0x1000), load(0, 0x1040));
    assert_eq!(
        short(&[first, second, second, first]),
        [(first, 1), (second, 1)]
    );
}

#[test]
fn a_thread_without_a_bit_of_its_own_repeats_nothing() {
    let mine = load(25, 0x1000);
    assert_eq!(short(&[mine, mine, mine]), [(mine, 0); 3]);
}

#[test]
fn each_access_to_memory_of_several_processes_is_a_row() {
    let [own, of_all] = [0x1000, SHARED].map(|at| store(0, at));
    assert_eq!(
        short(&[own, own, of_all, of_all, own, of_all]),
        [(own, 2), (of_all, 0), (of_all, 0), (of_all, 0)]
    );
}

#[test]
fn a_chunk_is_sealed_after_so_many_accesses_though_they_repeat_one_another() {
    let run = vec![store(0, 0x1000); ACCESSES_PER_CHUNK as usize + 10];
    assert_eq!(
        short(&run),
        [
            (store(0, 0x1000), ACCESSES_PER_CHUNK - 1),
            (store(0, 0x1000), 9)
        ]
    );
}

#[test]
fn a_load_behind_a_prefetchw_takes_the_line_like_a_store() {
    let (directory, world) = (directory(), Still::default());
    let lanes = [lane(), lane()];
    let mut writers = [0, 1].map(|processor| Box::new(Writer::new(processor, processor)));
    let mut read = |n: usize, owning, address| {
        let (lane, tagged) = (&lanes[n], Tagged::new(5, owning));
        let word = word(3, false);
        let writer = &mut writers[n];
        assert!(write(writer, &directory, lane, &world, address, word, tagged).is_ok());
        lanes[n].chunks[0].count.load(Relaxed)
    };
    assert_eq!([0x2000; 2].map(|at| read(0, true, at)), [1, 1]);
    assert_eq!([0x2000; 2].map(|at| read(1, false, at)), [1, 1]);
    // The other has a copy: it may be the only one.
    assert_eq!([0x2000; 2].map(|at| read(0, true, at)), [2, 2]);
    assert_eq!(read(1, false, 0x2000), 2);
    // Another line, of which the other is the first to have a copy: it is taken from it.
    assert_eq!(
        [(1, false), (0, true), (1, false)].map(|(n, owning)| read(n, owning, 0x3000)),
        [3, 3, 4]
    );
}

#[test]
fn a_full_ring_makes_the_thread_wait_and_a_tool_that_is_gone_lets_it_go() {
    let (directory, world, lane) = (directory(), Still::default(), lane());
    let mut writer = Writer::new(0, 0);
    let mut write_next = |n: u64| {
        let (address, tagged) = (0x10_0000 + n * LINE, Tagged::new(1, false));
        let word = word(3, false);
        write(
            &mut writer,
            &directory,
            &lane,
            &world,
            address,
            word,
            tagged,
        )
    };
    let room = (CHUNKS * RECORDS) as u64;
    assert!((0..room).all(|n| write_next(n).is_ok()));
    assert_eq!(world.waits.get(), 0);
    assert!(write_next(room).is_err());
    assert_eq!(
        (world.waits.get(), lane.head.load(Relaxed)),
        (3, CHUNKS as u64)
    );
}
