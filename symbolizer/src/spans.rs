//! Sorted address ranges that may overlap, searched by address.

/// One range and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<T> {
    pub(crate) start: u64,
    /// First address after the range.
    pub(crate) end: u64,
    pub(crate) value: T,
}

/// Ranges in the order of their start. Invariant: `reach[i]` is the largest end of `spans[..=i]`, which is
/// where a backwards search may stop.
#[derive(Debug)]
pub(crate) struct Spans<T> {
    spans: Box<[Span<T>]>,
    reach: Box<[u64]>,
}

/// Overlapping ranges looked at for one address. Real files overlap two or three deep.
const MOST_STEPS: usize = 4096;

impl<T> Default for Spans<T> {
    fn default() -> Spans<T> {
        Spans {
            spans: Box::default(),
            reach: Box::default(),
        }
    }
}

impl<T: Copy> Spans<T> {
    /// Empty and inverted ranges are dropped.
    pub(crate) fn new(mut spans: Vec<Span<T>>) -> Spans<T> {
        spans.retain(|span| span.start < span.end);
        // Wider ranges first, so that the narrowest one of equal starts is found first from behind.
        spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
        let mut highest = 0;
        let reach = spans
            .iter()
            .map(|span| {
                highest = span.end.max(highest);
                highest
            })
            .collect();
        Spans {
            spans: spans.into_boxed_slice(),
            reach,
        }
    }

    /// The ranges that cover `address`, the one that starts last (the innermost one) first.
    pub(crate) fn covering(&self, address: u64) -> impl Iterator<Item = &Span<T>> {
        let upto = self.spans.partition_point(|span| span.start <= address);
        (0..upto)
            .rev()
            .take(MOST_STEPS)
            .take_while(move |&index| self.reach[index] > address)
            .map(|index| &self.spans[index])
            .filter(move |span| span.end > address)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span<T>> {
        self.spans.iter()
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
