//! Recordings with known content: made here, and those of other people where they lie beside the repository.

use std::path::{Path, PathBuf};

use cohtrace_store::perf_data::recording::{ByteOrder, Recording, TestEvent, TestSample};

/// Fields of a sample, `PERF_SAMPLE_` of include/uapi/linux/perf_event.h.
const TASK: u64 = 1 | 1 << 1 | 1 << 2;
const ADDR: u64 = 1 << 3;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;
const WEIGHT_STRUCT: u64 = 1 << 24;

/// `PERF_MEM_LOCK_LOCKED`, where a data source has it.
const LOCKED: u64 = 2 << 24;
/// `PERF_RECORD_COMPRESSED2`.
const COMPRESSED2: u32 = 83;

/// `HEADER_NRCPUS` and `HEADER_NUMA_TOPOLOGY` of perf's header.h.
const NRCPUS: u32 = 7;
const NUMA_TOPOLOGY: u32 = 14;

/// A recording of `perf mem record`.
pub(crate) struct Loads {
    /// The file.
    pub file: PathBuf,
    /// Accesses in it.
    pub accesses: usize,
    /// Whether each sample says its CPU.
    pub has_cpus: bool,
}

/// Recordings of loads: as perf 4.4 makes them of one process, and as newer ones of a whole machine.
pub(crate) fn loads(directory: &Path) -> Vec<Loads> {
    let old = TASK | ADDR | PERIOD | WEIGHT | DATA_SRC;
    let new = TASK | ADDR | ID | CPU | DATA_SRC | WEIGHT_STRUCT;
    let made = [("old", old, 14), ("new", new, 16)].map(|(name, sample_type, accesses)| Loads {
        file: write(
            directory,
            name,
            &samples(sample_type, accesses, |n| 0x7f00_0000_0000 + n * 8).file(),
        ),
        accesses,
        has_cpus: sample_type & CPU != 0,
    });
    let others = [
        ("numatop-mem-loads", 14, false),
        ("numatop-mem-loads-2", 16, false),
        ("quipper-weight-struct", 14, true),
    ];
    let others = others.into_iter().filter_map(|(name, accesses, has_cpus)| {
        let file = of_others(name)?;
        Some(Loads {
            file,
            accesses,
            has_cpus,
        })
    });
    made.into_iter().chain(others).collect()
}

/// Recordings whose events ask for addresses that none of their samples has.
pub(crate) fn without_addresses(directory: &Path) -> Vec<PathBuf> {
    let recording = samples(TASK | ADDR | DATA_SRC, 20, |_| 0);
    let made = write(directory, "zero", &recording.file());
    std::iter::once(made)
        .chain(of_others("hotspot-addr-zero"))
        .collect()
}

/// What is in a recording that was compressed into a pipe.
pub(crate) struct Piped {
    /// The file.
    pub file: PathBuf,
    /// Samples, and accesses among them.
    pub counts: (usize, usize),
    /// Sum of their addresses.
    pub sum: u64,
}

/// Recordings that were compressed into a pipe.
pub(crate) fn compressed_pipes(directory: &Path) -> Vec<Piped> {
    let recording = &mut samples(TASK | ADDR | DATA_SRC, 100, |n| {
        if n % 4 == 0 { 0 } else { 0x1000 * n }
    });
    let made = Piped {
        file: write(directory, "pipe", &recording.compressed(COMPRESSED2).pipe()),
        counts: (100, 75),
        sum: (0..100u64).filter(|n| n % 4 != 0).map(|n| 0x1000 * n).sum(),
    };
    // Counted by the zstd tool and a script that knows nothing of this one.
    let other = of_others("linux-perf-data-compressed2-pipe").map(|file| Piped {
        file,
        counts: (547, 257),
        sum: 0x74_0e29_87a3_8124,
    });
    std::iter::once(made).chain(other).collect()
}

/// Samples at these addresses, the third of them locked.
fn samples(sample_type: u64, count: usize, address: impl Fn(u64) -> u64) -> Recording {
    let event = TestEvent::new(sample_type).id(77);
    let mut recording = Recording::new(ByteOrder::Little, vec![event]);
    // `perf c2c` wants the processors and the nodes of the machine.
    let mut processors = recording.words();
    processors.u32(4).u32(4);
    let mut nodes = recording.words();
    nodes.u32(1).u32(0).all(&[1 << 20, 1 << 19]).counted("0-3");
    recording
        .feature(NRCPUS, processors.bytes)
        .feature(NUMA_TOPOLOGY, nodes.bytes);
    for n in 0..count as u64 {
        let load = TestSample::load(n);
        let lock = if n == 2 { LOCKED } else { 0 };
        recording.sample(
            0,
            &TestSample {
                id: 77,
                addr: address(n),
                weight: 3 + n,
                data_src: load.data_src | lock,
                ..load
            },
        );
    }
    recording
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let file = directory.join(format!("{name}.perf.data"));
    std::fs::write(&file, bytes).expect("room");
    file
}

fn of_others(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let beside = ["../shared/perfdata", "../../shared/perfdata"];
    let mut places = beside
        .iter()
        .map(|place| root.join(place).join(format!("{name}.perf.data")));
    places.find(|file| file.is_file())
}
