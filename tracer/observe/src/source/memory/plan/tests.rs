//! Plans for machines of several generations, whose sysfs is in `trees.txt`. The expected codes are those of the
//! kernel's drivers, written down as numbers.

use super::*;
use crate::machine::fixture;

/// The machine of that name in the manifest.
fn machine(name: &str) -> Machine {
    let fixture = fixture::kvm_amd();
    let manifest = include_str!("trees.txt");
    let section = manifest
        .split("\n[")
        .find_map(|section| section.strip_prefix(name)?.strip_prefix("]\n"))
        .unwrap_or_else(|| panic!("no tree {name}"));
    for line in section.lines().filter(|line| !line.is_empty()) {
        let (path, value) = line.split_once(" = ").unwrap();
        match path {
            "maker" => {
                let cpuinfo = format!("processor\t: 0\nvendor_id\t: {value}\n");
                fixture.write("proc/cpuinfo", cpuinfo);
            }
            "online" => fixture.write("sys/devices/system/cpu/online", format!("{value}\n")),
            file => {
                let path = format!("sys/bus/event_source/devices/{file}");
                fixture.write(&path, format!("{value}\n"));
            }
        }
    }
    Machine::probe(fixture.root())
}

const STANDARD: MemoryOptions = MemoryOptions {
    ldlat: None,
    l3_misses_only: false,
};

fn cpus(numbers: std::ops::RangeInclusive<u32>) -> Vec<Cpu> {
    numbers.map(Cpu).collect()
}

/// PMU type, config, config1, and the leader's config, of each event by name and first CPU.
fn codes(name: &str) -> Vec<(String, u32, u32, u64, u64, Option<u64>)> {
    let planned = pebs(&machine(name), 1000, STANDARD).unwrap();
    planned
        .into_iter()
        .map(|event| {
            let Attributes {
                kind,
                config,
                config1,
                ..
            } = event.attributes;
            let leader = event.leader.map(|leader| leader.config);
            (event.name, event.cpus[0].0, kind, config, config1, leader)
        })
        .collect()
}

#[test]
fn each_intel_generation_gets_its_own_codes() {
    let loads = |config, leader| ("mem-loads".to_owned(), 0, 4, config, 30, leader);
    let stores = |config| ("mem-stores".to_owned(), 0, 4, config, 0, None);
    for (name, expected) in [
        ("nehalem", vec![loads(0x100b, None)]),
        ("ivy bridge", vec![loads(0x1cd, None), stores(0x2cd)]),
        ("skylake", vec![loads(0x1cd, None), stores(0x82d0)]),
        ("ice lake", vec![loads(0x1cd, None), stores(0x82d0)]),
        (
            "sapphire rapids",
            vec![loads(0x1cd, Some(0x8203)), stores(0x2cd)],
        ),
        ("sierra forest", vec![loads(0x5d0, None), stores(0x6d0)]),
    ] {
        assert_eq!(codes(name), expected, "{name}");
    }
}

#[test]
fn each_kind_of_core_of_a_hybrid_has_its_events_on_its_online_cpus() {
    let planned = pebs(&machine("alder lake"), 1000, STANDARD).unwrap();
    let got: Vec<_> = planned
        .iter()
        .map(|event| {
            let leader = event.leader.map(|leader| (leader.kind, leader.config));
            let own = (event.attributes.kind, event.attributes.config);
            (event.pmu.as_str(), event.cpus.clone(), own, leader)
        })
        .collect();
    // CPUs 6 and 7 are offline.
    assert_eq!(
        got,
        [
            ("cpu_atom", cpus(4..=5), (10, 0x5d0), None),
            ("cpu_atom", cpus(4..=5), (10, 0x6d0), None),
            ("cpu_core", cpus(0..=3), (4, 0x1cd), Some((4, 0x8203))),
            ("cpu_core", cpus(0..=3), (4, 0x2cd), None),
        ]
    );
}

#[test]
fn intels_events_are_adaptive_one_record_at_a_time_and_not_of_guests() {
    let planned = pebs(&machine("sapphire rapids"), 997, STANDARD).unwrap();
    let loads = &planned[0];
    assert_eq!(loads.attributes.sample_period, 997);
    // disabled, freq, exclude_guest: bits 0, 10, 20 of the header's bit-field.
    assert_eq!(loads.attributes.flags, 1 | 1 << 10 | 1 << 20);
    assert_eq!(loads.attributes.wakeup_watermark, 1);
    // IP, ADDR, PERIOD, WEIGHT, DATA_SRC, PHYS_ADDR.
    assert_eq!(loads.attributes.sample_type, 0x8_c109);
    assert_eq!(loads.precise, [3, 2, 1]);
    let leader = loads.leader.unwrap();
    assert_eq!((leader.sample_period, leader.sample_type), (0, 0));
    assert_eq!(leader.flags, 1 | 1 << 20);
    let user_only = loads.user_only.unwrap();
    assert_eq!(user_only.flags, loads.attributes.flags | 1 << 5);
}

#[test]
fn a_frequency_above_the_kernels_limit_is_lowered_to_it() {
    let mut machine = machine("skylake");
    machine.kernel.perf_event_max_sample_rate = Some(25_000);
    let period = |machine: &Machine| {
        let planned = pebs(machine, 50_000, STANDARD).unwrap();
        planned[0].attributes.sample_period
    };
    assert_eq!(period(&machine), 25_000);
    machine.kernel.perf_event_max_sample_rate = None;
    assert_eq!(period(&machine), 50_000);
}

#[test]
fn the_threshold_is_what_was_asked_for_and_stores_have_none() {
    let options = MemoryOptions {
        ldlat: Some(100),
        ..STANDARD
    };
    let planned = pebs(&machine("skylake"), 1000, options).unwrap();
    assert_eq!(planned[0].attributes.config1, 100);
    assert_eq!(planned[1].attributes.config1, 0);
    let least = MemoryOptions {
        ldlat: Some(2),
        ..STANDARD
    };
    let error = pebs(&machine("skylake"), 1000, least).unwrap_err();
    assert!(
        error.to_string().contains("--ldlat 2: this PMU takes 3 to"),
        "{error}"
    );
}

/// The only event's attributes.
fn ibs_attributes(name: &str, options: MemoryOptions) -> Result<Attributes, String> {
    let planned = ibs(&machine(name), 1000, options).map_err(|error| error.to_string())?;
    let [event] = planned.as_slice() else {
        panic!("{planned:?}");
    };
    assert_eq!((event.cpus.clone(), event.leader), (cpus(0..=3), None));
    assert_eq!(event.precise, [0]);
    Ok(event.attributes)
}

#[test]
fn ibs_counts_operations_by_multiples_of_16_and_excludes_nothing() {
    for (name, kind) in [("zen 2", 9), ("zen 4", 11), ("zen 5", 11)] {
        let attributes = ibs_attributes(name, STANDARD).unwrap();
        assert_eq!(attributes.kind, kind, "{name}");
        assert_eq!(attributes.config, 1 << 19, "{name}");
        assert_eq!((attributes.config1, attributes.config2), (0, 0), "{name}");
        assert_eq!(attributes.sample_period, 4_000_000, "{name}");
        assert_eq!(attributes.flags, 1, "{name}: disabled, nothing else");
    }
    for frequency in [1, 7, 997, 1000, 49_999, 50_000] {
        let planned = ibs(&machine("zen 4"), frequency, STANDARD).unwrap();
        let period = planned[0].attributes.sample_period;
        assert!(
            period.is_multiple_of(16) && period >= 10_000,
            "{frequency}: {period}"
        );
    }
}

#[test]
fn options_of_ibs_need_what_offers_them() {
    let misses = MemoryOptions {
        l3_misses_only: true,
        ..STANDARD
    };
    let slow = |cycles| MemoryOptions {
        ldlat: Some(cycles),
        ..STANDARD
    };
    assert_eq!(
        ibs_attributes("zen 4", misses).unwrap().config,
        1 << 19 | 1 << 16
    );
    let refused = ibs_attributes("zen 2", misses).unwrap_err();
    assert!(refused.contains("Zen 4 and Linux 5.19"), "{refused}");
    assert_eq!(ibs_attributes("zen 5", slow(128)).unwrap().config1, 128);
    for cycles in [127, 2049] {
        let refused = ibs_attributes("zen 5", slow(cycles)).unwrap_err();
        assert!(refused.contains("takes 128 to 2048 cycles"), "{refused}");
    }
    let refused = ibs_attributes("zen 4", slow(128)).unwrap_err();
    assert!(refused.contains("Zen 5 and Linux 6.15"), "{refused}");
    let refused = pebs(&machine("skylake"), 1000, misses).unwrap_err();
    assert!(refused.to_string().contains("it is AMD's"), "{refused}");
}

#[test]
fn kernel_mode_can_be_left_out_of_ibs_only_by_its_software_filter() {
    let user_only = |name| ibs(&machine(name), 1000, STANDARD).unwrap()[0].user_only;
    assert_eq!(user_only("zen 2"), None);
    assert_eq!(user_only("zen 4"), None);
    let attributes = user_only("zen 5").unwrap();
    assert_eq!((attributes.config2, attributes.flags), (1, 1 | 1 << 5));
}

#[test]
fn a_machine_without_says_why_and_what_works() {
    let sentence = |plan: Result<_, NoPlan>| plan.map(|_: Vec<_>| ()).unwrap_err().to_string();
    let guest = machine("guest");
    let text = sentence(ibs(&guest, 1000, STANDARD));
    assert!(text.starts_with("no AMD IBS: "), "{text}");
    assert!(text.ends_with("sample by `--source timer`"), "{text}");
    let text = sentence(pebs(&machine("zen 4"), 1000, STANDARD));
    assert_eq!(
        text,
        "no Intel PEBS for memory: this CPU is of another maker; sample by `--source ibs`"
    );
    let text = sentence(ibs(&machine("skylake"), 1000, STANDARD));
    assert!(text.ends_with("`--source pebs`"), "{text}");
    let text = sentence(pebs(&machine("damaged"), 1000, STANDARD));
    assert!(
        text.starts_with("the PMU `cpu` lists no memory event"),
        "{text}"
    );
}
