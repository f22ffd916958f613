//! Aligned columns that always fit: when a table is too wide, the widest shrinkable column gives way.

use super::{printable::columns, shorten};

/// Spaces between two columns.
const GAP: usize = 2;

/// One column.
pub(super) struct Column {
    /// Heading.
    pub title: &'static str,
    /// Numbers are aligned to the right.
    pub right: bool,
    /// Never narrower than this (or its content).
    pub min: usize,
    /// Shortens a cell to a width.
    pub shorten: fn(&str, usize) -> String,
}

impl Column {
    /// Words, aligned to the left.
    pub(super) const fn left(
        title: &'static str,
        min: usize,
        shorten: fn(&str, usize) -> String,
    ) -> Column {
        Column {
            title,
            right: false,
            min,
            shorten,
        }
    }

    /// Numbers, aligned to the right.
    pub(super) const fn right(
        title: &'static str,
        min: usize,
        shorten: fn(&str, usize) -> String,
    ) -> Column {
        Column {
            right: true,
            ..Column::left(title, min, shorten)
        }
    }
}

/// Lays out the rows, heading first, in at most `width` columns. Rows have one cell per column.
/// A column whose cells are all empty is left out.
pub(super) fn layout(table: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let used = used(rows);
    let widths = fit(table, rows, &used, width);
    let mut lines = vec![String::new(); rows.len() + 1];
    for (&i, &w) in used.iter().zip(&widths) {
        let cells: Vec<&str> = rows.iter().map(|row| row[i].as_str()).collect();
        let cells = shorten::apart(&cells, w, table[i].shorten);
        let title = (table[i].shorten)(table[i].title, w);
        for (line, cell) in lines.iter_mut().zip([title].into_iter().chain(cells)) {
            let pad = " ".repeat(w.saturating_sub(columns(&cell)));
            if i != used[0] {
                line.push_str(&" ".repeat(GAP));
            }
            let (before, after) = if table[i].right {
                (pad.as_str(), "")
            } else {
                ("", pad.as_str())
            };
            line.extend([before, cell.as_str(), after]);
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines
}

/// Whether nothing would have to be shortened.
pub(super) fn fits(table: &[Column], rows: &[Vec<String>], width: usize) -> bool {
    total(&natural(table, rows, &used(rows))) <= width
}

/// The columns that have something in them.
fn used(rows: &[Vec<String>]) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..count)
        .filter(|&i| rows.iter().any(|row| !row[i].is_empty()))
        .collect()
}

/// Width of each used column if all had room.
fn natural(table: &[Column], rows: &[Vec<String>], used: &[usize]) -> Vec<usize> {
    let widest = |&i: &usize| {
        let cells = rows.iter().map(|row| columns(&row[i]));
        cells.max().unwrap_or(0).max(columns(table[i].title))
    };
    used.iter().map(widest).collect()
}

/// Width of a line, gaps included.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Widths of the used columns: natural ones, taken down one by one from the widest until they fit.
fn fit(table: &[Column], rows: &[Vec<String>], used: &[usize], width: usize) -> Vec<usize> {
    let mut widths = natural(table, rows, used);
    for natural in &mut widths {
        *natural = (*natural).min(width);
    }
    while total(&widths) > width {
        let above_min = |&(n, &w): &(usize, &usize)| w > table[used[n]].min.max(1);
        let Some((n, _)) = widths
            .iter()
            .enumerate()
            .filter(above_min)
            .max_by_key(|&(_, &w)| w)
        else {
            break;
        };
        widths[n] -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::shorten;

    fn table() -> Vec<Column> {
        vec![
            Column::right("n", 3, shorten::end),
            Column::left("what", 6, shorten::middle),
            Column::left("where", 6, shorten::path),
        ]
    }

    fn row(cells: [&str; 3]) -> Vec<String> {
        cells.map(str::to_owned).into()
    }

    #[test]
    fn numbers_stand_at_the_right_and_words_at_the_left() {
        let rows = [row(["1", "load", "a.c:1"]), row(["100", "store", "b.c:12"])];
        assert_eq!(
            layout(&table(), &rows, 40),
            [
                "  n  what   where",
                "  1  load   a.c:1",
                "100  store  b.c:12"
            ]
        );
    }

    #[test]
    fn the_widest_column_gives_way_first() {
        let rows = [row(["1", "a_quite_long_name_of_something", "dir/file.c:1"])];
        let lines = layout(&table(), &rows, 32);
        assert_eq!(lines[1], "1  a_qu..something  dir/file.c:1");
    }

    #[test]
    fn an_empty_column_takes_no_room() {
        let rows = [row(["1", "", "a.c:1"])];
        assert_eq!(layout(&table(), &rows, 40), ["n  where", "1  a.c:1"]);
    }

    #[test]
    fn a_table_fits_when_no_cell_has_to_be_shortened() {
        let rows = vec![vec!["1".to_owned(), "some".to_owned(), "a/b.c".to_owned()]];
        // Columns of 1, 4 and 5, and two gaps of 2.
        assert!(fits(&table(), &rows, 14));
        assert!(!fits(&table(), &rows, 13));
    }
}
