//! CPUs that come and go while they are sampled: which have to be opened anew, and how long which was not seen.
//!
//! When a CPU goes offline the kernel ends what was open on it, and does not begin it again when the CPU comes back.

use std::collections::{BTreeMap, BTreeSet};

use crate::{access::Cpu, event::Tally};

/// What has to be done about CPUs that changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// What was open there has ended.
    pub closed: BTreeSet<Cpu>,
    /// Online, and not open.
    pub to_open: BTreeSet<Cpu>,
}

/// Times are of CLOCK_MONOTONIC, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Online, and not seen: at the earliest since a time up to which the tally says so. Not to be tried before the other.
    Blind {
        since: u64,
        retry: u64,
    },
    /// Offline, at the latest since then.
    Away {
        since: u64,
    },
}

/// What is to be told of a CPU that went.
#[derive(Clone, Copy, Debug, Default)]
struct Outages {
    times: u64,
    /// As far as it came back, nanoseconds.
    away_ns: u64,
}

/// How long a CPU that could not be opened is left alone, nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;

/// The state of each CPU over time.
#[derive(Debug)]
pub(super) struct Presence {
    cpus: BTreeMap<Cpu, State>,
    /// When the last look was: until then all was as it was known to be.
    looked_ns: u64,
    outages: BTreeMap<Cpu, Outages>,
}

impl Presence {
    /// All of these are open, and observed from now on.
    pub(super) fn new(open: impl IntoIterator<Item = Cpu>, now_ns: u64) -> Presence {
        Presence {
            cpus: open.into_iter().map(|cpu| (cpu, State::Open)).collect(),
            looked_ns: now_ns,
            outages: BTreeMap::new(),
        }
    }

    /// Holds what is known against the CPUs that are online now, and those that were announced to have gone or come since the
    /// last look. Time that was not seen goes into the tally.
    pub(super) fn look(
        &mut self,
        online: &BTreeSet<Cpu>,
        announced: &BTreeSet<Cpu>,
        now_ns: u64,
        tally: &mut Tally,
    ) -> Change {
        let mut change = Change::default();
        let looked_ns = self.looked_ns;
        let blind = State::Blind {
            since: looked_ns,
            retry: 0,
        };
        for cpu in online {
            self.cpus.entry(*cpu).or_insert(blind);
        }
        for (cpu, state) in &mut self.cpus {
            let is_online = online.contains(cpu);
            *state = match *state {
                State::Open if is_online && !announced.contains(cpu) => State::Open,
                State::Open => {
                    change.closed.insert(*cpu);
                    self.outages.entry(*cpu).or_default().times += 1;
                    if is_online {
                        blind
                    } else {
                        State::Away { since: now_ns }
                    }
                }
                State::Blind { since, retry } => {
                    add(tally, *cpu, since, now_ns);
                    if is_online {
                        let since = now_ns;
                        State::Blind { since, retry }
                    } else {
                        State::Away { since: now_ns }
                    }
                }
                State::Away { since } if is_online => {
                    let away_ns = looked_ns.saturating_sub(since);
                    self.outages.entry(*cpu).or_default().away_ns += away_ns;
                    blind
                }
                away @ State::Away { .. } => away,
            };
            if matches!(state, State::Blind { retry, .. } if *retry <= now_ns) {
                change.to_open.insert(*cpu);
            }
        }
        self.looked_ns = now_ns;
        change
    }

    /// A CPU is seen from now on.
    pub(super) fn opened(&mut self, cpu: Cpu, now_ns: u64, tally: &mut Tally) {
        if let Some(State::Blind { since, .. }) = self.cpus.insert(cpu, State::Open) {
            add(tally, cpu, since, now_ns);
        }
    }

    /// A CPU could not be opened.
    pub(super) fn failed(&mut self, cpu: Cpu, now_ns: u64) {
        if let Some(State::Blind { retry, .. }) = self.cpus.get_mut(&cpu) {
            *retry = now_ns + RETRY_NS;
        }
    }

    /// What is open on a CPU gives nothing any more: it has to be opened anew. It was not seen since the last look.
    pub(super) fn found_dead(&mut self, cpu: Cpu) {
        let since = self.looked_ns;
        self.cpus.insert(cpu, State::Blind { since, retry: 0 });
    }

    /// The CPUs that are seen.
    pub(super) fn open(&self) -> impl Iterator<Item = Cpu> {
        let open = |(cpu, state): (&Cpu, &State)| (*state == State::Open).then_some(*cpu);
        self.cpus.iter().filter_map(open)
    }

    /// Whether every CPU that is online is seen.
    pub(super) fn is_whole(&self) -> bool {
        let mut states = self.cpus.values();
        !states.any(|state| matches!(state, State::Blind { .. }))
    }

    /// What the report shall say of the CPUs that went, in sentences.
    pub(super) fn caveats(&self) -> Vec<String> {
        let sentence = |(cpu, outages): (&Cpu, &Outages)| {
            let times = match outages.times {
                0 => return None,
                1 => String::new(),
                times => format!(" {times} times"),
            };
            let back = if matches!(self.cpus.get(cpu), Some(State::Away { .. })) {
                "it is offline at the end".to_owned()
            } else {
                format!("it was away for {:.2} s", outages.away_ns as f64 / 1e9)
            };
            Some(format!(
                "CPU {} went offline{times} while it was observed: {back}",
                cpu.0
            ))
        };
        self.outages.iter().filter_map(sentence).collect()
    }
}

fn add(tally: &mut Tally, cpu: Cpu, since: u64, until: u64) {
    *tally.blind_ns.entry(cpu).or_default() += until.saturating_sub(since);
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Cpu; 2] = [Cpu(0), Cpu(1)];

    fn set(cpus: &[Cpu]) -> BTreeSet<Cpu> {
        cpus.iter().copied().collect()
    }

    /// Looks at times 100 apart, each with the CPUs online and those announced; opens what is to be opened 10 later, if it
    /// can be. Says how long CPU 1 was blind, what was closed and opened, and the caveats.
    fn watch(looks: &[(&[Cpu], &[Cpu])], can_be_opened: bool) -> (u64, usize, usize, Vec<String>) {
        let mut presence = Presence::new(BOTH, 0);
        let mut tally = Tally::default();
        let (mut closed, mut opened) = (0, 0);
        for (n, (online, announced)) in looks.iter().enumerate() {
            let now = 100 * (n as u64 + 1);
            let change = presence.look(&set(online), &set(announced), now, &mut tally);
            closed += change.closed.len();
            for cpu in change.to_open {
                if can_be_opened {
                    presence.opened(cpu, now + 10, &mut tally);
                    opened += 1;
                } else {
                    presence.failed(cpu, now);
                }
            }
        }
        let blind = tally.blind_ns.get(&Cpu(1)).copied().unwrap_or(0);
        (blind, closed, opened, presence.caveats())
    }

    #[test]
    fn cpus_that_stay_are_left_alone() {
        let looks: [(&[Cpu], &[Cpu]); 3] = [(&BOTH, &[]); 3];
        assert_eq!(watch(&looks, true), (0, 0, 0, Vec::new()));
    }

    #[test]
    fn while_it_is_offline_a_cpu_is_not_blind_and_back_it_is_until_it_is_opened() {
        let one: &[Cpu] = &[Cpu(0)];
        let gone: &[Cpu] = &[Cpu(1)];
        // Gone by the first look, back by the fourth: since the third at the earliest.
        let (blind, closed, opened, caveats) =
            watch(&[(one, gone), (one, &[]), (one, &[]), (&BOTH, gone)], true);
        assert_eq!((blind, closed, opened), (110, 1, 1));
        let said = "CPU 1 went offline while it was observed: it was away for 0.00 s";
        assert_eq!(caveats, [said]);
        let (blind, closed, opened, caveats) = watch(&[(one, gone), (one, &[])], true);
        assert_eq!((blind, closed, opened), (0, 1, 0));
        assert!(
            caveats[0].ends_with("it is offline at the end"),
            "{caveats:?}"
        );
    }

    #[test]
    fn one_that_went_and_came_between_two_looks_is_opened_anew() {
        let (blind, closed, opened, _) = watch(&[(&BOTH, &[Cpu(1)]), (&BOTH, &[])], true);
        assert_eq!((blind, closed, opened), (110, 1, 1));
    }

    #[test]
    fn one_that_cannot_be_opened_stays_blind_and_is_not_tried_at_each_look() {
        let looks: [(&[Cpu], &[Cpu]); 3] = [(&BOTH, &[Cpu(1)]), (&BOTH, &[]), (&BOTH, &[])];
        let (blind, closed, opened, _) = watch(&looks, false);
        assert_eq!((blind, closed, opened), (300, 1, 0));
    }

    #[test]
    fn a_cpu_that_was_never_there_is_opened_when_it_comes() {
        let three = [Cpu(0), Cpu(1), Cpu(2)];
        let mut presence = Presence::new(BOTH, 0);
        let mut tally = Tally::default();
        let change = presence.look(&set(&three), &set(&[Cpu(2)]), 100, &mut tally);
        assert_eq!(change.closed, set(&[]));
        assert_eq!(change.to_open, set(&[Cpu(2)]));
        presence.opened(Cpu(2), 120, &mut tally);
        assert_eq!(tally.blind_ns[&Cpu(2)], 120);
        assert_eq!(presence.open().collect::<Vec<_>>(), three);
    }

    #[test]
    fn one_whose_events_died_is_opened_anew_at_the_next_look() {
        let mut presence = Presence::new(BOTH, 0);
        let mut tally = Tally::default();
        presence.look(&set(&BOTH), &set(&[]), 100, &mut tally);
        presence.found_dead(Cpu(0));
        let change = presence.look(&set(&BOTH), &set(&[]), 200, &mut tally);
        assert_eq!(change.to_open, set(&[Cpu(0)]));
        assert_eq!(tally.blind_ns[&Cpu(0)], 100);
    }
}
