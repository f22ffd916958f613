//! Why a text names no variable, in words that lead to one that does.

use std::{fmt, sync::Arc};

use crate::missing::Missing;

/// One of several variables of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// With its scopes.
    pub name: String,
    /// Where it is declared.
    pub file: Option<Arc<str>>,
    /// Line in `file`.
    pub line: Option<u32>,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, " ({file}:{line})"),
            (Some(file), None) => write!(f, " ({file})"),
            _ => Ok(()),
        }
    }
}

/// Why a text names no variable, or no part of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableError {
    /// It cannot be a name.
    #[error("`{text}` names no variable: {problem}")]
    Syntax {
        /// The text, or the part of it that is wrong.
        text: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// No variable with a fixed address has the name. See [`Module::similar_variables`](crate::Module::similar_variables).
    #[error("no global or static variable is called `{name}`{}", because(*.reason))]
    Unknown {
        /// The name asked for.
        name: String,
        /// Why the module may have one all the same.
        reason: Option<Missing>,
    },
    /// Several variables have the name.
    #[error(
        "`{name}` is the name of several variables: {}; add the scope or the file (`{}:{name}`)",
        listed(candidates),
        file_of(candidates)
    )]
    Ambiguous {
        /// The name asked for.
        name: String,
        /// The variables.
        candidates: Vec<Candidate>,
    },
    /// Each thread has one of its own, at an address of its own.
    #[error(
        "`{name}` is thread-local: each thread has its own, so that no address is the variable's"
    )]
    ThreadLocal {
        /// The variable.
        name: String,
    },
    /// The parts of the variable are not known.
    #[error(
        "the fields of `{name}` are not known ({reason}); without them only the whole of it has a name: `{name}`"
    )]
    Untyped {
        /// The variable.
        name: String,
        /// Why there is no type.
        reason: Missing,
    },
    /// The type has no such field.
    #[error(
        "`{place}` ({type_name}) has no field `{field}`{}",
        instead(fields, type_name)
    )]
    NoField {
        /// How far the text could be followed.
        place: String,
        /// Type of that.
        type_name: String,
        /// The field asked for.
        field: String,
        /// Those there are; the first of them where they are many.
        fields: Vec<String>,
    },
    /// An index into what has no elements.
    #[error("`{place}` ({type_name}) is no array{}", instead(fields, type_name))]
    NotAnArray {
        /// How far the text could be followed.
        place: String,
        /// Type of that.
        type_name: String,
        /// Fields it has instead.
        fields: Vec<String>,
    },
    /// An index beyond the end.
    #[error("`{place}` has {count} elements, so there is no [{index}]")]
    OutOfRange {
        /// The array.
        place: String,
        /// The index asked for.
        index: u64,
        /// Elements of the array (of its outermost dimension not indexed yet).
        count: u64,
    },
    /// Its length is not known.
    #[error("the size of `{place}` is not known: name an element or a field of it")]
    Unsized {
        /// The part asked for.
        place: String,
    },
    /// The optimiser took the variable apart.
    #[error(
        "the compiler split `{place}` into parts that lie apart: name a field or an element of it"
    )]
    Split {
        /// The part asked for.
        place: String,
    },
    /// The type cannot be followed so far.
    #[error("`{place}` cannot be followed: {reason}")]
    Followed {
        /// How far the text could be followed.
        place: String,
        /// Why not further.
        reason: Missing,
    },
}

fn because(reason: Option<Missing>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

fn listed(candidates: &[Candidate]) -> String {
    let texts: Vec<String> = candidates.iter().map(Candidate::to_string).collect();
    texts.join(", ")
}

/// A file to show how one is written.
fn file_of(candidates: &[Candidate]) -> &str {
    let path = candidates
        .iter()
        .find_map(|candidate| candidate.file.as_deref());
    let path = path.unwrap_or("FILE");
    path.rsplit('/').next().unwrap_or(path)
}

/// The fields there are, or why there are none.
fn instead(fields: &[String], type_name: &str) -> String {
    if !fields.is_empty() {
        format!("; it has: {}", fields.join(", "))
    } else if type_name.ends_with('*') {
        "; what a pointer points to is no part of the variable: give its address".to_owned()
    } else {
        String::new()
    }
}
