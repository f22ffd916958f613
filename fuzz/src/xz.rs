//! xz files around data of any kind ("The .xz File Format", version 1.2.1), so that a fuzzer need not guess checksums.

use crate::parts;

/// Size of a block's header with one filter and no sizes, its checksum included.
const BLOCK_HEADER: usize = 12;
/// Bytes that one chunk can store as they are (the LZMA2 chunk of control byte 1).
const LONGEST_CHUNK: usize = 1 << 16;

/// The `.gnu_debugdata` that an input of the target `minidebug` stands for. Its first byte says what the rest is: the
/// section itself, compressed data, or the contents of what is inflated; its second the size of the dictionary, and its
/// third and fourth how long the data is said to be inflated.
pub fn section(input: &[u8]) -> Option<Vec<u8>> {
    let (&[way, dictionary, low, high], rest) = input.split_first_chunk::<4>()?;
    let inflated = u64::from(u16::from_le_bytes([low, high]));
    Some(match way % 3 {
        0 => rest.to_vec(),
        1 => around(rest, dictionary, inflated),
        _ => store(&parts::file(&parts::split(rest), "")),
    })
}

/// A file of one block without a check. `dictionary` is the filter's property (section 5.3.1), `chunks` LZMA2 data,
/// `inflated` how long they are said to be.
fn around(chunks: &[u8], dictionary: u8, inflated: u64) -> Vec<u8> {
    let flags = [0, 0];
    let mut file = b"\xfd7zXZ\0".to_vec();
    file.extend(flags);
    file.extend(crc32(&flags).to_le_bytes());

    let block = [2, 0, 0x21, 1, dictionary, 0, 0, 0];
    file.extend(block);
    file.extend(crc32(&block).to_le_bytes());
    file.extend(chunks);
    file.resize(file.len().next_multiple_of(4), 0);

    let mut index = vec![0, 1];
    number(&mut index, (BLOCK_HEADER + chunks.len()) as u64);
    number(&mut index, inflated);
    index.resize(index.len().next_multiple_of(4), 0);
    let sum = crc32(&index);
    index.extend(sum.to_le_bytes());
    file.extend(&index);

    let mut footer = (index.len() as u32 / 4 - 1).to_le_bytes().to_vec();
    footer.extend(flags);
    file.extend(crc32(&footer).to_le_bytes());
    file.extend(footer);
    file.extend(b"YZ");
    file
}

/// A sound file that inflates to these bytes.
fn store(bytes: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for chunk in bytes.chunks(LONGEST_CHUNK) {
        chunks.push(1);
        chunks.extend((chunk.len() as u16).wrapping_sub(1).to_be_bytes());
        chunks.extend(chunk);
    }
    chunks.push(0);
    around(&chunks, 16, bytes.len() as u64)
}

/// Seven bits a byte, the lowest first (section 1.2).
fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The polynomial of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}
