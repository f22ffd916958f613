//! The running kernel's symbols, `/proc/kallsyms`.

use std::{fs, io, ops::Range, path::Path};

use crate::space::KERNEL_START;

/// Marks around what is copied for each CPU at boot: nobody uses the original afterwards.
const PER_CPU: [&str; 2] = ["__per_cpu_start", "__per_cpu_end"];

/// The kernel's and its modules' functions and variables by address.
#[derive(Debug, Default)]
pub struct Kallsyms {
    /// Sorted by address, one per address.
    functions: Vec<Symbol>,
    /// Sorted by address, one per address.
    variables: Vec<Symbol>,
    names: String,
    /// Names of modules; the kernel's own is empty.
    modules: Vec<Box<str>>,
    /// Start of the kernel's text, where it was loaded.
    text: Option<u64>,
    /// Whether static variables are listed: without `CONFIG_KALLSYMS_ALL` only some others are.
    all: bool,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    addr: u64,
    name: u32,
    len: u32,
    module: u16,
}

/// A line of the file.
struct Line<'t> {
    addr: u64,
    name: &'t str,
    module: &'t str,
}

/// Something with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSymbol<'k> {
    /// From its first address to the next symbol's.
    pub range: Range<u64>,
    /// The symbol's name.
    pub name: &'k str,
    /// Name of the module it is of; `None` for the kernel itself.
    pub module: Option<&'k str>,
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
        let (mut functions, mut variables) = (Vec::new(), Vec::new());
        let mut symbols = Kallsyms::default();
        let mut per_cpu = [None; 2];
        for line in text.lines() {
            let Some((kind, line)) = read_line(line) else {
                continue;
            };
            if line.name == "_stext" {
                symbols.text = Some(line.addr);
            }
            if let Some(mark) = PER_CPU.iter().position(|mark| *mark == line.name) {
                per_cpu[mark] = Some(line.addr);
            }
            match kind {
                "t" | "T" | "w" | "W" => functions.push(line),
                "d" | "D" | "b" | "B" | "r" | "R" => {
                    symbols.all |= matches!(kind, "d" | "b") && line.module.is_empty();
                    variables.push(line);
                }
                _ => {}
            }
        }
        if let [Some(start), Some(end)] = per_cpu {
            variables.retain(|line| line.addr < start || line.addr >= end);
        }
        // Of several names at one address the last is kept: section marks such as _stext come first.
        functions.sort_by_key(|line| line.addr);
        // Of variables, marks come last and names for internal use after the others (compare_symbols in
        // scripts/kallsyms.c).
        variables.reverse();
        variables.sort_by_key(|line| line.addr);
        symbols.functions = symbols.keep(functions);
        symbols.variables = symbols.keep(variables);
        symbols
    }

    /// One symbol for each address: the last.
    fn keep(&mut self, lines: Vec<Line<'_>>) -> Vec<Symbol> {
        let mut kept: Vec<Symbol> = Vec::new();
        for line in lines {
            if kept.last().is_some_and(|last| last.addr == line.addr) {
                kept.pop();
            }
            let name = self.names.len() as u32;
            self.names.push_str(line.name);
            let known = self
                .modules
                .iter()
                .rposition(|known| **known == *line.module);
            let module = known.unwrap_or_else(|| {
                self.modules.push(line.module.into());
                self.modules.len() - 1
            });
            kept.push(Symbol {
                addr: line.addr,
                name,
                len: line.name.len() as u32,
                module: module.min(usize::from(u16::MAX)) as u16,
            });
        }
        kept
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Whether variables are listed as far as the kernel has them.
    pub fn lists_variables(&self) -> bool {
        self.all
    }

    /// Where the kernel's text was loaded: `_stext`.
    pub fn text(&self) -> Option<u64> {
        self.text
    }

    /// The function at an address: first address, one past the last (the next symbol), name.
    /// Sizes are not in kallsyms, so the last symbol has no bounds.
    pub fn function(&self, addr: u64) -> Option<(u64, u64, &str)> {
        let (symbol, next) = find(&self.functions, addr)?;
        Some((symbol.addr, next.addr, self.name(symbol)))
    }

    /// The module whose function is at an address; `None` for the kernel's own.
    pub fn module_of_function(&self, addr: u64) -> Option<&str> {
        self.module(find(&self.functions, addr)?.0)
    }

    /// The variable at an address. It seems to reach to the next one, as sizes are not in kallsyms; the last of
    /// a module has no bounds. `None` where the kernel does not list its variables: the next one that is
    /// listed would be far away. Copies for each CPU are found under no name: they are allocated.
    pub fn variable(&self, addr: u64) -> Option<KernelSymbol<'_>> {
        let (symbol, next) = find(&self.variables, addr)?;
        if !self.all || symbol.module != next.module {
            return None;
        }
        Some(KernelSymbol {
            range: symbol.addr..next.addr,
            name: self.name(symbol),
            module: self.module(symbol),
        })
    }

    /// The address of the kernel's own function of a name; of several, the first.
    pub fn own_function(&self, name: &str) -> Option<u64> {
        let is_it = |symbol: &&Symbol| self.module(symbol).is_none() && self.name(symbol) == name;
        self.functions.iter().find(is_it).map(|symbol| symbol.addr)
    }

    /// Whether several functions have that name. Looks through all of them, which takes less than a table of names would for the few
    /// hundred functions of a report.
    pub fn is_shared_name(&self, name: &str) -> bool {
        let same =
            |symbol: &&Symbol| symbol.len as usize == name.len() && self.name(symbol) == name;
        self.functions.iter().filter(same).nth(1).is_some()
    }

    /// Addresses and names of the kernel's own variables, without those of its modules.
    pub fn own_variables(&self) -> impl Iterator<Item = (u64, &str)> {
        let own = |symbol: &&Symbol| self.module(symbol).is_none();
        let variables = self.variables.iter().filter(own);
        variables.map(|symbol| (symbol.addr, self.name(symbol)))
    }

    fn name(&self, symbol: &Symbol) -> &str {
        let start = symbol.name as usize;
        &self.names[start..start + symbol.len as usize]
    }

    fn module(&self, symbol: &Symbol) -> Option<&str> {
        let name = self.modules.get(usize::from(symbol.module))?;
        (!name.is_empty()).then_some(&**name)
    }
}

/// Type and symbol of a line, if it has an address of the kernel's.
fn read_line(line: &str) -> Option<(&str, Line<'_>)> {
    let mut words = line.split_ascii_whitespace();
    let addr = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?;
    let name = words.next()?;
    let module = words.next().unwrap_or("");
    let module = module
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    // Low addresses are zero, hidden, or offsets in the area of each CPU.
    (addr >= KERNEL_START).then_some((
        kind,
        Line {
            addr,
            name,
            module: module.unwrap_or(""),
        },
    ))
}

/// The last symbol that begins at or below an address, and the next one.
fn find(symbols: &[Symbol], addr: u64) -> Option<(&Symbol, &Symbol)> {
    let next = symbols.partition_point(|symbol| symbol.addr <= addr);
    Some((symbols.get(next.checked_sub(1)?)?, symbols.get(next)?))
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

    const DATA: &str = "ffffffff81000000 T _stext\nffffffff82000000 D table\nffffffff82000040 d counter\n\
        ffffffff82000048 D __edge\nffffffff82000050 B jiffies\nffffffff82000050 B __bss_start\n\
        ffffffff82000058 b last\nffffffff82001000 D __per_cpu_start\nffffffff82001010 D current_task\n\
        ffffffff82002000 D __per_cpu_end\nffffffff82003000 B _end\n0000000000021440 d pcpu_hot\n\
        ffffffffc0001000 t nft_run\t[nf_tables]\nffffffffc0001100 t nft_end\t[nf_tables]\n\
        ffffffffc0004000 d nft_list\t[nf_tables]\nffffffffc0004010 b nft_count\t[nf_tables]\n\
        ffffffffc0009000 d other\t[loop]\n";

    #[test]
    fn a_variable_reaches_to_the_next_one_of_its_module() {
        let symbols = Kallsyms::parse(DATA);
        let check = |addr: u64, expected: Option<(&str, u64, Option<&str>)>| {
            let found = symbols.variable(addr);
            let found = found.map(|s| (s.name, s.range.end - s.range.start, s.module));
            assert_eq!(found, expected, "{addr:#x}");
        };
        check(0xffff_ffff_8200_003f, Some(("table", 0x40, None)));
        check(0xffff_ffff_8200_0040, Some(("counter", 8, None)));
        // Of two names at one address the first.
        check(0xffff_ffff_8200_0050, Some(("jiffies", 8, None)));
        check(
            0xffff_ffff_c000_400f,
            Some(("nft_list", 0x10, Some("nf_tables"))),
        );
        // The last of a module has no end, and what lies before the first is nobody's.
        check(0xffff_ffff_c000_4010, None);
        check(0xffff_ffff_81ff_ffff, None);
        check(0xffff_ffff_8300_0000, None);
        check(0x21440, None);
    }

    #[test]
    fn the_original_of_what_each_cpu_has_for_itself_is_not_named() {
        let symbols = Kallsyms::parse(DATA);
        let at = symbols.variable(0xffff_ffff_8200_1010).map(|s| s.name);
        assert_ne!(at, Some("current_task"));
    }

    #[test]
    fn a_kernel_that_does_not_list_its_static_variables_has_none_to_name() {
        let without = DATA
            .replace(" d counter", " t counter")
            .replace(" b last", " t last");
        let symbols = Kallsyms::parse(&without);
        assert!(!symbols.lists_variables());
        assert_eq!(symbols.variable(0xffff_ffff_8200_0000), None);
        assert!(Kallsyms::parse(DATA).lists_variables());
    }

    #[test]
    fn functions_say_which_module_they_are_of() {
        let symbols = Kallsyms::parse(DATA);
        assert_eq!(
            symbols.module_of_function(0xffff_ffff_c000_1010),
            Some("nf_tables")
        );
        assert_eq!(symbols.module_of_function(0xffff_ffff_8100_0000), None);
        assert_eq!(symbols.text(), Some(0xffff_ffff_8100_0000));
    }
}
