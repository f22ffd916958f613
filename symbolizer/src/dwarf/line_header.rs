//! Refuses line table headers whose directory or file entries take no bytes.
//!
//! In DWARF 5 the file states how many entries there are and in which forms. With forms that occupy no
//! bytes (`DW_FORM_flag_present`, `DW_FORM_implicit_const`) the reader below would make 2^64 entries of nothing.

use gimli::{DwForm, Format, Reader};

use super::Slice;
use crate::missing::Missing;

/// Walks over both entry lists of the table that starts here (DWARF 5, section 6.2.4).
pub(crate) fn check(table: &[u8]) -> Result<(), Missing> {
    let mut input = Slice::new(table, gimli::LittleEndian);
    let (length, format) = input.read_initial_length()?;
    input.truncate(length.min(input.len()))?;
    if input.read_u16()? < 5 {
        return Ok(());
    }
    let _address_and_selector_sizes = (input.read_u8()?, input.read_u8()?);
    input.read_length(format)?;
    // minimum_instruction_length, maximum_operations_per_instruction, default_is_stmt, line_base, line_range
    input.skip(5)?;
    let opcode_base = input.read_u8()?;
    input.skip(usize::from(opcode_base.saturating_sub(1)))?;
    skip_list(&mut input, format)?;
    skip_list(&mut input, format)
}

/// An entry format, a count, and so many entries of the format.
fn skip_list(input: &mut Slice<'_>, format: Format) -> Result<(), Missing> {
    let mut forms = Vec::new();
    for _ in 0..input.read_u8()? {
        input.read_uleb128()?;
        forms.push(DwForm(input.read_uleb128_u16()?));
    }
    let count = input.read_uleb128()?;
    for _ in 0..count {
        let before = input.len();
        for form in &forms {
            skip_value(input, format, *form)?;
        }
        if input.len() == before {
            return Err(Missing::Malformed);
        }
    }
    Ok(())
}

/// The forms that section 6.2.4.1 allows, and those that LLVM adds.
fn skip_value(input: &mut Slice<'_>, format: Format, form: DwForm) -> Result<(), Missing> {
    let bytes = match form {
        gimli::DW_FORM_string => {
            input.read_null_terminated_slice()?;
            0
        }
        gimli::DW_FORM_line_strp | gimli::DW_FORM_strp | gimli::DW_FORM_strp_sup => {
            usize::from(format.word_size())
        }
        gimli::DW_FORM_udata | gimli::DW_FORM_strx => {
            input.read_uleb128()?;
            0
        }
        gimli::DW_FORM_block => usize::try_from(input.read_uleb128()?).unwrap_or(usize::MAX),
        gimli::DW_FORM_data1 | gimli::DW_FORM_strx1 => 1,
        gimli::DW_FORM_data2 | gimli::DW_FORM_strx2 => 2,
        gimli::DW_FORM_strx3 => 3,
        gimli::DW_FORM_data4 | gimli::DW_FORM_strx4 => 4,
        gimli::DW_FORM_data8 => 8,
        gimli::DW_FORM_data16 => 16,
        _ => return Err(Missing::Malformed),
    };
    Ok(input.skip(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::missing::Missing;

    fn table(path_form: u8, directories: &[u8]) -> Vec<u8> {
        let mut body = vec![5, 0, 8, 0];
        let mut header = vec![1, 1, 1, 0xfb, 14, 1];
        header.extend([1, 1, path_form]);
        header.extend(directories);
        header.extend([1, 1, 8, 1, b'a', 0]);
        body.extend((header.len() as u32).to_le_bytes());
        body.extend(header);
        let mut table = (body.len() as u32).to_le_bytes().to_vec();
        table.extend(body);
        table
    }

    #[test]
    fn a_header_with_sized_entries_passes_and_one_with_entries_of_nothing_does_not() {
        assert_eq!(check(&table(8, &[2, b'd', 0, b'e', 0])), Ok(()));
        // flag_present, 2^63 entries
        let many = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(check(&table(0x19, &many)), Err(Missing::Malformed));
        assert_eq!(check(&[]), Err(Missing::Malformed));
    }
}
