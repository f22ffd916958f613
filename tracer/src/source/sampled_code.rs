//! From a sample's ip to decoded code: finds the function, reads its text, and keeps it decoded.

use std::{rc::Rc, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    access::Pid,
    decode::{FunctionCode, Harvest, Registers, Stall, Touch, harvest_window},
    event::{Mapping, Unresolved},
    module::{ModuleId, ModuleStore},
    space::{AddressSpaces, KERNEL_START},
    sys,
};

/// Longest kernel function that is read, bytes; longer ones are cut.
pub(super) const LONGEST_FUNCTION: u64 = 64 * 1024;
/// Instructions kept decoded, at about 90 bytes each. What runs hot is decoded again at once, so beyond
/// this everything is let go rather than the oldest sought.
const MOST_INSTRUCTIONS: usize = 1 << 19;
/// Bytes read at the ip where no function is known.
const WINDOW: usize = 256;

/// Reads kernel text: address, length.
pub type ReadKernel<'a> = &'a mut dyn FnMut(u64, usize) -> Option<Vec<u8>>;

/// Decoded functions of everything sampled so far.
pub struct SampledCode {
    modules: Arc<ModuleStore>,
    functions: FxHashMap<(ModuleId, u64), Rc<FunctionCode>>,
    kernel: FxHashMap<u64, Option<Rc<FunctionCode>>>,
    /// By process and first address; with the text, which its compiler may replace.
    compiled: FxHashMap<(Pid, u64), (Vec<u8>, Rc<FunctionCode>)>,
    instructions: usize,
}

impl SampledCode {
    /// Nothing decoded yet.
    pub fn new(modules: Arc<ModuleStore>) -> SampledCode {
        SampledCode {
            modules,
            functions: FxHashMap::default(),
            kernel: FxHashMap::default(),
            compiled: FxHashMap::default(),
            instructions: 0,
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
                None => unresolved(Unresolved::KernelText),
            };
        }
        let space = spaces.space(pid);
        let Some(mapping) = spaces.mapping(space, registers.ip) else {
            return unresolved(Unresolved::NoMapping);
        };
        let found = match self.module_function(pid, mapping, registers.ip) {
            Err(Unresolved::NoModule) => self.compiled_function(spaces, pid, mapping, registers.ip),
            found => found,
        };
        match found {
            Ok((function, bias)) => function.harvest(registers, bias, touches),
            Err(reason) => {
                // Without bounds the code before the ip cannot be cut into instructions, but what
                // follows can: enough to know what the thread touches, not what it waited for.
                let mut window = [0; WINDOW];
                let got = sys::process_memory::read(pid, registers.ip, &mut window).unwrap_or(0);
                let mut harvest = harvest_window(&window[..got], registers, touches);
                harvest.stall = match harvest.stall {
                    Stall::Unresolved(_) => Stall::Unresolved(reason),
                    attributed @ Stall::Attributed => attributed,
                };
                harvest
            }
        }
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
            .elf
            .code(function.start, function.end)
            .ok_or(Unresolved::NoModule)?;
        let code = self.decode(function.start, bytes);
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
        let space = spaces.current(pid);
        let mappings = space.into_iter().flat_map(|space| spaces.mappings(space));
        let Some((start, text)) = modules.jit().text(pid, ip, LONGEST_FUNCTION, mappings) else {
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
        let code = FunctionCode::decode(start, bytes);
        self.instructions += code.instructions().count();
        if self.instructions > MOST_INSTRUCTIONS {
            self.functions.clear();
            self.kernel.clear();
            self.compiled.clear();
            self.instructions = code.instructions().count();
        }
        Rc::new(code)
    }

    fn kernel_function(&mut self, ip: u64, read: ReadKernel<'_>) -> Option<Rc<FunctionCode>> {
        let (start, end, _) = self.modules.kernel().ok()?.function(ip)?;
        if let Some(code) = self.kernel.get(&start) {
            return code.clone();
        }
        let length = end.saturating_sub(start).min(LONGEST_FUNCTION) as usize;
        let code = read(start, length).map(|bytes| self.decode(start, &bytes));
        self.kernel.insert(start, code.clone());
        code
    }
}

fn unresolved(reason: Unresolved) -> Harvest {
    Harvest {
        stall: Stall::Unresolved(reason),
        operands_unknown: 0,
    }
}
