//! A data source in perf's words: the last column of `perf script -F data_src`, as perf 6.1 prints it
//! (tools/perf/util/mem-events.c, `perf_script__meminfo_scnprintf`).
//!
//! Differences: the level numbers 5 to 8, which perf 6.1 does not know, have the names that later ones give them,
//! and hops without a meaning are left out where perf prints a null pointer.

use std::fmt;

use super::DataSource;

const LEVELS: [&str; 14] = [
    "N/A",
    "HIT",
    "MISS",
    "L1",
    "LFB/MAB",
    "L2",
    "L3",
    "Local RAM",
    "Remote RAM (1 hop)",
    "Remote RAM (2 hops)",
    "Remote Cache (1 hop)",
    "Remote Cache (2 hops)",
    "I/O",
    "Uncached",
];

const NUMBERS: [&str; 16] = [
    "",
    "L1",
    "L2",
    "L3",
    "L4",
    "L2 MHB",
    "Memory-side Cache",
    "L0",
    "Uncached",
    "CXL",
    "I/O",
    "Any cache",
    "LFB/MAB",
    "RAM",
    "PMEM",
    "N/A",
];

/// Printed behind "Remote": the field tells how remote.
const HOPS: [&str; 5] = [
    "",
    "core, same node",
    "node, same socket",
    "socket, same board",
    "board",
];

const SNOOPS: [&str; 5] = ["N/A", "None", "Hit", "Miss", "HitM"];
const SNOOPS_EXTENDED: [&str; 2] = ["Fwd", "Peer"];
const TLBS: [&str; 7] = ["N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"];

/// Bits 1 and 2 of a level or TLB: hit and miss, which are said last.
const HIT_OR_MISS: u64 = 6;

fn set(bits: u64, names: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    let named = names.iter().enumerate();
    named.filter_map(move |(bit, name)| (bits >> bit & 1 == 1).then_some(*name))
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "N/A".to_owned()
    } else {
        names.join(" or ")
    }
}

fn hit_or_miss(bits: u64) -> &'static str {
    ["", " hit", " miss", " hit miss"][(bits >> 1 & 3) as usize]
}

impl DataSource {
    /// `LOAD`, `STORE`, `PFETCH`, `EXEC`, `N/A`, `No`: of several the first but for `N/A`, which rules all out.
    pub fn op_words(self) -> &'static str {
        match self.op_bits() {
            op if op & 1 != 0 => "N/A",
            op if op & 2 != 0 => "LOAD",
            op if op & 4 != 0 => "STORE",
            op if op & 8 != 0 => "PFETCH",
            op if op & 16 != 0 => "EXEC",
            _ => "No",
        }
    }

    /// `L3 or L3 hit`: what the older bits say and what the level number says.
    pub fn level_words(self) -> String {
        let bits = self.level_bits();
        let mut near = String::new();
        if self.remote() {
            near.push_str("Remote ");
        }
        let hops = HOPS.get(self.hops() as usize).unwrap_or(&"");
        let mut levels: Vec<&str> = if self.hops() == 0 {
            set(bits & !HIT_OR_MISS, &LEVELS).collect()
        } else {
            if !hops.is_empty() {
                near.push_str(hops);
                near.push(' ');
            }
            Vec::new()
        };
        let number = NUMBERS[self.level_number() as usize];
        if !number.is_empty() {
            levels.push(number);
        }
        let levels = if levels.is_empty() && !near.is_empty() {
            String::new()
        } else {
            joined(levels.into_iter())
        };
        format!("{near}{levels}{}", hit_or_miss(bits))
    }

    /// `HitM`, `None or Peer`.
    pub fn snoop_words(self) -> String {
        let snoops = set(self.snoop_bits(), &SNOOPS);
        joined(snoops.chain(set(self.snoop_extended_bits(), &SNOOPS_EXTENDED)))
    }

    /// `L1 or L2 hit`.
    pub fn tlb_words(self) -> String {
        let bits = self.tlb_bits();
        joined(set(bits & !HIT_OR_MISS, &TLBS)) + hit_or_miss(bits)
    }

    /// `Yes`, `No`, `N/A`.
    pub fn lock_words(self) -> &'static str {
        match self.lock_bits() {
            bits if bits & 1 != 0 => "N/A",
            0 => "No",
            _ => "Yes",
        }
    }

    /// Why a load was blocked: `Data`, `Addr`, `Data Addr`, `N/A`.
    pub fn blocked_words(self) -> &'static str {
        match self.blocked_bits() {
            2 => "Data",
            4 => "Addr",
            6 => "Data Addr",
            _ => "N/A",
        }
    }
}

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "|OP {}|LVL {}|SNP {}|TLB {}|LCK {}|BLK  {}",
            self.op_words(),
            self.level_words(),
            self.snoop_words(),
            self.tlb_words(),
            self.lock_words(),
            self.blocked_words()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printed by perf 6.1.192 (`perf script -F data_src`) for these words in an otherwise real file. The first
    /// seven are from real machines; the others set one field after the other.
    const PRINTED_BY_PERF: &str = include_str!("words_of_perf.txt");

    #[test]
    fn words_are_those_that_perf_prints() {
        let mut rows = 0;
        for row in PRINTED_BY_PERF.lines() {
            let (raw, words) = row.split_once(' ').expect("a word and its words");
            let raw = u64::from_str_radix(raw, 16).expect("hex");
            let source = DataSource::new(raw).expect("not 0");
            assert_eq!(source.to_string(), words, "{raw:#x}");
            rows += 1;
        }
        assert!(rows > 100);
    }

    #[test]
    fn every_word_has_words() {
        for shift in 0..64 {
            for bits in [1u64, 3, 7, 0x1f] {
                let source = DataSource::new(bits << shift).expect("not 0");
                assert!(source.to_string().starts_with("|OP "));
            }
        }
    }

    #[test]
    fn newer_levels_have_their_names() {
        for (number, name) in [(5u64, "L2 MHB"), (6, "Memory-side Cache"), (7, "L0")] {
            let source = DataSource::new(0x1_0000_0042 & !(0xf << 33) | number << 33);
            let words = source.expect("not 0").level_words();
            assert_eq!(words, format!("{name} hit"));
        }
    }
}
