//! Cycles of blocks; knows no architecture.

use super::flow::Graph;

/// Finds cycles: strongly connected components with an edge in them (Tarjan, "Depth-First Search and Linear Graph
/// Algorithms", SIAM Journal on Computing 1, 1972).
pub(super) struct Cycles<'a> {
    graph: &'a Graph,
    /// Per block: its number in order of being met, [`Cycles::UNSEEN`] until then, [`Cycles::OUT`] where it is none of
    /// those that are looked at, or is done with.
    index: Vec<u32>,
    low: Vec<u32>,
}

impl Cycles<'_> {
    const UNSEEN: u32 = u32::MAX;
    const OUT: u32 = u32::MAX - 1;

    pub(super) fn new(graph: &Graph) -> Cycles<'_> {
        Cycles {
            graph,
            index: vec![Cycles::OUT; graph.blocks.len()],
            low: vec![0; graph.blocks.len()],
        }
    }

    /// The cycles among these blocks, each in ascending order.
    pub(super) fn among(&mut self, blocks: &[u32]) -> Vec<Vec<u32>> {
        for block in blocks {
            self.index[*block as usize] = Self::UNSEEN;
        }
        let (mut stack, mut walk, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let mut met = 0;
        for root in blocks {
            if self.index[*root as usize] != Self::UNSEEN {
                continue;
            }
            walk.push((*root, 0));
            while let Some((block, tried)) = walk.last_mut() {
                let (block, way) = (*block, *tried);
                *tried += 1;
                let at = block as usize;
                if way == 0 {
                    (self.index[at], self.low[at]) = (met, met);
                    met += 1;
                    stack.push(block);
                }
                let ways = [self.graph.blocks[at].fall, self.graph.blocks[at].jump];
                if let Some(next) = ways.get(way) {
                    match next.map(|next| (next, self.index[next as usize])) {
                        Some((next, Self::UNSEEN)) => walk.push((next, 0)),
                        None | Some((_, Self::OUT)) => {}
                        Some((_, index)) => self.low[at] = self.low[at].min(index),
                    }
                    continue;
                }
                walk.pop();
                if let Some((parent, _)) = walk.last() {
                    let parent = *parent as usize;
                    self.low[parent] = self.low[parent].min(self.low[at]);
                }
                if self.low[at] != self.index[at] {
                    continue;
                }
                let first = stack.iter().rposition(|other| *other == block);
                let mut cycle = stack.split_off(first.unwrap_or(stack.len()));
                for block in &cycle {
                    self.index[*block as usize] = Self::OUT;
                }
                if cycle.len() > 1 || ways.contains(&Some(block)) {
                    cycle.sort_unstable();
                    found.push(cycle);
                }
            }
        }
        found
    }
}
