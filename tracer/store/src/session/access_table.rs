//! Accesses as columns, as they wait to be written, and back.
//!
//! A batch is read block by block, so that its rows come from memory once and not once for each column; and a column
//! that says the same in all rows, as most columns of an emulated program do, takes no memory at all.

use super::{cell::Cell, error::Damage, part_writer::Value, schema::AccessColumns};
use crate::access::{Access, Basis};

pub(super) use super::schema::decode_accesses as decode;

/// Rows that stay in the first cache while all their columns are read.
const BLOCK: usize = 256;

/// One column.
#[derive(Debug, Default)]
pub(super) struct Values<V> {
    rows: usize,
    first: V,
    /// Empty as long as all are like the first.
    all: Vec<V>,
}

impl<V: Value> Values<V> {
    /// The value of all rows, if they have one.
    pub(super) fn same(&self) -> Option<V> {
        (self.all.is_empty() && self.rows > 0).then_some(self.first)
    }

    /// A value for each row, where they are not all the same.
    pub(super) fn all(&self) -> &[V] {
        &self.all
    }

    pub(super) fn extend<R, C: Cell<V::Plain>>(&mut self, rows: &[R], field: impl Fn(&R) -> C) {
        let value = |row: &R| V::of(field(row).store());
        let Some(first) = rows.first() else { return };
        if self.rows == 0 {
            self.first = value(first);
        }
        if self.all.is_empty() && !rows.iter().all(|row| value(row) == self.first) {
            self.all.resize(self.rows, self.first);
            self.all.extend(rows.iter().map(value));
        } else if !self.all.is_empty() {
            self.all.extend(rows.iter().map(value));
        }
        self.rows += rows.len();
    }

    pub(super) fn clear(&mut self) {
        self.rows = 0;
        self.all.clear();
    }
}

/// The table of accesses, [`AccessColumns`], and `decode_accesses`. Each column has after `=` the field of an access; where
/// it may be null, 0 is. Columns in the same braces are read together: one by one, every pass over the rows would come
/// from memory, and all together would take as much memory again.
macro_rules! access_columns {
    (@values Bool) => { Values<bool> };
    (@values U64) => { Values<i64> };
    (@values $narrow:ident) => { Values<i32> };
    (@give $sink:ident, $name:expr, $values:expr,) => { $sink.values($name, $values) };
    (@give $sink:ident, $name:expr, $values:expr, null) => { $sink.positive($name, $values) };
    // Most sources leave most of these empty; parts of older versions lack some.
    (@read $source:ident, $name:expr, U64 null) => {
        $source.present::<i64>($name)?.into_iter().map(Option::unwrap_or_default)
    };
    (@read $source:ident, $name:expr, $narrow:ident null) => {
        $source.present::<i32>($name)?.into_iter().map(Option::unwrap_or_default)
    };
    (@read $source:ident, $name:expr, $kind:ident) => { of_kind!($source, $kind, $name)? };
    (@zip $values:expr) => { $values.into_iter() };
    (@zip $values:expr, $($others:expr),+) => { $values.into_iter().zip(access_columns!(@zip $($others),+)) };
    (@each $column:ident) => { $column };
    (@each $column:ident, $($others:ident),+) => { ($column, access_columns!(@each $($others),+)) };
    (
        $(#[doc = $about:literal])*
        $table:ident: $name:literal, $most:expr, $added:expr;
        $({$(
            $(#[doc = $doc:literal])*
            $column:ident: $kind:ident $coding:ident $($null:ident)? = $field:ident $(. $part:tt)*,
        )+})+
    ) => {
        table! {
            $(#[doc = $about])*
            $table: $name, $most, $added;
            $($($(#[doc = $doc])* $column: $kind $coding $($null)?,)+)+
        }

        /// Accesses that wait to be written. Integers are as Parquet has them, of the same bits.
        #[derive(Debug, Default)]
        pub(super) struct AccessColumns {
            pub(super) batch: Values<i64>,
            $($(pub(super) $column: access_columns!(@values $kind),)+)+
            pub(super) newest_ns: Option<u64>,
        }

        impl AccessColumns {
            /// Adds few accesses of a batch.
            pub(super) fn extend_block(&mut self, rows: &[Access], batch: u64) {
                self.batch.extend(rows, |_| batch);
                $($(self.$column.extend(rows, |row| row.$field $(. $part)*);)+)+
                self.newest_ns = self.newest_ns.max(rows.iter().map(|row| row.time_ns).max());
            }

            /// Empties them and keeps their memory.
            pub(super) fn clear(&mut self) {
                self.batch.clear();
                $($(self.$column.clear();)+)+
                self.newest_ns = None;
            }

            /// Gives all columns. `first` is the number of the first access.
            pub(super) fn encode(&self, first: u64, sink: &mut ColumnSink<'_>) -> Result<(), ParquetError> {
                sink.u64s("seq", (first..).take(self.len()))?;
                sink.values("batch", &self.batch)?;
                $($(access_columns!(@give sink, stringify!($column), &self.$column, $($null)?)?;)+)+
                Ok(())
            }
        }

        pub(super) fn decode_accesses(source: &mut ColumnSource<'_>) -> Result<Run<Access>, Damage> {
            let first = source.first_seq()?;
            let batches = source.u64s("batch")?;
            let mut rows = Vec::with_capacity(source.rows());
            $(
                let values = access_columns!(@zip $(
                    access_columns!(@read source, stringify!($column), $kind $($null)?)
                ),+);
                fill(&mut rows, values, |n, row, access_columns!(@each $($column),+)| {
                    $(row.$field $(. $part)* = load(stringify!($column), n, $column)?;)+
                    Ok(())
                })?;
            )+
            Ok((first, rows, batches))
        }
    };
}

pub(super) use access_columns;

/// Sets in each row what belongs to it; the first time, makes the rows.
pub(super) fn fill<V>(
    rows: &mut Vec<Access>,
    values: impl Iterator<Item = V>,
    set: impl Fn(usize, &mut Access, V) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let made = rows.len();
    for (n, value) in values.enumerate() {
        if n >= made {
            rows.push(Access::BLANK);
        }
        set(n, &mut rows[n], value)?;
    }
    Ok(())
}

impl AccessColumns {
    /// Adds accesses of a batch.
    pub(super) fn extend(&mut self, accesses: &[Access], batch: u64) {
        for rows in accesses.chunks(BLOCK) {
            self.extend_block(rows, batch);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.batch.rows
    }

    /// Whether all are of an emulated program.
    pub(super) fn all_emulated(&self) -> bool {
        self.len() == 0 || self.basis.same() == Some(i32::of(Basis::Emulated.store()))
    }
}
