//! The files that a module's names come from, which others may write to meanwhile.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::sys::map_file::FileBytes;

/// A module's own file and its debug files, as long as they are read.
#[derive(Clone)]
pub(super) struct OpenedFiles(Arc<Mutex<Vec<Weak<FileBytes>>>>);

impl OpenedFiles {
    pub(super) fn new(module: &Arc<FileBytes>) -> OpenedFiles {
        OpenedFiles(Arc::new(Mutex::new(vec![Arc::downgrade(module)])))
    }

    /// One more.
    pub(super) fn add(&self, file: &Arc<FileBytes>) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that turned out to be of another build are closed again.
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(file));
    }

    fn any(&self, is: impl Fn(&FileBytes) -> bool) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = files.iter().filter_map(Weak::upgrade);
        files.any(|file| is(&file))
    }

    /// Whether bytes that were read were missing in any of them.
    pub(super) fn is_torn(&self) -> bool {
        self.any(FileBytes::is_torn)
    }

    /// Whether any of them may be another than it was.
    pub(super) fn have_changed(&self) -> bool {
        self.any(FileBytes::has_changed)
    }
}
