//! From a breakpoint's hit to the access, with the code of live processes and of the running kernel.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault},
    sync::Arc,
};

use rustc_hash::FxHasher;

use super::{kernel_code::LONGEST_FUNCTION, nameless_code::NamelessCode, sampled_code::ReadKernel};
use crate::{
    access::{Pid, SpaceId},
    decode::trap::{FunctionText, Hit, Stopped, Text, TrapCode, Trapped, Unit},
    event::Unresolved,
    module::{Compiled, LoadedModule, ModuleId, ModuleStore},
    space::{AddressSpaces, KERNEL_START},
    sys,
};

/// Code of everything that was hit so far.
pub struct TrappedCode {
    modules: Arc<ModuleStore>,
    code: TrapCode<Place>,
    nameless: NamelessCode,
}

/// Whose text is kept: it does not change while it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Kernel,
    Module(ModuleId),
    /// Of a process, from an address on, with a hash of the text: its compiler may replace it.
    Compiled(Pid, u64, u64),
}

impl TrappedCode {
    /// Nothing decoded yet.
    pub fn new(modules: Arc<ModuleStore>) -> TrappedCode {
        TrappedCode {
            modules,
            code: TrapCode::default(),
            nameless: NamelessCode::default(),
        }
    }

    /// Appends the accesses of one instruction of `pid`, in user or kernel mode; see
    /// [`TrapCode::resolve`]. Code that is in no file is read from the process, which must still be there.
    pub fn resolve(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        hit: &Hit<'_>,
        read_kernel: ReadKernel<'_>,
        out: &mut Vec<Trapped>,
    ) -> Result<(), Unresolved> {
        let mut text = LiveText {
            modules: &self.modules,
            space: spaces.space(pid),
            spaces,
            pid,
            read_kernel,
            nameless: &mut self.nameless,
        };
        if let Stopped::After(registers) = hit.stopped
            && !hit.kernel
        {
            text.notice(registers.ip);
        }
        self.code.resolve(&mut text, hit, out)
    }
}

/// Code as one process sees it.
struct LiveText<'a> {
    modules: &'a ModuleStore,
    spaces: &'a AddressSpaces,
    space: SpaceId,
    pid: Pid,
    read_kernel: ReadKernel<'a>,
    nameless: &'a mut NamelessCode,
}

impl LiveText<'_> {
    /// The module at a run-time address, and the address in it.
    fn module(&self, addr: u64) -> Result<(Arc<LoadedModule>, u64), Unresolved> {
        let mapping = self
            .spaces
            .mapping(self.space, addr)
            .ok_or(Unresolved::NoMapping)?;
        let module = self
            .modules
            .open(self.pid, mapping)
            .map_err(|_| Unresolved::NoModule)?;
        let svma = module.svma(mapping, addr).ok_or(Unresolved::NoModule)?;
        Ok((module, svma))
    }
}

impl LiveText<'_> {
    /// The function at a run-time address where no module holds it, as its compiler wrote it down.
    fn compiled(&self, addr: u64) -> Option<FunctionText> {
        let mappings = self.spaces.mappings(self.space);
        let jit = self.modules.jit();
        let of = Compiled::of(self.spaces, self.pid, self.space);
        let (start, bytes) = jit.text(of, addr, LONGEST_FUNCTION, mappings)?;
        Some(FunctionText {
            start,
            bytes,
            starts: None,
        })
    }

    /// The same, or what is known of code that nothing divides into functions.
    fn outside_of_modules(&self, addr: u64) -> Option<FunctionText> {
        self.compiled(addr).or_else(|| self.pieces(addr))
    }

    /// What is known around an address of code that nothing divides into functions.
    fn pieces(&self, addr: u64) -> Option<FunctionText> {
        let stretch = self.nameless.around(self.pid, addr)?;
        Some(FunctionText {
            start: stretch.start,
            bytes: stretch.bytes.clone(),
            starts: Some(stretch.starts.clone()),
        })
    }

    /// Notes where user code was trapped, if nothing divides it into functions.
    fn notice(&mut self, ip: u64) {
        let is_bounded = match self.module(ip) {
            Ok((module, svma)) => module.elf.function(svma).is_some(),
            Err(_) => self.compiled(ip).is_some(),
        };
        if let Some(mapping) = self.spaces.mapping(self.space, ip)
            && !is_bounded
        {
            let pid = self.pid;
            let mut read =
                |addr, buffer: &mut [u8]| sys::process_memory::read(pid, addr, buffer).unwrap_or(0);
            self.nameless.see(pid, ip, mapping, &mut read);
        }
    }
}

impl Text for LiveText<'_> {
    type Key = Place;

    fn unit(&mut self, addr: u64) -> Result<Unit<Place>, Unresolved> {
        if addr >= KERNEL_START {
            return Ok(Unit {
                key: Place::Kernel,
                bias: 0,
            });
        }
        let reason = match self.module(addr) {
            Ok((module, svma)) if module.elf.function(svma).is_some() => {
                return Ok(Unit {
                    key: Place::Module(module.id),
                    bias: addr.wrapping_sub(svma),
                });
            }
            Ok(_) => Unresolved::NoFunction,
            Err(reason) => reason,
        };
        let text = self.outside_of_modules(addr).ok_or(reason)?;
        let contents = (&text.bytes, &text.starts);
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(contents);
        Ok(Unit {
            key: Place::Compiled(self.pid, text.start, hash),
            bias: 0,
        })
    }

    fn function(&mut self, addr: u64) -> Result<FunctionText, Unresolved> {
        if addr >= KERNEL_START {
            let symbols = self.modules.kernel().map_err(|_| Unresolved::KernelText)?;
            let (start, end, _) = symbols.function(addr).ok_or(Unresolved::KernelText)?;
            let length = end.saturating_sub(start).min(LONGEST_FUNCTION) as usize;
            let bytes = (self.read_kernel)(start, length).ok_or(Unresolved::KernelText)?;
            return Ok(FunctionText {
                start,
                bytes,
                starts: None,
            });
        }
        let (module, svma) = match self.module(addr) {
            Ok(found) => found,
            Err(reason) => return self.outside_of_modules(addr).ok_or(reason),
        };
        let Some(function) = module.elf.function(svma) else {
            return self.outside_of_modules(addr).ok_or(Unresolved::NoFunction);
        };
        let bytes = module
            .code(function.start..function.end)
            .ok_or(Unresolved::NoModule)?;
        let bias = addr.wrapping_sub(svma);
        Ok(FunctionText {
            start: function.start.wrapping_add(bias),
            bytes,
            starts: None,
        })
    }

    fn bytes(&mut self, addr: u64, buffer: &mut [u8]) -> usize {
        if addr < KERNEL_START {
            return sys::process_memory::read(self.pid, addr, buffer).unwrap_or(0);
        }
        match (self.read_kernel)(addr, buffer.len()) {
            Some(read) => {
                let got = read.len().min(buffer.len());
                buffer[..got].copy_from_slice(&read[..got]);
                got
            }
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests;
