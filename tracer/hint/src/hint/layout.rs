//! Which advice a line gets: looks at which objects its units are in and hands each case to its file.

use super::{
    Advice, AdviceKind, Scene, Sharing,
    dialect::Dialect,
    elements, many, members, neighbours,
    place::{Piece, pieces_of},
    ranges, variables, words,
};
use crate::{
    access::Place,
    names::{ObjectKind, ObjectName},
};

/// One change of the layout.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) kind: AdviceKind,
    pub(super) text: String,
    pub(super) bytes: Option<u64>,
}

/// What to change about one line. True sharing never gets layout advice.
pub fn advise(scene: &Scene) -> Advice {
    match scene.sharing {
        Sharing::True => words::advise(scene),
        Sharing::False => {
            let step = separate(scene);
            Advice {
                kind: step.kind,
                text: step.text,
                fields: fields(scene),
                bytes: step.bytes,
                words: Vec::new(),
            }
        }
        Sharing::Mixed => {
            let step = separate(scene);
            Advice {
                kind: AdviceKind::SeparateAndReduce,
                text: format!(
                    "First take apart what only happens to be neighbours. {}\nWhat remains shared: {}",
                    step.text,
                    words::sentences(scene)
                ),
                fields: fields(scene),
                bytes: step.bytes,
                words: words::each(scene),
            }
        }
    }
}

/// The dialect of an object: its own language, or that of the code on the line.
pub(super) fn dialect(scene: &Scene, object: Option<&ObjectName>) -> Dialect {
    Dialect {
        language: object.and_then(|object| object.language).or(scene.language),
        kernel: matches!(scene.line.0, Place::Kernel { .. })
            || object.is_some_and(|object| object.kind == ObjectKind::Kernel),
        line: scene.line_size.bytes(),
    }
}

/// The labels of everything that has to be moved apart, in the order of the units.
fn fields(scene: &Scene) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for unit in scene.units {
        for field in &unit.fields {
            if let Some(label) = &field.label
                && !out.contains(label)
            {
                out.push(label.clone());
            }
        }
    }
    out
}

fn separate(scene: &Scene) -> Step {
    let mut steps: Vec<Step> = Vec::new();
    let mut objects: Vec<usize> = Vec::new();
    for unit in scene.units {
        objects.extend(unit.fields.iter().filter_map(|field| field.object));
    }
    objects.sort_unstable();
    objects.dedup();
    for &index in &objects {
        let Some(object) = scene.objects.get(index) else {
            continue;
        };
        let pieces = pieces_of(scene, index);
        if has_several_units(&pieces) {
            steps.extend(inside(scene, object, &pieces));
        }
    }
    if objects.len() > 1 {
        steps.extend(variables::separate(scene, &objects));
        steps.extend(neighbours::separate(scene, &objects));
    }
    if steps.is_empty() && scene.many.is_some() {
        steps.extend(many::separate(scene, &objects));
    }
    if steps.is_empty() {
        return ranges::separate(scene);
    }
    join(steps)
}

/// Advice inside of one object whose shape is known; `None` where it is not.
fn inside(scene: &Scene, object: &ObjectName, pieces: &[Piece]) -> Option<Step> {
    let layout = object.layout.as_ref()?;
    match &layout.element {
        Some(element) => elements::separate(scene, object, layout, element, pieces),
        None => members::separate(scene, object, layout, pieces),
    }
}

pub(super) fn has_several_units(pieces: &[Piece]) -> bool {
    pieces.windows(2).any(|pair| pair[0].unit != pair[1].unit)
}

/// Several changes as one: the first gives the kind, costs add up where all are known.
fn join(steps: Vec<Step>) -> Step {
    let kind = steps.first().map_or(AdviceKind::None, |step| step.kind);
    let bytes = steps.iter().try_fold(0u64, |sum, step| {
        step.bytes.map(|bytes| sum.saturating_add(bytes))
    });
    let texts: Vec<String> = steps.into_iter().map(|step| step.text).collect();
    Step {
        kind,
        text: texts.join("\n"),
        bytes,
    }
}
