//! What to do about words that threads really share: touch them less. Moving them elsewhere changes nothing, so nothing
//! here says so (reports of systems where it made things worse: CUBRID pull request 7844, whose hand-offs rose by 58 %
//! after such a change).

use super::{
    role::Role,
    scene::{Advice, AdviceKind, Scene, Word, WordAdvice},
};
use crate::{
    access::Place,
    names::{Language, ObjectKind},
};

/// Names in one sentence; more are counted.
const MOST_NAMES: usize = 4;

/// Advice for a line whose bytes are all truly shared. Never speaks of layout.
pub(super) fn advise(scene: &Scene) -> Advice {
    Advice {
        kind: AdviceKind::ReduceSharing,
        text: sentences(scene),
        fields: Vec::new(),
        bytes: None,
        words: each(scene),
    }
}

/// What to do about each word.
pub(super) fn each(scene: &Scene) -> Vec<WordAdvice> {
    let advised = scene.words.iter().map(|word| WordAdvice {
        field: word.name.clone(),
        role: word.role,
        text: Speech::of(scene).about(&[word]),
    });
    advised.collect()
}

/// What to do about all words, in sentences. Those of one kind share theirs.
pub(super) fn sentences(scene: &Scene) -> String {
    let mut groups: Vec<Vec<&Word>> = Vec::new();
    for word in scene.words {
        let alike = |group: &&mut Vec<&Word>| {
            let first = group[0];
            (first.role, first.writers, first.readers) == (word.role, word.writers, word.readers)
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(word),
            None => groups.push(vec![word]),
        }
    }
    if groups.is_empty() {
        return "Let the threads touch the bytes that they share less often.".to_owned();
    }
    let speech = Speech::of(scene);
    let texts: Vec<String> = groups.iter().map(|group| speech.about(group)).collect();
    texts.join("\n")
}

/// Where the words are spoken of.
#[derive(Clone, Copy)]
struct Speech {
    language: Option<Language>,
    kernel: bool,
}

impl Speech {
    fn of(scene: &Scene) -> Speech {
        let of_kernel = |object: &crate::names::ObjectName| object.kind == ObjectKind::Kernel;
        Speech {
            language: scene.language,
            kernel: matches!(scene.line.0, Place::Kernel { .. })
                || scene.objects.iter().any(of_kernel),
        }
    }

    /// What to do about words of one role and the same numbers of threads.
    fn about(self, words: &[&Word]) -> String {
        let Some(first) = words.first() else {
            return String::new();
        };
        if let [_] = words {
            let each = if first.is_each { "each " } else { "" };
            return self.word(first, &format!("{each}{}", name(first)));
        }
        let listed = words.len().min(MOST_NAMES);
        let mut names: Vec<String> = words[..listed].iter().map(|word| name(word)).collect();
        if words.len() > listed {
            names.push(format!("{} more", words.len() - listed));
        }
        let last = names.pop().unwrap_or_default();
        let text = self
            .word(first, "it")
            .replacen("One thread", "one thread", 1);
        format!("For each of {} and {last}: {text}", names.join(", "))
    }

    fn word(self, word: &Word, what: &str) -> String {
        let threads = threads(word.writers + word.readers);
        let writers = |one, many| verb(word.writers, one, many);
        let readers = verb(word.readers, "reads", "read");
        match word.role {
            Role::Lock => format!(
                "{threads} take {what} by turns: it is a lock, and whoever takes it must own its line, wherever it lies. {}",
                self.lock()
            ),
            Role::TicketLock => format!(
                "{threads} wait for their turn by {what}: it belongs to a ticket lock. All that wait read whose turn it is, \
                 so that each hand-over takes the line from all of them. Wait the longer the further away the turn is. {}",
                self.lock()
            ),
            Role::Counter => format!(
                "{} to {what}, and none of them looks at the sum: it is a counter, and each addition must own its line, \
                 wherever it lies. {}, or add up locally and add to the sum once per batch of, say, 1,000: that divides the \
                 traffic by the size of the batch.",
                writers("adds", "add"),
                self.counter(),
            ),
            Role::References => format!(
                "{threads} count {what} up, and down to zero: it is a reference count, and each count must own its line, \
                 wherever it lies. {}",
                self.references()
            ),
            Role::Numbers => format!(
                "{writers} numbers from {what} (they add to it and use the result), and each must own its line, wherever it \
                 lies. Take a block of numbers at once and hand them out from a local variable, or give each thread a \
                 range of its own.",
                writers = writers("takes", "take"),
            ),
            Role::Index => format!(
                "{writers} {what} by compare-and-swap, from where it was: it is an index or a position. Each attempt must \
                 own its line, wherever it lies, and those that fail too. Move it by several places at once, wait longer \
                 after each failed attempt, or give each thread a part of its own and let others take from it only when \
                 theirs is empty.",
                writers = writers("moves", "move"),
            ),
            Role::ListHead => format!(
                "{writers} {what} to the next node by compare-and-swap: it is the head of a list. Each attempt must own its \
                 line, wherever it lies, and those that fail too. Let each thread keep some nodes for itself and move many \
                 at once, wait longer after each failed attempt, let an addition and a removal that meet cancel each other \
                 (elimination), or use several lists.",
                writers = writers("moves", "move"),
            ),
            Role::Replaced => format!(
                "{writers} {what} by an atomic exchange or compare-and-swap. Each attempt must own its line, wherever it \
                 lies, and those that fail too. Combine several changes into one, wait longer after each failed attempt, or \
                 give each thread a value of its own and combine them when somebody needs the whole.",
                writers = writers("replaces", "replace"),
            ),
            Role::Flag => format!(
                "{writers} {what} to constants{}: it is a flag. Store to it only when that changes it: look first, for reads \
                 leave the readers their copies. Do not ask in a loop: wait by {}.",
                match word.readers {
                    0 => String::new(),
                    1 => " and 1 thread looks at it".to_owned(),
                    n => format!(" and {n} threads look at it"),
                },
                self.waiting(),
                writers = writers("sets", "set"),
            ),
            Role::Position => format!(
                "One thread advances {what} and {readers} it: it is a position or a count. Each step takes the readers' \
                 copies away, wherever it lies. Publish several steps at once, and let readers keep the last value that they \
                 saw and look again only when they need more.",
            ),
            Role::QueueEnd => format!(
                "One thread advances {what} and another reads it, which advances the other end: it is one end of a queue \
                 with one writer and one reader. Let the reader keep the last value that it saw and look again only when by \
                 that the queue is full or empty, and publish several steps at once.",
            ),
            Role::Version => format!(
                "{writers} {what} around each change of other data, and {readers} it before and after: it is the version of a \
                 sequence lock. Each change takes the readers' copies away. Make several changes at once, give data that \
                 seldom changes a version of its own, or publish whole copies that readers keep.",
                writers = writers("advances", "advance"),
            ),
            Role::Published => format!(
                "One thread writes {what} and {readers} it, so that every write takes the readers' copies away, wherever it \
                 lies. Write only when the value really changes (compare first), publish in batches, or let the readers look \
                 less often and work on a copy.",
            ),
            Role::Guarded => format!(
                "{writers} to {what} while they hold the lock beside it, with which it moves: what helps the lock helps here.",
                writers = writers("stores", "store"),
            ),
            Role::Overwritten => format!(
                "{threads} use {what} and {} to it, so that its ownership moves with every store, wherever it lies. Let one \
                 thread own the data and send it the changes, store only when the value really changes (compare first), or \
                 give each thread a copy and merge the copies when somebody needs the whole.",
                if word.readers == 0 {
                    "all of them store".to_owned()
                } else {
                    format!("{} of them store", word.writers)
                }
            ),
            Role::Unknown => {
                let by = if word.is_atomic {
                    " by atomic instructions"
                } else {
                    ""
                };
                let and = if word.readers == 0 {
                    String::new()
                } else {
                    format!(" and {readers} it")
                };
                format!(
                    "{} {what}{by}{and}. The code that was seen does not tell what it is for, so there is nothing to say but \
                     to do that less often.",
                    writers("changes", "change")
                )
            }
        }
    }

    fn lock(self) -> &'static str {
        if self.kernel {
            return "Keep the data per CPU (`DEFINE_PER_CPU`), let readers do without the lock (RCU, a sequence lock), take it \
                    less often or for a shorter time, split it by bucket or node, or do something else while a `trylock` \
                    fails. The kernel's spin locks are queue locks already. Who reads under an `rwlock_t` or `rw_semaphore` \
                    writes to it too: where writers are rare, a `percpu_rw_semaphore` keeps readers apart.";
        }
        match self.language {
            Some(Language::Go) => {
                "Hold it for a shorter time or take it less often, or give each part of the data its own lock (shards). A \
                 `sync.RWMutex` helps little: all its readers count in one word. `atomic.Value` lets readers do without."
            }
            Some(Language::Java) => {
                "Hold it for a shorter time or take it less often, give each part of the data its own lock, or let readers do \
                 without (`StampedLock.tryOptimisticRead`, `ConcurrentHashMap`, immutable copies)."
            }
            _ => {
                "Hold it for a shorter time or take it less often, give each part of the data its own lock, wait longer after \
                 each failed attempt, or use a queue lock (MCS), where each thread waits on memory of its own."
            }
        }
    }

    /// The beginning of a sentence: where to count instead.
    fn counter(self) -> String {
        let own = match self.language {
            _ if self.kernel => {
                return "Count in per-CPU variables (`DEFINE_PER_CPU`, `percpu_counter`)"
                    .to_owned();
            }
            Some(Language::Java) => {
                return "Use a `java.util.concurrent.atomic.LongAdder`, which keeps a cell for each thread".to_owned();
            }
            Some(Language::Go) => {
                return "Go has no variables of a thread: let each goroutine count in a local variable, or count in an array of \
                        padded slots, one for each of `runtime.GOMAXPROCS(0)` workers, and add the slots up when somebody \
                        reads the sum"
                    .to_owned();
            }
            Some(Language::Rust) => "a `thread_local!` or a local variable of each thread",
            Some(Language::Cpp) => "a `thread_local` or a local variable of each thread",
            Some(Language::C) => "a `_Thread_local` or a local variable of each thread",
            Some(Language::Other(_)) | None => "a variable of its own in each thread",
        };
        format!("Count in {own} and add the parts up when somebody reads the sum")
    }

    fn references(self) -> &'static str {
        match self.language {
            _ if self.kernel => {
                "A `refcount_t` or `kref` is one word for all CPUs: use a `percpu_ref` for what lives long, let readers do without \
                 a reference (RCU), or take one reference for a batch of operations."
            }
            Some(Language::Rust) => {
                "Clone the `Arc` once for each thread and lend `&T` from there instead of cloning it for each operation, or \
                 protect readers without a count (`arc-swap`, epochs as in `crossbeam-epoch`)."
            }
            Some(Language::Cpp) => {
                "Pass a reference to what a `shared_ptr` of the caller keeps alive instead of a copy of the `shared_ptr`, copy \
                 it once for each thread or batch, or protect readers without a count (hazard pointers, RCU)."
            }
            _ => {
                "Take no reference where the owner outlives the use anyway, take one for each thread or batch instead of one \
                 for each operation, or protect readers without a count (hazard pointers, epochs, RCU)."
            }
        }
    }

    /// What to wait by instead of a loop.
    fn waiting(self) -> &'static str {
        match self.language {
            _ if self.kernel => "`wait_event` or a completion",
            Some(Language::Rust) => "`std::thread::park` or a `Condvar`",
            Some(Language::Cpp) => "`std::atomic::wait` (C++20) or a condition variable",
            Some(Language::C) => "a futex or a condition variable",
            Some(Language::Go) => "a channel or a `sync.Cond`",
            Some(Language::Java) => "`LockSupport.park` or a `Condition`",
            Some(Language::Other(_)) | None => {
                "something that sleeps, such as a condition variable"
            }
        }
    }
}

fn name(word: &Word) -> String {
    if word.is_nameless {
        word.name.clone()
    } else {
        format!("`{}`", word.full_name)
    }
}

fn threads(count: usize) -> String {
    match count {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

/// `3 threads take`.
fn verb(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", threads(count), if count == 1 { one } else { many })
}
