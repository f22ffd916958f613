//! Records to accesses, context and counts.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64},
};

use super::{
    PerfDataError,
    attr::Attr,
    counts::Counts,
    events::Events,
    features::Features,
    header::Event,
    order::RoundOrder,
    records::RawRecord,
    side_band::{self, Meaning},
    sizes::Sizes,
};
use crate::{
    access::{Access, Basis, Cost, Cpu, Measured, Op, Pid, Tid},
    data_source::DataSource,
    event::{Batch, Context, ContextKind, Tally, Unresolved, path_text},
    perf_format::{
        fields::Fields,
        record::{self as kind, flag},
        sample::Sample,
        sample_type as sample,
        side_band::SideBand,
        trailer::Trailer,
    },
};

/// `type` of an event of the processor's, by its general name.
const PERF_TYPE_HARDWARE: u32 = 0;

/// Where the CPU is not recorded, threads stand for CPUs: this many.
const STAND_IN_CPUS: u32 = 1024;

/// Key of losses whose CPU is not recorded. No machine has as many.
const NO_CPU: Cpu = Cpu(u32::MAX);

/// `type` of an `AUXTRACE_INFO` (tools/perf/util/auxtrace.h).
const AUXTRACE_ARM_SPE: u32 = 4;

/// `type` of an `EVENT_UPDATE` that has a name.
const UPDATE_NAME: u64 = 2;

/// An item on its way into the order of time.
#[derive(Debug)]
pub(super) enum Item {
    Access {
        access: Access,
        /// The ip is the instruction itself.
        exact: bool,
    },
    Context(ContextKind),
}

/// What tells an access from another: the event, the time, the instruction, the address, the thread, the source.
type Identity = (usize, [Option<u64>; 4], Option<(u32, u32)>);

/// All that is known of a file so far.
pub(super) struct State {
    pub(super) events: Events,
    pub(super) features: Features,
    pub(super) counts: Counts,
    pub(super) order: RoundOrder<Item>,
    /// Counts for the next batch.
    pub(super) tally: Tally,
    /// Where sizes can be looked up.
    pub(super) sizes: Option<Sizes>,
    pipe: bool,
    /// The last access of an event that perf made up.
    synthesized: Option<Identity>,
    /// Stands for the time where none is recorded.
    clock: u64,
}

impl State {
    pub(super) fn new(events: Vec<Event>, features: Features, pipe: bool) -> State {
        let mut events = Events::new(events);
        events.name_by(&features.events);
        State {
            events,
            features,
            counts: Counts::default(),
            order: RoundOrder::default(),
            tally: Tally::default(),
            sizes: None,
            pipe,
            synthesized: None,
            clock: 0,
        }
    }

    /// Takes in a record.
    pub(super) fn take(&mut self, record: &RawRecord<'_>) -> Result<(), PerfDataError> {
        let body = record.body;
        match record.kind {
            kind::FINISHED_ROUND => self.order.end_round(),
            kind::HEADER_ATTR if self.pipe => self.take_attr(body)?,
            kind::EVENT_UPDATE => self.take_update(body),
            kind::HEADER_FEATURE if self.pipe => {
                let mut body = body;
                if let Some(number) = body.u64().and_then(|number| u32::try_from(number).ok()) {
                    let unnamed = self.features.events.is_empty();
                    self.features.add(number, body);
                    if unnamed {
                        self.events.name_by(&self.features.events);
                    }
                }
                self.features.check()?;
            }
            kind::AUXTRACE_INFO => {
                let mut body = body;
                if body.u32() == Some(AUXTRACE_ARM_SPE) {
                    return Err(PerfDataError::ArmSpe);
                }
            }
            kind::HEADER_BUILD_ID => self.features.add_build_id(record.misc, body),
            kind::SAMPLE => self.take_sample(record)?,
            kind::FIRST_OF_PERF.. => {}
            _ => self.take_side_band(record)?,
        }
        Ok(())
    }

    fn take_attr(&mut self, mut body: Fields<'_>) -> Result<(), PerfDataError> {
        let attr =
            Attr::take(&mut body).ok_or(PerfDataError::Header("attributes that cannot be read"))?;
        let ids = std::iter::from_fn(|| body.u64()).collect();
        let name = None;
        if !self.events.add(Event { attr, ids, name }) {
            return Err(PerfDataError::Header("more events than can be"));
        }
        Ok(())
    }

    fn take_update(&mut self, mut body: Fields<'_>) {
        if let (Some(UPDATE_NAME), Some(id)) = (body.u64(), body.u64()) {
            self.events.name(id, path_text::text(body.text()));
        }
    }

    fn take_side_band(&mut self, record: &RawRecord<'_>) -> Result<(), PerfDataError> {
        let Some(attr) = self.events.of_record(record.body)? else {
            return Ok(());
        };
        let trailer_fields = if attr.sample_id_all {
            attr.sample_type
        } else {
            0
        };
        let Some((body, trailer)) = Trailer::split(record.body, trailer_fields) else {
            self.counts.malformed += 1;
            return Ok(());
        };
        let Ok(read) = SideBand::read(record.kind, record.misc, body) else {
            self.counts.malformed += 1;
            return Ok(());
        };
        let (meaning, time) = match read {
            Some(SideBand::Mapping(mapping)) => {
                let ids = &self.features.build_ids;
                (side_band::mapping(record.misc, &mapping, ids), None)
            }
            Some(SideBand::Comm {
                pid,
                tid,
                name,
                exec,
            }) => (side_band::comm(pid, tid, name, exec), None),
            Some(SideBand::Fork(task)) => (side_band::fork(task), task.time),
            Some(SideBand::Exit(task)) => (side_band::exit(task), task.time),
            Some(SideBand::Lost { records, .. }) => {
                count_lost(&mut self.counts.lost, trailer.cpu, records);
                return Ok(());
            }
            Some(SideBand::LostSamples(samples)) => {
                self.take_lost_samples(record.misc, samples, trailer.cpu);
                return Ok(());
            }
            None => {
                self.counts.throttled += u64::from(record.kind == kind::THROTTLE);
                return Ok(());
            }
        };
        if let Meaning::Context(context) = meaning {
            self.take_context(trailer.time.or(time), context);
        }
        Ok(())
    }

    fn take_context(&mut self, time: Option<u64>, context: ContextKind) {
        let bytes = match &context {
            ContextKind::Mapping { mapping, .. } => {
                let known = mapping.build_id.is_some();
                self.counts.identified_files += u64::from(known);
                self.counts.unidentified_files += u64::from(!known && mapping.is_file());
                mapping.name.len()
            }
            ContextKind::Comm { comm, .. } => comm.len(),
            _ => 0,
        };
        let time = self.time(time);
        self.order.push(time, bytes, Item::Context(context));
    }

    /// A time to sort by. What perf made up, it gave the time 0 (tools/perf/util/session.c treats that and the
    /// largest number as none).
    fn time(&mut self, recorded: Option<u64>) -> Option<u64> {
        if self.events.any_has(sample::TIME) {
            return recorded.filter(|time| *time != 0 && *time != u64::MAX);
        }
        self.clock += 1;
        Some(self.clock)
    }

    fn take_lost_samples(&mut self, misc: u16, samples: u64, cpu: Option<u32>) {
        if misc & flag::FILTERED != 0 {
            self.tally.filtered = self.tally.filtered.saturating_add(samples);
        } else {
            count_lost(&mut self.counts.lost_samples, cpu, samples);
        }
    }

    fn take_sample(&mut self, record: &RawRecord<'_>) -> Result<(), PerfDataError> {
        let Some((event, attr)) = self.events.of_sample(record.body)? else {
            self.counts.unknown_event += 1;
            return Ok(());
        };
        let Some(found) = Sample::read(record.body, &attr.layout()) else {
            self.counts.malformed += 1;
            return Ok(());
        };
        if self.is_repeated(event, &attr, &found) {
            self.counts.repeated += 1;
        } else {
            self.take_found(record.misc, &found);
        }
        Ok(())
    }

    /// Of one access that Arm SPE traced, `perf inject` makes a sample for each of its events that the access
    /// counts for, one after the other, all of the hardware's type (tools/perf/util/arm-spe.c, arm_spe_sample).
    fn is_repeated(&mut self, event: usize, attr: &Attr, found: &Sample) -> bool {
        if attr.event.0 != PERF_TYPE_HARDWARE || found.addr.is_none_or(|addr| addr == 0) {
            return false;
        }
        let what = [found.time, found.ip, found.addr, found.data_src];
        let this = (event, what, found.task);
        let last = self.synthesized.replace(this);
        last.is_some_and(|last| last.0 != event && (last.1, last.2) == (this.1, this.2))
    }

    fn take_found(&mut self, misc: u16, found: &Sample) {
        let mode = misc & flag::CPU_MODE;
        let kernel = matches!(mode, flag::KERNEL | flag::HYPERVISOR | flag::GUEST_KERNEL);
        // Intel counts cycles in 32 bits; what is above them in PERF_SAMPLE_WEIGHT_STRUCT is other figures.
        let latency = found.weight.map_or(0, |weight| weight as u32);
        let time = self.time(found.time);
        let time_ns = time.unwrap_or_else(|| self.order.newest());
        self.tally.produced += 1;
        self.tally.samples += 1;
        self.tally.kernel_samples += u64::from(kernel);
        self.tally.cost += Cost(latency.into());
        self.counts.cover(time_ns);
        let guest = matches!(mode, flag::GUEST_KERNEL | flag::GUEST_USER);
        self.counts.guests += u64::from(guest);
        // PowerPC has all ones where it knows none (arch/powerpc/perf/core-book3s.c).
        let addr = found.addr.filter(|addr| *addr != 0 && *addr != u64::MAX);
        // A guest's addresses are not those of the process that runs it.
        let Some(addr) = addr.filter(|_| !guest) else {
            let unresolved = &mut self.tally.unresolved;
            *unresolved.entry(Unresolved::NoDataAddress).or_default() += 1;
            return;
        };
        self.tally.attributed += 1;
        let source = found.data_src.and_then(DataSource::new);
        let op = source.map_or(Op::Unknown, operation);
        let (pid, tid) = found.task.unwrap_or_default();
        self.counts.accesses += 1;
        let exact = misc & flag::EXACT_IP != 0;
        self.counts.exact += u64::from(exact);
        self.counts.stores += u64::from(op.stores());
        self.counts.no_cpu += u64::from(found.cpu.is_none());
        self.counts.no_thread += u64::from(found.task.is_none());
        self.counts.no_time += u64::from(found.time.is_none());
        let access = Access {
            time_ns,
            addr,
            ip: found.ip.unwrap_or_default(),
            cost: Cost(latency),
            pid: Pid(pid),
            tid: Tid(tid),
            cpu: Cpu(found.cpu.unwrap_or(tid % STAND_IN_CPUS)),
            size: 0,
            op,
            basis: Basis::Sampled,
            locked: source.is_some_and(|source| source.lock_bits() & LOCKED != 0),
            kernel,
            measured: Measured {
                source,
                latency_cycles: NonZeroU32::new(latency),
                phys_addr: found.phys_addr.and_then(NonZeroU64::new),
                repeats: 0,
            },
            ..Access::BLANK
        };
        self.order.push(time, 0, Item::Access { access, exact });
    }

    /// Moves what is due into the batch, until it has `most` items. Whether any was moved.
    pub(super) fn give(&mut self, batch: &mut Batch, most: usize) -> bool {
        let mut given = 0;
        // Only its instructions can be taken apart.
        let x86 = self.features.arch.as_deref() == Some("x86_64");
        let mut sizes = self.sizes.as_mut().filter(|_| x86);
        while given < most
            && let Some((time_ns, item)) = self.order.next()
        {
            given += 1;
            match item {
                Item::Access { mut access, exact } => {
                    access.time_ns = time_ns;
                    if let Some(sizes) = sizes.as_mut().filter(|_| exact) {
                        access.size = sizes.size(&access);
                        self.counts.sized += u64::from(access.size > 0);
                    }
                    batch.accesses.push(access);
                }
                Item::Context(kind) => {
                    let context = Context { time_ns, kind };
                    if let Some(sizes) = &mut sizes {
                        sizes.apply(&context);
                    }
                    batch.context.push(context);
                }
            }
        }
        batch.tally.add(&std::mem::take(&mut self.tally));
        given > 0
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self) {
        let lost = self.counts.lost_once(self.events.count_losses());
        self.tally.produced = lost
            .values()
            .fold(self.tally.produced, |sum, n| sum.saturating_add(*n));
        self.tally.lost = lost;
        self.order.finish();
    }
}

fn count_lost(counts: &mut BTreeMap<Cpu, u64>, cpu: Option<u32>, n: u64) {
    // Damage may name any number of CPUs.
    let cpu = cpu.map_or(NO_CPU, |cpu| if cpu < 1 << 16 { Cpu(cpu) } else { NO_CPU });
    let lost = counts.entry(cpu).or_default();
    *lost = lost.saturating_add(n);
}

/// `PERF_MEM_LOCK_LOCKED`.
const LOCKED: u64 = 2;

/// What `mem_op` says: a set of `PERF_MEM_OP_*`.
fn operation(source: DataSource) -> Op {
    let has = |bit| source.op_bits() & bit != 0;
    match (has(2), has(4), has(8)) {
        (true, true, _) => Op::Rmw,
        (true, false, _) => Op::Load,
        (false, true, _) => Op::Store,
        (false, false, true) => Op::Prefetch,
        (false, false, false) => Op::Unknown,
    }
}
