//! Many lines of one thing, of which no line shows by itself which parts are whose: too little was seen of each.

use super::{
    Scene, elements,
    layout::{Step, dialect},
    neighbours,
    relayout::struct_alignment,
};

/// Gives each of what repeats lines of its own: the elements of an array, the objects of a type. `None` where they have them.
pub(super) fn separate(scene: &Scene, objects: &[usize]) -> Option<Step> {
    let object = scene.objects.get(*objects.first()?)?;
    let layout = object.layout.as_ref()?;
    if let Some(element) = &layout.element {
        return elements::separate(scene, object, layout, element, &[]);
    }
    let aligned = struct_alignment(&layout.members).unwrap_or(1);
    let dialect = dialect(scene, Some(object));
    let has_lines = object.start.is_some_and(|start| start % dialect.line == 0)
        && layout.size.is_multiple_of(dialect.line);
    if has_lines || dialect.stride(layout.size, aligned).is_none() {
        return None;
    }
    neighbours::separate(scene, objects)
}
