//! Attributes that several readers need: code ranges and references to other entries.

use gimli::AttributeValue;

use super::{Die, RawUnit, Value, View, units::Place};
use crate::missing::Missing;

/// `DW_AT_low_pc`, `DW_AT_high_pc` and `DW_AT_ranges` of one entry.
#[derive(Default)]
pub(crate) struct CodeRange<'a> {
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
}

impl<'a> CodeRange<'a> {
    pub(crate) fn observe(&mut self, name: gimli::DwAt, value: Value<'a>) {
        match name {
            gimli::DW_AT_low_pc => self.low = Some(value),
            gimli::DW_AT_high_pc => self.high = Some(value),
            gimli::DW_AT_ranges => self.ranges = Some(value),
            _ => {}
        }
    }

    /// Hands over each range that can be code of the loaded file. Returns whether the entry states any range.
    pub(crate) fn for_each(
        &self,
        view: &View<'_>,
        unit: &RawUnit<'a>,
        mut found: impl FnMut(u64, u64),
    ) -> Result<bool, Missing> {
        let mut add = |start: u64, end: u64| {
            if start < end && view.info.is_code(start) {
                found(start, end);
            }
        };
        if let Some(ranges) = self.ranges {
            let Some(mut list) = unit.raw.attr_ranges(unit, ranges)? else {
                return Ok(false);
            };
            while let Some(range) = list.next()? {
                view.charge(1)?;
                add(range.begin, range.end);
            }
            return Ok(true);
        }
        let (Some(low), Some(high)) = (self.low, self.high) else {
            return Ok(false);
        };
        let Some(low) = unit.raw.attr_address(unit, low)? else {
            return Ok(false);
        };
        // A constant is the length; an address is the end (DWARF 5, section 2.17.2).
        let high = match high.udata_value() {
            Some(length) => low.saturating_add(length),
            None => unit.raw.attr_address(unit, high)?.unwrap_or(low),
        };
        add(low, high);
        Ok(true)
    }
}

impl View<'_> {
    /// The entry that a reference attribute of an entry in unit `from` points to.
    pub(crate) fn target(&self, from: u32, value: Value<'_>) -> Option<Die> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Die {
                unit: from,
                offset: u32::try_from(offset.0).ok()?,
            }),
            AttributeValue::DebugInfoRef(offset) => self.info.units.at_info_offset(from, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => {
                self.info.units.at_supplement_offset(offset.0)
            }
            AttributeValue::DebugTypesRef(signature) => self.of_signature(from, signature.0),
            _ => None,
        }
    }
    /// The type a signature stands for (`DW_FORM_ref_sig8`): in the file of unit `from`, in the package, or in the
    /// program.
    fn of_signature(&self, from: u32, signature: u64) -> Option<Die> {
        let units = &self.info.units;
        let own = || units.own.signatures.get(&signature).copied();
        match units.place(from) {
            Place::Own(_) => own(),
            Place::Supplement(_) => units.supplement.signatures.get(&signature).copied(),
            Place::Packaged(_) => self.packaged_type(signature),
            Place::Split { file, .. } => {
                let file = self.split(file).ok()?;
                let here = file.units.signatures.get(&signature).copied();
                here.or_else(|| self.packaged_type(signature)).or_else(own)
            }
        }
    }
}
