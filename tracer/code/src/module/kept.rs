//! How much memory names may take in sum: of modules, of compilers' tables, of decoded code.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use symbolizer::Allowance;

use super::{ByFile, LoadedModule, ModuleStore};
use crate::space::MappedFiles;

/// Bytes for all caches together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBudget(pub u64);

impl CacheBudget {
    /// A twentieth of the machine's memory, at least 256 MiB.
    pub fn standard(machine_bytes: Option<u64>) -> CacheBudget {
        CacheBudget((machine_bytes.unwrap_or(0) / 20).max(256 << 20))
    }

    /// Bytes for symbols, decoded debug info and sections that were decompressed, of all modules.
    pub fn modules(self) -> usize {
        self.eighths(5)
    }

    /// Bytes for the tables of just-in-time compilers, of all processes.
    pub fn jit(self) -> usize {
        self.eighths(2)
    }

    /// Bytes for decoded instructions.
    pub fn code(self) -> usize {
        self.eighths(1)
    }

    fn eighths(self, eighths: u64) -> usize {
        usize::try_from(self.0 / 8 * eighths).unwrap_or(usize::MAX)
    }
}

/// Opened modules, from several places at once.
pub(super) type Opened = Arc<Mutex<ByFile>>;

/// What is opened from here on may hold so much; who was longest unused starts afresh when it is not enough.
pub(super) fn bounded(opened: &Opened, bytes: usize) -> Allowance {
    let budget = Allowance::new(bytes);
    // The modules hold the budget, so the budget must not hold the modules.
    let opened = Arc::downgrade(opened);
    budget.when_short(move |budget, wanted| {
        let Some(opened) = opened.upgrade() else {
            return;
        };
        // Whoever opens a module now has it locked, and makes room himself.
        let opened = match opened.try_lock() {
            Ok(opened) => opened,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        make_room(opened, budget, wanted);
    });
    budget
}

/// Modules that hold less are not worth starting afresh.
const LITTLE: usize = 64 << 10;

/// Has modules start afresh, the longest unused first, until so much is free, and a quarter of all.
fn make_room(mut opened: MutexGuard<'_, ByFile>, budget: &Allowance, wanted: usize) {
    let all = opened.values_mut().flatten();
    let mut modules: Vec<&mut Arc<LoadedModule>> =
        all.filter_map(|known| known.opened.as_mut().ok()).collect();
    modules.sort_by_key(|module| module.used.load(Ordering::Relaxed));
    // The last one asks.
    modules.pop();
    modules.retain(|module| module.elf.held_bytes() >= LITTLE);
    let enough = (budget.limit() / 4 * 3).min(budget.limit().saturating_sub(wanted));
    for module in modules {
        if budget.bytes() <= enough {
            break;
        }
        if let Ok(elf) = module.elf.afresh() {
            *module = Arc::new(LoadedModule {
                id: module.id,
                path: module.path.clone(),
                elf,
                files: module.files.clone(),
                used: AtomicU64::new(module.used.load(Ordering::Relaxed)),
            });
        }
    }
}

/// Files from which on those that nobody has mapped are let go.
const MANY_FILES: usize = 256;

impl ModuleStore {
    /// The same, within a bound on memory.
    #[must_use]
    pub fn within(mut self, budget: CacheBudget) -> ModuleStore {
        self.budget = bounded(&self.opened, budget.modules());
        self.jit.set_limit(budget.jit());
        self.cache = budget;
        self
    }

    /// The bound on memory.
    pub fn budget(&self) -> CacheBudget {
        self.cache
    }

    /// Once the flag is set, names are looked up for `grace` and no longer; what was read by then still has its own.
    pub fn heed(&self, asked_to_stop: Arc<AtomicBool>, grace: Duration) {
        self.budget.heed(asked_to_stop, grace);
    }

    /// Whether the time for names is over.
    pub fn is_out_of_time(&self) -> bool {
        self.budget.is_out_of_time()
    }

    /// Whether half of it is: what is left is for names that are printed.
    pub fn is_short_of_time(&self) -> bool {
        self.budget.is_past(0.5)
    }

    /// Takes note that a module is asked for, and keeps all of them within the bound.
    pub(super) fn using(&self, module: &LoadedModule, opened: MutexGuard<'_, ByFile>) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        module.used.store(now, Ordering::Relaxed);
        if self.budget.is_over() {
            make_room(opened, &self.budget, 0);
        }
    }

    /// Whether there are so many files that [`ModuleStore::keep_files`] should be asked.
    pub fn has_many_files(&self) -> bool {
        let files = self.files();
        files >= MANY_FILES && files >= 2 * self.kept_files.load(Ordering::Relaxed)
    }

    /// Lets go of all files but these.
    pub fn keep_files(&self, files: &MappedFiles) {
        let mut opened = self.lock();
        opened.retain(|number, of_number| {
            of_number.retain(|known| files.has(*number, &known.name));
            !of_number.is_empty()
        });
        let left = opened.values().map(Vec::len).sum();
        self.kept_files.store(left, Ordering::Relaxed);
    }

    /// Files that are kept.
    pub fn files(&self) -> usize {
        self.lock().values().map(Vec::len).sum()
    }

    /// What was left out for want of memory, in a sentence.
    pub fn left_out(&self) -> Option<String> {
        let (modules, tables) = (self.budget.refused(), self.jit.left_out());
        let sentence = |what: &str| {
            let mib = self.cache.0 >> 20;
            Some(format!(
                "{what} left out, since names may take {mib} MiB of memory (--memory)"
            ))
        };
        match (modules, tables) {
            (0, 0) => None,
            (_, 0) => sentence("debug info or symbols of some files were"),
            (0, 1) => sentence("a table of a just-in-time compiler was"),
            (0, _) => sentence("tables of just-in-time compilers were"),
            _ => sentence("debug info of some files and tables of just-in-time compilers were"),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ByFile> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::{access::Pid, event::Mapping};

    #[test]
    fn the_standard_is_a_twentieth_of_the_machine_and_at_least_a_quarter_of_a_gibibyte() {
        let standard = |bytes| CacheBudget::standard(bytes).0;
        assert_eq!(standard(None), 256 << 20);
        assert_eq!(standard(Some(1 << 30)), 256 << 20);
        assert_eq!(standard(Some(100 << 30)), 5 << 30);
        let budget = CacheBudget(800);
        assert_eq!(
            (budget.modules(), budget.jit(), budget.code()),
            (500, 200, 100)
        );
    }

    /// This very program under many names, as files of their own.
    fn copies(folder: &std::path::Path, count: usize) -> Vec<Mapping> {
        let copy = |n: usize| {
            let path = folder.join(format!("copy{n}"));
            std::fs::copy("/proc/self/exe", &path).unwrap();
            let file = std::fs::metadata(&path).unwrap();
            Mapping {
                start: 0x1000,
                len: 0x1000,
                file_offset: 0,
                dev: u64::from(libc::major(file.dev())) << 32 | u64::from(libc::minor(file.dev())),
                inode: file.ino(),
                shared: false,
                executable: true,
                writable: false,
                name: path.to_str().unwrap().to_owned(),
                build_id: None,
                stamp: None,
            }
        };
        (0..count).map(copy).collect()
    }

    /// Asks each of the files for a function, twice around; the most that was held, and the answers.
    fn ask(modules: &ModuleStore, mappings: &[Mapping]) -> (usize, Vec<u64>) {
        let (mut most, mut found) = (0, Vec::new());
        for mapping in mappings.iter().chain(mappings) {
            let module = modules.open(Pid(std::process::id()), mapping).unwrap();
            let text = module.elf.section_range(".text").unwrap();
            let function = module.elf.function(text.start + 0x1_0000).unwrap();
            found.push(function.start);
            drop(module);
            most = most.max(modules.budget.bytes());
        }
        (most, found)
    }

    #[test]
    fn modules_stay_within_the_bound_in_sum_and_answer_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mappings = copies(folder.path(), 6);
        let free = ModuleStore::new("/".into(), true);
        let (all, expected) = ask(&free, &mappings);
        // Before a table is read, four times what it takes in the end is asked for: four of the six find room.
        let limit = all / 4 * 3;
        let bounded = ModuleStore::new("/".into(), true).within(CacheBudget(limit as u64 / 5 * 8));
        let (most, found) = ask(&bounded, &mappings);
        assert_eq!(found, expected);
        // The one that is asked for comes on top until the next.
        assert!(most <= limit + all / 6 + 4096, "{most} of {limit}");
        assert!(all > 6 * LITTLE, "{all}");
        assert_eq!(bounded.left_out(), None);
    }

    #[test]
    fn files_that_nobody_has_mapped_are_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let mappings = copies(folder.path(), 3);
        let modules = ModuleStore::new("/".into(), true);
        ask(&modules, &mappings);
        assert_eq!(modules.files(), 3);
        assert!(!modules.has_many_files());
        // Its number was another's once.
        let renamed = Mapping {
            name: "/gone".into(),
            ..mappings[1].clone()
        };
        assert!(modules.open(Pid(0), &renamed).is_err());
        assert_eq!(modules.files(), 4);
        let mut kept = MappedFiles::default();
        kept.add(&mappings[1]);
        modules.keep_files(&kept);
        assert_eq!(modules.files(), 1);
        assert!(modules.budget.bytes() > 0);
        modules.keep_files(&MappedFiles::default());
        assert_eq!(modules.budget.bytes(), 0);
    }
}
