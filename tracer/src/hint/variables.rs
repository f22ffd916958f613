//! Separate variables that the linker or the compiler put on one line.

use super::{
    AdviceKind, Scene,
    layout::{Step, dialect},
    relayout::round_up,
};
use crate::names::{Language, ObjectKind, ObjectName};

/// Variables shown as code; the others are counted.
const SHOWN: usize = 4;

/// Starts each of the objects at a line of its own.
pub(super) fn separate(scene: &Scene, objects: &[usize]) -> Option<Step> {
    let objects: Vec<&ObjectName> = objects
        .iter()
        .filter_map(|&n| scene.objects.get(n))
        .collect();
    // Unnamed memory cannot be declared otherwise: the byte ranges say more.
    if objects
        .iter()
        .filter(|object| object.name.is_some() && is_variable(object.kind))
        .count()
        < 2
    {
        return None;
    }
    let line = scene.line_size.bytes();
    let names: Vec<String> = objects
        .iter()
        .map(|object| name_and_place(object))
        .collect();
    let mut text = format!(
        "{} are separate variables that only happen to lie on one line. Start each on a {line}-byte line of its own:",
        join_words(&names)
    );
    let rust = objects
        .iter()
        .any(|object| dialect(scene, Some(object)).language == Some(Language::Rust));
    if rust {
        text.push_str(&format!(
            "\n    {}",
            dialect(scene, objects.first().copied()).wrapper()
        ));
    }
    for object in objects.iter().take(SHOWN) {
        let dialect = dialect(scene, Some(object));
        let name = object.name.as_deref().unwrap_or("..");
        let code = dialect.declaration(object.type_name.as_deref(), name);
        // A Rust static ends in its value, not in the comma of a field.
        let code = match dialect.language {
            Some(Language::Rust) => format!("static {} = Line(..);", code.trim_end_matches(',')),
            _ => code,
        };
        text.push_str(&format!("\n    {code}"));
    }
    if objects.len() > SHOWN {
        text.push_str(&format!("\nand {} more likewise.", objects.len() - SHOWN));
    }
    let bytes = objects.iter().try_fold(0u64, |sum, object| {
        object
            .size
            .map(|size| sum.saturating_add(round_up(size, line) - size.min(round_up(size, line))))
    });
    let note = dialect(scene, objects.first().copied()).note();
    text.push('\n');
    if !note.is_empty() {
        text.push_str(&note);
        text.push(' ');
    }
    if let Some(bytes) = bytes {
        text.push_str(&format!(
            "With nothing else on those lines, this costs {bytes} bytes."
        ));
    }
    Some(Step {
        kind: AdviceKind::SeparateVariables,
        text: text.trim_end().to_owned(),
        bytes,
    })
}

fn is_variable(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Global | ObjectKind::Tls | ObjectKind::Stack | ObjectKind::Kernel
    )
}

fn name_and_place(object: &ObjectName) -> String {
    let name = object.name.as_deref().unwrap_or("an unnamed object");
    let name = if object.name.is_some() {
        format!("`{name}`")
    } else {
        name.to_owned()
    };
    match (&object.file, object.line) {
        (Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{name} ({file}:{line})")
        }
        _ => name,
    }
}

fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
