//! The words of a finding of many lines: what has one name is one, whichever line it is on.

use std::collections::BTreeMap;

use super::{
    rows,
    subject::OnLine,
    words::{Seen, is_seldom, seen},
};
use crate::{
    access::{ByteSet, LineSize},
    finding::{Member, Subject},
    hint::{
        Word,
        role::{Role, Touch, Touched, roles},
    },
    names::Names,
};

/// Lines that are looked at, the costliest.
const MOST_LINES: usize = 256;

/// Stores by the thread that stored before, on all lines, that chance does not bring about where two threads store: each is as
/// likely the other's.
const TELLING: u64 = 12;
/// Of those, how many count of one line, for a thread often stores several times in a row.
const MOST_AGAIN: u64 = 3;

/// Words by name, each with the number of its line.
type Kinds = BTreeMap<Option<String>, Vec<(usize, Seen)>>;

/// The words that threads share, by name.
pub(super) fn words(subject: &Subject, names: &dyn Names, line_size: LineSize) -> Vec<Word> {
    let mut kinds = Kinds::new();
    for (line, member) in subject.shared_lines().take(MOST_LINES).enumerate() {
        for word in on_line(member, names, line_size) {
            kinds
                .entry(word.name.clone())
                .or_default()
                .push((line, word));
        }
    }
    // Where some line shows what is shared, what no line shows is not.
    let is_seen = |kind: &Vec<(usize, Seen)>| kind.iter().any(|(_, word)| word.touched.is_shared());
    if kinds.values().any(is_seen) {
        kinds.retain(|_, kind| is_seen(kind));
    }
    let stored = |kind: &Vec<(usize, Seen)>| {
        let times = kind.iter().map(|(_, word)| word.touched.stored_times());
        times.fold(0, u64::saturating_add)
    };
    let most = kinds.values().map(stored).max().unwrap_or(0);
    kinds.retain(|_, kind| !is_seldom(stored(kind), most));
    let all: Vec<Touched> = kinds.values().map(|kind| together(kind)).collect();
    let of_all = roles(&all);
    let apart = apart(&kinds);
    let words = kinds.into_iter().zip(all).zip(of_all);
    let words = words.filter_map(|(((name, mut kind), all), role)| {
        // These are what a word of one writer looks like when there are many of it, of a writer each.
        let may_be_each = matches!(role, Role::Counter | Role::Overwritten | Role::Unknown);
        let is_each = may_be_each && have_one_writer(&kind);
        let (_, shown) = kind.first_mut()?;
        if is_each && let Some(apart) = apart.get(&name) {
            return Some(Word {
                is_each: true,
                writers: apart.writers,
                readers: apart.readers,
                ..shown.word(apart.role)
            });
        }
        shown.touched = all;
        shown.touched.is_shared().then(|| shown.word(role))
    });
    words.collect()
}

/// The words of one line, with names that hold for all.
fn on_line(member: &Member, names: &dyn Names, line_size: LineSize) -> Vec<Seen> {
    let sites = member.counts();
    let on_line = OnLine::new(names, member.key, line_size, &sites).generic();
    let rows = rows::rows(names, &on_line, &sites, member.cost);
    let whole = ByteSet(u128::MAX);
    let mut words = seen(&sites, &rows.rows, whole, &on_line, names, line_size);
    words.retain(|word| !word.touched.writers().is_empty());
    words
}

/// All that was seen of a word, wherever it is: each thread and use once, with the counts of all lines.
fn together(kind: &[(usize, Seen)]) -> Touched {
    let mut all: Vec<Touch> = Vec::new();
    for touch in kind.iter().flat_map(|(_, word)| &word.touched.touches) {
        let count = touch.count;
        let same = |other: &&mut Touch| Touch { count, ..**other } == *touch;
        match all.iter_mut().find(same) {
            Some(known) => known.count = known.count.saturating_add(count),
            None => all.push(*touch),
        }
    }
    Touched {
        touches: all,
        named: kind.iter().find_map(|(_, word)| word.touched.named),
    }
}

/// Each word of the name is written by one thread, and enough was seen to tell.
fn have_one_writer(kind: &[(usize, Seen)]) -> bool {
    let again = kind.iter().map(|(_, word)| {
        let stores = word.touched.stored_times();
        stores.saturating_sub(1).min(MOST_AGAIN)
    });
    kind.iter()
        .all(|(_, word)| word.touched.writers().len() < 2)
        && again.sum::<u64>() >= TELLING
}

/// What words of one name are, where each line is judged by itself.
#[derive(Clone, Copy)]
struct Apart {
    role: Role,
    /// Threads on the first that is so.
    writers: usize,
    readers: usize,
    /// Lines where it is so.
    lines: usize,
}

/// For each name, what most of its words are.
fn apart(kinds: &Kinds) -> BTreeMap<Option<String>, Apart> {
    let mut lines: BTreeMap<usize, Vec<(&Option<String>, &Touched)>> = BTreeMap::new();
    for (name, kind) in kinds {
        for (line, word) in kind.iter().filter(|(_, word)| word.touched.is_shared()) {
            lines.entry(*line).or_default().push((name, &word.touched));
        }
    }
    let mut found: BTreeMap<Option<String>, Vec<Apart>> = BTreeMap::new();
    for words in lines.values() {
        let touched: Vec<Touched> = words.iter().map(|(_, word)| (*word).clone()).collect();
        for ((name, word), role) in words.iter().zip(roles(&touched)) {
            let found = found.entry((*name).clone()).or_default();
            match found.iter_mut().find(|apart| apart.role == role) {
                Some(apart) => apart.lines += 1,
                None => found.push(Apart {
                    role,
                    writers: word.writers().len(),
                    readers: word.readers().len(),
                    lines: 1,
                }),
            }
        }
    }
    let most = |found: Vec<Apart>| found.into_iter().rev().max_by_key(|apart| apart.lines);
    let most = found
        .into_iter()
        .map(|(name, found)| Some((name, most(found)?)));
    most.flatten().collect()
}
