//! A row of slices in one line: a character each, darker for more.

/// From nothing to the most.
pub(crate) const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Not known.
pub(crate) const UNKNOWN: char = '?';

/// How many slices a character stands for, so that they fit.
pub(crate) fn slices_of_character(slices: usize, width: usize) -> usize {
    slices.div_ceil(width.max(1)).max(1)
}

/// Numbers of slices as characters. `most` is the number of the darkest; several slices of one character count by their
/// largest, as far as that is known.
pub(crate) fn strip(numbers: &[Option<f64>], most: f64, each: usize) -> String {
    let of_group = |group: &[Option<f64>]| {
        let known = group.iter().flatten().copied();
        known.reduce(f64::max).map_or(UNKNOWN, |n| shade(n, most))
    };
    numbers.chunks(each.max(1)).map(of_group).collect()
}

/// Something that is not nothing is never blank.
fn shade(number: f64, most: f64) -> char {
    let darkest = SHADES.len() - 1;
    if number <= 0.0 || most <= 0.0 {
        return SHADES[0];
    }
    let step = (number / most * darkest as f64).ceil();
    SHADES[(step as usize).clamp(1, darkest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_blank_the_most_is_darkest_and_unknown_is_neither() {
        let numbers = [Some(0.0), Some(0.1), Some(50.0), Some(100.0), None];
        assert_eq!(strip(&numbers, 100.0, 1), " .+@?");
        assert_eq!(strip(&[Some(0.0)], 0.0, 1), " ");
    }

    #[test]
    fn slices_that_do_not_fit_share_a_character_by_their_largest() {
        assert_eq!([10, 11, 0].map(|n| slices_of_character(n, 10)), [1, 2, 1]);
        let numbers = [Some(0.0), Some(9.0), None, Some(1.0), None];
        assert_eq!(strip(&numbers, 9.0, 2), "@.?");
    }
}
