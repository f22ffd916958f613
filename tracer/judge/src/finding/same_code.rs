//! Lines that belong together because the same instructions touch them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::Member;
use crate::access::SpaceId;

/// Where code is.
type Code = (SpaceId, u64);

/// Lines that have an instruction in common, directly or by way of others.
pub(super) fn by_code(members: Vec<Member>) -> Vec<Vec<Member>> {
    let mut groups = Union::default();
    let mut first: FxHashMap<Code, usize> = FxHashMap::default();
    first.reserve(members.len());
    for (n, member) in members.iter().enumerate() {
        groups.push();
        for touch in &member.sites {
            let code = (touch.site.space, touch.site.ip);
            let other = *first.entry(code).or_insert(n);
            groups.join(n, other);
        }
    }
    let mut out: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
    for (n, member) in members.into_iter().enumerate() {
        out.entry(groups.root(n)).or_default().push(member);
    }
    out.into_values().collect()
}

/// Sets of numbers that grow together (union-find, with halved paths).
#[derive(Default)]
struct Union {
    parents: Vec<usize>,
}

impl Union {
    fn push(&mut self) {
        self.parents.push(self.parents.len());
    }

    fn root(&mut self, mut n: usize) -> usize {
        while self.parents[n] != n {
            self.parents[n] = self.parents[self.parents[n]];
            n = self.parents[n];
        }
        n
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}
