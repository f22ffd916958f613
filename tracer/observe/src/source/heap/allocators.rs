//! Which functions of a file allocate and free.
//!
//! `operator new` of libstdc++ and Rust's `__rust_alloc` end in the `malloc` of another file, which is probed
//! there. Where one file has both (a static program, an allocator with operators of its own), both are probed: the
//! kernel half takes the outermost call of a thread for the allocation.

use symbolizer::Module;
use tracer_ebpf::programs;

use super::entry::cheap_probe;
use crate::sys::uprobe::Moment;

/// How a function takes its arguments: the program at its entry.
type Shape = &'static str;

const SIZE_FIRST: Shape = programs::HEAP_SIZE_FIRST;
const SIZE_SECOND: Shape = programs::HEAP_SIZE_SECOND;
const FREE: Shape = programs::HEAP_FREE;

/// The C functions, under the prefixes below. In the order in which programs call them most, as probes come out
/// in that order.
const PLAIN: [(&str, Shape); 7] = [
    ("malloc", SIZE_FIRST),
    ("free", FREE),
    ("calloc", programs::HEAP_CALLOC),
    ("realloc", programs::HEAP_REALLOC),
    ("posix_memalign", programs::HEAP_POSIX_MEMALIGN),
    ("aligned_alloc", SIZE_SECOND),
    ("memalign", SIZE_SECOND),
];

/// Prefixes of the allocators that are linked beside another: jemalloc, the same in Rust programs, tcmalloc,
/// mimalloc.
const PREFIXES: [&str; 5] = ["", "je_", "_rjem_", "tc_", "mi_"];

/// What maps pages. An allocator's own call is an inner one of its `malloc`, and so not told; what its `free` unmaps
/// was freed before.
const MAPPING: [(&str, Shape); 4] = [
    ("mmap", programs::HEAP_MMAP),
    ("mmap64", programs::HEAP_MMAP),
    ("munmap", programs::HEAP_MUNMAP),
    ("mremap", programs::HEAP_MREMAP),
];

/// What has no plain name. Names of operators are mangled (Itanium C++ ABI, section 5.1).
const OTHERS: [(&str, Shape); 40] = [
    ("_Znwm", SIZE_FIRST),
    ("_Znam", SIZE_FIRST),
    ("_ZdlPvm", FREE),
    ("_ZdlPv", FREE),
    ("_ZdaPv", FREE),
    ("_ZdaPvm", FREE),
    ("_ZnwmSt11align_val_t", SIZE_FIRST),
    ("_ZnamSt11align_val_t", SIZE_FIRST),
    ("_ZnwmRKSt9nothrow_t", SIZE_FIRST),
    ("_ZnamRKSt9nothrow_t", SIZE_FIRST),
    ("_ZnwmSt11align_val_tRKSt9nothrow_t", SIZE_FIRST),
    ("_ZnamSt11align_val_tRKSt9nothrow_t", SIZE_FIRST),
    ("_ZdlPvSt11align_val_t", FREE),
    ("_ZdaPvSt11align_val_t", FREE),
    ("_ZdlPvmSt11align_val_t", FREE),
    ("_ZdaPvmSt11align_val_t", FREE),
    ("_ZdlPvRKSt9nothrow_t", FREE),
    ("_ZdaPvRKSt9nothrow_t", FREE),
    ("mallocx", SIZE_FIRST),
    ("rallocx", programs::HEAP_REALLOC),
    ("dallocx", FREE),
    ("sdallocx", FREE),
    ("je_mallocx", SIZE_FIRST),
    ("je_rallocx", programs::HEAP_REALLOC),
    ("je_dallocx", FREE),
    ("je_sdallocx", FREE),
    ("_rjem_mallocx", SIZE_FIRST),
    ("_rjem_rallocx", programs::HEAP_REALLOC),
    ("_rjem_dallocx", FREE),
    ("_rjem_sdallocx", FREE),
    ("tc_new", SIZE_FIRST),
    ("tc_newarray", SIZE_FIRST),
    ("tc_delete", FREE),
    ("tc_deletearray", FREE),
    ("mi_zalloc", SIZE_FIRST),
    ("mi_malloc_aligned", SIZE_FIRST),
    ("mi_zalloc_aligned", SIZE_FIRST),
    ("mi_realloc_aligned", programs::HEAP_REALLOC),
    ("mi_free_size_aligned", FREE),
    ("mi_new", SIZE_FIRST),
];

/// A probe on one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// In the file.
    pub offset: u64,
    /// The program that runs at the entry of its function.
    pub entry: &'static str,
    /// Whether the probe is on its entry or on its return.
    pub moment: Moment,
    /// The kernel single-steps the instruction: each hit is a second trap.
    pub stepped: bool,
}

impl Probe {
    /// The program that runs there.
    pub(super) fn program(&self) -> &'static str {
        match self.moment {
            Moment::Entry => self.entry,
            Moment::Return => programs::HEAP_RETURN,
        }
    }

    /// Whether it is on a function that frees: these go in first.
    pub(super) fn is_free(&self) -> bool {
        is_free(self.entry)
    }

    /// Whether it is on a function that maps or unmaps.
    pub(super) fn is_mapping(&self) -> bool {
        is_mapping(self.entry)
    }
}

/// Whether a program runs on functions that free or unmap.
pub(super) fn is_free(entry: &str) -> bool {
    entry == FREE || entry == programs::HEAP_MUNMAP
}

/// Whether a program runs on functions that map or unmap.
pub(super) fn is_mapping(entry: &str) -> bool {
    MAPPING.iter().any(|(_, program)| *program == entry)
}

/// The probes that a file takes, those hit most first; none unless it is an allocator, with both a function that
/// allocates and one that frees.
pub(super) fn probes(module: &Module) -> Vec<Probe> {
    let plain = PREFIXES.iter().flat_map(|prefix| {
        let named = move |(name, shape): &(&str, Shape)| (format!("{prefix}{name}"), *shape);
        PLAIN.iter().map(named)
    });
    let others = (OTHERS.iter().chain(&MAPPING)).map(|(name, shape)| ((*name).to_owned(), *shape));
    let functions: Vec<(String, Shape)> = plain.chain(others).collect();
    let names: Vec<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
    let starts = module.functions_named(&names);
    // Of the operators alone, as libstdc++ has them, none is probed: they end in a malloc elsewhere.
    let is_allocator = (functions.iter().zip(&starts))
        .any(|((name, _), start)| start.is_some() && name.ends_with("malloc"));
    if !is_allocator {
        return Vec::new();
    }
    let mut probes: Vec<Probe> = Vec::new();
    for ((_, entry), start) in functions.iter().zip(starts) {
        let Some((offset, stepped)) = start.and_then(|start| place(module, start)) else {
            continue;
        };
        // Several names of one function.
        if probes.iter().any(|known| known.offset == offset) {
            continue;
        }
        let probe = |moment| Probe {
            offset,
            entry,
            moment,
            stepped,
        };
        if !is_free(entry) {
            probes.push(probe(Moment::Return));
        }
        probes.push(probe(Moment::Entry));
    }
    let mut allocating = probes.iter().filter(|probe| !probe.is_mapping());
    let both = allocating.clone().any(Probe::is_free) && !allocating.all(Probe::is_free);
    if both { probes } else { Vec::new() }
}

/// The offset of the instruction to probe in the function at `start`, and whether it will be single-stepped.
fn place(module: &Module, start: u64) -> Option<(u64, bool)> {
    let end = module
        .function(start)
        .map_or(start, |function| function.end);
    let code = module.code(start, end).unwrap_or(&[]);
    let cheap = if cfg!(target_arch = "x86_64") {
        cheap_probe(code, start)
    } else {
        // The kernel simulates or steps there too, but nothing but the first instruction has the return address.
        Some(0)
    };
    let offset = module.offset_of_svma(start.checked_add(cheap.unwrap_or(0))?)?;
    Some((offset, cheap.is_none()))
}
