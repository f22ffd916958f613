//! Objects without a name whose type is known, and which an allocator or an array put on one line.

use super::{
    AdviceKind, Scene,
    declaration::Dialect,
    layout::{Step, dialect},
    members::type_words,
    relayout::round_up,
};
use crate::names::{Language, ObjectKind, ObjectLayout, ObjectName};

/// Makes the type whole lines, so that each of its objects has its own. For the type that has the most objects here.
pub(super) fn separate(scene: &Scene, objects: &[usize]) -> Option<Step> {
    let nameless = |object: &&ObjectName| {
        (object.name.is_none() || object.allocation.is_some())
            && object.type_name.is_some()
            && object.size.is_some()
    };
    let here: Vec<&ObjectName> = objects
        .iter()
        .filter_map(|&n| scene.objects.get(n))
        .filter(nameless)
        .collect();
    let same = |object: &ObjectName| {
        let alike = here
            .iter()
            .filter(|other| other.type_name == object.type_name);
        alike.count()
    };
    let object = here.iter().rev().max_by_key(|object| same(object))?;
    let count = same(object);
    let layout = object.layout.as_ref()?;
    // A scalar takes no alignment of its own: the byte ranges say more.
    if layout.members.is_empty() || layout.size == 0 {
        return None;
    }
    let dialect = dialect(scene, Some(object));
    let line = dialect.line;
    let size = round_up(layout.size, line);
    let type_name = type_words(object.type_name.as_deref(), None);
    let what = if count > 1 {
        format!("{count} objects of type {type_name}, which different threads use, share the line.")
    } else {
        format!("An object of type {type_name} shares the line with others.")
    };
    let mut text = format!(
        "{what} Make each start on a {line}-byte line of its own: {}\nEach grows from {} to {size} bytes.",
        own_lines(object.type_name.as_deref()?, layout, dialect).trim_end(),
        layout.size,
    );
    if object.kind == ObjectKind::Heap && dialect.language != Some(Language::Rust) {
        text.push_str(&format!(" On the heap it needs {}.", dialect.allocation()));
    }
    Some(Step {
        kind: AdviceKind::AlignObject,
        text,
        bytes: None,
    })
}

/// How a struct's objects get whole lines in the source's language.
pub(super) fn own_lines(type_name: &str, layout: &ObjectLayout, dialect: Dialect) -> String {
    let line = dialect.line;
    match dialect.language {
        _ if dialect.kernel => {
            format!("declare `{type_name} {{ .. }} ____cacheline_aligned_in_smp`.")
        }
        Some(Language::Rust) => format!("put `#[repr(align({line}))]` on `{type_name}`."),
        Some(Language::Cpp) => format!(
            "declare it `struct alignas({line}) {}`.",
            type_name.trim_start_matches("struct ")
        ),
        _ => {
            let first = layout.members.first();
            let code = first.map_or_else(String::new, |member| dialect.member(member));
            format!(
                "align the first member of `{type_name}`:\n    {code}\n{}",
                dialect.note()
            )
        }
    }
}
