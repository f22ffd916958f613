//! The layout that the advice asks for, as data: the same plans that the sentences are made from.

use super::{
    Scene, Sharing,
    declaration::Dialect,
    elements::Change,
    layout::{dialect, has_several_units},
    members::{Plan, units_of},
    place::pieces_of,
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
    /// Type as the source says it.
    pub type_name: Option<String>,
    /// First byte; `None` in Rust, where the compiler decides.
    pub offset: Option<u64>,
    /// Bytes.
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
        let units = units_of(&layout.members, &pieces);
        let plan = Plan::new(&layout.members, &units, layout.size, dialect)?;
        let type_name = object.type_name.clone();
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
    let type_name = element.type_name.clone();
    let same = |new_size| Proposal {
        type_name: type_name.clone(),
        size: element.stride,
        new_size,
        count: element.count,
        alignment: dialect.line,
        members: Vec::new(),
    };
    Some(
        match Change::of(object, layout, element, &pieces, dialect)? {
            Change::Members(units, plan) => {
                let name = type_name.clone();
                changed(
                    name,
                    element.stride,
                    element.count,
                    layout,
                    &units,
                    &plan,
                    dialect,
                )
            }
            Change::Align(_) => same(element.stride),
            Change::Pad(stride) => same(stride),
        },
    )
}

fn changed(
    type_name: Option<String>,
    size: u64,
    count: u64,
    layout: &ObjectLayout,
    units: &[Option<usize>],
    plan: &Plan,
    dialect: Dialect,
) -> Proposal {
    let members = &layout.members;
    let kept: Vec<usize> = (0..members.len()).collect();
    let order = if plan.order.is_empty() {
        &kept
    } else {
        &plan.order
    };
    let placed = |n: usize, member: &MemberLayout| Placed {
        name: member.name.clone(),
        type_name: member.type_name.clone(),
        offset: plan.places.get(n).copied(),
        size: member.size,
        starts_line: plan.aligned.contains(&n),
        unit: units.get(n).copied().flatten(),
    };
    Proposal {
        type_name,
        size,
        new_size: plan.size,
        count,
        alignment: dialect.line,
        members: order
            .iter()
            .filter_map(|&n| Some(placed(n, members.get(n)?)))
            .collect(),
    }
}
