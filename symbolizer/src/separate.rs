//! The files a stripped module's symbols and debug info are in: a separate debug file, or a small one inside of it.

use std::sync::Arc;

use crate::{
    Module,
    debug_files::{DebugRequest, crc32},
    image::Image,
    minidebug,
    missing::Missing,
    symbols::SymbolFiles,
};

impl Module {
    /// The files with symbol tables that were opened so far.
    pub(crate) fn symbol_files(&self) -> SymbolFiles<'_> {
        let separate = self.separate.get().and_then(|found| found.as_ref().ok());
        SymbolFiles {
            own: self.image(),
            separate: separate.map(|image| &**image),
            mini: self.mini.get().and_then(Option::as_deref),
        }
    }

    /// What `.gnu_debugdata` holds: the symbols of functions, compressed.
    pub(crate) fn mini(&self) -> Option<&Arc<Image>> {
        let read = || {
            let memory = self.image().account();
            let room = memory.all().limit().saturating_sub(memory.all().bytes());
            let inflated = minidebug::inflate(self.image().section_data(".gnu_debugdata"), room)?;
            memory.hold_fixed(inflated.len());
            let image = Image::parse(Arc::new(inflated)).ok()?;
            Some(Arc::new(image.within(memory)))
        };
        self.mini.get_or_init(read).as_ref()
    }

    /// The separate debug file, found as debuggers find it: by build-id, then by `.gnu_debuglink`.
    pub(crate) fn separate(&self) -> Result<&Arc<Image>, Missing> {
        self.separate
            .get_or_init(|| self.find_separate())
            .as_ref()
            .map_err(|missing| *missing)
    }

    /// Asks for the file and checks that it is of this build.
    fn find_separate(&self) -> Result<Arc<Image>, Missing> {
        let mut refused = Missing::NoDebugInfo;
        if let Some(id) = self.build_id() {
            for bytes in self.finder.candidates(&DebugRequest::BuildId(id)) {
                match Image::parse(bytes) {
                    Ok(image) if image.build_id() == Some(id) => {
                        return Ok(Arc::new(image.within(self.image().account())));
                    }
                    Ok(_) => refused = Missing::BuildIdMismatch,
                    Err(_) => refused = Missing::Malformed,
                }
            }
        }
        let Some((file_name, expected)) = debug_link(self.image().section_data(".gnu_debuglink"))
        else {
            return Err(refused);
        };
        let request = DebugRequest::DebugLink {
            file_name,
            crc32: expected,
        };
        for bytes in self.finder.candidates(&request) {
            let actual = crc32((*bytes).as_ref());
            let Ok(image) = Image::parse(bytes) else {
                refused = Missing::Malformed;
                continue;
            };
            // The build-id is the stronger proof when both files have one.
            match (self.build_id(), image.build_id()) {
                (Some(own), Some(other)) if own != other => refused = Missing::BuildIdMismatch,
                _ if actual != expected => refused = Missing::ChecksumMismatch,
                _ => return Ok(Arc::new(image.within(self.image().account()))),
            }
        }
        Err(refused)
    }
}

/// `.gnu_debuglink`: a file name, zero bytes up to the next multiple of four, a checksum.
fn debug_link(section: &[u8]) -> Option<(&str, u32)> {
    let name = section.split(|&byte| byte == 0).next()?;
    let at = (name.len() + 1).next_multiple_of(4);
    let checksum = section.get(at..)?.first_chunk::<4>()?;
    let name = std::str::from_utf8(name).ok()?;
    // A name is looked for in certain directories; one with directories of its own could lead elsewhere.
    let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    plain.then(|| (name, u32::from_le_bytes(*checksum)))
}

#[cfg(test)]
mod tests {
    use super::debug_link;

    #[test]
    fn a_debug_link_is_a_plain_file_name_and_a_checksum() {
        assert_eq!(
            debug_link(b"a.debug\0\x04\x03\x02\x01"),
            Some(("a.debug", 0x0102_0304))
        );
        assert_eq!(
            debug_link(b"ab.debug\0\0\0\0\x04\x03\x02\x01"),
            Some(("ab.debug", 0x0102_0304))
        );
        for bad in [
            &b""[..],
            b"a.debug",
            b"../a\0\0\0\0\0\0\0",
            b"..\0\0\0\0\0\0",
            b"\0\0\0\0\0\0\0\0",
        ] {
            assert_eq!(debug_link(bad), None, "{bad:?}");
        }
    }
}
