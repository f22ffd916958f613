//! Read-then-write pairs as the report shows them.

use super::{
    build::RunFacts,
    model::{Code, Left, Line, LoadHint, Pair, PairSide, Taken},
    number::percent,
    rows,
    subject::Subject,
};
use crate::{
    access::LineSize,
    analysis::{self, CpuSet, Site, SiteCounts},
    finding::{Hint, JudgedPair, NoHint},
    hint::load,
    names::Names,
};

/// Pairs that are listed; the others are rarer.
const LISTED: usize = 100;

/// Names the pairs, in their order.
pub(super) fn pairs(judged: &[JudgedPair], names: &dyn Names, run: &RunFacts) -> Vec<Pair> {
    let listed = judged.iter().take(LISTED).zip(1..);
    listed
        .map(|(judged, number)| pair(format!("P{number}"), judged, names, run.line_size, run))
        .collect()
}

fn pair(
    id: String,
    judged: &JudgedPair,
    names: &dyn Names,
    line_size: LineSize,
    run: &RunFacts,
) -> Pair {
    let pair = &judged.pair;
    // The subject knows fields by the sites that touch them.
    let sites = [site(&pair.load), site(&pair.store)];
    let subject = Subject::new(names, judged.line, line_size, &sites);
    let load = side(&pair.load, &subject, names);
    let store = side(&pair.store, &subject, names);
    let (hint, no_hint_because) = match judged.hint {
        Hint::FetchForOwnership => (Some(load_hint(&load, &store)), None),
        Hint::No(reason) => (None, Some(words(reason, run))),
    };
    Pair {
        id,
        field: load.field.clone(),
        load,
        store,
        same_instruction: pair.same_instruction,
        line: Line {
            key: judged.line.to_string(),
            address: names
                .address(judged.line)
                .map(|address| format!("{address:#x}")),
            bytes: line_size.bytes(),
        },
        object: subject.object(&sites, run),
        count: pair.count,
        global_count: pair.global_count,
        executions: pair.executions,
        share_of_load: pair.share_of_load,
        load_requests: pair.load_requests,
        complete_order: pair.complete_order,
        taken: Taken {
            reads: pair.taken_by_reads,
            writes: pair.taken_by_writes,
        },
        left: Left {
            dirty: pair.left.dirty,
            clean: pair.left.clean,
            shared: pair.left.shared,
            own: pair.left.own,
        },
        threads: pair.threads as u64,
        hint,
        no_hint_because,
    }
}

fn side(side: &analysis::PairSide, subject: &Subject, names: &dyn Names) -> PairSide {
    let at = &side.instruction;
    PairSide {
        code: rows::code(names.code(Some(at.space), at.ip, at.kernel)),
        op: rows::op_name(side.op).map(str::to_owned),
        offset: side.offset,
        size: u16::from(side.size),
        field: subject.label(side.offset, u16::from(side.size)).1,
    }
}

fn site(side: &analysis::PairSide) -> SiteCounts {
    SiteCounts {
        site: Site {
            space: side.instruction.space,
            ip: side.instruction.ip,
            pid: crate::access::Pid::default(),
            tid: crate::access::Tid::default(),
            offset: side.offset,
            size: side.size,
            op: side.op,
            locked: false,
            kernel: side.instruction.kernel,
            size_known: true,
        },
        stalled: 0,
        decoded: 1,
        harvested: 0,
        emulated: 0,
        trapped: 0,
        pmu: analysis::PmuCounts::default(),
        cost_ns: 0,
        cpus: CpuSet::default(),
    }
}

fn load_hint(load: &PairSide, store: &PairSide) -> LoadHint {
    LoadHint {
        kind: load::FETCH_FOR_OWNERSHIP.to_owned(),
        x86: load::X86.to_owned(),
        aarch64: load::AARCH64.to_owned(),
        text: load::sentence(&place(&load.code), &place(&store.code)),
    }
}

/// `worker.c:31`, or what else is known of the instruction.
pub(super) fn place(code: &Code) -> String {
    match (&code.file, code.line, &code.symbol, &code.module) {
        (Some(file), Some(line), ..) => {
            format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
        }
        (_, _, Some(symbol), _) => format!("{symbol} ({})", code.ip),
        (_, _, None, Some(module)) => {
            format!(
                "{}+{}",
                module.rsplit('/').next().unwrap_or(module),
                code.ip
            )
        }
        (_, _, None, None) => code.ip.clone(),
    }
}

fn words(reason: NoHint, run: &RunFacts) -> String {
    let limits = &run.thresholds.pairs;
    match reason {
        NoHint::SameInstruction => {
            "one instruction reads and writes, and fetches for ownership by itself".to_owned()
        }
        NoHint::TooFewExecutions => {
            format!("fewer than {} executions were seen", limits.executions)
        }
        NoHint::SeldomStored(share) => format!(
            "the store follows {} of the loads, less than {}",
            percent(share),
            percent(limits.share_of_load)
        ),
        NoHint::AlwaysHits => "the load always found the line in its cache".to_owned(),
        NoHint::TakenFromReaders(share) => format!(
            "other CPUs that only read would lose their copy at {} of the loads, more than {}",
            percent(share),
            percent(limits.readers)
        ),
    }
}
