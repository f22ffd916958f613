//! machine

pub mod btf;
