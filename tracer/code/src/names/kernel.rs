//! Names of the kernel's code and variables: by the file of its build where there is one, else by its list
//! of symbols, with the types that the kernel itself describes.

mod prototypes;

pub(super) use prototypes::KernelCode;

use super::{
    Author, CodeName, ElementLayout, Language, MemberLayout, ObjectKind, ObjectLayout, ObjectName,
    Resolver, missed::Unnamed, resolver::Resolved,
};
use crate::{
    access::LineSize,
    machine::btf::{Btf, KernelVariable},
    module::KernelMissing,
};

/// What the kernel itself is shown as.
const KERNEL: &str = "[kernel]";

impl Resolver<'_> {
    /// The instruction at a kernel address. Modules are known by symbols only: their files are relocatable, so
    /// that nothing in them has an address before the kernel loads them.
    pub(super) fn kernel_code(&self, ip: u64) -> CodeName {
        let unnamed = CodeName {
            module: Some(KERNEL.to_owned()),
            ip,
            ..CodeName::default()
        };
        let symbols = match self.modules.kernel() {
            Ok(symbols) => symbols,
            Err(missing) => {
                self.miss(KERNEL, &missing, Unnamed::Code(ip));
                return unnamed;
            }
        };
        let Some((start, _, name)) = symbols.function(ip) else {
            self.miss(KERNEL, &KernelMissing::NotCovered, Unnamed::Code(ip));
            return unnamed;
        };
        let symbol = Some(name.to_owned());
        let unnamed = CodeName {
            symbol_offset: ip.checked_sub(start),
            ..unnamed
        };
        if let Some(module) = symbols.module_of_function(ip) {
            let module = Some(format!("[{module}]"));
            return CodeName {
                module,
                symbol,
                ..unnamed
            };
        }
        let Some((vmlinux, bias)) = self.modules.vmlinux() else {
            return CodeName { symbol, ..unnamed };
        };
        let described = self.module_code(vmlinux, Some(KERNEL.to_owned()), ip.wrapping_sub(bias));
        CodeName {
            ip,
            symbol: described.symbol.or(symbol),
            ..described
        }
    }

    /// The kernel's variables on a line.
    pub(super) fn kernel_objects(&self, line: u64, size: LineSize) -> Vec<Resolved> {
        let mut found: Vec<Resolved> = Vec::new();
        let mut offset = 0;
        while offset < size.bytes() {
            let addr = line.wrapping_add(offset);
            let mut next = offset + 1;
            if let Some(object) = self.kernel_variable(addr) {
                let end = object.name.end().map(|end| end.saturating_sub(line));
                next = end.map_or(next, |end| end.max(next));
                found.push(object);
            }
            offset = next;
        }
        found
    }

    /// Counts a line that neither a symbol names nor an instruction.
    pub(super) fn miss_kernel_data(&self, line: u64) {
        let missing = match self.modules.kernel() {
            Ok(symbols) if symbols.lists_variables() || self.modules.vmlinux().is_some() => {
                KernelMissing::NotCovered
            }
            Ok(_) => KernelMissing::NoVariables,
            Err(missing) => missing,
        };
        self.miss(KERNEL, &missing, Unnamed::Data(line));
    }

    fn kernel_variable(&self, addr: u64) -> Option<Resolved> {
        let symbols = self.modules.kernel().ok()?;
        // The file knows types and true sizes, but not the modules; what it has for each CPU is at no address
        // of its own.
        let described = self.modules.vmlinux().and_then(|(vmlinux, bias)| {
            let svma = addr.wrapping_sub(bias);
            vmlinux.elf.object(svma).ok()?;
            self.variable(vmlinux, svma, addr)
        });
        if let Some(mut object) = described {
            object.name.kind = ObjectKind::Kernel;
            return Some(object);
        }
        let symbol = symbols.variable(addr)?;
        let types = self.modules.kernel_types();
        if symbol.module.is_none()
            && let Some(types) = types
            && let Some(variable) = types.variable(symbol.range.start)
        {
            // What lies between its end and the next symbol is nobody's.
            let inside = addr - symbol.range.start < u64::from(variable.size);
            return inside.then(|| described_by(types.btf(), variable, symbol.range.start));
        }
        let name = match symbol.module {
            Some(module) => format!("{} [{module}]", symbol.name),
            None => symbol.name.to_owned(),
        };
        Some(Resolved::untyped(ObjectName {
            kind: ObjectKind::Kernel,
            name: Some(name),
            start: Some(symbol.range.start),
            size: Some(symbol.range.end - symbol.range.start),
            ..ObjectName::default()
        }))
    }

    /// The part at a position of a variable that the kernel itself describes.
    pub(super) fn kernel_field(
        &self,
        object: &Resolved,
        position: u64,
        bytes: u64,
    ) -> Option<String> {
        // First: to read the kernel's types takes as long as a short program's whole report.
        let kernel_type = object.kernel_type?;
        let inside = position.checked_sub(object.name.start?)?;
        let types = self.modules.kernel_types()?;
        let path = types.btf().field(kernel_type, inside, bytes)?;
        Some(path).filter(|path| !path.is_empty())
    }
}

/// A variable at an address, with its type.
fn described_by(btf: &Btf<'_>, variable: &KernelVariable, start: u64) -> Resolved {
    let name = ObjectName {
        kind: ObjectKind::Kernel,
        name: Some(variable.name.clone()),
        type_name: Some(btf.type_name(variable.type_id)),
        start: Some(start),
        size: Some(u64::from(variable.size)),
        language: Some(Language::C),
        layout: layout(btf, variable.type_id),
        ..ObjectName::default()
    };
    Resolved {
        kernel_type: Some(variable.type_id),
        ..Resolved::untyped(name)
    }
}

/// The shape of a type: of an array, with the members of its element.
pub(super) fn layout(btf: &Btf<'_>, type_id: u32) -> Option<ObjectLayout> {
    let array = btf.elements(type_id);
    let element = array.and_then(|(element, count)| {
        Some(ElementLayout {
            type_name: Some(btf.type_name(element)),
            stride: btf.size(element)?,
            count: u64::from(count),
        })
    });
    let members = btf.members(array.map_or(type_id, |(element, _)| element));
    let members = members.into_iter().map(|member| MemberLayout {
        name: member.name,
        offset: member.offset,
        size: member.size,
        type_name: Some(btf.type_name(member.type_id)),
        alignment: None,
        is_bit_field: member.is_bit_field,
        is_inner: member.is_inner,
    });
    Some(ObjectLayout {
        author: Author::Program,
        size: btf.size(type_id)?,
        element,
        members: members.collect(),
    })
}

#[cfg(test)]
mod tests;
