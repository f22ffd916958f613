//! Digests of source files, which say that two files are one wherever they lie.

use md5::{Digest as _, Md5};

/// The digest that DWARF 5 has of a source file (section 6.2.4.1, `DW_LNCT_MD5`), as 32 lower-case hexadecimal digits.
pub fn md5(text: &[u8]) -> String {
    digits(Md5::digest(text).into())
}

/// A digest as 32 lower-case hexadecimal digits.
pub fn digits(md5: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(md5))
}

/// Whether a text is a digest as they are written here.
pub fn is_digest(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 32 && text.bytes().all(digit)
}

/// Whether two texts are one digest. Assemblers disagree on the order of its bytes in a line table: GNU as 2.40 writes
/// what clang's `.file` says the other way round than clang itself.
pub fn is_same(one: &str, other: &str) -> bool {
    let turned = |text: &str| u128::from_str_radix(text, 16).map(u128::swap_bytes);
    one == other || turned(one) == u128::from_str_radix(other, 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard_with_all_their_digits() {
        // RFC 1321, appendix A.5.
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5(b"message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        assert_eq!(md5(b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(digits([0; 16]), "0".repeat(32));
        assert!(is_same(&md5(b"abc"), &md5(b"abc")) && !is_same(&md5(b"abc"), &md5(b"")));
        assert!(is_same(
            "00112233445566778899aabbccddeeff",
            "ffeeddccbbaa99887766554433221100"
        ));
        assert!(is_digest(&md5(b"abc")) && !is_digest("0x12") && !is_digest(&"G".repeat(32)));
    }
}
