//! From where on the accesses of a session count.

use std::{collections::BTreeSet, str::FromStr};

use anyhow::{Result, bail};
use rustc_hash::FxHashMap;
use symbolizer::without_parameters;

use super::session_code::SessionCode;
use crate::{
    access::{Access, SpaceId, Tid},
    number::list,
    space::AddressSpaces,
};

/// Value of `--after` that is no function.
const SECOND_THREAD: &str = "second-thread";
/// Names offered where one is unknown.
const MOST_SIMILAR: usize = 5;

/// What must have happened before accesses count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// A function of this name ran, in any thread, inlined or not.
    Function(String),
    /// A second thread made an access.
    SecondThread,
}

impl FromStr for After {
    type Err = String;

    fn from_str(text: &str) -> Result<After, String> {
        match text.trim() {
            "" => Err("expected a function's name, or second-thread".to_owned()),
            SECOND_THREAD => Ok(After::SecondThread),
            name => Ok(After::Function(without_parameters(name).to_owned())),
        }
    }
}

impl After {
    /// As it was asked for.
    pub(super) fn name(&self) -> &str {
        match self {
            After::Function(name) => name,
            After::SecondThread => SECOND_THREAD,
        }
    }
}

/// Tells of each access whether it counts.
#[derive(Debug)]
pub(super) struct Counting<'a> {
    after: Option<&'a After>,
    begun: bool,
    first: Option<Tid>,
    /// Whether an instruction is of the function.
    known: FxHashMap<(SpaceId, u64), bool>,
}

impl<'a> Counting<'a> {
    /// From the beginning without anything to wait for.
    pub(super) fn new(after: Option<&'a After>) -> Counting<'a> {
        Counting {
            after,
            begun: after.is_none(),
            first: None,
            known: FxHashMap::default(),
        }
    }

    /// Whether what comes counts.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether the next access of the order is the first one that counts.
    pub(super) fn begins(
        &mut self,
        access: &Access,
        space: SpaceId,
        spaces: &AddressSpaces,
        code: &SessionCode,
    ) -> bool {
        if self.begun {
            return false;
        }
        self.begun = match self.after {
            None => true,
            Some(After::SecondThread) => *self.first.get_or_insert(access.tid) != access.tid,
            Some(After::Function(name)) => {
                let known = self.known.entry((space, access.ip));
                *known.or_insert_with(|| {
                    !access.kernel && is_of_function(name, space, access.ip, spaces, code)
                })
            }
        };
        self.begun
    }

    /// At the end of a session: an error where nothing of it counted.
    pub(super) fn check(&self, spaces: &AddressSpaces, code: &SessionCode) -> Result<()> {
        match self.after {
            Some(After::SecondThread) if !self.begun => bail!(
                "no second thread made an access, so with --after {SECOND_THREAD} nothing counts"
            ),
            Some(After::Function(name)) if !self.begun => self.refuse(name, spaces, code),
            _ => Ok(()),
        }
    }

    fn refuse(&self, name: &str, spaces: &AddressSpaces, code: &SessionCode) -> Result<()> {
        let used: BTreeSet<SpaceId> = self.known.keys().map(|(space, _)| *space).collect();
        let mut similar = BTreeSet::new();
        for space in used {
            let Some(pid) = spaces.pid(space) else {
                continue;
            };
            for mapping in spaces.code(space) {
                let Ok(module) = code.modules.open(pid, mapping) else {
                    continue;
                };
                for (distance, found) in module.elf.similar_functions(name, MOST_SIMILAR) {
                    if distance == 0 && is_called(&found, name) {
                        bail!(
                            "--after {name}: the function is in {} and never ran in this session, so nothing counts",
                            module.path
                        );
                    }
                    similar.insert((distance, found));
                }
            }
        }
        let mut names: Vec<String> = Vec::new();
        for (_, found) in similar {
            if names.len() < MOST_SIMILAR && !names.contains(&found) {
                names.push(found);
            }
        }
        if names.is_empty() {
            bail!(
                "--after {name}: no function of that name, nor one like it, is in the program and its libraries; \
                 `nm -C PROGRAM` lists them, unless it was stripped"
            );
        }
        bail!(
            "--after {name}: no function of that name is in the program and its libraries; there is {}",
            list(&names, MOST_SIMILAR)
        );
    }
}

/// Whether the instruction is of the function, or of a copy of it that was inlined.
fn is_of_function(
    name: &str,
    space: SpaceId,
    ip: u64,
    spaces: &AddressSpaces,
    code: &SessionCode,
) -> bool {
    let Some(found) = code.at(spaces, space, ip) else {
        return false;
    };
    let here = found.module.elf.frames(found.svma);
    let inlined = here
        .frames
        .iter()
        .filter_map(|frame| frame.function.as_deref());
    inlined
        .chain(here.symbol.as_deref().ok())
        .any(|function| is_called(function, name))
}

/// Whether a function's full name is the one that was asked for, which may leave out outer scopes.
fn is_called(function: &str, name: &str) -> bool {
    let function = without_parameters(function);
    // `push<int>` is `push` in the source; names of instances of templates begin with the type they return.
    let plain = function.split('<').next().unwrap_or(function);
    [function, plain].into_iter().any(|function| {
        let outer = function.strip_suffix(name);
        outer.is_some_and(|outer| outer.is_empty() || outer.ends_with([':', '.', ' ']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_leave_out_scopes_and_parameters_and_no_letters() {
        assert!(is_called("work", "work"));
        assert!(is_called("pool::Queue::work(int)", "work"));
        assert!(is_called("pool::Queue::work(int)", "Queue::work"));
        assert!(is_called("main.worker", "worker"));
        assert!(is_called("pool::push<int>(int)", "push"));
        assert!(is_called("void pool::Q::push<long>(long)", "pool::Q::push"));
        assert!(!is_called("pool<work>::push", "work"));
        assert!(!is_called("rework", "work"));
        assert!(!is_called("work::queue", "work"));
        assert!(!is_called("worker", "work"));
    }

    #[test]
    fn what_is_no_name_is_refused_and_the_parameters_of_one_are_left_out() {
        assert_eq!("second-thread".parse(), Ok(After::SecondThread));
        assert_eq!(
            "ns::f(int)".parse(),
            Ok(After::Function("ns::f".to_owned()))
        );
        assert!(" ".parse::<After>().is_err());
    }
}
