//! Performance monitoring units as sysfs lists them, and how their events are written as numbers.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tree::Tree;
use crate::access::Cpu;

const DEVICES: &str = "sys/bus/event_source/devices";

/// One device below `/sys/bus/event_source/devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pmu {
    /// Directory name: `cpu`, `cpu_core`, `ibs_op`, `arm_spe_0`, `software`, ..
    pub name: String,
    /// `perf_event_attr.type` that addresses it.
    #[serde(rename = "type")]
    pub perf_type: Option<u32>,
    /// CPUs it exists on, when it says so: one kind of core of a hybrid, or uncore.
    pub cpus: Option<Vec<Cpu>>,
    /// `format/`: field name to bits, such as `ldlat` to `config1:0-15`.
    pub formats: BTreeMap<String, String>,
    /// `events/`, memory events only: name to terms, such as `event=0xcd,umask=0x1,ldlat=3`.
    pub memory_events: BTreeMap<String, String>,
    /// `caps/`: name to value.
    pub capabilities: BTreeMap<String, String>,
}

/// The three words of `perf_event_attr` that select an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCode {
    /// `config`.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
}

impl Pmu {
    /// Every device, by name.
    pub(super) fn probe(tree: &Tree<'_>) -> Vec<Pmu> {
        tree.names(DEVICES)
            .into_iter()
            .map(|name| {
                let path = |leaf: &str| format!("{DEVICES}/{name}/{leaf}");
                let is_memory =
                    |event: &str| matches!(event, "mem-loads" | "mem-stores" | AUXILIARY);
                Pmu {
                    perf_type: tree.number(&path("type")),
                    cpus: tree
                        .cpus(&path("cpus"))
                        .or_else(|| tree.cpus(&path("cpumask"))),
                    formats: files(tree, &path("format"), |_| true),
                    memory_events: files(tree, &path("events"), is_memory),
                    capabilities: files(tree, &path("caps"), |_| true),
                    name,
                }
            })
            .collect()
    }

    /// Whether `mem-loads` must be opened in a group behind [`AUXILIARY`]: where the kernel publishes
    /// that event (Sapphire Rapids, Alder Lake's big cores and later), opening `mem-loads` alone with a
    /// data source is ENODATA (`intel_pmu_hw_config` in arch/x86/events/intel/core.c).
    pub fn needs_auxiliary(&self) -> bool {
        self.memory_events.contains_key(AUXILIARY)
    }

    /// Writes the terms of an event into the bits its formats name; `None` for a term without a format
    /// or a value that does not fit.
    pub fn encode(&self, terms: &str) -> Option<EventCode> {
        let mut code = EventCode::default();
        for term in terms.split(',') {
            // A term without a value is a flag.
            let (name, value) = term.trim().split_once('=').unwrap_or((term.trim(), "1"));
            let value = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok()?,
                None => value.parse().ok()?,
            };
            let (word, bits) = self.formats.get(name)?.split_once(':')?;
            let word = match word {
                "config" => &mut code.config,
                "config1" => &mut code.config1,
                "config2" => &mut code.config2,
                _ => return None,
            };
            *word |= deposit(value, bits)?;
        }
        Some(code)
    }
}

/// Name of the event that must lead the group of `mem-loads` on some Intel parts.
pub const AUXILIARY: &str = "mem-loads-aux";

fn files(
    tree: &Tree<'_>,
    directory: &str,
    wanted: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    tree.names(directory)
        .into_iter()
        .filter(|name| wanted(name))
        .filter_map(|name| {
            let value = tree.line(&format!("{directory}/{name}"))?;
            Some((name, value))
        })
        .collect()
}

/// Spreads the low bits of `value` over ranges such as `0-7,32-35`, lowest first.
fn deposit(value: u64, ranges: &str) -> Option<u64> {
    let mut word = 0;
    let mut taken = 0;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if first > last || last > 63 {
            return None;
        }
        for bit in first..=last {
            // More than 64 bits of ranges have no more of the value to hold.
            word |= (value.checked_shr(taken).unwrap_or(0) & 1) << bit;
            taken += 1;
        }
    }
    (value.checked_shr(taken).unwrap_or(0) == 0).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::{super::fixture, *};

    fn pmu(fixture: &fixture::Fixture, name: &str) -> Pmu {
        let pmus = Pmu::probe(&Tree::new(fixture.root()));
        pmus.into_iter().find(|pmu| pmu.name == name).unwrap()
    }

    #[test]
    fn memory_events_get_the_raw_codes_of_the_intel_driver() {
        let pmu = pmu(&fixture::intel_sapphire_rapids(), "cpu");
        let code = |event: &str| pmu.encode(&pmu.memory_events[event]).unwrap();
        assert_eq!(
            (code("mem-loads").config, code("mem-loads").config1),
            (0x1cd, 3)
        );
        assert_eq!(code("mem-stores").config, 0x2cd);
        assert_eq!(code("mem-loads-aux").config, 0x8203);
        assert!(pmu.needs_auxiliary());
    }

    #[test]
    fn only_the_big_cores_of_a_hybrid_need_the_auxiliary_event() {
        let machine = fixture::intel_hybrid();
        assert!(pmu(&machine, "cpu_core").needs_auxiliary());
        assert!(!pmu(&machine, "cpu_atom").needs_auxiliary());
        assert_eq!(pmu(&machine, "cpu_atom").cpus, Some(vec![Cpu(2), Cpu(3)]));
    }

    #[test]
    fn bits_are_deposited_range_by_range_and_overflow_is_refused() {
        assert_eq!(deposit(0x1ff, "0-7,35"), Some(0x8_0000_00ff));
        assert_eq!(deposit(1, "63"), Some(1 << 63));
        assert_eq!(deposit(0x100, "0-7"), None);
        assert_eq!(deposit(u64::MAX, "0-63,0-63"), Some(u64::MAX));
        for garbage in ["", "8-1", "64", "0-99999999999", "x"] {
            assert_eq!(deposit(1, garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn an_event_with_an_unknown_term_has_no_code() {
        let pmu = pmu(&fixture::intel_sapphire_rapids(), "cpu");
        assert_eq!(pmu.encode("event=0xcd,colour=1"), None);
        assert_eq!(pmu.encode("event=0xcdcd"), None);
        assert_eq!(pmu.encode(""), None);
    }
}
