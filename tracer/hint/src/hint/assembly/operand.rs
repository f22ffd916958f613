//! Memory operands: of AT&T text, of machine code, and what it means that two are the same.

use std::fmt;

/// A memory operand, taken apart. Two that are equal name the same address in the same registers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operand {
    /// Symbols of the displacement with their signs, sorted: `table`; empty without.
    pub symbol: String,
    /// The displacement's number.
    pub displacement: i64,
    /// Base register without its sigil.
    pub base: Option<String>,
    /// Index register without its sigil.
    pub index: Option<String>,
    /// What the index is multiplied by.
    pub scale: u8,
    /// Whether it is relative to the instruction and the symbol is not known: machine code has the address only.
    pub unnamed: bool,
}

impl Operand {
    /// Reads an operand as GNU as writes it for x86: `8(%rdi)`, `table+16(%rip)`, `(%rdx,%rax,8)`. `None` for
    /// what is none, and for one with a segment.
    pub fn parse(text: &str) -> Option<Operand> {
        let text = text.trim();
        if text.is_empty() || text.contains([':', '{', '}', '$', '*', ' ', '\t']) {
            return None;
        }
        let (displacement, registers) = match text.find("(%").or_else(|| text.find("(,")) {
            Some(at) => (&text[..at], text[at + 1..].strip_suffix(')')?),
            None => (text, ""),
        };
        if displacement.starts_with('%') || registers.contains(['(', ')']) {
            return None;
        }
        let (symbol, displacement) = sum(displacement)?;
        let mut parts = registers.split(',');
        let mut register = || match parts.next() {
            None | Some("") => Some(None),
            Some(name) => Some(Some(name.strip_prefix('%')?.to_owned())),
        };
        let (base, index) = (register()?, register()?);
        let scale = match parts.next() {
            None | Some("") => 1,
            Some(digits) => digits.parse().ok()?,
        };
        let unnamed = base.as_deref() == Some("rip") && symbol.is_empty();
        (parts.next().is_none()).then_some(Operand {
            symbol,
            displacement: if unnamed { 0 } else { displacement },
            base,
            index,
            scale,
            unnamed,
        })
    }

    /// Relative to the stack pointer, or below the frame pointer: the thread's own memory, mostly spilled values.
    pub(super) fn is_of_the_stack(&self) -> bool {
        match self.base.as_deref() {
            Some("rsp" | "esp" | "sp") => true,
            Some("rbp" | "ebp" | "x29") => self.displacement < 0,
            _ => false,
        }
    }

    /// In the same registers, and less than a line of 64 bytes away.
    pub(super) fn is_beside(&self, other: &Operand) -> bool {
        (&self.symbol, &self.base, &self.index, self.scale)
            == (&other.symbol, &other.base, &other.index, other.scale)
            && self.displacement.abs_diff(other.displacement) < 64
    }

    /// The same field in what may be other registers.
    pub(super) fn has_shape_of(&self, other: &Operand) -> bool {
        let relative = |operand: &Operand| operand.base.as_deref() == Some("rip");
        if relative(self) != relative(other)
            || self.is_of_the_stack() != other.is_of_the_stack()
            || self.index.is_some() != other.index.is_some()
            || self.base.is_some() != other.base.is_some()
            || self.index.is_some() && self.scale != other.scale
        {
            return false;
        }
        if self.unnamed || other.unnamed {
            return true;
        }
        self.symbol == other.symbol && self.displacement == other.displacement
    }
}

impl fmt::Display for Operand {
    /// As GNU as writes it for x86.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.symbol)?;
        match (self.displacement, self.symbol.is_empty()) {
            (0, _) => {}
            (number, true) => write!(f, "{number}")?,
            (number, false) => write!(f, "{number:+}")?,
        }
        if self.base.is_none() && self.index.is_none() {
            return Ok(());
        }
        f.write_str("(")?;
        if let Some(base) = &self.base {
            write!(f, "%{base}")?;
        }
        if let Some(index) = &self.index {
            write!(f, ",%{index},{}", self.scale)?;
        }
        f.write_str(")")
    }
}

/// `16+table-4` as its symbols and the sum of its numbers.
fn sum(text: &str) -> Option<(String, i64)> {
    let mut number: i64 = 0;
    let mut symbols = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let negative = rest.starts_with('-');
        rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let (term, after) = rest.split_at(end);
        rest = after;
        if term.is_empty() {
            return None;
        }
        if term.starts_with(|first: char| first.is_ascii_digit()) {
            let value = match term.strip_prefix("0x").or(term.strip_prefix("0X")) {
                // Displacements may be written as the unsigned number of their bits.
                Some(digits) => u64::from_str_radix(digits, 16).ok()? as i64,
                None => term.parse().ok()?,
            };
            let signed = if negative {
                value.wrapping_neg()
            } else {
                value
            };
            number = number.wrapping_add(signed);
        } else {
            symbols.push(format!("{}{term}", if negative { "-" } else { "" }));
        }
    }
    symbols.sort();
    Some((symbols.join("+"), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Operand {
        Operand::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn one_operand_is_the_same_however_it_is_written() {
        assert_eq!(parsed("8(%rdi)"), parsed("0x8(%rdi)"));
        assert_eq!(parsed("16+table(%rip)"), parsed("table+16(%rip)"));
        assert_eq!(parsed("(%rdx,%rax)"), parsed("0(%rdx,%rax,1)"));
        assert_ne!(parsed("8(%rdi)"), parsed("8(%rsi)"));
        assert_ne!(parsed("8(%rdi)"), parsed("-8(%rdi)"));
        assert_ne!(parsed("table(%rip)"), parsed("other(%rip)"));
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in [
            "8(%rdi)",
            "(%rdx,%rax,8)",
            "table+16(%rip)",
            "table-4(,%rax,8)",
            "-8(%rbp)",
            "table",
        ] {
            assert_eq!(parsed(text).to_string(), text);
        }
    }

    #[test]
    fn the_shape_leaves_registers_open_and_nothing_else() {
        let same = |a: &str, b: &str| parsed(a).has_shape_of(&parsed(b));
        assert!(same("8(%rdi)", "8(%rcx)"));
        assert!(same("8(%rdi,%rax,4)", "8(%rcx,%rdx,4)"));
        assert!(same("0x2ee3(%rip)", "table(%rip)"));
        assert!(!same("8(%rdi)", "16(%rdi)"));
        assert!(!same("8(%rdi,%rax,4)", "8(%rdi,%rax,8)"));
        assert!(!same("8(%rdi)", "8(%rsp)"));
        assert!(!same("8(%rdi)", "8(%rdi,%rax)"));
        assert!(!same("table(%rip)", "other(%rip)"));
        assert!(!same("8(%rdi)", "table(%rip)"));
    }

    #[test]
    fn what_is_no_plain_memory_operand_is_none() {
        for text in [
            "",
            "%rax",
            "$8",
            "%fs:40",
            "%gs:(%rax)",
            "*8(%rax)",
            "(%rax){1to8}",
            "8(%rdi",
            "a b",
            "8(%rdi,%rax,4,5)",
            "+(%rax)",
            "9x(%rax)",
        ] {
            assert_eq!(Operand::parse(text), None, "{text:?}");
        }
    }
}
