//! What names of variables, types and functions say that a word is. They help where the code does not tell, and never decide
//! against it.

/// A role that names are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// `head_lock`, `pthread_mutex_t`, `rwsem_down_read_slowpath`.
    Lock,
    /// `refcount_t`, `kref_put`, `d_lockref`.
    References,
}

/// Words of names of locks.
const LOCKS: [&str; 14] = [
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

/// Words of names of reference counts; the last four are functions of the kernel.
const REFERENCES: [&str; 9] = [
    "refcount", "refcnt", "kref", "lockref", "ref", "fget", "fput", "dget", "dput",
];

impl Named {
    /// What a name says. Looks at whole words, so that `clock` and `block` are no locks; what calls itself free of locks is none
    /// either.
    pub fn of(name: &str) -> Option<Named> {
        let words = words_of(name);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        if has(&REFERENCES) {
            return Some(Named::References);
        }
        let next = words.iter().skip(1).map(Some).chain([None]);
        let is_lock = words.iter().zip(next).any(|(word, next)| {
            let is_free = next.is_some_and(|next| matches!(next.as_str(), "free" | "less"));
            LOCKS.contains(&word.as_str()) && !is_free
        });
        is_lock.then_some(Named::Lock)
    }
}

/// `headLock`, `head_lock` and `Head<Lock>` have the words head and lock.
fn words_of(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut previous_lower = false;
    for c in name.chars().chain(['_']) {
        let boundary = !c.is_alphabetic() || (c.is_uppercase() && previous_lower);
        if boundary && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
        previous_lower = c.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_known_by_whole_words_only() {
        for name in [
            "lock",
            "queue.head_lock",
            "pthread_mutex_t",
            "SpinLock<T>",
            "__lll_lock_wait",
            "tryLock",
            "down_read_rwsem",
        ] {
            assert_eq!(Named::of(name), Some(Named::Lock), "{name}");
        }
        for name in [
            "clock",
            "block_count",
            "Blocker",
            "spinning_top",
            "",
            "padlocked",
            "flocks",
            "lock_free_queue",
            "LockFree",
            "Lockless",
            "lock-free",
        ] {
            assert_eq!(Named::of(name), None, "{name}");
        }
    }

    #[test]
    fn reference_counts_are_known_by_whole_words_only() {
        for name in [
            "refcount_t",
            "kref_put",
            ".d_lockref.count",
            "file_ref_get",
            "fput",
            "RefCount",
        ] {
            assert_eq!(Named::of(name), Some(Named::References), "{name}");
        }
        for name in [
            "refresh",
            "prefcount",
            "href",
            "references",
            "buffput",
            "count",
        ] {
            assert_eq!(Named::of(name), None, "{name}");
        }
    }
}
