//! A layout as plain data: JSON schema 1 of `cohtrace layout`. The text form prints from the same values.

use serde::Serialize;

use crate::{
    access::{CostUnit, Op},
    finding::{Confidence, Verdict},
    names::{ObjectKind, Role, TypeKind},
    report::{
        model::{FindingId, Hex, Line, Thread, Tool},
        named,
    },
};

/// Version of this schema.
pub const SCHEMA: u32 = 1;

/// The layout of a finding's object.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Layout {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Who wrote it.
    pub tool: Tool,
    /// The finding, as the report names it: `F1`.
    pub finding: FindingId,
    /// Its kind, as in the report.
    #[serde(serialize_with = "named::kind")]
    pub kind: Option<Verdict>,
    /// How sure the kind is, as in the report.
    #[serde(serialize_with = "named::confidence")]
    pub confidence: Confidence,
    /// Share of the targets' sampled time that the line costs, 0..1.
    pub cost_share: f64,
    /// What it is a share of, as in the report's run.
    pub cost_unit: CostUnit,
    /// The finding's line.
    pub line: Line,
    /// Whose type it is.
    pub object: Object,
    /// The declaration from top to bottom.
    pub rows: Vec<Row>,
    /// The type is too large to be listed whole.
    pub is_cut: bool,
    /// The layout that parts what should not be together; `None` where another layout does not help.
    pub proposal: Option<Proposal>,
    /// What to change, in sentences, as in the report.
    pub advice: Option<String>,
    /// What that gains, in a sentence.
    pub gain: Option<String>,
    /// What could not be seen or named.
    pub caveats: Vec<String>,
}

/// The object.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Object {
    /// As in the report.
    #[serde(serialize_with = "named::object")]
    pub kind: ObjectKind,
    /// Variable.
    pub name: Option<String>,
    /// Of a thread-local variable: whose it is.
    pub thread: Option<String>,
    /// Type; `type` in JSON.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Where the type is declared.
    pub file: Option<String>,
    /// Line in `file`.
    pub declared_line: Option<u32>,
    /// A virtual address of its first byte.
    pub address: Option<Hex>,
    /// Bytes from the start of a cache line to its first byte.
    pub into_line: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes that its type is aligned to.
    pub alignment: Option<u64>,
    /// Cache lines that it has bytes on.
    pub lines: u64,
    /// Bytes of padding, those of all elements; what one arm of a union leaves is none.
    pub holes_bytes: u64,
    /// How many holes that is.
    pub holes: u64,
}

/// One line of the declaration.
#[derive(Debug, Clone, Serialize, PartialEq)]
#[serde(tag = "row", rename_all = "kebab-case")]
pub enum Row {
    /// A cache line begins.
    Line(LineRow),
    /// A member with nothing inside that is listed.
    Member(Member),
    /// A member whose inside follows.
    Begin(Member),
    /// The end of the last `begin` at this depth; the same member.
    End(Member),
    /// Bits that nothing has.
    Hole(Hole),
    /// Elements that nobody was seen to touch, left out.
    Elements(Elements),
}

/// Where a cache line begins.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct LineRow {
    /// Number of the line, from 0: the one that the object starts on. `last` of several that begin in one member.
    pub first: u64,
    /// See `first`.
    pub last: u64,
    /// A virtual address of the first.
    pub address: Option<Hex>,
    /// Byte of the object at which the first begins; 0 for line 0.
    pub offset: u64,
    /// Bytes of the row above that are on the first line already; `None` where it begins between rows.
    pub behind: Option<u64>,
    /// Threads seen on it in this object; of several lines, on any of them.
    pub threads: Vec<Thread>,
    /// Of these, some stored, and there are others.
    pub shared: bool,
    /// It is the finding's.
    pub of_finding: bool,
}

/// A member in its place.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Member {
    /// Nesting; members of the object have 1.
    pub depth: usize,
    /// What it is to the type around it.
    #[serde(serialize_with = "named::role")]
    pub role: Role,
    /// What its type is made of.
    #[serde(serialize_with = "named::shape")]
    pub shape: TypeKind,
    /// Without a dot; empty for anonymous ones.
    pub name: String,
    /// From the object's start, as the report names it: `.slots[1].served`.
    pub path: String,
    /// `type` in JSON.
    #[serde(rename = "type")]
    pub type_name: String,
    /// As the source would declare it, without bases' and members' insides.
    pub declaration: String,
    /// Bytes from the object's start.
    pub offset: u64,
    /// Bytes; those touched by a bit-field; `None` for an array without a bound.
    pub size: Option<u64>,
    /// Of a bit-field: its first bit from `offset`.
    pub first_bit: Option<u64>,
    /// Of a bit-field: how many bits.
    pub bits: Option<u64>,
    /// Bytes, where the source states an alignment above that of any scalar.
    pub alignment: Option<u64>,
    /// Base classes are virtual: where they lie is known at run time only, and holes are not.
    pub has_virtual_base: bool,
    /// Who was seen to use it, costliest first.
    pub uses: Vec<Use>,
}

/// What threads do to a member.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Use {
    /// Its direction.
    #[serde(serialize_with = "named::op")]
    pub op: Op,
    /// Threads that accessed it.
    pub threads: Vec<Thread>,
    /// Share of the targets' sampled time, 0..1.
    pub cost_share: f64,
    /// Times seen in samples.
    pub count: u64,
    /// Times trapped in watch windows.
    pub trapped: u64,
}

/// Padding.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Hole {
    /// As [`Member::depth`].
    pub depth: usize,
    /// First byte from the object's start.
    pub offset: u64,
    /// Bits from `offset` on.
    pub first_bit: u64,
    /// How many bits.
    pub bits: u64,
    /// It is behind the last member.
    pub at_end: bool,
    /// Who was seen to touch it.
    pub uses: Vec<Use>,
}

/// Elements left out.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Elements {
    /// As [`Member::depth`].
    pub depth: usize,
    /// Index of the first.
    pub first: u64,
    /// Index of the last.
    pub last: u64,
    /// Bytes from the object's start.
    pub offset: u64,
    /// Bytes of all of them.
    pub size: u64,
}

/// A layout that parts what should not be together.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Proposal {
    /// The type that changes; `type` in JSON.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Bytes of the type now.
    pub size: u64,
    /// Bytes of it then.
    pub new_size: u64,
    /// How many of them the object is made of.
    pub count: u64,
    /// Cache lines of the object now.
    pub lines: u64,
    /// Cache lines of it then.
    pub new_lines: u64,
    /// What it has to start at a multiple of, bytes.
    pub alignment: u64,
    /// Members in their new order; empty where the type stays, or has none.
    pub members: Vec<NewMember>,
}

/// A member in its new place.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct NewMember {
    /// Without a dot.
    pub name: String,
    /// As the source would declare it, with what makes it start a line.
    pub declaration: String,
    /// Bytes from the start; `None` in Rust, where the compiler decides.
    pub offset: Option<u64>,
    /// Size in bytes.
    pub size: u64,
    /// It starts a line of its own.
    pub starts_line: bool,
    /// Who uses it now.
    pub threads: Vec<Thread>,
}
