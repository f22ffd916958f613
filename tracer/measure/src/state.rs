//! States of cache lines that are measured, and what brings lines into them.

/// Where lines are when a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// In the own first-level cache, written.
    OwnL1,
    /// In the own second-level cache.
    OwnL2,
    /// Beyond the own second-level cache: in the last level, where that takes what is pushed out.
    OwnL3,
    /// In no cache.
    Memory,
    /// In the other's cache, written by it.
    OtherModified,
    /// In the other's cache, which alone has it and only read it.
    OtherExclusive,
    /// In both caches, read by both.
    SharedByBoth,
    /// In the caches of two others, not here.
    OtherShared,
    /// In three caches, also here.
    SharedByThree,
}

impl State {
    /// All of them, nearest first.
    pub const ALL: [State; 9] = [
        State::OwnL1,
        State::OwnL2,
        State::OwnL3,
        State::SharedByBoth,
        State::SharedByThree,
        State::OtherShared,
        State::OtherModified,
        State::OtherExclusive,
        State::Memory,
    ];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            State::OwnL1 => "own-l1",
            State::OwnL2 => "own-l2",
            State::OwnL3 => "own-l3",
            State::Memory => "memory",
            State::OtherModified => "other-modified",
            State::OtherExclusive => "other-exclusive",
            State::SharedByBoth => "shared-by-both",
            State::OtherShared => "other-shared",
            State::SharedByThree => "shared-by-three",
        }
    }

    /// The state of a name.
    pub fn named(name: &str) -> Option<State> {
        State::ALL.into_iter().find(|state| state.name() == name)
    }

    pub(crate) fn takes_a_third(self) -> bool {
        matches!(self, State::OtherShared | State::SharedByThree)
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            State::OwnL1 => "own, L1",
            State::OwnL2 => "own, L2",
            State::OwnL3 => "own, beyond L2",
            State::Memory => "memory",
            State::OtherModified => "other, modified",
            State::OtherExclusive => "other, exclusive",
            State::SharedByBoth => "shared by both",
            State::OtherShared => "others, shared",
            State::SharedByThree => "shared by three",
        }
    }

    /// What brings all lines of a block into the state, whatever they were in before.
    pub(crate) fn steps(self) -> &'static [(Who, Act)] {
        use {
            Act::{Flush, PushOutOfL1, PushOutOfL2, Read, Write},
            Who::{Other, Own, Third},
        };
        match self {
            State::OwnL1 => &[(Own, Write)],
            State::OwnL2 => &[(Own, Write), (Own, PushOutOfL1)],
            State::OwnL3 => &[(Own, Write), (Own, PushOutOfL2)],
            State::Memory => &[(Own, Flush)],
            State::OtherModified => &[(Other, Write)],
            State::OtherExclusive => &[(Other, Flush), (Other, Read)],
            State::OtherShared => &[(Own, Flush), (Other, Read), (Third, Read)],
            State::SharedByBoth => &[(Own, Write), (Other, Read), (Own, Read)],
            State::SharedByThree => &[(Own, Write), (Other, Read), (Third, Read), (Own, Read)],
        }
    }
}

/// A thread that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The one that times.
    Own,
    /// The one that has the lines before.
    Other,
    /// A further one.
    Third,
}

/// What a thread does to all lines of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Act {
    /// Nothing: an answer that the thread is there.
    Nothing,
    /// A store to each.
    Write,
    /// A load of each.
    Read,
    /// Takes each out of all caches.
    Flush,
    /// Loads other lines, more than a first-level cache has.
    PushOutOfL1,
    /// The same, more than a second-level cache has.
    PushOutOfL2,
}

impl Act {
    /// By its number.
    pub(crate) fn numbered(number: u32) -> Act {
        let all = [
            Act::Write,
            Act::Read,
            Act::Flush,
            Act::PushOutOfL1,
            Act::PushOutOfL2,
        ];
        all.into_iter()
            .find(|act| *act as u32 == number)
            .unwrap_or(Act::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use cohtrace_model::{
        access::Cpu,
        coherence::{Directory, Intent, Protocol, State as Held},
    };

    use super::*;

    const CPUS: [(Who, Cpu); 3] = [
        (Who::Own, Cpu(0)),
        (Who::Other, Cpu(1)),
        (Who::Third, Cpu(2)),
    ];

    /// What the directory says of a line after these steps.
    fn play(line: &mut Directory, steps: &[(Who, Act)]) -> [Held; 3] {
        for (who, act) in steps {
            let by = CPUS.iter().find(|(known, _)| known == who);
            let cpu = by.expect("one of three").1;
            match act {
                Act::Write => {
                    line.access(cpu, Intent::Store);
                }
                Act::Read => {
                    line.access(cpu, Intent::Load);
                }
                Act::Flush => {
                    for (_, cpu) in CPUS {
                        line.evict(cpu);
                    }
                }
                // Of one cache into the next, of the same CPU.
                Act::PushOutOfL1 | Act::PushOutOfL2 | Act::Nothing => {}
            }
        }
        CPUS.map(|(_, cpu)| line.state(cpu))
    }

    #[test]
    fn the_directory_says_of_a_line_what_its_state_is_called_whatever_was_before() {
        use Held::{Exclusive, Invalid, Modified, Shared};
        let expected = |state| match state {
            State::OwnL1 | State::OwnL2 | State::OwnL3 => [Modified, Invalid, Invalid],
            State::Memory => [Invalid; 3],
            State::OtherModified => [Invalid, Modified, Invalid],
            State::OtherExclusive => [Invalid, Exclusive, Invalid],
            State::OtherShared => [Invalid, Shared, Shared],
            State::SharedByBoth => [Shared, Shared, Invalid],
            State::SharedByThree => [Shared; 3],
        };
        // What is timed in between leaves lines with the CPU that times.
        let timed = [
            None,
            Some((Who::Own, Act::Read)),
            Some((Who::Own, Act::Write)),
        ];
        let today = Protocol {
            exclusive_on_first_read: true,
            ..Protocol::default()
        };
        for (before, timed) in State::ALL
            .into_iter()
            .flat_map(|state| timed.map(|act| (state, act)))
        {
            for state in State::ALL {
                let mut line = Directory::under(today);
                play(&mut line, before.steps());
                play(&mut line, timed.as_slice());
                let found = play(&mut line, state.steps());
                assert_eq!(
                    found,
                    expected(state),
                    "{state:?} after {before:?} and {timed:?}"
                );
            }
        }
    }

    #[test]
    fn a_third_takes_part_where_it_is_said_to_and_nowhere_else() {
        for state in State::ALL {
            let third = state.steps().iter().any(|(who, _)| *who == Who::Third);
            assert_eq!(third, state.takes_a_third(), "{state:?}");
        }
    }

    #[test]
    fn names_are_those_of_the_states() {
        for state in State::ALL {
            assert_eq!(State::named(state.name()), Some(state));
        }
        assert_eq!(State::named("own"), None);
    }
}
