//! What turning a sample into accesses costs, on this program's own code: optimised Rust as others compile it.

use std::{path::Path, time::Instant};

use anyhow::Context as _;
use cohtrace::{
    access::Pid,
    decode::{FunctionCode, Registers, Stall, Touch},
    event::{ContextKind, Mapping},
    module::ModuleStore,
    sys::proc_snapshot,
};
use cohtrace_tests::figures::{Table, spread};

use crate::stream::Random;

const FUNCTIONS: usize = 500;
const SAMPLES: usize = 1_000_000;

/// Decodes functions and harvests samples in them `rounds` times; prints the table.
pub(crate) fn run(rounds: usize) -> anyhow::Result<()> {
    let functions = own_functions()?;
    let instructions: usize = decode(&functions)
        .iter()
        .map(|code| code.instructions().len())
        .sum();
    let (mut decode_ns, mut sample_ns, mut access_ns) = (Vec::new(), Vec::new(), Vec::new());
    let (mut accesses, mut attributed) = (0, 0);
    for _ in 0..rounds {
        let start = Instant::now();
        let decoded = decode(&functions);
        decode_ns.push(start.elapsed().as_nanos() as f64 / instructions as f64);

        let samples = samples(&decoded);
        let mut touches = Vec::new();
        (accesses, attributed) = (0, 0);
        let start = Instant::now();
        for (function, registers) in &samples {
            touches.clear();
            let harvest = function.harvest(registers, 0, &mut touches);
            accesses += std::hint::black_box::<&[Touch]>(&touches).len();
            attributed += usize::from(harvest.stall == Stall::Attributed);
        }
        let ns = start.elapsed().as_nanos() as f64;
        sample_ns.push(ns / samples.len() as f64);
        access_ns.push(ns / accesses as f64);
    }
    anyhow::ensure!(accesses > 0, "no sample gave an access");
    println!(
        "Decoding of {} functions of this program ({instructions} instructions), {SAMPLES} samples on evenly \
         chosen instructions: {:.1} accesses a sample, {:.0} % attributed; one thread.",
        functions.len(),
        accesses as f64 / SAMPLES as f64,
        attributed as f64 / SAMPLES as f64 * 100.0
    );
    let mut table = Table::new(&[
        "decode",
        "decode, ns per instruction",
        "harvest, ns per sample",
        "harvest, ns per access",
    ]);
    table.row([
        "own code".to_owned(),
        spread(&decode_ns, 1),
        spread(&sample_ns, 1),
        spread(&access_ns, 1),
    ]);
    print!("{table}");
    Ok(())
}

fn decode(functions: &[(u64, Vec<u8>)]) -> Vec<FunctionCode> {
    functions
        .iter()
        .map(|(start, bytes)| FunctionCode::decode(*start, bytes))
        .collect()
}

/// Samples of instructions picked evenly, with register values that mean nothing: only whether a register is
/// known decides what the decoder does, never its value.
fn samples(functions: &[FunctionCode]) -> Vec<(&FunctionCode, Registers)> {
    let places: Vec<(&FunctionCode, u64)> = functions
        .iter()
        .flat_map(|function| function.instructions().map(move |ip| (function, ip)))
        .collect();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut sample = || {
        let (function, ip) = places[random.below(places.len() as u64) as usize];
        let registers = Registers {
            gpr: std::array::from_fn(|_| 0x7f00_0000_0000 + random.below(1 << 32)),
            ip,
            fs_base: Some(0x7f00_0000_0000),
            gs_base: None,
        };
        (function, registers)
    };
    (0..SAMPLES).map(|_| sample()).collect()
}

/// Functions of this program at even steps through its text: start (svma) and bytes.
fn own_functions() -> anyhow::Result<Vec<(u64, Vec<u8>)>> {
    let pid = Pid(std::process::id());
    let text = own_text(pid)?;
    let modules = ModuleStore::new("/".into(), true);
    let module = modules.open(pid, &text).context("opening this program")?;
    let step = text.len / FUNCTIONS as u64;
    let mut functions: Vec<(u64, Vec<u8>)> = (0..FUNCTIONS as u64)
        .filter_map(|n| {
            let svma = module.svma(&text, text.start + n * step)?;
            let function = module.elf.function(svma)?;
            let bytes = module.elf.code(function.start, function.end)?;
            Some((function.start, bytes.to_vec()))
        })
        .collect();
    functions.dedup_by_key(|(start, _)| *start);
    anyhow::ensure!(
        !functions.is_empty(),
        "no function of this program is known"
    );
    Ok(functions)
}

/// The mapping of this program's own instructions.
fn own_text(pid: Pid) -> anyhow::Result<Mapping> {
    let executable = std::env::current_exe()?;
    let found = proc_snapshot::process(Path::new("/proc"), pid, 0)
        .into_iter()
        .find_map(|context| match context.kind {
            ContextKind::Mapping { mapping, .. }
                if mapping.executable && Path::new(&mapping.name) == executable =>
            {
                Some(Mapping::clone(&mapping))
            }
            _ => None,
        });
    found.context("this program's text is not among its mappings")
}
