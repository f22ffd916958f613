//! The types and names that one function's pointers have, and what is at an offset of them.

use std::{collections::HashMap, sync::Arc};

use super::{
    parts::{Elements, Outer, Part, part_of},
    value::{Address, NameId, Root, Target, TypeId, Value, common},
};
use crate::{
    FieldPath, Language, Untraced,
    dwarf::{Die, View},
    missing::Missing,
    types::Shape,
};

/// Longest expression; behind that a pointer is named by its type alone.
const LONGEST_NAME: usize = 120;
/// Names and types of one function.
const MOST_KEPT: usize = 1 << 16;
/// Wrappers around a pointer, and members at the start of members, that are looked through.
const DEEPEST: usize = 16;

/// A type that is pointed to.
#[derive(Clone)]
pub(super) struct Type {
    pub(super) die: Die,
    pub(super) name: Arc<str>,
    /// Bytes; `None` if the type does not say.
    pub(super) size: Option<u64>,
    pub(super) kind: Kind,
    pub(super) language: Option<Language>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar,
    Aggregate,
    /// Declared, not defined.
    Undefined,
}

/// Where a name means the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// In one function, or in a part of it.
    #[default]
    Function,
    /// In all functions: it begins with a variable that has a fixed place.
    Program,
}

/// How the source calls something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'n> {
    pub(super) text: &'n str,
    pub(super) scope: Scope,
}

impl<'n> Name<'n> {
    pub(super) fn local(text: &'n str) -> Name<'n> {
        let scope = Scope::Function;
        Name { text, scope }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Types {
    pub(super) list: Vec<Type>,
    by_die: HashMap<Die, Option<TypeId>>,
    by_name: HashMap<(Arc<str>, Option<u64>), TypeId>,
    names: Vec<(Arc<str>, Scope)>,
    by_text: HashMap<(Arc<str>, Scope), NameId>,
    loads: HashMap<Address, Value>,
    held: HashMap<(TypeId, u64, TypeId), bool>,
    /// Types of which the function's pointers walk over elements.
    walked: std::collections::HashSet<TypeId>,
    /// The units that describe the function.
    units: Box<[u32]>,
}

impl Types {
    /// Of a function that these units describe.
    pub(super) fn new(units: Box<[u32]>) -> Types {
        Types {
            units,
            ..Types::default()
        }
    }

    pub(super) fn get(&self, id: TypeId) -> Option<&Type> {
        self.list.get(id.0 as usize)
    }

    pub(super) fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("?", |(name, _)| name)
    }

    pub(super) fn scope(&self, id: NameId) -> Scope {
        let name = self.names.get(id.0 as usize);
        name.map_or(Scope::Function, |(_, scope)| *scope)
    }

    fn intern(&mut self, name: Name<'_>) -> NameId {
        let key = (Arc::from(name.text), name.scope);
        if let Some(found) = self.by_text.get(&key) {
            return *found;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(key.clone());
        self.by_text.insert(key, id);
        id
    }

    /// A pointer of which only the type is known.
    pub(super) fn anonymous(&mut self, ty: TypeId) -> NameId {
        let name = self
            .get(ty)
            .map_or_else(String::new, |ty| ty.name.to_string());
        self.intern(Name::local(&format!("({name} *)")))
    }

    /// As far away as an integer says: that many bytes, and some multiple of others.
    pub(super) fn walk(&self, address: Address, (multiple, offset): (u64, i64)) -> Address {
        let mut moved = address.moved(offset);
        if multiple == 0 {
            return moved;
        }
        let size = match address.root {
            Root::Pointer(target) if !target.reference => {
                self.get(target.ty).and_then(|ty| ty.size).unwrap_or(0)
            }
            _ => 0,
        };
        if size > 0 && multiple.is_multiple_of(size) {
            moved.elements = true;
        } else {
            moved.stride = common(moved.stride, multiple);
        }
        moved
    }

    /// Notes that pointers go from element to element.
    pub(super) fn note_walk(&mut self, address: &Address) {
        if let Root::Pointer(target) = address.root
            && address.elements
        {
            self.walked.insert(target.ty);
        }
    }

    pub(super) fn is_walked(&self, ty: TypeId) -> bool {
        self.walked.contains(&ty)
    }

    /// A type by its entry, qualifiers taken off. Entries of several units that name one type are one type. Nothing for
    /// `void` and functions.
    pub(super) fn of(&mut self, view: &View<'_>, die: Die) -> Option<TypeId> {
        if let Some(found) = self.by_die.get(&die) {
            return *found;
        }
        if self.list.len() > MOST_KEPT {
            return None;
        }
        let found = self.read(view, die);
        self.by_die.insert(die, found);
        found
    }

    fn read(&mut self, view: &View<'_>, die: Die) -> Option<TypeId> {
        let plain = unqualified(view, die)?;
        let (size, kind) = match view.peel(plain) {
            Ok((peeled, entry)) => {
                if matches!(
                    entry.tag,
                    gimli::DW_TAG_subroutine_type | gimli::DW_TAG_unspecified_type
                ) {
                    return None;
                }
                let kind = match view.shape(peeled, &entry) {
                    Ok(Shape::Scalar) => Kind::Scalar,
                    _ => Kind::Aggregate,
                };
                (view.size(peeled).ok().flatten(), kind)
            }
            Err(Missing::NoType) => return None,
            Err(_) => (None, Kind::Undefined),
        };
        // A typedef and what it stands for are one type, whatever it is called here.
        let peeled = view.peel(plain).map_or(plain, |(peeled, _)| peeled);
        // One type under several names goes by its own, if it has one.
        let plain = match view.entry(peeled) {
            Ok(entry) if entry.name.is_some() && kind == Kind::Aggregate => peeled,
            _ => plain,
        };
        let canonical: Arc<str> = view.type_name(Some(peeled)).into();
        let is_named = view
            .entry(peeled)
            .is_ok_and(|entry| entry.name.is_some() || kind == Kind::Scalar);
        let key = (canonical, size);
        if is_named && let Some(found) = self.by_name.get(&key) {
            return Some(*found);
        }
        if peeled != plain
            && !is_named
            && let Some(Some(found)) = self.by_die.get(&peeled)
        {
            return Some(*found);
        }
        let id = TypeId(self.list.len() as u32);
        self.list.push(Type {
            die: plain,
            name: view.type_name(Some(plain)).into(),
            size,
            kind,
            language: view.language_of(die),
        });
        if is_named {
            self.by_name.insert(key, id);
        }
        self.by_die.insert(peeled, Some(id));
        Some(id)
    }

    /// A whole object that a name stands for.
    pub(super) fn object(&mut self, view: &View<'_>, ty: Die, name: Name<'_>) -> Option<Target> {
        Some(Target {
            ty: self.of(view, ty)?,
            name: self.intern(name),
            reference: true,
            aside: false,
        })
    }

    /// What a variable or member of a type holds, if it is as wide as an address.
    pub(super) fn value(&mut self, view: &View<'_>, ty: Die, name: Name<'_>) -> Value {
        self.value_at(view, ty, 0, name, 0)
    }

    /// As [`Types::value`], of the part of it at an offset.
    pub(super) fn value_at(
        &mut self,
        view: &View<'_>,
        ty: Die,
        offset: u64,
        name: Name<'_>,
        depth: usize,
    ) -> Value {
        let Ok((peeled, entry)) = view.peel(ty) else {
            return Value::Unknown(Untraced::Untyped);
        };
        match entry.tag {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type
                if offset == 0 =>
            {
                let target = entry.ty.and_then(|target| self.of(view, target));
                let Some(ty) = target else {
                    return Value::Unknown(Untraced::Untyped);
                };
                let name = if name.text.len() > LONGEST_NAME || self.names.len() > MOST_KEPT {
                    self.anonymous(ty)
                } else {
                    self.intern(name)
                };
                let target = Target {
                    ty,
                    name,
                    reference: entry.tag != gimli::DW_TAG_pointer_type,
                    aside: false,
                };
                Value::Address(Address::new(Root::Pointer(target), 0))
            }
            gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type => Value::INTEGER,
            gimli::DW_TAG_structure_type
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_array_type
                if depth < DEEPEST =>
            {
                if let Some(pointer) = view.owned_pointer(peeled, offset) {
                    return self.value_at(view, pointer, 0, name, depth + 1);
                }
                // What a wrapper holds, which has no name of its own.
                if let Ok(members) = view.members(peeled)
                    && let Ok(Some(only)) = view.wrapped(&entry, &members)
                    && only.offset() == offset
                {
                    return self.value_at(view, only.ty, 0, name, depth + 1);
                }
                match view.field(peeled, offset, 8) {
                    Ok(field) => self.leaf(
                        view,
                        &field,
                        offset,
                        Name {
                            text: &format!("{}{}", name.text, field.path),
                            ..name
                        },
                        depth,
                    ),
                    Err(_) => Value::Unknown(Untraced::Untyped),
                }
            }
            _ => Value::Unknown(Untraced::Untyped),
        }
    }

    /// What a member holds.
    fn leaf(
        &mut self,
        view: &View<'_>,
        field: &FieldPath,
        offset: u64,
        name: Name<'_>,
        depth: usize,
    ) -> Value {
        match field.ty {
            Some(ty) if field.member_offset == offset => {
                self.value_at(view, ty.0, 0, name, depth + 1)
            }
            // Behind the deleter of an owning pointer.
            Some(ty)
                if let Some(within) = offset.checked_sub(field.member_offset)
                    && let Ok((peeled, _)) = view.peel(ty.0)
                    && let Some(pointer) = view.owned_pointer(peeled, within) =>
            {
                self.value_at(view, pointer, 0, name, depth + 1)
            }
            // Parts of several members, or of a number.
            Some(_) => Value::INTEGER,
            None => Value::Unknown(Untraced::Conflict),
        }
    }

    /// What is loaded, in the width of an address, from behind a pointer.
    pub(super) fn load(&mut self, view: &View<'_>, address: Address) -> Value {
        if let Some(known) = self.loads.get(&address) {
            return *known;
        }
        let Root::Pointer(target) = address.root else {
            return Value::COMPUTED;
        };
        let value = match self.part(view, target, address, 8) {
            Ok(part) => {
                let text = &*self.expression(target, &part.field.path, part.outer);
                let scope = self.scope(target.name);
                self.leaf(view, &part.field, part.offset, Name { text, scope }, 0)
            }
            Err(reason) => Value::Unknown(reason),
        };
        if self.loads.len() < MOST_KEPT {
            self.loads.insert(address, value);
        }
        value
    }

    /// What of an object is accessed.
    pub(super) fn part(
        &self,
        view: &View<'_>,
        target: Target,
        address: Address,
        size: u32,
    ) -> Result<Part, Untraced> {
        let found = self.get(target.ty).ok_or(Untraced::Untyped)?;
        let walked = self.is_walked(target.ty);
        let elements = Elements {
            walks: !target.reference && (walked || !target.aside),
            walked,
            units: &self.units,
        };
        part_of(view, found, address, size, elements)
    }

    /// As the source writes the access.
    pub(super) fn expression(&self, target: Target, path: &str, outer: Outer) -> String {
        let name = self.name(target.name);
        if target.reference {
            return format!("{name}{path}");
        }
        let plain = if name.starts_with('*') {
            format!("({name})")
        } else {
            name.to_owned()
        };
        let is_rust = self
            .get(target.ty)
            .is_some_and(|ty| ty.language == Some(Language::Rust));
        match (outer, path.as_bytes().first()) {
            (Outer::Unknown, _) => format!("{plain}[]{path}"),
            (Outer::At(index), _) => format!("{plain}[{index}]{path}"),
            (Outer::First, Some(b'.' | b'[')) if is_rust => format!("{plain}{path}"),
            (Outer::First, Some(b'.')) => format!("{plain}->{}", &path[1..]),
            (Outer::First, Some(b'[')) => format!("(*{plain}){path}"),
            (Outer::First, Some(_)) => format!("{plain}->{path}"),
            (Outer::First, None) => format!("*{plain}"),
        }
    }

    /// Whether an object of type `outer` has one of type `inner` at an offset.
    pub(super) fn holds(
        &mut self,
        view: &View<'_>,
        outer: TypeId,
        offset: i64,
        inner: TypeId,
    ) -> bool {
        let Ok(offset) = u64::try_from(offset) else {
            return false;
        };
        if outer == inner && offset == 0 {
            return true;
        }
        if let Some(known) = self.held.get(&(outer, offset, inner)) {
            return *known;
        }
        let die = self.get(outer).map(|ty| ty.die);
        let holds = die.is_some_and(|die| self.holds_at(view, die, offset, inner, 0));
        if self.held.len() < MOST_KEPT {
            self.held.insert((outer, offset, inner), holds);
        }
        holds
    }

    fn holds_at(
        &mut self,
        view: &View<'_>,
        die: Die,
        offset: u64,
        inner: TypeId,
        depth: usize,
    ) -> bool {
        if depth > DEEPEST {
            return false;
        }
        if offset == 0 && self.of(view, die) == Some(inner) {
            return true;
        }
        let Ok((peeled, entry)) = view.peel(die) else {
            return false;
        };
        match view.shape(peeled, &entry) {
            Ok(Shape::Array(array)) if array.stride > 0 => {
                self.holds_at(view, array.element, offset % array.stride, inner, depth + 1)
            }
            Ok(Shape::Structure | Shape::Union) => {
                let Ok(members) = view.members(peeled) else {
                    return false;
                };
                let fields = members
                    .fields
                    .iter()
                    .chain(members.variants.iter().flatten());
                let around = fields
                    .filter(|member| member.offset() <= offset && offset < member.end())
                    .take(DEEPEST);
                let around: Vec<_> = around.map(|member| (member.ty, member.offset())).collect();
                around
                    .into_iter()
                    .any(|(ty, start)| self.holds_at(view, ty, offset - start, inner, depth + 1))
            }
            _ => false,
        }
    }
}

/// Takes off qualifiers, which are no part of the type's name.
pub(super) fn unqualified(view: &View<'_>, die: Die) -> Option<Die> {
    let mut at = die;
    for _ in 0..DEEPEST {
        let entry = view.entry(at).ok()?;
        match entry.tag {
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type => at = entry.ty?,
            _ => return Some(at),
        }
    }
    None
}
