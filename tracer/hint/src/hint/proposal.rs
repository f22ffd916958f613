//! The layout that the advice asks for, as data: the same plans that the sentences are made from.

use super::{
    Scene, Sharing,
    dialect::{Dialect, Form, shown},
    elements::Change,
    layout::{dialect, has_several_units},
    members::Used,
    place::{line_of, pieces_of},
    relayout::{Relayout, struct_alignment},
};
use crate::names::{MemberLayout, ObjectLayout};

/// A changed declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The type that changes: the object's, or that of an array's elements.
    pub type_name: Option<String>,
    /// Bytes of it now.
    pub size: u64,
    /// Bytes of it then.
    pub new_size: u64,
    /// How many of them the object is made of.
    pub count: u64,
    /// Bytes that the object must start at a multiple of.
    pub alignment: u64,
    /// Its members in their new order; none where the type itself stays, or has none.
    pub members: Vec<Placed>,
}

/// A member in its new place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Without a leading dot.
    pub name: String,
    /// As the source would declare it, with what makes it start a line.
    pub declaration: String,
    /// First byte; `None` in Rust, where the compiler decides.
    pub offset: Option<u64>,
    /// Size in bytes.
    pub size: u64,
    /// It has to start a line (in Rust: to be wrapped in a type that fills lines).
    pub starts_line: bool,
    /// Index of the unit of [`Scene::units`] that uses it.
    pub unit: Option<usize>,
}

/// What to change about one object of the scene (an index into [`Scene::objects`]). `None` where its own layout is
/// not what is wrong, as with true sharing, or where it is not known.
pub fn propose(scene: &Scene, object: usize) -> Option<Proposal> {
    if scene.sharing == Sharing::True {
        return None;
    }
    let pieces = pieces_of(scene, object);
    let object = scene.objects.get(object)?;
    let layout = object.layout.as_ref()?;
    if !has_several_units(&pieces) {
        return None;
    }
    let dialect = dialect(scene, Some(object));
    let Some(element) = &layout.element else {
        let line = line_of(scene, object.start?);
        let units = Used::of(scene, &layout.members, &pieces, line)?;
        let plan = Relayout::new(&layout.members, &units, layout.size, dialect)?;
        let type_name = object.type_name.as_deref();
        return Some(changed(
            type_name,
            layout.size,
            1,
            layout,
            &units,
            &plan,
            dialect,
        ));
    };
    let type_name = element.type_name.as_deref();
    let same = |new_size| Proposal {
        type_name: type_name.map(str::to_owned),
        size: element.stride,
        new_size,
        count: element.count,
        alignment: dialect.line,
        members: Vec::new(),
    };
    Some(
        match Change::of(scene, object, layout, element, &pieces, dialect)? {
            Change::Members(units, plan) => changed(
                type_name,
                element.stride,
                element.count,
                layout,
                &units,
                &plan,
                dialect,
            ),
            Change::Align(_) => same(element.stride),
            Change::Pad(stride) => same(stride?),
        },
    )
}

fn changed(
    type_name: Option<&str>,
    size: u64,
    count: u64,
    layout: &ObjectLayout,
    used: &Used,
    plan: &Relayout,
    dialect: Dialect,
) -> Proposal {
    let members = &layout.members;
    let kept: Vec<usize> = (0..members.len()).collect();
    // Padding keeps members apart wherever the struct starts.
    let alignment = match dialect.form() {
        Form::Padded => struct_alignment(&layout.members).unwrap_or(1),
        _ => dialect.line,
    };
    let order = if plan.order.is_empty() {
        &kept
    } else {
        &plan.order
    };
    let owner = type_name;
    let placed = |n: usize, member: &MemberLayout| Placed {
        declaration: declaration(owner, n, member, plan, dialect),
        name: member.name.clone(),
        offset: plan.places.get(n).copied(),
        size: member.size,
        starts_line: plan.starts.contains(&n),
        unit: used.units.get(n).copied().flatten(),
    };
    let members = order
        .iter()
        .filter_map(|&n| Some(placed(n, members.get(n)?)));
    Proposal {
        size,
        new_size: plan.size,
        count,
        alignment,
        members: members.collect(),
        type_name: type_name.map(str::to_owned),
    }
}

fn declaration(
    owner: Option<&str>,
    n: usize,
    member: &MemberLayout,
    plan: &Relayout,
    dialect: Dialect,
) -> String {
    let starts = plan.starts.iter().position(|&start| start == n);
    let written = starts.and_then(|start| {
        let gap = plan.gaps.get(start).copied().unwrap_or_default();
        dialect.member(owner, member, gap)
    });
    written.map_or_else(
        || {
            let alignment = starts.map(|_| dialect.line);
            let type_name = match member.type_name.as_deref().unwrap_or("?") {
                wrapped if starts.is_some() && dialect.form() == Form::Wrapped => {
                    format!("Line<{wrapped}>")
                }
                plain => plain.to_owned(),
            };
            shown(dialect.language, &type_name, &member.name, None, alignment)
        },
        |code| code.join("; "),
    )
}
