//! Memory whose type is not known, or does not help: says which bytes, who touches them where, and how to take them apart.

use super::{
    AdviceKind, Scene, Unit,
    dialect::Dialect,
    layout::{Step, dialect},
    place::pieces_of,
    variables::join_words,
};
use crate::{
    access::Place,
    names::{MemberLayout, ObjectKind, ObjectName},
};

/// Ranges named one by one; the others are counted.
const SHOWN: usize = 4;

/// Moves byte ranges apart, in words.
pub(super) fn separate(scene: &Scene) -> Step {
    // Memory without a type has no fields; what it is is known all the same.
    let index = scene
        .units
        .iter()
        .flat_map(|unit| unit.fields.iter().filter_map(|field| field.object))
        .next()
        .unwrap_or(0);
    let object = scene.objects.get(index);
    let dialect = dialect(scene, object);
    let line = dialect.line;
    let mut text = format!("{}. ", who_uses_what(scene));
    if let Some(element) = neighbours(scene.units) {
        text.push_str(&format!(
            "They look like neighbouring {element}-byte elements of an array: give each {line} bytes of its own. "
        ));
    } else {
        text.push_str(&format!(
            "Start each of these parts at a multiple of {line} bytes and let nothing else share its line. "
        ));
    }
    let around = object.and_then(|object| member_around(scene, index, object));
    text.push_str(&if let Some(member) = around {
        format!(
            "They are parts of the member `{}`, at byte {} of the object: start it at a multiple of {line} too, and \
             make each of its elements a multiple of {line} bytes. {}",
            member.name,
            member.offset,
            dialect.apart()
        )
    } else if let Some(type_name) = object.and_then(type_with_members) {
        format!(
            "They are within `{type_name}`, in members that share storage or are declared elsewhere (bit-fields, a base class, an \
             anonymous member): take those apart first. {}",
            dialect.apart()
        )
    } else {
        let kind = object.map_or(ObjectKind::Unknown, |object| object.kind);
        whose_memory(scene, kind, dialect)
    });
    Step {
        kind: AdviceKind::SeparateBytes,
        text: text.trim_end().to_owned(),
        bytes: None,
    }
}

fn who_uses_what(scene: &Scene) -> String {
    let mut parts: Vec<String> = scene
        .units
        .iter()
        .take(SHOWN)
        .map(|unit| {
            let names: Vec<&str> = unit
                .fields
                .iter()
                .filter_map(|f| f.label.as_deref())
                .take(2)
                .collect();
            let names = if names.is_empty() {
                String::new()
            } else {
                format!("`{}`, ", names.join("`, `"))
            };
            let verb = match (unit.writers, unit.truly_shared()) {
                (0, _) => "read",
                (_, true) => "shared",
                (_, false) => "written",
            };
            let code = match unit.code.first() {
                Some(code) => format!("{verb} at {code}"),
                None => verb.to_owned(),
            };
            format!("{} ({names}{code})", bytes(unit))
        })
        .collect();
    if scene.units.len() > SHOWN {
        parts.push(format!("{} more ranges", scene.units.len() - SHOWN));
    }
    let who = if scene.many.is_some() {
        "On one of its lines, different"
    } else {
        "Different"
    };
    format!("{who} threads use {}", join_words(&parts))
}

fn bytes(unit: &Unit) -> String {
    let pieces: Vec<String> = unit
        .pieces
        .iter()
        .take(3)
        .map(|&(offset, size)| match size {
            0 | 1 => offset.to_string(),
            _ => format!("{offset}-{}", u64::from(offset) + u64::from(size) - 1),
        })
        .collect();
    let more = if unit.pieces.len() > 3 { ",.." } else { "" };
    let word = if unit.pieces.len() == 1 && unit.pieces[0].1 <= 1 {
        "byte"
    } else {
        "bytes"
    };
    format!("{word} {}{more}", pieces.join(","))
}

/// The element size, when at least three units are one piece each, all of one size and evenly placed.
fn neighbours(units: &[Unit]) -> Option<u64> {
    if units.len() < 3 || units.iter().any(|unit| unit.pieces.len() != 1) {
        return None;
    }
    let mut pieces: Vec<(u8, u16)> = units.iter().map(|unit| unit.pieces[0]).collect();
    pieces.sort_unstable();
    let size = pieces[0].1;
    let even = pieces.windows(2).all(|pair| {
        let distance = u16::from(pair[1].0) - u16::from(pair[0].0);
        pair[0].1 == pair[1].1 && size > 0 && distance == size
    });
    even.then_some(u64::from(size))
}

/// The member that holds all the parts, where the object's type is known but not what is within.
fn member_around<'a>(
    scene: &Scene,
    index: usize,
    object: &'a ObjectName,
) -> Option<&'a MemberLayout> {
    let pieces = pieces_of(scene, index);
    let (first, last) = (pieces.first()?, pieces.last()?);
    let holds = |member: &&MemberLayout| {
        member.offset <= first.offset && member.offset.saturating_add(member.size) >= last.end()
    };
    object.layout.as_ref()?.members.iter().find(holds)
}

/// The type of an object whose members are known, and where it starts: then they were of no use.
fn type_with_members(object: &ObjectName) -> Option<&str> {
    let layout = object.layout.as_ref()?;
    let has_members = object.start.is_some() && !layout.members.is_empty();
    has_members.then_some(object.type_name.as_deref()?)
}

fn whose_memory(scene: &Scene, kind: ObjectKind, dialect: Dialect) -> String {
    let line = dialect.line;
    match (scene.line.0, kind) {
        (Place::Shared { .. }, _) if scene.processes > 1 => format!(
            "The memory is a mapping that {} processes share, so all of them must be built with the same new \
             layout; a mapping starts at a page, so offsets that are multiples of {line} are enough.",
            scene.processes
        ),
        (Place::Shared { .. }, _) | (_, ObjectKind::Mapping) => format!(
            "The memory is a shared mapping; it starts at a page, so offsets that are multiples of {line} are enough."
        ),
        (_, ObjectKind::Stack) => format!(
            "The memory is on a thread's stack: let each thread keep its part on its own stack, or take the parts apart. {}",
            dialect.apart()
        ),
        (_, ObjectKind::Heap) => format!(
            "The memory is on the heap and its type is not known here. {}",
            match dialect.allocation() {
                Some(allocation) => format!(
                    "Such alignment needs {allocation}. Elements whose size is a multiple of {line} already only need their \
                     block to start at a line."
                ),
                None => dialect.apart(),
            }
        ),
        (_, ObjectKind::Kernel) | (Place::Kernel { .. }, _) => {
            "Kernel structs say `____cacheline_aligned_in_smp` behind a member, or keep the data per CPU \
             (`DEFINE_PER_CPU`)."
                .to_owned()
        }
        (_, ObjectKind::Global | ObjectKind::Tls) => format!(
            "The variable's type is not known here (no debug information). {}",
            dialect.apart()
        ),
        (_, ObjectKind::Unknown) => {
            format!("{} What this memory is could not be told.", dialect.apart())
        }
    }
}
