//! Barriers of A64: what waits until the stores before it can be seen (Arm ARM DDI 0487, C6.2 and B2.3).
//!
//! From the encodings alone; no Arm processor was asked, and no source decodes samples of aarch64 yet.

use super::bits;

/// Whether an instruction is done, or its own store is, only once the stores before it are visible to others: `dmb` and
/// `dsb` of stores or of all accesses, and what releases. Whoever stands there waits for the lines of these stores. What
/// only acquires or only orders loads does not: `dmb ishld`, `ldar`, `ldaxr`, `isb`.
pub fn waits_for_stores(word: u32) -> bool {
    is_barrier(word) || releases(word)
}

/// `dsb` and `dmb`: `1101010100 0 00 011 0011 CRm 1 0x 11111`, and `dsb` with nXS.
fn is_barrier(word: u32) -> bool {
    // The lower half of CRm says which accesses: 01 loads, 10 stores, 11 all.
    let of_stores = bits(word, 9, 1) == 1;
    let plain = matches!(word & 0xffff_f0ff, 0xd503_309f | 0xd503_30bf);
    (plain && of_stores) || word & 0xffff_f3ff == 0xd503_323f
}

/// Stores and atomics with release semantics.
fn releases(word: u32) -> bool {
    let bit = |n| bits(word, n, 1) == 1;
    match bits(word, 24, 6) {
        // Exclusives, `stlr` and its kin, compare and swap: `size 001000 o2 L o1 Rs o0 Rt2 Rn Rt`.
        0b00_1000 => match (bit(23), bit(22), bit(21)) {
            // `stlr`, and `stllr`, which has o0 clear.
            (true, false, false) => true,
            // `cas`; `casp`, which has the highest bit clear; the other pairs load where L is set.
            (true, _, true) => bit(15),
            (false, load, true) => bit(15) && (!bit(31) || !load),
            // `stlxr`, as against `stxr`; what else loads.
            (false, load, false) => bit(15) && !load,
            (true, true, false) => false,
        },
        // `stlur`, and the 128-bit atomics: `size 011001 opc ...`.
        0b01_1001 if bit(21) => bits(word, 30, 2) == 0 && bit(22),
        0b01_1001 => bits(word, 10, 2) == 0 && bits(word, 22, 2) == 0,
        // The atomics of LSE: `size 111000 A R 1 Rs o3 opc 00 Rn Rt`.
        0b11_1000 => bit(21) && bits(word, 10, 2) == 0 && bits(word, 12, 4) <= 0b1000 && bit(22),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Words as llvm-mc 14 encodes them.
    const WAIT: &[(&str, u32)] = &[
        ("dmb ish", 0xd503_3bbf),
        ("dmb sy", 0xd503_3fbf),
        ("dmb osh", 0xd503_33bf),
        ("dmb ishst", 0xd503_3abf),
        ("dsb ish", 0xd503_3b9f),
        ("dsb ishst", 0xd503_3a9f),
        ("dsb sy", 0xd503_3f9f),
        ("dsb nshst", 0xd503_369f),
        ("stlr w1, [x0]", 0x889f_fc01),
        ("stlr x1, [x0]", 0xc89f_fc01),
        ("stlrb w1, [x0]", 0x089f_fc01),
        ("stllr w1, [x0]", 0x889f_7c01),
        ("stlxr w2, w1, [x0]", 0x8802_fc01),
        ("stlxp w2, x1, x3, [x0]", 0xc822_8c01),
        ("stlur w1, [x0, #4]", 0x9900_4001),
        ("ldaddl w1, w2, [x0]", 0xb861_0002),
        ("ldaddal x1, x2, [x0]", 0xf8e1_0002),
        ("staddl w1, [x0]", 0xb861_001f),
        ("swpl w1, w2, [x0]", 0xb861_8002),
        ("swpal w1, w2, [x0]", 0xb8e1_8002),
        ("casl w1, w2, [x0]", 0x88a1_fc02),
        ("casal x1, x2, [x0]", 0xc8e1_fc02),
        ("caspl x2, x3, x4, x5, [x0]", 0x4822_fc04),
        ("caspal x2, x3, x4, x5, [x0]", 0x4862_fc04),
    ];
    const GO_ON: &[(&str, u32)] = &[
        ("dmb ishld", 0xd503_39bf),
        ("dsb ishld", 0xd503_399f),
        ("isb", 0xd503_3fdf),
        ("clrex", 0xd503_3f5f),
        ("nop", 0xd503_201f),
        ("stxr w2, w1, [x0]", 0x8802_7c01),
        ("stxp w2, x1, x3, [x0]", 0xc822_0c01),
        ("ldaxr w1, [x0]", 0x885f_fc01),
        ("ldaxp x1, x3, [x0]", 0xc87f_8c01),
        ("ldxr w1, [x0]", 0x885f_7c01),
        ("ldar w1, [x0]", 0x88df_fc01),
        ("ldlar w1, [x0]", 0x88df_7c01),
        ("ldapur w1, [x0, #4]", 0x9940_4001),
        ("ldapr w1, [x0]", 0xb8bf_c001),
        ("ldadd w1, w2, [x0]", 0xb821_0002),
        ("ldadda w1, w2, [x0]", 0xb8a1_0002),
        ("stadd w1, [x0]", 0xb821_001f),
        ("swp w1, w2, [x0]", 0xb821_8002),
        ("cas w1, w2, [x0]", 0x88a1_7c02),
        ("casa w1, w2, [x0]", 0x88e1_7c02),
        ("casp x2, x3, x4, x5, [x0]", 0x4822_7c04),
        ("str x1, [x0]", 0xf900_0001),
        ("ldr x1, [x0]", 0xf940_0001),
        ("stp x1, x2, [x0]", 0xa900_0801),
        ("ldp x1, x2, [x0]", 0xa940_0801),
        ("add x0, x1, x2", 0x8b02_0020),
        ("ld1 {v0.16b}, [x0]", 0x4c40_7000),
    ];

    #[test]
    fn what_releases_or_orders_stores_waits_for_them_and_nothing_else_does() {
        for (text, word) in WAIT {
            assert!(waits_for_stores(*word), "{text}");
        }
        for (text, word) in GO_ON {
            assert!(!waits_for_stores(*word), "{text}");
        }
    }
}
