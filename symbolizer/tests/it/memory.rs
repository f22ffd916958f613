//! What a module keeps is bounded, and the bound changes no answer.

use std::sync::Arc;

use symbolizer::{Allowance, Missing, Module, NoDebugFiles};

use crate::toolchain::{build, parse};

fn own_bytes() -> Vec<u8> {
    std::fs::read(std::env::current_exe().unwrap()).unwrap()
}

/// Addresses all over the code, each far from the one before.
fn addresses(module: &Module) -> Vec<u64> {
    let text = module.section_range(".text").unwrap();
    let length = text.end - text.start;
    (0..3000)
        .map(|step| text.start + step * 104_729 % length)
        .collect()
}

#[test]
fn a_limit_on_memory_is_kept_and_changes_no_answer() {
    const LIMIT: usize = 2 << 20;
    let free = parse(own_bytes());
    let bounded = parse(own_bytes());
    bounded.set_memory_limit(LIMIT);
    let mut most = 0;
    // Twice: what was dropped is decoded again, which a file may cause as often as it is asked for.
    for _ in 0..2 {
        for &address in &addresses(&free) {
            assert_eq!(
                bounded.frames(address),
                free.frames(address),
                "{address:#x}"
            );
            most = most.max(bounded.decoded_bytes());
        }
    }
    assert!(most <= LIMIT, "{most} bytes held");
    assert!(most > LIMIT / 4, "only {most} bytes held: nothing is kept");
    // The negative twin: without the limit it takes more, so that something was dropped.
    assert!(free.decoded_bytes() > 2 * LIMIT, "{}", free.decoded_bytes());
}

#[test]
fn with_no_memory_at_all_every_answer_is_decoded_anew() {
    let free = parse(own_bytes());
    let bounded = parse(own_bytes());
    bounded.set_memory_limit(0);
    for &address in addresses(&free).iter().take(50) {
        assert_eq!(
            bounded.frames(address),
            free.frames(address),
            "{address:#x}"
        );
        assert_eq!(bounded.decoded_bytes(), 0);
    }
}

/// A program whose debug info is compressed, and what it takes when it is not.
fn compressed() -> (Vec<u8>, usize) {
    let built = build("cc", "data.c", &["-g", "-gz=zlib"]).unwrap();
    let module = built.module();
    let before = module.held_bytes();
    assert!(!module.source_files().is_empty());
    (built.bytes(), module.held_bytes() - before)
}

fn within(bytes: &[u8], budget: &Allowance) -> Module {
    let bytes = Arc::new(bytes.to_vec());
    Module::parse_within(bytes, Box::new(NoDebugFiles), budget).unwrap()
}

#[test]
fn sections_are_not_decompressed_beyond_the_budget_and_that_is_said() {
    let (bytes, takes) = compressed();
    let enough = Allowance::new(takes);
    let module = within(&bytes, &enough);
    let text = module.section_range(".text").unwrap();
    assert!(!module.source_files().is_empty() && enough.refused() == 0);
    assert!(
        enough.bytes() <= takes && enough.bytes() > takes / 2,
        "{enough:?}"
    );
    drop(module);
    assert_eq!(enough.bytes(), 0);
    let short = Allowance::new(takes / 4);
    let module = within(&bytes, &short);
    assert_eq!(module.frames(text.start).missing, Some(Missing::NoMemory));
    assert!(module.source_files().is_empty());
    assert!(short.refused() > 0 && short.bytes() <= takes / 4);
}

#[test]
fn a_module_is_read_where_another_one_makes_room() {
    let (bytes, takes) = compressed();
    let budget = Allowance::new(takes * 3 / 2);
    let first = Arc::new(std::sync::Mutex::new(within(&bytes, &budget)));
    assert!(!first.lock().unwrap().source_files().is_empty());
    let second = within(&bytes, &budget);
    assert!(second.source_files().is_empty());
    // Asked to, the first one starts afresh, and answers as before.
    budget.when_short({
        let first = first.clone();
        move |_, _| {
            let mut first = first.lock().unwrap();
            *first = first.afresh().unwrap();
        }
    });
    let third = within(&bytes, &budget);
    assert_eq!(
        third.source_files().len(),
        within(&bytes, &Allowance::default()).source_files().len()
    );
    drop((second, third));
    assert!(!first.lock().unwrap().source_files().is_empty());
}
