//! Basic blocks and the edges between them; knows no architecture.
//!
//! Invariant: every instruction is in exactly one block, a block is entered at its first instruction
//! only, and each way from one block to another is one [`Edge`] of the entered block.

use std::ops::Range;

/// Where control goes after an instruction, targets as instruction numbers; `None` is a target
/// outside of the decoded code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Jump(Option<u32>),
    Branch(Option<u32>),
    Stop,
}

/// How control left a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the jump at its end.
    Jumped,
    /// Past its end.
    Fell,
    /// By a conditional jump to the next instruction: one and the same.
    Either,
}

/// One way into a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) way: Way,
    /// The edge stays in the innermost loop of the block it enters.
    pub(super) inside: bool,
}

/// Instructions `first .. end`, always run in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) first: u32,
    pub(super) end: u32,
    /// The block after it, when control can run past its end.
    pub(super) fall: Option<u32>,
    /// The block its last instruction jumps to.
    pub(super) jump: Option<u32>,
    /// Its last instruction decides between two ways (one of them may leave the decoded code).
    pub(super) conditional: bool,
    /// Control may come from somewhere that no edge shows: the function's entry, an indirect jump, an
    /// exception.
    pub(super) unseen: bool,
    entries: (u32, u32),
}

impl Block {
    /// The instruction numbers.
    pub(super) fn steps(&self) -> Range<usize> {
        self.first as usize..self.end as usize
    }
}

/// The blocks of one function, in address order.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) blocks: Vec<Block>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.edges.capacity() * size_of::<Edge>()
    }

    /// Cuts instructions into blocks. `landing[n]`: instruction n may be entered from unseen code;
    /// `idle[n]`: it does nothing.
    pub(super) fn cut(flows: &[Flow], landing: &[bool], idle: &[bool]) -> Graph {
        let mut blocks = spans(flows, landing);
        let block_of = |step: u32| {
            blocks
                .binary_search_by(|block: &Block| {
                    if step < block.first {
                        std::cmp::Ordering::Greater
                    } else if step >= block.end {
                        std::cmp::Ordering::Less
                    } else {
                        std::cmp::Ordering::Equal
                    }
                })
                .ok()
                .map(|number| number as u32)
        };
        let ends: Vec<_> = blocks
            .iter()
            .map(|block| match flows[block.end as usize - 1] {
                Flow::Next => (block_of(block.end), None, false),
                Flow::Jump(target) => (None, target.and_then(block_of), false),
                Flow::Branch(target) => (block_of(block.end), target.and_then(block_of), true),
                Flow::Stop => (None, None, false),
            })
            .collect();
        for (block, (fall, jump, conditional)) in blocks.iter_mut().zip(ends) {
            (block.fall, block.jump, block.conditional) = (fall, jump, conditional);
        }
        let mut graph = Graph {
            blocks,
            edges: Vec::new(),
        };
        graph.connect();
        graph.cut_off_padding(idle);
        graph
    }

    /// Takes the fall-through from blocks of nothing but no-ops that no edge enters. Assemblers put them
    /// before aligned loops; as a way in from the unseen, they would hide that the loop is one.
    fn cut_off_padding(&mut self, idle: &[bool]) {
        let padding: Vec<bool> = self
            .blocks
            .iter()
            .map(|block| {
                let entered = block.unseen || block.entries.0 != block.entries.1;
                !entered && idle[block.steps()].iter().all(|idle| *idle)
            })
            .collect();
        for (block, padding) in self.blocks.iter_mut().zip(&padding) {
            if *padding {
                block.fall = None;
            }
        }
        if padding.contains(&true) {
            self.connect();
        }
    }

    /// Builds the entered blocks' edge lists from the successors.
    fn connect(&mut self) {
        let mut edges: Vec<(u32, Edge)> = Vec::new();
        for (from, block) in self.blocks.iter().enumerate() {
            let mut add = |to: Option<u32>, way| {
                let from = from as u32;
                let edge = Edge {
                    from,
                    way,
                    inside: false,
                };
                edges.extend(to.map(|to| (to, edge)));
            };
            if block.fall.is_some() && block.fall == block.jump {
                add(block.fall, Way::Either);
            } else {
                add(block.fall, Way::Fell);
                add(block.jump, Way::Jumped);
            }
        }
        edges.sort_by_key(|(to, edge)| (*to, edge.from));
        let mut at = 0;
        for (number, block) in self.blocks.iter_mut().enumerate() {
            let first = at;
            while edges.get(at).is_some_and(|(to, _)| *to as usize == number) {
                at += 1;
            }
            block.entries = (first as u32, at as u32);
        }
        self.edges = edges.into_iter().map(|(_, edge)| edge).collect();
    }

    /// The seen ways into a block.
    pub(super) fn entries(&self, block: u32) -> &[Edge] {
        let (first, end) = self.blocks[block as usize].entries;
        &self.edges[first as usize..end as usize]
    }

    /// Marks the edges for which `inside(from, to)` holds.
    pub(super) fn mark_inside(&mut self, inside: impl Fn(u32, u32) -> bool) {
        for (to, block) in self.blocks.iter().enumerate() {
            let (first, end) = block.entries;
            for edge in &mut self.edges[first as usize..end as usize] {
                edge.inside = inside(edge.from, to as u32);
            }
        }
    }

    /// The blocks in post-order of a walk from every place control can come in. Code that no edge
    /// reaches (the targets of jump tables, landing pads) is entered somehow: the first block of such
    /// code is marked [`Block::unseen`].
    pub(super) fn postorder(&mut self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut reached = vec![false; self.blocks.len()];
        let mut walk: Vec<(u32, u8)> = Vec::new();
        let given = (0..self.blocks.len())
            .filter(|&block| self.blocks[block].unseen || self.entries(block as u32).is_empty());
        let roots: Vec<usize> = given.chain(0..self.blocks.len()).collect();
        for root in roots {
            if reached[root] {
                continue;
            }
            self.blocks[root].unseen = true;
            reached[root] = true;
            walk.push((root as u32, 0));
            while let Some((at, tried)) = walk.last_mut() {
                let block = &self.blocks[*at as usize];
                *tried += 1;
                let next = match *tried {
                    1 => block.fall,
                    2 => block.jump,
                    _ => {
                        order.push(*at);
                        walk.pop();
                        continue;
                    }
                };
                if let Some(next) = next.filter(|next| !reached[*next as usize]) {
                    reached[next as usize] = true;
                    walk.push((next, 0));
                }
            }
        }
        order
    }
}

/// The blocks' extents, without edges.
fn spans(flows: &[Flow], landing: &[bool]) -> Vec<Block> {
    let mut leads = vec![false; flows.len()];
    for (number, flow) in flows.iter().enumerate() {
        if let Flow::Jump(Some(target)) | Flow::Branch(Some(target)) = flow {
            leads[*target as usize] = true;
        }
        if *flow != Flow::Next && number + 1 < flows.len() {
            leads[number + 1] = true;
        }
        leads[number] |= landing[number];
    }
    let begins = leads
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, leads)| **leads);
    let ends = begins
        .map(|(number, _)| number)
        .chain((!flows.is_empty()).then_some(flows.len()));
    let mut first = 0;
    ends.map(|end| Block {
        first: std::mem::replace(&mut first, end) as u32,
        end: end as u32,
        fall: None,
        jump: None,
        conditional: false,
        unseen: false,
        entries: (0, 0),
    })
    .map(|block| Block {
        unseen: block.first == 0 || landing[block.first as usize],
        ..block
    })
    .collect()
}
