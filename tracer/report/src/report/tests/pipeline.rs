//! From accesses through the real analysis to the report, and from damaged judgements to some report.

use proptest::prelude::*;

use super::{plain, two_counters};
use crate::{
    access::{Access, Basis, Cost, Cpu, LineSize, Op, Pid, Place, SpaceId, Tid},
    analysis::{AnalysisOptions, LineTable, WatchedLines},
    event::Tally,
    finding::{Fact, Reason, Significance, Thresholds, Verdict, table_fixture::judge_all},
    hint::AdviceKind,
    names::ObjectKind,
    report::{
        build,
        fixture::{FakeNames, LINE, facts, judgement, object, site, tally},
        model::Report,
    },
};

/// Two threads on two CPUs, one stalled sample a millisecond each; thread n adds to `addresses[n]`.
fn run(addresses: [u64; 2]) -> Report {
    let mut table = LineTable::new(AnalysisOptions::default());
    for n in 0..4000u64 {
        let thread = n % 2;
        let addr = addresses[thread as usize];
        let access = Access {
            time_ns: n * 500_000,
            addr,
            ip: [0x401136, 0x401166][thread as usize],
            cost: Cost(1_000_000),
            pid: Pid(4000),
            tid: Tid(4001 + thread as u32),
            cpu: Cpu(thread as u32),
            size: 8,
            op: Op::Rmw,
            basis: Basis::Stalled,
            locked: false,
            kernel: false,
            ..Access::BLANK
        };
        let space = SpaceId(0);
        table.observe(&access, Place::Private { space, addr }, space);
    }
    reported(&table, 4000, Cost(4_000_000_000))
}

/// The report of what a table holds, each sample of which was attributed.
pub(super) fn reported(table: &LineTable, samples: u64, whole: Cost) -> Report {
    let tally = Tally {
        produced: samples,
        samples,
        attributed: samples,
        cost: whole,
        ..Tally::default()
    };
    let judgements = judge_all(
        table,
        &WatchedLines::default(),
        tally.cost,
        &Thresholds::default(),
    );
    let (_, names) = two_counters();
    build(&judgements.into(), &[], &names, &tally, &facts())
}

#[test]
fn threads_on_neighbouring_words_are_reported_as_false_sharing() {
    let report = run([LINE, LINE + 8]);
    assert_eq!(report.findings.len(), 1);
    let finding = &report.findings[0];
    assert_eq!(finding.kind, Some(Verdict::FalseSharing));
    assert_eq!(finding.advice.kind, AdviceKind::SeparateFields);
    let fields: Vec<_> = finding
        .accesses
        .iter()
        .map(|row| row.field.as_deref())
        .collect();
    assert!(fields.contains(&Some(".hits")) && fields.contains(&Some(".misses")));
    plain(&report);
}

#[test]
fn threads_on_the_same_word_are_reported_as_true_sharing() {
    let report = run([LINE, LINE]);
    assert_eq!(report.findings[0].kind, Some(Verdict::TrueSharing));
    assert_eq!(report.findings[0].advice.kind, AdviceKind::ReduceSharing);
    assert!(report.findings[0].advice.fields.is_empty());
}

#[test]
fn threads_on_lines_of_their_own_are_no_finding() {
    let report = run([LINE, LINE + 64]);
    assert!(report.findings.is_empty() && report.insignificant.is_empty());
    assert!(plain(&report).starts_with("No sharing of cache lines worth acting on."));
}

fn any_name() -> impl Strategy<Value = Option<String>> {
    proptest::option::of("[a-zA-Z0-9_:<>(), /.\\[\\]\u{1b}\n漢é\u{202e}-]{0,120}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_judgement_and_any_name_make_a_report_that_fits(
        touches in proptest::collection::vec((any::<u8>(), any::<u8>(), 0..4usize, 0..6u32, 0..4u64, any::<u32>(), any::<bool>()), 0..40),
        names in proptest::collection::vec(any_name(), 6),
        (verdict, significance, wide, start) in (0..4usize, 0..3usize, any::<bool>(), any::<u64>()),
        (true_weight, hand_offs) in (any::<f64>(), any::<f64>()),
    ) {
        let sites = touches.iter().map(|&(offset, size, op, tid, ip, count, locked)| {
            let op = [Op::Load, Op::Store, Op::Rmw, Op::Prefetch][op];
            let mut site = site(offset, size, op, tid, 0x401000 + ip, count, count / 2);
            (site.harvested, site.site.locked, site.site.kernel) = (count / 3, locked, locked);
            site
        });
        let verdicts = [Verdict::FalseSharing, Verdict::TrueSharing, Verdict::MixedSharing];
        let mut judged = judgement(verdicts[verdict % 3], true_weight, sites.collect());
        judged.verdict = verdicts.get(verdict).copied();
        judged.significance = [Significance::Significant, Significance::Insignificant(Reason::OneCpu), Significance::Significant][significance];
        judged.facts.push(Fact::HandOffs { seen: hand_offs, expected: -hand_offs });
        judged.facts.push(Fact::Separable(true_weight));
        let mut fake = FakeNames::default();
        for (n, name) in names.iter().enumerate() {
            let mut thing = object("", ObjectKind::Heap, start.wrapping_add(n as u64 * 8), 8);
            thing.name.clone_from(name);
            thing.type_name.clone_from(name);
            fake.objects.push(thing);
            fake = fake.field(n as u8 * 16, n as u8 * 16 + 16, n, name.as_deref().unwrap_or(""));
            fake.comms.insert(n as u32, name.clone().unwrap_or_default());
        }
        let mut facts = facts();
        facts.line_size = if wide { LineSize::B128 } else { LineSize::B64 };
        plain(&build(&[judged].into(), &[], &fake, &tally(), &facts));
    }
}
