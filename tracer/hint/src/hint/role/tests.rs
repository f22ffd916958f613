//! Every role, and a twin that differs in what decides.

use super::*;

const ONE: Written = Written::Constant(1);
const FREE: Written = Written::Constant(0);

fn touch(tid: u32, does: WordUse) -> Touch {
    let (stores, reads_and_writes) = match does {
        WordUse::Read(_) => (false, false),
        WordUse::Write(_) => (true, false),
        _ => (true, true),
    };
    Touch {
        tid: Tid(tid),
        stores,
        reads_and_writes,
        locked: reads_and_writes,
        count: 100,
        does: Some(does),
    }
}

/// Both threads, 1 and 2, do all of it.
fn both(all: &[WordUse]) -> Touched {
    let touches = |tid| all.iter().map(move |&does| touch(tid, does));
    Touched {
        touches: touches(1).chain(touches(2)).collect(),
        named: None,
    }
}

/// Thread 1 does the first, thread 2 the second.
fn each(first: &[WordUse], second: &[WordUse]) -> Touched {
    let first = first.iter().map(|&does| touch(1, does));
    let second = second.iter().map(|&does| touch(2, does));
    Touched {
        touches: first.chain(second).collect(),
        named: None,
    }
}

fn role(word: Touched) -> Role {
    roles(&[word])[0]
}

fn swap(expected: Written, new: Written) -> WordUse {
    WordUse::CompareAndSwap { expected, new }
}

fn exchange(new: Written, outcome: Outcome) -> WordUse {
    WordUse::Exchange { new, outcome }
}

fn add(step: i64, outcome: Outcome) -> WordUse {
    WordUse::Add {
        step: Some(step),
        outcome,
    }
}

const fn write(new: Written) -> WordUse {
    WordUse::Write(new)
}

const READ: WordUse = WordUse::Read(Outcome::Used);
const WAS: Written = Written::Advanced(Some(0));
const MOVED: Written = Written::Advanced(Some(1));

#[test]
fn a_lock_is_taken_and_given_back_by_the_same_threads() {
    let taken = [
        [swap(FREE, ONE), write(FREE)],
        [exchange(ONE, Outcome::Tested), write(FREE)],
        [
            exchange(ONE, Outcome::Tested),
            exchange(FREE, Outcome::Unused),
        ],
        // glibc and Rust look whether somebody waits.
        [swap(FREE, ONE), exchange(FREE, Outcome::Tested)],
        [swap(FREE, ONE), swap(ONE, FREE)],
        // The owner's number, and back.
        [swap(FREE, Written::Other), write(FREE)],
        // Go.
        [swap(FREE, ONE), add(-1, Outcome::Tested)],
        // `lock bts; jc` and `lock btr`.
        [WordUse::Bits(Outcome::Used), WordUse::Bits(Outcome::Unused)],
    ];
    for uses in taken {
        assert_eq!(role(both(&uses)), Role::Lock, "{uses:?}");
    }
    // What one thread gives and the other takes is a flag between them.
    let given = each(&[write(ONE)], &[exchange(FREE, Outcome::Tested)]);
    assert_eq!(role(given), Role::Flag);
    // Nobody was seen to give it back: claimed once, or a lock, if its name says so.
    let claimed = both(&[swap(FREE, ONE)]);
    assert_eq!(role(claimed.clone()), Role::Unknown);
    let named = Touched {
        named: Some(Named::Lock),
        ..claimed
    };
    assert_eq!(role(named), Role::Lock);
}

#[test]
fn an_initial_store_by_another_thread_changes_no_role() {
    let mut word = both(&[swap(FREE, ONE), write(FREE)]);
    for touch in &mut word.touches {
        touch.count *= 10;
    }
    let initial = Touch {
        count: 1,
        ..touch(7, write(FREE))
    };
    word.touches.push(initial);
    assert_eq!(role(word.clone()), Role::Lock);
    assert_eq!(word.writers().len(), 2);
    word.touches.push(touch(7, write(FREE)));
    assert_ne!(role(word), Role::Lock);
}

#[test]
fn an_index_is_moved_from_where_it_was_and_is_no_lock() {
    assert_eq!(role(both(&[READ, swap(WAS, MOVED)])), Role::Index);
    // Even where somebody stores to it too, and whatever its name is of.
    assert_eq!(role(both(&[swap(WAS, MOVED), write(FREE)])), Role::Index);
    assert_eq!(
        role(both(&[
            swap(WAS, Written::Followed),
            swap(WAS, Written::Other)
        ])),
        Role::ListHead
    );
    assert_eq!(role(both(&[swap(WAS, Written::Other)])), Role::Replaced);
    assert_eq!(
        role(both(&[exchange(Written::Other, Outcome::Tested)])),
        Role::Replaced
    );
}

#[test]
fn a_name_tells_a_lock_that_counts_from_an_index_and_nothing_against_the_code() {
    let named = |uses: &[WordUse]| {
        role(Touched {
            named: Some(Named::Lock),
            ..both(uses)
        })
    };
    // A reader-writer lock.
    assert_eq!(
        named(&[swap(WAS, MOVED), add(-1, Outcome::Used)]),
        Role::Lock
    );
    assert_eq!(named(&[add(1, Outcome::Unused)]), Role::Counter);
    assert_eq!(named(&[write(Written::Other)]), Role::Overwritten);
    assert_eq!(
        named(&[add(-1, Outcome::Tested), add(1, Outcome::Used)]),
        Role::References
    );
}

#[test]
fn sums_that_nobody_looks_at_are_counted_and_others_are_not() {
    assert_eq!(role(both(&[add(1, Outcome::Unused)])), Role::Counter);
    assert_eq!(role(both(&[READ, write(MOVED)])), Role::Counter);
    assert_eq!(role(both(&[add(1, Outcome::Used)])), Role::Numbers);
    assert_eq!(role(both(&[add(1, Outcome::Turn)])), Role::TicketLock);
    assert_eq!(role(both(&[add(1, Outcome::Unknown)])), Role::Unknown);
    // Down to zero, and up: references. Down only: who knows.
    let drop = add(-1, Outcome::Tested);
    assert_eq!(
        role(both(&[add(1, Outcome::Unused), drop])),
        Role::References
    );
    assert_eq!(role(both(&[add(1, Outcome::Used), drop])), Role::References);
    assert_eq!(role(both(&[drop])), Role::Unknown);
}

#[test]
fn tickets_are_numbers_whose_takers_advance_the_turn_too() {
    let next = both(&[add(1, Outcome::Used)]);
    let serving = both(&[READ, write(MOVED)]);
    assert_eq!(
        roles(&[next.clone(), serving.clone()]),
        [Role::TicketLock, Role::TicketLock]
    );
    // Beside what it guards, the turn is what those that wait compare.
    let sum = serving.clone();
    let mut turn = serving.clone();
    turn.touches.push(touch(1, WordUse::Read(Outcome::Turn)));
    assert_eq!(
        roles(&[next.clone(), sum, turn]),
        [Role::TicketLock, Role::Guarded, Role::TicketLock]
    );
    // The twin: a sum of others.
    let mut sum = serving;
    for touch in &mut sum.touches {
        touch.tid.0 += 10;
    }
    assert_eq!(roles(&[next, sum]), [Role::Numbers, Role::Counter]);
}

#[test]
fn one_writer_publishes_raises_a_flag_or_advances() {
    let written = |new| role(each(&[write(new)], &[READ]));
    assert_eq!(written(Written::Other), Role::Published);
    assert_eq!(written(ONE), Role::Flag);
    assert_eq!(written(Written::Choice), Role::Flag);
    assert_eq!(written(MOVED), Role::Position);
    let again = WordUse::Read(Outcome::Again);
    assert_eq!(role(each(&[write(MOVED)], &[READ, again])), Role::Version);
    assert_eq!(role(both(&[write(Written::Other)])), Role::Overwritten);
    assert_eq!(role(both(&[write(ONE)])), Role::Flag);
}

#[test]
fn two_positions_with_crossed_readers_are_the_ends_of_a_queue() {
    let head = each(&[READ, write(MOVED)], &[READ]);
    let tail = each(&[READ], &[READ, write(MOVED)]);
    assert_eq!(
        roles(&[head.clone(), tail]),
        [Role::QueueEnd, Role::QueueEnd]
    );
    // Both of one thread: two positions.
    let other = each(&[READ, write(MOVED)], &[READ]);
    assert_eq!(
        roles(&[head.clone(), other]),
        [Role::Position, Role::Position]
    );
    // The owner's end of a work list, whose other end all move.
    let top = both(&[READ, swap(WAS, MOVED)]);
    let bottom = each(&[write(Written::Other)], &[READ]);
    assert_eq!(roles(&[top, bottom]), [Role::Index, Role::Published]);
}

#[test]
fn what_only_holders_of_a_lock_write_is_guarded_by_it() {
    let lock = both(&[swap(FREE, ONE), write(FREE)]);
    let sum = both(&[READ, write(MOVED)]);
    assert_eq!(
        roles(&[lock.clone(), sum.clone()]),
        [Role::Lock, Role::Guarded]
    );
    assert_eq!(roles(std::slice::from_ref(&sum)), [Role::Counter]);
    // Atomics need no lock, and others hold none.
    let atomic = both(&[add(1, Outcome::Unused)]);
    assert_eq!(roles(&[lock.clone(), atomic]), [Role::Lock, Role::Counter]);
    let mut others = sum;
    others.touches[0].tid = Tid(9);
    others.touches[1].tid = Tid(9);
    assert_eq!(roles(&[lock, others]), [Role::Lock, Role::Counter]);
}

#[test]
fn code_that_is_not_known_tells_less() {
    let unknown = |word: Touched| {
        let touches = word.touches.into_iter();
        let touches = touches.map(|touch| Touch {
            does: None,
            ..touch
        });
        Touched {
            touches: touches.collect(),
            ..word
        }
    };
    // Who stores is known all the same.
    let published = each(&[write(Written::Other)], &[READ]);
    assert_eq!(role(unknown(published)), Role::Published);
    assert_eq!(role(unknown(both(&[write(ONE)]))), Role::Overwritten);
    assert_eq!(
        role(unknown(both(&[add(1, Outcome::Unused)]))),
        Role::Unknown
    );
    // A name decides where nothing speaks against it: an atomic that cannot be read.
    let lock = Touched {
        named: Some(Named::Lock),
        ..unknown(both(&[swap(FREE, ONE), write(FREE)]))
    };
    assert_eq!(role(lock), Role::Lock);
    let references = |uses: &[WordUse]| Touched {
        named: Some(Named::References),
        ..unknown(both(uses))
    };
    let counts = references(&[add(1, Outcome::Unused), add(-1, Outcome::Tested)]);
    assert_eq!(role(counts), Role::References);
    // What is stored to is not only counted.
    let stored = references(&[add(1, Outcome::Unused), write(ONE)]);
    assert_eq!(role(stored), Role::Unknown);
    assert_eq!(role(Touched::default()), Role::Unknown);
}
