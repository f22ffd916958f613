//! The file as its readers see it.
