//! Counts of a core's PMU, in counting mode around the loop of a program.

use crate::{
    NotCounted,
    access::{Cpu, Tid},
    asked::Asked,
    events::Event,
    machine::Machine,
    run::Counted,
    sys::{
        affinity::OnCpu,
        perf_event::{self, Attributes, OpenError, Scope, counting},
    },
};

/// The PMU that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    /// Its type, where cores are of several kinds.
    kind: Option<u32>,
    /// A CPU of that kind.
    cpu: Option<Cpu>,
}

/// The PMU of this machine's cores, by what the kernel lists; where they are of several kinds, that of the big ones.
fn unit(machine: &Machine) -> Result<Unit, NotCounted> {
    let named = |name: &str| machine.pmus.iter().find(|pmu| pmu.name == name);
    if let Some(pmu) = named("cpu_core") {
        let online = machine.online_cpus();
        let all = pmu.cpus.as_deref().unwrap_or_default();
        return Ok(Unit {
            kind: pmu.perf_type,
            cpu: all.iter().copied().find(|cpu| online.contains(cpu)),
        });
    }
    named("cpu").ok_or(NotCounted::NoPmu)?;
    Ok(Unit {
        kind: None,
        cpu: None,
    })
}

/// One run.
pub(crate) fn count(
    machine: &Machine,
    asked: &Asked,
    event: &Event,
    n: u64,
) -> Result<Counted, NotCounted> {
    let unit = unit(machine)?;
    let hardware = event.hardware.ok_or(NotCounted::NoPmuEvent)?;
    let on = unit.cpu.map(OnCpu::move_to).transpose();
    // Started here, the program stays here.
    let _on = on.map_err(NotCounted::of("moving to a CPU"))?;
    count_by(asked, event.letter, n, &hardware.attributes(unit.kind))
}

/// One run, by an event whose attributes have times.
fn count_by(
    asked: &Asked,
    letter: char,
    n: u64,
    attributes: &Attributes,
) -> Result<Counted, NotCounted> {
    let mut program = asked.start(letter, n)?;
    let thread = Scope::Thread(Tid(program.pid().0));
    let counter = perf_event::open(attributes, thread).map_err(not_opened)?;
    let starting = "starting a counter";
    counter.enable().map_err(NotCounted::of(starting))?;
    program.go()?;
    program.hear(1)?;
    let counted = counter.counted();
    let counted = counted.map_err(NotCounted::of("reading a counter"))?;
    program.end()?;
    whole(counted)
}

fn not_opened(why: OpenError) -> NotCounted {
    if why.is_no_such_event() {
        NotCounted::NoPmuEvent
    } else {
        why.into()
    }
}

/// The count of an event that had a counter all the time.
fn whole(counted: counting::Counted) -> Result<Counted, NotCounted> {
    if !counted.is_whole() {
        let had = counted.running_ns as f64 / counted.enabled_ns.max(1) as f64;
        let percent = (1.0 - had) * 100.0;
        return Err(NotCounted::Shared { percent });
    }
    Ok(Counted {
        count: counted.count as f64,
        lost: 0,
    })
}

#[cfg(test)]
mod tests {
    use cohtrace_platform::machine::fixture;

    use super::*;

    fn unit_of(machine: &fixture::Fixture) -> Option<Unit> {
        unit(&Machine::probe(machine.root())).ok()
    }

    #[test]
    fn the_pmu_is_that_of_the_cores_and_of_big_ones_where_there_are_two_kinds() {
        let plain = Some(Unit {
            kind: None,
            cpu: None,
        });
        assert_eq!(unit_of(&fixture::intel_sapphire_rapids()), plain);
        assert_eq!(unit_of(&fixture::amd_zen4()), plain);
        let big = Unit {
            kind: Some(4),
            cpu: Some(Cpu(0)),
        };
        assert_eq!(unit_of(&fixture::intel_hybrid()), Some(big));
        let offline = fixture::intel_hybrid();
        offline.write("sys/devices/system/cpu/online", "1-3\n");
        let next = Unit {
            cpu: Some(Cpu(1)),
            ..big
        };
        assert_eq!(unit_of(&offline), Some(next));
    }

    #[test]
    fn a_machine_without_one_says_so_before_anything_runs() {
        let machine = Machine::probe(fixture::kvm_amd().root());
        let why = unit(&machine).unwrap_err();
        assert_eq!(why.to_string(), "unavailable: no PMU");
        assert!(why.is_absent());
        assert!(!NotCounted::NoWindow.is_absent());
    }

    #[test]
    fn a_counter_around_the_loop_has_what_the_loop_did_and_no_more() {
        let asked = Asked::lay_down().unwrap();
        let faults = counting::timed(perf_event::page_faults());
        let of = |count| Counted { count, lost: 0 };
        for n in [1, 100, 3000] {
            match count_by(&asked, 'j', n, &faults) {
                Ok(counted) => assert_eq!(counted, of(n as f64)),
                Err(NotCounted::Event(why)) => {
                    cohtrace_skips::skipped_core(format_args!("no event of the kernel: {why}"));
                    return;
                }
                Err(why) => panic!("{why}"),
            }
        }
        // The twin: a loop on a word of a page that was written before.
        assert_eq!(count_by(&asked, 'k', 100, &faults).unwrap(), of(0.0));
    }

    #[test]
    fn a_count_that_was_shared_with_others_is_none() {
        let of = |running_ns| {
            whole(counting::Counted {
                count: 5,
                enabled_ns: 100,
                running_ns,
            })
        };
        assert_eq!(of(100).unwrap().count as u64, 5);
        let why = of(25).unwrap_err().to_string();
        assert_eq!(why, "others had the PMU's counters for 75 % of the time");
    }
}
