//! Pairs as text.

use super::{
    access_text,
    model::{Pair, PairSide},
    pairs::place,
    shorten,
    style::{Role, TextOptions},
    table::Column,
    text::Lines,
};
use crate::number::{count, grouped, percent};

/// Of a list with a pair in each line: its id, what it is of, where its sides are, how often.
pub(super) const COLUMNS: [Column; 4] = [
    Column::left("", 4, shorten::end),
    Column::left("", 20, shorten::name),
    Column::left("", 30, shorten::end),
    Column::left("", 30, shorten::end),
];

/// What stands there of a pair.
pub(super) fn cells(pair: &Pair, options: TextOptions) -> Vec<String> {
    let what = access_text::full_name(pair.object.spoken(), pair.load.field.as_deref());
    let what = if what.is_empty() {
        format!("line {}", pair.line)
    } else {
        what
    };
    let places = format!(
        "{} then {}",
        place(&pair.load.code),
        place(&pair.store.code)
    );
    [pair.id.clone(), what, places, times(pair)]
        .map(|cell| options.name(&cell))
        .into()
}

/// `1,234 times, 98.0 % of its executions, in 18 lines`.
fn times(pair: &Pair) -> String {
    let share = pair.share_of_load.map_or_else(String::new, |share| {
        format!(", {} of its executions", percent(share))
    });
    let lines = if pair.lines > 1 {
        format!(", in {} lines", grouped(pair.lines))
    } else {
        String::new()
    };
    format!("{}{share}{lines}", count(pair.count, "time", "times"))
}

/// Prints a pair: what follows what, how often, and what to do.
pub(super) fn print(out: &mut Lines, pair: &Pair) {
    let verdict = if pair.hint.is_some() {
        out.options.paint(Role::Good, "FETCH FOR OWNERSHIP")
    } else {
        "leave as it is".to_owned()
    };
    out.line(&format!("{}  {verdict}", pair.id));
    let label = if pair.same_instruction {
        " both "
    } else {
        " load "
    };
    out.prose(label, &side(pair, &pair.load));
    if !pair.same_instruction {
        out.prose(" then ", &side(pair, &pair.store));
    }
    let by = count(pair.threads, "thread", "threads");
    let mut seen = format!("{}, by {by}", times(pair));
    if !pair.same_instruction {
        seen.push_str(&format!(
            "; {} as neighbours in the line's request log",
            grouped(pair.global_count)
        ));
        let (reads, writes) = (pair.taken.reads, pair.taken.writes);
        if reads + writes > 0 {
            seen.push_str(&format!(
                "; in between, another CPU stored {} and only read {}",
                count(writes, "time", "times"),
                count(reads, "time", "times")
            ));
        }
    }
    if !pair.complete_order {
        seen.push_str(if pair.lines > 1 {
            "; not all of each line was watched at once"
        } else {
            "; not all of the line was watched at once"
        });
    }
    out.prose(" seen ", &format!("{seen}."));
    if let Some(hint) = &pair.hint {
        out.prose("  fix ", &hint.text);
    }
    if let Some(reason) = &pair.no_hint_because {
        out.prose("  why ", &format!("{reason}."));
    }
}

/// `counters.hits in bump, counters.c:31`.
fn side(pair: &Pair, side: &PairSide) -> String {
    let what = access_text::full_name(pair.object.spoken(), side.field.as_deref());
    let code = &side.code;
    let function = code.inlined.first().or(code.symbol.as_ref());
    let function = function.map_or_else(String::new, |name| format!("{name}, "));
    let what = if what.is_empty() {
        format!(
            "bytes {} to {} of line {}",
            side.offset,
            u16::from(side.offset) + side.size - 1,
            pair.line
        )
    } else {
        what
    };
    format!("{what} in {function}{}", place(code))
}
