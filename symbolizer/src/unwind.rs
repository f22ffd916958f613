//! Function bounds from call frame information. Stripped binaries keep `.eh_frame`, so this is what is
//! left to find the start of a function in them.

mod row;

use std::collections::HashMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, LittleEndian, Pointer, UnwindSection};

use crate::{
    image::Image,
    spans::{Span, Spans},
};

pub(crate) use row::{Entries, entries, frame_row};
pub use row::{FrameRow, Saved};

/// The address range of each frame description entry. What comes after a damaged entry is not seen.
pub(crate) fn read_bounds(image: &Image) -> Spans<()> {
    let mut bounds = Vec::new();
    if let Some((address, content)) = section(image).or_else(|| behind_table(image)) {
        let address_of = |name| {
            image
                .section_named(name)
                .map_or(0, |section| section.address)
        };
        let bases = BaseAddresses::default()
            .set_eh_frame(address)
            .set_text(address_of(".text"))
            .set_got(address_of(".got"));
        let mut frames = EhFrame::new(content, LittleEndian);
        frames.set_address_size(8);
        // Most entries share one of a few common ones; each is decoded once.
        let mut common = HashMap::new();
        let mut entries = frames.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let parsed = partial.parse(|frames, bases, offset| {
                if let Some(found) = common.get(&offset) {
                    return Ok(Clone::clone(found));
                }
                let parsed = frames.cie_from_offset(bases, offset)?;
                common.insert(offset, parsed.clone());
                Ok(parsed)
            });
            let Ok(parsed) = parsed else { continue };
            let start = parsed.initial_address();
            // Entries of functions the linker dropped stay behind at address 0.
            if start != 0 && image.is_executable(start) {
                bounds.push(Span {
                    start,
                    end: start.saturating_add(parsed.len()),
                    value: (),
                });
            }
        }
    }
    Spans::new(bounds)
}

/// Address and bytes of `.eh_frame`, by its section header.
fn section(image: &Image) -> Option<(u64, &[u8])> {
    let section = image.section_named(".eh_frame")?;
    Some((section.address, image.content(section)))
}

/// The same by the table that the run-time unwinder uses, where section headers are gone or damaged. A
/// mark ends the entries (Linux Standard Base, "Exception Frames"), so the segment's end does as a bound.
fn behind_table(image: &Image) -> Option<(u64, &[u8])> {
    let table = image.unwind_table?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(table.address);
    let bytes = image.bytes_from(table.address)?;
    let parsed = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
    let Pointer::Direct(address) = parsed.eh_frame_ptr() else {
        return None;
    };
    Some((address, image.bytes_from(address)?))
}
