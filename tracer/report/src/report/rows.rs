//! Rows of the access table: sites of all threads that run the same code on the same bytes are one row.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    model::{AccessRow, Code, Hex, Thread},
    pmu,
    subject::OnLine,
};
use crate::{
    access::{Basis, ByteSet, Cost, LineSize, Op, Pid, SpaceId, Tid},
    analysis::{PmuCounts, SiteCounts, WaitTimes},
    names::{CodeName, Language, Names},
};

/// The rows of a line, costliest first, and the language of most of its code.
pub(super) struct Rows {
    pub(super) rows: Vec<AccessRow>,
    pub(super) language: Option<Language>,
}

/// What makes two sites one row. Addresses count only where there is no source line: copies of an inlined
/// function, and processes that run the same program, then are one row.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    offset: u8,
    size: u8,
    size_known: bool,
    within: u8,
    op: Op,
    label: Option<String>,
    module: Option<String>,
    symbol: Option<String>,
    inlined: Vec<String>,
    source: Option<(String, u32, Option<u32>)>,
    ip: Option<u64>,
}

#[derive(Default)]
struct Sum {
    stalled: u64,
    decoded: u64,
    harvested: u64,
    emulated: u64,
    pmu: PmuCounts,
    trapped: u64,
    cost: Cost,
    waits: WaitTimes,
    threads: BTreeMap<(Pid, Tid), BTreeSet<u32>>,
    /// Of the costliest site.
    code: CodeName,
    code_weight: (Cost, u64),
}

/// Sums the sites up. `whole` is what shares are of.
pub(super) fn rows(names: &dyn Names, subject: &OnLine, sites: &[SiteCounts], whole: Cost) -> Rows {
    let labelled = (sites.iter()).map(|site| (site, subject.label(&site.site).1));
    rows_of(names, labelled, whole)
}

/// The same, where something else says what part of the line a site touches.
pub(super) fn rows_of<'a>(
    names: &dyn Names,
    sites: impl Iterator<Item = (&'a SiteCounts, Option<String>)>,
    whole: Cost,
) -> Rows {
    let mut codes: BTreeMap<(SpaceId, u64, bool), CodeName> = BTreeMap::new();
    let mut sums: BTreeMap<RowKey, Sum> = BTreeMap::new();
    let mut languages: Vec<(Language, u64)> = Vec::new();
    for (site, part) in sites.filter(|(site, _)| site.site.op.touches()) {
        let at = &site.site;
        let code = codes
            .entry((at.space, at.ip, at.kernel))
            .or_insert_with(|| names.code(Some(at.space), at.ip, at.kernel));
        if let Some(language) = code.language {
            match languages.iter_mut().find(|(known, _)| *known == language) {
                Some((_, n)) => *n += site.accesses(),
                None => languages.push((language, site.accesses())),
            }
        }
        let sum = sums.entry(key(site, part, code)).or_default();
        sum.add(site, code);
    }
    let mut rows: Vec<(Cost, AccessRow)> = sums
        .into_iter()
        .map(|(key, sum)| (sum.cost, row(key, sum, names, whole)))
        .collect();
    // Equal rows keep the order of their keys, so that a replay prints the same.
    rows.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.count.cmp(&a.1.count)));
    Rows {
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        language: languages
            .into_iter()
            .max_by_key(|(_, n)| *n)
            .map(|(language, _)| language),
    }
}

/// The bytes that a row touches for certain.
pub(super) fn known_bytes(row: &AccessRow, line_size: LineSize) -> ByteSet {
    match row.within {
        None => ByteSet::range(row.offset, row.size, line_size),
        Some(_) => ByteSet::default(),
    }
}

fn key(site: &SiteCounts, label: Option<String>, code: &CodeName) -> RowKey {
    let at = &site.site;
    let source = code
        .file
        .clone()
        .zip(code.line)
        .map(|(file, line)| (file, line, code.column));
    RowKey {
        offset: at.offset,
        size: at.size,
        size_known: at.size_known,
        within: at.within,
        op: at.op,
        label,
        module: code.module.clone(),
        symbol: code.symbol.clone(),
        inlined: code.inlined.clone(),
        ip: source.is_none().then_some(code.ip),
        source,
    }
}

impl Sum {
    fn add(&mut self, site: &SiteCounts, code: &CodeName) {
        self.stalled += u64::from(site.stalled);
        self.decoded += u64::from(site.decoded);
        self.harvested += u64::from(site.harvested);
        self.emulated = self.emulated.saturating_add(site.emulated);
        self.pmu.add(&site.pmu);
        self.trapped = self.trapped.saturating_add(site.trapped);
        self.cost += site.cost;
        self.waits.add(site.waits);
        let cpus = self
            .threads
            .entry((site.site.pid, site.site.tid))
            .or_default();
        cpus.extend(site.cpus.iter().map(|cpu| cpu.0));
        let weight = (site.cost, site.accesses());
        if weight >= self.code_weight {
            self.code_weight = weight;
            self.code.clone_from(code);
        }
    }
}

fn row(key: RowKey, sum: Sum, names: &dyn Names, whole: Cost) -> AccessRow {
    let threads = sum.threads.into_iter().map(|((pid, tid), cpus)| Thread {
        pid: pid.0,
        tid: tid.0,
        comm: names.thread(tid).comm,
        cpus: cpus.into_iter().collect(),
    });
    AccessRow {
        offset: key.offset,
        size: u16::from(key.size),
        size_known: key.size_known,
        within: (key.within > 0).then_some(key.within),
        field: key.label,
        op: key.op,
        count: (sum.stalled + sum.decoded + sum.pmu.sampled + sum.harvested)
            .saturating_add(sum.emulated),
        trapped: sum.trapped,
        cost_share: sum.cost.share_of(whole),
        at_barrier_share: sum.waits.at_barrier.share_of(whole),
        spinning_share: sum.waits.spinning.share_of(whole),
        basis: Basis::strongest(
            sum.stalled,
            sum.decoded,
            sum.pmu.sampled,
            sum.harvested,
            sum.emulated,
        ),
        coherence: pmu::coherence(&sum.pmu),
        latency_cycles: sum.pmu.mean_latency(),
        threads: threads.collect(),
        code: code(sum.code),
    }
}

/// An instruction as the report shows it.
pub(super) fn code(name: CodeName) -> Code {
    Code {
        module: name.module,
        build_id: name.build_id,
        ip: Hex(name.ip),
        symbol: name.symbol,
        symbol_offset: name.symbol_offset.map(Hex),
        inlined: name.inlined,
        inline_chain: name.inline_chain,
        file: name.file,
        line: name.line,
        column: name.column,
    }
}

/// Part of a time, 0..=1; nothing of nothing is nothing.
pub(super) fn share(part_ns: u64, whole_ns: u64) -> f64 {
    if whole_ns == 0 {
        0.0
    } else {
        (part_ns as f64 / whole_ns as f64).clamp(0.0, 1.0)
    }
}
