//! Library types that only wrap one value: the reader knows the wrapper, not its private member.

use super::members::{FieldMember, Members};
use crate::{
    dwarf::{Die, Entry, View},
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
    "Arc",
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
    "Rc",
    "SyncUnsafeCell",
    "Unique",
    "UnsafeCell",
    "UnsafePinned",
    "Wrapping",
];

/// Types whose inside means nothing to their users: the member that has the type is as far as a path goes.
const OPAQUE: &[&str] = &[
    "condition_variable",
    "mutex",
    "pthread_barrier_t",
    "pthread_cond_t",
    "pthread_mutex_t",
    "pthread_rwlock_t",
    "recursive_mutex",
    "sem_t",
    "shared_mutex",
    OWNING_POINTER,
];

/// What Rust's counted pointers point to: two counts, and the value that the source knows alone.
const COUNTED: &[&str] = &["ArcInner", "RcBox", "RcInner"];

/// Written as the pointer in it is: `owner->hits`.
const OWNING_POINTER: &str = "unique_ptr";

impl View<'_> {
    /// Whether paths end at members of this type. Some of these are typedefs of unnamed unions: typedefs are looked
    /// through one by one.
    pub(crate) fn is_opaque(&self, ty: Die) -> Result<bool, Missing> {
        let mut at = ty;
        for _ in 0..super::DEEPEST {
            let entry = self.entry(at)?;
            if entry.name.is_some_and(|name| listed(OPAQUE, name)) {
                return Ok(true);
            }
            match (entry.tag, entry.ty) {
                (
                    gimli::DW_TAG_typedef
                    | gimli::DW_TAG_const_type
                    | gimli::DW_TAG_volatile_type
                    | gimli::DW_TAG_atomic_type,
                    Some(next),
                ) => at = next,
                _ => break,
            }
        }
        Ok(false)
    }

    /// Whether the (peeled) type is written like the pointer that it holds.
    pub(super) fn is_owning_pointer(&self, ty: Die) -> bool {
        let entry = self.entry(ty);
        entry.is_ok_and(|entry| {
            entry
                .name
                .is_some_and(|name| listed(&[OWNING_POINTER], name))
        })
    }

    /// The value behind a counted pointer to the (peeled) type: its path in there, its place and its type.
    pub(crate) fn counted(&self, ty: Die) -> Option<(String, u64, Die)> {
        let entry = self.entry(ty).ok()?;
        if !entry.name.is_some_and(|name| listed(COUNTED, name)) {
            return None;
        }
        let members = self.members(ty).ok()?;
        let is_value = |member: &&FieldMember| matches!(&*member.label, ".data" | ".value");
        let value = members.fields.iter().find(is_value)?;
        Some((value.label.clone(), value.offset(), value.ty))
    }

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
        if !listed(WRAPPERS, name) {
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

/// Whether a list has the name, whatever its template arguments.
fn listed(list: &[&str], name: &[u8]) -> bool {
    let base = name.split(|&byte| byte == b'<').next().unwrap_or(name);
    list.iter().any(|listed| listed.as_bytes() == base)
}
