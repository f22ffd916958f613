//! Columns that say the same in every row, as most columns of an emulated program do: encoded once, and copied into each
//! part. Encoding them anew took half of a recording's time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use parquet::{
    column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer_mut},
    data_type::DataType,
    errors::ParquetError,
    file::{
        properties::WriterPropertiesPtr,
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

use super::schema::Column;

/// What tells one from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// As it is laid out here.
    pub column: Column,
    /// The value's bits; `None` for null.
    pub value: Option<u64>,
    pub rows: usize,
}

/// An encoded column.
#[derive(Debug)]
pub(super) struct Encoded {
    pub bytes: Bytes,
    pub close: ColumnCloseResult,
}

/// Encoded columns that are kept: those of whole segments come again, those of others may not.
const MOST_KEPT: usize = 256;

static KEPT: Mutex<Option<HashMap<Key, Arc<Encoded>>>> = Mutex::new(None);

/// The column of that key; encoded with `value`, unless it was before.
pub(super) fn encoded<T: DataType>(
    key: Key,
    value: Option<T::T>,
    column: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
) -> Result<Arc<Encoded>, ParquetError> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(encoded) = kept.get(&key) {
        return Ok(encoded.clone());
    }
    let encoded = Arc::new(encode::<T>(key.rows, value, column, properties)?);
    if kept.len() >= MOST_KEPT {
        kept.clear();
    }
    kept.insert(key, encoded.clone());
    Ok(encoded)
}

fn encode<T: DataType>(
    rows: usize,
    value: Option<T::T>,
    column: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
) -> Result<Encoded, ParquetError> {
    let level = i16::from(value.is_some());
    let levels = (column.max_def_level() > 0).then(|| vec![level; rows]);
    let values: Vec<T::T> = value.map_or_else(Vec::new, |value| vec![value; rows]);
    let mut out = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut out));
    let mut writer = get_column_writer(column.clone(), properties.clone(), pages);
    let typed = get_typed_column_writer_mut::<T>(&mut writer);
    typed.write_batch(&values, levels.as_deref(), None)?;
    let close = writer.close()?;
    Ok(Encoded {
        bytes: out.into_inner()?.into(),
        close,
    })
}

/// The value of all, if they have one.
pub(super) fn same<V: PartialEq>(mut values: impl Iterator<Item = V>) -> Option<V> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}
