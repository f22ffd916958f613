//! From the name of a variable to its address in a process: the way of [`Resolver`](super::Resolver), backwards.

use std::sync::Arc;

use symbolizer::VariableError;

use crate::{
    access::Pid,
    module::{LoadedModule, ModuleStore, Unavailable},
    space::AddressSpaces,
};

/// Names offered where one is unknown.
const MOST_SIMILAR: usize = 5;

/// A variable of a process, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Virtual address of its first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// As the source names it, with scopes: `ns::table.slots[1].served`.
    pub name: String,
    /// Type as the source says it, where known.
    pub type_name: Option<String>,
    /// File of the program or library that has it.
    pub module: String,
}

/// Why a name gives no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No mapping of a program or library is known.
    #[error("process {} has no program or library that is known: it ended, or it did not start yet", pid.0)]
    NoModules {
        /// The process.
        pid: Pid,
    },
    /// The name is of no variable with an address, in any of the files that could be read.
    #[error("no global or static variable is called `{name}` in {}{}{}", counted(*searched),
        offered(similar), left_out(unreadable))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Files that were searched.
        searched: usize,
        /// Names like it, nearest first.
        similar: Vec<String>,
        /// Files that could not be searched, or not well, and why.
        unreadable: Vec<(String, String)>,
    },
    /// The name is of a variable, but of none or several that can be watched.
    #[error("{error} (in {module})")]
    Refused {
        /// File of the program or library.
        module: String,
        /// What is wrong.
        error: VariableError,
    },
}

/// The variable (or part of one) that a text names in a process; for the text see [`symbolizer::Module::variable`].
///
/// The first file that has the name decides, in the order of addresses: of a process that was started as usual the
/// executable lies below its libraries, as it comes before them when the dynamic linker looks a name up.
pub fn find_variable(
    spaces: &AddressSpaces,
    modules: &ModuleStore,
    pid: Pid,
    text: &str,
) -> Result<Located, LookupError> {
    let mut searched: Vec<Arc<LoadedModule>> = Vec::new();
    let mut unreadable = Vec::new();
    let space = spaces.current(pid);
    for mapping in space.into_iter().flat_map(|space| spaces.code(space)) {
        let module = match modules.open(pid, mapping) {
            Ok(module) => module,
            Err(Unavailable::Anonymous) => continue,
            Err(reason) => {
                unreadable.push((mapping.name.clone(), reason.to_string()));
                continue;
            }
        };
        match module.elf.variable(text) {
            Ok(variable) => {
                let Some(addr) = module.address(mapping, variable.address) else {
                    let reason = "its mapping is none of its segments".to_owned();
                    unreadable.push((module.path.clone(), reason));
                    continue;
                };
                return Ok(Located {
                    addr,
                    len: variable.size,
                    name: variable.name,
                    type_name: variable.type_name,
                    module: module.path.clone(),
                });
            }
            Err(VariableError::Unknown { reason, .. }) => {
                if let Some(reason) = reason {
                    unreadable.push((module.path.clone(), reason.to_string()));
                }
                searched.push(module);
            }
            Err(error) => {
                return Err(LookupError::Refused {
                    module: module.path.clone(),
                    error,
                });
            }
        }
    }
    if searched.is_empty() && unreadable.is_empty() {
        return Err(LookupError::NoModules { pid });
    }
    let similar = searched
        .iter()
        .flat_map(|module| module.elf.similar_variables(text, MOST_SIMILAR));
    let mut similar: Vec<(usize, String)> = similar.collect();
    // Stable: at equal distance the executable's come first.
    similar.sort_by_key(|(distance, _)| *distance);
    let mut names: Vec<String> = Vec::new();
    for (_, name) in similar {
        if names.len() < MOST_SIMILAR && !names.contains(&name) {
            names.push(name);
        }
    }
    Err(LookupError::Unknown {
        name: text.to_owned(),
        searched: searched.len(),
        similar: names,
        unreadable,
    })
}

fn counted(files: usize) -> String {
    match files {
        0 => "any file that could be read".to_owned(),
        1 => "the one file that was searched".to_owned(),
        files => format!("the {files} files that were searched"),
    }
}

fn offered(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("; there is {}", names.join(", "))
}

fn left_out(files: &[(String, String)]) -> String {
    let texts = files
        .iter()
        .map(|(path, reason)| format!("; {path}: {reason}"));
    texts.collect()
}

#[cfg(test)]
mod tests;
