//! How measured quantities are spread, as data and in sentences.

use super::model::Distribution;
use crate::{
    distribution::{Distributions, Quantity},
    number::grouped,
};

/// The quantiles that are told.
pub(super) fn rows(all: &Distributions) -> Vec<Distribution> {
    let row = |(quantity, values): (Quantity, &crate::distribution::Distribution)| {
        let quantile = |share| values.quantile(share);
        Some(Distribution {
            quantity,
            count: values.count(),
            p50: quantile(0.5)?,
            p90: quantile(0.9)?,
            p99: quantile(0.99)?,
        })
    };
    all.iter().filter_map(row).collect()
}

/// Fewer values tell nothing of their tail.
const ENOUGH: u64 = 16;

/// A sentence for each quantity with enough values. `emulated`: times are those of an emulator.
pub(super) fn sentences(all: &Distributions, emulated: bool) -> Vec<String> {
    (rows(all).iter())
        .filter(|row| row.count >= ENOUGH)
        .map(|row| sentence(row, emulated))
        .collect()
}

fn sentence(row: &Distribution, emulated: bool) -> String {
    let value = |value: u64| match row.quantity {
        Quantity::HandOffInterval => time(value),
        Quantity::LoadLatency => format!("{} cycles", grouped(value)),
    };
    let (p50, p90, p99) = (value(row.p50), value(row.p90), value(row.p99));
    match row.quantity {
        Quantity::HandOffInterval => format!(
            "From one CPU taking the line to the next: median {p50}, 90 % within {p90}, 99 % within {p99} ({} {}).",
            grouped(row.count),
            if emulated {
                "at the emulator's speed"
            } else {
                "in windows, where each access takes a trap"
            }
        ),
        Quantity::LoadLatency => format!(
            "A sampled load took: median {p50}, 90 % within {p90}, 99 % within {p99} ({} loads).",
            grouped(row.count)
        ),
    }
}

/// Nanoseconds with two digits, in the unit that has them before its point.
fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    if value < 10.0 {
        format!("{value:.1} {unit}")
    } else {
        format!("{} {unit}", grouped(value.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;

    fn of(quantity: Quantity, values: impl IntoIterator<Item = u64>) -> Distributions {
        let mut values_of = Distribution::default();
        values.into_iter().for_each(|value| values_of.record(value));
        let mut all = Distributions::default();
        all.add(quantity, &values_of);
        all
    }

    #[test]
    fn intervals_are_told_with_their_tail_and_where_they_were_seen() {
        let all = of(
            Quantity::HandOffInterval,
            (0..40).map(|n| if n < 30 { 940 } else { 12_300_000 }),
        );
        assert_eq!(
            sentences(&all, false),
            [
                "From one CPU taking the line to the next: median 940 ns, 90 % within 12 ms, 99 % within 12 ms (40 in windows, where each \
                 access takes a trap)."
            ]
        );
        assert!(sentences(&all, true)[0].ends_with("(40 at the emulator's speed)."));
        let row = &rows(&all)[0];
        assert_eq!(
            serde_json::to_string(row).expect("plain data"),
            r#"{"quantity":"hand_off_interval","unit":"ns","count":40,"p50":940,"p90":12300000,"p99":12300000}"#
        );
    }

    #[test]
    fn latencies_of_loads_are_told_in_cycles() {
        let all = of(
            Quantity::LoadLatency,
            (0..50).map(|n| if n < 30 { 80 } else { 1200 }),
        );
        assert_eq!(
            sentences(&all, false),
            [
                "A sampled load took: median 80 cycles, 90 % within 1,200 cycles, 99 % within 1,200 cycles (50 loads)."
            ]
        );
    }

    #[test]
    fn a_few_values_are_data_and_no_sentence() {
        let all = of(Quantity::HandOffInterval, [5, 6]);
        assert_eq!(rows(&all).len(), 1);
        assert_eq!(sentences(&all, false), Vec::<String>::new());
    }
}
