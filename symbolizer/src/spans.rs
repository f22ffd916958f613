//! Sorted address ranges that may overlap, searched by address.

/// One range and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<T> {
    pub(crate) start: u64,
    /// First address after the range.
    pub(crate) end: u64,
    pub(crate) value: T,
}

/// Ranges in the order of their start. The starts lie apart, so that a search touches little memory.
#[derive(Debug)]
pub(crate) struct Spans<T> {
    starts: Box<[u64]>,
    rests: Box<[Rest<T>]>,
}

#[derive(Clone, Copy, Debug)]
struct Rest<T> {
    end: u64,
    /// The largest end of this range and all before it: where a backwards search may stop.
    reach: u64,
    value: T,
}

/// Overlapping ranges looked at for one address. Real files overlap two or three deep.
const MOST_STEPS: usize = 4096;

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans {
            starts: Box::default(),
            rests: Box::default(),
        }
    }
}

impl<T: Copy> Spans<T> {
    /// Empty and inverted ranges are dropped.
    pub(crate) fn new(mut spans: Vec<Span<T>>) -> Spans<T> {
        spans.retain(|span| span.start < span.end);
        // Wider ranges first, so that the narrowest one of equal starts is found first from behind.
        spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
        let mut reach = 0;
        let rest = |span: &Span<T>| {
            reach = span.end.max(reach);
            Rest {
                end: span.end,
                reach,
                value: span.value,
            }
        };
        Spans {
            rests: spans.iter().map(rest).collect(),
            starts: spans.iter().map(|span| span.start).collect(),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.rests)
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The ranges that cover `address`, the one that starts last (the innermost one) first.
    pub(crate) fn covering(&self, address: u64) -> impl Iterator<Item = Span<T>> {
        self.indexes_covering(address)
            .filter_map(|index| self.get(index))
    }

    /// As [`Spans::covering`], by the position of the ranges.
    pub(crate) fn indexes_covering(&self, address: u64) -> impl Iterator<Item = usize> {
        let upto = self.starts.partition_point(|&start| start <= address);
        (0..upto)
            .rev()
            .take(MOST_STEPS)
            .take_while(move |&index| self.rests[index].reach > address)
            .filter(move |&index| self.rests[index].end > address)
    }

    pub(crate) fn get(&self, index: usize) -> Option<Span<T>> {
        let rest = self.rests.get(index)?;
        Some(Span {
            start: *self.starts.get(index)?,
            end: rest.end,
            value: rest.value,
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Span<T>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, Spans};

    fn values(spans: &Spans<char>, address: u64) -> String {
        spans.covering(address).map(|span| span.value).collect()
    }

    #[test]
    fn nested_ranges_are_found_innermost_first_and_gaps_are_empty() {
        let span = |start, end, value| Span { start, end, value };
        let spans = Spans::new(vec![
            span(40, 40, 'x'),
            span(10, 20, 'b'),
            span(0, 30, 'a'),
            span(10, 12, 'c'),
            span(35, 40, 'd'),
            span(39, 2, 'y'),
        ]);
        assert_eq!(values(&spans, 11), "cba");
        assert_eq!(values(&spans, 12), "ba");
        assert_eq!(values(&spans, 20), "a");
        assert_eq!(values(&spans, 30), "");
        assert_eq!(values(&spans, 39), "d");
        assert_eq!(values(&spans, 40), "");
        assert_eq!(values(&spans, u64::MAX), "");
    }
}
