//! Damaged and hostile files: no answer may be right, but none may panic, hang or eat memory.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use symbolizer::{Module, NoDebugFiles};

use crate::{
    shelf::Shelf,
    toolchain::{Built, build},
};

/// Far more than any of the questions below needs; a loop without end needs more.
const LONGEST: Duration = Duration::from_secs(20);

/// xorshift64*: the same mutations on every run.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

/// Asks everything there is to ask; returns how many answers there were.
fn ask_everything(bytes: Vec<u8>, files: Shelf, addresses: &[u64]) -> usize {
    let Ok(module) = Module::parse(Arc::new(bytes), Box::new(files)) else {
        return 0;
    };
    let mut answers = 0;
    for text in [
        "everything.word.half[1]",
        "table.slots[2]",
        "ns::stats.recent[3]",
        "own.x",
    ] {
        answers += module.variable(text).map_or(0, |found| found.name.len());
        answers += module.similar_variables(text, 3).len();
    }
    for &address in addresses {
        answers += module.frames(address).frames.len();
        answers += usize::from(module.function(address).is_some());
        answers += usize::from(module.language(address).is_some());
        answers += usize::from(module.svma_of_offset(address).is_some());
        answers += module
            .code(address, address.wrapping_add(16))
            .map_or(0, <[u8]>::len);
        answers += usize::from(module.section(address).is_some());
        let objects = [module.object(address), module.thread_local_object(address)];
        for object in objects.into_iter().flatten() {
            answers += object.name.len();
            let Some(ty) = object.ty else { continue };
            answers += module.type_tree(ty).map_or(0, |tree| tree.parts.len());
            for offset in [0, 1, 17, 40, 100, 1 << 40, u64::MAX] {
                for size in [0, 1, 8, 64, u64::MAX] {
                    answers += module
                        .field(ty, offset, size)
                        .map_or(0, |field| field.path.len());
                }
            }
            if let Ok(layout) = module.layout(ty) {
                answers += layout.members.len();
                let inner = layout.members.iter().map(|member| member.ty);
                for ty in inner.chain(layout.element.map(|element| element.ty)) {
                    answers += module.layout(ty).map_or(0, |layout| layout.members.len());
                }
            }
        }
    }
    answers
}

/// As [`ask_everything`], but a hang is a failure with the mutation's name.
fn must_answer(label: &str, bytes: Vec<u8>, addresses: &Arc<[u64]>) -> usize {
    must_answer_with(label, bytes, Shelf::default(), addresses)
}

/// As [`must_answer`], for a program with further files.
pub(crate) fn must_answer_with(
    label: &str,
    bytes: Vec<u8>,
    files: Shelf,
    addresses: &Arc<[u64]>,
) -> usize {
    let (done, wait) = mpsc::channel();
    let addresses = Arc::clone(addresses);
    let worker = thread::Builder::new().stack_size(1 << 20);
    let worker = worker
        .spawn(move || done.send(ask_everything(bytes, files, &addresses)))
        .unwrap();
    match wait.recv_timeout(LONGEST) {
        Ok(answers) => answers,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{label}: no answer in {LONGEST:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            panic!("{label}: panicked: {:?}", worker.join().map(|_| ()))
        }
    }
}

pub(crate) fn addresses(built: &Built) -> Arc<[u64]> {
    let mut addresses: Vec<u64> = built
        .symbols()
        .into_iter()
        .filter(|(_, address, size)| *address > 0 && *size > 0)
        .flat_map(|(_, address, size)| [address, address + size / 2])
        .collect();
    addresses.extend([0, 8, u64::MAX, 1 << 63]);
    addresses.into()
}

/// The bytes of a section in the file.
pub(crate) fn section(bytes: &[u8], name: &str) -> std::ops::Range<usize> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(bytes).unwrap();
    let (start, size) = file
        .section_by_name(name)
        .and_then(|found| found.file_range())
        .unwrap();
    start as usize..(start + size) as usize
}

fn fixtures() -> Vec<Built> {
    ["-gdwarf-4", "-gdwarf-5"]
        .into_iter()
        .flat_map(|version| {
            let c = build(
                "cc",
                "data.c",
                &["-g", "-O2", version, "-fdebug-types-section"],
            );
            [
                c,
                build("c++", "data.cpp", &["-g", "-Os", version, "-std=c++17"]),
            ]
        })
        .flatten()
        .collect()
}

#[test]
fn two_thousand_flipped_bytes_neither_panic_nor_hang() {
    let mut numbers = Numbers(0x5eed);
    let mut survivors = 0;
    let fixtures = fixtures();
    for built in &fixtures {
        let bytes = built.bytes();
        let addresses = addresses(built);
        let untouched = must_answer("untouched", bytes.clone(), &addresses);
        assert!(untouched > 1000, "the file itself must answer: {untouched}");
        for round in 0..2000 / fixtures.len() {
            let mut mutated = bytes.clone();
            let names = [
                ".debug_info",
                ".debug_abbrev",
                ".debug_line",
                ".symtab",
                ".eh_frame",
            ];
            // The small structures that everything depends on get half of the flips.
            let range = match round % 10 {
                place @ 0..5 => section(&bytes, names[place]),
                5 => 0..0x400.min(bytes.len()),
                _ => 0..bytes.len(),
            };
            let at = range.start + numbers.below(range.len());
            let value = [
                0,
                0xff,
                0x7f,
                0x80,
                mutated[at] ^ 1,
                numbers.below(256) as u8,
            ];
            mutated[at] = value[numbers.below(value.len())];
            let label = format!("round {round}: byte {at:#x} = {:#x}", mutated[at]);
            survivors += usize::from(must_answer(&label, mutated, &addresses) > 0);
        }
    }
    assert!(
        survivors > 1000,
        "one wrong byte rarely matters: {survivors}"
    );
}

#[test]
fn a_file_cut_off_anywhere_neither_panics_nor_hangs() {
    for built in fixtures() {
        let bytes = built.bytes();
        let addresses = addresses(&built);
        for round in 0..100 {
            let end = bytes.len() * round / 100;
            must_answer(
                &format!("cut at {end:#x}"),
                bytes[..end].to_vec(),
                &addresses,
            );
        }
        for end in 0..0x80 {
            must_answer(
                &format!("cut at {end:#x}"),
                bytes[..end].to_vec(),
                &addresses,
            );
        }
    }
}

#[test]
fn a_segment_that_goes_beyond_the_last_address_does_not_go_on_at_0() {
    let built = build("cc", "data.c", &["-g"]).unwrap();
    let mut bytes = built.bytes();
    let start = usize::from(u16::from_le_bytes([bytes[32], bytes[33]]));
    let count = usize::from(u16::from_le_bytes([bytes[56], bytes[57]]));
    // p_vaddr and p_memsz of each program header.
    for header in (0..count).map(|index| start + 56 * index) {
        bytes[header + 16..][..8].copy_from_slice(&(u64::MAX - 0xff).to_le_bytes());
        bytes[header + 40..][..8].copy_from_slice(&0x10000u64.to_le_bytes());
    }
    let module = crate::toolchain::parse(bytes);
    assert!(module.code(u64::MAX - 0xff, u64::MAX - 0xf0).is_some());
    assert!(module.code(0x100, 0x110).is_none());
    assert!(module.code(0x100, u64::MAX).is_none());
}

#[test]
fn runs_of_damage_neither_panic_nor_hang() {
    let mut numbers = Numbers(0xbad);
    for built in fixtures() {
        let bytes = built.bytes();
        let addresses = addresses(&built);
        for round in 0..100 {
            let mut mutated = bytes.clone();
            let range = section(
                &bytes,
                if round % 2 == 0 {
                    ".debug_info"
                } else {
                    ".debug_abbrev"
                },
            );
            for _ in 0..8 {
                let at = range.start + numbers.below(range.len());
                let length = numbers.below(24).min(range.end - at);
                let from = range.start + numbers.below(range.len() - length);
                // Pieces of valid structure in the wrong place reach further than noise.
                mutated.copy_within(from..from + length, at);
            }
            must_answer(&format!("round {round}"), mutated, &addresses);
        }
    }
}

#[test]
fn other_machines_and_other_files_are_refused_with_the_reason() {
    let built = build("cc", "data.c", &["-g"]).unwrap();
    let refusal = |change: fn(&mut Vec<u8>)| {
        let mut bytes = built.bytes();
        change(&mut bytes);
        match Module::parse(Arc::new(bytes), Box::new(NoDebugFiles)) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(refusal(|_| {}), "accepted");
    assert!(refusal(|bytes| bytes[0] = b'M').starts_with("not an ELF file"));
    assert!(refusal(Vec::clear).starts_with("not an ELF file"));
    assert!(refusal(|bytes| bytes[4] = 1).contains("not a 64-bit file"));
    assert!(refusal(|bytes| bytes[5] = 2).contains("not little-endian"));
    assert!(refusal(|bytes| bytes[18] = 243).contains("machine 243"));
    assert!(refusal(|bytes| bytes.truncate(0x50)).starts_with("damaged ELF file"));
}
