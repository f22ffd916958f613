//! Objects without a name whose type is known, and which an allocator or an array put on one line.

use super::{
    AdviceKind, Scene,
    dialect::Form,
    layout::{Step, dialect},
    members::type_words,
    relayout::struct_alignment,
};
use crate::names::{Author, ObjectKind, ObjectName};

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
    let aligned = struct_alignment(&layout.members).unwrap_or(1);
    let type_name = type_words(object.type_name.as_deref(), None);
    let what = if scene.many.is_some() {
        format!(
            "Objects of type {type_name}, which different threads use, share lines with others."
        )
    } else if count > 1 {
        format!("{count} objects of type {type_name}, which different threads use, share the line.")
    } else {
        format!("An object of type {type_name} shares the line with others.")
    };
    let own_type = object.type_name.as_deref()?;
    let own_lines = if layout.author == Author::Program {
        dialect.own_lines(own_type, layout.size, aligned, layout.members.first())
    } else {
        dialect.wrapped(own_type, layout.size, aligned)
    };
    let grown = dialect.stride(layout.size, aligned);
    let mut text = format!(
        "{what} Let each start on a {line}-byte line of its own. {}",
        own_lines.trim_end()
    );
    if let Some(size) = grown.filter(|&size| size > layout.size) {
        text.push_str(&format!(
            "\nEach grows from {} to {size} bytes.",
            layout.size
        ));
    }
    if object.kind == ObjectKind::Heap
        && dialect.form() != Form::Wrapped
        && let Some(allocation) = dialect.allocation()
    {
        text.push_str(&format!(" On the heap it needs {allocation}."));
    }
    Some(Step {
        kind: AdviceKind::AlignObject,
        text,
        bytes: None,
    })
}
