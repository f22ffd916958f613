//! Arbitrary code and registers: no panic, and no access that misses every watched word.

use proptest::prelude::*;

use super::{Memory, START, resolve, word};
use crate::decode::{
    Registers,
    trap::{TrapCode, tests::Scene},
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_code_resolves_to_accesses_of_the_words_or_to_a_reason(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        offset in 0u64..130,
        gpr in prop::array::uniform16(prop_oneof![
            Just(0x7000_0000u64),
            0x6fff_ff80u64..0x7000_0080,
            any::<u64>(),
        ]),
        segment in prop::option::of(any::<u64>()),
        at in 0x6fff_ff80u64..0x7000_0080,
        log in 0u32..4,
        second in prop::option::of(any::<bool>()),
        top in prop::option::of(START..START + 130),
        (nameless, kernel, packed) in any::<(bool, bool, bool)>(),
    ) {
        let len = 1u64 << log;
        let addr = at & !(len - 1);
        let mut words = vec![word(addr, len as u8)];
        let mut alone = Vec::new();
        let next = word(addr.wrapping_add(len), len as u8);
        match second {
            Some(true) => words.push(next),
            Some(false) => alone.push(next),
            None => {}
        }
        let scene = Scene {
            bytes: bytes.clone(),
            registers: Registers { gpr, ip: START + offset, fs_base: segment, gs_base: segment },
            words,
            alone,
            packed,
            stack_top: top,
            kernel,
        };
        let mut memory = Memory { nameless, ..Memory::default() }.with(START, &bytes);
        let mut code = TrapCode::default();
        let first = resolve(&mut code, &mut memory, &scene);
        prop_assert_eq!(&first, &resolve(&mut code, &mut memory, &scene));
        for t in first.into_iter().flatten() {
            prop_assert!((1..=64).contains(&t.size));
            prop_assert!(t.within == 0 || u16::from(t.within) >= t.size, "{:?}", t);
            prop_assert!(scene.words.iter().any(|word| t.touches(word)), "{:?}", t);
        }
    }
}
