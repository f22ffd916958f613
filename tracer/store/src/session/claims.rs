//! What footer and page headers announce, checked against the bytes there are.
//!
//! The parquet crate allocates what a page header announces before it looks at the page: up to 2 GiB for the
//! page, up to 2^31 values for a dictionary. So each header is read here first, just far enough to know these
//! numbers. Headers are Thrift compact structs; the field numbers are those of `parquet.thrift`
//! (apache/parquet-format, `PageHeader`, `DataPageHeader`, `DictionaryPageHeader`).

use parquet::{
    basic::Compression,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData},
};

use super::{
    error::Damage,
    schema::{MAX_SEGMENT_TEXT_BYTES, Table},
};

/// Bytes of one page when unpacked: a page ends soon after 1 MiB, but one name can be as long as all names of
/// a segment together.
const MAX_PAGE_BYTES: u64 = (MAX_SEGMENT_TEXT_BYTES + (8 << 20)) as u64;

/// Structs in structs; a page header has two levels.
const MAX_DEPTH: u32 = 8;

/// Checks every page of every column of the one row group.
pub(super) fn check(
    table: &'static Table,
    part: &[u8],
    metadata: &ParquetMetaData,
    rows: usize,
) -> Result<(), Damage> {
    let Some(group) = metadata.row_groups().first() else {
        return Ok(());
    };
    // The columns were checked against the table before: fewer are those of an older version.
    if group.num_columns() > table.columns.len() {
        return Err(Damage::Meta("its row group has another number of columns"));
    }
    for (column, chunk) in table.columns.iter().zip(group.columns()) {
        check_chunk(part, chunk, rows as u64).map_err(|what| Damage::Claim {
            column: column.name,
            what,
        })?;
    }
    Ok(())
}

fn check_chunk(part: &[u8], chunk: &ColumnChunkMetaData, rows: u64) -> Result<(), &'static str> {
    if !matches!(
        chunk.compression(),
        Compression::ZSTD(_) | Compression::UNCOMPRESSED
    ) {
        return Err("a compression that sessions do not use");
    }
    let start = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    let mut pages = usize::try_from(start)
        .ok()
        .zip(usize::try_from(chunk.compressed_size()).ok())
        .and_then(|(start, len)| part.get(start..start.checked_add(len)?))
        .ok_or("pages outside the file")?;
    let mut data_values = 0u64;
    while !pages.is_empty() {
        let mut reader = Thrift { bytes: pages };
        let page = reader.page().ok_or("an unreadable page header")?;
        if page
            .unpacked_bytes
            .is_none_or(|bytes| bytes > MAX_PAGE_BYTES)
        {
            return Err("a page that is too large");
        }
        let len = page.packed_bytes.and_then(|len| usize::try_from(len).ok());
        pages = len
            .and_then(|len| reader.bytes.get(len..))
            .ok_or("a page longer than its column")?;
        if page.dictionary_values.is_some_and(|values| values > rows) {
            return Err("a dictionary of more values than rows");
        }
        data_values = data_values.saturating_add(page.data_values.unwrap_or(0));
        if data_values > rows {
            return Err("more values than rows");
        }
    }
    if data_values == rows {
        Ok(())
    } else {
        Err("fewer values than rows")
    }
}

/// The numbers of a page header that decide what is allocated.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    unpacked_bytes: Option<u64>,
    packed_bytes: Option<u64>,
    data_values: Option<u64>,
    dictionary_values: Option<u64>,
}

/// Thrift compact protocol, as far as a page header needs it.
struct Thrift<'a> {
    bytes: &'a [u8],
}

/// Wire types of the compact protocol.
mod wire {
    pub(super) const STOP: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const STRUCT: u8 = 12;
}

impl Thrift<'_> {
    /// Reads a `PageHeader`; `None` when it cannot be one.
    fn page(&mut self) -> Option<Page> {
        let mut page = Page::default();
        let mut id = 0;
        loop {
            let kind = self.field(&mut id)?;
            match (id, kind) {
                (_, wire::STOP) => return Some(page),
                (2, wire::I16..=wire::I64) => page.unpacked_bytes = Some(self.count()?),
                (3, wire::I16..=wire::I64) => page.packed_bytes = Some(self.count()?),
                // DataPageHeader and DataPageHeaderV2.
                (5 | 8, wire::STRUCT) => page.data_values = Some(self.first_count()?),
                (7, wire::STRUCT) => page.dictionary_values = Some(self.first_count()?),
                _ => self.skip(kind, MAX_DEPTH)?,
            }
        }
    }

    /// Field 1 of a struct, a count in all the structs asked for; reads past the struct.
    fn first_count(&mut self) -> Option<u64> {
        let mut count = None;
        let mut id = 0;
        loop {
            let kind = self.field(&mut id)?;
            match (id, kind) {
                (_, wire::STOP) => return count,
                (1, wire::I16..=wire::I64) => count = Some(self.count()?),
                _ => self.skip(kind, MAX_DEPTH)?,
            }
        }
    }

    /// The next field's type, [`wire::STOP`] at the struct's end, its id left in `id`.
    fn field(&mut self, id: &mut i64) -> Option<u8> {
        let head = self.byte()?;
        let (delta, kind) = (head >> 4, head & 0xf);
        if kind == wire::STOP {
            return Some(kind);
        }
        *id = if delta == 0 {
            self.zigzag()?
        } else {
            id.checked_add(i64::from(delta))?
        };
        Some(kind)
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            wire::TRUE | wire::FALSE => Some(()),
            wire::BYTE => self.advance(1),
            wire::I16..=wire::I64 => self.varint().map(|_| ()),
            wire::DOUBLE => self.advance(8),
            wire::BINARY => {
                let len = self.varint()?;
                self.advance(len)
            }
            wire::LIST | wire::SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    short => u64::from(short),
                };
                // Each element is at least a byte in the compact protocol, also a bool in a list.
                if count > self.bytes.len() as u64 {
                    return None;
                }
                let element = match head & 0xf {
                    wire::TRUE | wire::FALSE => wire::BYTE,
                    kind => kind,
                };
                (0..count).try_for_each(|_| self.skip(element, depth))
            }
            wire::STRUCT => {
                let mut id = 0;
                loop {
                    match self.field(&mut id)? {
                        wire::STOP => return Some(()),
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
            _ => None,
        }
    }

    /// An integer that must not be negative.
    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.zigzag()?).ok()
    }

    fn zigzag(&mut self) -> Option<i64> {
        let raw = self.varint()?;
        Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn advance(&mut self, len: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(len).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// type 0, unpacked 1000, packed 300, data header { values 77, encoding 0, .. }.
    const DATA_PAGE: [u8; 20] = [
        0x15, 0, 0x15, 0xd0, 0x0f, 0x15, 0xd8, 0x04, 0x2c, 0x15, 0x9a, 0x01, 0x15, 0, 0x15, 6,
        0x15, 6, 0, 0,
    ];

    #[test]
    fn a_page_header_gives_its_sizes_and_count() {
        let mut reader = Thrift { bytes: &DATA_PAGE };
        assert_eq!(
            reader.page(),
            Some(Page {
                unpacked_bytes: Some(1000),
                packed_bytes: Some(300),
                data_values: Some(77),
                dictionary_values: None,
            })
        );
        assert!(reader.bytes.is_empty());
    }

    #[test]
    fn a_cut_page_header_is_none() {
        for len in 0..DATA_PAGE.len() {
            let mut reader = Thrift {
                bytes: &DATA_PAGE[..len],
            };
            assert_eq!(reader.page(), None, "cut to {len}");
        }
    }

    #[test]
    fn a_negative_size_is_none() {
        let mut reader = Thrift {
            bytes: &[0x25, 0x01, 0],
        };
        assert_eq!(reader.page(), None);
    }

    #[test]
    fn deep_nesting_ends_in_none_instead_of_the_stack() {
        let nested = vec![0x9c; 100_000];
        let mut reader = Thrift { bytes: &nested };
        assert_eq!(reader.page(), None);
    }
}
