//! One part from bytes: sealed, of the right columns, with believable sizes, then decoded.
//!
//! Nothing here trusts the file: what is allocated is bounded by what was checked before.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use parquet::{
    column::reader::ColumnReaderImpl,
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    file::{
        metadata::ParquetMetaData,
        reader::{FileReader, RowGroupReader, SerializedFileReader},
    },
};

use super::{
    claims,
    error::Damage,
    origin::Origin,
    part_writer::Value,
    schema::{MAX_SEGMENT_TEXT_BYTES, Placed, Run, SEGMENT_KEY, Table},
    seal,
};

/// The columns of a part being read, by name.
pub(super) struct ColumnSource<'a> {
    table: &'static Table,
    /// `None` when there are no rows.
    group: Option<Box<dyn RowGroupReader + 'a>>,
    rows: usize,
    text_bytes: usize,
}

/// Checks a part, which is to be of that origin, and has `take` read its columns; `take` is given the footer's facts first.
pub(super) fn read_part<T>(
    table: &'static Table,
    part: Vec<u8>,
    origin: &Origin,
    take: impl FnOnce(&str, &mut ColumnSource<'_>) -> Result<T, Damage>,
) -> Result<T, Damage> {
    seal::check(&part)?;
    read_sealed_part(table, part, origin, take)
}

/// [`read_part`] past the seal. A file can be sealed by anyone, so all other checks are made here.
pub(super) fn read_sealed_part<T>(
    table: &'static Table,
    part: Vec<u8>,
    origin: &Origin,
    take: impl FnOnce(&str, &mut ColumnSource<'_>) -> Result<T, Damage>,
) -> Result<T, Damage> {
    // The parquet crate asserts and indexes where a hostile file can lead it (its `byte_range` asserts on
    // a negative offset, for one). Nothing of ours is shared with the closure, so a panic in it leaves no
    // broken state behind, and to us it is one more way to say "damaged".
    catch_unwind(AssertUnwindSafe(|| {
        let bytes = Bytes::from(part);
        let file = SerializedFileReader::new(bytes.clone())?;
        check_columns(table, file.metadata())?;
        let rows = check_rows(table, file.metadata())?;
        claims::check(table, &bytes, file.metadata(), rows)?;
        origin.check(file.metadata().file_metadata().key_value_metadata())?;
        let facts = facts(file.metadata())?;
        let group = if rows == 0 {
            None
        } else {
            Some(file.get_row_group(0)?)
        };
        let mut columns = ColumnSource {
            table,
            group,
            rows,
            text_bytes: 0,
        };
        take(facts, &mut columns)
    }))
    .unwrap_or(Err(Damage::Panicked))
}

fn check_columns(table: &'static Table, metadata: &ParquetMetaData) -> Result<(), Damage> {
    let different = |detail: String| Damage::Columns {
        table: table.name,
        detail,
    };
    let expected = table.parquet_type()?;
    let found = metadata.file_metadata().schema();
    let (expected, found) = (expected.get_fields(), found.get_fields());
    for (expected, found) in expected.iter().zip(found) {
        if expected.name() != found.name() {
            return Err(different(format!(
                "{} where {} should be",
                found.name(),
                expected.name()
            )));
        }
        if expected != found {
            return Err(different(format!("{} has another type", found.name())));
        }
    }
    let lacks = expected.len().saturating_sub(found.len());
    let older = table.added.contains(&lacks);
    if found.len() != expected.len() && !older {
        return Err(different(format!(
            "{} columns instead of {}",
            found.len(),
            expected.len()
        )));
    }
    Ok(())
}

/// The part's row count, which row group and footer must agree on.
fn check_rows(table: &'static Table, metadata: &ParquetMetaData) -> Result<usize, Damage> {
    let announced = metadata.file_metadata().num_rows() as u64;
    let found = match metadata.row_groups() {
        [] => 0,
        [group] => group.num_rows() as u64,
        _ => return Err(Damage::Meta("it has several row groups")),
    };
    if found != announced {
        return Err(Damage::Rows {
            what: "the row group",
            found,
            expected: announced,
        });
    }
    // A negative count is a huge one here.
    if found > table.max_rows as u64 {
        return Err(Damage::TooManyRows {
            found,
            limit: table.max_rows,
        });
    }
    Ok(found as usize)
}

fn facts(metadata: &ParquetMetaData) -> Result<&str, Damage> {
    metadata
        .file_metadata()
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == SEGMENT_KEY))
        .and_then(|pair| pair.value.as_deref())
        .ok_or(Damage::Meta("its footer does not name its segment"))
}

impl ColumnSource<'_> {
    /// Rows of the part; every column gives as many values.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Checks that column `seq` counts the rows, and gives the number of the first; 0 without rows.
    pub(super) fn first_seq(&mut self) -> Result<u64, Damage> {
        let numbers = self.u64s("seq")?;
        let first = numbers.first().copied().unwrap_or(0);
        let counted = (0u64..).map(|row| first.checked_add(row));
        match numbers
            .iter()
            .zip(counted)
            .position(|(seq, n)| Some(*seq) != n)
        {
            Some(row) => Err(Damage::value("seq", row, numbers[row])),
            None => Ok(first),
        }
    }

    /// Column `batch`, which never falls.
    pub(super) fn batches(&mut self) -> Result<Vec<u64>, Damage> {
        let mut least = 0;
        let batches = self.u64s("batch")?;
        for (row, batch) in batches.iter().enumerate() {
            // The largest is refused so that the number after it exists.
            if *batch < least || *batch == u64::MAX {
                return Err(Damage::value("batch", row, *batch));
            }
            least = *batch;
        }
        Ok(batches)
    }

    /// Rows that `read` gives, numbered one after the other.
    pub(super) fn numbered<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Vec<T>, Damage>,
    ) -> Result<Run<T>, Damage> {
        let first = self.first_seq()?;
        let batches = self.batches()?;
        Ok((first, read(self)?, batches))
    }

    /// Rows that `read` gives, numbered together with those of other tables.
    pub(super) fn placed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Vec<T>, Damage>,
    ) -> Result<Vec<Placed<T>>, Damage> {
        let places = self.u64s("seq")?.into_iter().zip(self.u64s("batch")?);
        Ok(places
            .zip(read(self)?)
            .map(|((seq, batch), row)| Placed { seq, batch, row })
            .collect())
    }

    /// U8, U16 and U32 columns, ranges not checked.
    pub(super) fn u32s(&mut self, name: &'static str) -> Result<Vec<u32>, Damage> {
        let values = self.values::<Int32Type>(name)?;
        Ok(values.into_iter().map(i32::plain).collect())
    }

    pub(super) fn u64s(&mut self, name: &'static str) -> Result<Vec<u64>, Damage> {
        let values = self.values::<Int64Type>(name)?;
        Ok(values.into_iter().map(i64::plain).collect())
    }

    pub(super) fn bools(&mut self, name: &'static str) -> Result<Vec<bool>, Damage> {
        self.values::<BoolType>(name)
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Damage> {
        let values = self.values::<ByteArrayType>(name)?;
        self.owned_texts(&values)
    }

    /// A value or null for each row; nothing when all are null.
    pub(super) fn present<V: Value>(
        &mut self,
        name: &'static str,
    ) -> Result<Vec<Option<V::Plain>>, Damage> {
        let (levels, values) = self.nullable::<V::Type>(name)?;
        Self::spread(name, &levels, values.into_iter().map(V::plain))
    }

    /// As [`ColumnSource::present`], with a value or null for each row.
    pub(super) fn optional_u32s(&mut self, name: &'static str) -> Result<Vec<Option<u32>>, Damage> {
        let present = self.present::<i32>(name)?;
        Ok(self.for_each_row(present))
    }

    /// As [`ColumnSource::present`], with a value or null for each row.
    pub(super) fn optional_u64s(&mut self, name: &'static str) -> Result<Vec<Option<u64>>, Damage> {
        let present = self.present::<i64>(name)?;
        Ok(self.for_each_row(present))
    }

    /// A value or null for each row.
    pub(super) fn optional_texts(
        &mut self,
        name: &'static str,
    ) -> Result<Vec<Option<String>>, Damage> {
        let (levels, values) = self.nullable::<ByteArrayType>(name)?;
        let values = self.owned_texts(&values)?;
        let present = Self::spread(name, &levels, values.into_iter())?;
        Ok(self.for_each_row(present))
    }

    fn for_each_row<V: Clone>(&self, present: Vec<Option<V>>) -> Vec<Option<V>> {
        if present.is_empty() {
            vec![None; self.rows]
        } else {
            present
        }
    }

    /// A column without nulls.
    fn values<T: DataType>(&self, name: &'static str) -> Result<Vec<T::T>, Damage> {
        let Some(mut reader) = self.reader::<T>(name)? else {
            return Ok(Vec::new());
        };
        let mut values = Vec::with_capacity(self.rows);
        reader.read_records(self.rows, None, None, &mut values)?;
        self.whole(name, values.len())?;
        Ok(values)
    }

    /// For each row 1 or, if it is null, 0; and the values of the others. Nothing of a column that an older part lacks.
    fn nullable<T: DataType>(&self, name: &'static str) -> Result<(Vec<i16>, Vec<T::T>), Damage> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        if let Some(mut reader) = self.reader::<T>(name)? {
            levels.reserve(self.rows);
            reader.read_records(self.rows, Some(&mut levels), None, &mut values)?;
            self.whole(name, levels.len())?;
        }
        Ok((levels, values))
    }

    fn reader<T: DataType>(
        &self,
        name: &'static str,
    ) -> Result<Option<ColumnReaderImpl<T>>, Damage> {
        let Some(group) = &self.group else {
            return Ok(None);
        };
        let mut columns = self.table.columns.iter();
        let index = columns.position(|column| column.name == name);
        let index = index.ok_or_else(|| self.other_type(name))?;
        // An older part may lack the last columns, all of whose values would be null.
        if index >= group.num_columns() {
            return Ok(None);
        }
        let reader = T::get_column_reader(group.get_column_reader(index)?);
        reader.map(Some).ok_or_else(|| self.other_type(name))
    }

    fn other_type(&self, name: &'static str) -> Damage {
        Damage::Columns {
            table: self.table.name,
            detail: format!("{name} has another type"),
        }
    }

    fn whole(&self, column: &'static str, found: usize) -> Result<(), Damage> {
        if found == self.rows {
            Ok(())
        } else {
            Err(Damage::Rows {
                what: column,
                found: found as u64,
                expected: self.rows as u64,
            })
        }
    }

    /// Puts the present values to their rows; nothing when there are none.
    fn spread<V>(
        column: &'static str,
        levels: &[i16],
        mut values: impl ExactSizeIterator<Item = V>,
    ) -> Result<Vec<Option<V>>, Damage> {
        let present = levels.iter().filter(|level| **level == 1).count();
        if present != values.len() {
            return Err(Damage::Rows {
                what: column,
                found: values.len() as u64,
                expected: present as u64,
            });
        }
        if present == 0 {
            return Ok(Vec::new());
        }
        Ok(levels
            .iter()
            .map(|level| if *level == 1 { values.next() } else { None })
            .collect())
    }

    /// A dictionary lets one long name stand in a million rows, so the copies are counted first.
    fn owned_texts(&mut self, values: &[ByteArray]) -> Result<Vec<String>, Damage> {
        let bytes: usize = values.iter().map(ByteArray::len).sum();
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        if self.text_bytes > MAX_SEGMENT_TEXT_BYTES {
            return Err(Damage::Text {
                limit: MAX_SEGMENT_TEXT_BYTES,
            });
        }
        values
            .iter()
            .map(|value| Ok(value.as_utf8()?.to_owned()))
            .collect()
    }
}
