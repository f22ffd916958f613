//! Library types that only wrap one value: the reader knows the wrapper, not its private member.

use super::members::{FieldMember, Members};
use crate::{
    dwarf::{Entry, View},
    missing::Missing,
};

/// Names without template arguments. C++ first, then Rust.
const WRAPPERS: &[&str] = &[
    "atomic",
    "__atomic_base",
    "__atomic_float",
    "__atomic_impl",
    "__cxx_atomic_impl",
    "__cxx_atomic_base_impl",
    "atomic_flag",
    "__atomic_flag_base",
    "array",
    "Atomic",
    "AtomicBool",
    "AtomicI8",
    "AtomicI16",
    "AtomicI32",
    "AtomicI64",
    "AtomicI128",
    "AtomicIsize",
    "AtomicPtr",
    "AtomicU8",
    "AtomicU16",
    "AtomicU32",
    "AtomicU64",
    "AtomicU128",
    "AtomicUsize",
    "CachePadded",
    "Cell",
    "ManuallyDrop",
    "MaybeDangling",
    "MaybeUninit",
    "NonNull",
    "Pin",
    "SyncUnsafeCell",
    "Unique",
    "UnsafeCell",
    "UnsafePinned",
    "Wrapping",
];

impl View<'_> {
    /// The one member with bytes in it, if the type is a known wrapper. Rust's alignment markers and C++
    /// empty bases have none.
    pub(crate) fn wrapped<'m>(
        &self,
        entry: &Entry<'_>,
        members: &'m Members,
    ) -> Result<Option<&'m FieldMember>, Missing> {
        let Some(name) = entry.name else {
            return Ok(None);
        };
        let base = name.split(|&byte| byte == b'<').next().unwrap_or(name);
        if !WRAPPERS.iter().any(|wrapper| wrapper.as_bytes() == base) {
            return Ok(None);
        }
        // An empty C++ base still has a size of one byte, but it shares its place.
        let empty = |member: &FieldMember| -> Result<bool, Missing> {
            if member.bit_size == Some(0) {
                return Ok(true);
            }
            if !member.label.is_empty() {
                return Ok(false);
            }
            let (die, base) = self.peel(member.ty)?;
            Ok(base.byte_size == Some(1) && self.members(die)?.fields.is_empty())
        };
        let mut only = None;
        for member in &members.fields {
            if empty(member)? {
                continue;
            }
            if only.is_some() || !members.variants.is_empty() {
                return Ok(None);
            }
            only = Some(member);
        }
        Ok(only)
    }
}
