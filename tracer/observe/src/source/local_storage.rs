//! Where the threads of a live process have their thread-local variables.
//!
//! A program's own block lies at a distance from the thread pointer that its file tells. A library's is where the
//! loader put it, which only the process knows: words of the library's data that the loader filled say it, either as
//! a distance from the thread pointer or as a number into the thread's vector of blocks.
//!
//! ```text
//!   library's data, relocated                       thread
//!     R_X86_64_TPOFF64   ── distance ─────────────► tp + distance - offset of the symbol
//!     R_X86_64_DTPMOD64  ── module number n ──┐
//!     R_X86_64_TLSDESC   ── distance, or n ───┴──► [tp + 8] = vector; vector[n] = block
//! ```

use std::sync::Arc;

use rustc_hash::FxHashMap;
use symbolizer::{ThreadLocalSlot, ThreadLocalSlotKind, ThreadLocalTemplate};

use super::pace::Pace;
use crate::{
    access::{Pid, Tid},
    event::LocalBlock,
    module::{LoadedModule, ModuleStore},
    space::{AddressSpaces, MappedFiles},
};

/// No static block is farther from its thread pointer than this; glibc's whole area is some kilobytes.
const FARTHEST: u64 = 1 << 28;
/// Numbers of modules above this are no numbers of modules.
const MOST_MODULES: u64 = 1 << 20;
/// Thread pointers below this are none: nothing is mapped there (`vm.mmap_min_addr`).
const LOWEST: u64 = 1 << 16;
/// Threads that are kept in mind; beyond, all start again.
const MOST_THREADS: usize = 1 << 16;

/// How a C library lays out a thread's vector of blocks, whose address is in the word after the thread pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vector {
    /// Pairs of pointer and what to free; the pair before the first holds their number (`dtv_t`,
    /// sysdeps/generic/dl-dtv.h; `tcbhead_t`, sysdeps/x86_64/nptl/tls.h).
    Glibc,
    /// Pointers; the first word holds their number (`__copy_tls`, src/env/__init_tls.c).
    Musl,
}

/// What a module's file tells of its thread-local storage.
struct Told {
    template: ThreadLocalTemplate,
    is_program: bool,
    /// Those that hold a distance first: they need no vector.
    slots: Vec<ThreadLocalSlot>,
}

/// When a thread was looked at, and what was found.
struct Looked {
    tp: u64,
    /// Libraries may be opened, and blocks made, at any time.
    pace: Pace,
    known: Vec<LocalBlock>,
}

/// Finds blocks. Reads nothing of a process but a few words per thread and module.
pub(super) struct LocalStorage {
    modules: Arc<ModuleStore>,
    told: FxHashMap<(u64, u64), Option<Arc<Told>>>,
    threads: FxHashMap<Tid, Looked>,
}

/// Reads a word of the process, if there is one.
type ReadWord<'r> = &'r mut dyn FnMut(u64) -> Option<u64>;

impl LocalStorage {
    /// Nothing known yet.
    pub(super) fn new(modules: Arc<ModuleStore>) -> LocalStorage {
        LocalStorage {
            modules,
            told: FxHashMap::default(),
            threads: FxHashMap::default(),
        }
    }

    /// A thread ended.
    pub(super) fn forget(&mut self, tid: Tid) {
        self.threads.remove(&tid);
    }

    /// Forgets what is known of other files than these.
    pub(super) fn keep_files(&mut self, files: &MappedFiles) {
        self.told.retain(|file, _| files.has_number(*file));
    }

    /// Whether it is time to look at a thread.
    pub(super) fn is_due(&self, time_ns: u64, tid: Tid, tp: u64) -> bool {
        let looked = self.threads.get(&tid);
        tp >= LOWEST && looked.is_none_or(|looked| looked.tp != tp || looked.pace.is_due(time_ns))
    }

    /// The thread's blocks that were not known yet, or moved.
    pub(super) fn look(
        &mut self,
        time_ns: u64,
        (pid, tid, tp): (Pid, Tid, u64),
        spaces: &AddressSpaces,
        read: ReadWord<'_>,
    ) -> Vec<LocalBlock> {
        let found = self.blocks(pid, tp, spaces, read);
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&tid) {
            self.threads.clear();
        }
        let looked = self.threads.entry(tid).or_insert(Looked {
            tp,
            pace: Pace::at_once(time_ns),
            known: Vec::new(),
        });
        if looked.tp != tp {
            looked.tp = tp;
            looked.pace = Pace::at_once(time_ns);
            looked.known.clear();
        }
        let news: Vec<LocalBlock> = found
            .iter()
            .filter(|block| !looked.known.contains(block))
            .copied()
            .collect();
        looked.known = found;
        looked.pace.look(time_ns);
        news
    }

    fn blocks(
        &mut self,
        pid: Pid,
        tp: u64,
        spaces: &AddressSpaces,
        read: ReadWord<'_>,
    ) -> Vec<LocalBlock> {
        let Some(space) = spaces.current(pid) else {
            return Vec::new();
        };
        let mut found: Vec<LocalBlock> = Vec::new();
        let mut vector = None;
        let code = spaces.code(space);
        for mapping in &code {
            let file = (mapping.dev, mapping.inode);
            if found.iter().any(|known| (known.dev, known.inode) == file) {
                continue;
            }
            let modules = &self.modules;
            let opened = modules.open(pid, mapping);
            let told = self.told.entry(file).or_insert_with(|| {
                let module = opened.as_ref().ok()?;
                Some(Arc::new(told(module)?))
            });
            let (Some(told), Ok(module)) = (told.clone(), &opened) else {
                continue;
            };
            let vector = *vector.get_or_insert_with(|| {
                let musl = |name: &str| name.contains("/ld-musl-") || name.contains("/libc.musl-");
                if code.iter().any(|mapping| musl(&mapping.name)) {
                    Vector::Musl
                } else {
                    Vector::Glibc
                }
            });
            let address = |svma| module.address(mapping, svma);
            if let Some(start) = start(&told, tp, vector, &address, read) {
                found.push(LocalBlock {
                    start,
                    len: told.template.size,
                    dev: mapping.dev,
                    inode: mapping.inode,
                });
            }
        }
        found
    }
}

fn told(module: &LoadedModule) -> Option<Told> {
    let template = module.elf.thread_local_template()?;
    let mut slots = module.elf.thread_local_slots();
    slots.sort_by_key(|slot| slot.kind != ThreadLocalSlotKind::Distance);
    Some(Told {
        template,
        is_program: module.elf.is_program(),
        slots,
    })
}

/// First address of a module's block for the thread with this pointer; `address` gives the run-time address of one of
/// the module's own.
fn start(
    told: &Told,
    tp: u64,
    vector: Vector,
    address: &dyn Fn(u64) -> Option<u64>,
    read: ReadWord<'_>,
) -> Option<u64> {
    let template = &told.template;
    if told.is_program {
        return tp.checked_sub(template.distance_of_program()?);
    }
    // What the loader has not filled yet, or filled for another module, does not lie as the template asks.
    let fits = |start: &u64| {
        let mask = template.alignment - 1;
        *start >= LOWEST
            && start & mask == template.address & mask
            && start.checked_add(template.size).is_some()
    };
    let near = |distance: u64, offset: u64| -> Option<u64> {
        let start = tp.wrapping_add(distance).wrapping_sub(offset);
        let below = tp.checked_sub(start)?;
        (below >= template.size && below <= FARTHEST).then_some(start)
    };
    told.slots.iter().find_map(|slot| {
        let at = address(slot.address)?;
        let word = read(at)?;
        let start = match slot.kind {
            ThreadLocalSlotKind::Distance => near(word, slot.offset),
            ThreadLocalSlotKind::Module => in_vector(vector, tp, word, read),
            ThreadLocalSlotKind::Descriptor => {
                let argument = read(at.checked_add(8)?)?;
                near(argument, slot.offset).or_else(|| {
                    // Not a distance: the address of a module's number and an offset (`tlsdesc_dynamic_arg`,
                    // sysdeps/x86_64/dl-tlsdesc.h; musl's is the same).
                    let (number, offset) = (read(argument)?, read(argument.checked_add(8)?)?);
                    (offset == slot.offset).then(|| in_vector(vector, tp, number, read))?
                })
            }
        };
        start.filter(&fits)
    })
}

/// The block of module `number` in the thread's vector. Blocks of libraries opened at run time are made when the
/// thread first touches them.
fn in_vector(vector: Vector, tp: u64, number: u64, read: ReadWord<'_>) -> Option<u64> {
    if number == 0 || number > MOST_MODULES {
        return None;
    }
    let blocks = read(tp.checked_add(8)?)?;
    let (count_at, entry) = match vector {
        Vector::Glibc => (blocks.checked_sub(16)?, number * 16),
        Vector::Musl => (blocks, number * 8),
    };
    if read(count_at)? < number {
        return None;
    }
    // All bits: not made yet (`TLS_DTV_UNALLOCATED`).
    read(blocks.checked_add(entry)?).filter(|start| *start != u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TP: u64 = 0x7f00_0010_0740;
    const BIAS: u64 = 0x7f00_0000_0000;

    /// A process as its words.
    struct Words(BTreeMap<u64, u64>);

    impl Words {
        fn start(&self, told: &Told, vector: Vector) -> Option<u64> {
            let address = |svma| Some(BIAS + svma);
            start(told, TP, vector, &address, &mut |at| {
                self.0.get(&at).copied()
            })
        }
    }

    fn library(kind: ThreadLocalSlotKind, offset: u64) -> Told {
        Told {
            template: ThreadLocalTemplate {
                address: 0x3df0,
                size: 0x28,
                alignment: 16,
            },
            is_program: false,
            slots: vec![ThreadLocalSlot {
                address: 0x3fe8,
                kind,
                offset,
            }],
        }
    }

    #[test]
    fn a_static_block_is_at_its_distance_from_the_thread_pointer() {
        let told = library(ThreadLocalSlotKind::Distance, 8);
        let block = TP - 0x140;
        // The loader writes where the symbol at offset 8 is, seen from the thread pointer.
        let filled = (block + 8).wrapping_sub(TP);
        let words = Words([(BIAS + 0x3fe8, filled)].into());
        assert_eq!(words.start(&told, Vector::Glibc), Some(block));
        for unfilled in [0, 8, 0x3df0, filled + 1, u64::MAX] {
            let words = Words([(BIAS + 0x3fe8, unfilled)].into());
            assert_eq!(words.start(&told, Vector::Glibc), None, "{unfilled:#x}");
        }
        assert_eq!(
            Words(BTreeMap::new()).start(&told, Vector::Glibc),
            None,
            "the process is gone"
        );
    }

    #[test]
    fn a_dynamic_block_is_found_by_the_modules_number_once_it_is_made() {
        let told = library(ThreadLocalSlotKind::Module, 0);
        let (dtv, block) = (0x5500_0000_1010, 0x5500_0000_2ab0u64);
        let glibc = |made| {
            Words(
                [
                    (BIAS + 0x3fe8, 3),
                    (TP + 8, dtv),
                    (dtv - 16, 16),
                    (dtv + 48, made),
                ]
                .into(),
            )
        };
        assert_eq!(glibc(block).start(&told, Vector::Glibc), Some(block));
        assert_eq!(
            glibc(u64::MAX).start(&told, Vector::Glibc),
            None,
            "not made yet"
        );
        let musl = Words(
            [
                (BIAS + 0x3fe8, 3),
                (TP + 8, dtv),
                (dtv, 3),
                (dtv + 24, block),
            ]
            .into(),
        );
        assert_eq!(musl.start(&told, Vector::Musl), Some(block));
        let short = Words(
            [
                (BIAS + 0x3fe8, 3),
                (TP + 8, dtv),
                (dtv, 2),
                (dtv + 24, block),
            ]
            .into(),
        );
        assert_eq!(
            short.start(&told, Vector::Musl),
            None,
            "the vector is older than the library"
        );
    }

    #[test]
    fn a_descriptor_holds_a_distance_or_leads_to_the_modules_number() {
        let told = library(ThreadLocalSlotKind::Descriptor, 16);
        let block = TP - 0x140;
        let words = Words(
            [
                (BIAS + 0x3fe8, 0x4000),
                (BIAS + 0x3ff0, (block + 16).wrapping_sub(TP)),
            ]
            .into(),
        );
        assert_eq!(words.start(&told, Vector::Glibc), Some(block));
        let (argument, dtv, block) = (0x5500_0000_0500, 0x5500_0000_1010, 0x5500_0000_2ab0u64);
        let dynamic = |offset| {
            let words = [
                (BIAS + 0x3fe8, 0x4000),
                (BIAS + 0x3ff0, argument),
                (argument, 2),
                (argument + 8, offset),
                (TP + 8, dtv),
                (dtv - 16, 16),
                (dtv + 32, block),
            ];
            Words(words.into()).start(&told, Vector::Glibc)
        };
        assert_eq!(dynamic(16), Some(block));
        assert_eq!(dynamic(8), None, "another variable's");
    }

    #[test]
    fn hostile_words_give_nothing_and_no_panic() {
        for kind in [
            ThreadLocalSlotKind::Distance,
            ThreadLocalSlotKind::Module,
            ThreadLocalSlotKind::Descriptor,
        ] {
            for offset in [0, u64::MAX, 1 << 63] {
                for word in [0, 1, 15, 16, u64::MAX, u64::MAX - 7, 1 << 63, MOST_MODULES] {
                    for tp in [0, 1, u64::MAX, TP] {
                        let told = library(kind, offset);
                        let _ = start(&told, tp, Vector::Glibc, &|a| Some(a), &mut |_| Some(word));
                        let _ = start(&told, tp, Vector::Musl, &|_| None, &mut |_| Some(word));
                    }
                }
            }
        }
    }
}
