//! Separate variables that the linker or the compiler put on one line.

use super::{
    AdviceKind, Scene,
    dialect::{Dialect, Form},
    layout::{Step, dialect},
};
use crate::names::{ObjectKind, ObjectName};

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
    let places: Vec<String> = objects
        .iter()
        .map(|object| name_and_place(object))
        .collect();
    let first = dialect(scene, objects.first().copied());
    let mut text = format!(
        "{} are separate variables that only happen to lie on one line. Start each on a {line}-byte line of its own",
        join_words(&places)
    );
    let code: Option<Vec<String>> = objects
        .iter()
        .take(SHOWN)
        .map(|object| {
            let name = object.name.as_deref()?;
            let type_name = object.type_name.as_deref();
            dialect(scene, Some(object)).variable(object.kind, type_name, object.size, name)
        })
        .collect::<Option<Vec<_>>>()
        .map(|code| code.concat());
    match code {
        Some(code) => {
            text.push(':');
            for line in &code {
                text.push_str(&format!("\n    {line}"));
            }
            if objects.len() > SHOWN {
                text.push_str(&format!("\nand {} more likewise.", objects.len() - SHOWN));
            }
            text.push('\n');
            if first.form() == Form::Padded {
                text.push_str("What was `name` is `name.value` then. ");
            }
        }
        None => text.push_str(&in_words(first, &objects)),
    }
    let bytes = objects.iter().try_fold(0u64, |sum, object| {
        let size = object.size?;
        let grown = dialect(scene, Some(object)).stride(size, size.min(8))?;
        Some(sum.saturating_add(grown.saturating_sub(size)))
    });
    let note = first.note();
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

/// Where their declarations cannot be written.
fn in_words(dialect: Dialect, objects: &[&ObjectName]) -> String {
    let names: Vec<String> = objects
        .iter()
        .filter_map(|object| object.name.as_ref())
        .map(|name| format!("`{name}`"))
        .collect();
    let names = join_words(&names);
    match dialect.form() {
        Form::Wrapped => format!(
            ", by a type around it:\n    {}\nWrap the types of {names} in it, and their values in `Line` too; what was `NAME` is \
             `NAME.0` then. ",
            dialect.wrapper()
        ),
        _ => format!(". {} ", dialect.in_words(&names, &[dialect.line])),
    }
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

/// `a`, `a and b`, `a, b and c`.
pub(super) fn join_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
