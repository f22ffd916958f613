//! Where a module's thread-local storage is told: its template, and the slots that the loader fills with its place.

use object::elf;

use crate::Module;

/// Slots given of one module. One is enough to find the block.
const MOST_SLOTS: usize = 64;
/// Relocations looked at.
const MOST_RELOCATIONS: usize = 1 << 20;

/// `R_X86_64_DTPMOD64`, `_TPOFF64` and `_TLSDESC` (System V psABI for x86-64, table 4.9).
const DTPMOD64: u32 = 16;
const TPOFF64: u32 = 18;
const TLSDESC: u32 = 36;
/// `DF_1_PIE` of `DT_FLAGS_1`: the linker made a program, not a library.
const FLAGS_1: u64 = 0x6fff_fffb;
const PIE: u64 = 0x0800_0000;

/// The initial image of each thread's block (`PT_TLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLocalTemplate {
    /// Its own address in the file's numbering: blocks are placed alike, modulo the alignment.
    pub address: u64,
    /// Bytes of a block.
    pub size: u64,
    /// Bytes; a power of two, at least 1.
    pub alignment: u64,
}

impl ThreadLocalTemplate {
    /// Bytes from the start of a program's own block to the thread pointer on x86-64, where the block ends at or just
    /// before it ("ELF Handling For Thread-Local Storage", variant II): the least distance that holds the block and
    /// keeps its alignment. glibc computes the same (`_dl_determine_tlsoffset`, elf/dl-tls.c, for the first module),
    /// as do musl (`static_init_tls`) and the linkers, which write it into the code.
    pub fn distance_of_program(&self) -> Option<u64> {
        let padding = self.address.wrapping_add(self.size).wrapping_neg() & (self.alignment - 1);
        self.size.checked_add(padding)
    }
}

/// What a slot holds once the loader has filled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadLocalSlotKind {
    /// The number of the module, an index into each thread's vector of blocks.
    Module,
    /// The distance from the thread pointer to `offset` in the block.
    Distance,
    /// Two words: a function and its argument. The argument is a distance as above, or the address of the module's
    /// number and an offset.
    Descriptor,
}

/// A word of a module's data that the loader fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadLocalSlot {
    /// Its address (svma).
    pub address: u64,
    /// What it holds.
    pub kind: ThreadLocalSlotKind,
    /// Byte of the module's block that it is about.
    pub offset: u64,
}

impl Module {
    /// The template of thread-local blocks, if the module has any.
    pub fn thread_local_template(&self) -> Option<ThreadLocalTemplate> {
        let segment = self.image().thread_local?;
        let alignment = segment.alignment.max(1);
        let sound = segment.memory_size > 0 && alignment.is_power_of_two();
        sound.then_some(ThreadLocalTemplate {
            address: segment.address,
            size: segment.memory_size,
            alignment,
        })
    }

    /// Whether the file is a program, not a library.
    pub fn is_program(&self) -> bool {
        let image = self.image();
        // `e_type` is at byte 16 (ELF-64 object file format, section 3); a parsed image has a whole header.
        if image.data().get(16..18) == Some(&[elf::ET_EXEC.0 as u8, 0]) {
            return true;
        }
        let dynamic = image.section_data(".dynamic");
        dynamic.chunks_exact(16).any(|entry| {
            number(entry, 0) == Some(FLAGS_1)
                && number(entry, 8).is_some_and(|flags| flags & PIE != 0)
        })
    }

    /// Slots about the module's own thread-local storage (x86-64). Symbols that another module may define instead
    /// are left out.
    pub fn thread_local_slots(&self) -> Vec<ThreadLocalSlot> {
        let image = self.image();
        let symbols = image.section_data(".dynsym");
        let mut slots = Vec::new();
        let mut left = MOST_RELOCATIONS;
        for name in [".rela.dyn", ".rela.plt", ".rela.got"] {
            for entry in image.section_data(name).chunks_exact(24).take(left) {
                left -= 1;
                slots.extend(slot(entry, symbols));
                if slots.len() >= MOST_SLOTS {
                    return slots;
                }
            }
        }
        slots
    }
}

/// The slot of one relocation (`Elf64_Rela`: offset, info, addend), if it is one of ours.
fn slot(entry: &[u8], symbols: &[u8]) -> Option<ThreadLocalSlot> {
    let info = number(entry, 8)?;
    let kind = match info as u32 {
        DTPMOD64 => ThreadLocalSlotKind::Module,
        TPOFF64 => ThreadLocalSlotKind::Distance,
        TLSDESC => ThreadLocalSlotKind::Descriptor,
        _ => return None,
    };
    let addend = number(entry, 16)?;
    let symbol = match info >> 32 {
        0 => 0,
        index => own_symbol(symbols, usize::try_from(index).ok()?)?,
    };
    Some(ThreadLocalSlot {
        address: number(entry, 0)?,
        kind,
        offset: symbol.wrapping_add(addend),
    })
}

/// Value of a symbol (`Elf64_Sym`: name, info, other, section, value, size) that is defined here and cannot be
/// another's: local, or not of default visibility.
fn own_symbol(symbols: &[u8], index: usize) -> Option<u64> {
    let at = index.checked_mul(24)?;
    let symbol = symbols.get(at..at.checked_add(24)?)?;
    let is_local = symbol[4] >> 4 == 0;
    let is_hidden = symbol[5] & 3 != 0;
    let is_defined = symbol[6..8] != [0, 0];
    (is_defined && (is_local || is_hidden)).then(|| number(symbol, 8))?
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk::<8>()
        .map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_block_is_the_last_aligned_place_that_ends_at_the_thread_pointer() {
        for alignment in [1u64, 2, 8, 16, 64, 4096] {
            for address in [0u64, 8, 0x1_2340, 0x3ff8, 0x3dd1] {
                for size in [1u64, 4, 8, 31, 64, 4097] {
                    let template = ThreadLocalTemplate {
                        address,
                        size,
                        alignment,
                    };
                    // A thread pointer is aligned to the strictest block.
                    let tp = 1u64 << 30;
                    // Step down from the first place where it fits, as a loader without arithmetic would.
                    let naive = (0..2 * alignment)
                        .map(|n| tp - size - n)
                        .find(|start| start % alignment == address % alignment);
                    assert_eq!(
                        tp - template.distance_of_program().unwrap(),
                        naive.unwrap(),
                        "{template:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn slots_of_symbols_that_others_may_define_are_left_out() {
        let rela = |kind: u32, symbol: u64, addend: u64| {
            let words = [0x4000, symbol << 32 | u64::from(kind), addend];
            words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let mut symbols = vec![0; 24];
        // Local and defined, global and default, global and hidden, undefined.
        for (info, other, section) in [(0x06, 0, 5), (0x16, 0, 5), (0x16, 2, 5), (0x16, 2, 0)] {
            symbols.extend([0, 0, 0, 0, info, other, section, 0]);
            symbols.extend(0x20u64.to_le_bytes());
            symbols.extend(8u64.to_le_bytes());
        }
        let offset = |symbol| slot(&rela(TPOFF64, symbol, 4), &symbols).map(|slot| slot.offset);
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(offset),
            [Some(4), Some(0x24), None, Some(0x24), None, None]
        );
        assert_eq!(
            slot(&rela(8, 0, 0), &symbols),
            None,
            "a relative relocation"
        );
        assert_eq!(slot(&[0; 23], &symbols), None);
    }
}
