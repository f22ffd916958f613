//! Whether watch windows can be had: they need what the timer needs, and free breakpoint registers.

use super::{LiveProbe, Obstacle, SourceStatus, Status};

/// With fewer words at once, a window cannot show two threads on two words.
const FEW: u32 = 2;

/// The watch source, given the timer's status: it confirms what the timer suspects.
pub(super) fn status(timer: &Status, live: &LiveProbe) -> SourceStatus {
    let slots = live.breakpoints.as_ref();
    let status = match (timer, slots) {
        (Status::Available, Some(slots)) if slots.free == 0 => {
            let why = slots
                .end
                .as_ref()
                .map_or_else(String::new, |end| format!(" ({end})"));
            Status::Unavailable(vec![Obstacle {
                reason: format!("no data breakpoint is free{why}: debuggers or other tracers hold them all"),
                fix: vec![
                    "# end the debugger that watches memory, or delete its watchpoints (gdb: delete)".into(),
                ],
            }])
        }
        (Status::Available, _) => Status::Available,
        (Status::Unavailable(_), _) => Status::Unavailable(vec![Obstacle {
            reason: "it confirms what the timer source finds, which cannot run".into(),
            fix: Vec::new(),
        }]),
        (Status::NotBuilt { reason }, _) => Status::NotBuilt {
            reason: reason.clone(),
        },
    };
    let mut limits = Vec::new();
    if let (Status::Available, Some(slots)) = (&status, slots) {
        let mut limit = |reason: String| {
            limits.push(Obstacle {
                reason,
                fix: Vec::new(),
            });
        };
        if slots.free < FEW {
            limit(format!(
                "only {} data breakpoint is free: a window sees one word of a line at a time",
                slots.free
            ));
        }
        if slots.cpu.is_none() {
            limit(
                "breakpoints can be set on single threads only: threads born during a window escape it"
                    .into(),
            );
        }
    }
    SourceStatus {
        name: "watch",
        about: "data breakpoints on suspicious lines, a BPF program on each hit; needs no PMU",
        evidence: "every access to up to four words of a line, in order, with its instruction",
        status,
        limits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::Cpu,
        machine::{BreakpointSlots, Refusal},
    };

    fn with(free: u32, cpu: Option<Cpu>) -> LiveProbe {
        LiveProbe {
            breakpoints: Some(BreakpointSlots {
                free,
                cpu,
                end: Some(Refusal {
                    errno: 28,
                    what: "perf_event_open",
                }),
            }),
            ..LiveProbe::default()
        }
    }

    #[test]
    fn four_free_registers_on_a_cpu_are_no_limit() {
        let found = status(&Status::Available, &with(4, Some(Cpu(0))));
        assert_eq!((found.status, found.limits.len()), (Status::Available, 0));
    }

    #[test]
    fn without_a_free_register_it_cannot_run_and_says_who_holds_them() {
        let found = status(&Status::Available, &with(0, Some(Cpu(0))));
        let Status::Unavailable(obstacles) = found.status else {
            panic!("{:?}", found.status)
        };
        assert!(obstacles[0].reason.contains("debuggers"), "{obstacles:?}");
    }

    #[test]
    fn one_register_or_single_threads_are_limits() {
        let found = status(&Status::Available, &with(1, None));
        assert_eq!(found.limits.len(), 2, "{:?}", found.limits);
    }

    #[test]
    fn without_the_timer_there_is_nothing_to_confirm() {
        let timer = Status::Unavailable(Vec::new());
        let found = status(&timer, &with(4, Some(Cpu(0))));
        assert!(matches!(found.status, Status::Unavailable(_)));
    }
}
