//! How tables are declared, and what is made of each column's one declaration.

use std::sync::Arc;

use parquet::{
    basic::{LogicalType, Repetition, Type as Physical},
    errors::ParquetError,
    schema::types::{Type, TypePtr},
};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// One bit.
    Bool,
    /// Up to 255; Parquet INT32 annotated UINT_8.
    U8,
    /// Up to 65535; Parquet INT32 annotated UINT_16.
    U16,
    /// Parquet INT32 annotated UINT_32.
    U32,
    /// Parquet INT64 annotated UINT_64.
    U64,
    /// UTF-8; Parquet BYTE_ARRAY annotated STRING.
    Text,
}

/// How a column's values are laid out before zstd. Chosen by measurement; readers do not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coding {
    /// As they are.
    Plain,
    /// Distinct values once, then indices; plain from where the dictionary exceeds its limit.
    Dictionary,
    /// Differences, bit-packed in blocks.
    Delta,
}

/// A column of a table, as its files have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub null: bool,
    pub coding: Coding,
}

/// One table: the name of its folder and its columns in file order.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub(super) name: &'static str,
    /// Rows in one segment.
    pub(super) max_rows: usize,
    pub(super) columns: &'static [Column],
    /// How many of the last columns parts of older versions lack, by version; they may be null.
    pub(super) added: &'static [usize],
}

/// A row and its place in the stream.
#[derive(Debug)]
pub(super) struct Placed<T> {
    /// Number of the row.
    pub seq: u64,
    /// Number of its batch.
    pub batch: u64,
    pub row: T,
}

/// Rows that are numbered one after the other: the number of the first, the rows, and the batch number of each.
pub(super) type Run<T> = (u64, Vec<T>, Vec<u64>);

/// A [`Table`]: name of its folder, most rows in a segment, how many of the last columns older parts lack; then its columns,
/// each as `/// unit | meaning`, name, [`Kind`], [`Coding`], and `null` if it may be. Before them, all tables have `seq` and
/// `batch`. Documentation has the columns as a table.
macro_rules! table {
    (@null) => { false };
    (@null null) => { true };
    (
        $(#[doc = $about:literal])*
        $table:ident: $name:literal, $most:expr, $added:expr;
        $($(#[doc = $doc:literal])* $column:ident: $kind:ident $coding:ident $($null:ident)?,)+
    ) => {
        $(#[doc = $about])*
        #[doc = "\n| column | type | unit | meaning |\n|---|---|---|---|\n| seq, batch | U64 | | as above |"]
        $(#[doc = concat!("| ", stringify!($column), " | ", stringify!($kind $($null)?), " |" $(, $doc)*, " |")])+
        pub static $table: Table = Table {
            name: $name,
            max_rows: $most,
            columns: &[
                Column { name: "seq", kind: Kind::U64, null: false, coding: Coding::Delta },
                Column { name: "batch", kind: Kind::U64, null: false, coding: Coding::Delta },
                $(Column {
                    name: stringify!($column),
                    kind: Kind::$kind,
                    null: table!(@null $($null)?),
                    coding: Coding::$coding,
                },)+
            ],
            added: &$added,
        };
    };
}

/// The method of sink or source for a kind of column.
macro_rules! of_kind {
    ($of:ident, Bool, $($given:expr),+) => { $of.bools($($given),+) };
    ($of:ident, U64, $($given:expr),+) => { $of.u64s($($given),+) };
    ($of:ident, U64 null, $($given:expr),+) => { $of.optional_u64s($($given),+) };
    ($of:ident, Text, $($given:expr),+) => { $of.texts($($given),+) };
    ($of:ident, Text null, $($given:expr),+) => { $of.optional_texts($($given),+) };
    ($of:ident, $narrow:ident, $($given:expr),+) => { $of.u32s($($given),+) };
    ($of:ident, $narrow:ident null, $($given:expr),+) => { $of.optional_u32s($($given),+) };
}

/// A [`table`] and two functions, of which the second line says the names:
///
/// - `encode(row: Row)` gives all columns: of each row, what stands after `=`.
/// - `decode(n) -> Rows, places` reads them: after `=>` stands a row, made of its values, which have the names of their
///   columns, and of its number `n`; a second name there is a state that all rows share. `places` is `numbered` or `placed`,
///   by which the source puts numbers to rows.
///
/// After `and` stand columns that neither function knows.
macro_rules! rows {
    (
        $(#[doc = $about:literal])*
        $table:ident: $name:literal, $most:expr, $added:expr;
        $encode:ident($row:ident: $Row:ty), $decode:ident($n:tt $(, $state:ident: $State:ty)?) -> $Rows:ty, $places:ident;
        $($(#[doc = $doc:literal])* $column:ident: $kind:ident $coding:ident $($null:ident)? = $field:expr,)+
        => $read:expr
        $(, and $($others:tt)+)?
    ) => {
        table! {
            $(#[doc = $about])*
            $table: $name, $most, $added;
            $($(#[doc = $doc])* $column: $kind $coding $($null)?,)+
            $($($others)+)?
        }

        pub(super) fn $encode(rows: &[Placed<$Row>], sink: &mut ColumnSink<'_>) -> Result<(), ParquetError> {
            sink.u64s("seq", rows.iter().map(|placed| placed.seq))?;
            sink.u64s("batch", rows.iter().map(|placed| placed.batch))?;
            $(
                let values = rows.iter().map(|Placed { row: $row, .. }| $field);
                of_kind!(sink, $kind $($null)?, stringify!($column), values)?;
            )+
            Ok(())
        }

        pub(super) fn $decode(source: &mut ColumnSource<'_>) -> Result<$Rows, Damage> {
            source.$places(|source| {
                $(let mut $state = <$State>::default();)?
                $(let mut $column = of_kind!(source, $kind $($null)?, stringify!($column))?.into_iter();)+
                let mut rows = Vec::with_capacity(source.rows());
                for $n in 0..source.rows() {
                    $(let Some($column) = $column.next() else {
                        return Err(Damage::Meta("its columns have different lengths"));
                    };)+
                    rows.push($read);
                }
                Ok(rows)
            })
        }
    };
}

pub(super) use {of_kind, rows, table};

impl Table {
    /// The table as Parquet describes it.
    pub(super) fn parquet_type(&self) -> Result<TypePtr, ParquetError> {
        let fields = self
            .columns
            .iter()
            .map(Column::parquet_type)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(
            Type::group_type_builder(self.name)
                .with_fields(fields)
                .build()?,
        ))
    }
}

impl Column {
    fn parquet_type(&self) -> Result<TypePtr, ParquetError> {
        let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
        let (physical, logical) = match self.kind {
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::U8 => (Physical::INT32, unsigned(8)),
            Kind::U16 => (Physical::INT32, unsigned(16)),
            Kind::U32 => (Physical::INT32, unsigned(32)),
            Kind::U64 => (Physical::INT64, unsigned(64)),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.null {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        Ok(Arc::new(
            Type::primitive_type_builder(self.name, physical)
                .with_logical_type(logical)
                .with_repetition(repetition)
                .build()?,
        ))
    }
}
