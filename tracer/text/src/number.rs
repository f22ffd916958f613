//! Numbers as people read them: grouped digits, shares, counts with the right plural.

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// As [`grouped`], in millions where that would be long: `117.3 M`. For narrow columns.
pub fn short(n: u64) -> String {
    if n < 10_000_000 {
        return grouped(n);
    }
    let tenths = (n + 50_000) / 100_000;
    format!("{}.{} M", grouped(tenths / 10), tenths % 10)
}

/// `1 line`, `2 lines`, `1,200 lines`.
pub fn count(n: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { singular } else { plural })
}

/// A share of 0..1 as `41.2 %`. Something that is not nothing never reads as `0.0 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "unknown".to_owned();
    }
    let value = share * 100.0;
    if value > 0.0 && value < 0.05 {
        if value < 0.01 {
            "<0.01 %".to_owned()
        } else {
            format!("{value:.2} %")
        }
    } else {
        format!("{value:.1} %")
    }
}

/// As [`percent`], with as many more digits as it takes to differ from a limit next to it.
pub fn percent_beside(share: f64, limit: f64) -> String {
    let (text, of_limit) = (percent(share), percent(limit));
    if text != of_limit || !share.is_finite() {
        return text;
    }
    let with = |share: f64, digits: usize| format!("{:.digits$} %", share * 100.0);
    (2..=4)
        .find(|digits| with(share, *digits) != with(limit, *digits))
        .map_or(text, |digits| with(share, digits))
}

/// Seconds as `0.25 s`, `9.8 s`, `1,312 s`.
pub fn seconds(s: f64) -> String {
    if s < 1.0 {
        format!("{s:.2} s")
    } else if s < 10.0 {
        format!("{s:.1} s")
    } else {
        format!("{} s", grouped(s.round() as u64))
    }
}

/// Sorted numbers as ranges: `0-3,7`.
pub fn ranges(sorted: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &n in sorted {
        match parts.last_mut() {
            Some((_, last)) if n == last.saturating_add(1) => *last = n,
            _ => parts.push((n, n)),
        }
    }
    let words: Vec<String> = parts
        .iter()
        .map(|&(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        })
        .collect();
    words.join(",")
}

/// `a`, `a and b`, `a, b and c`; beyond `most`, `a, b and 7 more`.
pub fn list(words: &[String], most: usize) -> String {
    let shown = words.len().min(most.max(1));
    let rest = words.len() - shown;
    match (shown, rest) {
        (0, _) => String::new(),
        (1, 0) => words[0].clone(),
        (_, 0) => format!("{} and {}", words[..shown - 1].join(", "), words[shown - 1]),
        _ => format!(
            "{} and {} more",
            words[..shown].join(", "),
            grouped(rest as u64)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_threes() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn what_is_too_long_for_a_column_is_said_in_millions() {
        let all = [9_999_999, 10_000_000, 117_291_234, 999_999_999].map(short);
        assert_eq!(all, ["9,999,999", "10.0 M", "117.3 M", "1,000.0 M"]);
    }

    #[test]
    fn one_is_singular_and_everything_else_plural() {
        assert_eq!(count(1, "line", "lines"), "1 line");
        assert_eq!(count(0, "line", "lines"), "0 lines");
        assert_eq!(count(2000, "line", "lines"), "2,000 lines");
    }

    #[test]
    fn a_share_next_to_a_limit_never_reads_as_the_limit() {
        assert_eq!(percent_beside(0.009_97, 0.01), "0.997 %");
        assert_eq!(percent_beside(0.009_4, 0.01), "0.9 %");
        assert_eq!(percent_beside(0.01, 0.01), "1.0 %");
    }

    #[test]
    fn a_small_share_is_not_printed_as_nothing() {
        assert_eq!(percent(0.4123), "41.2 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(percent(0.0004), "0.04 %");
        assert_eq!(percent(0.00000001), "<0.01 %");
        assert_eq!(percent(f64::NAN), "unknown");
    }

    #[test]
    fn neighbouring_numbers_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7]), "0-3,7");
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[u32::MAX - 1, u32::MAX]), "4294967294-4294967295");
    }

    #[test]
    fn long_lists_end_in_a_count() {
        let words: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        assert_eq!(list(&words[..1], 3), "a");
        assert_eq!(list(&words[..2], 3), "a and b");
        assert_eq!(list(&words[..3], 3), "a, b and c");
        assert_eq!(list(&words, 2), "a, b and 2 more");
        assert_eq!(list(&[], 2), "");
    }
}
