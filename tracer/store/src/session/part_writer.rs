//! One part as bytes: columns in the table's order, one row group, sealed.
//!
//! Parts are made in memory, since a segment is bounded, and reach the disk by one write.

use std::sync::Arc;

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::ColumnPath,
};

use super::{
    access_table::Values,
    origin::Origin,
    schema::{Coding, Column, SEGMENT_KEY, Table},
    seal,
};

/// Measured on 2 million synthetic accesses (skewed addresses and ips): level 3 saves 4 % of bytes for 10 %
/// more time, none at all takes 1.9 times the bytes for 12 % less time.
const ZSTD_LEVEL: i32 = 1;

/// Rows per page. Pages of a column are compressed one by one; the crate's 20,000 take 4 % more bytes and
/// 5 % more time.
const PAGE_ROWS: usize = 1 << 17;

/// The columns of a part being written; each is given once, in the table's order.
pub(super) struct ColumnSink<'a> {
    table: &'static Table,
    rows: usize,
    group: SerializedRowGroupWriter<'a, Vec<u8>>,
    given: usize,
}

/// Makes a part. `origin` and `facts` go into its footer; `fill` gives the columns and is not asked when there are
/// no rows.
pub(super) fn write_part(
    table: &'static Table,
    rows: usize,
    origin: &Origin,
    facts: String,
    fill: impl FnOnce(&mut ColumnSink<'_>) -> Result<(), ParquetError>,
) -> Result<Vec<u8>, ParquetError> {
    write_part_coded(table, |column| column.coding, rows, origin, facts, fill)
}

/// The same, with another coding of the columns than the table's.
pub(super) fn write_part_coded(
    table: &'static Table,
    coding: impl Fn(&Column) -> Coding,
    rows: usize,
    origin: &Origin,
    facts: String,
    fill: impl FnOnce(&mut ColumnSink<'_>) -> Result<(), ParquetError>,
) -> Result<Vec<u8>, ParquetError> {
    let properties = properties(table, &coding)?;
    let mut file = SerializedFileWriter::new(Vec::new(), table.parquet_type()?, properties)?;
    if rows > 0 {
        let mut sink = ColumnSink {
            table,
            rows,
            group: file.next_row_group()?,
            given: 0,
        };
        fill(&mut sink)?;
        sink.group.close()?;
    }
    for entry in origin.entries() {
        file.append_key_value_metadata(entry.clone());
    }
    file.append_key_value_metadata(KeyValue::new(SEGMENT_KEY.to_owned(), facts));
    // Last, so that it is near the end of the file, where it is looked for.
    file.append_key_value_metadata(KeyValue::new(
        seal::SEAL_KEY.to_owned(),
        seal::UNSEALED.to_owned(),
    ));
    let mut part = file.into_inner()?;
    seal::seal(&mut part)
        .ok_or_else(|| ParquetError::General("the footer has no place for the seal".to_owned()))?;
    Ok(part)
}

fn properties(
    table: &Table,
    coding: &dyn Fn(&Column) -> Coding,
) -> Result<WriterPropertiesPtr, ParquetError> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("cohtrace ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        // A page index helps to skip pages; parts have one or two per column.
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(PAGE_ROWS);
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        if matches!(column.name, "time_ns" | "open_ns" | "end_ns") {
            // Lets a query over a stretch of time skip whole parts.
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::Chunk);
        }
        builder = match coding(column) {
            Coding::Plain => builder.set_column_dictionary_enabled(path, false),
            Coding::Dictionary => builder.set_column_dictionary_enabled(path, true),
            Coding::Delta => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    Ok(Arc::new(builder.build()))
}

/// A value as Parquet has it.
pub(super) trait Value: Copy + PartialEq + Default {
    /// Parquet's name for it.
    type Type: DataType<T = Self>;

    /// What it is to us: integers of the same bits have no sign.
    type Plain: Copy + Default;

    fn of(plain: Self::Plain) -> Self;

    fn plain(self) -> Self::Plain;
}

macro_rules! values {
    ($($value:ty as $plain:ty: $name:ty, $of:expr, $to:expr;)+) => {$(
        impl Value for $value {
            type Type = $name;
            type Plain = $plain;

            fn of(plain: $plain) -> $value {
                $of(plain)
            }

            fn plain(self) -> $plain {
                $to(self)
            }
        }
    )+};
}

values! {
    bool as bool: BoolType, bool::from, bool::from;
    i32 as u32: Int32Type, u32::cast_signed, i32::cast_unsigned;
    i64 as u64: Int64Type, u64::cast_signed, i64::cast_unsigned;
}

impl ColumnSink<'_> {
    /// What was buffered as a column.
    pub(super) fn values<V: Value>(
        &mut self,
        name: &str,
        values: &Values<V>,
    ) -> Result<(), ParquetError> {
        match values.same() {
            Some(value) => self.put::<V::Type>(name, &vec![value; self.rows], None),
            None => self.put::<V::Type>(name, values.all(), None),
        }
    }

    /// The same of a column that is null where that is 0.
    pub(super) fn positive<V: Value>(
        &mut self,
        name: &str,
        values: &Values<V>,
    ) -> Result<(), ParquetError> {
        let nothing = V::default();
        if values.same() == Some(nothing) {
            return self.put::<V::Type>(name, &[], Some(&vec![0; self.rows]));
        }
        let same = values.same().map(|value| vec![value; self.rows]);
        let values = same.as_deref().unwrap_or(values.all());
        let levels: Vec<i16> = (values.iter())
            .map(|value| i16::from(*value != nothing))
            .collect();
        let present = values.iter().copied().filter(|value| *value != nothing);
        let present: Vec<V> = present.collect();
        self.put::<V::Type>(name, &present, Some(&levels))
    }

    /// U8, U16 and U32 columns.
    pub(super) fn u32s(
        &mut self,
        name: &str,
        values: impl Iterator<Item = u32>,
    ) -> Result<(), ParquetError> {
        self.put_all::<Int32Type>(name, values.map(i32::of))
    }

    pub(super) fn u64s(
        &mut self,
        name: &str,
        values: impl Iterator<Item = u64>,
    ) -> Result<(), ParquetError> {
        self.put_all::<Int64Type>(name, values.map(i64::of))
    }

    pub(super) fn bools(
        &mut self,
        name: &str,
        values: impl Iterator<Item = bool>,
    ) -> Result<(), ParquetError> {
        self.put_all::<BoolType>(name, values)
    }

    pub(super) fn texts<'v>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = &'v str>,
    ) -> Result<(), ParquetError> {
        self.put_all::<ByteArrayType>(name, values.map(ByteArray::from))
    }

    pub(super) fn optional_u32s(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<u32>>,
    ) -> Result<(), ParquetError> {
        self.put_optional::<Int32Type>(name, values.map(|value| value.map(i32::of)))
    }

    pub(super) fn optional_u64s(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<u64>>,
    ) -> Result<(), ParquetError> {
        self.put_optional::<Int64Type>(name, values.map(|value| value.map(i64::of)))
    }

    pub(super) fn optional_texts<'v>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<&'v str>>,
    ) -> Result<(), ParquetError> {
        self.put_optional::<ByteArrayType>(name, values.map(|value| value.map(ByteArray::from)))
    }

    fn put_all<T: DataType>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = T::T>,
    ) -> Result<(), ParquetError> {
        let values: Vec<T::T> = values.collect();
        self.put::<T>(name, &values, None)
    }

    fn put_optional<T: DataType>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<T::T>>,
    ) -> Result<(), ParquetError> {
        let mut present = Vec::new();
        let mut levels = Vec::new();
        for value in values {
            levels.push(i16::from(value.is_some()));
            present.extend(value);
        }
        self.put::<T>(name, &present, Some(&levels))
    }

    fn put<T: DataType>(
        &mut self,
        name: &str,
        values: &[T::T],
        levels: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let expected = self.table.columns.get(self.given);
        let expected = expected.map(|column| column.name);
        debug_assert_eq!(expected, Some(name), "columns come in the table's order");
        self.given += 1;
        let Some(mut column) = self.group.next_column()? else {
            return Err(ParquetError::General(format!("no column for {name}")));
        };
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}
