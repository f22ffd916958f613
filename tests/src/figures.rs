//! Measured figures as people compare them: medians with their range, in aligned tables.

/// Repeated measurements of one quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` when there are none or one is not a number.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        if sorted.iter().any(|value| value.is_nan()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        Some(Spread {
            median: f64::midpoint(sorted[lower], sorted[upper]),
            min,
            max,
        })
    }

    /// `median (min..max)` with that many decimals.
    pub fn text(&self, decimals: usize) -> String {
        // Rounding first: a small negative figure would else read `-0.0`.
        let scale = 10f64.powi(decimals as i32);
        let [median, min, max] =
            [self.median, self.min, self.max].map(|value| (value * scale).round() / scale + 0.0);
        format!("{median:.decimals$} ({min:.decimals$}..{max:.decimals$})")
    }
}

/// `median (min..max)`, or a dash where nothing was measured.
pub fn spread(values: &[f64], decimals: usize) -> String {
    Spread::of(values).map_or_else(|| "-".to_owned(), |spread| spread.text(decimals))
}

/// Rows under a heading; the first column names, the others are figures.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Only the heading.
    pub fn new(heading: &[&str]) -> Table {
        let heading = heading.iter().map(|&cell| cell.to_owned()).collect();
        Table {
            rows: vec![heading],
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl std::fmt::Display for Table {
    /// Names to the left, figures to the right, two spaces between, no space at the end.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, &width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_middle_two() {
        let median = |values: &[f64]| Spread::of(values).map(|spread| spread.median);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn of_no_measurement_or_a_broken_one_nothing_is_said() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(spread(&[], 2), "-");
    }

    #[test]
    fn a_spread_shows_its_range() {
        assert_eq!(spread(&[3.0, 1.0, 2.0], 1), "2.0 (1.0..3.0)");
        assert_eq!(spread(&[-0.001, 0.001, -0.004], 2), "0.00 (0.00..0.00)");
    }

    #[test]
    fn columns_are_aligned_names_left_and_figures_right() {
        let mut table = Table::new(&["tool", "seconds"]);
        table.row(["a".to_owned(), "1.0".to_owned()]);
        table.row(["longer".to_owned(), "12345678.0".to_owned()]);
        let expected = "tool       seconds\na              1.0\nlonger  12345678.0\n".to_owned();
        assert_eq!(table.to_string(), expected);
    }
}
