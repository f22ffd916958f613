//! Which loads fetch for ownership, found again in the code of a session.
//!
//! A load is its place in a file: build-id (or path, of a file without one) and the file's own address. In the session
//! that was decided from, it is also its address in its address space, which finds code that no file holds.

use rustc_hash::FxHashMap;

use crate::{
    access::SpaceId,
    analysis::Instruction,
    hint::{
        file::{HintFile, HintedCode, LoadClass},
        your_code::{OneOffLoads, YourCode},
    },
    report::simulation::HintCounts,
    space::AddressSpaces,
};

use super::session_code::{InFile, SessionCode};

/// A load to hint.
#[derive(Clone, Debug)]
struct Hint {
    class: LoadClass,
    /// In code that you build.
    yours: bool,
    /// As people know it.
    name: String,
    matched: bool,
}

/// Loads to hint.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadHints {
    hints: Vec<Hint>,
    your_code: YourCode,
    /// What was left as that, where it is known.
    pub one_off: Option<OneOffLoads>,
    by_code: FxHashMap<(String, u64), usize>,
    by_address: FxHashMap<(SpaceId, u64), usize>,
}

impl LoadHints {
    /// A choice that no session has been read for yet.
    pub(super) fn new(your_code: YourCode) -> LoadHints {
        LoadHints {
            your_code,
            ..LoadHints::default()
        }
    }

    /// Those of a file.
    pub(super) fn of_file(file: &HintFile, your_code: YourCode) -> LoadHints {
        let mut all = LoadHints::new(your_code);
        all.one_off = file.evidence.one_off;
        for hint in &file.hints {
            let code = &hint.load;
            let place = match (&code.file, code.line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => code.module.clone().unwrap_or_else(|| code.ip.clone()),
            };
            let yours = all.your_code.has_hint(hint);
            let number = all.add(hint.class, yours, format!("{} ({place})", hint.id));
            let file = code.build_id.as_ref().or(code.module.as_ref());
            let address = code.offset.as_deref().and_then(hexadecimal);
            if let (Some(file), Some(address)) = (file, address) {
                all.by_code.insert((file.clone(), address), number);
            }
        }
        all
    }

    /// Adds a load that a session shows.
    pub(super) fn found(&mut self, load: Instruction, spaces: &AddressSpaces, code: &SessionCode) {
        let found = code.at(spaces, load.space, load.ip);
        let class = (found.as_ref()).map_or(LoadClass::Unknown, InFile::load_class);
        let named = (found.as_ref()).map_or_else(HintedCode::default, InFile::source);
        let yours = self.your_code.has(&named);
        // The same code in several processes is one load.
        let key = found.map(|found| (found.file(), found.svma));
        let name = match &key {
            Some((file, address)) => format!("{file}+{address:#x}"),
            None => format!("{:#x}", load.ip),
        };
        let known = key.as_ref().and_then(|key| self.by_code.get(key)).copied();
        let number = known.unwrap_or_else(|| self.add(class, yours, name));
        self.by_address.insert((load.space, load.ip), number);
        if let Some(key) = key {
            self.by_code.insert(key, number);
        }
    }

    fn add(&mut self, class: LoadClass, yours: bool, name: String) -> usize {
        self.hints.push(Hint {
            class,
            yours,
            name,
            matched: false,
        });
        self.hints.len() - 1
    }

    /// As for another session than the one that was decided from, whose addresses mean nothing there.
    #[must_use]
    pub(super) fn elsewhere(&self) -> LoadHints {
        LoadHints {
            by_address: FxHashMap::default(),
            ..self.clone()
        }
    }

    /// The class of the load at a run-time address, if it is to be hinted, and whether it is in code that you build.
    pub(super) fn find(
        &mut self,
        spaces: &AddressSpaces,
        code: &SessionCode,
        space: SpaceId,
        ip: u64,
    ) -> Option<(LoadClass, bool)> {
        if self.hints.is_empty() {
            return None;
        }
        let mut here = LoadClass::Unknown;
        let number = if let Some(number) = self.by_address.get(&(space, ip)) {
            *number
        } else {
            let found = code.at(spaces, space, ip)?;
            let number = *self.by_code.get(&(found.file(), found.svma))?;
            if self.hints[number].class == LoadClass::Unknown {
                here = found.load_class();
            }
            number
        };
        let hint = &mut self.hints[number];
        hint.matched = true;
        if hint.class == LoadClass::Unknown {
            hint.class = here;
        }
        Some((hint.class, hint.yours))
    }

    /// Loads by what they load into: all, and those in code that you build.
    pub(super) fn counts(&self) -> [HintCounts; 2] {
        let of = |yours: bool, class| {
            let hints = self.hints.iter();
            hints
                .filter(|hint| hint.class == class && (hint.yours || !yours))
                .count() as u64
        };
        [false, true].map(|yours| HintCounts {
            integer: of(yours, LoadClass::Integer),
            floating_point: of(yours, LoadClass::FloatingPoint),
            unknown: of(yours, LoadClass::Unknown),
        })
    }

    /// Names of those that no load was found for.
    pub(super) fn unmatched(&self) -> Vec<String> {
        let unmatched = self.hints.iter().filter(|hint| !hint.matched);
        unmatched.map(|hint| hint.name.clone()).collect()
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
