//! Old `meta.json` to today's shape, one version at a time; newer ones are refused.
//!
//! A change of the schema adds one step here, and what it changes in a table is handled where that table is
//! decoded. A session once readable stays readable.

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    error::{Damage, SessionError},
    meta::{FORMAT, Meta},
    schema::SCHEMA_VERSION,
};

/// Turns the object of one version into that of the next, all but `schema_version`.
pub(super) type Step = fn(&mut Map<String, Value>);

/// `STEPS[n]` leads from version n + 1 to n + 2.
static STEPS: &[Step] = &[
    // 2 added the table `windows`, which a segment of version 1 does not count and does not have.
    |_| {},
    // 3 added the tables `local_storage` and `allocations` and the tally's `heap`, which read as none.
    |_| {},
    // 4 added what PMUs measure: last columns of `accesses`, null in older parts, and `cost_unit`; mappings among the
    // events of `allocations`.
    |_| {},
    // 5 added emulated accesses, with `repeats` as last column of `accesses`, null in older parts.
    |_| {},
    // 6 added what is not known of an access's address and of a wait: last columns of `accesses`, null in older parts; and
    // the table `memory`, which reads as none.
    |_| {},
    // 7 added what files were when they were mapped: last columns of `mappings`, null in older parts.
    |_| {},
    // 8 added the table `paces`, which reads as none.
    |_| {},
];

const _: () = assert!(STEPS.len() + 1 == SCHEMA_VERSION as usize);

/// `meta.json`'s text as today's [`Meta`]. `path` is for messages: the session and its `meta.json`.
pub(super) fn read_meta(session: &Path, file: &Path, text: &[u8]) -> Result<Meta, SessionError> {
    let value: Value =
        serde_json::from_slice(text).map_err(|error| SessionError::corrupt(file, error))?;
    let Value::Object(mut object) = value else {
        return Err(not_ours(session));
    };
    if object.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(not_ours(session));
    }
    let found = object
        .get("schema_version")
        .and_then(Value::as_u64)
        .filter(|version| *version > 0)
        .ok_or_else(|| {
            SessionError::corrupt(file, Damage::Meta("schema_version is not a version"))
        })?;
    if found > u64::from(SCHEMA_VERSION) {
        return Err(SessionError::Newer {
            path: session.to_owned(),
            found,
            supported: SCHEMA_VERSION,
            writer: object
                .get("tool_version")
                .and_then(Value::as_str)
                .unwrap_or("of unknown version")
                .to_owned(),
        });
    }
    upgrade(&mut object, found as usize, STEPS);
    serde_json::from_value(Value::Object(object))
        .map_err(|error| SessionError::corrupt(file, error))
}

fn not_ours(session: &Path) -> SessionError {
    SessionError::NotASession {
        path: session.to_owned(),
        reason: "its meta.json is not ours".to_owned(),
    }
}

/// Applies the steps from `version` (at least 1) on, in order.
fn upgrade(object: &mut Map<String, Value>, version: usize, steps: &[Step]) {
    for (done, step) in steps.iter().enumerate().skip(version - 1) {
        step(object);
        object.insert("schema_version".to_owned(), Value::from(done + 2));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::access::CostUnit;

    fn steps() -> [Step; 2] {
        [
            |object| {
                let hz = object.remove("hz").unwrap_or(Value::Null);
                object.insert("frequency_hz".to_owned(), hz);
            },
            |object| {
                object.insert("added_in_3".to_owned(), Value::Null);
            },
        ]
    }

    fn upgraded(from: Value, version: usize) -> Value {
        let Value::Object(mut object) = from else {
            panic!("an object is given");
        };
        upgrade(&mut object, version, &steps());
        Value::Object(object)
    }

    #[test]
    fn an_old_meta_passes_through_every_later_step_in_order() {
        assert_eq!(
            upgraded(json!({"schema_version": 1, "hz": 99}), 1),
            json!({"schema_version": 3, "frequency_hz": 99, "added_in_3": null})
        );
        assert_eq!(
            upgraded(json!({"schema_version": 2, "frequency_hz": 7}), 2),
            json!({"schema_version": 3, "frequency_hz": 7, "added_in_3": null})
        );
    }

    /// What is read of a meta that names this unit, or no unit.
    fn unit(named: Option<Value>) -> Result<CostUnit, SessionError> {
        let Ok(Value::Object(mut object)) = serde_json::to_value(Meta::new()) else {
            panic!("a meta is an object");
        };
        object.remove("cost_unit");
        object.extend(named.map(|unit| ("cost_unit".to_owned(), unit)));
        let text = Value::Object(object).to_string();
        let (session, file) = (Path::new("a.coh"), Path::new("a.coh/meta.json"));
        read_meta(session, file, text.as_bytes()).map(|meta| meta.cost_unit)
    }

    #[test]
    fn a_known_unit_is_read_and_an_absent_one_is_time() {
        for known in CostUnit::ALL {
            assert_eq!(unit(Some(json!(known.name()))).unwrap(), known);
        }
        assert_eq!(unit(None).unwrap(), CostUnit::SampledTime);
    }

    #[test]
    fn an_unknown_unit_is_an_error_that_names_the_file_and_the_unit() {
        let error = unit(Some(json!("furlongs"))).unwrap_err().to_string();
        for words in ["a.coh/meta.json", "\"furlongs\""] {
            assert!(error.contains(words), "{words}: {error}");
        }
        for other in [json!(null), json!(1), json!("")] {
            assert!(unit(Some(other.clone())).is_err(), "{other}");
        }
    }

    #[test]
    fn a_meta_of_the_newest_version_is_left_alone() {
        let newest = json!({"schema_version": 3, "hz": 1});
        assert_eq!(upgraded(newest.clone(), 3), newest);
    }
}
