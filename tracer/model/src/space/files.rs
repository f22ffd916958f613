//! Which files are mapped anywhere.

use std::{
    hash::{BuildHasher as _, BuildHasherDefault},
    sync::Arc,
};

use rustc_hash::{FxHashSet, FxHasher};

use super::AddressSpaces;
use crate::event::Mapping;

/// Files, by number and by name: numbers are used again.
#[derive(Clone, Debug, Default)]
pub struct MappedFiles {
    numbers: FxHashSet<(u64, u64)>,
    /// Hashes of number and name.
    named: FxHashSet<u64>,
}

impl MappedFiles {
    /// The file behind a mapping is mapped.
    pub fn add(&mut self, mapping: &Mapping) {
        let number = (mapping.dev, mapping.inode);
        self.numbers.insert(number);
        self.named.insert(hash(number, &mapping.name));
    }

    /// Whether a file of this device and inode is.
    pub fn has_number(&self, number: (u64, u64)) -> bool {
        self.numbers.contains(&number)
    }

    /// Whether a file of this device and inode is, by this name.
    pub fn has(&self, number: (u64, u64), name: &str) -> bool {
        self.named.contains(&hash(number, name))
    }
}

fn hash(number: (u64, u64), name: &str) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one((number, name))
}

impl AddressSpaces {
    /// All files that are mapped in the spaces kept.
    pub fn files(&self, files: &mut MappedFiles) {
        let mut seen = FxHashSet::default();
        for space in self.spaces.values() {
            // Children share their parent's until either changes.
            if seen.insert(Arc::as_ptr(&space.mappings)) {
                space.mappings.all().for_each(|mapping| files.add(mapping));
            }
        }
    }
}
