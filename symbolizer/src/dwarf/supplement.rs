//! The supplementary file: what dwz found in several programs and moved out of all of them (`.gnu_debugaltlink`;
//! DWARF 5, section 7.3.6: `.debug_sup`).

use std::{rc::Rc, sync::Arc};

use gimli::Reader;

use super::{
    Slice, Split, Unit, Units, View,
    sections::{Naming, Sections, UnitSection},
    unit_reader::{self, Contents, Import, Role},
    units::SUPPLEMENT,
};
use crate::{
    debug_files::{DebugFiles, DebugRequest},
    image::Image,
    missing::Missing,
    spans::Spans,
};

/// What a file says of its supplementary file.
struct Link<'a> {
    file_name: &'a str,
    /// Build-id of the file.
    id: &'a [u8],
}

/// The file that the debug info refers to; none if it refers to none.
pub(super) fn find(image: &Image, finder: &dyn DebugFiles) -> Option<Result<Sections, Missing>> {
    let link = alt_link(image.section_data(".gnu_debugaltlink"))
        .or_else(|| sup_link(image.section_data(".debug_sup"), 0))?;
    let requests = [
        DebugRequest::AltFile {
            file_name: link.file_name,
            build_id: link.id,
        },
        DebugRequest::BuildId(link.id),
    ];
    let mut refused = Missing::AltFileNotFound;
    for request in &requests {
        for bytes in finder.candidates(request) {
            match Image::parse(bytes) {
                Ok(found) if is_meant(&found, link.id) => {
                    let found = found.within(image.account());
                    if !image.account().all().has_room(found.compressed_bytes()) {
                        return Some(Err(Missing::NoMemory));
                    }
                    return Some(Ok(Sections::find(Arc::new(found), Naming::Plain)));
                }
                Ok(_) => refused = Missing::AltFileMismatch,
                Err(_) => refused = Missing::Malformed,
            }
        }
    }
    Some(Err(refused))
}

/// The identity is the build-id, or what the file's own `.debug_sup` says.
fn is_meant(found: &Image, id: &[u8]) -> bool {
    let stated = || sup_link(found.section_data(".debug_sup"), 1).is_some_and(|own| own.id == id);
    found.build_id() == Some(id) || stated()
}

/// A file name, a zero byte, a build-id.
fn alt_link(section: &[u8]) -> Option<Link<'_>> {
    let end = section.iter().position(|&byte| byte == 0)?;
    let file_name = std::str::from_utf8(&section[..end]).ok()?;
    let id = &section[end + 1..];
    (!file_name.is_empty() && !id.is_empty()).then_some(Link { file_name, id })
}

/// Version, whether this is the supplementary file (`role` 1) or refers to it (0), a name, an identity.
fn sup_link(section: &[u8], role: u8) -> Option<Link<'_>> {
    let mut input = Slice::new(section, gimli::LittleEndian);
    if input.read_u16().ok()? < 5 || input.read_u8().ok()? != role {
        return None;
    }
    let file_name = input.read_null_terminated_slice().ok()?.slice();
    let length = usize::try_from(input.read_uleb128().ok()?).ok()?;
    let id = input.split(length).ok()?.slice();
    let file_name = std::str::from_utf8(file_name).ok()?;
    (!id.is_empty()).then_some(Link { file_name, id })
}

impl View<'_> {
    /// Reads the units of the program and of its supplementary file.
    pub(super) fn read_units(&self) -> Result<Units, Missing> {
        let own = Rc::clone(self.own_raw());
        let mut found = Vec::new();
        for section in [UnitSection::Info, UnitSection::Types] {
            unit_reader::headers(&own, section, 0, &mut found);
        }
        if found.is_empty() {
            return Err(Missing::Malformed);
        }
        let mut contents = unit_reader::read(self, 0, SUPPLEMENT, found, Role::Whole)?;
        let mut supplement = self.read_supplement()?;
        spread_languages(&mut contents, &mut supplement);
        let splits: Box<[Split]> = contents.splits.into_iter().map(Split::new).collect();
        let file_bits = u32::BITS - (splits.len() as u32).leading_zeros();
        Ok(Units {
            own: contents.units,
            code: Spans::new(contents.spans),
            silent: contents.silent,
            silent_code: std::sync::OnceLock::new(),
            supplement: supplement.units,
            splits,
            local_bits: 30u32.saturating_sub(file_bits),
            package: std::sync::OnceLock::new(),
        })
    }

    fn read_supplement(&self) -> Result<Contents, Missing> {
        let Some(Ok(sections)) = &self.info.supplement else {
            return Ok(Contents::default());
        };
        let raw = Rc::new(sections.raw());
        let mut found = Vec::new();
        for section in [UnitSection::Info, UnitSection::Types] {
            unit_reader::headers(&raw, section, 0, &mut found);
        }
        unit_reader::read(self, SUPPLEMENT, 1 << 29, found, Role::Whole)
    }
}

/// A partial unit may state no language: it has that of the unit that imports it.
fn spread_languages(own: &mut Contents, supplement: &mut Contents) {
    let mut edges = Vec::new();
    let (of_own, of_supplement) = (own.imports.iter(), supplement.imports.iter());
    for (&(from, to), in_supplement) in of_own
        .map(|import| (import, false))
        .chain(of_supplement.map(|import| (import, true)))
    {
        let target = match to {
            Import::Own(offset) if !in_supplement => own.units.at_offset(0, offset),
            Import::Own(offset) | Import::Supplement(offset) => {
                supplement.units.at_offset(0, offset)
            }
        };
        edges.extend(target.map(|target| (from, target.unit)));
    }
    edges.sort_unstable();
    edges.dedup();
    let mut pending: Vec<u32> = edges.iter().map(|&(from, _)| from).collect();
    pending.dedup();
    while let Some(from) = pending.pop() {
        let Some(language) = unit(own, supplement, from).and_then(|unit| unit.language) else {
            continue;
        };
        let first = edges.partition_point(|&(importer, _)| importer < from);
        let here = edges[first..]
            .iter()
            .take_while(|&&(importer, _)| importer == from);
        for &(_, to) in here {
            if let Some(target) = unit(own, supplement, to)
                && target.language.is_none()
            {
                // Each unit gets its language once, and goes through here once for it.
                target.language = Some(language);
                pending.push(to);
            }
        }
    }
}

fn unit<'c>(
    own: &'c mut Contents,
    supplement: &'c mut Contents,
    number: u32,
) -> Option<&'c mut Unit> {
    match number.checked_sub(SUPPLEMENT) {
        None => own.units.list.get_mut(number as usize),
        Some(index) => supplement.units.list.get_mut(index as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::{alt_link, sup_link};

    #[test]
    fn a_link_is_a_name_and_an_identity() {
        let link = alt_link(b"../x.debug\0\x01\x02").unwrap();
        assert_eq!((link.file_name, link.id), ("../x.debug", &[1, 2][..]));
        for bad in [&b""[..], b"name", b"name\0", b"\0\x01"] {
            assert!(alt_link(bad).is_none(), "{bad:?}");
        }
        let link = sup_link(b"\x05\0\0name\0\x02\x01\x02", 0).unwrap();
        assert_eq!((link.file_name, link.id), ("name", &[1, 2][..]));
        for bad in [
            &b"\x05\0\x01name\0\x02\x01\x02"[..],
            b"\x05\0\0name\0\x02\x01",
            b"\x05\0\0name\0\0",
            b"\x05",
        ] {
            assert!(sup_link(bad, 0).is_none(), "{bad:?}");
        }
    }
}
