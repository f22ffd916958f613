use std::sync::Arc;

use super::*;
use crate::{
    access::{Access, Basis, Cost, Cpu, Op},
    analysis::AnalysisOptions,
    event::{Batch, Context, ContextKind},
    finding::Thresholds,
    names::{Names, Resolver},
};

const MS: u64 = 1_000_000;
const DATA: u64 = 0x7f00_0000_0000;
const CODE: u64 = 0x40_0000;

fn pipeline() -> Pipeline {
    Pipeline::new(AnalysisOptions::default(), Thresholds::default())
}

fn mapping(start: u64, inode: u64, name: &str) -> Mapping {
    Mapping {
        start,
        len: 0x1000,
        file_offset: 0,
        dev: 0,
        inode,
        shared: false,
        executable: inode != 0,
        writable: inode == 0,
        name: name.to_owned(),
        build_id: None,
        stamp: None,
    }
}

/// A process that starts, uses a line with one or two threads, and ends, within a millisecond.
struct Life {
    pid: u32,
    start_ns: u64,
    threads: u32,
    addr: u64,
}

impl Life {
    fn batch(&self) -> Batch {
        let pid = Pid(self.pid);
        let at = |time_ns, kind| Context { time_ns, kind };
        let tids = || (0..self.threads).map(|n| Tid(self.pid + n));
        let mut context = Vec::new();
        for tid in tids() {
            let parent_pid = if tid.0 == self.pid { Pid(1) } else { pid };
            let kind = ContextKind::Fork {
                pid,
                tid,
                parent_pid,
            };
            context.push(at(self.start_ns, kind));
            let comm = format!("worker{}", tid.0);
            let kind = ContextKind::Comm {
                pid,
                tid,
                comm,
                exec: false,
            };
            context.push(at(self.start_ns, kind));
        }
        for mapping in [
            mapping(CODE, 7, "/bin/gone"),
            mapping(DATA, 0, "[heap]"),
            mapping(DATA + 0x10_0000, 0, ""),
        ] {
            let mapping = Arc::new(mapping);
            context.push(at(self.start_ns, ContextKind::Mapping { pid, mapping }));
        }
        let end_ns = self.start_ns + MS;
        for tid in tids() {
            context.push(at(end_ns, ContextKind::Exit { pid, tid }));
        }
        let accesses = (0..100_u32).map(|n| {
            let thread = n % self.threads;
            Access {
                time_ns: self.start_ns + u64::from(n) * 5000,
                addr: self.addr + u64::from(thread) * 8,
                ip: CODE + 0x10,
                cost: Cost(1_000_000),
                pid,
                tid: Tid(self.pid + thread),
                cpu: Cpu(thread),
                size: 8,
                op: Op::Rmw,
                basis: Basis::Stalled,
                locked: false,
                kernel: false,
                ..Access::BLANK
            }
        });
        let mut batch = Batch {
            accesses: accesses.collect(),
            context,
            ..Batch::default()
        };
        batch.tally.cost = Cost(100 * MS);
        batch
    }
}

/// `count` processes one after the other, with several threads where `shares` says so.
fn churn(pipeline: &mut Pipeline, count: u32, shares: impl Fn(u32) -> bool) -> usize {
    let mut most = 0;
    for n in 0..count {
        let life = Life {
            pid: 100 + 2 * (n % 15_000),
            start_ns: 10_000 * MS + u64::from(n) * 2 * MS,
            threads: if shares(n) { 2 } else { 1 },
            addr: DATA + 0x40,
        };
        pipeline.feed(&life.batch());
        if n % 100 == 0 {
            most = most.max(pipeline.entries() + pipeline.lines() as usize);
        }
    }
    most
}

/// Of a line: what it is called, what its code is part of, and who used it.
fn words(pipeline: &Pipeline, key: LineKey) -> (String, Option<String>, Vec<Option<String>>) {
    let modules = crate::module::ModuleStore::new("/nonexistent".into(), true);
    let names = Resolver::new(&pipeline.spaces, &modules);
    let objects = names.objects(key, pipeline.line_size(), &[]);
    let Place::Private { space, .. } = key.0 else {
        panic!("{key:?}");
    };
    let code = names.code(Some(space), CODE + 0x10, false);
    let Lines::Table(table) = &pipeline.lines else {
        panic!("a live pipeline keeps a table");
    };
    let line = table.get(key).unwrap();
    let tids = line.users().map(|(.., tid)| names.thread(tid).comm);
    (
        objects[0].kind.name().to_owned(),
        code.module,
        tids.collect(),
    )
}

#[test]
fn a_contended_line_of_a_process_that_ended_long_ago_is_named_as_at_once() {
    let mut pipeline = pipeline();
    let life = Life {
        pid: 50_000,
        start_ns: MS,
        threads: 2,
        addr: DATA + 0x40,
    };
    pipeline.feed(&life.batch());
    let key = pipeline.judge()[0].key;
    let at_once = words(&pipeline, key);
    assert_eq!(at_once.0, "heap");
    assert_eq!(at_once.2.len(), 2);
    assert!(at_once.2.iter().all(Option::is_some));
    let judged = format!(
        "{:?}",
        pipeline
            .judge()
            .iter()
            .find(|line| line.key == key)
            .unwrap()
            .verdict
    );
    churn(&mut pipeline, 5000, |_| false);
    // Many were let go since.
    assert!(
        pipeline.spaces.held().spaces < 3000,
        "{:?}",
        pipeline.spaces.held()
    );
    assert_eq!(words(&pipeline, key), at_once);
    let line = pipeline
        .judge()
        .into_iter()
        .find(|line| line.key == key)
        .unwrap();
    assert_eq!(format!("{:?}", line.verdict), judged);
}

#[test]
fn processes_and_threads_that_ended_do_not_add_up_and_those_of_a_short_run_all_stay() {
    let mut short = pipeline();
    churn(&mut short, 1000, |_| false);
    assert_eq!(short.spaces.held().spaces, 1000);
    assert_eq!(short.totals().evicted_lines, 0);
    let mut long = pipeline();
    let most = churn(&mut long, 20_000, |_| false);
    // A space with its process, thread, mappings and line is some eight entries.
    assert!(most < 8 * 2 * 2000, "{most}");
    assert!(long.totals().evicted_lines > 15_000);
    assert_eq!(long.totals().evicted_shared_lines, 0);
    // Without the ends being told, as many stay as there are numbers of processes.
    let mut told_not = pipeline();
    for n in 0..20_000 {
        let life = Life {
            pid: 100 + 2 * (n % 15_000),
            start_ns: u64::from(n) * MS,
            threads: 1,
            addr: DATA + 0x40,
        };
        let mut batch = life.batch();
        batch
            .context
            .retain(|context| !matches!(context.kind, ContextKind::Exit { .. }));
        told_not.feed(&batch);
    }
    assert!(told_not.entries() > 4 * 15_000, "{}", told_not.entries());
}

#[test]
fn of_too_many_contended_lines_the_costliest_keep_their_names_and_the_rest_is_counted() {
    let mut pipeline = pipeline();
    churn(&mut pipeline, 12_000, |_| true);
    let held = pipeline.spaces.held().spaces;
    assert!(held <= MOST.spaces + MUCH.spaces + 500, "{held}");
    assert!(pipeline.left_out() > 0);
    let lost = pipeline.totals().evicted_shared_lines;
    assert_eq!(lost, pipeline.left_out());
}

#[test]
fn who_prints_nothing_keeps_nothing_of_what_ended() {
    let mut pipeline = pipeline().forgetting();
    churn(&mut pipeline, 5000, |_| true);
    assert!(pipeline.spaces.held().spaces <= MUCH.spaces + 1000);
    assert!(pipeline.lines() <= MUCH.spaces as u64 + 1000);
    assert_eq!(pipeline.left_out(), 0);
}

#[test]
fn memory_that_is_unmapped_stays_named_where_a_line_of_it_is_contended() {
    let mut pipeline = pipeline();
    let life = Life {
        pid: 50_000,
        start_ns: MS,
        threads: 2,
        addr: DATA + 0x40,
    };
    let mut batch = life.batch();
    batch
        .context
        .retain(|context| !matches!(context.kind, ContextKind::Exit { .. }));
    pipeline.feed(&batch);
    let space = pipeline.spaces.current(Pid(50_000)).unwrap();
    let all: Vec<Arc<Mapping>> = pipeline.spaces.mappings(space).cloned().collect();
    assert_eq!(all.len(), 3);
    pipeline.unmapped(Pid(50_000), &all);
    let left = pipeline.spaces.mappings(space).map(|mapping| mapping.start);
    assert_eq!(left.collect::<Vec<_>>(), [CODE, DATA]);
}
