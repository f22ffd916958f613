//! A process: addresses at run time to code and data, by its mappings.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{Code, FieldPath, Missing, Module, Object};

/// How many mappings below an anonymous one may belong to the module whose zero-initialised data it holds: text,
/// read-only data, relocated data, data.
const MODULE_MAPPINGS: usize = 6;

/// Where a mapping is and of which file, whoever keeps it in whichever form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Device and inode; `None` for memory that is not from a file.
    pub file: Option<(u64, u64)>,
    /// Whether code is executed from it.
    pub executable: bool,
}

/// The mapping that tells where the module whose memory an address is was loaded: by the address' own mapping, or for
/// zero-initialised data (which the kernel maps as anonymous memory after the file's) by the nearest file below.
///
/// `mappings` are in the order of addresses. Two data segments may share a page of the file, so only the code's mapping
/// tells the load bias: it is preferred.
pub fn module_mapping<'m, M>(
    mappings: impl Iterator<Item = &'m M>,
    address: u64,
    region: impl Fn(&M) -> Region,
) -> Option<&'m M> {
    let all = mappings.map(|mapping| (mapping, region(mapping)));
    let below: Vec<(&M, Region)> = all.take_while(|(_, r)| r.start <= address).collect();
    let (_, last) = below.last()?;
    if address - last.start >= last.len {
        return None;
    }
    let mut near = below.iter().rev().take(MODULE_MAPPINGS);
    let nearest = near.find(|(_, r)| r.file.is_some())?;
    let of_file = |(_, r): &&(&M, Region)| r.file == nearest.1.file && r.executable;
    let found = below.iter().rev().find(of_file).unwrap_or(nearest);
    Some(found.0)
}

/// A mapping as `/proc/PID/maps` or a recording has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Device (`major << 32 | minor`) and inode; `None` for memory that is not from a file.
    pub file: Option<(u64, u64)>,
    /// Whether code is executed from it.
    pub executable: bool,
    /// Path, `[vdso]`, `[heap]`, or nothing.
    pub name: String,
}

impl Mapping {
    /// Where it is, and of which file.
    pub fn region(&self) -> Region {
        Region {
            start: self.start,
            len: self.len,
            file: self.file,
            executable: self.executable,
        }
    }

    fn contains(&self, address: u64) -> bool {
        let inside = address.checked_sub(self.start);
        inside.is_some_and(|inside| inside < self.len)
    }

    /// One line of `/proc/PID/maps` (proc(5)); `None` for anything else.
    pub fn parse(line: &str) -> Option<Mapping> {
        let mut rest = line;
        let mut word = || {
            rest = rest.trim_start();
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after;
            word
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = word().split_once('-')?;
        let (start, end) = (hex(start)?, hex(end)?);
        let rights = word();
        let file_offset = hex(word())?;
        let (major, minor) = word().split_once(':')?;
        let device = hex(major)? << 32 | hex(minor)?;
        let inode: u64 = word().parse().ok()?;
        Some(Mapping {
            start,
            len: end.checked_sub(start)?,
            file_offset,
            file: (inode != 0).then_some((device, inode)),
            executable: rights.contains('x'),
            name: rest.trim().to_owned(),
        })
    }

    /// All lines of `/proc/PID/maps` that are mappings.
    pub fn parse_all(maps: &str) -> Vec<Mapping> {
        maps.lines().filter_map(Mapping::parse).collect()
    }
}

/// Opens the file behind a mapping; called once per file.
pub type OpenModule = dyn Fn(&Mapping) -> Result<Module, String> + Send + Sync;

type Opened = Result<Arc<Module>, String>;

/// What is known of a data address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The variable that covers it.
    pub object: Result<Object, Missing>,
    /// The part of the variable.
    pub field: Result<FieldPath, Missing>,
}

/// Why an address of a process has no module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoModule {
    /// Nothing is mapped there.
    NotMapped,
    /// The memory is from no file: the heap, a stack, code of a JIT compiler.
    NoFile {
        /// The mapping's name; empty where it has none.
        mapping: String,
    },
    /// The file could not be used.
    NoModule {
        /// Path of the file.
        path: String,
        /// What went wrong.
        reason: String,
    },
}

impl fmt::Display for NoModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoModule::NotMapped => f.write_str("nothing is mapped at the address"),
            NoModule::NoFile { mapping } if mapping.is_empty() => {
                f.write_str("the memory is from no file")
            }
            NoModule::NoFile { mapping } => write!(f, "the memory is from no file: {mapping}"),
            NoModule::NoModule { path, reason } => write!(f, "{path}: {reason}"),
        }
    }
}

impl std::error::Error for NoModule {}

/// The mappings of a process, live or recorded, and the modules behind them.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use symbolizer::{Mapping, Module, NoDebugFiles, Process};
///
/// let maps = std::fs::read_to_string("/proc/1234/maps")?;
/// let process = Process::new(Mapping::parse_all(&maps), |mapping| {
///     let bytes = std::fs::read(&mapping.name).map_err(|e| e.to_string())?;
///     Module::parse(Arc::new(bytes), Box::new(NoDebugFiles)).map_err(|e| e.to_string())
/// });
/// println!("{:?}", process.code(0x55d0_1234_5678)?.frames);
/// let data = process.data(0x55d0_1234_9010, 8)?;
/// println!("{}{}", data.object?.name, data.field?.path);
/// # Ok(())
/// # }
/// ```
pub struct Process {
    mappings: Vec<Mapping>,
    open: Box<OpenModule>,
    modules: Mutex<HashMap<(u64, u64), Opened>>,
}

impl Process {
    /// Of these mappings, in any order. `open` opens the file behind one.
    pub fn new(
        mut mappings: Vec<Mapping>,
        open: impl Fn(&Mapping) -> Result<Module, String> + Send + Sync + 'static,
    ) -> Process {
        mappings.sort_by_key(|mapping| mapping.start);
        Process {
            mappings,
            open: Box::new(open),
            modules: Mutex::default(),
        }
    }

    /// The module that an address belongs to, and the address in the module's own numbering.
    pub fn module(&self, address: u64) -> Result<(Arc<Module>, u64), NoModule> {
        let own = (self.mappings.iter())
            .find(|mapping| mapping.contains(address))
            .ok_or(NoModule::NotMapped)?;
        let no_file = || NoModule::NoFile {
            mapping: own.name.clone(),
        };
        let mapping =
            module_mapping(self.mappings.iter(), address, Mapping::region).ok_or_else(no_file)?;
        let file = mapping.file.ok_or_else(no_file)?;
        let no_module = |reason: &str| NoModule::NoModule {
            path: mapping.name.clone(),
            reason: reason.to_owned(),
        };
        let module = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = modules
                .entry(file)
                .or_insert_with(|| (self.open)(mapping).map(Arc::new));
            opened.clone().map_err(|reason| no_module(&reason))?
        };
        let bias = module
            .load_bias(mapping.start, mapping.file_offset)
            .ok_or_else(|| no_module("the mapping is none of the file's segments"))?;
        let svma = address.wrapping_sub(bias);
        // Anonymous memory behind a module's data is only the module's as far as its segments reach.
        if own.file.is_none() && !module.memory().contains(&svma) {
            return Err(no_file());
        }
        Ok((module, svma))
    }

    /// The instruction at an address.
    pub fn code(&self, address: u64) -> Result<Code, NoModule> {
        let (module, svma) = self.module(address)?;
        Ok(module.frames(svma))
    }

    /// The variable that covers an address, and the part of it that `size` bytes from there are.
    pub fn data(&self, address: u64, size: u64) -> Result<Data, NoModule> {
        let (module, svma) = self.module(address)?;
        let object = module.object(svma);
        let field = match &object {
            Ok(object) => match object.ty {
                Some(ty) => module.field(ty, svma.wrapping_sub(object.address), size),
                None => Err(object.missing.unwrap_or(Missing::NoType)),
            },
            Err(missing) => Err(*missing),
        };
        Ok(Data { object, field })
    }
}

#[cfg(test)]
mod tests {
    use super::{Mapping, module_mapping};

    const MAPS: &str = "\
        1000-2000 r--p 00000000 fe:01 77 /opt/my program\n\
        2000-3000 r-xp 00001000 fe:01 77 /opt/my program\n\
        3000-4000 rw-p 00001000 fe:01 77 /opt/my program\n\
        4000-5000 rw-p 00000000 00:00 0 \n\
        6000-7000 rw-p 00000000 00:00 0 [heap]\n";

    #[test]
    fn a_line_of_maps_is_a_mapping() {
        let all = Mapping::parse_all(MAPS);
        assert_eq!(all.len(), 5);
        assert_eq!(all[1].name, "/opt/my program");
        assert_eq!(all[1].file, Some((0xfe << 32 | 1, 77)));
        assert_eq!((all[1].start, all[1].len), (0x2000, 0x1000));
        assert!(all[1].executable && !all[0].executable);
        assert_eq!((all[3].file, all[3].name.as_str()), (None, ""));
        for bad in [
            "",
            "1000",
            "2000-1000 r--p 0 0:0 0",
            "x-y r--p 0 0:0 0",
            "1-2 r",
        ] {
            assert_eq!(Mapping::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn zero_initialised_data_belongs_to_the_file_below_it() {
        let all = Mapping::parse_all(MAPS);
        let of = |address| {
            module_mapping(all.iter(), address, Mapping::region).map(|mapping| mapping.start)
        };
        // The code's mapping tells the load bias, whatever was asked for.
        assert_eq!(of(0x3800), Some(0x2000));
        assert_eq!(of(0x4800), Some(0x2000));
        // Before the code there is only the first mapping.
        assert_eq!(of(0x1800), Some(0x1000));
        assert_eq!(of(0x5800), None);
        assert_eq!(of(0x800), None);
    }
}
