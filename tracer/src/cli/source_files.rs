//! Source files on this machine, for the printed forms of hints.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    rc::Rc,
    time::SystemTime,
};

use symbolizer::{Module, NoDebugFiles};

use crate::{
    hint::{
        digest::{is_same, md5},
        file::HintedCode,
    },
    module::hex,
    report::load_hints::Sources,
    sys::{found_file::FoundFile, map_file::map_file},
};

/// Largest source that is read: generated ones are smaller.
const MOST_BYTES: u64 = 64 << 20;

/// A module's build-id and when it was written; or why neither is known.
type Built = Result<SystemTime, String>;

/// Reads files, each once.
#[derive(Debug)]
pub(super) struct SourceFiles {
    directory: PathBuf,
    /// Take sources as they are, whatever speaks against it.
    any: bool,
    texts: RefCell<HashMap<String, Result<Rc<str>, String>>>,
    digests: RefCell<HashMap<String, Option<String>>>,
    built: RefCell<HashMap<(String, String), Built>>,
}

impl SourceFiles {
    /// Files as seen from the current directory.
    pub(super) fn new(any: bool) -> io::Result<SourceFiles> {
        Ok(SourceFiles {
            directory: std::env::current_dir()?,
            any,
            texts: RefCell::default(),
            digests: RefCell::default(),
            built: RefCell::default(),
        })
    }

    /// The digest of the file that code is of, if nothing speaks against its being the text that was compiled.
    pub(super) fn md5(&self, code: &HintedCode) -> Option<String> {
        let file = code.file.as_deref().filter(|file| file.starts_with('/'))?;
        if self.changed(code).is_some() {
            return None;
        }
        self.md5_now(file)
    }

    /// The digest of a file as it is now.
    pub(super) fn md5_now(&self, file: &str) -> Option<String> {
        let mut digests = self.digests.borrow_mut();
        let of_file = || Some(md5(&read(&self.path(file)).ok()?));
        digests
            .entry(file.to_owned())
            .or_insert_with(of_file)
            .clone()
    }

    fn path(&self, file: &str) -> PathBuf {
        normal(&self.directory.join(file))
    }
}

impl Sources for SourceFiles {
    fn text(&self, file: &str) -> Result<Rc<str>, String> {
        let mut texts = self.texts.borrow_mut();
        let read = || text(&self.path(file)).map(Rc::from);
        texts.entry(file.to_owned()).or_insert_with(read).clone()
    }

    fn changed(&self, code: &HintedCode) -> Option<String> {
        if self.any {
            return None;
        }
        let file = code.file.as_deref()?;
        if let Some(compiled) = &code.md5
            && let Some(now) = self.md5_now(file)
        {
            let differs = !is_same(&now, compiled);
            return differs.then(|| "the source has changed since the recording".to_owned());
        }
        let (Some(module), Some(build_id)) = (&code.module, &code.build_id) else {
            return Some(
                "the program that it was built into has no build-id to know it by".to_owned(),
            );
        };
        let key = (module.clone(), build_id.clone());
        let mut known = self.built.borrow_mut();
        let built = known
            .entry(key)
            .or_insert_with(|| built(Path::new(module), build_id));
        let built = match built {
            Ok(built) => *built,
            Err(why) => return Some(why.clone()),
        };
        let written = fs::metadata(self.path(file)).and_then(|metadata| metadata.modified());
        match written {
            Ok(written) if written > built => Some(format!(
                "the source is newer than {module}, so it may have changed since"
            )),
            Ok(_) => None,
            Err(error) => Some(format!("{file}: {error}")),
        }
    }

    fn relative(&self, file: &str) -> Option<String> {
        let path = self.path(file);
        let below = path.strip_prefix(&self.directory).ok()?;
        Some(below.to_str()?.to_owned()).filter(|text| !text.is_empty())
    }

    fn absolute(&self, file: &str) -> String {
        self.path(file).to_string_lossy().into_owned()
    }

    fn directory(&self) -> String {
        self.directory.to_string_lossy().into_owned()
    }
}

/// Without `.` and `..`; symbolic links stay, since compilers and people name files through them.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn text(path: &Path) -> Result<String, String> {
    String::from_utf8(read(path)?).map_err(|_| format!("{} is not in UTF-8", path.display()))
}

/// The bytes of a source file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let found = FoundFile::at(path).map_err(failed)?;
    if found.bytes() > MOST_BYTES {
        return Err(format!("{} is no source file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = found.open().map_err(failed)?;
    // Of one that grows meanwhile, no more than was seen.
    file.take(found.bytes())
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(bytes)
}

/// When the module was written, if it is still the recorded one.
fn built(module: &Path, build_id: &str) -> Built {
    let cannot = |why: &dyn std::fmt::Display| {
        let module = module.display();
        format!(
            "whether the source is that of the recorded program cannot be said: {module}: {why}"
        )
    };
    let bytes = FoundFile::at(module)
        .and_then(|found| map_file(found.open()?))
        .map_err(|error| cannot(&error))?;
    let elf = Module::parse(bytes, Box::new(NoDebugFiles)).map_err(|error| cannot(&error))?;
    let found = hex(elf.build_id().unwrap_or_default());
    if found != build_id {
        return Err(format!(
            "{} has been built again since the recording",
            module.display()
        ));
    }
    let written = fs::metadata(module).and_then(|metadata| metadata.modified());
    written.map_err(|error| format!("{}: {error}", module.display()))
}
