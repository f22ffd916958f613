//! Read-then-write pairs as the report shows them.

use crate::number::{percent, percent_beside};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
};

use super::{
    model::{Code, Hex, Line, LoadHint, Pair, PairSide, Taken},
    rows,
    run_facts::RunFacts,
    subject::OnLine,
};
use crate::{
    analysis::{self, Site, SiteCounts},
    finding::{Hint, JudgedPair, NoHint},
    hint::load,
    names::{Language, Names},
};

/// Pairs that are listed; the others are rarer.
const LISTED: usize = 100;

/// Names the pairs, in their order.
pub(super) fn pairs(judged: &[JudgedPair], names: &dyn Names, run: &RunFacts) -> Vec<Pair> {
    let all = of_all_lines(judged);
    let listed = all.iter().take(LISTED).zip(1..);
    listed
        .map(|(all, number)| pair(format!("P{number}"), all, names, run))
        .collect()
}

/// A pair on all lines where it was seen.
struct OnLines {
    /// Of the line where it was seen most often, with the counts of all.
    judged: JudgedPair,
    lines: u64,
}

/// Pairs of the same two instructions are one, whatever the line; those with a hint first, then by how often they were
/// seen. What is said of the load is what holds on the line where it was seen most often.
fn of_all_lines(judged: &[JudgedPair]) -> Vec<OnLines> {
    let mut numbers = BTreeMap::new();
    let mut all: Vec<OnLines> = Vec::new();
    for judged in judged {
        let is_hinted = judged.hint == Hint::FetchForOwnership;
        let sides = (judged.pair.load.instruction, judged.pair.store.instruction);
        match numbers.entry((sides, is_hinted)) {
            Entry::Vacant(entry) => {
                entry.insert(all.len());
                all.push(OnLines {
                    judged: judged.clone(),
                    lines: 1,
                });
            }
            Entry::Occupied(entry) => {
                let known = &mut all[*entry.get()];
                known.judged.pair.add(&judged.pair);
                known.lines += 1;
            }
        }
    }
    all.sort_by_key(|all| {
        let pair = &all.judged.pair;
        let is_hinted = all.judged.hint == Hint::FetchForOwnership;
        (!is_hinted, pair.same_instruction, Reverse(pair.count))
    });
    all
}

fn pair(id: String, on_lines: &OnLines, names: &dyn Names, run: &RunFacts) -> Pair {
    let OnLines { judged, lines } = on_lines;
    let line_size = run.line_size;
    let pair = &judged.pair;
    // The subject knows fields by the sites that touch them.
    let sites = [site(&pair.load), site(&pair.store)];
    let subject = OnLine::new(names, judged.line, line_size, &sites);
    let subject = if *lines > 1 {
        subject.generic()
    } else {
        subject
    };
    let (load, language) = side(&pair.load, &subject, names);
    let (store, _) = side(&pair.store, &subject, names);
    let (hint, no_hint_because) = match judged.hint {
        Hint::FetchForOwnership => (Some(load_hint(&load, &store, language)), None),
        Hint::No(reason) => (None, Some(words(reason, run))),
    };
    Pair {
        id,
        field: load.field.clone(),
        load,
        store,
        same_instruction: pair.same_instruction,
        lines: *lines,
        line: Line {
            key: judged.line,
            address: names.address(judged.line).map(Hex),
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
        left: pair.left,
        threads: pair.threads as u64,
        hint,
        no_hint_because,
    }
}

/// One side, and the language of its source.
fn side(
    side: &analysis::PairSide,
    subject: &OnLine,
    names: &dyn Names,
) -> (PairSide, Option<Language>) {
    let at = &side.instruction;
    let code = names.code(Some(at.space), at.ip, at.kernel);
    let of_file = || code.file.as_deref().and_then(Language::of_file);
    let language = code.language.or_else(of_file);
    let side = PairSide {
        code: rows::code(code),
        op: side.op,
        offset: side.offset,
        size: u16::from(side.size),
        within: (side.within > 0).then_some(side.within),
        field: subject.label(&site(side).site).1,
    };
    (side, language)
}

fn site(side: &analysis::PairSide) -> SiteCounts {
    SiteCounts {
        decoded: 1,
        ..SiteCounts::unseen(Site {
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
            within: side.within,
        })
    }
}

fn load_hint(load: &PairSide, store: &PairSide, language: Option<Language>) -> LoadHint {
    LoadHint {
        kind: load::FETCH_FOR_OWNERSHIP,
        x86: load::X86,
        aarch64: load::AARCH64,
        text: load::sentence(&place(&load.code), &place(&store.code), language),
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
        (_, _, None, None) => code.ip.to_string(),
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
            percent_beside(share, limits.share_of_load),
            percent(limits.share_of_load)
        ),
        NoHint::AlwaysHits => "the load always found the line in its cache".to_owned(),
        NoHint::TakenFromReaders(share) => format!(
            "other CPUs that only read would lose their copy at {} of the loads, more than {}",
            percent_beside(share, limits.readers),
            percent(limits.readers)
        ),
    }
}
