//! Where a part is from, in its footer, so that parts of many hosts can lie in one place and still be told apart.
//!
//! Plain strings under keys that any Parquet reader lists. `meta.json` has the same facts, so that a part beside the
//! `meta.json` of another recording is noticed; parts of older recordings lack them.

use parquet::file::metadata::KeyValue;

use super::{error::Damage, meta::Meta, schema::SCHEMA_VERSION};

/// Name of the host.
pub(super) const HOST_KEY: &str = "cohtrace.host";

/// Which boot of the host: `CLOCK_MONOTONIC` of two parts compares only when these are equal.
pub(super) const BOOT_ID_KEY: &str = "cohtrace.boot_id";

/// Version of the tables, in decimal.
pub(super) const SCHEMA_VERSION_KEY: &str = "cohtrace.schema_version";

/// Wall clock at the session's start, nanoseconds since 1970-01-01 UTC, in decimal.
pub(super) const STARTED_KEY: &str = "cohtrace.started_unix_ns";

/// The entries of one session's parts; what is not known has none.
#[derive(Debug, Default)]
pub(super) struct Origin(Vec<KeyValue>);

impl Origin {
    pub(super) fn of(meta: &Meta) -> Origin {
        let version = Some(SCHEMA_VERSION.to_string());
        let started = meta.started_unix_ns.map(|ns| ns.to_string());
        let facts = [
            (HOST_KEY, meta.host.clone()),
            (BOOT_ID_KEY, meta.boot_id.clone()),
            (SCHEMA_VERSION_KEY, version),
            (STARTED_KEY, started),
        ];
        let entry = |(key, value): (&str, Option<String>)| {
            value.map(|value| KeyValue::new(key.to_owned(), value))
        };
        Origin(facts.into_iter().filter_map(entry).collect())
    }

    /// Refuses the entries of a part that say another host, boot or start.
    pub(super) fn check(&self, part: Option<&Vec<KeyValue>>) -> Result<(), Damage> {
        let told = |key| move |entry: &&KeyValue| entry.key == key;
        for key in [HOST_KEY, BOOT_ID_KEY, STARTED_KEY] {
            let own = self.0.iter().find(told(key));
            let found = part.into_iter().flatten().find(told(key));
            if let (Some(own), Some(found)) = (own, found)
                && own.value != found.value
            {
                return Err(Damage::Meta(
                    "it is of another recording than meta.json: their host, boot or start differ",
                ));
            }
        }
        Ok(())
    }

    pub(super) fn entries(&self) -> &[KeyValue] {
        &self.0
    }
}
