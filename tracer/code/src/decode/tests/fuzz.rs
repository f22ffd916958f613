//! Any bytes, any registers: no panic, and nothing told that is not in the function.

use proptest::prelude::{ProptestConfig, any, prop, prop_assert, proptest};

use crate::{
    access::Basis,
    decode::{FunctionCode, Registers, Stall},
};

/// Bytes that often decode to jumps, calls and string instructions.
const SPICE: [u8; 16] = [
    0x74, 0x75, 0xeb, 0xe8, 0xf3, 0xf0, 0x48, 0x8b, 0x89, 0x01, 0x83, 0xff, 0x0f, 0xa4, 0xc3, 0xab,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn any_bytes_are_survived_and_told_instructions_are_inside(
        start in any::<u64>(),
        bias in any::<u64>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        spiced in prop::collection::vec(any::<(u8, u8)>(), 0..100),
        gpr in any::<[u64; 16]>(),
        segment in any::<Option<u64>>(),
        seen in 0u64..210,
    ) {
        let mut bytes = bytes;
        for (at, which) in spiced {
            if let Some(byte) = bytes.get_mut(usize::from(at)) {
                *byte = SPICE[usize::from(which % 16)];
            }
        }
        let code = FunctionCode::decode(start, &bytes);
        let mut out = Vec::new();
        for offset in 0..bytes.len() as u64 + 2 {
            let ip = start.wrapping_add(bias).wrapping_add(offset);
            let registers = Registers { gpr, ip, fs_base: segment, gs_base: None };
            out.clear();
            let harvest = code.harvest(&registers, bias, &mut out);
            let stalled = out.iter().filter(|touch| touch.basis == Basis::Stalled).count();
            prop_assert!(stalled == usize::from(harvest.stall == Stall::Attributed));
            for touch in &out {
                let inside = touch.ip.wrapping_sub(bias).wrapping_sub(start);
                prop_assert!(inside < bytes.len() as u64);
                prop_assert!((1..=64).contains(&touch.size));
            }
            let starts = [ip, start.wrapping_add(bias).wrapping_add(seen)];
            if let Some(pieces) = FunctionCode::decode_pieces(start.wrapping_add(bias), &bytes, &starts) {
                out.clear();
                pieces.harvest(&registers, 0, &mut out);
                for touch in &out {
                    let inside = touch.ip.wrapping_sub(bias).wrapping_sub(start);
                    prop_assert!(inside < bytes.len() as u64);
                }
            }
        }
    }
}
