//! Which entries of a unit enclose which. The file says so only by its order, so a unit is read once and the
//! enclosing entries kept.

use super::{Die, View};
use crate::{kept::Sizeable, missing::Missing};

/// Enclosing scopes given for one entry.
const MOST_SCOPES: usize = 64;
const NONE: u32 = u32::MAX;

/// An entry that gives its name to what is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) offset: u32,
    pub(crate) tag: gimli::DwTag,
    /// Offset of the first entry that is not inside.
    end: u32,
    /// Index of the scope around this one.
    parent: u32,
}

/// The scopes of a unit, in the order of the file.
pub(crate) struct Scopes(Box<[Scope]>);

impl Scopes {
    /// The scopes around the entry at an offset, innermost first.
    pub(crate) fn around(&self, offset: u32) -> impl Iterator<Item = Scope> {
        let before = self.0.partition_point(|scope| scope.offset < offset);
        let mut index = before.checked_sub(1);
        std::iter::from_fn(move || {
            loop {
                let scope = *self.0.get(index?)?;
                index = (scope.parent != NONE).then_some(scope.parent as usize);
                if scope.end > offset {
                    return Some(scope);
                }
            }
        })
        .take(MOST_SCOPES)
    }

    pub(crate) fn read(view: &View<'_>, index: u32) -> Result<Scopes, Missing> {
        let unit = view.unit(index)?;
        let mut entries = unit.entries_raw(None)?;
        let mut scopes: Vec<Scope> = Vec::new();
        // Tree depth of each open scope, and its index.
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut steps = 0u64;
        while !entries.is_empty() {
            steps += 1;
            let depth = entries.next_depth();
            let offset = entries.next_offset().0 as u32;
            while let Some(&(scope, index)) = open.last()
                && scope >= depth
            {
                scopes[index as usize].end = offset;
                open.pop();
            }
            // What comes before the damage is known.
            let Ok(abbreviation) = entries.read_abbreviation() else {
                break;
            };
            let Some(abbreviation) = abbreviation else {
                continue;
            };
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
            if abbreviation.has_children() && names_its_content(abbreviation.tag()) {
                let parent = open.last().map_or(NONE, |&(_, index)| index);
                open.push((depth, scopes.len() as u32));
                scopes.push(Scope {
                    offset,
                    tag: abbreviation.tag(),
                    end: u32::MAX,
                    parent,
                });
            }
        }
        view.charge(steps / 4)?;
        Ok(Scopes(scopes.into()))
    }
}

impl Sizeable for Scopes {
    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl View<'_> {
    /// The scopes around an entry, innermost first.
    pub(crate) fn scopes(&self, die: Die) -> Vec<Scope> {
        let Some(unit) = self.info.units.get(die.unit) else {
            return Vec::new();
        };
        match self.kept(&unit.scopes, || Scopes::read(self, die.unit)) {
            Ok(scopes) => scopes.around(die.offset).collect(),
            Err(_) => Vec::new(),
        }
    }
}

fn names_its_content(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_subprogram
    )
}
