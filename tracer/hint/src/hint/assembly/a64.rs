//! What an aarch64 instruction does to its memory operand.

use super::{
    instruction::{Does, Kept},
    operand::Operand,
};

/// Reads one instruction without its comment.
pub(super) fn does(statement: &str) -> Does<'_> {
    let statement = statement.trim();
    let end = statement
        .find(|c: char| c.is_ascii_whitespace())
        .unwrap_or(statement.len());
    let (mnemonic, operands) = (&statement[..end], statement[end..].trim());
    let Some(at) = operands.find('[') else {
        return Does::Nothing;
    };
    let text = operands[at..].trim();
    if matches!(mnemonic, "prfm" | "prfum") {
        return if operands.starts_with("pstl1keep") {
            Does::PrefetchesOwn(text)
        } else {
            Does::Nothing
        };
    }
    let starts = |names: &[&str]| names.iter().any(|name| mnemonic.starts_with(name));
    if mnemonic.starts_with("st") && !starts(&["stadd", "stclr", "steor", "stset", "stsm", "stum"])
        || starts(&["dc", "ic", "at"])
    {
        return Does::Nothing;
    }
    // Load-exclusives begin a read-modify-write; the others are one.
    if starts(&[
        "ldx", "ldax", "ldadd", "ldclr", "ldeor", "ldset", "ldsm", "ldum", "swp", "cas", "st",
    ]) {
        return Does::Keeps(Kept::ReadModifyWrite);
    }
    let width = match mnemonic {
        "ldrb" | "ldrsb" | "ldurb" | "ldursb" | "ldarb" | "ldaprb" => Some(1),
        "ldrh" | "ldrsh" | "ldurh" | "ldursh" | "ldarh" | "ldaprh" => Some(2),
        "ldrsw" | "ldursw" | "ldpsw" => Some(4),
        "ldr" | "ldur" | "ldar" | "ldapr" | "ldp" => match operands.as_bytes().first() {
            Some(b'w' | b's') => Some(4),
            Some(b'x' | b'd') => Some(8),
            Some(b'h') => Some(2),
            Some(b'b') => Some(1),
            Some(b'q') => Some(16),
            _ => None,
        },
        _ if mnemonic.starts_with("ld") => return Does::Keeps(Kept::Unknown),
        _ => return Does::Nothing,
    };
    // The linker's low 12 bits are scaled by the size of the load; of a prefetch that is 8.
    let by_linker = text.contains(':');
    if by_linker
        && (width != Some(8)
            || text.contains(":got")
            || text.contains(":tls")
            || text.contains(":tp"))
    {
        return Does::Keeps(Kept::LinkerSlot);
    }
    match operand(text) {
        Some(operand) if encodes(&operand) => Does::Loads {
            text,
            operand,
            width,
        },
        _ => Does::Keeps(Kept::NoSuchForm),
    }
}

/// Reads `[x0]`, `[x0, 8]`, `[x0, #8]`, `[x0, x1, lsl 3]`, `[x0, #:lo12:table]`; none that changes its register.
pub(super) fn operand(text: &str) -> Option<Operand> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
    let mut operand = Operand {
        base: Some(register(parts.first()?)?.to_owned()),
        scale: 1,
        ..Operand::default()
    };
    match parts.get(1) {
        None => {}
        Some(part) if register(part).is_some() => {
            operand.index = Some((*part).to_owned());
            if let Some(extend) = parts.get(2) {
                let mut words = extend.split_ascii_whitespace();
                let kind = words.next()?;
                let shift: u32 = match words.next() {
                    Some(digits) => digits.trim_start_matches('#').parse().ok()?,
                    None => 0,
                };
                operand.scale = 1_u8.checked_shl(shift).filter(|scale| *scale > 0)?;
                if kind != "lsl" {
                    kind.clone_into(&mut operand.symbol);
                }
            }
        }
        Some(part) => {
            let value = part.trim_start_matches('#');
            if value.starts_with(':') {
                value.clone_into(&mut operand.symbol);
            } else {
                operand.displacement = match value.strip_prefix("0x") {
                    Some(digits) => i64::from_str_radix(digits, 16).ok()?,
                    None => value.parse().ok()?,
                };
            }
        }
    }
    let most = if operand.index.is_some() { 3 } else { 2 };
    (parts.len() <= most).then_some(operand)
}

fn register(name: &str) -> Option<&str> {
    let digits = name.strip_prefix(['x', 'w']);
    let numbered = digits
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    (numbered || name == "sp" || name == "xzr").then_some(name)
}

/// Whether a prefetch takes the address (Arm ARM C6.2, PRFM and PRFUM).
fn encodes(operand: &Operand) -> bool {
    if operand.index.is_some() {
        return matches!(operand.scale, 1 | 8);
    }
    let offset = operand.displacement;
    offset % 8 == 0 && (0..=32760).contains(&offset) || (-256..=255).contains(&offset)
}

/// The prefetch of an operand that [`does`] gave.
pub(super) fn prefetch(text: &str) -> String {
    let scaled = operand(text)
        .is_none_or(|operand| operand.displacement >= 0 && operand.displacement % 8 == 0);
    // "prfm pstl1keep" without its "m": the form with an unscaled offset.
    let name = if scaled {
        super::super::load::AARCH64
    } else {
        "prfum pstl1keep"
    };
    format!("{name}, {text}")
}
