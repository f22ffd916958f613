//! `.gnu_debugdata`: an ELF file with the symbols of functions, compressed with xz (gdb manual, "Debugging information
//! in a special section").

use std::io::Read;

use lzma_rust2::XzReader;

/// Symbols shrink to a fifth. A section that claims more than this is refused instead of given memory.
const MOST_INFLATION: u64 = 64;
/// Kilobytes of working memory for the decoder: the largest preset (`xz -9`) needs 64 MB and a little.
const MOST_MEMORY: u32 = 65 << 10;

/// The file in the section; none if there is none, it is damaged, or there is no room for so many bytes.
pub(crate) fn inflate(section: &[u8], room: usize) -> Option<Vec<u8>> {
    if section.is_empty() {
        return None;
    }
    let most = (section.len() as u64).saturating_mul(MOST_INFLATION) + (1 << 16);
    let most = most.min(room as u64);
    let mut inflated = Vec::new();
    let reader = XzReader::new_mem_limit(section, false, MOST_MEMORY);
    let read = reader
        .take(most.saturating_add(1))
        .read_to_end(&mut inflated)
        .ok()?;
    (read as u64 <= most).then_some(inflated)
}
