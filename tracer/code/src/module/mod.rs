//! The files behind mappings: found, checked to be the ones that were mapped, opened once, and kept
//! open, so that a process that is gone can still be named.

mod build_id;
mod debug_files;
mod find;
mod jit;
mod kept;
mod opened_files;
mod package;
mod stamps;
mod vmlinux;

use std::{
    collections::HashMap,
    fs,
    ops::Range,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use symbolizer::{Allowance, Module, Region};

pub use debug_files::hex;
pub use jit::{Compiled, JitCode, JitMissing, JitStore};
pub use kept::CacheBudget;
pub use stamps::Stamps;
pub use vmlinux::KernelMissing;

use crate::{
    access::Pid,
    event::{FileStamp, Mapping},
    machine::{btf::KernelTypes, kallsyms::Kallsyms},
    sys::{found_file::FoundFile, map_file::FileBytes},
};
use debug_files::DebugDirectories;
use opened_files::OpenedFiles;

/// The mapping of the code of the module whose memory an address is, or what tells of the module instead: see
/// [`symbolizer::module_mapping`]. `mappings` are in the order of addresses.
pub fn code_of<'m>(
    mappings: impl Iterator<Item = &'m Arc<Mapping>>,
    address: u64,
) -> Option<&'m Arc<Mapping>> {
    symbolizer::module_mapping(mappings, address, |mapping| Region {
        start: mapping.start,
        len: mapping.len,
        file: mapping.is_file().then_some((mapping.dev, mapping.inode)),
        executable: mapping.executable,
    })
}

/// Identifies an opened module within one [`ModuleStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(u32);

/// An opened module.
pub struct LoadedModule {
    /// Number under which the store keeps it.
    pub id: ModuleId,
    /// As the process named it.
    pub path: String,
    /// The parsed file.
    pub elf: Module,
    /// Its file and those of its debug information.
    files: OpenedFiles,
    /// When it was last asked for, as the store counts.
    used: AtomicU64,
}

impl LoadedModule {
    /// The machine code at some of the module's own addresses (svmas); `None` too where the file does not have it any more.
    pub fn code(&self, svmas: Range<u64>) -> Option<Vec<u8>> {
        let code = self.elf.code(svmas.start, svmas.end)?.to_vec();
        (!self.files.is_torn()).then_some(code)
    }

    /// The identity of the build, as tools write it.
    pub fn build_id(&self) -> Option<String> {
        self.elf.build_id().map(hex)
    }

    /// The module's own address (svma) of a runtime address in one of its mappings.
    pub fn svma(&self, mapping: &Mapping, addr: u64) -> Option<u64> {
        let bias = self.elf.load_bias(mapping.start, mapping.file_offset)?;
        Some(addr.wrapping_sub(bias))
    }

    /// The runtime address of one of the module's own (svma), by one of its mappings.
    pub fn address(&self, mapping: &Mapping, svma: u64) -> Option<u64> {
        let bias = self.elf.load_bias(mapping.start, mapping.file_offset)?;
        Some(svma.wrapping_add(bias))
    }

    /// The runtime addresses of some of the module's own (svmas), by one of its mappings.
    pub fn addresses(&self, mapping: &Mapping, svmas: Range<u64>) -> Option<Range<u64>> {
        let start = self.address(mapping, svmas.start)?;
        Some(start..start.checked_add(svmas.end - svmas.start)?)
    }
}

/// Why there is no module behind a mapping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Unavailable {
    /// Anonymous memory: a JIT compiler's code, say.
    #[error("not from a file")]
    Anonymous,
    /// Neither the process nor its file is there any more, or it is in a container that is gone.
    #[error("the file is gone, or is not visible from here")]
    Gone,
    /// The file at the path is another one than was mapped.
    #[error("the file changed since it was mapped")]
    Changed,
    /// The file at the path is another build than was mapped.
    #[error("the file here is another build ({found}) than was recorded ({recorded})")]
    OtherBuild {
        /// Build-id of the mapping.
        recorded: String,
        /// Build-id of the file.
        found: String,
    },
    /// It was recorded on another machine, which did not say of which build it was.
    #[error("recorded elsewhere without its build-id, so no file here is known to be it")]
    Unidentified,
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// It is no ELF file that can be used.
    #[error("not a usable ELF file: {0}")]
    Malformed(String),
    /// Somebody asked to stop.
    #[error(transparent)]
    NoTime(symbolizer::Missing),
}

/// A module, or why there is none.
pub type Opened = Result<Arc<LoadedModule>, Unavailable>;

/// An answer, and what it answers.
struct Known {
    name: String,
    build_id: Option<String>,
    stamp: Option<FileStamp>,
    opened: Opened,
    /// When the file was last seen to be as it was opened.
    checked: Instant,
}

/// How long a file is believed to stay as it is; looking costs a microsecond.
const RECHECK: Duration = Duration::from_millis(100);

impl Known {
    fn is_of(&self, mapping: &Mapping) -> bool {
        self.name == mapping.name
            && self.build_id == mapping.build_id
            && (self.build_id.is_some() || self.stamp == mapping.stamp)
    }

    /// The module, unless its file changed under us. Asked for each sample, so it does not look each time.
    fn current(&mut self) -> Opened {
        if let Ok(module) = &self.opened
            && (module.files.is_torn() || self.checked.elapsed() >= RECHECK)
        {
            self.check();
        }
        self.opened.clone()
    }

    /// Whether the file changed since it was looked at last.
    fn check(&mut self) -> bool {
        let changed = (self.opened.as_ref()).is_ok_and(|module| module.files.have_changed());
        if changed {
            self.opened = Err(Unavailable::Changed);
        }
        self.checked = Instant::now();
        changed
    }
}

/// By device and inode.
type ByFile = HashMap<(u64, u64), Vec<Known>>;

/// Opened modules by identity (device, inode, name).
pub struct ModuleStore {
    root: PathBuf,
    // Asked for each sample, so without making a key of the name.
    opened: kept::Opened,
    /// What modules may hold in memory together.
    budget: Allowance,
    cache: CacheBudget,
    /// Counts askings.
    clock: AtomicU64,
    /// Files when those that nobody has mapped were last let go.
    kept_files: AtomicUsize,
    loaded: AtomicU32,
    of_this_boot: bool,
    elsewhere: bool,
    unchanged_since: Option<u64>,
    kernel: OnceLock<Result<Kallsyms, KernelMissing>>,
    vmlinux: OnceLock<Option<(Arc<LoadedModule>, u64)>>,
    kernel_types: OnceLock<Option<KernelTypes>>,
    jit: JitStore,
}

impl ModuleStore {
    /// Looks below `root` (`/` but for tests). Kernel addresses mean something only to the boot they are
    /// of; for another one, the kernel stays unnamed.
    pub fn new(root: PathBuf, of_this_boot: bool) -> ModuleStore {
        let opened = kept::Opened::default();
        let cache = CacheBudget::standard(None);
        ModuleStore {
            jit: JitStore::new(of_this_boot.then(|| root.clone())),
            root,
            budget: kept::bounded(&opened, cache.modules()),
            opened,
            cache,
            clock: AtomicU64::new(0),
            kept_files: AtomicUsize::new(0),
            loaded: AtomicU32::new(0),
            of_this_boot,
            elsewhere: false,
            unchanged_since: None,
            kernel: OnceLock::new(),
            vmlinux: OnceLock::new(),
            kernel_types: OnceLock::new(),
        }
    }

    /// For a recording of that stretch of wall-clock time: JIT maps of later processes are not of its own.
    #[must_use]
    pub fn recorded(self, started: SystemTime, duration: Duration) -> ModuleStore {
        let store = self.unchanged_since(started);
        let until = stamps::unix_ns(started + duration);
        ModuleStore {
            jit: store.jit.recorded_until(until),
            ..store
        }
    }

    /// Files of which nobody saw what they were when they were mapped are believed by their inode numbers only if they
    /// have not changed since that time.
    #[must_use]
    pub fn unchanged_since(self, time: SystemTime) -> ModuleStore {
        ModuleStore {
            unchanged_since: Some(stamps::unix_ns(time)),
            ..self
        }
    }

    /// For what another machine recorded: processes here have nothing to do with it, and a file is the one that
    /// was mapped only by its build-id.
    #[must_use]
    pub fn recorded_elsewhere(self) -> ModuleStore {
        ModuleStore {
            elsewhere: true,
            ..self
        }
    }

    /// What to install, or to run, for the debug info of each of the files, by the file; without those of no
    /// package and those that are another file here than in their process (in a container, say).
    pub fn debug_packages<'p>(
        &self,
        files: impl IntoIterator<Item = &'p str>,
    ) -> HashMap<&'p str, String> {
        let here = files.into_iter().filter(|file| !self.is_elsewhere(file));
        package::debug_packages(&self.root, here)
    }

    /// Whether the file was opened, and the one of its name below our root is another.
    fn is_elsewhere(&self, file: &str) -> bool {
        let found =
            fs::metadata(self.root.join(file.trim_start_matches('/'))).map(|file| file.ino());
        let opened = self.lock();
        let named = |known: &Vec<Known>| known.iter().any(|known| known.name == file);
        let inodes: Vec<u64> = opened
            .iter()
            .filter(|(_, known)| named(known))
            .map(|((_, inode), _)| *inode)
            .collect();
        !inodes.is_empty() && !found.is_ok_and(|found| inodes.contains(&found))
    }

    /// Code that no file holds.
    pub fn jit(&self) -> &JitStore {
        &self.jit
    }

    /// The kernel's symbols, read when first asked for.
    pub fn kernel(&self) -> Result<&Kallsyms, KernelMissing> {
        let read = || {
            if self.of_this_boot {
                vmlinux::symbols(&self.root)
            } else {
                Err(KernelMissing::OtherBoot)
            }
        };
        self.kernel
            .get_or_init(read)
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// The kernel's own file, of the very build that runs, and what to subtract (wrapping) from its run-time
    /// addresses. Looked for when first asked for.
    pub fn vmlinux(&self) -> Option<(&Arc<LoadedModule>, u64)> {
        let open = || {
            let id = ModuleId(self.loaded.fetch_add(1, Ordering::Relaxed));
            let (module, bias) = vmlinux::open(&self.root, self.kernel().ok()?, id)?;
            Some((Arc::new(module), bias))
        };
        let (module, bias) = self.vmlinux.get_or_init(open).as_ref()?;
        Some((module, *bias))
    }

    /// The running kernel's own description of its types, and its variables that it covers. Read when first asked for.
    pub fn kernel_types(&self) -> Option<&KernelTypes> {
        let read = || vmlinux::types(&self.root, self.kernel().ok()?);
        self.kernel_types.get_or_init(read).as_ref()
    }

    /// The module behind a mapping of a process that is, or was, running. Answers, good or bad, are kept.
    pub fn open(&self, pid: Pid, mapping: &Mapping) -> Opened {
        if !(mapping.is_file() || mapping.name == find::VDSO) {
            return Err(Unavailable::Anonymous);
        }
        let mut opened = self.lock();
        let of_file = opened.entry((mapping.dev, mapping.inode)).or_default();
        if let Some(known) = of_file.iter_mut().find(|known| known.is_of(mapping)) {
            let current = known.current();
            if let Ok(module) = &current {
                self.using(module, opened);
            }
            return current;
        }
        let found = self.find(pid, mapping);
        of_file.push(Known {
            name: mapping.name.clone(),
            build_id: mapping.build_id.clone(),
            stamp: mapping.stamp,
            opened: found.clone(),
            checked: Instant::now(),
        });
        if let Ok(module) = &found {
            self.using(module, opened);
        }
        found
    }

    /// The same to name something, for which there is no time some while after a request to stop: see [`ModuleStore::heed`].
    pub fn open_to_name(&self, pid: Pid, mapping: &Mapping) -> Opened {
        if self.is_out_of_time() {
            return Err(Unavailable::NoTime(symbolizer::Missing::NoTime));
        }
        self.open(pid, mapping)
    }

    /// Looks whether files that names came from are still what they were; what changed gives no more names. Says whether
    /// any did: the names it gave last may be wrong.
    pub fn recheck(&self) -> bool {
        let mut opened = self.lock();
        let mut any = false;
        for known in opened.values_mut().flatten() {
            any |= known.check();
        }
        any
    }

    /// The file behind a mapping, looked at and not opened, if it is the one that was mapped as far as its inode number says.
    pub fn file(&self, pid: Pid, mapping: &Mapping) -> Option<FoundFile> {
        let mut found = find::candidates(&self.root, pid, mapping);
        found.next().map(|candidate| candidate.file)
    }

    fn find(&self, pid: Pid, mapping: &Mapping) -> Opened {
        let load = |bytes| self.load(pid, mapping, bytes);
        if !self.elsewhere {
            return find::first(&self.root, pid, mapping, self.unchanged_since, load);
        }
        if mapping.build_id.is_none() {
            return Err(Unavailable::Unidentified);
        }
        load(find::by_path(&self.root, mapping)?)
    }

    fn load(&self, pid: Pid, mapping: &Mapping, bytes: Arc<FileBytes>) -> Opened {
        // Of a process in a container, the debug files are there too while it lives.
        let process = self.root.join(format!("proc/{}/root", pid.0));
        let mut roots = vec![process, self.root.clone()];
        roots.drain(..usize::from(self.elsewhere));
        let files = OpenedFiles::new(&bytes);
        let debug = DebugDirectories::new(roots, &mapping.path(), files.clone());
        let elf = Module::parse_within(bytes, Box::new(debug), &self.budget)
            .map_err(|e| Unavailable::Malformed(e.to_string()))?;
        let module = LoadedModule {
            id: ModuleId(self.loaded.fetch_add(1, Ordering::Relaxed)),
            path: mapping.name.clone(),
            elf,
            files,
            used: AtomicU64::new(0),
        };
        check_build(mapping, &module)?;
        Ok(Arc::new(module))
    }
}

/// Refuses a file that is not the build that was mapped, where the recording knows which that was.
fn check_build(mapping: &Mapping, module: &LoadedModule) -> Result<(), Unavailable> {
    let Some(recorded) = &mapping.build_id else {
        return Ok(());
    };
    let found = module.build_id();
    if found.as_ref() == Some(recorded) {
        return Ok(());
    }
    Err(Unavailable::OtherBuild {
        recorded: recorded.clone(),
        found: found.unwrap_or_else(|| "none".to_owned()),
    })
}

#[cfg(test)]
mod tests;
