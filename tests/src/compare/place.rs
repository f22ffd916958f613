//! Whether code that a report names is the code that a key names.

use std::path::Path;

use super::FunctionRanges;
use crate::{
    answer::{ExpectedCode, tagged_line},
    naming::same_name,
    report::{Access, Code, Finding},
    workload::Workload,
};

/// Whether the code is in the function, on the tagged line.
pub(super) fn is_at_line(workload: &Workload, want: &ExpectedCode, got: &Code) -> bool {
    let mut functions = got.symbol.iter().chain(&got.inlined);
    let function_right = functions.any(|name| same_name(name, &want.function));
    let inlined_right = want
        .inlined
        .as_ref()
        .is_none_or(|want| got.inlined.iter().any(|name| same_name(name, want)));
    function_right && inlined_right && is_at_tag(workload, &want.line, got)
}

/// Whether the code is on the tagged line, whatever function it is in.
pub(super) fn is_at_tag(workload: &Workload, tag: &str, got: &Code) -> bool {
    let Ok(line) = tagged_line(&workload.text, tag) else {
        return false;
    };
    got.places.iter().any(|(file, got)| {
        Path::new(file).file_name() == workload.source.file_name() && *got == line
    })
}

/// Whether the code is the function of a just-in-time compiler, or of a library, that told no lines.
pub(super) fn is_compiled(got: &Code, function: &str) -> bool {
    let symbol_right = got.symbol.as_deref() == Some(function);
    let module = got.module.as_deref().unwrap_or_default();
    symbol_right
        && (module == "[jit]" || Path::new(module).extension() == Some("so".as_ref()))
        && got.places.is_empty()
}

/// Whether the access is in the program's own module, inside the function. The address may be the file's own, or
/// that of the running program: then the difference is whole pages, the same for the finding's first access.
pub(super) fn is_in_function(
    got: &Access,
    finding: &Finding,
    functions: &FunctionRanges,
    function: &str,
    workload: &Workload,
) -> bool {
    let module_right = got
        .code
        .module
        .as_ref()
        .is_some_and(|module| Path::new(module).file_stem() == workload.source.file_stem());
    let (Some(ip), Some(range)) = (got.code.ip, functions.get(function)) else {
        return false;
    };
    let first = finding
        .accesses
        .iter()
        .filter_map(|access| access.code.ip)
        .min()
        .unwrap_or(ip);
    let lowest = functions
        .values()
        .map(|range| range.start)
        .min()
        .unwrap_or(0);
    let bases =
        (0..16).map(|pages| (first & !0xfff).wrapping_sub((lowest & !0xfff) + pages * 0x1000));
    module_right
        && [0]
            .into_iter()
            .chain(bases)
            .any(|base| range.contains(&ip.wrapping_sub(base)))
}
