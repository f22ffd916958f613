//! What to watch, as people write it: an address or the name of a variable.

/// What a text asks to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchSpec {
    /// `0x7f12a040`, `0x7f12a040,4`, `139714896`.
    Address {
        /// Virtual address, a multiple of `len`.
        addr: u64,
        /// 1, 2, 4 or 8 bytes, where the text says.
        len: Option<u8>,
    },
    /// `counters.hits`; see [`find_variable`](super::find_variable).
    Variable(String),
}

/// Why a text is neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchTextError {
    /// There is nothing in it.
    #[error(
        "nothing to watch is named: give a variable (`counters.hits`) or an address (`0x7f12a040,8`)"
    )]
    Empty,
    /// It starts like a number and is none.
    #[error("`{0}` is no address: write 0x and hexadecimal digits, or decimal digits")]
    Address(String),
    /// The number after the comma.
    #[error("`{0}` bytes cannot be watched: breakpoint registers take 1, 2, 4 or 8")]
    Len(String),
    /// Breakpoint registers leave out the low bits.
    #[error("{addr:#x} is no multiple of {len}: watch {len} bytes at {:#x}, or fewer at {addr:#x}", addr - addr % u64::from(*len))]
    Unaligned {
        /// The address.
        addr: u64,
        /// The length.
        len: u8,
    },
    /// A length after a name.
    #[error("`{0}`: only an address takes a length; a variable has its own")]
    LenOfVariable(String),
}

/// Reads what the user wants to watch. No variable's name starts with a digit.
pub fn parse_watch(text: &str) -> Result<WatchSpec, WatchTextError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(WatchTextError::Empty);
    }
    // The name of a file before a variable (`2.c:counters`) may start with a digit.
    if !text.starts_with(|first: char| first.is_ascii_digit()) || text.contains(':') {
        // Template arguments have commas, and brackets around them.
        return match text.rsplit_once(',') {
            Some((_, len)) if len.trim().bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(WatchTextError::LenOfVariable(text.to_owned()))
            }
            _ => Ok(WatchSpec::Variable(text.to_owned())),
        };
    }
    let (number, len) = match text.split_once(',') {
        Some((number, len)) => (number.trim(), Some(len.trim())),
        None => (text, None),
    };
    let hexadecimal = number.strip_prefix("0x").or(number.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((number, 10), |digits| (digits, 16));
    let addr = Some(digits)
        // The standard library would take a sign.
        .filter(|digits| !digits.starts_with(['+', '-']))
        .and_then(|digits| u64::from_str_radix(digits, radix).ok())
        .ok_or_else(|| WatchTextError::Address(number.to_owned()))?;
    let len = match len {
        None => None,
        Some("1") => Some(1),
        Some("2") => Some(2),
        Some("4") => Some(4),
        Some("8") => Some(8),
        Some(len) => return Err(WatchTextError::Len(len.to_owned())),
    };
    match len {
        Some(len) if !addr.is_multiple_of(u64::from(len)) => {
            Err(WatchTextError::Unaligned { addr, len })
        }
        len => Ok(WatchSpec::Address { addr, len }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hexadecimal_or_decimal_with_a_length_or_without() {
        let address = |addr, len| Ok(WatchSpec::Address { addr, len });
        assert_eq!(parse_watch("0x7f12a040"), address(0x7f12_a040, None));
        assert_eq!(parse_watch("0X7F12A040,4"), address(0x7f12_a040, Some(4)));
        assert_eq!(parse_watch(" 4096 , 8 "), address(4096, Some(8)));
        assert_eq!(parse_watch("0x1003,1"), address(0x1003, Some(1)));
        assert_eq!(parse_watch("0xffffffffffffffff"), address(u64::MAX, None));
    }

    #[test]
    fn everything_else_is_a_variable_as_it_is_written() {
        for text in [
            "counters",
            "ns::table.slots[1].served",
            "x7f",
            "_ZN2ns5statsE",
            "2.c:counters",
            "Map<int, 4>::total",
        ] {
            assert_eq!(parse_watch(text), Ok(WatchSpec::Variable(text.to_owned())));
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_what_would_be_right() {
        let check = |text: &str, expected: &str| {
            let error = parse_watch(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("  ", "nothing to watch is named");
        check("0x", "`0x` is no address");
        check("0x+1", "`0x+1` is no address");
        check("12ab", "`12ab` is no address");
        check("0x10000000000000000", "is no address");
        check("0x1000,", "`` bytes cannot be watched");
        check("0x1000,3", "`3` bytes cannot be watched");
        check("0x1000,16", "take 1, 2, 4 or 8");
        check("0x1000,8,8", "`8,8` bytes");
        check(
            "0x1004,8",
            "0x1004 is no multiple of 8: watch 8 bytes at 0x1000, or fewer at 0x1004",
        );
        check("counters.hits,4", "only an address takes a length");
    }
}
