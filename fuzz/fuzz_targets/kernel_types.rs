//! Any bytes as the kernel's types and its list of symbols.
#![no_main]

use cohtrace::machine::{
    btf::{Btf, KernelTypes, MemoryOffsets, TaskOffsets},
    kallsyms::Kallsyms,
};
use libfuzzer_sys::fuzz_target;

/// Types that are asked about.
const MOST: u32 = 64;

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk::<2>() else {
        return;
    };
    let (types, symbols) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let symbols = Kallsyms::parse(&String::from_utf8_lossy(symbols));
    let addresses = [0, 0xffff_ffff_8100_0000, 0xffff_ffff_8200_0040, u64::MAX];
    for address in addresses {
        if let Some((start, end, _)) = symbols.function(address) {
            assert!((start..end).contains(&address));
        }
        if let Some(variable) = symbols.variable(address) {
            assert!(variable.range.contains(&address));
        }
        let _ = symbols.module_of_function(address);
    }
    let _ = symbols.shared_names();
    if let Ok(btf) = Btf::parse(types) {
        let _ = (TaskOffsets::of(&btf), MemoryOffsets::of(&btf));
        let _ = (btf.sections(), btf.functions());
        for id in 0..MOST {
            let _ = (btf.type_name(id), btf.size(id), btf.elements(id));
            let _ = (btf.members(id), btf.parameters(id), btf.result(id));
            for offset in [0, 8, u64::MAX] {
                let _ = (btf.pointer_at(id, offset), btf.field(id, offset, 8));
                let _ = btf.is_whole(id, offset, 8);
            }
        }
    }
    if let Ok(types) = KernelTypes::new(types.to_vec(), &symbols) {
        for address in addresses {
            let _ = (types.variable(address), types.of_processor(address));
        }
        let _ = (types.named_of_processor("a"), types.function("worker"));
    }
});
