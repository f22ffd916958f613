//! What an x86 instruction in AT&T syntax does to its memory operand. Only instructions that are known to read it
//! and nothing more count as loads: what is not known here is left alone.

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
    let (mnemonic, rest) = (&statement[..end], statement[end..].trim());
    let operands = split(rest);
    let is_memory = |text: &&str| {
        !text.starts_with(['$', '%', '*']) && !text.is_empty()
            || text.starts_with('%') && text.contains(':')
    };
    if is_control(mnemonic) {
        let through = operands.iter().any(|text| {
            text.starts_with('*') && text.contains('(')
                || mnemonic.starts_with('p') && is_memory(text)
        });
        return if through {
            Does::Keeps(Kept::Control)
        } else {
            Does::Nothing
        };
    }
    match mnemonic {
        "lock" | "xacquire" | "xrelease" => return Does::Keeps(Kept::ReadModifyWrite),
        // Some compilers pad a return with a prefix.
        "rep" | "repz" if rest.starts_with("ret") => return Does::Nothing,
        "rep" | "repe" | "repz" | "repne" | "repnz" => return Does::Keeps(Kept::String),
        "prefetchw" => {
            return operands
                .first()
                .map_or(Does::Nothing, |text| Does::PrefetchesOwn(text));
        }
        _ => {}
    }
    if mnemonic.starts_with("lea")
        || mnemonic.starts_with("nop")
        || mnemonic.starts_with("prefetch")
        || mnemonic.starts_with("clflush")
        || mnemonic.starts_with("clwb")
        || mnemonic.starts_with('{')
    {
        return Does::Nothing;
    }
    let mut memory = operands
        .iter()
        .enumerate()
        .filter(|(_, text)| is_memory(text));
    let Some((position, text)) = memory.next() else {
        return Does::Nothing;
    };
    if memory.next().is_some() {
        return Does::Keeps(Kept::String);
    }
    let last = position + 1 == operands.len();
    let registers = operands
        .iter()
        .filter(|text| text.starts_with('%') && !text.contains(':'));
    let reads = match effect(mnemonic, last, operands.len(), &operands) {
        Effect::Reads => Ok(()),
        Effect::Writes => return Does::Nothing,
        Effect::Keeps(kept) => Err(kept),
    };
    if operands.iter().any(|text| text.contains('{')) {
        return Does::Keeps(Kept::Masked);
    }
    if text.contains(':') {
        return Does::Keeps(Kept::Segment);
    }
    if text.contains('@') {
        return Does::Keeps(Kept::LinkerSlot);
    }
    if let Err(kept) = reads {
        return Does::Keeps(kept);
    }
    match Operand::parse(text) {
        Some(operand) => Does::Loads {
            text,
            operand,
            width: width(mnemonic, registers.copied().last()),
        },
        None => Does::Keeps(Kept::Unknown),
    }
}

/// Operands, at the commas that stand in no brackets.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth -= 1,
            b',' if depth <= 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn is_control(mnemonic: &str) -> bool {
    mnemonic.starts_with('j')
        || [
            "call", "ret", "iret", "push", "pop", "loop", "notrack", "bnd", "xbegin", "enter",
            "leave", "sys", "int",
        ]
        .iter()
        .any(|start| mnemonic.starts_with(start))
            && !mnemonic.starts_with("popcnt")
}

enum Effect {
    Reads,
    Writes,
    Keeps(Kept),
}

/// Whether the mnemonic is one of these, with or without the suffix of a size.
fn is_one(mnemonic: &str, names: &[&str]) -> bool {
    let bare = mnemonic.strip_suffix(['b', 'w', 'l', 'q']);
    names
        .iter()
        .any(|name| mnemonic == *name || bare == Some(name))
}

/// What happens to a memory operand at the last or at another position.
fn effect(mnemonic: &str, last: bool, count: usize, operands: &[&str]) -> Effect {
    const ARITHMETIC: [&str; 7] = ["add", "sub", "adc", "sbb", "and", "or", "xor"];
    const SOURCE: [&str; 25] = [
        "imul", "cmp", "test", "popcnt", "lzcnt", "tzcnt", "bsf", "bsr", "andn", "bextr", "blsi",
        "blsr", "blsmsk", "bzhi", "pdep", "pext", "mulx", "rorx", "sarx", "shlx", "shrx", "adcx",
        "adox", "crc32", "movbe",
    ];
    const MODIFIES: [&str; 19] = [
        "inc", "dec", "neg", "not", "sal", "shl", "shr", "sar", "rol", "ror", "rcl", "rcr", "shld",
        "shrd", "xadd", "btr", "bts", "btc", "cmpxchg",
    ];
    let destination = operands.last().copied().unwrap_or("");
    let vector = ["%xmm", "%ymm", "%zmm", "%mm", "%k"]
        .iter()
        .any(|start| destination.starts_with(start));
    if is_one(mnemonic, &["xchg"]) || mnemonic.starts_with("cmpxchg") {
        return Effect::Keeps(Kept::ReadModifyWrite);
    }
    if mnemonic.contains("gather") || mnemonic.contains("maskmov") || mnemonic.contains("expand") {
        return Effect::Keeps(Kept::Masked);
    }
    if last && count == 1 {
        return match mnemonic {
            _ if is_one(mnemonic, &["mul", "imul", "div", "idiv"]) || loads_x87(mnemonic) => {
                Effect::Reads
            }
            _ if is_one(mnemonic, &MODIFIES) => Effect::Keeps(Kept::ReadModifyWrite),
            _ if mnemonic.starts_with("set")
                || mnemonic.starts_with("fst")
                || mnemonic.starts_with("fist")
                || mnemonic.starts_with("fnst") =>
            {
                Effect::Writes
            }
            _ => Effect::Keeps(Kept::Unknown),
        };
    }
    if last {
        return match mnemonic {
            _ if is_one(mnemonic, &["cmp", "test"]) => Effect::Reads,
            // With a register as the bit number it reads elsewhere.
            _ if is_one(mnemonic, &["bt"]) && operands[0].starts_with('$') => Effect::Reads,
            _ if is_one(mnemonic, &["bt"]) => Effect::Keeps(Kept::Unknown),
            _ if is_one(mnemonic, &ARITHMETIC) || is_one(mnemonic, &MODIFIES) => {
                Effect::Keeps(Kept::ReadModifyWrite)
            }
            _ => Effect::Writes,
        };
    }
    if vector {
        return match mnemonic {
            // Strings have no vector, and these are of the class by their destination.
            _ if mnemonic.starts_with("vp2intersect")
                || mnemonic.starts_with("v4f")
                || mnemonic.starts_with("vp4d") =>
            {
                Effect::Keeps(Kept::Unknown)
            }
            _ if is_vector(mnemonic) => Effect::Reads,
            _ => Effect::Keeps(Kept::Unknown),
        };
    }
    if !destination.starts_with('%') || destination.contains(':') {
        return Effect::Keeps(Kept::Unknown);
    }
    let extends = (mnemonic.starts_with("movs") || mnemonic.starts_with("movz"))
        && mnemonic.len() >= 5
        && mnemonic[4..].bytes().all(|byte| b"bwlqxd".contains(&byte));
    let converts = mnemonic.starts_with("cvt") || mnemonic.starts_with("vcvt");
    let moves_conditionally = mnemonic.starts_with("cmov");
    let string = ["lods", "scas", "cmps", "stos", "ins", "outs"]
        .iter()
        .any(|start| mnemonic.starts_with(start) && mnemonic.len() <= start.len() + 1);
    match mnemonic {
        _ if string => Effect::Keeps(Kept::String),
        _ if is_one(mnemonic, &["mov"])
            || is_one(mnemonic, &ARITHMETIC)
            || is_one(mnemonic, &SOURCE) =>
        {
            Effect::Reads
        }
        _ if extends || converts || moves_conditionally => Effect::Reads,
        _ => Effect::Keeps(Kept::Unknown),
    }
}

/// Vector instructions, whose memory source is only read (Intel SDM volume 2: the destination is the first operand
/// in its syntax, the last in AT&T's).
fn is_vector(mnemonic: &str) -> bool {
    const STARTS: [&str; 45] = [
        "mov", "add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp", "min", "max", "and", "or",
        "xor", "cmp", "comis", "ucomis", "cvt", "shuf", "unpck", "blend", "round", "dp", "hadd",
        "hsub", "insert", "lddqu", "padd", "psub", "pmul", "pmadd", "pmax", "pmin", "pand", "por",
        "pxor", "pcmp", "pack", "punpck", "pshuf", "psll", "psrl", "psra", "pins", "pmov", "pab",
    ];
    const MORE: [&str; 14] = [
        "pavg", "psad", "palignr", "pblend", "phadd", "phsub", "ptest", "psign", "aes", "sha",
        "gf2p8", "pclmul", "phmin", "kmov",
    ];
    mnemonic.starts_with('v')
        || STARTS
            .iter()
            .chain(&MORE)
            .any(|start| mnemonic.starts_with(start))
}

fn loads_x87(mnemonic: &str) -> bool {
    const LOADS: [&str; 16] = [
        "flds", "fldl", "fldt", "filds", "fildl", "fildll", "fildq", "fild", "fadd", "fsub",
        "fsubr", "fmul", "fdiv", "fdivr", "fcom", "fcomp",
    ];
    let bare = mnemonic.strip_suffix(['s', 'l']);
    let integer = mnemonic
        .strip_prefix("fi")
        .and_then(|rest| rest.strip_suffix(['s', 'l']))
        .is_some_and(|rest| {
            ["add", "sub", "subr", "mul", "div", "divr", "com", "comp"].contains(&rest)
        });
    LOADS.contains(&mnemonic) || bare.is_some_and(|name| LOADS[8..].contains(&name)) || integer
}

/// Bytes that are read, where the mnemonic or the destination tells.
fn width(mnemonic: &str, register: Option<&str>) -> Option<u8> {
    if mnemonic.contains("cvt") || mnemonic.starts_with('f') {
        return None;
    }
    if register.is_some_and(|name| name.contains("mm")) {
        return match mnemonic.get(mnemonic.len().saturating_sub(2)..) {
            Some("ss") => Some(4),
            Some("sd") => Some(8),
            _ => None,
        };
    }
    if mnemonic.starts_with("movs") || mnemonic.starts_with("movz") {
        return match mnemonic.as_bytes().get(4) {
            Some(b'b') => Some(1),
            Some(b'w') => Some(2),
            Some(b'l') => Some(4),
            _ => None,
        };
    }
    if let Some(register) = register {
        return general(register.trim_start_matches('%'));
    }
    match mnemonic.as_bytes().last() {
        Some(b'b') => Some(1),
        Some(b'w') => Some(2),
        Some(b'l') => Some(4),
        Some(b'q') => Some(8),
        _ => None,
    }
}

/// Bytes of a general register.
fn general(name: &str) -> Option<u8> {
    let numbered = name
        .strip_prefix('r')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if let Some(rest) = numbered {
        return match rest.as_bytes().last() {
            Some(b'd') => Some(4),
            Some(b'w') => Some(2),
            Some(b'b') => Some(1),
            _ => Some(8),
        };
    }
    match name.as_bytes() {
        [b'r', ..] => Some(8),
        [b'e', _, _] => Some(4),
        [_, b'l' | b'h'] | [_, _, b'l'] => Some(1),
        [_, _] => Some(2),
        _ => None,
    }
}
