//! What accesses can prove, by the source that saw them.

/// What a source's accesses can prove; a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Evidence(u16);

impl Evidence {
    /// Accesses have a data address.
    pub const DATA_ADDR: Evidence = Evidence(1 << 0);
    /// The ip is the accessing instruction itself.
    pub const EXACT_IP: Evidence = Evidence(1 << 1);
    /// Stores are seen as well as loads.
    pub const STORES: Evidence = Evidence(1 << 2);
    /// Stalled time can be attributed to accesses.
    pub const COST: Evidence = Evidence(1 << 3);
    /// The level or cache that served the access is known.
    pub const SERVED_FROM: Evidence = Evidence(1 << 4);
    /// Every access is seen, in order: to the watched bytes, or of the whole program.
    pub const COMPLETE_ORDER: Evidence = Evidence(1 << 5);

    const NAMES: [(Evidence, &'static str); 6] = [
        (Evidence::DATA_ADDR, "data_addr"),
        (Evidence::EXACT_IP, "exact_ip"),
        (Evidence::STORES, "stores"),
        (Evidence::COST, "cost"),
        (Evidence::SERVED_FROM, "served_from"),
        (Evidence::COMPLETE_ORDER, "complete_order"),
    ];

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Evidence) -> Evidence {
        Evidence(self.0 | other.0)
    }

    /// Whether every element of `other` is in this set.
    pub fn has(self, other: Evidence) -> bool {
        self.0 & other.0 == other.0
    }

    /// Stable names of the elements.
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMES
            .iter()
            .filter(|(e, _)| self.has(*e))
            .map(|(_, name)| *name)
            .collect()
    }
}
