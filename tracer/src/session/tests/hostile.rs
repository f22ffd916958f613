//! Parts made to harm, with a good seal: an error or other rows, never a panic, a hang or the memory gone.

use std::fs;

use proptest::{prelude::*, test_runner::TestRunner};

use super::*;
use crate::session::{
    access_table, context_tables, error::Damage, part_reader::read_sealed_part, schema::Table,
};

/// Decodes a part as a reader would, without its seal.
fn decode(table: &'static Table, part: Vec<u8>) -> Result<(), Damage> {
    read_sealed_part(table, part, |_, source| {
        match table.name {
            "accesses" => drop(access_table::decode(source, 0)?),
            "mappings" => drop(context_tables::decode_mappings(source)?),
            _ => drop(context_tables::decode_tasks(source)?),
        }
        Ok(())
    })
}

fn parts() -> Vec<(&'static Table, Vec<u8>)> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.coh");
    let batches: Vec<Batch> = (0..8).map(batch).collect();
    write(&path, &batches, &WriterOptions::default()).expect("written");
    let tables = crate::session::schema::TABLES;
    let part = |table: &Table| fs::read(path.join(table.name).join("part-00000.parquet"));
    tables
        .map(|table| (table, part(table).expect("a part")))
        .into()
}

/// The crate panics on some of these (that is what the reader contains), so its messages are kept quiet.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = run();
    std::panic::set_hook(hook);
    result
}

#[test]
fn no_changed_byte_and_no_cut_gets_past_an_error() {
    let mut runner = TestRunner::deterministic();
    for (table, part) in parts() {
        assert!(decode(table, part.clone()).is_ok());
        let len = part.len();
        let change = (0..len, any::<u8>(), 1..4usize);
        quietly(|| {
            let run = runner.run(&change, |(at, byte, count)| {
                let mut changed = part.clone();
                for n in 0..count {
                    changed[(at + n * 7) % len] = byte.wrapping_add(n as u8);
                }
                let _ = decode(table, changed);
                let _ = decode(table, part[..at].to_vec());
                Ok(())
            });
            run.expect("no panic leaves the reader");
        });
    }
}
