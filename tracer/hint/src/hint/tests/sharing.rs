//! True and mixed sharing.

use super::{COUNTERS, START, object, own, private, scene, structure};
use crate::{
    access::{LineKey, Place},
    hint::{AdviceKind, Scene, Sharing, Unit, Word, advise, role::Role},
    names::Language,
};

const ROLES: [Role; 16] = [
    Role::Lock,
    Role::TicketLock,
    Role::Counter,
    Role::References,
    Role::Numbers,
    Role::Index,
    Role::ListHead,
    Role::Replaced,
    Role::Flag,
    Role::Position,
    Role::QueueEnd,
    Role::Version,
    Role::Published,
    Role::Guarded,
    Role::Overwritten,
    Role::Unknown,
];

const LANGUAGES: [Option<Language>; 7] = [
    None,
    Some(Language::C),
    Some(Language::Cpp),
    Some(Language::Rust),
    Some(Language::Go),
    Some(Language::Java),
    Some(Language::Other("Fortran")),
];

fn word(name: &str, role: Role) -> Word {
    Word {
        name: name.to_owned(),
        full_name: name.to_owned(),
        is_nameless: false,
        writers: 4,
        readers: 0,
        is_atomic: true,
        role,
        is_each: false,
    }
}

/// Advice for one truly shared word.
fn told(word: &Word, language: Option<Language>) -> String {
    let units = [Unit {
        writers: word.writers,
        readers: word.readers,
        ..own(0, 8, &word.name)
    }];
    let objects = [object("total", START, 8, Language::C)];
    let advice = advise(&Scene {
        sharing: Sharing::True,
        words: std::slice::from_ref(word),
        language,
        ..scene(&objects, &units)
    });
    assert_eq!(advice.kind, AdviceKind::ReduceSharing);
    assert!(advice.fields.is_empty() && advice.bytes.is_none());
    assert_eq!(advice.words.len(), 1);
    assert_eq!(
        (&advice.words[0].field, advice.words[0].role),
        (&word.name, word.role)
    );
    assert_eq!(advice.words[0].text, advice.text);
    advice.text
}

#[test]
fn true_sharing_is_never_told_to_pad() {
    for language in LANGUAGES {
        for role in ROLES {
            for (writers, readers) in [(1, 1), (1, 5), (2, 0), (2, 3), (9, 0)] {
                let word = Word {
                    writers,
                    readers,
                    ..word("hits", role)
                };
                let text = told(&word, language).to_lowercase();
                assert!(text.contains("hits"), "{text}");
                for word in [
                    " pad ",
                    "align",
                    "line of its own",
                    "separate",
                    "move apart",
                ] {
                    assert!(!text.contains(word), "{word}: {text}");
                }
                assert!(
                    !text.contains("1 threads") && !text.contains(".. "),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn only_locks_are_called_locks_and_only_counters_are_told_to_count() {
    for language in LANGUAGES {
        for role in ROLES {
            let text = told(&word("x", role), language);
            let is_lock = matches!(role, Role::Lock | Role::TicketLock);
            let speaks_of_locks =
                text.contains("it is a lock") || text.contains("to a ticket lock");
            assert_eq!(is_lock, speaks_of_locks, "{role:?}: {text}");
            let counts = text.contains("it is a counter");
            assert_eq!(role == Role::Counter, counts, "{role:?}: {text}");
        }
    }
}

#[test]
fn each_language_counts_in_its_own_way() {
    let counter = |language| told(&word("total", Role::Counter), Some(language));
    assert!(counter(Language::C).starts_with("4 threads add to `total`"));
    for (language, way) in [
        (Language::C, "_Thread_local"),
        (Language::Cpp, "`thread_local`"),
        (Language::Rust, "thread_local!"),
        (Language::Go, "GOMAXPROCS"),
        (Language::Java, "LongAdder"),
    ] {
        assert!(counter(language).contains(way), "{}", counter(language));
    }
    let go = counter(Language::Go);
    assert!(go.contains("Go has no variables of a thread"), "{go}");
}

#[test]
fn what_is_not_known_gets_no_more_than_what_was_seen() {
    let text = told(&word("x", Role::Unknown), None);
    assert!(
        text.starts_with("4 threads change `x` by atomic instructions."),
        "{text}"
    );
    let plain = Word {
        is_atomic: false,
        readers: 1,
        ..word("x", Role::Unknown)
    };
    let text = told(&plain, None);
    assert!(
        text.starts_with("4 threads change `x` and 1 thread reads it."),
        "{text}"
    );
}

#[test]
fn the_kernels_locks_get_the_kernels_words() {
    let line = LineKey(Place::Kernel {
        addr: 0xffff_8880_0000_0000,
    });
    let units = [Unit {
        writers: 4,
        ..own(0, 8, "lock")
    }];
    let text = |line, role| {
        let words = [word("lock", role)];
        advise(&Scene {
            sharing: Sharing::True,
            words: &words,
            line,
            language: Some(Language::C),
            ..scene(&[], &units)
        })
        .text
    };
    let program = private(START);
    for (role, kernels, programs) in [
        (Role::Lock, "percpu_rw_semaphore", "MCS"),
        (Role::References, "percpu_ref", "hazard pointers"),
        (Role::Counter, "percpu_counter", "_Thread_local"),
        (Role::Flag, "wait_event", "futex"),
    ] {
        let (of_kernel, of_program) = (text(line, role), text(program, role));
        assert!(
            of_kernel.contains(kernels) && !of_kernel.contains(programs),
            "{of_kernel}"
        );
        assert!(
            of_program.contains(programs) && !of_program.contains(kernels),
            "{of_program}"
        );
    }
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
    let words = [Word {
        writers: 2,
        ..word(".lock", Role::Lock)
    }];
    let advice = advise(&Scene {
        sharing: Sharing::Mixed,
        words: &words,
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
        remains.starts_with("2 threads take `.lock` by turns: it is a lock"),
        "{remains}"
    );
}

#[test]
fn two_words_of_different_roles_each_get_their_sentence_and_alike_ones_share_theirs() {
    let objects = [structure("struct work", Language::C, 24, &COUNTERS)];
    let units = [
        Unit {
            writers: 2,
            ..own(0, 8, ".top")
        },
        Unit {
            readers: 1,
            ..own(8, 8, ".bottom")
        },
    ];
    let advice = |words: &[Word]| {
        advise(&Scene {
            sharing: Sharing::Mixed,
            words,
            ..scene(&objects, &units)
        })
    };
    let published = |name| Word {
        writers: 1,
        readers: 1,
        ..word(name, Role::Published)
    };
    let list = advice(&[word(".top", Role::Index), published(".bottom")]);
    assert_eq!(list.words.len(), 2);
    for text in [
        "4 threads move `.top` by compare-and-swap",
        "One thread writes `.bottom` and 1 thread reads it",
    ] {
        assert!(list.text.contains(text), "{text}: {}", list.text);
    }
    let end = |name| Word {
        writers: 1,
        readers: 1,
        ..word(name, Role::QueueEnd)
    };
    let queue = advice(&[end(".head"), end(".tail")]);
    let both = "For each of `.head` and `.tail`: one thread advances it and another reads it";
    assert!(queue.text.contains(both), "{}", queue.text);
    assert!(
        queue.words[1]
            .text
            .starts_with("One thread advances `.tail`")
    );
}
