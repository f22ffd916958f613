//! Everything that is said of a program, as text, so that two ways to keep its debug info can be compared.

use std::{collections::BTreeSet, fmt::Write};

use symbolizer::{Module, Object};

use crate::{
    describe::{describe, describe_layout},
    toolchain::Built,
};

/// Names that are not the program's own: the C library's start-up code.
fn is_foreign(name: &str) -> bool {
    name.is_empty() || name.starts_with("__") || name.starts_with("_init") || name == "_start"
}

/// The frames of every address of every function, every variable, every byte of each, by address and by name.
pub(crate) fn account(module: &Module, built: &Built) -> String {
    let symbols: BTreeSet<(u64, u64, String)> = built
        .symbols()
        .into_iter()
        .filter(|(name, _, size)| *size > 0 && !is_foreign(name))
        .map(|(name, address, size)| (address, size, name))
        .collect();
    let mut text = String::new();
    for (address, size, name) in symbols {
        if module.code(address, address + size).is_some() && is_function(module, address) {
            let language = module.language(address);
            writeln!(text, "{name}: {language:?}").unwrap();
            for address in address..address + size {
                writeln!(text, "  {address:x} {:?}", module.frames(address)).unwrap();
            }
        } else if module.memory().contains(&address) {
            add_object(&mut text, module, &name, module.object(address + size / 2));
        }
    }
    let size = module.thread_local_segment().map_or(0, |(size, _)| size);
    for offset in 0..size {
        let name = format!("thread-local {offset}");
        add_object(&mut text, module, &name, module.thread_local_object(offset));
    }
    text
}

fn is_function(module: &Module, address: u64) -> bool {
    module
        .section(address)
        .is_some_and(|(name, _)| name.starts_with(".text"))
}

fn add_object<E: std::fmt::Debug>(
    text: &mut String,
    module: &Module,
    name: &str,
    object: Result<Object, E>,
) {
    let object = match object {
        Ok(object) => object,
        Err(missing) => return writeln!(text, "{name}: {missing:?}").unwrap(),
    };
    let Object {
        linkage_name,
        address,
        file,
        line,
        language,
        missing,
        ..
    } = &object;
    writeln!(
        text,
        "{name}: {linkage_name:?} at {address:x}, {file:?}:{line:?}, {language:?}, {missing:?}"
    )
    .unwrap();
    text.push_str(&describe(module, &object));
    if let Some(ty) = object.ty
        && module.layout(ty).is_ok()
    {
        text.push_str(&describe_layout(module, &object));
        let layout = module.layout(ty).unwrap();
        writeln!(text, "  declared at {:?}:{:?}", layout.file, layout.line).unwrap();
    }
    let by_name = module.variable(&object.name).map(|found| found.address);
    writeln!(text, "  by name: {by_name:x?}").unwrap();
}

/// Fails with the first line that differs.
pub(crate) fn assert_same(label: &str, expected: &str, found: &str) {
    for (expected, found) in expected.lines().zip(found.lines()) {
        assert_eq!(found, expected, "{label}");
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{label}");
}
