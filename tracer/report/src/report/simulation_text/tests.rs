//! What people read of a simulation, and that JSON has the same figures.

use expect_test::expect;

use super::*;
use crate::{
    access::{Access, Op, Place, SpaceId},
    analysis::{Hinted, Simulation, emulated_fixture::emulated},
    coherence::SystemModel,
    names::{Language, ObjectKind},
    report::{
        fixture::{FakeNames, LINE, object},
        simulation::{HintCounts, HintsUsed, SCENARIOS, render_json},
    },
};

fn access(tid: u32, ip: u64, op: Op) -> Access {
    emulated(tid, ip, op, LINE)
}

/// Threads in turn add to a counter; its load is a floating-point one when `hinted` is of the last scenario alone.
fn session(name: &str, role: SessionRole, hinted: Hinted) -> SimulatedSession {
    let mut simulation = Simulation::new(&SystemModel::default(), SCENARIOS).expect("a machine");
    for n in 0..1000 {
        for access in [
            access(n % 4, 0x401136, Op::Load),
            access(n % 4, 0x40113a, Op::Store),
        ] {
            let place = Place::Private {
                space: SpaceId(0),
                addr: access.addr,
            };
            simulation.observe(&access, SpaceId(0), place, || hinted);
        }
    }
    let mut names = FakeNames::default().code(0x401136, "bump", "src/count.c", 12, Language::C);
    names.objects = vec![object("hits\x1b", ObjectKind::Global, LINE, 8)];
    let integer = u64::from(hinted.0 & 0b10 != 0);
    let all = HintCounts {
        integer,
        floating_point: 1 - integer,
        unknown: 0,
    };
    let is_yours = hinted.0 & 0b1_0000 != 0;
    let hints = HintsUsed {
        from: "train.coh".to_owned(),
        your_code: if is_yours { all } else { HintCounts::default() },
        all,
        unmatched: Vec::new(),
        one_off: None,
    };
    let caveats = vec!["something to know".to_owned()];
    SimulatedSession::new(
        name.to_owned(),
        role,
        hints,
        &simulation.finish(),
        10,
        &names,
        caveats,
    )
}

fn report() -> SimulationReport {
    let sessions = vec![
        session("train", SessionRole::Train, Hinted(0b1_1110)),
        session("ref", SessionRole::Given, Hinted(0b0_0100)),
    ];
    SimulationReport::new(&SystemModel::default(), None, sessions)
}

#[test]
fn the_tables_say_what_each_set_of_hints_changes() {
    let text = render(&report(), TextOptions::default());
    expect![[r"
        Simulated: 64-byte lines; per processor a second level of 256 KiB in 8 ways and a third of 3 MiB in
        12 ways, least recently used out first; the directory protocol of SWIFT section 2.
        train: 4 threads, 1,000 loads, 1,000 stores, 1 line. Hinted, found in it, and used for the others: 1
        integer load and 0 floating-point loads.
        A rebuild with the hints in code that you build: 3,998 messages fewer of 7,996 (50.0 %).
        ref: 4 threads, 1,000 loads, 1,000 stores, 1 line. Hinted, from train.coh: 0 integer loads and 1
        floating-point load, 0 of them in code that you build.
        A rebuild with the hints in code that you build: 0 messages fewer of 7,996 (0.0 %). With 1 hint too
        that `cohtrace as` does not place, elsewhere or in loops: 3,998 messages fewer of 7,996 (50.0 %).

        Application transactions: messages that serve requests (SWIFT table 4)
        session        hints in   unmodified  integer hinted  improvement  int+fp hinted  improvement
        train (train)  your code       7,996           3,998       50.0 %          3,998       50.0 %
        ref            your code       7,996           7,996        0.0 %          7,996        0.0 %
        ref            all code        7,996           7,996        0.0 %          3,998       50.0 %

        Transactions that serve loads, loads with bias included (table 5)
        session        hints in   unmodified  integer hinted  improvement  int+fp hinted  improvement
        train (train)  your code       3,998           3,998        0.0 %          3,998        0.0 %
        ref            your code       3,998           3,998        0.0 %          3,998        0.0 %
        ref            all code        3,998           3,998        0.0 %          3,998        0.0 %

        Misses of the last level (table 6)
        session        hints in   unmodified  integer hinted  improvement  int+fp hinted  improvement
        train (train)  your code       1,000           1,000        0.0 %          1,000        0.0 %
        ref            your code       1,000           1,000        0.0 %          1,000        0.0 %
        ref            all code        1,000           1,000        0.0 %          1,000        0.0 %

        Instructions with most transactions in train
        unmodified  hinted  executions  then owned  function  source
             3,998   3,998       1,000       1,000  bump      src/count.c:12
             3,998       0       1,000           0  ?         /opt/stripped/server+0x113a

        Lines with most transactions in train
        unmodified  hinted  misses  objects   line
             7,996   3,998   1,000  hits\x1b  private:0:0x404040

        Instructions with most transactions in ref
        unmodified  hinted  executions  then owned  function  source
             3,998   3,998       1,000       1,000  bump      src/count.c:12
             3,998       0       1,000           0  ?         /opt/stripped/server+0x113a

        Lines with most transactions in ref
        unmodified  hinted  misses  objects   line
             7,996   3,998   1,000  hits\x1b  private:0:0x404040

        note: train: something to know.

        note: ref: something to know.
    "]].assert_eq(&text);
}

#[test]
fn json_has_the_figures_of_the_tables_and_nothing_that_a_terminal_acts_on() {
    let text = render_json(&report());
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], 1);
    assert_eq!(json["machine"]["l3_bytes"], 3 << 20);
    let train = &json["sessions"][0];
    assert_eq!(train["role"], "train");
    assert_eq!(train["unmodified"]["transactions"], 4 + 999 * 8);
    assert_eq!(train["unmodified"]["messages"]["READ_SHAR"], 1000);
    assert_eq!(train["all_hinted"]["transactions"], 2 + 999 * 4);
    assert_eq!(train["your_code_all_hinted"], train["all_hinted"]);
    assert_eq!(train["all_hinted"]["biased_loads"], 1000);
    assert_eq!(train["unmodified"]["biased_loads"], 0);
    assert_eq!(
        (
            &train["hints"]["integer"],
            &train["hints"]["your_code"]["integer"]
        ),
        (&1.into(), &1.into())
    );
    let reference = &json["sessions"][1];
    assert_eq!(reference["your_code_all_hinted"], reference["unmodified"]);
    assert_eq!(
        reference["instructions"][0]["transactions"],
        serde_json::json!([3998, 3998, 3998, 3998, 3998])
    );
    assert_eq!(
        reference["instructions"][1]["transactions"],
        serde_json::json!([3998, 3998, 0, 3998, 3998])
    );
    assert_eq!(
        train["all_hinted"]["messages"]["READ_SHAR"],
        serde_json::Value::Null
    );
    assert_eq!(train["instructions"][0]["function"], "bump");
    assert_eq!(train["top_lines"][0]["objects"][0], "hits\u{1b}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn an_improvement_is_what_went_away_and_a_loss_is_negative() {
    assert_eq!(improvement(1000, 972), "2.8 %");
    assert_eq!(improvement(1000, 1012), "-1.2 %");
    assert_eq!(improvement(1_000_000, 1_000_001), "0.0 %");
    assert_eq!(improvement(5, 5), "0.0 %");
    assert_eq!(improvement(0, 0), "-");
}

#[test]
fn sizes_are_said_in_the_unit_that_divides_them() {
    let all = [64, 256 << 10, 3 << 20, (1 << 20) + 1024, 1000].map(bytes);
    assert_eq!(
        all,
        ["64 bytes", "256 KiB", "3 MiB", "1025 KiB", "1000 bytes"]
    );
}
