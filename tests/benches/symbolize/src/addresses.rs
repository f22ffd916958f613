//! The addresses asked for: each byte of each function is as likely as any other.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// xorshift64*: the same addresses on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(limit);
        (high >> 64) as u64
    }
}

/// So many addresses in the functions of the file, in no order.
pub fn choose(file: &Path, count: usize) -> Result<Vec<u64>> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let parsed = object::File::parse(&*bytes).context("reading its symbols")?;
    let mut functions: Vec<(u64, u64)> = parsed
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .map(|symbol| (symbol.address(), symbol.size()))
        .collect();
    functions.sort_unstable();
    functions.dedup_by_key(|function| function.0);
    ensure!(!functions.is_empty(), "the file has no function symbols");
    let mut upto = 0;
    let ends: Vec<u64> = functions
        .iter()
        .map(|(_, size)| {
            upto += size;
            upto
        })
        .collect();
    let mut numbers = Numbers(0x5eed);
    let one = |_| {
        let place = numbers.below(upto);
        let index = ends.partition_point(|&end| end <= place);
        let (start, size) = functions[index];
        start + (place + size - ends[index])
    };
    Ok((0..count).map(one).collect())
}

/// As text, one a line: what the tools read.
pub fn write(path: &Path, addresses: &[u64]) -> Result<()> {
    let text: String = addresses
        .iter()
        .map(|address| format!("{address:#x}\n"))
        .collect();
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

pub fn read(path: &Path) -> Result<Vec<u64>> {
    let text = std::fs::read_to_string(path)?;
    text.lines()
        .map(|line| Ok(u64::from_str_radix(line.trim_start_matches("0x"), 16)?))
        .collect()
}
