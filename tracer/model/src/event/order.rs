//! What a batch holds, in the order in which it applies.

use std::{iter::Peekable, slice::Iter};

use super::{Allocation, Batch, Context};
use crate::access::Access;

/// One thing of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Due<'a> {
    /// Applies to accesses of the same time or later.
    Context(&'a Context),
    /// Applies to accesses of the same time or later, and after context of the same time.
    Allocation(&'a Allocation),
    /// An access.
    Access(&'a Access),
}

/// Iterator of [`Batch::in_order`].
#[derive(Debug, Clone)]
pub struct InOrder<'a> {
    context: Peekable<Iter<'a, Context>>,
    allocations: Peekable<Iter<'a, Allocation>>,
    accesses: Peekable<Iter<'a, Access>>,
}

impl Batch {
    /// Context, allocations and accesses, each kind in its own order: before an access comes what applies to it, and
    /// after the last what is left. Windows come after all of it.
    pub fn in_order(&self) -> InOrder<'_> {
        InOrder {
            context: self.context.iter().peekable(),
            allocations: self.allocations.iter().peekable(),
            accesses: self.accesses.iter().peekable(),
        }
    }
}

impl<'a> Iterator for InOrder<'a> {
    type Item = Due<'a>;

    fn next(&mut self) -> Option<Due<'a>> {
        let until = self.accesses.peek().map_or(u64::MAX, |next| next.time_ns);
        let allocation = self.allocations.peek().map(|next| next.time_ns);
        let allocation = allocation.filter(|time_ns| *time_ns <= until);
        let until = allocation.unwrap_or(until);
        if let Some(context) = self.context.next_if(|next| next.time_ns <= until) {
            return Some(Due::Context(context));
        }
        if allocation.is_some() {
            return self.allocations.next().map(Due::Allocation);
        }
        self.accesses.next().map(Due::Access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Basis, Cpu, Op, Pid, Tid},
        event::{AllocationKind, ContextKind},
    };

    fn access(time_ns: u64) -> Access {
        Access {
            time_ns,
            addr: 0x1000,
            ip: 0x40_1000,
            pid: Pid(1),
            tid: Tid(1),
            cpu: Cpu(0),
            size: 8,
            op: Op::Load,
            basis: Basis::Decoded,
            locked: false,
            kernel: false,
            ..Access::BLANK
        }
    }

    /// `c` context, `m` an allocation, `a` an access, each with its time.
    fn order(context: &[u64], allocations: &[u64], accesses: &[u64]) -> Vec<String> {
        let (pid, tid) = (Pid(1), Tid(1));
        let batch = Batch {
            context: (context.iter())
                .map(|time_ns| Context {
                    time_ns: *time_ns,
                    kind: ContextKind::Exit { pid, tid },
                })
                .collect(),
            allocations: (allocations.iter())
                .map(|time_ns| Allocation {
                    time_ns: *time_ns,
                    pid,
                    tid,
                    kind: AllocationKind::Freed { addr: 0x1000 },
                })
                .collect(),
            accesses: accesses.iter().copied().map(access).collect(),
            ..Batch::default()
        };
        let name = |due| match due {
            Due::Context(context) => format!("c{}", context.time_ns),
            Due::Allocation(allocation) => format!("m{}", allocation.time_ns),
            Due::Access(access) => format!("a{}", access.time_ns),
        };
        batch.in_order().map(name).collect()
    }

    #[test]
    fn of_equal_times_context_is_first_and_accesses_are_last() {
        let all = order(&[1, 2, 2], &[2, 3], &[2, 2, 4]);
        assert_eq!(all, ["c1", "c2", "c2", "m2", "a2", "a2", "m3", "a4"]);
    }

    #[test]
    fn what_is_left_after_the_last_access_comes_too() {
        assert_eq!(order(&[5, 9], &[6], &[1]), ["a1", "c5", "m6", "c9"]);
        assert_eq!(order(&[], &[u64::MAX], &[]), [format!("m{}", u64::MAX)]);
        assert_eq!(order(&[u64::MAX], &[], &[]), [format!("c{}", u64::MAX)]);
        assert!(order(&[], &[], &[]).is_empty());
    }

    #[test]
    fn a_time_that_steps_back_changes_no_order_of_its_kind() {
        assert_eq!(order(&[3, 1], &[], &[2, 4]), ["a2", "c3", "c1", "a4"]);
    }
}
