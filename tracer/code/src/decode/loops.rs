//! Dominators and natural loops of a [`Graph`]; knows no architecture.
//!
//! Dominators by Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001). A natural
//! loop is a header with every block that reaches one of its back edges without passing it. Cycles that
//! are entered at two places have no header and are no loops here.

use super::flow::Graph;

/// Bound on graph steps: enough for functions of tens of thousands of blocks as compilers shape them,
/// and an end for shapes they do not. Past it a function simply has no loops.
const MAX_WORK: usize = 8_000_000;

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) header: u32,
    /// The last block that every iteration runs. Its dominators up to the header are all such blocks.
    pub(super) tail: u32,
    /// The next larger loop around this one.
    pub(super) parent: Option<u32>,
    /// Its blocks, header included. The owner may take them once it has used them.
    pub(super) body: Vec<u32>,
}

/// All loops of a graph, innermost first, and what each block needs to know of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Nest {
    pub(super) loops: Vec<Loop>,
    /// Per block: its immediate dominator, `None` where control comes in from outside.
    pub(super) dominator: Vec<Option<u32>>,
    /// Per block: the smallest loop around it.
    pub(super) innermost: Vec<Option<u32>>,
}

impl Nest {
    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let bodies = self.loops.iter();
        let bodies: usize = bodies.map(|inner| inner.body.capacity()).sum();
        let of_blocks = self.dominator.capacity() + self.innermost.capacity();
        self.loops.capacity() * size_of::<Loop>()
            + bodies * size_of::<u32>()
            + of_blocks * size_of::<Option<u32>>()
    }

    /// Whether the block is in that loop.
    pub(super) fn contains(&self, number: u32, block: u32) -> bool {
        let mut at = self.innermost[block as usize];
        while let Some(inner) = at {
            if inner == number {
                return true;
            }
            at = self.loops[inner as usize].parent;
        }
        false
    }
}

/// Finds the loops; none if the graph is larger than the bound allows.
pub(super) fn find(graph: &mut Graph) -> Nest {
    let blocks = graph.blocks.len();
    let none = Nest {
        loops: Vec::new(),
        dominator: vec![None; blocks],
        innermost: vec![None; blocks],
    };
    let tree = Tree::new(graph);
    let mut budget = Budget(MAX_WORK);
    tree.and_then(|tree| tree.nest(graph, &mut budget))
        .unwrap_or(none)
}

/// Remaining graph steps.
struct Budget(usize);

impl Budget {
    fn spend(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

/// The dominator tree. Nodes are numbered from 1 in reverse post-order, so that a dominator's number is
/// smaller; node 0 stands for everything outside.
struct Tree {
    /// Per node: block number (node 0 has none).
    block: Vec<u32>,
    /// Per block: node.
    node: Vec<u32>,
    /// Per node: immediate dominator.
    dominator: Vec<u32>,
}

impl Tree {
    fn new(graph: &mut Graph) -> Option<Tree> {
        let mut block = graph.postorder();
        block.push(u32::MAX);
        block.reverse();
        let mut node = vec![0; graph.blocks.len()];
        for (number, &block) in block.iter().enumerate().skip(1) {
            node[block as usize] = number as u32;
        }
        let mut tree = Tree {
            dominator: vec![u32::MAX; block.len()],
            block,
            node,
        };
        tree.dominator[0] = 0;
        let mut budget = Budget(MAX_WORK);
        let mut changed = true;
        while changed {
            changed = false;
            for number in 1..tree.block.len() {
                let new = tree.meet_entries(graph, number, &mut budget)?;
                changed |= std::mem::replace(&mut tree.dominator[number], new) != new;
            }
        }
        Some(tree)
    }

    /// The nearest common dominator of everything that enters a node.
    fn meet_entries(&self, graph: &Graph, number: usize, budget: &mut Budget) -> Option<u32> {
        let block = self.block[number];
        if graph.blocks[block as usize].unseen {
            return Some(0);
        }
        let mut meet = u32::MAX;
        for edge in graph.entries(block) {
            budget.spend()?;
            let from = self.node[edge.from as usize];
            if self.dominator[from as usize] == u32::MAX {
                continue;
            }
            meet = if meet == u32::MAX {
                from
            } else {
                self.meet(meet, from, budget)?
            };
        }
        Some(meet)
    }

    /// The nearest common dominator of two nodes.
    fn meet(&self, mut a: u32, mut b: u32, budget: &mut Budget) -> Option<u32> {
        while a != b {
            budget.spend()?;
            if a > b {
                a = self.dominator[a as usize];
            } else {
                b = self.dominator[b as usize];
            }
        }
        Some(a)
    }

    fn dominates(&self, above: u32, below: u32, budget: &mut Budget) -> Option<bool> {
        let mut at = below;
        while at > above {
            budget.spend()?;
            at = self.dominator[at as usize];
        }
        Some(at == above)
    }

    fn nest(&self, graph: &Graph, budget: &mut Budget) -> Option<Nest> {
        let mut loops = self.loops(graph, budget)?;
        loops.sort_by_key(|l| l.body.len());
        let mut innermost: Vec<Option<u32>> = vec![None; graph.blocks.len()];
        for number in 0..loops.len() {
            for at in 0..loops[number].body.len() {
                let block = loops[number].body[at] as usize;
                let Some(mut outermost) = innermost[block] else {
                    innermost[block] = Some(number as u32);
                    continue;
                };
                while let Some(parent) = loops[outermost as usize].parent {
                    budget.spend()?;
                    outermost = parent;
                }
                if outermost != number as u32 {
                    loops[outermost as usize].parent = Some(number as u32);
                }
            }
        }
        let dominator = (0..graph.blocks.len()).map(|block| {
            let above = self.dominator[self.node[block] as usize];
            (above != 0).then(|| self.block[above as usize])
        });
        Some(Nest {
            dominator: dominator.collect(),
            innermost,
            loops,
        })
    }

    fn loops(&self, graph: &Graph, budget: &mut Budget) -> Option<Vec<Loop>> {
        let mut loops = Vec::new();
        // Per block: the loop (counted from 1) whose body it was last added to.
        let mut member = vec![0; graph.blocks.len()];
        for header in 0..graph.blocks.len() as u32 {
            let top = self.node[header as usize];
            let mut tail: Option<u32> = None;
            let mut body = vec![header];
            let stamp = loops.len() + 1;
            for edge in graph.entries(header) {
                let latch = self.node[edge.from as usize];
                if latch < top || !self.dominates(top, latch, budget)? {
                    continue;
                }
                tail = Some(match tail {
                    Some(tail) => self.meet(tail, latch, budget)?,
                    None => latch,
                });
                member[header as usize] = stamp;
                if std::mem::replace(&mut member[edge.from as usize], stamp) != stamp {
                    body.push(edge.from);
                }
            }
            let Some(tail) = tail else { continue };
            let mut at = 1;
            while at < body.len() {
                for edge in graph.entries(body[at]) {
                    budget.spend()?;
                    if std::mem::replace(&mut member[edge.from as usize], stamp) != stamp {
                        body.push(edge.from);
                    }
                }
                at += 1;
            }
            loops.push(Loop {
                header,
                tail: self.block[tail as usize],
                parent: None,
                body,
            });
        }
        Some(loops)
    }
}
