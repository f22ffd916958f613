//! The frame description entries of `.eh_frame` and `.debug_frame`.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Pointer,
    UnwindSection,
};

use crate::{
    image::Image,
    spans::{Span, Spans},
};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A section of call frame information, ready to be read.
pub(super) struct Section<S> {
    pub(super) frames: S,
    pub(super) bases: BaseAddresses,
}

/// The section that the run-time unwinder uses.
pub(super) fn eh_frame(image: &Image) -> Option<Section<EhFrame<Slice<'_>>>> {
    let (address, content) = section(image).or_else(|| behind_table(image))?;
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
    Some(Section { frames, bases })
}

/// The section for debuggers, which covers code compiled without `.eh_frame`.
pub(super) fn debug_frame(image: &Image) -> Option<Section<DebugFrame<Slice<'_>>>> {
    let named = [".debug_frame", ".zdebug_frame"];
    let content = named
        .iter()
        .map(|name| image.section_data(name))
        .find(|content| !content.is_empty())?;
    let mut frames = DebugFrame::new(content, LittleEndian);
    frames.set_address_size(8);
    Some(Section {
        frames,
        bases: BaseAddresses::default(),
    })
}

impl<'a, S: UnwindSection<Slice<'a>>> Section<S>
where
    S::Offset: std::hash::Hash + Eq,
{
    /// The address range and the offset of each entry. What comes after a damaged entry is not seen. `loaded` is the
    /// file that is executed.
    pub(super) fn ranges(&self, loaded: &Image) -> Spans<usize> {
        let mut ranges = Vec::new();
        // Most entries share one of a few common ones; each is decoded once.
        let mut common = HashMap::new();
        let mut entries = self.frames.entries(&self.bases);
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
            if start != 0 && loaded.is_executable(start) {
                ranges.push(Span {
                    start,
                    end: start.saturating_add(parsed.len()),
                    value: parsed.offset(),
                });
            }
        }
        Spans::new(ranges)
    }
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
