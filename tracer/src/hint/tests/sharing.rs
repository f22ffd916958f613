//! True and mixed sharing.

use super::{COUNTERS, START, object, own, scene, structure};
use crate::{
    hint::{AdviceKind, Scene, Sharing, Traffic, Unit, advise},
    names::Language,
};

fn every_traffic() -> Vec<Traffic> {
    let mut out = Vec::new();
    for (writers, readers) in [(1, 1), (1, 5), (2, 0), (2, 3), (9, 0)] {
        for locked in [0, 10] {
            for (stores, unlocked_rmw) in [(0, 10), (10, 0), (10, 10)] {
                for named_lock in [false, true] {
                    out.push(Traffic {
                        writers,
                        readers,
                        locked,
                        unlocked_rmw,
                        stores,
                        loads: 5,
                        named_lock,
                    });
                }
            }
        }
    }
    out
}

#[test]
fn true_sharing_is_never_told_to_pad() {
    let shared = Unit {
        writers: 2,
        ..own(0, 8, ".hits")
    };
    for language in [Language::C, Language::Cpp, Language::Rust] {
        let objects = [structure("stats", language, 24, &COUNTERS)];
        for traffic in every_traffic() {
            let units = [shared.clone()];
            let scene = Scene {
                sharing: Sharing::True,
                traffic,
                language: Some(language),
                ..scene(&objects, &units)
            };
            let advice = advise(&scene);
            assert_eq!(advice.kind, AdviceKind::ReduceSharing);
            assert!(advice.fields.is_empty() && advice.bytes.is_none());
            let text = advice.text.to_lowercase();
            for word in ["pad", "align", "line of its own", "separate", "move apart"] {
                assert!(!text.contains(word), "{word}: {text}");
            }
        }
    }
}

#[test]
fn true_sharing_advice_depends_on_what_is_done_to_the_bytes() {
    let units = [Unit {
        writers: 4,
        ..own(0, 8, "total")
    }];
    let objects = [object("total", START, 8, Language::Rust)];
    let text = |traffic| {
        let language = Some(Language::Rust);
        advise(&Scene {
            sharing: Sharing::True,
            traffic,
            language,
            ..scene(&objects, &units)
        })
        .text
    };
    let counter = text(Traffic {
        writers: 4,
        locked: 100,
        ..Traffic::default()
    });
    assert!(
        counter.starts_with("4 threads update `total`") && counter.contains("thread_local!"),
        "{counter}"
    );
    let lock = text(Traffic {
        writers: 4,
        locked: 100,
        stores: 90,
        ..Traffic::default()
    });
    assert!(
        lock.contains("looks like a lock") && lock.contains("queue lock"),
        "{lock}"
    );
    let flag = text(Traffic {
        writers: 1,
        readers: 3,
        stores: 9,
        loads: 90,
        ..Traffic::default()
    });
    assert!(
        flag.starts_with("One thread writes `total` and 3 threads read it"),
        "{flag}"
    );
}

#[test]
fn mixed_sharing_names_what_moves_and_what_remains_shared() {
    let list = [("lock", 0, 4, "int"), ("count", 8, 8, "long")];
    let objects = [structure("struct table", Language::C, 16, &list)];
    let units = [
        Unit {
            writers: 2,
            ..own(0, 4, ".lock")
        },
        own(8, 8, ".count"),
    ];
    let traffic = Traffic {
        writers: 2,
        locked: 100,
        stores: 100,
        ..Traffic::default()
    };
    let advice = advise(&Scene {
        sharing: Sharing::Mixed,
        traffic,
        ..scene(&objects, &units)
    });
    assert_eq!(advice.kind, AdviceKind::SeparateAndReduce);
    assert_eq!(advice.fields, [".lock", ".count"]);
    // lock 0..4 | count 64..72 -> 128; 128 - 16 = 112.
    assert_eq!(advice.bytes, Some(112));
    assert!(
        advice.text.contains("_Alignas(64) long count;"),
        "{}",
        advice.text
    );
    let (_, remains) = advice.text.split_once("What remains shared: ").unwrap();
    assert!(
        remains.contains("`.lock`") && remains.contains("looks like a lock"),
        "{remains}"
    );
}
