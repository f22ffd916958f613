//! How the crate asks for separate debug files without doing any input or output itself.

use std::sync::Arc;

/// The bytes of a file: a memory map, a vector, whatever can be looked at from any thread.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A debug file the module would like to have. The caller knows where such files are
/// (`/usr/lib/debug/.build-id/ab/cdef.debug`, the directory of the binary, debuginfod).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DebugRequest<'a> {
    /// The file with this build-id. Files with another one are refused.
    BuildId(&'a [u8]),
    /// A file of this name beside the binary, in its `.debug` directory or below the global debug directory.
    DebugLink {
        /// Name without directories.
        file_name: &'a str,
        /// CRC-32 (IEEE 802.3) of the whole file. Files with another one are refused.
        crc32: u32,
    },
    /// The supplementary file that dwz made (`.gnu_debugaltlink`, `.debug_sup`). If none fits, a
    /// [`DebugRequest::BuildId`] for the same file follows.
    AltFile {
        /// Absolute, or relative to the directory of the file that has the debug info: the one found before.
        file_name: &'a str,
        /// Build-id. Files with another one are refused.
        build_id: &'a [u8],
    },
    /// The package with all `.dwo` files of the module: `MODULE.dwp` beside it, usually.
    Dwp {
        /// Build-id of the module.
        build_id: Option<&'a [u8]>,
    },
    /// One `.dwo` file.
    Dwo {
        /// Directory of the compilation, `DW_AT_comp_dir`; may be empty.
        directory: &'a str,
        /// `DW_AT_dwo_name`: absolute, or relative to `directory`.
        file_name: &'a str,
        /// Identity of the compilation. Files without it are refused.
        dwo_id: u64,
    },
}

/// Finds debug files. Asked when a question first needs the file, at most once for each: but for each unit that
/// names it for [`DebugRequest::Dwo`].
pub trait DebugFiles {
    /// The bytes of the requested file, if there is one.
    fn find(&self, request: &DebugRequest<'_>) -> Option<Bytes>;

    /// All files that may be the requested one, the likeliest first: those of another build are passed over. Just
    /// what [`DebugFiles::find`] gives unless there is more than one place to look.
    fn candidates<'a>(
        &'a self,
        request: &DebugRequest<'a>,
    ) -> Box<dyn Iterator<Item = Bytes> + 'a> {
        Box::new(self.find(request).into_iter())
    }
}

/// Finds nothing: only what the file itself holds is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDebugFiles;

impl DebugFiles for NoDebugFiles {
    fn find(&self, _: &DebugRequest<'_>) -> Option<Bytes> {
        None
    }
}

/// CRC-32 as `.gnu_debuglink` uses it (reflected polynomial 0xedb88320), eight bytes a step
/// because debug files are large.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLES: [[u32; 256]; 8] = tables();
    let mut crc = !0u32;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let low = crc ^ u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        crc = 0;
        for (byte, table) in low
            .to_le_bytes()
            .iter()
            .chain(&chunk[4..])
            .zip(TABLES.iter().rev())
        {
            crc ^= table[usize::from(*byte)];
        }
    }
    for byte in chunks.remainder() {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xedb8_8320
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][index] = crc;
        index += 1;
    }
    let mut slice = 1;
    while slice < 8 {
        let mut index = 0;
        while index < 256 {
            let before = tables[slice - 1][index];
            tables[slice][index] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            index += 1;
        }
        slice += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_checksum_is_the_one_of_ieee_802_3() {
        // Check value of CRC-32/ISO-HDLC in the CRC catalogue.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(
            crc32(b"The quick brown fox jumps over the lazy dog"),
            0x414f_a339
        );
    }
}
