//! Any bytes as code of a process, with any registers: samples in it, hits of breakpoints, and what its instructions are.
#![no_main]

use cohtrace::{
    access::{Basis, Op, Pid},
    decode::{
        self, CallConvention, FunctionCode, Memory, Registers, Stall, Symbol,
        trap::{FunctionText, Hit, Stopped, Text, TrapCode, Unit},
    },
    event::{Unresolved, WatchedWord},
    hint::{assembly, repeated::Repeated},
};
use libfuzzer_sys::fuzz_target;

const START: u64 = 0x40_1000;
/// Instructions that are asked about.
const MOST: usize = 24;

struct Code<'a>(&'a [u8]);

impl Code<'_> {
    fn from(&self, addr: u64) -> &[u8] {
        let at = usize::try_from(addr.wrapping_sub(START)).unwrap_or(usize::MAX);
        self.0.get(at..).unwrap_or_default()
    }
}

impl Text for Code<'_> {
    type Key = ();

    fn unit(&mut self, _: u64) -> Result<Unit<()>, Unresolved> {
        Ok(Unit { key: (), bias: 0 })
    }

    fn function(&mut self, addr: u64) -> Result<FunctionText, Unresolved> {
        if self.from(addr).is_empty() {
            return Err(Unresolved::NoMapping);
        }
        Ok(FunctionText {
            start: START,
            bytes: self.0.to_vec(),
            starts: None,
        })
    }

    fn bytes(&mut self, addr: u64, buffer: &mut [u8]) -> usize {
        let bytes = self.from(addr);
        let read = bytes.len().min(buffer.len());
        buffer[..read].copy_from_slice(&bytes[..read]);
        read
    }
}

impl Memory for Code<'_> {
    fn read(&mut self, addr: u64, buffer: &mut [u8]) -> bool {
        for (byte, at) in buffer.iter_mut().zip(0..) {
            *byte = addr.wrapping_add(at).wrapping_mul(0x9e37_79b9) as u8;
        }
        addr % 3 != 0
    }

    fn believes(&mut self, _: u64, _: u64, agrees: bool) -> bool {
        agrees
    }
}

/// Values near the code, near each other, and at both ends of memory.
fn value(seed: u8) -> u64 {
    let low = u64::from(seed >> 2) * 8;
    match seed & 3 {
        0 => START + low,
        1 => 0x7000_0000 + low,
        2 => low.wrapping_neg(),
        _ => 0x7000_0000_0000 + low * 0x111,
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((seeds, code)) = input.split_first_chunk::<18>() else {
        return;
    };
    let function = FunctionCode::decode(START, code);
    let known: Vec<u64> = function.instructions().take(MOST).collect();
    let mut registers = Registers {
        gpr: std::array::from_fn(|at| value(seeds[at])),
        ip: START,
        fs_base: (seeds[16] & 1 != 0).then_some(value(seeds[16])),
        gs_base: (seeds[17] & 1 != 0).then_some(value(seeds[17])),
    };
    let mut text = Code(code);
    let mut traps = TrapCode::default();
    for &ip in &known {
        registers.ip = ip;
        for recalled in [false, true] {
            let mut touches = Vec::new();
            let harvest = if recalled {
                function.harvest_with(&registers, 0, &mut Code(code), &mut touches)
            } else {
                function.harvest(&registers, 0, &mut touches)
            };
            let is_stalled = |touch: &&decode::Touch| touch.basis == Basis::Stalled;
            let stalled = touches.iter().filter(is_stalled).count();
            assert_eq!(stalled, usize::from(harvest.stall == Stall::Attributed));
            assert!(touches.iter().all(|touch| (1..=64).contains(&touch.size)));
        }
        let words = [0, 7].map(|register| WatchedWord {
            pid: Pid(1),
            addr: registers.gpr[register] & !7,
            len: 8,
        });
        let hit = Hit {
            stopped: Stopped::After(&registers),
            words: &words[..1],
            alone: &words[1..],
            packed: seeds[16] & 2 != 0,
            stack_top: (seeds[16] & 4 != 0).then_some(value(seeds[15])),
            kernel: seeds[16] & 8 != 0,
        };
        let mut trapped = Vec::new();
        let told = traps.resolve(&mut text, &hit, &mut trapped);
        assert_eq!(told.is_ok(), !trapped.is_empty());
        let _ = function.around(ip);
        let bytes = text.from(ip).to_vec();
        for symbol in [Symbol::Number, Symbol::Named("a".to_owned()), Symbol::Nameless] {
            let _ = decode::assembly(&bytes, ip, &mut |_| symbol.clone());
        }
        let _ = decode::emulated(ip, &bytes, code);
        let _ = decode::loaded_into(&bytes);
        let _ = decode::store_kind(&bytes);
        for op in [Op::Load, Op::Store, Op::Rmw] {
            let _ = decode::single_access(&bytes, op);
        }
        let _ = decode::word_use(START, code, ip, CallConvention::SystemV);
        let repeated = Repeated {
            executions: 100,
            requests: u64::from(seeds[0]),
            pays: false,
        };
        let _ = assembly::prefetch_of(code, START, ip, Some(repeated));
    }
    let _ = (decode::reads(code, START), decode::fetches(code, START));
    let starts: Vec<u64> = known.iter().step_by(3).copied().collect();
    let pieces = FunctionCode::decode_pieces(START, code, &starts);
    assert_eq!(pieces.is_some(), decode::known_instructions(START, code, &starts).is_some());
});
