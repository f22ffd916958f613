//! Each state once, for who sees the accesses from outside: an emulator, whose directory must then have lines as the state says.

use std::io;

use cohtrace_platform::sys::line_loops::{Block, Operation};

use super::{
    Setting,
    others::{Pushing, step, with_others},
};
use crate::state::{Act, State};

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// All lines are about to be taken out of all caches. No emulator shows the instruction that does it.
    Flush,
    /// The lines are in the state, and the operation is about to be done to each.
    Timed(State, Operation),
    /// It was done to all.
    Done(State, Operation),
}

/// Brings the lines of a block into each state that is asked for, before each operation, as a sitting does; the first time of
/// each. `tell` is called on the thread that times, while the others wait for it.
///
/// # Errors
/// As [`sit`](super::sit).
pub fn show(setting: &Setting<'_>, mut tell: impl FnMut(&Block, Next)) -> io::Result<()> {
    with_others(setting, |block, wires| {
        let mut pushing = Pushing::default();
        let known = |state: &&State| wires.third.is_some() || !state.takes_a_third();
        for state in setting.states.iter().filter(known) {
            for operation in Operation::ALL {
                for (who, what) in state.steps() {
                    if *what == Act::Flush {
                        tell(block, Next::Flush);
                    }
                    step(*who, *what, block, wires, &mut pushing);
                }
                tell(block, Next::Timed(*state, operation));
                block.time(operation);
                tell(block, Next::Done(*state, operation));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cohtrace_model::access::Cpu;

    use super::*;

    #[test]
    fn each_state_and_operation_is_told_once_before_and_once_after() {
        let setting = Setting {
            own: Cpu(0),
            other: Cpu(0),
            third: None,
            home: Cpu(0),
            states: &[State::OtherExclusive, State::OtherShared, State::OwnL1],
            chains: false,
            rounds: 0,
            warm_up: Duration::ZERO,
            real_time: false,
        };
        let mut told = Vec::new();
        show(&setting, |_, next| told.push(next)).expect("CPU 0 is there");
        let mut expected = Vec::new();
        for state in [State::OtherExclusive, State::OwnL1] {
            for operation in Operation::ALL {
                expected.extend((state == State::OtherExclusive).then_some(Next::Flush));
                expected.push(Next::Timed(state, operation));
                expected.push(Next::Done(state, operation));
            }
        }
        assert_eq!(told, expected);
    }
}
