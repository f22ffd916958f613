//! The names by which JSON and text tell what the model holds as enums.
#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "serde passes references"
)]

use std::{collections::BTreeMap, fmt};

use serde::{Serialize, Serializer};

use crate::{
    access::{Cpu, Op},
    distribution::Quantity,
    event::Breadth,
    finding::{Confidence, Grade, Verdict},
    names::{ObjectKind, Role, TypeKind},
};

/// A number that is written in hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hex(pub u64);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A finding as the report names it: `F1`, `F2`, .. by rank (`I1`, .. for insignificant ones).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingId {
    /// `I1`, not `F1`: one of the lines that are no findings.
    pub insignificant: bool,
    /// From 1.
    pub number: usize,
}

impl FindingId {
    /// `3` and `F3` are findings, `I3` is not one.
    pub fn parse(text: &str) -> Option<FindingId> {
        let (insignificant, number) = match text.split_at_checked(1)? {
            ("F" | "f", number) => (false, number),
            ("I" | "i", number) => (true, number),
            _ => (false, text),
        };
        let plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number| plain && *number > 0)?;
        Some(FindingId {
            insignificant,
            number,
        })
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = if self.insignificant { 'I' } else { 'F' };
        write!(f, "{letter}{}", self.number)
    }
}

impl Serialize for FindingId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// What a finding's kind is called; where there is no verdict, no conflict was seen, or its kind could not be told.
pub(super) fn kind_name(verdict: Option<Verdict>) -> &'static str {
    verdict.map_or("undecided", Verdict::name)
}

/// What a direction is called; `None` where it is not known.
pub(super) fn op_name(op: Op) -> Option<&'static str> {
    match op {
        Op::Load => Some("load"),
        Op::Store => Some("store"),
        Op::Rmw => Some("rmw"),
        Op::Prefetch => Some("prefetch"),
        Op::PrefetchOwn => Some("prefetch for ownership"),
        Op::Unknown => None,
    }
}

pub(super) fn kind<S: Serializer>(verdict: &Option<Verdict>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind_name(*verdict))
}

pub(super) fn op<S: Serializer>(op: &Op, to: S) -> Result<S::Ok, S::Error> {
    op_name(*op).serialize(to)
}

pub(super) fn confidence<S: Serializer>(sure: &Confidence, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(sure.name())
}

pub(super) fn grade<S: Serializer>(grade: &Grade, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(grade.name())
}

pub(super) fn quantity<S: Serializer>(quantity: &Quantity, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("quantity", quantity.name()), ("unit", quantity.unit())])
}

pub(super) fn object<S: Serializer>(kind: &ObjectKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

pub(super) fn breadth<S: Serializer>(breadth: &Breadth, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(breadth.name())
}

pub(super) fn role<S: Serializer>(role: &Role, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match role {
        Role::Member => "member",
        Role::Base => "base",
        Role::Variant => "variant",
        Role::Element => "element",
    })
}

pub(super) fn shape<S: Serializer>(kind: &TypeKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match kind {
        TypeKind::Scalar => "scalar",
        TypeKind::Structure => "struct",
        TypeKind::Union => "union",
        TypeKind::Variants => "variants",
        TypeKind::Array { .. } => "array",
    })
}

/// Nanoseconds in seconds.
pub(super) fn as_seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub(super) fn seconds<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
    as_seconds(*ns).serialize(to)
}

/// In the order of the numbers' digits.
pub(super) fn cpus<S: Serializer>(counts: &BTreeMap<Cpu, u64>, to: S) -> Result<S::Ok, S::Error> {
    let named = counts.iter().map(|(cpu, n)| (cpu.0.to_string(), n));
    named.collect::<BTreeMap<_, _>>().serialize(to)
}
