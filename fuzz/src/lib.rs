//! What the fuzz targets share: every question that can be asked of a module, and ELF files made of parts.

pub mod link;
pub mod parts;
pub mod session;
pub mod xz;

use symbolizer::{Module, Operand, TypeRef};

/// Types followed from one address.
const MOST_TYPES: usize = 12;

/// Asks everything at an address.
pub fn ask(module: &Module, address: u64) {
    ask_code(module, address);
    ask_data(module, address);
}

/// Asks for what is executed there.
pub fn ask_code(module: &Module, address: u64) {
    let _ = module.frames(address);
    let _ = module.function(address);
    let _ = module.language(address);
    let _ = module.section(address);
    let _ = module.svma_of_offset(address);
    let _ = module.load_bias(address, address >> 12);
    let _ = module.code(address, address.wrapping_add(16));
    let _ = module.frame_row(address);
    for operand in [Operand::Load, Operand::Store] {
        if let Ok(accessed) = module.access(address, operand) {
            ask_type(module, accessed.ty);
        }
    }
}

/// Asks for what is stored there.
pub fn ask_data(module: &Module, address: u64) {
    for object in [module.object(address), module.thread_local_object(address)] {
        if let Ok(object) = object
            && let Some(ty) = object.ty
        {
            ask_type(module, ty);
        }
    }
}

/// Asks for a type, its members and theirs.
fn ask_type(module: &Module, ty: TypeRef) {
    let mut types = vec![ty];
    let mut at = 0;
    while let Some(&ty) = types.get(at)
        && at < MOST_TYPES
    {
        at += 1;
        for offset in [0, 9, u64::MAX] {
            for size in [1, u64::MAX] {
                let _ = module.field(ty, offset, size);
            }
        }
        let _ = module.type_tree(ty);
        if let Ok(layout) = module.layout(ty) {
            let members = layout.members.iter().map(|member| member.ty);
            let inner = members.chain(layout.element.map(|element| element.ty));
            types.extend(inner.take(MOST_TYPES - types.len().min(MOST_TYPES)));
        }
    }
}

/// Asks by name.
pub fn ask_names(module: &Module) {
    for text in [
        "everything.word.half[1]",
        "table.slots[2]",
        "array[1]",
        "a.b",
    ] {
        let _ = module.variable(text);
        let _ = module.similar_variables(text, 3);
    }
    let _ = module.thread_local_slots();
}

/// Addresses spread over what the file loads, and some that it should not have.
pub fn addresses(module: &Module, count: u64) -> impl Iterator<Item = u64> {
    let memory = module.memory();
    let length = memory.end.saturating_sub(memory.start);
    let spread =
        (0..count).map(move |step| memory.start.wrapping_add(length / count * step + step % 7));
    spread.chain([0, 8, 1 << 63, u64::MAX])
}
