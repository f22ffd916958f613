//! What is said of a whole run: several findings, none, no samples, losses.

use expect_test::expect;

use super::{check, one_atomic, plain, two_counters};
use crate::{
    access::{Cpu, LineKey, Op, Place, SpaceId},
    event::{Tally, Unresolved},
    finding::{Judgement, Reason, Standing},
    report::{
        build,
        fixture::{FakeNames, LINE, facts, report, site, tally},
        text::{self, TextOptions},
    },
};

fn suspect(address: u64, reason: Reason) -> (Judgement, FakeNames) {
    let (mut judgement, names) = two_counters();
    judgement.key = LineKey(Place::Private {
        space: SpaceId(0),
        addr: address,
    });
    judgement.standing = Standing::Insignificant(reason);
    (judgement.cost_ns, judgement.shared_cost_ns) = (60_000_000, 40_000_000);
    if reason != Reason::CostBelowThreshold {
        judgement.verdict = None;
    }
    (judgement, names)
}

#[test]
fn no_finding_says_how_much_was_looked_at_and_how_sure_that_is() {
    check(
        &report(&[], &FakeNames::default()),
        &expect![[r#"
            No sharing of cache lines worth acting on.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.
            A line becomes a finding when it costs 1.0 % of the time. Such a line would have shown in about 100
            samples, so it is unlikely that one was missed in what ran during that time.

            What to keep in mind:
              - Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a
                line between CPUs: shares of time are estimates, and no hand-offs are counted.
        "#]],
    );
    let (one, names) = suspect(LINE, Reason::CostBelowThreshold);
    let (two, _) = suspect(LINE + 64, Reason::NotInterleaved);
    check(
        &report(&[one, two], &names),
        &expect![[r#"
            No sharing of cache lines worth acting on.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.
            A line becomes a finding when it costs 1.0 % of the time. Such a line would have shown in about 100
            samples, so it is unlikely that one was missed in what ran during that time.

            Closest to a finding:
              I1  false sharing  stats.hits and stats.misses  0.6 %  costs less than 1.0 % of the time
              I2  undecided      stats.hits and stats.misses  0.6 %  used one after the other, not by turns

            What to keep in mind:
              - Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a
                line between CPUs: shares of time are estimates, and no hand-offs are counted.
        "#]],
    );
}

#[test]
fn few_samples_are_not_called_proof() {
    let mut few = tally();
    (few.produced, few.samples, few.attributed) = (300, 300, 200);
    few.unresolved.insert(Unresolved::RegisterOverwritten, 100);
    check(
        &build(&[], &[], &FakeNames::default(), &few, &facts(), &[]),
        &expect![[r#"
            No sharing of cache lines worth acting on.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 300 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.
            A line becomes a finding when it costs 1.0 % of the time. Such a line would have shown in about 2
            samples: too few to be sure. Look for 50 s or more (--duration), while the program is busy.

            What to keep in mind:
              - 33.3 % of the samples have lost the address: its register was overwritten before the sample was
                taken.
              - Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a
                line between CPUs: shares of time are estimates, and no hand-offs are counted.
        "#]],
    );
}

#[test]
fn no_samples_say_what_to_check() {
    let empty = Tally::default();
    let mut facts = facts();
    (facts.totals.accesses, facts.lines, facts.shared_lines) = (0, Some(0), Some(0));
    check(
        &build(&[], &[], &FakeNames::default(), &empty, &facts, &[]),
        &expect![[r#"
        No samples were taken, so nothing can be said about sharing.
        Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 0 samples, 0 memory
        accesses on 0 cache lines, 0 of them used by more than one thread.

        What to keep in mind:
          - No sample of the target arrived in 5.0 s. A program is sampled only while it runs on a CPU.
            Check that it still runs and is not idle (`top -H`), that the right process is watched (children
            and other containers have pids of their own), look longer (--duration), and see what `cohtrace
            doctor` says about this machine.
    "#]],
    );
}

#[test]
fn every_loss_is_printed() {
    let mut lossy = tally();
    lossy.produced = 12_001;
    lossy.lost.insert(Cpu(0), 1_500);
    lossy.lost.insert(Cpu(1), 500);
    lossy.lost_context = 1;
    lossy.kernel_samples = 2_500;
    lossy.operands_unknown = 77;
    lossy.unresolved.insert(Unresolved::NoMemoryOperand, 2_000);
    lossy.unresolved.insert(Unresolved::NoFunction, 400);
    lossy.unresolved.insert(Unresolved::KernelText, 50);
    let mut facts = facts();
    facts.totals.evicted_lines = 9;
    facts.totals.evicted_shared_lines = 2;
    facts.totals.evicted_touches = 310;
    let extra = ["The target ended after 3.1 s.".to_owned()];
    let report = build(&[], &[], &FakeNames::default(), &lossy, &facts, &extra);
    expect![[r#"
        2,000 of 12,001 samples (16.7 %) found no room in the ring buffer and were lost, most of them (1,500) on CPU 0. Shares of time are of those that arrived. A lower rate (-F) loses less.
        The counts do not add up: 12,001 samples were taken, but 10,000 arrived and 2,000 were lost. Please report this.
        1 record of mappings and tasks was lost, so some names, and which memory is shared, may be wrong.
        20.0 % of the samples stand behind an instruction that touches no memory: that time was spent computing, not waiting for a line.
        4.0 % of the samples are in code that no symbol, unwind table or JIT map divides into functions, as in generated code whose compiler writes no map (node --perf-basic-prof, python -X perf, DOTNET_PerfMapEnabled=1, jcmd PID Compiler.perfmap).
        0.5 % of the samples could not be tied to an access for other reasons.
        25.0 % of the samples were taken in kernel mode. What the kernel touches there is counted, but named only where the kernel's symbols can be read.
        The addresses of 77 memory operands in the sampled code could not be computed, so a line may have users that are not listed.
        To bound the memory used, 9 cache lines were forgotten (1.0 % of the accesses), 2 of them touched by more than one thread. Watch fewer processes at a time to keep them.
        Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a line between CPUs: shares of time are estimates, and no hand-offs are counted.
        The target ended after 3.1 s."#]].assert_eq(&report.caveats.join("\n"));
    // Nothing lost, nothing said but how sampling works.
    assert_eq!(
        build(
            &[],
            &[],
            &FakeNames::default(),
            &tally(),
            &crate::report::fixture::facts(),
            &[]
        )
        .caveats
        .len(),
        1
    );
    plain(&report);
}

#[test]
fn two_findings_and_a_suspect_are_ranked_and_explained_once() {
    let (first, names) = one_atomic();
    let (second, _) = one_atomic();
    let (third, _) = suspect(LINE + 64, Reason::OneCpu);
    let report = report(&[first, second, third], &names);
    let ids: Vec<_> = report
        .findings
        .iter()
        .map(|finding| finding.id.as_str())
        .collect();
    assert_eq!(
        (ids, report.insignificant[0].id.as_str()),
        (vec!["F1", "F2"], "I1")
    );
    let text = plain(&report);
    assert_eq!(
        text.matches("Threads use the same bytes and some of them")
            .count(),
        1
    );
    assert!(text.contains("all of it ran on one CPU"), "{text}");
}

#[test]
fn many_findings_start_with_an_overview_and_end_with_a_count() {
    let (one, names) = two_counters();
    let many: Vec<Judgement> = (0..25u64)
        .map(|n| {
            let mut judgement = one.clone();
            judgement.key = LineKey(Place::Private {
                space: SpaceId(0),
                addr: LINE + n * 64,
            });
            judgement.shared_cost_ns = 1_000_000_000 - n * 30_000_000;
            judgement
        })
        .collect();
    let text = plain(&report(&many, &names));
    let overview: Vec<&str> = text.lines().take(26).collect();
    expect![[r#"
        Threads fight over 25 cache lines, by false sharing, worst first. Together they took 100.0 % of the
        sampled time.
        Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
        memory accesses on 120 cache lines, 3 of them used by more than one thread.

          F1   false sharing  stats.hits and stats.misses  10.0 %  count_hits /src/demo/demo.c:31:9
          F2   false sharing  stats.hits and stats.misses   9.7 %  count_hits /src/demo/demo.c:31:9
          F3   false sharing  stats.hits and stats.misses   9.4 %  count_hits /src/demo/demo.c:31:9
          F4   false sharing  stats.hits and stats.misses   9.1 %  count_hits /src/demo/demo.c:31:9
          F5   false sharing  stats.hits and stats.misses   8.8 %  count_hits /src/demo/demo.c:31:9
          F6   false sharing  stats.hits and stats.misses   8.5 %  count_hits /src/demo/demo.c:31:9
          F7   false sharing  stats.hits and stats.misses   8.2 %  count_hits /src/demo/demo.c:31:9
          F8   false sharing  stats.hits and stats.misses   7.9 %  count_hits /src/demo/demo.c:31:9
          F9   false sharing  stats.hits and stats.misses   7.6 %  count_hits /src/demo/demo.c:31:9
          F10  false sharing  stats.hits and stats.misses   7.3 %  count_hits /src/demo/demo.c:31:9
          F11  false sharing  stats.hits and stats.misses   7.0 %  count_hits /src/demo/demo.c:31:9
          F12  false sharing  stats.hits and stats.misses   6.7 %  count_hits /src/demo/demo.c:31:9
          F13  false sharing  stats.hits and stats.misses   6.4 %  count_hits /src/demo/demo.c:31:9
          F14  false sharing  stats.hits and stats.misses   6.1 %  count_hits /src/demo/demo.c:31:9
          F15  false sharing  stats.hits and stats.misses   5.8 %  count_hits /src/demo/demo.c:31:9
          F16  false sharing  stats.hits and stats.misses   5.5 %  count_hits /src/demo/demo.c:31:9
          F17  false sharing  stats.hits and stats.misses   5.2 %  count_hits /src/demo/demo.c:31:9
          F18  false sharing  stats.hits and stats.misses   4.9 %  count_hits /src/demo/demo.c:31:9
          F19  false sharing  stats.hits and stats.misses   4.6 %  count_hits /src/demo/demo.c:31:9
          F20  false sharing  stats.hits and stats.misses   4.3 %  count_hits /src/demo/demo.c:31:9
          and 5 more"#]].assert_eq(&overview.join("\n"));
    assert!(text.contains("\nF10  FALSE SHARING") && !text.contains("\nF11  FALSE SHARING"));
    assert!(
        text.contains("15 more findings are not shown in full"),
        "{text}"
    );
}

#[test]
fn hundreds_of_threads_are_one_row_of_a_line() {
    let (mut judgement, names) = two_counters();
    judgement.sites.clear();
    for tid in 0..500 {
        judgement.sites.push(site(
            (tid % 8) as u8 * 8,
            8,
            Op::Rmw,
            5000 + tid,
            0x401136,
            10,
            1,
        ));
    }
    let report = report(&[judgement], &names);
    let finding = &report.findings[0];
    let threads: usize = finding.accesses.iter().map(|row| row.threads.len()).sum();
    assert_eq!((finding.accesses.len(), threads), (8, 500));
    plain(&report);
}

#[test]
fn colours_and_drawing_characters_are_used_only_when_asked_for() {
    let (judgement, names) = two_counters();
    let report = report(&[judgement], &names);
    let fancy = text::render(
        &report,
        TextOptions {
            colour: true,
            unicode: true,
        },
    );
    assert!(
        fancy.contains("\x1b[1;31mFALSE SHARING\x1b[0m") && fancy.contains("│AAAAAAAABBBBBBBB··")
    );
    let bare = text::render(&report, TextOptions::default());
    assert!(bare.is_ascii() && !bare.contains('\x1b'));
}
