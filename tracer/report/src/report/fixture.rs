//! Made-up judgements and names for the report's tests.

use std::collections::BTreeMap;

use super::{
    RunFacts, WatchFacts, build,
    model::{Observed, Report, Target},
};
use crate::{
    access::{ByteSet, Cost, CostUnit, Cpu, LineKey, LineSize, Op, Pid, Place, SpaceId, Tid},
    analysis::{CpuSet, Kinds, Paces, Site, SiteCounts, Totals, Uses},
    distribution::Distributions,
    event::{Breadth, Tally, WatchTally},
    finding::{Confidence, Fact, Judgement, Significance, ThreadCounts, Thresholds, Verdict},
    names::{
        AccessedBy, CodeName, Coverage, FieldName, Language, Names, ObjectKind, ObjectName, Owned,
        Owner, ThreadName, TypeTree, Untyped, WordUse,
    },
};

/// Where the lines of the tests start.
pub(crate) const LINE: u64 = 0x404040;

/// Sampled time of the tests: shares of it are easy to check by eye.
pub(crate) const WHOLE_NS: u64 = 10_000_000_000;

/// First byte, one past the last, object, path.
type FakeField = (u8, u8, usize, Option<String>);

/// Answers from tables.
#[derive(Default, Clone)]
pub(crate) struct FakeNames {
    /// What all lines are of; `None` where each is a thing of its own.
    pub owner: Option<String>,
    pub objects: Vec<ObjectName>,
    pub fields: Vec<FakeField>,
    /// The same, of the line at this address alone.
    pub fields_at: BTreeMap<u64, Vec<FakeField>>,
    pub code: BTreeMap<u64, CodeName>,
    pub comms: BTreeMap<u32, String>,
    pub caveats: Vec<String>,
    pub coverage: Coverage,
    /// Types by the index of their object.
    pub trees: BTreeMap<usize, TypeTree>,
    /// What instructions do with their words.
    pub uses: BTreeMap<u64, WordUse>,
}

impl FakeNames {
    pub(crate) fn field(mut self, from: u8, to: u8, object: usize, path: &str) -> FakeNames {
        let path = (!path.is_empty()).then(|| path.to_owned());
        self.fields.push((from, to, object, path));
        self
    }

    pub(crate) fn code(
        mut self,
        ip: u64,
        symbol: &str,
        file: &str,
        line: u32,
        language: Language,
    ) -> FakeNames {
        let code = CodeName {
            module: Some("/usr/bin/demo".to_owned()),
            build_id: Some("c0ffee".to_owned()),
            ip: ip - 0x400000,
            symbol: Some(symbol.to_owned()),
            symbol_offset: None,
            inline_chain: Vec::new(),
            inlined: Vec::new(),
            file: Some(file.to_owned()),
            line: Some(line),
            column: Some(9),
            language: Some(language),
        };
        self.code.insert(ip, code);
        self
    }

    /// What the instruction at an address does.
    pub(crate) fn does(mut self, ip: u64, does: WordUse) -> FakeNames {
        self.uses.insert(ip, does);
        self
    }

    pub(crate) fn comm(mut self, tid: u32, comm: &str) -> FakeNames {
        self.comms.insert(tid, comm.to_owned());
        self
    }
}

impl Names for FakeNames {
    fn owner(&self, key: LineKey, _: LineSize, _: &[AccessedBy]) -> Option<Owned> {
        Some(Owned {
            owner: Owner {
                kind: ObjectKind::Global,
                label: self.owner.clone().unwrap_or_else(|| key.to_string()),
                start: 0,
                part: 0,
            },
            lines: self.owner.as_ref().map(|_| 4),
            unit: None,
        })
    }

    fn objects(&self, _: LineKey, _: LineSize, _: &[AccessedBy]) -> Vec<ObjectName> {
        self.objects.clone()
    }

    fn field(&self, key: LineKey, _: LineSize, offset: u8, bytes: u16) -> Option<FieldName> {
        let end = u16::from(offset) + bytes;
        let own = self.fields_at.get(&key.0.position());
        let found = (own.unwrap_or(&self.fields).iter())
            .find(|(from, to, ..)| *from <= offset && end <= u16::from(*to))?;
        Some(FieldName {
            object: found.2,
            path: found.3.clone(),
        })
    }

    fn type_tree(&self, _: LineKey, _: LineSize, object: usize) -> Result<TypeTree, Untyped> {
        let kind = self.objects.get(object).map(|object| object.kind);
        let untyped = kind.map_or(Untyped::NoObject, Untyped::Memory);
        self.trees.get(&object).cloned().ok_or(untyped)
    }

    fn address(&self, key: LineKey) -> Option<u64> {
        match key.0 {
            Place::Private { addr, .. } => Some(addr),
            _ => None,
        }
    }

    fn code(&self, _: Option<SpaceId>, ip: u64, _: bool) -> CodeName {
        let unknown = CodeName {
            module: Some("/opt/stripped/server".to_owned()),
            ip: ip - 0x400000,
            ..CodeName::default()
        };
        self.code.get(&ip).cloned().unwrap_or(unknown)
    }

    fn word_use(&self, _: SpaceId, ip: u64, _: bool) -> Option<WordUse> {
        self.uses.get(&ip).copied()
    }

    fn thread(&self, tid: Tid) -> ThreadName {
        ThreadName {
            comm: self.comms.get(&tid.0).cloned(),
        }
    }

    fn caveats(&self) -> Vec<String> {
        self.caveats.clone()
    }

    fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }
}

pub(crate) fn object(name: &str, kind: ObjectKind, start: u64, size: u64) -> ObjectName {
    ObjectName {
        kind,
        name: Some(name.to_owned()),
        called: None,
        is_reached: false,
        thread: None,
        type_name: None,
        file: None,
        line: None,
        start: Some(start),
        size: Some(size),
        alignment: None,
        language: None,
        layout: None,
        allocation: None,
    }
}

/// One site of pid 4000: bytes, direction, thread (which runs on one CPU), instruction, counts.
pub(crate) fn site(
    offset: u8,
    size: u8,
    op: Op,
    tid: u32,
    ip: u64,
    stalled: u32,
    decoded: u32,
) -> SiteCounts {
    let mut cpus = CpuSet::default();
    cpus.insert(Cpu(tid % 2));
    SiteCounts {
        stalled,
        decoded,
        cost: Cost(u64::from(stalled) * 1_000_000),
        cpus,
        ..SiteCounts::unseen(Site {
            space: SpaceId(0),
            ip,
            pid: Pid(4000),
            tid: Tid(tid),
            offset,
            size,
            op,
            locked: false,
            kernel: false,
            size_known: true,
            within: 0,
        })
    }
}

/// A finding on the line at [`LINE`] made of these sites.
pub(crate) fn judgement(verdict: Verdict, true_weight: f64, sites: Vec<SiteCounts>) -> Judgement {
    let cost: Cost = sites.iter().map(|site| site.cost).sum();
    let samples = sites.iter().map(SiteCounts::accesses).sum();
    let mut by_thread: BTreeMap<(Pid, Tid), ThreadCounts> = BTreeMap::new();
    for site in &sites {
        let thread = by_thread
            .entry((site.site.pid, site.site.tid))
            .or_insert(ThreadCounts {
                pid: site.site.pid,
                tid: site.site.tid,
                accesses: 0,
                stores: 0,
                cost: Cost(0),
                cpus: site.cpus.clone(),
            });
        thread.accesses += site.accesses();
    }
    Judgement {
        confidence: Confidence::Sampled,
        watched: None,
        order: None,
        key: LineKey(Place::Private {
            space: SpaceId(0),
            addr: LINE,
        }),
        verdict: Some(verdict),
        significance: Significance::Significant,
        cost,
        shared_cost: Cost(cost.0 / 10 * 9),
        alike_share: None,
        together_share: None,
        shared_share: Some((cost.0 / 10 * 9) as f64 / WHOLE_NS as f64),
        pmu: None,
        distributions: Distributions::default(),
        samples,
        accesses: samples,
        interleaving: 0.9,
        kinds: Some(Kinds {
            truly: true_weight,
            falsely: 1.0 - true_weight,
        }),
        facts: vec![
            Fact::HandOffs {
                seen: samples as f64 * 0.49,
                expected: samples as f64 * 0.5,
            },
            Fact::Separable(1.0 - true_weight),
        ],
        threads: by_thread.into_values().collect(),
        weak: false,
        sites,
        uses: Uses::default(),
    }
}

/// Adds what judging says of stored bytes.
pub(crate) fn with_bytes(mut judgement: Judgement, common: u128, private: u128) -> Judgement {
    if common != 0 {
        judgement.facts.push(Fact::CommonBytes(ByteSet(common)));
    }
    if private != 0 {
        judgement.facts.push(Fact::PrivateBytes(ByteSet(private)));
    }
    judgement
}

/// A run with some windows.
pub(crate) fn watching() -> RunFacts {
    RunFacts {
        watch: Some(WatchFacts {
            budget_share: 0.02,
            hit_cost_ns: 9000,
            slots: 4,
            breadth: Breadth::Cpus,
        }),
        watched: WatchTally {
            windows: 5,
            hits: 640,
            cost_ns: 6_000_000,
            ..WatchTally::default()
        },
        ..facts()
    }
}

pub(crate) fn facts() -> RunFacts {
    RunFacts {
        heap: None,
        observed: Observed {
            sources: vec!["timer".to_owned()],
            started_ns: Some(1_000_000_000),
            duration_ns: 5_000_000_000,
            frequency_hz: Some(1000),
            targets: vec![Target {
                pid: Some(4000),
                command: Some("demo".to_owned()),
            }],
            cpus: 2,
        },
        watch: None,
        watched: WatchTally::default(),
        line_size: LineSize::B64,
        totals: Totals {
            accesses: 31_000,
            touches: 31_000,
            ..Totals::default()
        },
        lines: Some(120),
        shared_lines: Some(3),
        thresholds: Thresholds::default(),
        cost_unit: CostUnit::SampledTime,
        order: None,
        software_emulation: None,
        paces: Paces::default(),
        own_costs: None,
        undecided_cost: Cost(0),
        caveats: Vec::new(),
    }
}

pub(crate) fn tally() -> Tally {
    Tally {
        produced: 10_000,
        samples: 10_000,
        cost: Cost(WHOLE_NS),
        attributed: 10_000,
        ..Tally::default()
    }
}

pub(crate) fn report(judgements: &[Judgement], names: &FakeNames) -> Report {
    build(&judgements.into(), &[], names, &tally(), &facts())
}
