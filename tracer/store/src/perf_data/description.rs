//! What a recording says of itself, and what a reader of it must know.

use std::io::Read;

use super::{PerfData, PerfDataError, features::Features, header::Event, records::CutShort};
use crate::{
    evidence::Evidence,
    perf_format::{clock, sample_type as sample},
};

/// A recording without its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Name of the host.
    pub host: Option<String>,
    /// `uname -r` there.
    pub kernel_release: Option<String>,
    /// `uname -m` there.
    pub arch: Option<String>,
    /// As perf names the processor.
    pub cpu_model: Option<String>,
    /// Logical CPUs online.
    pub online_cpus: Option<u32>,
    /// The command that recorded.
    pub command_line: Vec<String>,
    /// Version of perf.
    pub perf_version: Option<String>,
    /// The events, and the fields of each one's samples.
    pub events: Vec<(String, String)>,
    /// Clock of all times.
    pub clock: String,
    /// Wall clock at the first sample, nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: Option<u64>,
    /// First and last time of a sample, nanoseconds of that clock.
    pub start_ns: Option<u64>,
    /// See `start_ns`.
    pub end_ns: Option<u64>,
    /// What the samples can prove.
    pub evidence: Evidence,
    /// What is missing or uncertain, in sentences.
    pub caveats: Vec<String>,
    /// The recording is not whole.
    pub cut_short: Option<String>,
}

/// perf's own clock: that of the scheduler, in nanoseconds.
const PERF_CLOCK: &str = "perf_clock";

impl Description {
    pub(super) fn of<R: Read>(file: &PerfData<R>) -> Description {
        let (state, features) = (&file.state, &file.state.features);
        let counts = &state.counts;
        let events = state.events.list();
        let number = features.clock.map(|(id, ..)| id);
        let number = number.or_else(|| events.iter().find_map(|event| event.attr.clock));
        let has_time = state.events.any_has(sample::TIME);
        Description {
            host: features.host.clone(),
            kernel_release: features.kernel_release.clone(),
            arch: features.arch.clone(),
            cpu_model: features.cpu_description.clone(),
            online_cpus: features.online_cpus,
            command_line: features.command_line.clone(),
            perf_version: features.perf_version.clone(),
            events: events.iter().map(describe_event).collect(),
            clock: if has_time {
                number.map_or_else(|| PERF_CLOCK.to_owned(), clock_name)
            } else {
                "none: order of the file".to_owned()
            },
            started_unix_ns: features.clock.and_then(|(_, wall_ns, clock_ns)| {
                let since = counts.first_ns?.checked_sub(clock_ns)?;
                wall_ns.checked_add(since)
            }),
            start_ns: counts.first_ns,
            end_ns: counts.last_ns,
            evidence: evidence(file),
            caveats: caveats(file),
            cut_short: file.records.cut_short().map(cut_short),
        }
    }
}

fn describe_event(event: &Event) -> (String, String) {
    let (kind, config, config1) = event.attr.event;
    let name = event
        .name
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("type {kind} config {config:#x} config1 {config1:#x}"));
    (name, event.attr.sample_type_names())
}

fn clock_name(number: u32) -> String {
    clock::name(number).map_or_else(|| format!("clock {number}"), str::to_owned)
}

fn evidence<R>(file: &PerfData<R>) -> Evidence {
    let counts = &file.state.counts;
    let has = |fields| file.state.events.any_has(fields);
    let offers = [
        (has(sample::ADDR), Evidence::DATA_ADDR),
        (
            counts.exact > 0 && counts.exact == counts.accesses,
            Evidence::EXACT_IP,
        ),
        (counts.stores > 0, Evidence::STORES),
        (has(sample::WEIGHT | sample::WEIGHT_STRUCT), Evidence::COST),
        (has(sample::DATA_SRC), Evidence::SERVED_FROM),
    ];
    let offered = offers.iter().filter(|(offered, _)| *offered);
    offered.fold(Evidence::default(), |all, (_, one)| all.and(*one))
}

fn cut_short(why: &CutShort) -> String {
    match why {
        CutShort::Truncated { at } => {
            format!("the file ends inside a record, at byte {at}; what was before that is read")
        }
        CutShort::Damaged { at } => format!(
            "the file is damaged at byte {at}, where no record can be; what comes after that is not read"
        ),
        CutShort::Packed { at, why } => format!(
            "the compressed records end at byte {at} ({why}); what comes after that is not read"
        ),
    }
}

fn caveats<R: Read>(file: &PerfData<R>) -> Vec<String> {
    let counts = &file.state.counts;
    let state = &file.state;
    let mut all = Vec::new();
    let mut say = |when: bool, what: String| {
        if when {
            all.push(what);
        }
    };
    if let Some(why) = file.records.cut_short() {
        say(
            true,
            format!("The recording is not whole: {}.", cut_short(why)),
        );
    }
    say(
        file.unfinished,
        "The recording was not finished (its header has no size, as when perf is killed): what is there is read, but \
         it says nothing of its machine and has no build-ids."
            .to_owned(),
    );
    say(
        file.no_features && !file.unfinished,
        "The sections behind the samples are missing or damaged: nothing is known of the machine, and there are no \
         build-ids."
            .to_owned(),
    );
    let unreadable = &state.features.unreadable;
    say(
        !unreadable.is_empty(),
        format!(
            "{} sections of the header could not be read.",
            unreadable.len()
        ),
    );
    say(
        state
            .events
            .list()
            .iter()
            .any(|event| event.attr.unknown_fields()),
        "An event records fields that this version does not know; those it knows are read."
            .to_owned(),
    );
    say(
        counts.malformed > 0,
        format!(
            "{} records are shorter than what their event says they hold, and were left out.",
            counts.malformed
        ),
    );
    say(
        counts.unknown_event > 0,
        format!(
            "{} samples are of an event that the file does not describe, and were left out.",
            counts.unknown_event
        ),
    );
    say(
        counts.no_time > 0,
        "Samples have no time: they are in the order of the file, one nanosecond apart, so that accesses far apart are \
         held against each other and durations mean nothing."
            .to_owned(),
    );
    say(
        counts.no_cpu > 0,
        "Samples have no CPU (perf record --sample-cpu): each thread is taken for a CPU of its own, so threads that \
         took turns on one CPU may look like sharing."
            .to_owned(),
    );
    say(
        counts.no_thread > 0,
        "Samples have no process and thread: threads cannot be told apart, so that nothing can be found to be shared."
            .to_owned(),
    );
    say(
        counts.exact < counts.accesses,
        format!(
            "{} of {} accesses are not marked as having the exact address of their instruction: the source line may be \
             a later one.",
            counts.accesses - counts.exact,
            counts.accesses
        ),
    );
    say(
        counts.repeated > 0,
        format!(
            "{} samples are of accesses that a sample of another event is of too, as perf inject makes them of a trace, \
             and were left out.",
            counts.repeated
        ),
    );
    say(
        counts.accesses > counts.sized,
        format!(
            "Of {} of {} accesses the size is not known: perf does not record it, and the file with the instruction is \
             not here, or the instruction is not known exactly.",
            counts.accesses - counts.sized,
            counts.accesses
        ),
    );
    say(
        counts.throttled > 0,
        format!(
            "The kernel held sampling back {} times, because it took too long: there are stretches without samples.",
            counts.throttled
        ),
    );
    say(
        counts.guests > 0,
        format!(
            "{} samples are of virtual machines' guests, and were left out.",
            counts.guests
        ),
    );
    say(
        state.order.late > 0,
        format!(
            "{} records came out of order, after newer ones: they are taken for as new as those.",
            state.order.late
        ),
    );
    say(
        state.order.jumps > 0,
        format!(
            "{} records have a time more than an hour from those around them.",
            state.order.jumps
        ),
    );
    say(
        counts.other_trace_bytes > 0,
        format!(
            "{} bytes of hardware traces (Intel PT, CoreSight, ..) are in the recording and not read.",
            counts.other_trace_bytes
        ),
    );
    say(
        counts.unidentified_files > 0 && counts.identified_files == 0,
        "The recording has no build-ids, so no file here is believed to be one that was recorded: code and variables \
         stay without names. Record without -B and -N."
            .to_owned(),
    );
    if let Some(arch) = &state.features.arch
        && !matches!(arch.as_str(), "x86_64" | "aarch64" | "arm64")
    {
        say(
            true,
            format!(
                "Recorded on {arch}: kernel memory is told from that of programs as on x86-64 and aarch64 only."
            ),
        );
    }
    all
}

impl Features {
    /// Refuses what would be read wrongly.
    pub(super) fn check(&self) -> Result<(), PerfDataError> {
        const NARROW: [&str; 9] = [
            "i386", "i486", "i586", "i686", "ppc", "mips", "riscv32", "s390", "sparc",
        ];
        if self.directory {
            return Err(PerfDataError::Directory);
        }
        if let Some(arch) = &self.arch
            && (NARROW.contains(&arch.as_str()) || arch.starts_with("armv"))
            && arch != "armv8"
        {
            return Err(PerfDataError::Kernel32Bit(arch.clone()));
        }
        Ok(())
    }
}
