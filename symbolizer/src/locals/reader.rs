//! The pass over the entries of one function that finds its variables.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use gimli::{AttributeValue, Expression};

use super::{
    Base, Home, Local, Locals, PieceHome, Place,
    expression::{self, Found},
};
use crate::{
    dwarf::{CodeRange, Die, RawUnit, Value, View},
    missing::Missing,
};

/// Scopes nested deeper than this are left out. Optimisers stop far earlier.
const DEEPEST: usize = 256;
/// Variables of one function that are kept. Large generated functions have some thousand.
const MOST_VARIABLES: usize = 1 << 15;
/// Homes of one function that are kept.
const MOST_HOMES: usize = 1 << 18;
/// Longer names are no names.
const LONGEST_NAME: usize = 1024;

/// Reads the variables of a function. What comes before damage, or before the function gets too large, is kept.
pub(super) fn read(view: &View<'_>, function: Die) -> Result<Locals, Missing> {
    let unit = view.unit(function.unit)?;
    let mut reader = Reader {
        view,
        unit: &unit,
        index: function.unit,
        frame_base: None,
        variables: Vec::new(),
        homes: Vec::new(),
        pieces: Vec::new(),
        calls: Vec::new(),
    };
    // Damage and exhaustion end the pass, not the answer.
    let _ = reader.pass(function);
    reader.homes.sort_by_key(|home| (home.start, home.variable));
    reader
        .pieces
        .sort_by_key(|piece| (piece.start, piece.variable, piece.offset));
    let dropped = reader.dropped();
    Ok(Locals {
        variables: reader.variables.into(),
        homes: reader.homes.into(),
        pieces: reader.pieces.into(),
        dropped: dropped.into_iter().collect(),
    })
}

/// How a location list states its default entry.
const EVERYWHERE: (u64, u64) = (0, u64::MAX);

type Ranges = Arc<[(u64, u64)]>;

/// A scope that is open.
struct Scope {
    /// Tree depth.
    depth: isize,
    ranges: Ranges,
    /// The inlined call that it is in, or is: an index into [`Reader::calls`].
    call: Option<usize>,
}

/// A call inlined into the function.
struct InlinedCall {
    /// The function that was called.
    origin: Die,
    /// Its variables that the call has, by their entries in `origin`.
    has: HashSet<Die>,
}

/// The state of the pass.
struct Reader<'v, 'a> {
    view: &'v View<'a>,
    unit: &'v RawUnit<'a>,
    index: u32,
    frame_base: Option<(Base, i64)>,
    variables: Vec<Local>,
    homes: Vec<Home>,
    pieces: Vec<PieceHome>,
    calls: Vec<InlinedCall>,
}

impl<'a> Reader<'_, 'a> {
    fn pass(&mut self, function: Die) -> Result<(), Missing> {
        let unit = self.unit;
        let mut entries = unit.entries_raw(Some(function.unit_offset()))?;
        let base = entries.next_depth();
        // Innermost last.
        let mut scopes: Vec<Scope> = Vec::new();
        // Tree depth of an entry whose content is no part of the function.
        let mut skipped: Option<isize> = None;
        while !entries.is_empty() && (scopes.is_empty() || entries.next_depth() > base) {
            self.view.step()?;
            let depth = entries.next_depth();
            let offset = entries.next_offset().0 as u32;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                continue;
            };
            while scopes.len() > 1 && scopes.last().is_some_and(|scope| scope.depth >= depth) {
                scopes.pop();
            }
            if skipped.is_some_and(|entry| entry >= depth) {
                skipped = None;
            }
            let (tag, attributes) = (abbreviation.tag(), abbreviation.attributes());
            let root = scopes.is_empty();
            if skipped.is_some() {
                entries.skip_attributes(attributes)?;
            } else if root || is_scope(tag) {
                let mut range = CodeRange::default();
                let mut origin = None;
                for &specification in attributes {
                    let attribute = entries.read_attribute(specification)?;
                    if root
                        && attribute.name() == gimli::DW_AT_frame_base
                        && let Some(expression) = attribute.exprloc_value()
                    {
                        self.frame_base = expression::frame_base(unit, expression);
                    }
                    if attribute.name() == gimli::DW_AT_abstract_origin {
                        origin = self.view.target(self.index, attribute.value());
                    }
                    range.observe(attribute.name(), attribute.value());
                }
                let around = scopes.last().map(|scope| &scope.ranges);
                let ranges = self.ranges(&range, around)?;
                let mut call = scopes.last().and_then(|scope| scope.call);
                if tag == gimli::DW_TAG_inlined_subroutine
                    && let Some(origin) = origin
                    && self.calls.len() < MOST_VARIABLES
                {
                    call = Some(self.calls.len());
                    self.calls.push(InlinedCall {
                        origin,
                        has: HashSet::new(),
                    });
                }
                if !abbreviation.has_children() {
                    if root {
                        return Ok(());
                    }
                } else if scopes.len() < DEEPEST {
                    scopes.push(Scope {
                        depth,
                        ranges,
                        call,
                    });
                } else {
                    skipped = Some(depth);
                }
            } else if is_variable(tag) {
                let mut variable = Variable::default();
                for &specification in attributes {
                    let attribute = entries.read_attribute(specification)?;
                    variable.observe(attribute.name(), attribute.value());
                }
                let own = scopes.len() == 1 && tag == gimli::DW_TAG_formal_parameter;
                if let Some(scope) = scopes.last() {
                    let ranges = Arc::clone(&scope.ranges);
                    let call = scope.call.and_then(|call| self.calls.get_mut(call));
                    let origin = variable
                        .origin
                        .and_then(|at| self.view.target(self.index, at));
                    if let (Some(call), Some(origin)) = (call, origin) {
                        call.has.insert(origin);
                    }
                    let die = Die {
                        unit: self.index,
                        offset,
                    };
                    self.add(die, tag, &variable, &ranges, own)?;
                }
            } else {
                if abbreviation.has_children() && !is_transparent(tag) {
                    skipped = Some(depth);
                }
                entries.skip_attributes(attributes)?;
            }
        }
        Ok(())
    }

    /// The types of those pointers of inlined calls that the calls do not have: clang leaves out what it has computed
    /// away. Where they would be is not known either: an optimiser gives their accesses to lines around the call.
    fn dropped(&self) -> BTreeSet<Die> {
        let mut all: HashMap<Die, Vec<(Die, Die)>> = HashMap::new();
        let mut found = BTreeSet::new();
        for call in &self.calls {
            // Damage and exhaustion end the pass, not the answer.
            let pointers = all
                .entry(call.origin)
                .or_insert_with(|| self.pointers_of(call.origin).unwrap_or_default());
            let dropped = pointers.iter().filter(|(die, _)| !call.has.contains(die));
            found.extend(dropped.map(|(_, ty)| *ty));
        }
        found
    }

    /// The variables of a function that are pointers, with their types; those of calls inlined into it are left out.
    fn pointers_of(&self, function: Die) -> Result<Vec<(Die, Die)>, Missing> {
        let view = self.view;
        let mut found = Vec::new();
        let mut open = vec![(function, 0)];
        while let Some((scope, depth)) = open.pop() {
            view.children(scope, |die, entry| {
                if entry.tag == gimli::DW_TAG_lexical_block && depth < DEEPEST {
                    open.push((die, depth + 1));
                } else if is_variable(entry.tag)
                    && !entry.is_declaration
                    && found.len() < MOST_VARIABLES
                    && let Some(ty) = entry.ty
                    && view
                        .peel(ty)
                        .is_ok_and(|(_, entry)| entry.tag == gimli::DW_TAG_pointer_type)
                {
                    found.push((die, ty));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The addresses of a scope. One that states none (GCC's blocks without code of their own) has those around it.
    fn ranges(&self, range: &CodeRange<'a>, around: Option<&Ranges>) -> Result<Ranges, Missing> {
        let mut ranges = Vec::new();
        let stated = range.for_each(self.view, self.unit, |start, end| ranges.push((start, end)));
        match (stated, around) {
            (Ok(false), Some(around)) => Ok(Arc::clone(around)),
            (Ok(_), _) => Ok(ranges.into()),
            // A damaged range list leaves nothing to say of this scope; the next one may be sound.
            (Err(_), _) => {
                self.view.info.budget.charge(1)?;
                Ok(Arc::default())
            }
        }
    }

    /// Keeps a variable and its homes.
    fn add(
        &mut self,
        die: Die,
        tag: gimli::DwTag,
        variable: &Variable<'a>,
        scope: &Ranges,
        own: bool,
    ) -> Result<(), Missing> {
        if variable.is_declaration {
            return Ok(());
        }
        if self.variables.len() >= MOST_VARIABLES {
            return Err(Missing::TooDeep);
        }
        let (view, unit, index) = (self.view, self.unit, self.index);
        let mut name = variable.name.and_then(|value| view.text(unit, value));
        let target = |value: Option<Value<'a>>| value.and_then(|value| view.target(index, value));
        let mut ty = target(variable.ty);
        if (name.is_none() || ty.is_none())
            && let Some(origin) = target(variable.origin)
        {
            for (_, entry) in view.chain(origin) {
                name = name.or(entry.name);
                ty = ty.or(entry.ty);
            }
        }
        let number = self.variables.len() as u32;
        self.variables.push(Local {
            die,
            name: name
                .filter(|name| name.len() <= LONGEST_NAME)
                .map(|name| Arc::from(String::from_utf8_lossy(name))),
            ty,
            parameter: tag == gimli::DW_TAG_formal_parameter,
            own,
        });
        match (variable.location, variable.constant) {
            (Some(location), _) => self.located(number, location, scope),
            (None, Some(value)) => self.everywhere(number, constant(value), scope),
            (None, None) => Ok(()),
        }
    }

    /// The homes that a `DW_AT_location` states: by one expression, or by a list of them with addresses.
    fn located(
        &mut self,
        variable: u32,
        location: Value<'a>,
        scope: &Ranges,
    ) -> Result<(), Missing> {
        let expression = match location {
            AttributeValue::Exprloc(expression) => Some(expression),
            AttributeValue::Block(bytes) => Some(Expression(bytes)),
            _ => None,
        };
        if let Some(expression) = expression {
            let found = expression::find(self.unit, expression, self.frame_base);
            for &(start, end) in &**scope {
                self.view.step()?;
                self.found(variable, &found, start, end)?;
            }
            return Ok(());
        }
        let Ok(Some(mut list)) = self.unit.raw.attr_locations(self.unit, location) else {
            return Ok(());
        };
        // A damaged list ends where the damage is; the next variable may be sound.
        while let Ok(Some(entry)) = list.next() {
            self.view.step()?;
            let found = expression::find(self.unit, entry.data, self.frame_base);
            let (start, end) = (entry.range.begin, entry.range.end);
            if (start, end) == EVERYWHERE {
                for &(start, end) in &**scope {
                    self.view.step()?;
                    self.found(variable, &found, start, end)?;
                }
            } else if start < end && self.view.info.is_code(start) {
                self.found(variable, &found, start, end)?;
            }
        }
        Ok(())
    }

    /// What an expression says, for some addresses.
    fn found(&mut self, variable: u32, found: &Found, start: u64, end: u64) -> Result<(), Missing> {
        let place = match found {
            Found::Nowhere => return Ok(()),
            Found::Whole(place) => *place,
            Found::Pieces(pieces) => {
                for &(offset, size, place) in pieces {
                    if self.pieces.len() >= MOST_HOMES {
                        return Err(Missing::TooDeep);
                    }
                    self.pieces.push(PieceHome {
                        start,
                        end,
                        variable,
                        offset,
                        size,
                        place,
                    });
                }
                Place::Complex
            }
        };
        self.keep(Home {
            start,
            end,
            variable,
            place,
        })
    }

    /// A place for all addresses of the scope.
    fn everywhere(&mut self, variable: u32, place: Place, scope: &Ranges) -> Result<(), Missing> {
        for &(start, end) in &**scope {
            self.view.step()?;
            self.keep(Home {
                start,
                end,
                variable,
                place,
            })?;
        }
        Ok(())
    }

    fn keep(&mut self, home: Home) -> Result<(), Missing> {
        if self.homes.len() >= MOST_HOMES {
            return Err(Missing::TooDeep);
        }
        self.homes.push(home);
        Ok(())
    }
}

/// The attributes of one variable.
#[derive(Default)]
struct Variable<'a> {
    name: Option<Value<'a>>,
    ty: Option<Value<'a>>,
    /// `DW_AT_abstract_origin` or `DW_AT_specification`.
    origin: Option<Value<'a>>,
    location: Option<Value<'a>>,
    /// `DW_AT_const_value`.
    constant: Option<Value<'a>>,
    is_declaration: bool,
}

impl<'a> Variable<'a> {
    /// Takes the attribute if it is one of ours.
    fn observe(&mut self, name: gimli::DwAt, value: Value<'a>) {
        match name {
            gimli::DW_AT_name => self.name = Some(value),
            gimli::DW_AT_type => self.ty = Some(value),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => self.origin = Some(value),
            gimli::DW_AT_location => self.location = Some(value),
            gimli::DW_AT_const_value => self.constant = Some(value),
            gimli::DW_AT_declaration => self.is_declaration = value == AttributeValue::Flag(true),
            _ => {}
        }
    }
}

/// What a `DW_AT_const_value` says.
fn constant(value: Value<'_>) -> Place {
    let number = match value {
        AttributeValue::Block(bytes) => expression::number(&bytes),
        // Signed first: a `data1` of 0xff is -1 only if its type says so, but an `sdata` of -1 is.
        AttributeValue::Sdata(value) => Some(value as u64),
        other => other.udata_value(),
    };
    number.map_or(Place::Complex, Place::Constant)
}

/// Entries with addresses, whose variables are the function's.
fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_lexical_block
            | gimli::DW_TAG_inlined_subroutine
            | gimli::DW_TAG_try_block
            | gimli::DW_TAG_catch_block
            | gimli::DW_TAG_with_stmt
    )
}

/// Entries that only group variables of the scope they are in.
fn is_transparent(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_GNU_formal_parameter_pack | gimli::DW_TAG_common_block
    )
}

fn is_variable(tag: gimli::DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter)
}
