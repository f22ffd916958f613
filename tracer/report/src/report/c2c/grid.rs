//! Columns under headings of two rows, as wide as their content.

use crate::report::printable::columns;

/// A column. Neighbours with the same group share its heading.
pub(super) struct Column {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    /// Words, aligned to the left.
    pub(super) left: bool,
}

/// Spaces between columns.
const GAP: usize = 2;

/// Lays out the rows; headings begin with `#`.
pub(super) struct Grid {
    columns: &'static [Column],
    widths: Vec<usize>,
}

impl Grid {
    /// Wide enough for all of these rows.
    pub(super) fn new<'r>(
        all: &'static [Column],
        rows: impl Iterator<Item = &'r Vec<String>>,
    ) -> Grid {
        let mut widths: Vec<usize> = all.iter().map(|column| column.name.len()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(cell));
            }
        }
        let mut grid = Grid {
            columns: all,
            widths,
        };
        for (start, end) in grid.groups() {
            let wanted = all[start].group.len();
            let missing = wanted.saturating_sub(grid.span(start, end));
            grid.widths[end - 1] += missing;
        }
        grid
    }

    /// Ranges of columns with the same group.
    fn groups(&self) -> Vec<(usize, usize)> {
        let mut groups: Vec<(usize, usize)> = Vec::new();
        for n in 0..self.columns.len() {
            match groups.last_mut() {
                Some((start, end)) if self.columns[*start].group == self.columns[n].group => {
                    *end = n + 1;
                }
                _ => groups.push((n, n + 1)),
            }
        }
        groups
    }

    fn span(&self, start: usize, end: usize) -> usize {
        self.widths[start..end].iter().sum::<usize>() + GAP * (end - start - 1)
    }

    /// The two rows of headings.
    pub(super) fn headings(&self) -> String {
        let mut first = String::from("#");
        for (start, end) in self.groups() {
            let (group, span) = (self.columns[start].group, self.span(start, end));
            let heading = if end - start > 1 && !group.is_empty() && span >= group.len() + 4 {
                format!("{:-^span$}", format!(" {group} "))
            } else if self.columns[start].left {
                format!("{group:span$}")
            } else {
                format!("{group:>span$}")
            };
            first += " ";
            first += &heading;
            first += &" ".repeat(GAP - 1);
        }
        let names = self.columns.iter().map(|column| column.name.to_owned());
        let second = self.line(&names.collect::<Vec<_>>(), '#');
        format!("{}\n{second}", first.trim_end())
    }

    /// A row.
    pub(super) fn row(&self, cells: &[String]) -> String {
        self.line(cells, ' ')
    }

    fn line(&self, cells: &[String], mark: char) -> String {
        let mut out = String::from(mark);
        for ((column, width), cell) in self.columns.iter().zip(&self.widths).zip(cells) {
            let pad = " ".repeat(width.saturating_sub(columns(cell)));
            out.push(' ');
            if column.left {
                out += cell;
                out += &pad;
            } else {
                out += &pad;
                out += cell;
            }
            out += &" ".repeat(GAP - 1);
        }
        format!("{}\n", out.trim_end())
    }
}
