//! Types of the kernel's memory by its own instructions, where there is no file of the kernel with debug info: the kernel
//! describes the prototypes of its functions and its types itself, and its code was read while it was sampled.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use symbolizer::{Operand, Prototyped, Prototypes, Reached, Untraced};

use crate::{
    machine::{
        btf::{GETS_CURRENT, KernelTypes},
        kallsyms::Kallsyms,
    },
    names::Resolver,
    space::AddressSpaces,
};

/// What [`GETS_CURRENT`] loads: the variable, and before Linux 6.15 the one that it was the first member of.
const CURRENT_TASK: [&str; 2] = ["current_task", "pcpu_hot"];
/// What tracers have called at the start of functions changes no register (`ftrace_caller` and `__fentry__`,
/// arch/x86/kernel/ftrace_64.S; trampolines of BPF save what they use).
const OF_TRACERS: [&str; 3] = ["__fentry__", "ftrace_", "bpf_trampoline_"];

/// Functions of the kernel that were followed.
#[derive(Default)]
pub(in crate::names) struct KernelCode {
    followed: RefCell<HashMap<u64, Result<Rc<Prototyped>, Untraced>>>,
    /// What to subtract (wrapping) from an address in the block of a CPU to get an offset in BTF's section.
    processor: OnceCell<Option<u64>>,
}

/// The kernel as its own description has it.
struct Kernel<'k> {
    symbols: &'k Kallsyms,
    types: &'k KernelTypes,
    processor: Option<u64>,
}

impl Kernel<'_> {
    /// The type of the function that starts at an address.
    fn function(&self, address: u64) -> Option<u32> {
        let (start, _, name) = self.symbols.function(address)?;
        // Those of modules are described elsewhere.
        let is_own = self.symbols.module_of_function(address).is_none();
        let is_it = start == address && is_own && !self.symbols.is_shared_name(name);
        self.types.function(name).filter(|_| is_it)
    }
}

impl Prototypes for Kernel<'_> {
    fn parameters(&self, function: u64) -> Vec<Option<u32>> {
        let function = self.function(function);
        function.map_or_else(Vec::new, |ty| self.types.btf().parameters(ty))
    }

    fn keeps_registers(&self, function: u64) -> bool {
        match self.symbols.function(function) {
            Some((.., name)) => OF_TRACERS.iter().any(|tracer| name.starts_with(tracer)),
            // A trampoline in memory of its own.
            None => true,
        }
    }

    fn result(&self, function: u64) -> Option<u32> {
        self.types.btf().result(self.function(function)?)
    }

    fn pointer_at(&self, ty: u32, offset: u64) -> Option<u32> {
        self.types.btf().pointer_at(ty, offset)
    }

    fn size(&self, ty: u32) -> Option<u64> {
        self.types.btf().size(ty)
    }

    fn variable(&self, address: u64) -> Option<(u32, u64)> {
        let start = self.symbols.variable(address)?.range.start;
        let variable = self.types.variable(start)?;
        (address - start < u64::from(variable.size)).then_some((variable.type_id, start))
    }

    fn of_processor(&self, offset: u64) -> Option<(u32, u64)> {
        let base = self.processor?;
        let variable = self.types.of_processor(offset.wrapping_sub(base))?;
        let start = base.wrapping_add(u64::from(variable.offset));
        Some((variable.type_id, start))
    }
}

/// Nothing is known, and what is asked of a CPU's block is noted.
#[derive(Default)]
struct Noting(Cell<Option<u64>>);

impl Prototypes for Noting {
    fn parameters(&self, _function: u64) -> Vec<Option<u32>> {
        Vec::new()
    }

    fn keeps_registers(&self, _function: u64) -> bool {
        true
    }

    fn result(&self, _function: u64) -> Option<u32> {
        None
    }

    fn pointer_at(&self, _ty: u32, _offset: u64) -> Option<u32> {
        None
    }

    fn size(&self, _ty: u32) -> Option<u64> {
        None
    }

    fn variable(&self, _address: u64) -> Option<(u32, u64)> {
        None
    }

    fn of_processor(&self, offset: u64) -> Option<(u32, u64)> {
        self.0.set(self.0.get().or(Some(offset)));
        None
    }
}

/// What to subtract from addresses in the block of a CPU; nothing where that is not known.
fn processor(spaces: &AddressSpaces, symbols: &Kallsyms, types: &KernelTypes) -> Option<u64> {
    let variable = CURRENT_TASK
        .iter()
        .find_map(|name| types.named_of_processor(name))?;
    let address = symbols.own_function(GETS_CURRENT)?;
    let (start, code) = spaces.kernel_memory(address)?;
    let noting = Noting::default();
    let is_it = start == address && Prototyped::new(code, start, &noting).is_ok();
    let loaded = noting.0.get().filter(|_| is_it)?;
    Some(loaded.wrapping_sub(u64::from(variable.offset)))
}

impl Resolver<'_> {
    /// What the memory operand of an instruction of the kernel reaches.
    pub(in crate::names) fn kernel_reached(
        &self,
        ip: u64,
        operand: Operand,
    ) -> Result<Reached, Untraced> {
        let symbols = self.modules.kernel().map_err(|_| Untraced::NoDebugInfo)?;
        let types = self.modules.kernel_types().ok_or(Untraced::NoDebugInfo)?;
        let (start, code) = (self.spaces.kernel_memory(ip)).ok_or(Untraced::NoFunction)?;
        let known = self.kernel_code.followed.borrow().get(&start).cloned();
        let followed = known.unwrap_or_else(|| {
            let processor = self
                .kernel_code
                .processor
                .get_or_init(|| processor(self.spaces, symbols, types));
            let kernel = Kernel {
                symbols,
                types,
                processor: *processor,
            };
            let followed = Prototyped::new(code, start, &kernel).map(Rc::new);
            let mut all = self.kernel_code.followed.borrow_mut();
            all.insert(start, followed.clone());
            followed
        })?;
        followed.access(ip, operand)
    }
}

#[cfg(test)]
mod tests;
