//! What could not be named, counted by module and reason, and what the user can do about it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use symbolizer::Missing;

use crate::module::ModuleStore;

/// Bytes that data is counted in.
const LINE: u64 = 64;

/// Something that has no name, or not a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unnamed {
    /// The instruction at an address.
    Code(u64),
    /// Data at an address, whose line is counted.
    Data(u64),
}

/// Addresses, each counted once however often it is asked for.
#[derive(Debug, Default)]
struct Addresses {
    code: BTreeSet<u64>,
    data: BTreeSet<u64>,
}

/// All that was missed so far, by module and reason.
#[derive(Debug, Default)]
pub(super) struct Missed(RefCell<BTreeMap<(String, String), Addresses>>);

impl Missed {
    pub(super) fn count(&self, module: &str, reason: &impl ToString, what: Unnamed) {
        let mut missed = self.0.borrow_mut();
        let addresses = missed
            .entry((module.to_owned(), reason.to_string()))
            .or_default();
        match what {
            Unnamed::Code(addr) => addresses.code.insert(addr),
            Unnamed::Data(addr) => addresses.data.insert(addr - addr % LINE),
        };
    }

    /// One sentence for each module and reason, and one for all for which there was no time. Where a package is known to hold the
    /// debug info it is named.
    pub(super) fn sentences(&self, modules: &ModuleStore) -> Vec<String> {
        let helped = [
            Missing::NoDebugInfo,
            Missing::NoSymbols,
            Missing::BuildIdMismatch,
            Missing::ChecksumMismatch,
        ]
        .map(|reason| reason.to_string());
        let missed = self.0.borrow();
        let files = missed.keys().filter(|(_, reason)| helped.contains(reason));
        let packages = modules.debug_packages(files.map(|(module, _)| module.as_str()));
        let sentence = |((module, reason), addresses): (&(String, String), &Addresses)| {
            let package = packages
                .get(module.as_str())
                .filter(|_| helped.contains(reason));
            let reason = match package {
                // What is wrong stays; the general advice behind it gives way to the particular.
                Some(package) => {
                    let wrong = reason.split(':').next().unwrap_or(reason);
                    format!("{wrong}: {package}")
                }
                None => reason.clone(),
            };
            let addresses = counted(std::iter::once(addresses));
            format!("{addresses} in {module}: {reason}")
        };
        let no_time = Missing::NoTime.to_string();
        let (late, known) =
            (missed.iter()).partition::<Vec<_>, _>(|((_, reason), _)| *reason == no_time);
        let late = (!late.is_empty()).then(|| {
            let files = late.len();
            let in_files = match files {
                1 => "1 file".to_owned(),
                _ => format!("{files} files"),
            };
            let addresses = late.iter().map(|(_, addresses)| *addresses);
            format!("{} in {in_files}: {no_time}", counted(addresses))
        });
        known.into_iter().map(sentence).chain(late).collect()
    }
}

fn counted<'a>(addresses: impl Iterator<Item = &'a Addresses> + Clone) -> String {
    let some = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let code = addresses.clone().map(|addresses| addresses.code.len());
    let code = some(code.sum(), "instruction", "instructions");
    let data = addresses.map(|addresses| addresses.data.len());
    let data = some(data.sum(), "line of data", "lines of data");
    let both: Vec<String> = code.into_iter().chain(data).collect();
    both.join(" and ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn addresses_are_counted_once_and_code_apart_from_data() {
        let missed = Missed::default();
        let modules = ModuleStore::new("/nonexistent".into(), true);
        for byte in 0..64 {
            missed.count(
                "/opt/a.so",
                &Missing::NoDebugInfo,
                Unnamed::Data(0x4000 + byte),
            );
        }
        missed.count("/opt/a.so", &Missing::NoDebugInfo, Unnamed::Data(0x4040));
        missed.count("/opt/a.so", &Missing::NoDebugInfo, Unnamed::Code(0x1000));
        missed.count("/opt/a.so", &Missing::NoDebugInfo, Unnamed::Code(0x1000));
        missed.count("/opt/b.so", &"not there", Unnamed::Code(0x1000));
        missed.count("/opt/b.so", &"not there", Unnamed::Code(0x1008));
        assert_eq!(
            missed.sentences(&modules),
            [
                format!(
                    "1 instruction and 2 lines of data in /opt/a.so: {}",
                    Missing::NoDebugInfo
                ),
                "2 instructions in /opt/b.so: not there".to_owned(),
            ]
        );
    }

    #[test]
    fn what_there_was_no_time_for_is_one_sentence_whatever_the_file() {
        let missed = Missed::default();
        let modules = ModuleStore::new("/nonexistent".into(), true);
        missed.count("/opt/a.so", &Missing::NoTime, Unnamed::Code(0x1000));
        missed.count("/opt/a.so", &Missing::NoDebugInfo, Unnamed::Code(0x1000));
        missed.count("/opt/b.so", &Missing::NoTime, Unnamed::Code(0x1000));
        missed.count("/opt/b.so", &Missing::NoTime, Unnamed::Data(0x4000));
        assert_eq!(
            missed.sentences(&modules),
            [
                format!("1 instruction in /opt/a.so: {}", Missing::NoDebugInfo),
                format!(
                    "2 instructions and 1 line of data in 2 files: {}",
                    Missing::NoTime
                ),
            ]
        );
    }

    #[test]
    fn the_package_of_a_file_takes_the_place_of_general_advice_where_it_would_help() {
        let root = tempfile::tempdir().unwrap();
        let info = root.path().join("var/lib/dpkg/info");
        fs::create_dir_all(&info).unwrap();
        fs::write(info.join("libfoo1:amd64.list"), "/usr/lib/libfoo.so\n").unwrap();
        let modules = ModuleStore::new(root.path().to_owned(), true);
        let missed = Missed::default();
        missed.count("/lib/libfoo.so", &Missing::NoDebugInfo, Unnamed::Code(1));
        missed.count("/lib/libfoo.so", &Missing::TooDeep, Unnamed::Data(1));
        missed.count("/lib/libbar.so", &Missing::NoSymbols, Unnamed::Code(1));
        assert_eq!(
            missed.sentences(&modules),
            [
                format!("1 instruction in /lib/libbar.so: {}", Missing::NoSymbols),
                "1 instruction in /lib/libfoo.so: no debug info: install libfoo1-dbgsym".to_owned(),
                format!("1 line of data in /lib/libfoo.so: {}", Missing::TooDeep),
            ]
        );
    }
}
