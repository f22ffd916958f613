//! What a module keeps is bounded, and the bound changes no answer.

use symbolizer::Module;

use crate::toolchain::parse;

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
