//! Function bounds from call frame information. Stripped binaries keep `.eh_frame`, so this is what is
//! left to find the start of a function in them.

use std::collections::HashMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

use crate::{
    image::Image,
    spans::{Span, Spans},
};

/// The address range of each frame description entry. What comes after a damaged entry is not seen.
pub(crate) fn read_bounds(image: &Image) -> Spans<()> {
    let mut bounds = Vec::new();
    if let Some(section) = image.section_named(".eh_frame") {
        let address_of = |name| {
            image
                .section_named(name)
                .map_or(0, |section| section.address)
        };
        let bases = BaseAddresses::default()
            .set_eh_frame(section.address)
            .set_text(address_of(".text"))
            .set_got(address_of(".got"));
        let mut frames = EhFrame::new(image.content(section), LittleEndian);
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
