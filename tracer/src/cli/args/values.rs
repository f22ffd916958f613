//! What values of options may be.

use crate::{coherence::LogBuffer, report::layout::FindingId};

pub(super) fn finding_id(text: &str) -> Result<FindingId, String> {
    FindingId::parse(text)
        .ok_or_else(|| "expected a number from 1, as the report has it: 2, F2 or I2".into())
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 31_536_000.0 => Ok(value),
        _ => Err("expected seconds above 0, up to a year".into()),
    }
}

/// A length of time in nanoseconds.
pub(super) fn interval(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => Some(1),
        "us" => Some(1000),
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    (number.zip(unit))
        .and_then(|(number, unit)| number.checked_mul(unit))
        .ok_or_else(|| "expected a length of time such as 100ms, 50us or 2s".into())
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0 to 100".into()),
    }
}

pub(super) fn overhead(text: &str) -> Result<f64, String> {
    match percent(text) {
        Ok(value) if (0.1..=50.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0.1 to 50; --no-watch takes none".into()),
    }
}

pub(super) fn held(text: &str) -> Result<f64, String> {
    match percent(text) {
        Ok(value) if (0.1..=50.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage of the time from 0.1 to 50".into()),
    }
}

pub(in crate::cli) fn heap_overhead(text: &str) -> Result<f64, String> {
    match percent(text) {
        Ok(value) if (0.1..=100.0).contains(&value) => Ok(value),
        _ => Err("expected a percentage from 0.1 to 100".into()),
    }
}

pub(super) fn line_size(text: &str) -> Result<u64, String> {
    match text {
        "64" => Ok(64),
        "128" => Ok(128),
        _ => Err("expected 64 or 128".into()),
    }
}

/// A number of bytes, or of KiB, MiB or GiB with K, M or G behind it.
pub(super) fn memory_bytes(text: &str) -> Result<u64, String> {
    match bytes(text) {
        Some(bytes) if bytes >= 1 << 20 => Ok(bytes),
        Some(_) => Err("expected at least 1M".into()),
        None => Err("expected a size such as 64M or 2G".into()),
    }
}

/// The size of a cache, up to what caches have by far.
pub(super) fn cache_bytes(text: &str) -> Result<u64, String> {
    match bytes(text) {
        Some(bytes) if (64..=1 << 30).contains(&bytes) => Ok(bytes),
        Some(_) => Err("expected 64 bytes to 1G".into()),
        None => Err("expected a size such as 256K or 3M".into()),
    }
}

/// Kept and all requests from one reading of a buffer to the next.
pub(super) fn log_buffer(text: &str) -> Result<LogBuffer, String> {
    text.split_once('/')
        .and_then(|(kept, every)| LogBuffer::new(kept.parse().ok()?, every.parse().ok()?))
        .ok_or_else(|| {
            "expected two numbers such as 1000/10000, the first from 1 to the second".into()
        })
}

fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().ok()?;
    number.checked_mul(1 << shift)
}

pub(super) fn ring_kib(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(kib) if kib.is_power_of_two() && (64..=262_144).contains(&kib) => Ok(kib),
        _ => Err("expected a power of two from 64 to 262144".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_memory_has_a_unit_or_none() {
        assert_eq!(memory_bytes("64M"), Ok(64 << 20));
        assert_eq!(memory_bytes("2g"), Ok(2 << 30));
        assert_eq!(memory_bytes("2048K"), Ok(2 << 20));
        assert_eq!(memory_bytes("1048576"), Ok(1 << 20));
        for bad in ["", "M", "0", "1K", "-1M", "1.5G", "64MB", "99999999999999G"] {
            assert!(memory_bytes(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_interval_has_a_unit() {
        assert_eq!(interval("100ms"), Ok(100_000_000));
        assert_eq!(
            [interval("2s"), interval("0us")],
            [Ok(2_000_000_000), Ok(0)]
        );
        for bad in ["", "100", "ms", "-1ms", "1.5s", "1h", "99999999999999s"] {
            assert!(interval(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_buffer_holds_some_of_the_requests() {
        assert_eq!(log_buffer("10/100"), Ok(LogBuffer::new(10, 100).unwrap()));
        assert_eq!(log_buffer("7/7").map(LogBuffer::is_complete), Ok(true));
        for bad in ["", "10", "0/5", "6/5", "a/b", "1/", "-1/5", "1/2/3"] {
            assert!(log_buffer(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_cache_is_between_a_line_and_a_gibibyte() {
        assert_eq!(cache_bytes("256K"), Ok(256 << 10));
        assert_eq!(cache_bytes("64"), Ok(64));
        assert_eq!(cache_bytes("1G"), Ok(1 << 30));
        for bad in ["0", "63", "2G", "256KiB", ""] {
            assert!(cache_bytes(bad).is_err(), "{bad:?}");
        }
    }
}
