//! What advice is made from, and what it is.

use serde::Serialize;

use super::role::Role;
use crate::{
    access::{LineKey, LineSize},
    names::{Language, ObjectName},
};

/// How the threads on a line use its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// No byte that one thread stores is touched by another.
    False,
    /// Some bytes are.
    True,
    /// Both on one line.
    Mixed,
}

/// Everything that advice about one line depends on.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    /// The verdict.
    pub sharing: Sharing,
    /// The line.
    pub line: LineKey,
    /// Bytes of a line.
    pub line_size: LineSize,
    /// Objects with bytes on the line.
    pub objects: &'a [ObjectName],
    /// What should not be on one line with each other. At least one for any finding.
    pub units: &'a [Unit],
    /// Language of the accessing code, for objects that do not know theirs.
    pub language: Option<Language>,
    /// What the truly shared words are for.
    pub words: &'a [Word],
    /// Processes seen on the line.
    pub processes: usize,
    /// What is known of all lines, where this is one of many that are one thing.
    pub many: Option<Many>,
}

/// Many lines of one thing: slots of a ring, an array of locks, nodes of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Many {
    /// Each of the pieces that repeat is one thread's, as far as seen.
    pub own_pieces: bool,
}

/// Touched bytes of the line that may stay together: one thread's own, or one truly shared field, or
/// everything that is only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// First byte and number of bytes of each piece, ascending, not overlapping.
    pub pieces: Vec<(u8, u16)>,
    /// What the pieces are, in the same order, without repetitions.
    pub fields: Vec<Field>,
    /// Threads that store here.
    pub writers: usize,
    /// Threads that load here and do not store.
    pub readers: usize,
    /// Source lines that touch it, costliest first: `worker.c:31`, or a function.
    pub code: Vec<String>,
}

impl Unit {
    /// Some thread stores bytes that another touches.
    pub fn truly_shared(&self) -> bool {
        self.writers > 0 && self.writers + self.readers > 1
    }
}

/// Which object, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// Index into [`Scene::objects`]; `None` where no object is known.
    pub object: Option<usize>,
    /// As the report's rows name it: `.hits`, `[3]`, `other.count`; `None` when nothing is known.
    pub label: Option<String>,
}

/// Bytes that are accessed together, stored by one thread and touched by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As the report's rows name it: `.lock`, `total`; its bytes where it has no name.
    pub name: String,
    /// With what it is of, as in sentences: `account.lock`.
    pub full_name: String,
    /// It is not a name, but bytes of the line.
    pub is_nameless: bool,
    /// Threads that store.
    pub writers: usize,
    /// Threads that only load.
    pub readers: usize,
    /// Some store is atomic.
    pub is_atomic: bool,
    /// What it is for.
    pub role: Role,
    /// There are many of it, each used by so many threads.
    pub is_each: bool,
}

/// The kind of change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceKind {
    /// Move members of a struct to lines of their own.
    SeparateFields,
    /// Move variables to lines of their own.
    SeparateVariables,
    /// Grow an array's elements to whole lines.
    PadElements,
    /// Start an object at a line.
    AlignObject,
    /// Move byte ranges apart, in memory whose type is not known.
    SeparateBytes,
    /// Touch the shared bytes less.
    ReduceSharing,
    /// Move the independent bytes away, and touch the shared ones less.
    SeparateAndReduce,
    /// Nothing to say.
    #[default]
    None,
}

/// What to change, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The kind of change.
    pub kind: AdviceKind,
    /// Sentences; lines that start with four spaces are code.
    pub text: String,
    /// Fields to move apart; empty for true sharing.
    pub fields: Vec<String>,
    /// Bytes of memory that the change costs; `None` where the type is unknown.
    pub bytes: Option<u64>,
    /// What to do about each truly shared word, in the scene's order.
    pub words: Vec<WordAdvice>,
}

/// What to do about one truly shared word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WordAdvice {
    /// [`Word::name`].
    pub field: String,
    /// What it is for.
    pub role: Role,
    /// Sentences.
    pub text: String,
}
