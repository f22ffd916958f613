//! Which sites are one row.

use super::{one_atomic, plain, two_counters};
use crate::{
    access::Op,
    report::{
        fixture::{report, site},
        json,
    },
};

#[test]
fn threads_of_one_instruction_are_one_row() {
    let (judgement, names) = one_atomic();
    let report = report(&[judgement], &names);
    let rows = &report.findings[0].accesses;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].threads.len(), rows[0].count), (4, 4 * 1540));
    // 4 * 1500 ms of 10 s.
    assert!((rows[0].cost_share - 0.6).abs() < 1e-9);
}

#[test]
fn copies_of_a_source_line_are_one_row_and_unnamed_instructions_are_not() {
    let (judged, mut names) = two_counters();
    let copy = names.code[&0x401136].clone();
    names.code.insert(0x401190, copy);
    let mut judged_again = judged.clone();
    judged_again
        .sites
        .push(site(0, 8, Op::Rmw, 4001, 0x401190, 50, 0));
    judged_again
        .sites
        .push(site(0, 8, Op::Rmw, 4001, 0x402000, 1, 0));
    judged_again
        .sites
        .push(site(0, 8, Op::Rmw, 4001, 0x402004, 1, 0));
    let rows = &report(&[judged_again], &names).findings[0].accesses;
    let places: Vec<_> = rows.iter().map(|row| (row.code.ip.0, row.count)).collect();
    // Hits with its copy, misses, and two instructions without a source line.
    assert_eq!(
        places,
        [(0x1136, 2750), (0x1166, 2300), (0x2000, 1), (0x2004, 1)]
    );
}

#[test]
fn an_access_whose_bytes_are_not_known_is_a_row_of_its_own_and_changes_nothing_else() {
    let (judged, names) = two_counters();
    let before = report(std::slice::from_ref(&judged), &names);
    let mut with = judged;
    let mut somewhere = site(0, 4, Op::Load, 4002, 0x401190, 0, 0);
    (somewhere.site.within, somewhere.trapped) = (8, 40);
    with.sites.push(somewhere);
    let report = report(&[with], &names);
    let (old, new) = (&before.findings[0], &report.findings[0]);
    // A thread that touched `hits` would be in its group, and would have changed the advice.
    assert_eq!(new.groups, old.groups);
    assert_eq!(new.advice, old.advice);
    assert_eq!(new.object, old.object);
    let row = new.accesses.last().expect("a row");
    assert_eq!((row.size, row.within, &row.field), (4, Some(8), &None));
    assert_eq!(new.accesses.len(), old.accesses.len() + 1);
    let text = plain(&report);
    assert!(text.contains(" 0-7? "), "{text}");
    assert!(text.contains("proves nothing"), "{text}");
    assert!(!plain(&before).contains('?'));
    let value: serde_json::Value =
        serde_json::from_str(&json::render(&report, false)).expect("JSON");
    let rows = &value["findings"][0]["accesses"];
    assert_eq!(rows[2]["within"], 8);
    assert!(rows[0]["within"].is_null());
}
