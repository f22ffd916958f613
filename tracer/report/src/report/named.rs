//! The names by which JSON and text tell what the model holds as enums.
#![allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "serde passes references"
)]

use serde::{Serialize, Serializer};

use crate::{
    access::Op,
    event::Breadth,
    finding::{Confidence, Verdict},
    names::ObjectKind,
};

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

pub(super) fn object<S: Serializer>(kind: &ObjectKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

pub(super) fn breadth<S: Serializer>(breadth: &Breadth, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(breadth.name())
}
