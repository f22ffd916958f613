//! Variables and their places out of what `llvm-dwarfdump` prints.

use std::collections::BTreeMap;

use crate::locals::{Base, Place, Register};

/// One variable as `llvm-dwarfdump` has it: (start, end, expression); single expressions with the ranges around it.
pub(super) type Printed = BTreeMap<u64, Vec<(u64, u64, String)>>;

/// An entry around the current one, or it itself.
struct Open {
    depth: usize,
    tag: String,
    offset: u64,
    ranges: Option<Vec<(u64, u64)>>,
    base: Option<String>,
}

/// Variables of functions, by the offset of their entry in the section.
pub(super) fn parse_dump(text: &str) -> (Printed, BTreeMap<u64, String>) {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let brackets = |line: &str| -> Option<(u64, u64, String)> {
        let inner = line.trim().strip_prefix('[')?;
        let (range, rest) = inner.split_once(')')?;
        let (start, end) = range.split_once(", ")?;
        Some((
            hex(start),
            hex(end),
            rest.trim_start_matches(':').trim().to_owned(),
        ))
    };
    let (mut printed, mut bases) = (Printed::new(), BTreeMap::new());
    let mut open: Vec<Open> = Vec::new();
    let mut finished = Vec::new();
    let mut list_of = "";
    for line in text.lines() {
        if let Some((offset, rest)) = line
            .strip_prefix("0x")
            .and_then(|line| line.split_once(':'))
            && rest.trim_start().starts_with("DW_TAG_")
        {
            let depth = rest.len() - rest.trim_start().len();
            open.retain(|entry| entry.depth < depth);
            let inner = open.last().filter(|entry| !entry.tag.ends_with("_unit"));
            let around = inner.and_then(|entry| entry.ranges.clone());
            let tag = rest.split_whitespace().next().unwrap().to_owned();
            let scope = ["DW_TAG_lexical_block", "DW_TAG_inlined_subroutine"];
            let variable = ["DW_TAG_variable", "DW_TAG_formal_parameter"];
            let inherits = scope.contains(&tag.as_str())
                || variable.contains(&tag.as_str())
                || tag.contains("pack");
            let base = open.last().and_then(|entry| entry.base.clone());
            open.push(Open {
                depth,
                tag,
                offset: hex(offset),
                ranges: around.filter(|_| inherits),
                base,
            });
            list_of = "";
            continue;
        }
        let Some(entry) = open.last_mut() else {
            continue;
        };
        let line = line.trim();
        if let Some(found) = brackets(line) {
            match list_of {
                "ranges" => entry
                    .ranges
                    .get_or_insert_default()
                    .push((found.0, found.1)),
                "location" => {
                    // The last one ends the attribute with a parenthesis of its own.
                    let open = found.2.matches('(').count() < found.2.matches(')').count();
                    let text = if open {
                        &found.2[..found.2.len() - 1]
                    } else {
                        &found.2
                    };
                    if entry.ranges.is_some() && !text.is_empty() {
                        let list = printed.entry(entry.offset).or_default();
                        list.push((found.0, found.1, text.to_owned()));
                        if let Some(base) = &entry.base {
                            bases.insert(entry.offset, base.clone());
                        }
                    }
                }
                _ => {}
            }
            continue;
        }
        let Some((name, value)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let value = value.trim().trim_start_matches('(');
        let value = value.strip_suffix(')').unwrap_or(value);
        let is_variable = entry.tag == "DW_TAG_variable" || entry.tag == "DW_TAG_formal_parameter";
        list_of = "";
        match name {
            "DW_AT_low_pc" => entry.ranges = Some(vec![(hex(value), 0)]),
            "DW_AT_high_pc" => {
                if let Some([range]) = entry.ranges.as_deref_mut() {
                    range.1 = hex(value);
                }
            }
            "DW_AT_ranges" => {
                entry.ranges = Some(Vec::new());
                list_of = "ranges";
            }
            "DW_AT_frame_base" => entry.base = Some(value.to_owned()),
            "DW_AT_location" if is_variable && value.starts_with("DW_OP") => {
                if let Some(ranges) = &entry.ranges {
                    let base = entry.base.clone().unwrap_or_default();
                    finished.push((entry.offset, value.to_owned(), ranges.clone(), base));
                }
            }
            "DW_AT_location" if is_variable => list_of = "location",
            _ => {}
        }
    }
    for (offset, text, ranges, base) in finished {
        let list = printed.entry(offset).or_default();
        list.extend(
            ranges
                .iter()
                .map(|&(start, end)| (start, end, text.clone())),
        );
        bases.insert(offset, base);
    }
    (printed, bases)
}

/// The place that a printed expression means.
pub(super) fn meaning(text: &str, base: &str, addresses: &[u64]) -> Place {
    let number = |text: &str| -> i64 {
        let (sign, digits) = match text.as_bytes().first() {
            Some(b'-') => (-1, &text[1..]),
            Some(b'+') => (1, &text[1..]),
            _ => (1, text),
        };
        match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap() as i64,
            None => sign * digits.parse::<i64>().unwrap(),
        }
    };
    let register = |digits: &str| Register(digits.parse().unwrap());
    let operations: Vec<&str> = text.split(", ").collect();
    let words: Vec<&str> = operations[0].split(' ').collect();
    // `DW_OP_breg5 RDI+1` or `DW_OP_fbreg -24`.
    let sum = || -> Option<(Base, i64)> {
        if let Some(digits) = words[0].strip_prefix("DW_OP_breg") {
            let at = words[1].rfind(['+', '-'])?;
            return Some((Base::Register(register(digits)), number(&words[1][at..])));
        }
        if words[0] == "DW_OP_fbreg" {
            let offset = number(words[1]);
            if base == "DW_OP_call_frame_cfa" {
                return Some((Base::Cfa, offset));
            }
            let digits = base.split(' ').next()?.strip_prefix("DW_OP_reg")?;
            return Some((Base::Register(register(digits)), offset));
        }
        (words[0] == "DW_OP_call_frame_cfa").then_some((Base::Cfa, 0))
    };
    let constant = || -> Option<u64> {
        if let Some(digits) = words[0].strip_prefix("DW_OP_lit") {
            return Some(digits.parse().unwrap());
        }
        if words[0] == "DW_OP_addrx" || words[0] == "DW_OP_constx" {
            return addresses.get(number(words[1]) as usize).copied();
        }
        (words[0].starts_with("DW_OP_const") || words[0] == "DW_OP_addr")
            .then(|| number(words[1]) as u64)
    };
    let more = |operation: &str| operation.strip_prefix("DW_OP_plus_uconst ").map(number);
    match (&operations[1..], sum(), constant()) {
        ([], Some((base, offset)), _) => Place::Memory { base, offset },
        ([], _, Some(address)) if words[0].starts_with("DW_OP_addr") => Place::Fixed(address),
        ([], ..) if words[0].starts_with("DW_OP_reg") && !words[0].contains("regval") => {
            Place::Register(register(words[0].trim_start_matches("DW_OP_reg")))
        }
        (["DW_OP_stack_value"], Some((base, offset)), _) => Place::Value { base, offset },
        (["DW_OP_stack_value"], _, Some(value)) => Place::Constant(value),
        ([add, "DW_OP_stack_value"], Some((base, offset)), _) if more(add).is_some() => {
            Place::Value {
                base,
                offset: offset + more(add).unwrap(),
            }
        }
        ([add], Some((base, offset)), _) if more(add).is_some() => Place::Memory {
            base,
            offset: offset + more(add).unwrap(),
        },
        ([tls], _, Some(offset)) if tls.ends_with("tls_address") => Place::ThreadLocal(offset),
        ([] | ["DW_OP_stack_value"], ..) if words[0].contains("entry_value(") => Place::EntryValue,
        ([add, "DW_OP_stack_value"], ..)
            if words[0].contains("entry_value(") && more(add).is_some() =>
        {
            Place::EntryValue
        }
        _ => Place::Complex,
    }
}
