//! The tables of all processes stay within a bound, and no file of a process that ended stays open.

use std::{
    collections::HashMap,
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{JitStore, Key, Process};
use crate::{access::Pid, module::CacheBudget};

/// Tables that were let go are not read again for so long: to read the same ones again and again would help nobody.
const BARRED: Duration = Duration::from_secs(10);
/// What a process takes besides its tables.
const OVERHEAD: usize = 1024;
/// Looks at the files of a process that ended, to read what it wrote last.
const LAST_LOOKS: usize = 8;

/// What the tables of one process take.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: usize,
    used: u64,
    barred: Option<Instant>,
}

impl Held {
    /// Whether its tables were let go lately.
    pub(super) fn is_barred(&self) -> bool {
        self.barred.is_some_and(|since| since.elapsed() < BARRED)
    }
}

/// What all may take.
#[derive(Debug)]
pub(super) struct Bounds {
    limit: usize,
    clock: AtomicU64,
    left_out: AtomicU64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            limit: CacheBudget::standard(None).jit(),
            clock: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }
}

impl Bounds {
    /// Takes note that a process is asked for.
    pub(super) fn using(&self, process: &mut Process) {
        process.held.used = self.clock.fetch_add(1, Ordering::Relaxed);
    }

    /// The tables of a process were read on: lets go of those of others, the longest unused first, where all together
    /// are too many; at last of its own.
    pub(super) fn looked(&self, key: Key, processes: &mut HashMap<Key, Process>) {
        if let Some(process) = processes.get_mut(&key) {
            process.held.bytes = process.bytes();
        }
        let sum = |processes: &HashMap<Key, Process>| -> usize {
            processes.values().map(|process| process.held.bytes).sum()
        };
        let mut held = sum(processes);
        if held <= self.limit {
            return;
        }
        let mut order: Vec<(bool, u64, Key)> = processes
            .iter()
            .filter(|(_, process)| process.held.bytes > 0)
            .map(|(of, process)| (*of == key, process.held.used, *of))
            .collect();
        order.sort_unstable();
        // Some room, so that the next bytes do not begin this again.
        for (.., of) in order {
            if held <= self.limit / 4 * 3 {
                break;
            }
            if let Some(process) = processes.get_mut(&of) {
                held -= process.held.bytes;
                process.let_go();
                self.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Process {
    fn bytes(&self) -> usize {
        let map = self.map.as_ref().map_or(0, |map| map.read.bytes());
        let dumps: usize = self.dumps.values().map(|dump| dump.read.bytes()).sum();
        OVERHEAD + map + dumps
    }

    fn let_go(&mut self) {
        *self = Process {
            held: Held {
                barred: Some(Instant::now()),
                ..Held::default()
            },
            ..Process::default()
        };
    }

    /// It ended: what it wrote last is read, and its files are closed.
    fn end(&mut self) {
        for _ in 0..LAST_LOOKS {
            // What is damaged was told when it was read.
            if let Some(map) = &mut self.map {
                let _ = map.read_on();
            }
            for dump in self.dumps.values_mut() {
                let _ = dump.read_on();
            }
        }
        if let Some(map) = &mut self.map {
            map.file = None;
        }
        for dump in self.dumps.values_mut() {
            dump.file = None;
        }
    }

    fn has_tables(&self) -> bool {
        self.map.is_some() || !self.dumps.is_empty()
    }
}

impl JitStore {
    /// Bounds the tables of all processes, bytes.
    pub fn set_limit(&mut self, bytes: usize) {
        self.bounds.limit = bytes;
    }

    /// Tables that were let go for want of room.
    pub fn left_out(&self) -> u64 {
        self.bounds.left_out.load(Ordering::Relaxed)
    }

    /// Processes ended: their tables are kept, their files are not.
    pub fn end(&self, ended: &[Pid]) {
        if ended.is_empty() {
            return;
        }
        let mut processes = (self.processes.lock()).unwrap_or_else(PoisonError::into_inner);
        let of_ended = |key: &&Key| ended.contains(&key.0);
        let keys: Vec<Key> = processes.keys().filter(of_ended).copied().collect();
        for key in keys {
            let Some(process) = processes.get_mut(&key) else {
                continue;
            };
            if process.has_tables() {
                process.end();
                self.bounds.looked(key, &mut processes);
            } else {
                processes.remove(&key);
            }
        }
    }

    /// Processes in mind.
    pub fn processes(&self) -> usize {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

    use super::*;
    use crate::module::{
        JitMissing,
        jit::{REREAD, tests::last},
    };

    fn process(root: &Path, pid: u32, functions: u64) {
        let directory = root.join(format!("proc/{pid}"));
        fs::create_dir_all(directory.join("root/tmp")).unwrap();
        let user = fs::metadata("/proc/self").unwrap().uid();
        let status = format!("Uid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{pid}\n");
        fs::write(directory.join("status"), status).unwrap();
        let lines: Vec<String> = (0..functions)
            .map(|n| format!("{:x} 10 function_number_{n}\n", 0x1000 + n * 16))
            .collect();
        let map = directory.join(format!("root/tmp/perf-{pid}.map"));
        fs::write(map, lines.concat()).unwrap();
    }

    fn symbol(store: &JitStore, pid: u32) -> Result<String, JitMissing> {
        let found = store.find(last(pid), 0x1000, std::iter::empty());
        found.map(|code| code.symbol)
    }

    fn held(store: &JitStore) -> usize {
        let processes = store.processes.lock().unwrap();
        processes.values().map(Process::bytes).sum()
    }

    #[test]
    fn the_tables_of_many_processes_stay_within_the_bound_in_sum_and_that_is_said() {
        let root = tempfile::tempdir().unwrap();
        for pid in 0..32 {
            process(root.path(), 500 + pid, 5000);
        }
        let store = JitStore::new(Some(root.path().to_owned()));
        for pid in 0..32 {
            assert_eq!(symbol(&store, 500 + pid), Ok("function_number_0".into()));
        }
        let all = held(&store);
        assert_eq!(store.left_out(), 0);
        // The same ones, with less room.
        let mut store = JitStore::new(Some(root.path().to_owned()));
        let limit = all / 8;
        store.set_limit(limit);
        let mut most_held = 0;
        for pid in 0..32 {
            assert_eq!(symbol(&store, 500 + pid), Ok("function_number_0".into()));
            most_held = most_held.max(held(&store));
        }
        assert!(most_held <= limit + 32 * OVERHEAD, "{most_held} of {limit}");
        assert!(store.left_out() >= 24, "{}", store.left_out());
        // The first one was let go; the last one is there.
        assert_eq!(symbol(&store, 500), Err(JitMissing::NoMemory));
        assert_eq!(symbol(&store, 531), Ok("function_number_0".into()));
    }

    #[test]
    fn a_table_that_is_too_large_alone_is_refused() {
        let root = tempfile::tempdir().unwrap();
        process(root.path(), 500, 5000);
        let mut store = JitStore::new(Some(root.path().to_owned()));
        store.set_limit(10_000);
        assert_eq!(symbol(&store, 500), Err(JitMissing::NoMemory));
        assert_eq!(store.left_out(), 1);
        assert!(held(&store) < 2 * OVERHEAD);
    }

    #[test]
    fn a_process_that_ended_is_named_by_what_it_wrote_last_and_its_file_is_closed() {
        let root = tempfile::tempdir().unwrap();
        for pid in [500, 501] {
            process(root.path(), pid, 2);
        }
        let store = JitStore::new(Some(root.path().to_owned()));
        assert_eq!(symbol(&store, 500), Ok("function_number_0".into()));
        assert_eq!(symbol(&store, 502), Err(JitMissing::NoMap));
        let directory = root.path().join("proc/500");
        let map = directory.join("root/tmp/perf-500.map");
        let before = fs::read_to_string(&map).unwrap();
        fs::write(&map, format!("{before}9000 10 last\n")).unwrap();
        store.end(&[Pid(500), Pid(502), Pid(503)]);
        fs::remove_dir_all(&directory).unwrap();
        std::thread::sleep(2 * REREAD);
        let name = |addr| {
            store
                .find(last(500), addr, std::iter::empty())
                .map(|code| code.symbol)
        };
        assert_eq!(name(0x9008), Ok("last".into()));
        assert_eq!(name(0x1010), Ok("function_number_1".into()));
        assert_eq!(store.processes(), 1);
        let processes = store.processes.lock().unwrap();
        assert!(
            processes
                .values()
                .all(|process| { process.map.as_ref().is_none_or(|map| map.file.is_none()) })
        );
    }
}
