//! Sessions made by hand, with the code of a program that is compiled here.

use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf, process::Command, sync::Arc};

use symbolizer::{Module, NoDebugFiles};
use tempfile::TempDir;

use super::{super::machine_costs::boot_id, *};
use crate::{
    access::{Access, Basis, Cpu, Op, Pid, Tid},
    decode::{FunctionCode, LONGEST_INSTRUCTION, single_access},
    event::{Batch, Breadth, Context, ContextKind, Mapping, WatchedWord, Window, WindowEnd},
    hint::file::{LoadClass, StoreKind},
    session::{Meta, SessionWriter, SourceRecord, WriterOptions},
};

const SOURCE: &str = "\
struct node { void *next; long count; double weight; };
long counter[4] = {1, 2, 3, 4};
static inline __attribute__((always_inline)) long read_count(struct node *n) {
    return *(volatile long *)&n->count;
}
void bump(struct node *n) { n->count = read_count(n) * 3; }
void weigh(struct node *n, double by) { n->weight = n->weight * by; }
void total(void) { counter[1] = counter[1] * 3; }
void fenced(long *p) { *p = *p * 3; __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void swap(long *p) {
    long old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, old * 3, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {}
}
long poll(long *p) { return *p; }
int main(void) { return 0; }
";

/// Where the process's program starts, whichever way its file is cut.
const START: u64 = 0x5555_0000_0000;

struct Program {
    directory: TempDir,
    path: PathBuf,
    elf: Module,
}

impl Program {
    fn compiled() -> Program {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("hinted.c");
        let path = directory.path().join("hinted");
        fs::write(&source, SOURCE).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-g", "-fPIE", "-pie", "-fcf-protection=none"]);
        assert!(
            gcc.arg("-o")
                .args([&path, &source])
                .status()
                .unwrap()
                .success()
        );
        let bytes = Arc::new(fs::read(&path).unwrap());
        let elf = Module::parse(bytes, Box::new(NoDebugFiles)).unwrap();
        Program {
            directory,
            path,
            elf,
        }
    }

    /// Address of a function's first load, and of the first store from there on.
    fn code(&self, function: &str) -> (u64, u64) {
        let start = self.elf.functions_named(&[function])[0].unwrap();
        let end = self.elf.function(start).unwrap().end;
        let code = self.elf.code(start, end).unwrap();
        let accesses: Vec<(u64, bool)> = FunctionCode::decode(start, code)
            .instructions()
            .filter_map(|at| {
                let bytes = &code[(at - start) as usize..];
                let bytes = &bytes[..bytes.len().min(LONGEST_INSTRUCTION)];
                let access = single_access(bytes, Op::Unknown)?;
                Some((at, access.op.stores()))
            })
            .collect();
        let load = accesses.iter().find(|(_, stores)| !stores).unwrap().0;
        let store = accesses.iter().find(|(at, stores)| *stores && *at > load);
        (load, store.map_or(0, |store| store.0))
    }

    fn mappings(&self, pid: u32, start: u64) -> Vec<Context> {
        let file = fs::metadata(&self.path).unwrap();
        let mapped = |svma: u64, executable: bool| {
            let offset = self.elf.offset_of_svma(svma).unwrap();
            let mapping = Mapping {
                start: start + (svma & !0xfff),
                len: 0x1000,
                file_offset: offset & !0xfff,
                dev: file.dev(),
                inode: file.ino(),
                shared: false,
                executable,
                writable: !executable,
                name: self.path.display().to_string(),
                build_id: None,
                stamp: None,
            };
            Context {
                time_ns: 0,
                kind: ContextKind::Mapping {
                    pid: Pid(pid),
                    mapping: Arc::new(mapping),
                },
            }
        };
        let (load, _) = self.code("bump");
        vec![mapped(load, true), mapped(self.counter(), false)]
    }

    fn counter(&self) -> u64 {
        self.elf.functions_named(&["counter"])[0].unwrap_or_else(|| {
            (0..0x10000)
                .step_by(8)
                .find(|at| {
                    self.elf
                        .object(*at)
                        .is_ok_and(|object| object.name == "counter")
                })
                .unwrap()
        })
    }
}

#[derive(Default)]
struct Made {
    accesses: Vec<Access>,
    windows: Vec<Window>,
}

impl Made {
    fn add(&mut self, pid: u32, cpu: u32, ip: u64, op: Op, addr: u64, basis: Basis) {
        self.accesses.push(Access {
            time_ns: self.accesses.len() as u64 + 1,
            addr,
            ip,
            pid: Pid(pid),
            tid: Tid(pid * 10 + cpu),
            cpu: Cpu(cpu),
            size: 8,
            op,
            basis,
            locked: false,
            kernel: false,
            ..Access::BLANK
        });
    }

    /// Two threads take turns to load and store.
    fn visits(&mut self, code: (u64, u64), addr: u64, visits: u32) {
        for visit in 0..visits {
            self.add(
                100,
                visit % 2,
                START + code.0,
                Op::Load,
                addr,
                Basis::Emulated,
            );
            self.add(
                100,
                visit % 2,
                START + code.1,
                Op::Store,
                addr,
                Basis::Emulated,
            );
        }
    }

    fn session(self, program: &Program, source: &str, pids: &[(u32, u64)]) -> PathBuf {
        let path = program.directory.path().join("made.coh");
        let mut meta = Meta::new();
        meta.boot_id = boot_id();
        meta.sources = vec![SourceRecord {
            name: source.to_owned(),
            ..SourceRecord::default()
        }];
        let options = WriterOptions {
            force: true,
            ..WriterOptions::default()
        };
        let mut writer = SessionWriter::create(&path, meta.clone(), &options).unwrap();
        let context = pids
            .iter()
            .flat_map(|(pid, start)| program.mappings(*pid, *start));
        let batch = Batch {
            accesses: self.accesses,
            context: context.collect(),
            windows: self.windows,
            ..Batch::default()
        };
        writer.append(&batch).unwrap();
        writer.finish(meta).unwrap();
        path
    }
}

fn decide(path: &Path, filter: Filter) -> HintFile {
    let options = DecideOptions {
        filter,
        ..DecideOptions::default()
    };
    of_sessions(&[path], &options).unwrap()
}

/// The hint of the function.
fn of_function<'a>(file: &'a HintFile, function: &str) -> &'a LoadHint {
    let is_it = |hint: &&LoadHint| {
        let load = &hint.load;
        load.function.as_deref() == Some(function)
            || load.inlined_into.iter().any(|into| into == function)
    };
    let hint = file.hints.iter().find(is_it);
    hint.unwrap_or_else(|| panic!("no hint for {function} in {:#?}", file.hints))
}

#[test]
fn a_hints_file_names_the_code_by_its_file_its_source_and_its_assembly() {
    let program = Program::compiled();
    let mut made = Made::default();
    let heap = 0x7f00_0000_0000;
    made.visits(program.code("bump"), heap + 8, 20);
    made.visits(program.code("weigh"), heap + 0x110, 18);
    made.visits(program.code("total"), START + program.counter() + 8, 16);
    made.visits(program.code("fenced"), heap + 0x200, 14);
    made.visits(program.code("swap"), heap + 0x300, 12);
    // Read by all, and stored to once in a while, elsewhere.
    let (load, _) = program.code("poll");
    let (_, store) = program.code("fenced");
    for _ in 0..3 {
        made.add(
            100,
            0,
            START + store,
            Op::Store,
            heap + 0x400,
            Basis::Emulated,
        );
        for cpu in [1, 2, 3, 1, 2, 3] {
            made.add(
                100,
                cpu,
                START + load,
                Op::Load,
                heap + 0x400,
                Basis::Emulated,
            );
        }
    }
    let path = made.session(&program, "emulate", &[(100, START)]);
    let file = decide(&path, Filter::Ours);

    assert_eq!(file.hints.len(), 5);
    assert_eq!(file.hints[0].id, "H1");
    assert_eq!(file.evidence.sources, ["emulate"]);
    assert!(file.evidence.complete_order);
    let saved: i64 = file.hints.iter().map(|hint| hint.expected.net()).sum();
    assert_eq!(
        saved,
        [20, 18, 16, 14, 12]
            .map(|n| 2 + 4 * (n - 1))
            .iter()
            .sum::<i64>()
    );
    let with = file.evidence.hinted_transactions.unwrap();
    assert_eq!((file.evidence.transactions - with) as i64, saved);

    let bump = of_function(&file, "bump");
    assert_eq!(bump.load.function.as_deref(), Some("read_count"));
    assert_eq!(bump.load.inlined_into, ["bump"]);
    assert!(bump.load.file.as_deref().unwrap().ends_with("/hinted.c"));
    assert_eq!(
        (bump.load.line, bump.stores[0].code.line),
        (Some(4), Some(6))
    );
    assert!(bump.load.column.is_some());
    assert_eq!(bump.load.operand.as_deref(), Some("8(%rdi)"));
    assert!(
        bump.load
            .instruction
            .as_deref()
            .unwrap()
            .contains(" 8(%rdi), %r")
    );
    let (load, _) = program.code("bump");
    assert_eq!(bump.load.offset, Some(format!("{load:#x}")));
    assert_eq!(bump.load.ip, format!("{:#x}", START + load));
    assert_eq!(bump.load.module, Some(program.path.display().to_string()));
    assert_eq!(bump.class, LoadClass::Integer);
    assert_eq!(
        (bump.stores[0].kind, bump.stores[0].count),
        (StoreKind::Plain, 20)
    );
    assert!(
        bump.text.contains("hinted.c:4") && bump.text.contains("-mprfchw"),
        "{}",
        bump.text
    );

    let weigh = of_function(&file, "weigh");
    assert_eq!(weigh.class, LoadClass::FloatingPoint);
    assert_eq!(weigh.load.operand.as_deref(), Some("16(%rdi)"));
    assert_eq!(weigh.stores[0].kind, StoreKind::Plain);

    let total = of_function(&file, "total");
    assert_eq!(total.load.operand.as_deref(), Some("counter+8(%rip)"));
    assert_eq!(total.object.as_deref(), Some("counter"));
    assert_eq!(total.field.as_deref(), Some("[1]"));

    assert_eq!(
        of_function(&file, "fenced").stores[0].kind,
        StoreKind::Fenced
    );
    let swap = of_function(&file, "swap");
    assert_eq!(swap.stores[0].kind, StoreKind::CompareAndSwap);
    assert!(swap.text.contains("The CPU waits"), "{}", swap.text);

    assert_eq!(file.left.len(), 1);
    let poll = &file.left[0];
    assert_eq!(poll.load.function.as_deref(), Some("poll"));
    assert_eq!(poll.reason, "costs-more-than-it-saves");
    assert!(poll.expected.lost > 0 && poll.expected.readers_hurt > 0);
    assert_eq!(HintFile::parse(&file.render()).unwrap(), file);
}

#[test]
fn the_papers_filter_and_ours_part_where_a_hint_costs() {
    let program = Program::compiled();
    let code = program.code("fenced");
    let mut made = Made::default();
    for _ in 0..3 {
        for cpu in [1, 2, 3, 1, 2, 3] {
            made.add(100, cpu, START + code.0, Op::Load, 0x1000, Basis::Emulated);
        }
        made.add(100, 3, START + code.1, Op::Store, 0x1000, Basis::Emulated);
    }
    let path = made.session(&program, "emulate", &[(100, START)]);
    let (ours, papers) = (decide(&path, Filter::Ours), decide(&path, Filter::Swift));
    assert_eq!((ours.hints.len(), ours.left.len()), (0, 1));
    assert_eq!(ours.left[0].reason, "costs-more-than-it-saves");
    assert_eq!((papers.hints.len(), papers.left.len()), (1, 0));
    let with = |file: &HintFile| file.evidence.hinted_transactions.unwrap();
    assert_eq!(with(&ours), ours.evidence.transactions);
    assert!(with(&papers) > papers.evidence.transactions);
}

#[test]
fn two_processes_that_run_one_file_have_one_load() {
    let program = Program::compiled();
    let code = program.code("bump");
    let mut made = Made::default();
    let elsewhere = START + 0x10_0000_0000;
    for (pid, start) in [(100, START), (200, elsewhere)] {
        for visit in 0..4 {
            let cpu = pid + visit % 2;
            made.add(pid, cpu, start + code.0, Op::Load, 0x1008, Basis::Emulated);
            made.add(pid, cpu, start + code.1, Op::Store, 0x1008, Basis::Emulated);
        }
    }
    let path = made.session(&program, "emulate", &[(100, START), (200, elsewhere)]);
    let file = decide(&path, Filter::Ours);
    assert_eq!(file.hints.len(), 1);
    // Private memory at one address is two lines.
    assert_eq!(file.hints[0].expected.found_idle, 2);
    assert_eq!(file.hints[0].expected.requests, 8);
    assert_eq!(
        (file.hints[0].stores.len(), file.hints[0].stores[0].count),
        (1, 8)
    );
}

#[test]
fn watch_windows_are_decided_from_and_say_so() {
    let program = Program::compiled();
    let code = program.code("bump");
    let mut made = Made::default();
    for visit in 0..60 {
        made.add(
            100,
            visit % 2,
            START + code.0,
            Op::Load,
            0x1008,
            Basis::Trapped,
        );
        made.add(
            100,
            visit % 2,
            START + code.1,
            Op::Store,
            0x1008,
            Basis::Trapped,
        );
    }
    for number in 0..2 {
        made.windows.push(Window {
            number,
            open_ns: 1 + 60 * number,
            end_ns: 60 + 60 * number,
            words: vec![WatchedWord {
                pid: Pid(100),
                addr: 0x1008,
                len: 8,
            }],
            everyone: false,
            hits: 60,
            lost: 0,
            unresolved: std::collections::BTreeMap::new(),
            inferred: 0,
            cost_ns: 0,
            breadth: Breadth::Cpus,
            end: WindowEnd::Hits,
        });
    }
    let path = made.session(&program, "watch", &[(100, START)]);
    let file = decide(&path, Filter::Ours);
    assert!(!file.evidence.complete_order);
    assert_eq!(file.hints.len(), 1);
    // Of each window the first visit is left out: nobody knows where the line was.
    let expected = &file.hints[0].expected;
    assert_eq!(
        (expected.executions, expected.requests, expected.found_dirty),
        (60, 58, 58)
    );
    assert_eq!((expected.saved, expected.lost), (58 * 4, 0));
    assert!(
        file.caveats
            .iter()
            .any(|caveat| caveat.contains("2 watch windows"))
    );
}

#[test]
fn a_session_of_samples_has_nothing_to_decide_from() {
    let program = Program::compiled();
    let mut made = Made::default();
    made.add(100, 0, START, Op::Load, 0x1000, Basis::Stalled);
    let path = made.session(&program, "timer", &[(100, START)]);
    let refused = of_sessions(&[&path], &DecideOptions::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("--source emulate"), "{refused}");
    let missing = path.with_file_name("missing.coh");
    assert!(of_sessions(&[missing], &DecideOptions::default()).is_err());
}

#[test]
fn code_that_is_gone_is_named_by_its_address_alone() {
    let program = Program::compiled();
    let mut made = Made::default();
    made.visits((0x10, 0x20), 0x1000, 4);
    let path = made.session(&program, "emulate", &[]);
    let file = decide(&path, Filter::Ours);
    let hint = &file.hints[0];
    assert_eq!(hint.load.ip, format!("{:#x}", START + 0x10));
    assert_eq!(
        (&hint.load.operand, hint.class),
        (&None, LoadClass::Unknown)
    );
    assert_eq!(hint.stores[0].kind, StoreKind::Unknown);
    assert!(hint.load.module.is_none() && hint.load.line.is_none() && hint.object.is_none());
}
