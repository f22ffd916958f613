//! From a sample's ip to decoded code: finds the function, reads its text, and keeps it decoded.

use std::{rc::Rc, sync::Arc};

use rustc_hash::FxHashMap;

use super::{
    kernel_code::{KernelCode, LONGEST_FUNCTION},
    nameless_code::{NamelessCode, Stretch, page_of},
    recalled::{Loads, ProcessMemory},
};
use crate::{
    access::Pid,
    decode::{FunctionCode, Harvest, Registers, Stall, Touch},
    event::{Mapping, Unresolved},
    module::{Compiled, ModuleId, ModuleStore},
    space::{AddressSpaces, KERNEL_START},
    sys,
};

/// Bytes of code kept decoded, where the bound on memory has room for them: some hundred thousand instructions. What runs
/// hot is decoded again at once, so beyond this everything is let go rather than the oldest sought.
const MOST_BYTES: usize = 32 << 20;
/// What a function takes besides.
const OVERHEAD: usize = 256;

/// Reads kernel text: address, length.
pub type ReadKernel<'a> = &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>;

/// Decoded functions of everything sampled so far.
pub struct SampledCode {
    modules: Arc<ModuleStore>,
    functions: FxHashMap<(ModuleId, u64), Rc<FunctionCode>>,
    kernel: FxHashMap<u64, Option<Rc<FunctionCode>>>,
    /// By process and first address; with the text, which its compiler may replace.
    compiled: FxHashMap<(Pid, u64), (Vec<u8>, Rc<FunctionCode>)>,
    /// Of all decoded functions.
    bytes: usize,
    pub(super) kernel_code: KernelCode,
    nameless: NamelessCode,
    /// By process and page of the ip; with what was known of the code.
    pieces: FxHashMap<(Pid, u64), (Rc<Stretch>, Rc<FunctionCode>)>,
    loads: Loads,
}

impl SampledCode {
    /// Nothing decoded yet.
    pub fn new(modules: Arc<ModuleStore>) -> SampledCode {
        SampledCode {
            kernel_code: KernelCode::new(modules.clone()),
            modules,
            functions: FxHashMap::default(),
            kernel: FxHashMap::default(),
            compiled: FxHashMap::default(),
            bytes: 0,
            nameless: NamelessCode::default(),
            pieces: FxHashMap::default(),
            loads: Loads::default(),
        }
    }

    /// Appends the accesses that a sample of `pid` shows.
    pub fn harvest(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        registers: &Registers,
        read_kernel: ReadKernel<'_>,
        touches: &mut Vec<Touch>,
    ) -> Harvest {
        if registers.ip >= KERNEL_START {
            return match self.kernel_function(registers.ip, read_kernel) {
                Some(function) => function.harvest(registers, 0, touches),
                None => Harvest::unresolved(Unresolved::KernelText),
            };
        }
        let space = spaces.space(pid);
        let Some(mapping) = spaces.mapping(space, registers.ip) else {
            return Harvest::unresolved(Unresolved::NoMapping);
        };
        let found = match self.module_function(pid, mapping, registers.ip) {
            Err(Unresolved::NoModule) => self.compiled_function(spaces, pid, mapping, registers.ip),
            found => found,
        };
        let (function, bias, unknown) = match found {
            Ok((function, bias)) => (function, bias, None),
            // Without bounds, code is known as far as it was seen to run.
            Err(reason) => match self.known_pieces(pid, mapping, registers.ip) {
                Some(pieces) => (pieces, 0, Some(reason)),
                None => return Harvest::unresolved(reason),
            },
        };
        let loads = &mut self.loads;
        let mut memory = ProcessMemory { pid, loads };
        let mut harvest = function.harvest_with(registers, bias, &mut memory, touches);
        if let (Some(reason), Stall::Unresolved(Unresolved::NoFunction)) = (unknown, harvest.stall)
        {
            harvest.stall = Stall::Unresolved(reason);
        }
        harvest
    }

    /// What is known of the code around `ip` that nothing divides into functions.
    fn known_pieces(&mut self, pid: Pid, mapping: &Mapping, ip: u64) -> Option<Rc<FunctionCode>> {
        let mut read =
            |addr, buffer: &mut [u8]| sys::process_memory::read(pid, addr, buffer).unwrap_or(0);
        let stretch = self.nameless.see(pid, ip, mapping, &mut read)?;
        let key = (pid, page_of(ip));
        if let Some((known, code)) = self.pieces.get(&key)
            && Rc::ptr_eq(known, &stretch)
        {
            return Some(code.clone());
        }
        let code = FunctionCode::decode_pieces(stretch.start, &stretch.bytes, &stretch.starts)?;
        let code = self.count(code);
        self.pieces.insert(key, (stretch, code.clone()));
        Some(code)
    }

    /// The decoded function at `ip`, and what to add to its addresses.
    fn module_function(
        &mut self,
        pid: Pid,
        mapping: &Mapping,
        ip: u64,
    ) -> Result<(Rc<FunctionCode>, u64), Unresolved> {
        let module = self
            .modules
            .open(pid, mapping)
            .map_err(|_| Unresolved::NoModule)?;
        let svma = module.svma(mapping, ip).ok_or(Unresolved::NoModule)?;
        let function = module.elf.function(svma).ok_or(Unresolved::NoFunction)?;
        let bias = ip.wrapping_sub(svma);
        let key = (module.id, function.start);
        if let Some(code) = self.functions.get(&key) {
            return Ok((code.clone(), bias));
        }
        let bytes = module
            .code(function.start..function.end)
            .ok_or(Unresolved::NoModule)?;
        let code = self.decode(function.start, &bytes);
        self.functions.insert(key, code.clone());
        Ok((code, bias))
    }

    /// The decoded function at `ip` where no module holds it, as its compiler wrote it down.
    fn compiled_function(
        &mut self,
        spaces: &AddressSpaces,
        pid: Pid,
        mapping: &Mapping,
        ip: u64,
    ) -> Result<(Rc<FunctionCode>, u64), Unresolved> {
        let modules = self.modules.clone();
        let text = spaces.current(pid).and_then(|space| {
            let of = Compiled::of(spaces, pid, space);
            let mappings = spaces.mappings(space);
            modules.jit().text(of, ip, LONGEST_FUNCTION, mappings)
        });
        let Some((start, text)) = text else {
            return Err(if mapping.is_file() {
                Unresolved::NoModule
            } else {
                Unresolved::NoFunction
            });
        };
        if let Some((known, code)) = self.compiled.get(&(pid, start))
            && *known == text
        {
            return Ok((code.clone(), 0));
        }
        let code = self.decode(start, &text);
        self.compiled.insert((pid, start), (text, code.clone()));
        Ok((code, 0))
    }

    fn decode(&mut self, start: u64, bytes: &[u8]) -> Rc<FunctionCode> {
        self.count(FunctionCode::decode(start, bytes))
    }

    /// Keeps memory bounded: a function more.
    fn count(&mut self, code: FunctionCode) -> Rc<FunctionCode> {
        let bytes = code.bytes() + OVERHEAD;
        self.bytes += bytes;
        if self.bytes > self.modules.budget().code().min(MOST_BYTES) {
            self.functions.clear();
            self.kernel.clear();
            self.compiled.clear();
            self.pieces.clear();
            self.bytes = bytes;
        }
        Rc::new(code)
    }

    fn kernel_function(&mut self, ip: u64, read: ReadKernel<'_>) -> Option<Rc<FunctionCode>> {
        let (start, ..) = self.modules.kernel().ok()?.function(ip)?;
        if let Some(code) = self.kernel.get(&start) {
            return code.clone();
        }
        let code = self.kernel_code.function(ip, read);
        let code = code.map(|(start, bytes)| self.decode(start, &bytes));
        self.kernel.insert(start, code.clone());
        code
    }
}
