//! Names for what statistics are split by: functions, lines and objects.

use std::path::Path;

use crate::{
    access::{LineKey, LineSize},
    module::ModuleStore,
    names::{CodeName, Names, Resolver},
    number::list,
    statistics::{Fold, Key, Per},
};

/// Objects of one cache line that are named.
const MOST_OBJECTS: usize = 2;

/// The keys that are addresses, each with its name; those of one name are one.
pub(super) fn of(
    fold: &Fold,
    per: Per,
    line_size: LineSize,
    modules: &ModuleStore,
) -> Vec<(Key, String)> {
    let names = Resolver::new(fold.spaces(), modules).with_heap(fold.heap());
    let of_key = |key| {
        let name = match key {
            Key::Code { space, ip, kernel } => {
                let code = names.code(Some(space), ip, kernel);
                if per == Per::Line {
                    line(&code)
                } else {
                    function(&code)
                }
            }
            Key::Memory(line) => object(&names, line, line_size),
            _ => return None,
        };
        Some((key, name))
    };
    fold.keys().into_iter().filter_map(of_key).collect()
}

fn function(code: &CodeName) -> String {
    let inlined = code.inlined.first();
    match (inlined.or(code.symbol.as_ref()), &code.module) {
        (Some(name), _) => name.clone(),
        (None, Some(module)) => format!("no name in {}", last(module)),
        (None, None) => "no name".to_owned(),
    }
}

fn line(code: &CodeName) -> String {
    match (&code.file, code.line) {
        (Some(file), Some(line)) => format!("{}:{line}", last(file)),
        _ => format!("no line in {}", function(code)),
    }
}

fn object(names: &dyn Names, key: LineKey, line_size: LineSize) -> String {
    let objects = names.objects(key, line_size, &[]);
    let spoken = objects.iter().filter_map(|object| object.spoken());
    // Where nothing is known but the file, places in it are one.
    let mut spoken: Vec<String> = (spoken)
        .map(|name| match name.rsplit_once("+0x") {
            Some((file, _)) => last(file).to_owned(),
            None => name.to_owned(),
        })
        .collect();
    spoken.dedup();
    if spoken.is_empty() {
        let kind = objects
            .first()
            .map(|object| object.kind)
            .unwrap_or_default();
        return format!("no name ({})", kind.name());
    }
    list(&spoken, MOST_OBJECTS)
}

/// What a file is called.
fn last(path: &str) -> &str {
    Path::new(path)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(path)
}
