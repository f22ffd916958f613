//! The kernel's variables: their types from BTF, their addresses from the list of symbols.
//!
//! BTF says of a variable which section it is in, and how far from its start (`BTF_KIND_DATASEC`). Variables of each CPU
//! are always described; all others are by pahole since 1.28 (`--btf_features=global_var`), where the kernel's build asks
//! for it. Copies for each CPU are at no address that symbols tell, and stay without a name.

use std::{collections::HashMap, sync::OnceLock};

use super::{Btf, BtfError, KIND_DATASEC, KIND_VAR};
use crate::machine::kallsyms::Kallsyms;

/// The section that is copied for each CPU.
const PER_CPU: &str = ".data..percpu";

/// A function of the kernel that loads the running thread from the block of its CPU, and returns it. Where that block
/// counts from follows from its code: no symbol tells.
pub const GETS_CURRENT: &str = "bpf_get_current_task";

/// A variable of the kernel and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelVariable {
    /// As the source has it.
    pub name: String,
    /// Bytes from the start of its section.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Its type.
    pub type_id: u32,
}

impl Btf<'_> {
    /// Each section that holds variables, and these in the order of their offsets.
    pub fn sections(&self) -> Vec<(String, Vec<KernelVariable>)> {
        let entries = self.offsets.iter();
        entries
            .filter_map(|offset| self.entry_at(*offset as usize))
            .filter(|entry| entry.kind() == KIND_DATASEC)
            .map(|section| {
                let name = self.text(section.name).into_owned();
                let variables = (0..section.entries()).filter_map(|index| {
                    let [type_id, offset, size] = self.triple(section, index)?;
                    let variable = self.entry(type_id)?;
                    (variable.kind() == KIND_VAR && size > 0).then(|| KernelVariable {
                        name: self.text(variable.name).into_owned(),
                        offset,
                        size,
                        type_id: variable.size_or_target,
                    })
                });
                let mut variables: Vec<KernelVariable> = variables.collect();
                variables.sort_by_key(|variable| variable.offset);
                (name, variables)
            })
            .collect()
    }
}

/// The types of one kernel, and the variables of them that have an address, or of which each CPU has a copy.
#[derive(Debug)]
pub struct KernelTypes {
    btf: Btf<'static>,
    /// By address.
    variables: HashMap<u64, KernelVariable>,
    /// What each CPU has a copy of, by offset.
    per_cpu: Vec<KernelVariable>,
    /// Types of functions by name, read when first asked for.
    functions: OnceLock<HashMap<Box<str>, Option<u32>>>,
}

impl KernelTypes {
    /// Puts types and symbols of one kernel together.
    pub fn new(bytes: Vec<u8>, symbols: &Kallsyms) -> Result<KernelTypes, BtfError> {
        let btf = Btf::owned(bytes)?;
        let mut addresses: HashMap<&str, Option<u64>> = HashMap::new();
        for (address, name) in symbols.own_variables() {
            let known = addresses.entry(name).or_insert(Some(address));
            // Static variables of several files may have one name.
            if *known != Some(address) {
                *known = None;
            }
        }
        let mut variables = HashMap::new();
        let mut per_cpu = Vec::new();
        for (section, members) in btf.sections() {
            if section.starts_with(PER_CPU) {
                per_cpu = members;
                continue;
            }
            let Some(base) = base_of(&members, &addresses) else {
                continue;
            };
            for variable in members {
                if let Some(address) = base.checked_add(u64::from(variable.offset)) {
                    variables.insert(address, variable);
                }
            }
        }
        Ok(KernelTypes {
            btf,
            variables,
            per_cpu,
            functions: OnceLock::new(),
        })
    }

    /// The variable that starts at an address.
    pub fn variable(&self, address: u64) -> Option<&KernelVariable> {
        self.variables.get(&address)
    }

    /// The variable at an offset of the block that each CPU has.
    pub fn of_processor(&self, offset: u64) -> Option<&KernelVariable> {
        let upto = |known: &KernelVariable| u64::from(known.offset) <= offset;
        let after = self.per_cpu.partition_point(upto);
        let found = self.per_cpu.get(after.checked_sub(1)?)?;
        (offset - u64::from(found.offset) < u64::from(found.size)).then_some(found)
    }

    /// The variable of that name that each CPU has.
    pub fn named_of_processor(&self, name: &str) -> Option<&KernelVariable> {
        self.per_cpu.iter().find(|known| known.name == name)
    }

    /// The type of the function of a name; nothing where several of different types have it.
    pub fn function(&self, name: &str) -> Option<u32> {
        let functions = self.functions.get_or_init(|| self.btf.functions());
        functions.get(name).copied().flatten()
    }

    /// What types are.
    pub fn btf(&self) -> &Btf<'static> {
        &self.btf
    }
}

/// Where a section was loaded, as most of its variables with an address of their own say.
fn base_of(variables: &[KernelVariable], addresses: &HashMap<&str, Option<u64>>) -> Option<u64> {
    let mut votes: HashMap<u64, usize> = HashMap::new();
    let mut all = 0;
    for variable in variables {
        let address = addresses.get(&*variable.name).copied().flatten();
        let base = address.and_then(|address| address.checked_sub(u64::from(variable.offset)));
        if let Some(base) = base {
            *votes.entry(base).or_default() += 1;
            all += 1;
        }
    }
    let (base, count) = votes.into_iter().max_by_key(|(_, count)| *count)?;
    (2 * count > all).then_some(base)
}

#[cfg(test)]
mod tests;
