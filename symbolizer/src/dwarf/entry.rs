//! One entry's attributes, and its children.

use gimli::{AttributeValue, EntriesRaw, Operation};

use super::{Die, RawUnit, Slice, Value, View};
use crate::missing::Missing;

/// The attributes of an entry that this crate reads, decoded.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are DWARF's flag attributes, one by one"
)]
pub(crate) struct Entry<'a> {
    pub(crate) tag: gimli::DwTag,
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) linkage_name: Option<&'a [u8]>,
    /// `DW_AT_type`.
    pub(crate) ty: Option<Die>,
    /// `DW_AT_specification` or `DW_AT_abstract_origin`: the entry that completes this one.
    pub(crate) origin: Option<Die>,
    /// `DW_AT_signature`: the definition in a type unit.
    pub(crate) signature: Option<Die>,
    pub(crate) byte_size: Option<u64>,
    pub(crate) bit_size: Option<u64>,
    /// `DW_AT_data_bit_offset`: from the start of the enclosing structure.
    pub(crate) data_bit_offset: Option<u64>,
    /// `DW_AT_bit_offset` of DWARF 3: from the most significant bit of the storage unit.
    pub(crate) old_bit_offset: Option<u64>,
    /// `DW_AT_data_member_location`, when it is a constant.
    pub(crate) member_offset: Option<u64>,
    /// The member is somewhere, but where is computed at run time (virtual bases).
    pub(crate) computed_place: bool,
    pub(crate) is_declaration: bool,
    /// A C++ member that belongs to the class, not to its objects.
    pub(crate) is_external: bool,
    /// A C function type with a parameter list, be it empty.
    pub(crate) is_prototyped: bool,
    /// Of a base type: a complex number, which is two of half its size.
    pub(crate) is_complex: bool,
    pub(crate) alignment: Option<u64>,
    /// Elements of an array dimension.
    pub(crate) count: Option<u64>,
    pub(crate) decl_file: Option<u64>,
    pub(crate) decl_line: Option<u32>,
    pub(crate) location: Option<Value<'a>>,
}

impl<'a> View<'a> {
    /// Reads one entry.
    pub(crate) fn entry(&self, die: Die) -> Result<Entry<'a>, Missing> {
        let unit = self.unit(die.unit)?;
        let mut entries = unit.entries_raw(Some(die.unit_offset()))?;
        self.next_entry(&unit, die.unit, &mut entries)?
            .ok_or(Missing::Malformed)
    }

    /// Reads the entry the cursor is at; nothing at the end of a list of siblings.
    pub(crate) fn next_entry(
        &self,
        unit: &RawUnit<'a>,
        index: u32,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
    ) -> Result<Option<Entry<'a>>, Missing> {
        self.step()?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(None);
        };
        let mut entry = Entry::new(abbreviation.tag());
        for &specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(specification)?;
            self.take(&mut entry, unit, index, attribute.name(), attribute.value());
        }
        Ok(Some(entry))
    }

    /// Decodes the attribute if it is one of ours.
    fn take(
        &self,
        entry: &mut Entry<'a>,
        unit: &RawUnit<'a>,
        index: u32,
        name: gimli::DwAt,
        value: Value<'a>,
    ) {
        let number = || value.udata_value();
        match name {
            gimli::DW_AT_name => entry.name = self.text(unit, value),
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                entry.linkage_name = self.text(unit, value);
            }
            gimli::DW_AT_type => entry.ty = self.target(index, value),
            gimli::DW_AT_specification | gimli::DW_AT_abstract_origin => {
                entry.origin = self.target(index, value);
            }
            gimli::DW_AT_signature => entry.signature = self.target(index, value),
            gimli::DW_AT_byte_size => entry.byte_size = number(),
            gimli::DW_AT_bit_size => entry.bit_size = number(),
            gimli::DW_AT_data_bit_offset => entry.data_bit_offset = number(),
            gimli::DW_AT_bit_offset => entry.old_bit_offset = number(),
            gimli::DW_AT_data_member_location => {
                entry.member_offset = member_offset(unit, value);
                entry.computed_place = entry.member_offset.is_none();
            }
            gimli::DW_AT_declaration => entry.is_declaration = value == AttributeValue::Flag(true),
            gimli::DW_AT_external => entry.is_external = value == AttributeValue::Flag(true),
            gimli::DW_AT_prototyped => entry.is_prototyped = value == AttributeValue::Flag(true),
            gimli::DW_AT_encoding => {
                entry.is_complex = value == AttributeValue::Encoding(gimli::DW_ATE_complex_float);
            }
            gimli::DW_AT_alignment => entry.alignment = number(),
            gimli::DW_AT_count => entry.count = number(),
            // An upper bound of -1 is how `[0]` is written, with all 64 bits; 0xff in one byte is `[256]`.
            gimli::DW_AT_upper_bound => {
                entry.count = match value {
                    AttributeValue::Sdata(bound) => u64::try_from(bound.wrapping_add(1)).ok(),
                    AttributeValue::Data8(bound) => Some(bound.wrapping_add(1)),
                    _ => number().and_then(|bound| bound.checked_add(1)),
                }
            }
            gimli::DW_AT_decl_file => {
                entry.decl_file = match value {
                    AttributeValue::FileIndex(file) => Some(file),
                    _ => number(),
                }
            }
            gimli::DW_AT_decl_line => {
                entry.decl_line = number().and_then(|line| u32::try_from(line).ok());
            }
            gimli::DW_AT_location => entry.location = Some(value),
            _ => {}
        }
    }

    /// Reads the direct children of an entry.
    pub(crate) fn children(
        &self,
        die: Die,
        mut each: impl FnMut(Die, Entry<'a>) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        let unit = self.unit(die.unit)?;
        let mut entries = unit.entries_raw(Some(die.unit_offset()))?;
        let base = entries.next_depth();
        let parent = entries.read_abbreviation()?.ok_or(Missing::Malformed)?;
        entries.skip_attributes(parent.attributes())?;
        while !entries.is_empty() && entries.next_depth() > base {
            if entries.next_depth() == base + 1 {
                let offset = entries.next_offset().0 as u32;
                if let Some(entry) = self.next_entry(&unit, die.unit, &mut entries)? {
                    each(
                        Die {
                            unit: die.unit,
                            offset,
                        },
                        entry,
                    )?;
                }
            } else if let Some(abbreviation) = entries.read_abbreviation()? {
                self.step()?;
                entries.skip_attributes(abbreviation.attributes())?;
            }
        }
        Ok(())
    }
}

/// A constant, or the expression `DW_OP_plus_uconst n` of DWARF 2.
fn member_offset(unit: &RawUnit<'_>, value: Value<'_>) -> Option<u64> {
    let expression = match value {
        AttributeValue::Exprloc(expression) => expression,
        AttributeValue::Block(bytes) => gimli::Expression(bytes),
        other => return other.udata_value(),
    };
    let mut operations = expression.operations(unit.encoding());
    let first = operations.next().ok()??;
    match (first, operations.next()) {
        (Operation::PlusConstant { value }, Ok(None)) => Some(value),
        _ => None,
    }
}

impl Entry<'_> {
    fn new(tag: gimli::DwTag) -> Self {
        Entry {
            tag,
            name: None,
            linkage_name: None,
            ty: None,
            origin: None,
            signature: None,
            byte_size: None,
            bit_size: None,
            data_bit_offset: None,
            old_bit_offset: None,
            member_offset: None,
            computed_place: false,
            is_declaration: false,
            is_external: false,
            is_prototyped: false,
            is_complex: false,
            alignment: None,
            count: None,
            decl_file: None,
            decl_line: None,
            location: None,
        }
    }
}
