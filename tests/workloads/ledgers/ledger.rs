// Accounts with locks: four threads move money between them, each account's lock and its balance on lines of their own.
//
// For load hints that a linker places by the plugin for compilers. Expected candidates: the load in `Lock::take`, which is
// the standard library's line, inlined into `Account::change`; and the balance. Not the fees, which all threads read and one
// changes now and then. Prints one line with a checksum that does not depend on the order, and returns 0 exactly when it is
// right.
use std::{
    cell::UnsafeCell,
    process::ExitCode,
    sync::{
        Barrier,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    thread,
};

const THREADS: usize = 4;
const OWN: usize = 16;
const ACCOUNTS: usize = THREADS * OWN;
const KINDS: usize = 8;

#[repr(align(128))]
struct OwnLine<T>(T);

struct Lock {
    held: AtomicU32,
}

impl Lock {
    fn take(&self) {
        while self.held.load(Ordering::Relaxed) != 0 || self.held.swap(1, Ordering::Acquire) != 0 {
            thread::yield_now();
        }
    }

    fn release(&self) {
        self.held.store(0, Ordering::Release);
    }
}

struct Money {
    balance: i64,
    entries: u64,
    before: i64,
}

struct Account {
    lock: OwnLine<Lock>,
    money: OwnLine<UnsafeCell<Money>>,
}

// SAFETY: the money is touched by whoever holds the lock.
unsafe impl Sync for Account {}

impl Account {
    fn change(&self, by: i64) {
        self.lock.0.take();
        // SAFETY: the lock is held.
        let money = unsafe { &mut *self.money.0.get() };
        money.before = money.balance;
        money.balance = money.before + by;
        money.entries += 1;
        self.lock.0.release();
    }
}

static ACCOUNT: [Account; ACCOUNTS] = [const {
    Account {
        lock: OwnLine(Lock { held: AtomicU32::new(0) }),
        money: OwnLine(UnsafeCell::new(Money { balance: 1000, entries: 0, before: 0 })),
    }
}; ACCOUNTS];
static FEES: OwnLine<[AtomicI64; KINDS]> = OwnLine([const { AtomicI64::new(1) }; KINDS]);

fn next(state: &mut u64) -> u64 {
    // Steele, Lea, Flood 2014: SplitMix64.
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// In each round a thread has a quarter of the accounts to itself, in the next one that of its neighbour: how often a line
/// changes hands does not depend on who is fast.
fn work(thread: usize, rounds: usize, all: &Barrier) {
    let mut state = 17 + thread as u64;
    for round in 0..rounds {
        let own = &ACCOUNT[(thread + round) % THREADS * OWN..][..OWN];
        let fee = FEES.0[round % KINDS].load(Ordering::Relaxed);
        if thread == 0 && round % 16 == 15 {
            FEES.0[round / 16 % KINDS].store(fee, Ordering::Relaxed);
        }
        for account in own {
            let random = next(&mut state);
            let amount = (random >> 8 & 255) as i64 + fee;
            account.change(-amount);
            own[(random >> 16) as usize & (OWN - 1)].change(amount);
        }
        all.wait();
    }
}

fn main() -> ExitCode {
    let is_ref = std::env::args().nth(1).is_some_and(|input| input == "ref");
    let rounds = if is_ref { 240 } else { 80 };
    let all = &Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 1..THREADS {
            scope.spawn(move || work(thread, rounds, all));
        }
        work(0, rounds, all);
    });
    let (mut sum, mut changes, mut checksum) = (0, 0, 0);
    for account in &ACCOUNT {
        // SAFETY: the threads have ended.
        let money = unsafe { &*account.money.0.get() };
        sum += money.balance;
        changes += money.entries;
        checksum ^= money.balance as u64;
        checksum = next(&mut checksum);
    }
    let right = sum == 1000 * ACCOUNTS as i64 && changes == 2 * (ACCOUNTS * rounds) as u64;
    println!("ledger: {} {checksum:016x}", if right { "right" } else { "WRONG" });
    ExitCode::from(u8::from(!right))
}
