//! What a processor wants of a line, and what it takes: the words of [`Directory`](super::Directory).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Transaction, Transactions};
use crate::access::{Cpu, Op};

/// Variants of the protocol. The default is the paper's, but that a recalled owner keeps a Shared copy as MESI caches do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Protocol {
    /// A read that finds the line in no cache gives an Exclusive copy, as MESI machines do, and not a Shared one.
    pub exclusive_on_first_read: bool,
    /// A read that finds the line dirty elsewhere takes it over with its ownership, as AMD's Zen 4 was seen to do.
    pub migratory: bool,
    /// A read that finds the line dirty elsewhere leaves the old owner without a copy; the reader's is Shared. Where
    /// [`migratory`](Self::migratory) is set too, the reader owns the line as that says.
    #[serde(default)]
    pub relinquish: bool,
}

impl Protocol {
    /// What the text of SWIFT says of the protocol, to the letter: a recalled owner of a dirty line is "to send back the
    /// up-to-date line content to H and relinquish ownership", and H "adds P1 to the set of sharers" (section 2) of a line
    /// that had none, in a figure that shows "a read request invalidating an exclusive copy" (caption of figure 1). A
    /// clean owner "will share the line" and keeps its copy, and an Idle line is answered by DATA_SHAR (section 2).
    pub const SWIFT_2005: Protocol = Protocol {
        exclusive_on_first_read: false,
        migratory: false,
        relinquish: true,
    };
}

/// What a processor wants of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// To read.
    Load,
    /// To read, and to own the line if it has to be fetched: IA-64's `ld.bias`, a load behind a prefetch for
    /// ownership.
    BiasedLoad,
    /// To write, or to read and write in one instruction.
    Store,
}

impl Intent {
    /// What an observed access wants; `None` for a plain prefetch, which may do nothing, and where it is not
    /// known.
    pub fn of(op: Op) -> Option<Intent> {
        match op {
            Op::Load => Some(Intent::Load),
            Op::Store | Op::Rmw => Some(Intent::Store),
            Op::PrefetchOwn => Some(Intent::BiasedLoad),
            Op::Prefetch | Op::Unknown => None,
        }
    }
}

/// What a processor sends when its own cache is not enough: the first message of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// A copy to read.
    ReadShar,
    /// The only copy.
    ReadPriv,
}

impl Request {
    /// The message that starts it.
    pub fn transaction(self) -> Transaction {
        match self {
            Request::ReadShar => Transaction::ReadShar,
            Request::ReadPriv => Transaction::ReadPriv,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transaction().fmt(f)
    }
}

/// The line as one processor has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The only copy, written to.
    Modified,
    /// The only copy, clean.
    Exclusive,
    /// One of the copies, all clean.
    Shared,
    /// No copy.
    Invalid,
}

/// Where an access found the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    /// Owned by the accessing processor.
    Own,
    /// In no cache.
    Idle,
    /// Owned by another processor, clean.
    Clean(Cpu),
    /// Owned by another processor, which wrote it.
    Dirty(Cpu),
    /// Shared. `others` are the sharers besides the accessing processor; 0 when it alone has a copy.
    Shared {
        /// CPUs, besides the one that asks, with a copy.
        others: usize,
    },
}

/// What one access did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the processor had to ask for; `None` for a hit.
    pub request: Option<Request>,
    /// The messages that served the request; none for a hit.
    pub transactions: Transactions,
    /// Where the line was before.
    pub found: Found,
    /// The accessing processor's own copy before.
    pub state: State,
}

impl Outcome {
    /// Whether the line had to be fetched; an upgrade of a Shared copy is no miss.
    pub fn missed(&self) -> bool {
        self.state == State::Invalid
    }

    /// The processor that gave up ownership for this access.
    pub fn hand_off_from(&self) -> Option<Cpu> {
        match self.found {
            Found::Clean(owner) | Found::Dirty(owner) => Some(owner),
            Found::Own | Found::Idle | Found::Shared { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_access_wants_follows_from_what_it_does() {
        assert_eq!(Intent::of(Op::Load), Some(Intent::Load));
        assert_eq!(Intent::of(Op::Store), Some(Intent::Store));
        assert_eq!(Intent::of(Op::Rmw), Some(Intent::Store));
        assert_eq!(Intent::of(Op::PrefetchOwn), Some(Intent::BiasedLoad));
        assert_eq!(Intent::of(Op::Prefetch), None);
    }
}
