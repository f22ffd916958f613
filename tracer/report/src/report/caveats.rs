//! What could not be seen, in sentences a user can act on. Every loss that was counted is printed.

use super::{
    caveat::{Caveat, Weight},
    headline,
    model::{Finding, Run},
    run_facts::RunFacts,
};
use crate::number::{count, grouped, list, percent};
use crate::{
    access::Place,
    analysis::OrderTotals,
    event::{Breadth, Tally, Unresolved},
    names::Coverage,
};

/// Reasons with less than this share of the samples are summed up in one sentence.
const WORTH_ITS_OWN: f64 = 0.03;

/// Share of undecided waits worth a sentence.
const UNDECIDED_SHARE: f64 = 0.001;

/// Time without samples on a CPU that is worth a sentence, nanoseconds.
const BLIND_NS: u64 = 1_000_000;

/// Share of kernel samples worth a sentence.
const KERNEL_SHARE: f64 = 0.01;

/// Where so many samples could not be read for one reason, what they were waiting for may be missing.
const MUCH: f64 = 0.2;

/// All that the counts say.
pub(super) fn of_run(tally: &Tally, run: &RunFacts) -> Vec<Caveat> {
    let mut out = Vec::new();
    if tally.counted() == 0 {
        out.push(Caveat::reading(no_samples(tally, run)));
    }
    out.extend(lost(tally).into_iter().map(Caveat::reading));
    out.extend(unresolved(tally));
    out.extend(run.order.iter().flat_map(emulated));
    let kernel = part(tally.kernel_samples, tally.counted());
    if kernel >= KERNEL_SHARE {
        out.push(Caveat::detail(format!(
            "{} of the samples were taken in kernel mode. What the kernel touches there is counted, but named only \
             where the kernel's symbols can be read.",
            percent(kernel)
        )));
    }
    if tally.operands_unknown > 0 {
        out.push(Caveat::detail(format!(
            "The addresses of {} in the sampled code could not be computed, so a line may have users that are not \
             listed.",
            count(tally.operands_unknown, "memory operand", "memory operands")
        )));
    }
    if let Some(emulator) = run
        .software_emulation
        .as_ref()
        .filter(|_| run.order.is_none())
    {
        out.push(Caveat::reading(format!(
            "The machine is {}: its processors do not wait for lines as real ones do, and most hits of breakpoints are \
             not seen. Shares of time say nothing of real machines.",
            headline::by(emulator)
        )));
    }
    let totals = &run.totals;
    if totals.evicted_lines > 0 {
        let weight = Weight::reading_if(totals.evicted_shared_lines > 0);
        let text = format!(
            "To bound the memory used, {} {} forgotten ({} of the accesses), {} of them touched by more than one \
             thread. Watch fewer processes at a time to keep them.",
            count(totals.evicted_lines, "cache line", "cache lines"),
            if totals.evicted_lines == 1 {
                "was"
            } else {
                "were"
            },
            percent(part(totals.evicted_touches, totals.touches)),
            grouped(totals.evicted_shared_lines)
        );
        out.push(Caveat { text, weight });
    }
    if run.watched.windows > 0 {
        out.extend(windows(run));
    } else if run.order.is_none()
        && tally.counted() > 0
        && run.totals.pmu_loads.sampled + run.totals.pmu_stores.sampled == 0
    {
        out.push(Caveat::detail(
            "Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a line \
             between CPUs: shares of time are estimates, and no hand-offs are counted.",
        ));
    }
    out
}

/// What an emulator changes, and what it cannot see.
fn emulated(order: &OrderTotals) -> Vec<Caveat> {
    let mut out = vec![
        Caveat::detail(
            "The program ran in an emulator, many times slower than on the machine: times are the emulator's, and costs are \
         messages that a coherence protocol without evictions sends, not time.",
        ),
        Caveat::detail(
            "Threads ran in parallel, but met each other as the emulator let them: on the machine they may take turns more or \
         less often. What the kernel reads and writes of the program's memory was not seen.",
        ),
    ];
    if order.untracked > 0 {
        out.push(Caveat::reading(format!(
            "To bound the memory used, the messages of {} to rarely used lines were not counted.",
            count(order.untracked, "access", "accesses")
        )));
    }
    if order.unpaired_lines > 0 {
        out.push(Caveat::reading(format!(
            "To bound the memory used, no read-then-write pairs were kept of {} that became shared last.",
            count(order.unpaired_lines, "line", "lines")
        )));
    }
    out
}

/// Memory without a name whose type no instruction told, which matters where a finding is of such.
pub(super) fn of_typing(coverage: &Coverage, findings: &[Finding]) -> Option<Caveat> {
    let untold: u64 = coverage.untraced.values().sum();
    if untold == 0 {
        return None;
    }
    let mut reasons: Vec<(&String, u64)> = (coverage.untraced.iter())
        .map(|((_, words), n)| (words, *n))
        .collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let reasons: Vec<String> = (reasons.iter())
        .map(|(words, n)| format!("{} {words}", grouped(*n)))
        .collect();
    let text = format!(
        "{} of {} did not tell the type of the memory without a name that they access: {}.",
        grouped(untold),
        count(untold + coverage.named, "instruction", "instructions"),
        reasons.join(", ")
    );
    let weight = Weight::reading_if(findings.iter().any(is_nameless));
    Some(Caveat { text, weight })
}

/// Of memory that has neither a name nor a type.
fn is_nameless(finding: &Finding) -> bool {
    finding.object.name.is_none() && finding.object.type_name.is_none()
}

/// Lines of which only the physical address is known.
pub(super) fn of_physical<'a>(listed: impl Iterator<Item = &'a Finding>) -> Option<Caveat> {
    let ids: Vec<String> = listed
        .filter(|finding| matches!(finding.line.key.0, Place::Physical { .. }))
        .map(|finding| finding.id.to_string())
        .collect();
    (!ids.is_empty()).then(|| {
        Caveat::reading(format!(
            "Of the memory of {} only the physical address is known: no mapping of the processes was there to name it.",
            list(&ids, 8)
        ))
    })
}

/// Findings, by id, that rest on weak evidence.
pub(super) fn of_weak(ids: &[String]) -> Option<Caveat> {
    let who = match ids {
        [] => return None,
        [one] => format!("{one} rests"),
        _ => format!("{} rest", list(ids, 8)),
    };
    Some(Caveat::reading(format!(
        "{who} on weak evidence: addresses inferred from the loops around the samples."
    )))
}

/// Why names are missing, which matters where a finding lacks one.
pub(super) fn of_names(why: Vec<String>, findings: &[Finding]) -> Vec<Caveat> {
    let lacks_a_name = |finding: &Finding| {
        is_nameless(finding) || finding.accesses.iter().any(|row| row.code.file.is_none())
    };
    let weight = Weight::reading_if(findings.iter().any(lacks_a_name));
    let caveat = |text| Caveat { text, weight };
    why.into_iter().map(caveat).collect()
}

/// What watch windows could not see, and what they disturb.
fn windows(run: &RunFacts) -> Vec<Caveat> {
    let watched = &run.watched;
    let mut out = vec![Caveat::detail(
        "Hand-offs and pairs are of the watch windows, in which each access takes a trap: the order within a \
         thread is exact, but threads meet each other differently than at full speed.",
    )];
    if run
        .watch
        .as_ref()
        .is_some_and(|watch| watch.breadth == Breadth::Threads)
    {
        out.push(Caveat::reading(
            "Breakpoints could be set on single threads only: accesses of threads that were born during a window \
             are missing from it.",
        ));
    }
    if watched.lost > 0 {
        out.push(Caveat::reading(format!(
            "{} of {} found no room in a ring buffer: {} of the windows have holes in their order.",
            grouped(watched.lost),
            count(watched.hits, "breakpoint hit", "breakpoint hits"),
            grouped(watched.incomplete)
        )));
    }
    let unresolved: u64 = watched.unresolved.values().sum();
    if unresolved > 0 {
        let reasons: Vec<String> = watched
            .unresolved
            .iter()
            .map(|(reason, n)| format!("{} {}", grouped(*n), words(*reason)))
            .collect();
        out.push(Caveat::reading(format!(
            "The instruction of {} could not be told: {}. Windows with such hits have holes in their order.",
            count(unresolved, "breakpoint hit", "breakpoint hits"),
            reasons.join("; ")
        )));
    }
    out
}

fn no_samples(tally: &Tally, run: &RunFacts) -> String {
    let arrived = if tally.lost_total() > 0 {
        "All samples were lost, see below".to_owned()
    } else {
        format!(
            "No sample of the target arrived in {}",
            crate::number::seconds(run.observed.duration_s())
        )
    };
    format!(
        "{arrived}. A program is sampled only while it runs on a CPU. Check that it still runs and is not idle (`top -H`), \
         that the right process is watched (children and other containers have pids of their own), look longer \
         (--duration), and see what `cohtrace doctor` says about this machine."
    )
}

fn lost(tally: &Tally) -> Vec<String> {
    let mut out = Vec::new();
    let lost = tally.lost_total();
    if lost > 0 {
        let worst = tally.lost.iter().max_by_key(|(_, n)| **n);
        let worst = worst
            .filter(|_| tally.lost.len() > 1)
            .map_or_else(String::new, |(cpu, n)| {
                format!(", most of them ({}) on CPU {}", grouped(*n), cpu.0)
            });
        out.push(format!(
            "{} of {} ({}) found no room in the ring buffer and {} lost{worst}. Shares of time are of those that \
             arrived. A lower rate (-F) loses less.",
            grouped(lost),
            count(tally.produced, "sample", "samples"),
            percent(part(lost, tally.produced)),
            if lost == 1 { "was" } else { "were" },
        ));
    }
    let accounted = tally.counted().saturating_add(lost);
    if tally.produced != accounted {
        out.push(format!(
            "The counts do not add up: {} were taken, but {} arrived and {} were lost. Please report this.",
            count(tally.produced, "sample", "samples"),
            grouped(tally.counted()),
            grouped(lost)
        ));
    }
    for (cpu, ns) in tally.blind_ns.iter().filter(|(_, ns)| **ns >= BLIND_NS) {
        out.push(format!(
            "CPU {} was online and not sampled for {}: it came online then, or its clock gave nothing. What ran there \
             meanwhile is missing.",
            cpu.0,
            crate::number::seconds(*ns as f64 / 1e9)
        ));
    }
    if tally.lost_context > 0 {
        out.push(format!(
            "{} of mappings and tasks {} lost, so some names, and which memory is shared, may be wrong.",
            count(tally.lost_context, "record", "records"),
            if tally.lost_context == 1 { "was" } else { "were" },
        ));
    }
    out
}

fn unresolved(tally: &Tally) -> Vec<Caveat> {
    let mut out = Vec::new();
    let mut rest = 0u64;
    for (&reason, &n) in &tally.unresolved {
        let share = part(n, tally.counted());
        if share >= WORTH_ITS_OWN {
            let waited = reason != Unresolved::NoMemoryOperand;
            let weight = Weight::reading_if(waited && share >= MUCH);
            let text = format!("{} of the samples {}.", percent(share), words(reason));
            out.push(Caveat { text, weight });
        } else {
            rest = rest.saturating_add(n);
        }
    }
    if rest > 0 {
        out.push(Caveat::detail(format!(
            "{} of the samples could not be tied to an access for {}.",
            percent(part(rest, tally.counted())),
            if out.is_empty() {
                "one reason or another (counted by reason in the JSON form)"
            } else {
                "other reasons"
            }
        )));
    }
    out
}

/// Waits that belong to no line that is listed. `spinning` is the share of the time that listed lines have of it.
pub(super) fn waits(run: &Run, spinning: f64) -> Vec<Caveat> {
    let mut out = Vec::new();
    let elsewhere = run.spinning_share - spinning;
    if elsewhere >= WORTH_ITS_OWN {
        let text = format!(
            "{} of the time threads spun in loops that wait for memory to change, and nobody was seen to change it (as \
             while another CPU answers an interrupt): no line above has this time.",
            percent(elsewhere)
        );
        let weight = Weight::reading_if(elsewhere >= MUCH);
        out.push(Caveat { text, weight });
    }
    let undecided = run.undecided_share;
    if undecided >= UNDECIDED_SHARE {
        let text = format!(
            "{} of the time was seen at loads of memory that nobody was seen to store to: what the CPU waited for there is \
             undecided.",
            percent(undecided)
        );
        let weight = Weight::reading_if(undecided >= MUCH);
        out.push(Caveat { text, weight });
    }
    out
}

/// Continues "12 % of the samples ..".
fn words(reason: Unresolved) -> &'static str {
    match reason {
        Unresolved::NoMemoryOperand => {
            "stand behind an instruction that touches no memory: there the CPU was computing, or had just waited for an \
             access shortly before it"
        }
        Unresolved::NoMapping => {
            "are in code for which no mapping is known, as of processes that ended before they could be looked at"
        }
        Unresolved::NoModule => {
            "are in code whose file could not be read or is not the one that runs (deleted, replaced, or in another \
             mount namespace)"
        }
        Unresolved::NoFunction => {
            "are in code that no symbol, unwind table or JIT map divides into functions, as in generated code whose compiler \
             writes no map (node --perf-basic-prof, python -X perf, DOTNET_PerfMapEnabled=1, \
             jcmd PID Compiler.perfmap)"
        }
        Unresolved::NotAnInstruction => {
            "do not point at an instruction of their function, as in self-modified code"
        }
        Unresolved::AmbiguousPath => {
            "stand where several paths meet, so which access the CPU was waiting for could not be told"
        }
        Unresolved::RegisterOverwritten => {
            "have lost the address: its register was overwritten before the sample was taken"
        }
        Unresolved::SegmentUnknown => "touch memory relative to a segment whose base is not known",
        Unresolved::KernelText => "are in kernel code that could not be read",
        Unresolved::Code32Bit => "are in 32-bit code, which is not decoded",
        Unresolved::NoCoveringAccess => "follow no instruction that touches the watched word",
        Unresolved::NoDataAddress => "have no data address",
        Unresolved::FullBarrier => {
            "stand behind a full barrier (`mfence`), where the CPU waits for the stores before it: none of them is known to \
             be to memory that several threads use"
        }
    }
}

fn part(n: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        n as f64 / whole as f64
    }
}
