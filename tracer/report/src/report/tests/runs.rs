//! What is said of a whole run: several findings, none, no samples, losses.

use expect_test::expect;

use super::{check, one_atomic, plain, two_counters};
use crate::{
    access::{Cost, Cpu, LineKey, Op, Place, SpaceId},
    event::{Tally, Unresolved},
    finding::{Judged, Judgement, Reason, Significance},
    report::{
        Caveat, RunFacts, build,
        fixture::{FakeNames, LINE, facts, report, site, tally},
        model::{Doubt, Report, Weight},
        text::{self, TextOptions},
    },
};

fn suspect(address: u64, reason: Reason) -> (Judgement, FakeNames) {
    let (mut judgement, names) = two_counters();
    judgement.key = LineKey(Place::Private {
        space: SpaceId(0),
        addr: address,
    });
    judgement.significance = Significance::Insignificant(reason);
    (judgement.cost, judgement.shared_cost) = (Cost(60_000_000), Cost(40_000_000));
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
            A line is a finding from 1.0 % of the time on, about 100 samples here: it is unlikely that one was
            missed.
            1 remark on how this was measured: --verbose.
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
            A line is a finding from 1.0 % of the time on, about 100 samples here: it is unlikely that one was
            missed.
            Closest to one: stats.hits and .misses (0.4 %, false sharing): costs less than 1.0 % of the time.
            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn few_samples_are_not_called_proof() {
    let mut few = tally();
    (few.produced, few.samples, few.attributed) = (300, 300, 200);
    few.unresolved.insert(Unresolved::RegisterOverwritten, 100);
    check(
        &build(
            &Judged::default(),
            &[],
            &FakeNames::default(),
            &few,
            &facts(),
        ),
        &expect![[r#"
            No sharing of cache lines was seen, in too few samples to tell.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 300 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.
            A line is a finding from 1.0 % of the time on, about 2 samples here: too few to be sure. Look for 50
            s or more (--duration), while the program is busy.

            What to keep in mind:
              - 33.3 % of the samples have lost the address: its register was overwritten before the sample was
                taken.
            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn where_processors_are_a_program_nothing_is_cleared_and_it_is_called_what_it_is() {
    let none = |emulator: Option<&str>| {
        let run = RunFacts {
            software_emulation: emulator.map(str::to_owned),
            ..facts()
        };
        build(
            &Judged::default(),
            &[],
            &FakeNames::default(),
            &tally(),
            &run,
        )
    };
    let emulated = none(Some("QEMU TCG"));
    assert_eq!(emulated.run.doubt, Some(Doubt::SoftwareEmulation));
    assert!(!emulated.run.conclusive);
    let text = plain(&emulated);
    assert!(text.contains("software emulation (QEMU TCG)"), "{text}");
    assert!(!text.contains("unlikely that one"), "{text}");
    let real = none(None);
    assert!(real.run.conclusive);
    assert!(plain(&real).contains("unlikely that one"));
}

/// A run of 10,000 samples, of which so many waited for something that could not be read, and others for nothing.
fn read_in_part(unread: u64, idle: u64) -> Tally {
    let mut tally = tally();
    tally.unresolved.clear();
    tally.unresolved.insert(Unresolved::NoMapping, unread);
    tally.unresolved.insert(Unresolved::NoMemoryOperand, idle);
    (tally.produced, tally.samples) = (10_000, 10_000);
    tally.attributed = 10_000 - unread - idle;
    tally
}

#[test]
fn where_most_could_not_be_read_that_is_said_first_and_nothing_is_cleared() {
    let names = FakeNames::default();
    let of = |unread, idle| {
        let tally = read_in_part(unread, idle);
        build(&Judged::default(), &[], &names, &tally, &facts())
    };
    let report = of(9990, 0);
    assert_eq!(report.run.doubt, Some(Doubt::Unread));
    assert!(!report.run.conclusive);
    let text = plain(&report);
    assert!(
        text.starts_with("It cannot be told whether threads fight"),
        "{text}"
    );
    assert!(text.contains("99.9 %"), "{text}");
    assert!(!text.contains("worth acting on"), "{text}");
    // Most of what waited, and enough to hide a line.
    assert_eq!(of(1500, 8000).run.doubt, Some(Doubt::Unread));
    // Less than was read; more, but hardly any; nothing at all.
    for (unread, idle) in [(4000, 0), (900, 8900), (0, 9000)] {
        let report = of(unread, idle);
        assert_ne!(report.run.doubt, Some(Doubt::Unread), "{unread} {idle}");
    }
    // Of a handful of samples, how many could be read says nothing.
    let mut few = read_in_part(9990, 0);
    (few.samples, few.attributed) = (3, 0);
    few.unresolved = [(Unresolved::NoMapping, 3)].into();
    let few = build(&Judged::default(), &[], &names, &few, &facts());
    assert_eq!(few.run.doubt, Some(Doubt::TooFewSamples));
    let report = of(4000, 0);
    assert!(report.run.conclusive && plain(&report).starts_with("No sharing of cache lines worth"));
}

/// The report in one line.
fn unwrapped(report: &Report) -> String {
    let text = plain(report);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn where_cpus_were_not_sampled_for_much_of_the_time_nothing_is_cleared() {
    let of = |blind_ns| {
        let tally = Tally {
            blind_ns: [(Cpu(1), blind_ns)].into(),
            ..read_in_part(0, 0)
        };
        build(
            &Judged::default(),
            &[],
            &FakeNames::default(),
            &tally,
            &facts(),
        )
    };
    let whole = facts().observed.duration_ns * u64::from(facts().observed.cpus);
    let report = of(whole / 4);
    assert_eq!(report.run.doubt, Some(Doubt::Blind));
    let text = unwrapped(&report);
    assert!(
        text.starts_with("No sharing of cache lines was seen, but CPUs"),
        "{text}"
    );
    assert!(!text.contains("unlikely that one was missed"), "{text}");
    assert!(
        text.contains("CPU 1 was online and not sampled for"),
        "{text}"
    );
    let report = of(whole / 100);
    assert_eq!(report.run.doubt, None);
    assert!(unwrapped(&report).contains("unlikely that one was missed"));
}

#[test]
fn findings_of_a_run_that_was_read_in_part_are_not_all() {
    let (judgement, names) = two_counters();
    let of = |unread| {
        let tally = read_in_part(unread, 0);
        let judged = Judged {
            judgements: vec![judgement.clone()],
            ..Judged::default()
        };
        build(&judged, &[], &names, &tally, &facts())
    };
    let text = plain(&of(6000));
    assert!(
        text.starts_with("What 60.0 % of the samples waited for could not be read"),
        "{text}"
    );
    assert!(text.contains("Threads fight over 1"), "{text}");
    let report = of(100);
    assert!(report.run.conclusive && plain(&report).starts_with("Threads fight over"));
}

#[test]
fn no_samples_say_what_to_check() {
    let empty = Tally::default();
    let mut facts = facts();
    (facts.totals.accesses, facts.lines, facts.shared_lines) = (0, Some(0), Some(0));
    check(
        &build(
            &Judged::default(),
            &[],
            &FakeNames::default(),
            &empty,
            &facts,
        ),
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
    facts.caveats = vec![Caveat::reading("The target ended after 3.1 s.")];
    let report = build(
        &Judged::default(),
        &[],
        &FakeNames::default(),
        &lossy,
        &facts,
    );
    expect![[r#"
        2,000 of 12,001 samples (16.7 %) found no room in the ring buffer and were lost, most of them (1,500) on CPU 0. Shares of time are of those that arrived. A lower rate (-F) loses less.
        The counts do not add up: 12,001 samples were taken, but 10,000 arrived and 2,000 were lost. Please report this.
        1 record of mappings and tasks was lost, so some names, and which memory is shared, may be wrong.
        20.0 % of the samples stand behind an instruction that touches no memory: there the CPU was computing, or had just waited for an access shortly before it.
        4.0 % of the samples are in code that no symbol, unwind table or JIT map divides into functions, as in generated code whose compiler writes no map (node --perf-basic-prof, python -X perf, DOTNET_PerfMapEnabled=1, jcmd PID Compiler.perfmap).
        0.5 % of the samples could not be tied to an access for other reasons.
        25.0 % of the samples were taken in kernel mode. What the kernel touches there is counted, but named only where the kernel's symbols can be read.
        The addresses of 77 memory operands in the sampled code could not be computed, so a line may have users that are not listed.
        To bound the memory used, 9 cache lines were forgotten (1.0 % of the accesses), 2 of them touched by more than one thread. Watch fewer processes at a time to keep them.
        Sampling sees where CPUs wait and who uses the same line at the same time, not each move of a line between CPUs: shares of time are estimates, and no hand-offs are counted.
        The target ended after 3.1 s."#]].assert_eq(&sentences(&report.caveats));
    // Nothing lost, nothing said but how sampling works.
    assert_eq!(
        build(
            &Judged::default(),
            &[],
            &FakeNames::default(),
            &tally(),
            &crate::report::fixture::facts(),
        )
        .caveats
        .len(),
        1
    );
    plain(&report);
    // Shares are of those that arrived, and a finding may be missing: that is said to all.
    let must_be_known = |caveat: &&Caveat| caveat.weight == Weight::Reading;
    let known: Vec<Caveat> = (report.caveats.iter())
        .filter(must_be_known)
        .cloned()
        .collect();
    expect![[r#"
        2,000 of 12,001 samples (16.7 %) found no room in the ring buffer and were lost, most of them (1,500) on CPU 0. Shares of time are of those that arrived. A lower rate (-F) loses less.
        The counts do not add up: 12,001 samples were taken, but 10,000 arrived and 2,000 were lost. Please report this.
        1 record of mappings and tasks was lost, so some names, and which memory is shared, may be wrong.
        To bound the memory used, 9 cache lines were forgotten (1.0 % of the accesses), 2 of them touched by more than one thread. Watch fewer processes at a time to keep them.
        The target ended after 3.1 s."#]].assert_eq(&sentences(&known));
}

fn sentences(caveats: &[Caveat]) -> String {
    let texts: Vec<&str> = caveats.iter().map(|caveat| caveat.text.as_str()).collect();
    texts.join("\n")
}

/// The atomic's line, and two more that cost less.
fn three_lines() -> [Judgement; 3] {
    [(0, 1), (64, 2), (192, 4)].map(|(at, part)| {
        let (mut judgement, _) = one_atomic();
        judgement.key = LineKey(judgement.key.0.at(LINE + at));
        judgement.cost.0 /= part;
        judgement.shared_cost.0 /= part;
        for site in &mut judgement.sites {
            site.cost.0 /= part;
        }
        judgement
    })
}

#[test]
fn lines_of_one_thing_are_one_finding_that_says_how_the_cost_is_spread() {
    let (_, mut names) = one_atomic();
    names.owner = Some("locks[]".to_owned());
    let found = report(&three_lines(), &names);
    assert_eq!(found.findings.len(), 1);
    let lines = found.findings[0].lines.as_ref().expect("several");
    assert_eq!((lines.count, lines.of, lines.half), (3, Some(4), 1));
    assert_eq!(lines.worst.len(), 3);
    check(
        &found,
        &expect![[r#"
            Threads fight over 1 object on 3 cache lines, by true sharing. It took 94.5 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  TRUE SHARING  locks[] on 3 lines                                              94.5 % of the time
                 Threads use the same bytes and some of them store there, so the cache line that holds them has
                 to move from CPU to CPU.
              at global variable `demo::TOTAL` of type `core::sync::atomic::AtomicU64`, 8 bytes; the worst of
                 its lines is drawn; cache line 0x404040, 64 bytes

                 op   thread       seen     time  function                                source
                 rmw  4 threads  18,480  100.0 %  AtomicU64::fetch_add in demo::work      /src/demo/main.rs:17:9

             why 3 lines are used by several threads, of 4 that it has. The cost is spread over them: half of it
                 is on 1 line, and the worst takes 60.0 % of the time.
            gain More than nothing if nobody took the line from them: samples do not tell how much, `--hold`
                 does.
             fix 4 threads add to `demo::TOTAL`, and none of them looks at the sum: it is a counter, and each
                 addition must own its line, wherever it lies. Count in a `thread_local!` or a local variable of
                 each thread and add the parts up when somebody reads the sum, or add up locally and add to the
                 sum once per batch of, say, 1,000: that divides the traffic by the size of the batch.

            1 remark on how this was measured: --verbose.
        "#]],
    );
    // Lines of things of their own stay findings of their own.
    names.owner = None;
    let apart = report(&three_lines(), &names);
    assert_eq!(apart.findings.len(), 3);
    assert!(apart.findings.iter().all(|finding| finding.lines.is_none()));
    let sum = |report: &crate::report::model::Report| {
        let shares = report.findings.iter().map(|finding| finding.cost.share);
        shares.sum::<f64>()
    };
    assert!((sum(&found) - sum(&apart)).abs() < 1e-9);
}

#[test]
fn two_findings_and_a_suspect_are_ranked_and_explained_once() {
    let (first, names) = one_atomic();
    let (mut second, _) = one_atomic();
    second.key = LineKey(second.key.0.at(LINE + 128));
    let (third, _) = suspect(LINE + 64, Reason::OneCpu);
    let report = report(&[first, second, third], &names);
    let ids: Vec<_> = report
        .findings
        .iter()
        .chain(&report.insignificant)
        .map(|finding| finding.id.to_string())
        .collect();
    assert_eq!(ids, ["F1", "F2", "I1"]);
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
            judgement.shared_cost = Cost(1_000_000_000 - n * 30_000_000);
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
          and 5 more in the JSON form (--json)"#]].assert_eq(&overview.join("\n"));
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
            verbose: false,
        },
    );
    assert!(
        fancy.contains("\x1b[1;31mFALSE SHARING\x1b[0m") && fancy.contains("│AAAAAAAABBBBBBBB··")
    );
    let bare = text::render(&report, TextOptions::default());
    assert!(bare.is_ascii() && !bare.contains('\x1b'));
}
