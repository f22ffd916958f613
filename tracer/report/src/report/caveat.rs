//! What a reader of a report must know besides its findings, and how much it matters to them.

use serde::{Serialize, Serializer};

/// A sentence or two; a string in the JSON form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caveat {
    /// The sentences.
    pub text: String,
    /// What it changes.
    pub weight: Weight,
}

/// What a caveat changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A finding of this report, or the absence of one, is to be read differently.
    Reading,
    /// Nothing of this: it tells how things were measured, or what is missing at the edge.
    Detail,
}

impl Weight {
    /// Whether it changes how something is read.
    pub(super) fn reading_if(is_concerned: bool) -> Weight {
        if is_concerned {
            Weight::Reading
        } else {
            Weight::Detail
        }
    }
}

impl Caveat {
    /// One that every reader must know.
    pub fn reading(text: impl Into<String>) -> Caveat {
        Caveat {
            text: text.into(),
            weight: Weight::Reading,
        }
    }

    /// One for those who ask for all.
    pub fn detail(text: impl Into<String>) -> Caveat {
        Caveat {
            text: text.into(),
            weight: Weight::Detail,
        }
    }
}

impl Serialize for Caveat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
