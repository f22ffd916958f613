//! The loop around an instruction, and where what belongs before that loop can stand. Of machine code, and of any code that
//! is told in the same words.

use super::{
    cycles::Cycles,
    flow::{Flow, Graph, Way},
    function::FunctionCode,
    loops::{self, Loop, Nest},
};

/// General registers, a bit each by their numbers in the instruction set.
pub type RegisterBits = u16;

/// Where control goes after an instruction, targets as instruction numbers; `None` is outside of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// To the next one.
    Next,
    /// Elsewhere.
    Jump(Option<u32>),
    /// To the next one, or elsewhere.
    Branch(Option<u32>),
    /// Nowhere that is known.
    Stop,
}

/// One instruction of code that is not machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Registers that it may change.
    pub writes: RegisterBits,
    /// Where control goes.
    pub goes: Goes,
}

/// Where an instruction is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Around {
    /// In no loop.
    Straight,
    /// In a loop; its innermost one.
    Loop {
        /// Registers that the loop may change.
        writes: RegisterBits,
        /// Where something runs whenever the loop is entered, and at no other time; `None` where there is no such place, or
        /// where an iteration may do without the instruction.
        before: Option<Vec<Spot>>,
    },
    /// In a cycle with several entries, or in none of the instructions.
    Unclear,
}

/// A place between two instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// Right before this one, which is a jump.
    Before(usize),
    /// Right behind this one, and before what is jumped to.
    Behind(usize),
}

impl FunctionCode {
    /// Where the instruction at an address of the file is; spots are numbers of its [`FunctionCode::instructions`].
    pub fn around(&self, address: u64) -> Around {
        let Some(step) = self.step_at(address) else {
            return Around::Unclear;
        };
        let block = self.step(step).block;
        around(&self.graph, &self.nest, block, |number| {
            self.loops[number as usize].written.bits()
        })
    }
}

/// Where an instruction of a function is, which is entered at its first one and at `entries`.
pub fn around_told(steps: &[Told], entries: &[usize], at: usize) -> Around {
    let flow = |step: &Told| match step.goes {
        Goes::Next => Flow::Next,
        Goes::Jump(target) => Flow::Jump(target),
        Goes::Branch(target) => Flow::Branch(target),
        Goes::Stop => Flow::Stop,
    };
    let flows: Vec<Flow> = steps.iter().map(flow).collect();
    let mut landing = vec![false; steps.len()];
    for entry in entries.iter().filter(|entry| **entry < steps.len()) {
        landing[*entry] = true;
    }
    let mut graph = Graph::cut(&flows, &landing, &vec![false; steps.len()]);
    let nest = loops::find(&mut graph);
    let Some(block) = graph
        .blocks
        .iter()
        .position(|block| block.steps().contains(&at))
    else {
        return Around::Unclear;
    };
    around(&graph, &nest, block as u32, |number| {
        let body = nest.loops[number as usize].body.iter();
        let steps = body.flat_map(|block| &steps[graph.blocks[*block as usize].steps()]);
        steps.fold(0, |all, step| all | step.writes)
    })
}

fn around(graph: &Graph, nest: &Nest, block: u32, writes: impl Fn(u32) -> RegisterBits) -> Around {
    let Some(number) = nest.innermost[block as usize] else {
        return if is_in_cycle(graph, block) {
            Around::Unclear
        } else {
            Around::Straight
        };
    };
    let &Loop { header, tail, .. } = &nest.loops[number as usize];
    // What every iteration runs are the dominators of the tail up to the header.
    let mut runs = Some(tail);
    while let Some(at) = runs.filter(|at| *at != block && *at != header) {
        runs = nest.dominator[at as usize];
    }
    let before = if runs == Some(block) {
        spots(graph, nest, number, header)
    } else {
        None
    };
    Around::Loop {
        writes: writes(number),
        before,
    }
}

/// Where each way into a loop leads through and no other way does.
fn spots(graph: &Graph, nest: &Nest, number: u32, header: u32) -> Option<Vec<Spot>> {
    if graph.blocks[header as usize].unseen {
        return None;
    }
    let ways = graph.entries(header).iter();
    let ways = ways.filter(|edge| !nest.contains(number, edge.from));
    let spots = ways.map(|edge| {
        let from = &graph.blocks[edge.from as usize];
        let last = from.end as usize - 1;
        match edge.way {
            Way::Fell => Some(Spot::Behind(last)),
            Way::Jumped if !from.conditional => Some(Spot::Before(last)),
            Way::Jumped | Way::Either => None,
        }
    });
    let spots: Vec<Spot> = spots.collect::<Option<_>>()?;
    (!spots.is_empty()).then_some(spots)
}

fn is_in_cycle(graph: &Graph, block: u32) -> bool {
    let all: Vec<u32> = (0..graph.blocks.len() as u32).collect();
    let cycles = Cycles::new(graph).among(&all);
    cycles.iter().any(|cycle| cycle.contains(&block))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function in a word an instruction: `w3` writes register 3, `j4` jumps to instruction 4, `c4` perhaps, `r` returns.
    fn told(text: &str) -> Vec<Told> {
        let step = |word: &str| {
            let number: u32 = word
                .get(1..)
                .and_then(|digits| digits.parse().ok())
                .unwrap_or(0);
            let (writes, goes) = match &word[..1] {
                "w" => (1 << number, Goes::Next),
                "j" => (0, Goes::Jump(Some(number))),
                "c" => (0, Goes::Branch(Some(number))),
                "r" => (0, Goes::Stop),
                _ => (0, Goes::Next),
            };
            Told { writes, goes }
        };
        text.split(' ').map(step).collect()
    }

    fn around(text: &str, at: usize) -> Around {
        around_told(&told(text), &[], at)
    }

    fn looped(writes: RegisterBits, before: Option<Vec<Spot>>) -> Around {
        Around::Loop { writes, before }
    }

    #[test]
    fn what_runs_once_is_in_no_loop() {
        assert_eq!(around("w1 c3 w2 w3 r", 2), Around::Straight);
        assert_eq!(around("w1 - c1 w3 r", 3), Around::Straight);
        assert_eq!(around("w1 - c1 w3 r", 0), Around::Straight);
        assert_eq!(around("w1 r", 7), Around::Unclear);
    }

    #[test]
    fn a_loop_is_entered_from_above_or_by_a_jump_into_it() {
        assert_eq!(
            around("w1 - w2 c1 r", 1),
            looped(1 << 2, Some(vec![Spot::Behind(0)]))
        );
        // The test stands at the end, and is entered first.
        assert_eq!(
            around("j3 w1 - w2 c1 r", 3),
            looped(0b110, Some(vec![Spot::Before(0)]))
        );
        // Two ways in.
        assert_eq!(
            around("c3 w1 j4 w2 - c4 r", 4),
            looped(0, Some(vec![Spot::Before(2), Spot::Behind(3)]))
        );
    }

    #[test]
    fn the_innermost_loop_counts() {
        let nested = "w0 w1 - w2 c2 w3 c1 r";
        assert_eq!(
            around(nested, 2),
            looped(1 << 2, Some(vec![Spot::Behind(1)]))
        );
        assert_eq!(
            around(nested, 5),
            looped(0b1110, Some(vec![Spot::Behind(0)]))
        );
    }

    #[test]
    fn nothing_stands_before_a_loop_that_may_do_without_it_or_that_is_entered_by_a_branch() {
        assert_eq!(around("w0 - c4 - w2 c1 r", 3), looped(1 << 2, None));
        assert_eq!(around("c2 r - w2 c2 r", 2), looped(1 << 2, None));
        // The function itself.
        assert_eq!(around("- w2 c0 r", 0), looped(1 << 2, None));
        // From somewhere else, such as a table of jumps.
        assert_eq!(
            around_told(&told("w0 - w2 c1 r"), &[1], 1),
            looped(1 << 2, None)
        );
    }

    #[test]
    fn a_cycle_with_two_entries_is_not_judged() {
        assert_eq!(around("c2 w1 w2 c1 r", 2), Around::Unclear);
        assert_eq!(around_told(&told("w0 - - c1 r"), &[2], 2), Around::Unclear);
    }

    #[test]
    fn machine_code_is_told_in_the_same_words() {
        // xor %eax,%eax; 1: add (%rdi),%rax; add $8,%rdi; cmp %rsi,%rdi; jne 1b; ret
        let bytes = [
            0x31, 0xc0, 0x48, 0x03, 0x07, 0x48, 0x83, 0xc7, 0x08, 0x48, 0x39, 0xf7, 0x75, 0xf4,
            0xc3,
        ];
        let code = FunctionCode::decode(0x1000, &bytes);
        assert_eq!(
            code.around(0x1002),
            looped(1 | 1 << 7, Some(vec![Spot::Behind(0)]))
        );
        assert_eq!(code.around(0x100e), Around::Straight);
    }
}
