//! What to do about bytes that threads really share: touch them less. Moving them elsewhere changes
//! nothing, so nothing here says so (reports of systems where it made things worse: CUBRID pull
//! request 7844, whose hand-offs rose by 58 % after such a change).

use super::scene::{Advice, AdviceKind, Scene, Traffic};
use crate::{
    access::Place,
    names::{Language, ObjectKind},
};

/// How the shared bytes are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Taken and released: locked read-modify-writes beside plain stores, or a name that says so.
    Lock,
    /// Every thread adds to it.
    Counter,
    /// One thread writes, others look.
    Published,
    /// Several threads store.
    Overwritten,
}

fn pattern(traffic: &Traffic) -> Pattern {
    let changes = traffic.locked + traffic.unlocked_rmw + traffic.stores;
    // A release is a plain store on x86-64, and each acquisition is released once.
    let released = traffic.stores > 0 && traffic.stores.saturating_mul(8) >= traffic.locked;
    if traffic.named_lock || (traffic.locked > 0 && released && traffic.writers > 1) {
        Pattern::Lock
    } else if traffic.writers <= 1 {
        Pattern::Published
    } else if (traffic.locked + traffic.unlocked_rmw).saturating_mul(2) > changes {
        Pattern::Counter
    } else {
        Pattern::Overwritten
    }
}

/// Advice for a line whose bytes are all truly shared. Never speaks of layout.
pub fn advise(scene: &Scene) -> Advice {
    let what = shared_names(scene).unwrap_or_else(|| "these bytes".to_owned());
    Advice {
        kind: AdviceKind::ReduceSharing,
        text: sentences(scene, &what),
        fields: Vec::new(),
        bytes: None,
    }
}

/// `` `.lock` and `.owner` ``: what the truly shared bytes are called; `None` where they have no names or
/// too many.
pub fn shared_names(scene: &Scene) -> Option<String> {
    const MOST: usize = 3;
    let mut names: Vec<String> = Vec::new();
    let fields = scene
        .units
        .iter()
        .filter(|unit| unit.truly_shared())
        .flat_map(|unit| &unit.fields);
    for field in fields {
        let object = field.object.and_then(|object| scene.objects.get(object));
        let name = field.label.as_ref().or_else(|| object?.name.as_ref())?;
        let name = format!("`{name}`");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.as_slice() {
        [one] => Some(one.clone()),
        [most @ .., last] if (2..=MOST).contains(&names.len()) => {
            Some(format!("{} and {last}", most.join(", ")))
        }
        _ => None,
    }
}

/// What to do, as sentences about `what`.
pub fn sentences(scene: &Scene, what: &str) -> String {
    let traffic = &scene.traffic;
    let threads = traffic.writers + traffic.readers;
    let kernel = matches!(scene.line.0, Place::Kernel { .. })
        || scene
            .objects
            .iter()
            .any(|object| object.kind == ObjectKind::Kernel);
    match pattern(traffic) {
        Pattern::Lock => format!(
            "{threads} threads take turns on what looks like a lock, and whoever takes it must own {what}: \
             another layout does not help. Hold it for a shorter time or take it less often, give each part \
             of the data its own lock, wait with a growing pause instead of trying again at once, or use a \
             queue lock (MCS, ticket with local spinning), where each thread waits on its own memory."
        ),
        Pattern::Counter => {
            let own = if kernel {
                "per-CPU variables (`DEFINE_PER_CPU`, `percpu_counter`)"
            } else {
                match scene.language {
                    Some(Language::Rust) => "a `thread_local!` or a local variable of each thread",
                    Some(Language::Cpp) => "a `thread_local` or a local variable of each thread",
                    Some(Language::C) => "a `_Thread_local` or a local variable of each thread",
                    None => "a variable of its own in each thread",
                }
            };
            format!(
                "{threads} threads update {what}, and each update must own it: another layout does not help. \
                 Count in {own} and add the parts up when somebody reads the sum, or add up locally and \
                 publish once per batch of, say, 1,000 updates; each way divides the traffic by the size of the batch."
            )
        }
        Pattern::Published => {
            let readers = if traffic.readers == 1 {
                "1 thread reads".to_owned()
            } else {
                format!("{} threads read", traffic.readers)
            };
            format!(
                "One thread writes {what} and {readers} it, so every write takes the readers' copies away: \
                 another layout does not help. Write only when the value really changes (compare first), \
                 publish in batches, or let the readers look less often and work on a copy."
            )
        }
        Pattern::Overwritten => format!(
            "{threads} threads use {what} and {} of them store to it, so its ownership moves with every store: \
             another layout does not help. Let one thread own the data and send it the changes, store only \
             when the value really changes (compare first), or give each thread a copy and merge the copies \
             when somebody needs the whole.",
            traffic.writers
        ),
    }
}

/// Whether a name of a variable, type or function says that it is a lock. Looks at whole words, so
/// that `clock` and `block` are none.
pub fn names_a_lock(name: &str) -> bool {
    const WORDS: [&str; 14] = [
        "lock",
        "unlock",
        "trylock",
        "locked",
        "mutex",
        "spinlock",
        "spin",
        "rwlock",
        "qspinlock",
        "futex",
        "lll",
        "semaphore",
        "latch",
        "rwsem",
    ];
    let mut word = String::new();
    let mut previous_lower = false;
    for c in name.chars().chain(['_']) {
        let boundary = !c.is_alphabetic() || (c.is_uppercase() && previous_lower);
        if boundary {
            if WORDS.contains(&word.as_str()) {
                return true;
            }
            word.clear();
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
        previous_lower = c.is_lowercase();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(writers: usize, readers: usize, locked: u64, stores: u64, loads: u64) -> Traffic {
        Traffic {
            writers,
            readers,
            locked,
            stores,
            loads,
            ..Traffic::default()
        }
    }

    #[test]
    fn locked_updates_alone_are_a_counter_and_with_releases_a_lock() {
        assert_eq!(pattern(&traffic(2, 0, 1000, 0, 0)), Pattern::Counter);
        assert_eq!(pattern(&traffic(2, 0, 1000, 900, 100)), Pattern::Lock);
        // A stray store (initialisation) does not make a lock of it.
        assert_eq!(pattern(&traffic(2, 0, 1000, 2, 0)), Pattern::Counter);
    }

    #[test]
    fn one_writer_publishes_and_several_overwrite() {
        assert_eq!(pattern(&traffic(1, 3, 0, 10, 900)), Pattern::Published);
        assert_eq!(pattern(&traffic(3, 0, 0, 10, 0)), Pattern::Overwritten);
        let increments = Traffic {
            unlocked_rmw: 10,
            ..traffic(3, 0, 0, 1, 0)
        };
        assert_eq!(pattern(&increments), Pattern::Counter);
    }

    #[test]
    fn a_name_decides_when_the_counts_do_not() {
        let named = Traffic {
            named_lock: true,
            ..traffic(2, 0, 1000, 0, 0)
        };
        assert_eq!(pattern(&named), Pattern::Lock);
    }

    #[test]
    fn locks_are_known_by_whole_words_only() {
        for name in [
            "lock",
            "queue.head_lock",
            "pthread_mutex_t",
            "SpinLock<T>",
            "__lll_lock_wait",
            "tryLock",
        ] {
            assert!(names_a_lock(name), "{name}");
        }
        for name in [
            "clock",
            "block_count",
            "Blocker",
            "spinning_top",
            "",
            "padlocked",
            "flocks",
        ] {
            assert!(!names_a_lock(name), "{name}");
        }
    }
}
