//! Debug files in a directory, found as a debugger would find them. Writes down what it was asked.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use symbolizer::{Bytes, DebugFiles, DebugRequest};

#[derive(Clone, Default)]
pub(crate) struct Shelf {
    directory: PathBuf,
    /// Name of the package in the directory.
    package: Option<&'static str>,
    /// Contents in place of those of the files, by name.
    changed: HashMap<String, Vec<u8>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Shelf {
    pub(crate) fn new(directory: &Path) -> Shelf {
        Shelf {
            directory: directory.to_owned(),
            ..Shelf::default()
        }
    }

    pub(crate) fn with_package(mut self, name: &'static str) -> Shelf {
        self.package = Some(name);
        self
    }

    pub(crate) fn with(mut self, name: &str, content: Vec<u8>) -> Shelf {
        self.changed.insert(name.to_owned(), content);
        self
    }

    /// The requests so far, each as its name and what it asked for.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl DebugFiles for Shelf {
    fn find(&self, request: &DebugRequest<'_>) -> Option<Bytes> {
        let name = match request {
            DebugRequest::Dwo {
                directory,
                file_name,
                ..
            } => {
                let path = Path::new(directory).join(file_name);
                path.strip_prefix(&self.directory)
                    .ok()?
                    .to_str()?
                    .to_owned()
            }
            DebugRequest::Dwp { .. } => self.package.unwrap_or("no package").to_owned(),
            DebugRequest::AltFile { file_name, .. } | DebugRequest::DebugLink { file_name, .. } => {
                (*file_name).to_owned()
            }
            _ => "no such file".to_owned(),
        };
        let kind = format!("{request:?}");
        let kind = kind.split([' ', '(']).next().unwrap();
        self.asked.lock().unwrap().push(format!("{kind} {name}"));
        let content = match self.changed.get(&name) {
            Some(content) => content.clone(),
            None => std::fs::read(self.directory.join(&name)).ok()?,
        };
        Some(Arc::new(content))
    }
}
