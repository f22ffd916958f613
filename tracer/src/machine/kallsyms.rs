//! The running kernel's symbols, `/proc/kallsyms`.

use std::{fs, io, path::Path};

/// Kernel and module functions by address.
#[derive(Debug, Default)]
pub struct Kallsyms {
    /// Sorted by address, one per address; indices into `names`.
    functions: Vec<(u64, u32, u32)>,
    names: String,
}

impl Kallsyms {
    /// Reads `proc/kallsyms`. With `kernel.kptr_restrict` and no CAP_SYSLOG all addresses are zero, and
    /// the result is empty.
    pub fn read(proc: &Path) -> io::Result<Kallsyms> {
        fs::read(proc.join("kallsyms"))
            .map(|bytes| Kallsyms::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Parses lines of `address type name [module]`; other lines are passed over.
    pub fn parse(text: &str) -> Kallsyms {
        let mut found: Vec<(u64, &str)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let addr = u64::from_str_radix(words.next()?, 16).ok()?;
                let kind = words.next()?;
                let name = words.next()?;
                (addr != 0 && matches!(kind, "t" | "T" | "w" | "W")).then_some((addr, name))
            })
            .collect();
        // Of several names at one address the last is kept: section marks such as _stext come first.
        found.sort_by_key(|(addr, _)| *addr);
        let mut symbols = Kallsyms::default();
        for (addr, name) in found {
            if symbols
                .functions
                .last()
                .is_some_and(|(last, ..)| *last == addr)
            {
                symbols.functions.pop();
            }
            let start = symbols.names.len() as u32;
            symbols.names.push_str(name);
            symbols.functions.push((addr, start, name.len() as u32));
        }
        symbols
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function at an address: first address, one past the last (the next symbol), name.
    /// Sizes are not in kallsyms, so the last symbol has no bounds.
    pub fn function(&self, addr: u64) -> Option<(u64, u64, &str)> {
        let next = self.functions.partition_point(|(start, ..)| *start <= addr);
        let (start, name, len) = *self.functions.get(next.checked_sub(1)?)?;
        let (end, ..) = *self.functions.get(next)?;
        Some((
            start,
            end,
            &self.names[name as usize..(name + len) as usize],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T _stext\nffffffff81000000 T startup\n\
        ffffffff81000100 t helper\nffffffff81000180 D data\nffffffff81000200 T end\n\
        ffffffffc0001000 t in_module\t[loop]\ngarbage\n";

    #[test]
    fn a_function_reaches_to_the_next_symbol() {
        let symbols = Kallsyms::parse(TEXT);
        let at = |addr| symbols.function(addr).map(|(_, _, name)| name);
        assert_eq!(at(0xffff_ffff_8100_0010), Some("startup"));
        assert_eq!(at(0xffff_ffff_8100_01ff), Some("helper"));
        assert_eq!(at(0xffff_ffff_80ff_ffff), None);
        assert_eq!(at(0xffff_ffff_c000_1001), None);
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(Kallsyms::parse("0000000000000000 T startup\n").is_empty());
    }
}
