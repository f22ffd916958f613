//! Build ids of the files that an exported run mapped.

use std::collections::HashMap;

use crate::event::Mapping;

/// Files with a build id kept; perf needs them only to find debug files.
const MOST_FILES: usize = 1 << 16;

/// Build ids by name of the file.
#[derive(Debug, Default)]
pub struct BuildIds(HashMap<String, Vec<u8>>);

impl BuildIds {
    /// Notes the build id (hex) of a mapping's file; `open` is asked once per name.
    pub fn note(&mut self, mapping: &Mapping, open: impl FnOnce() -> Option<String>) {
        if !mapping.executable || !mapping.is_file() || self.0.len() >= MOST_FILES {
            return;
        }
        if !self.0.contains_key(&mapping.name) {
            let id = open().and_then(|hex| unhex(&hex)).unwrap_or_default();
            self.0.insert(mapping.name.clone(), id);
        }
    }

    /// Those known, by name.
    pub(super) fn known(&self) -> Vec<(&str, &[u8])> {
        let mut known: Vec<(&str, &[u8])> = (self.0.iter())
            .filter(|(_, id)| !id.is_empty())
            .map(|(name, id)| (name.as_str(), id.as_slice()))
            .collect();
        known.sort_unstable();
        known
    }
}

/// Up to 20 bytes, which is what the format holds; a longer id would be another one.
fn unhex(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) || !(2..=40).contains(&hex.len()) {
        return None;
    }
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_build_ids_that_fit_are_taken() {
        assert_eq!(unhex("00ff10"), Some(vec![0, 255, 16]));
        for bad in ["", "0", "0g", "é0", &"ab".repeat(21)] {
            assert_eq!(unhex(bad), None, "{bad}");
        }
    }
}
