//! Names of variables to their addresses.

mod error;
mod path;
mod similar;

pub use similar::without_parameters;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

pub use error::{Candidate, VariableError};
pub(crate) use path::Step;

use self::path::{Query, components, fits, is_called, steps};
use crate::{
    Module, Object,
    demangle::try_demangle,
    dwarf::{DebugInfo, Die, Variable, View},
    missing::Missing,
    object::without_brackets,
};

/// Variables of one name that are told apart. A static in a header is in each file that includes it.
const MOST_CANDIDATES: usize = 64;
/// Variables of one plain name that are looked at: what a hostile file can cause by them.
const MOST_ALIKE: usize = 1 << 12;
/// Variables named by one look at the debug info; far below what one look may read.
const AT_ONCE: usize = 1 << 12;

/// A variable with a fixed address, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedVariable {
    /// As the source names it, with scopes: `ns::table.slots[1].served`.
    pub name: String,
    /// First byte, an svma.
    pub address: u64,
    /// Bytes; those touched by a bit-field.
    pub size: u64,
    /// Its type, if debug info has it.
    pub type_name: Option<String>,
    /// Where the variable is declared.
    pub file: Option<Arc<str>>,
    /// Line in `file`.
    pub line: Option<u32>,
}

/// A variable that has the name asked for.
#[derive(Clone, Default)]
struct Match {
    /// By its whole name, not only by the end of it.
    whole: bool,
    thread_local: bool,
    /// Where it is, unless it is in pieces.
    address: u64,
    /// What debug info says: once for each piece.
    variables: Vec<Variable>,
}

impl Module {
    /// The variable, or the part of one, that a text names: `counters`, `ns::counters.hits`, `table.slots[1].served`,
    /// `crate::module::NAME.0`, `file.c:counters`; or a name of the symbol table.
    ///
    /// Outer namespaces, modules and classes need not be said where the rest is of one variable only. Fields of
    /// base classes, anonymous members and of what a library type wraps (`std::atomic`, `UnsafeCell`) are found
    /// without saying these; parts are named as [`Module::field`] names them. Other symbols of the same address
    /// and size (`__environ`) are not kept, so that such a name may be unknown.
    pub fn variable(&self, text: &str) -> Result<NamedVariable, VariableError> {
        let query = Query::parse(text.trim())?;
        // A symbol with dots in its name (`calls.0`) is what its whole name says.
        let longer = query.cuts.iter().skip(1).rev();
        for (name, rest) in longer {
            let found = self.symbols_called(|raw| (raw == *name).then_some(true));
            if !found.is_empty() {
                return self.only(name, query.file, found, rest);
            }
        }
        let Some((name, rest)) = query.cuts.first() else {
            return Err(self.unknown(text));
        };
        let found = self.variables_called(name);
        self.only(name, query.file, found, rest)
    }

    fn unknown(&self, name: &str) -> VariableError {
        let described = self.debug_info().and_then(DebugInfo::variables).is_ok();
        VariableError::Unknown {
            name: name.to_owned(),
            reason: (!described && !self.symbols().complete).then_some(Missing::NoSymbols),
        }
    }

    /// The one variable among those of a name, and the part of it that `rest` says.
    fn only(
        &self,
        name: &str,
        file: Option<&str>,
        mut found: Vec<Match>,
        rest: &str,
    ) -> Result<NamedVariable, VariableError> {
        if found.iter().any(|one| one.whole) {
            found.retain(|one| one.whole);
        }
        found.truncate(MOST_CANDIDATES);
        let mut objects: Vec<(Match, Object)> = found
            .into_iter()
            .filter_map(|one| Some((one.clone(), self.object_of(&one)?)))
            .collect();
        if let Some(file) = file {
            objects.retain(|(_, object)| {
                let of_file = |path: &Arc<str>| {
                    path.strip_suffix(file)
                        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
                };
                object.file.as_ref().is_some_and(of_file)
            });
        }
        match &objects[..] {
            [] => Err(self.unknown(&match file {
                Some(file) => format!("{file}:{name}"),
                None => name.to_owned(),
            })),
            [(one, object)] => self.part(one, object, rest),
            several => Err(VariableError::Ambiguous {
                name: name.to_owned(),
                candidates: several
                    .iter()
                    .map(|(_, object)| Candidate {
                        name: object.name.clone(),
                        file: object.file.clone(),
                        line: object.line,
                    })
                    .collect(),
            }),
        }
    }

    /// All that is known of a variable that was found.
    fn object_of(&self, found: &Match) -> Option<Object> {
        let Some(variable) = found.variables.first() else {
            return if found.thread_local {
                self.thread_local_object(found.address).ok()
            } else {
                self.object(found.address).ok()
            };
        };
        let view = self.debug_info().ok()?.view();
        Some(self.describe_variable(&view, *variable, found.thread_local))
    }

    /// Follows the steps into a variable.
    fn part(
        &self,
        found: &Match,
        object: &Object,
        rest: &str,
    ) -> Result<NamedVariable, VariableError> {
        let steps = steps(rest)?;
        let name = &object.name;
        if found.thread_local {
            return Err(VariableError::ThreadLocal { name: name.clone() });
        }
        let mut part = NamedVariable {
            name: name.clone(),
            address: object.address,
            size: object.size.unwrap_or(0),
            type_name: object.type_name.clone(),
            file: object.file.clone(),
            line: object.line,
        };
        let mut offset = 0;
        if !steps.is_empty() {
            let untyped = |reason| VariableError::Untyped {
                name: name.clone(),
                reason,
            };
            let info = self.debug_info().map_err(untyped)?;
            let ty = object
                .ty
                .ok_or_else(|| untyped(object.missing.unwrap_or(Missing::NoType)))?;
            let view = info.view();
            let inner = view.descend(name, ty.0, object.size, &steps)?;
            offset = inner.offset;
            part.size = inner.size.unwrap_or(0);
            part.type_name = Some(view.part_type(&inner));
            part.name = inner.name;
        }
        if part.size == 0 {
            return Err(VariableError::Unsized { place: part.name });
        }
        let address = match &found.variables[..] {
            pieces @ [Variable { piece: Some(_), .. }, ..] => in_pieces(pieces, offset, part.size)
                .ok_or_else(|| VariableError::Split {
                    place: part.name.clone(),
                })?,
            _ => part.address.wrapping_add(offset),
        };
        Ok(NamedVariable { address, ..part })
    }

    /// The variables that a path of scopes and a name fits, by debug info and by symbols.
    fn variables_called(&self, name: &str) -> Vec<Match> {
        let wanted = components(name);
        let last = wanted.last().copied().unwrap_or(name);
        let mut at: BTreeMap<(bool, u64), Match> = BTreeMap::new();
        let mut split: HashMap<Die, Match> = HashMap::new();
        let mut alike = 0;
        self.each_described(|view, variable, thread_local| {
            let Some(plain) = plain_name(view, variable.die) else {
                return;
            };
            if !is_called(&plain, last) || alike == MOST_ALIKE {
                return;
            }
            alike += 1;
            let object = self.describe_variable(view, variable, thread_local);
            let scoped = view.qualified_name(variable.die);
            let names = [Some(object.name), scoped].into_iter().flatten();
            let Some(whole) = names.filter_map(|name| fits(&wanted, &name)).max() else {
                return;
            };
            let found = match variable.piece {
                Some(_) => split.entry(variable.die).or_default(),
                None => at.entry((thread_local, variable.address)).or_default(),
            };
            found.whole |= whole;
            found.thread_local = thread_local;
            found.address = variable.address;
            found.variables.push(variable);
        });
        let pieces: HashMap<u64, Die> = split
            .iter()
            .flat_map(|(die, found)| found.variables.iter().map(|piece| (piece.address, *die)))
            .collect();
        for symbol in self.symbols_called(|raw| symbol_fits(raw, name, &wanted, last)) {
            let piece = pieces.get(&symbol.address).filter(|_| !symbol.thread_local);
            let known = match piece {
                Some(die) => split.get_mut(die),
                None => at.get_mut(&(symbol.thread_local, symbol.address)),
            };
            match known {
                Some(known) => known.whole |= symbol.whole,
                None => {
                    at.insert((symbol.thread_local, symbol.address), symbol);
                }
            }
        }
        let mut split: Vec<Match> = split.into_values().collect();
        split.sort_by_key(|found| found.address);
        let mut all: Vec<Match> = at.into_values().chain(split).collect();
        for found in &mut all {
            // Several units may describe one variable; the one that knows its type comes first.
            found
                .variables
                .sort_by_cached_key(|variable| self.size_of(*variable).is_none());
        }
        all
    }

    fn size_of(&self, variable: Variable) -> Option<u64> {
        let view = self.debug_info().ok()?.view();
        self.describe_variable(&view, variable, false).size
    }

    /// The variables whose symbol has a name that `called` takes; it says whether as a whole.
    fn symbols_called(&self, called: impl Fn(&str) -> Option<bool>) -> Vec<Match> {
        let symbols = self.symbols();
        let tables = [(&symbols.objects, false), (&symbols.thread_locals, true)];
        let mut found = Vec::new();
        for (table, thread_local) in tables {
            for span in table.iter() {
                if let Some(whole) = called(&self.symbol_text(span.value)) {
                    found.push(Match {
                        whole,
                        thread_local,
                        address: span.start,
                        variables: Vec::new(),
                    });
                }
            }
        }
        found
    }

    /// Hands over each variable that debug info gives a place, and whether it is thread-local.
    fn each_described(&self, mut each: impl FnMut(&View<'_>, Variable, bool)) {
        let Ok(info) = self.debug_info() else { return };
        let Ok(variables) = info.variables() else {
            return;
        };
        for (list, thread_local) in [
            (&variables.globals, false),
            (&variables.thread_locals, true),
        ] {
            for some in list.chunks(AT_ONCE) {
                let view = info.view();
                for variable in some {
                    each(&view, *variable, thread_local);
                }
            }
        }
    }
}

/// How a symbol fits what was asked for: by its raw name, by its demangled path, or as a static of a function to which
/// the compiler gave a number (`calls.0`).
fn symbol_fits(raw: &str, name: &str, wanted: &[&str], last: &str) -> Option<bool> {
    if raw == name {
        return Some(true);
    }
    if !raw.contains(last.split('<').next().unwrap_or(last)) {
        return None;
    }
    if let Some(path) = try_demangle(raw) {
        return fits(wanted, &without_brackets(path));
    }
    let (base, number) = raw.rsplit_once('.')?;
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (numbered && base == name).then_some(false)
}

/// The name without scopes.
fn plain_name(view: &View<'_>, die: Die) -> Option<String> {
    let own = view.entry(die).ok()?.name;
    let name = own.or_else(|| view.chain(die).iter().find_map(|(_, entry)| entry.name))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The address of some bytes of a variable in pieces, if one piece holds them all.
fn in_pieces(pieces: &[Variable], offset: u64, size: u64) -> Option<u64> {
    pieces.iter().find_map(|variable| {
        let piece = variable.piece?;
        let inside = offset.checked_sub(piece.offset)?;
        let fits = inside.checked_add(size)? <= piece.size;
        fits.then(|| variable.address.wrapping_add(inside))
    })
}
