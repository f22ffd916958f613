//! What the fields of rows are in columns, and back.

use std::num::{NonZeroU32, NonZeroU64};

use super::error::Damage;
use crate::{
    access::{Basis, Op, Wait},
    data_source::DataSource,
    event::{Breadth, WindowEnd},
};

/// A field that a column holds as `S`.
pub(super) trait Cell<S>: Copy {
    fn store(self) -> S;

    /// `None` if the value means nothing.
    fn load(value: S) -> Option<Self>;
}

/// The field that row `row` of a column gives.
pub(super) fn load<S: Copy + Into<u64>, C: Cell<S>>(
    column: &'static str,
    row: usize,
    value: S,
) -> Result<C, Damage> {
    C::load(value).ok_or_else(|| Damage::value(column, row, value))
}

impl<S: Copy> Cell<S> for S {
    fn store(self) -> S {
        self
    }

    fn load(value: S) -> Option<S> {
        Some(value)
    }
}

/// Fields of other types than their column.
macro_rules! cells {
    ($($field:ty as $stored:ty: |$some:ident| $store:expr, |$value:ident| $load:expr;)+) => {$(
        impl Cell<$stored> for $field {
            fn store(self) -> $stored {
                let $some = self;
                $store
            }

            fn load($value: $stored) -> Option<$field> {
                $load
            }
        }
    )+};
}

// Where there may be none, 0 is none: written, it is null, and read, it is damage that says no more than null.
cells! {
    u8 as u32: |byte| byte.into(), |value| value.try_into().ok();
    u16 as u32: |size| size.into(), |value| value.try_into().ok();
    Option<NonZeroU32> as u32: |some| some.map_or(0, NonZeroU32::get), |value| Some(NonZeroU32::new(value));
    Option<NonZeroU64> as u64: |some| some.map_or(0, NonZeroU64::get), |value| Some(NonZeroU64::new(value));
    Option<DataSource> as u64: |some| some.map_or(0, DataSource::raw), |value| Some(DataSource::new(value));
}

/// Fields of which each value has a number. What has none does not compile.
macro_rules! codes {
    ($($field:ident: $($value:ident $code:literal),+;)+) => {$(
        impl Cell<u32> for $field {
            fn store(self) -> u32 {
                match self {
                    $($field::$value => $code,)+
                }
            }

            fn load(code: u32) -> Option<$field> {
                match code {
                    $($code => Some($field::$value),)+
                    _ => None,
                }
            }
        }
    )+};
}

codes! {
    Op: Load 0, Store 1, Rmw 2, Prefetch 3, Unknown 4, PrefetchOwn 5;
    Basis: Stalled 0, Decoded 1, Harvested 2, Trapped 3, Sampled 4, Emulated 5;
    Wait: AtInstruction 0, AtBarrier 1, InSpinLoop 2;
    Breadth: Cpus 0, Threads 1;
    WindowEnd: Hits 0, Time 1, Asked 2, Gone 3, CpusChanged 4;
}
