//! Counts of data source words whose meaning is known.

use super::{Counts, Event};

/// Asserts that exactly these are counted once.
fn check(word: u64, addr: u64, mapped: bool, events: &[Event]) {
    let counts = Counts::of(word, addr, mapped);
    let expected = |event: Event| u64::from(events.contains(&event));
    for event in [
        Event::Records,
        Event::Locked,
        Event::Loads,
        Event::LoadNoAddress,
        Event::LoadL1,
        Event::LoadLlc,
        Event::LocalHitm,
        Event::RemoteHitm,
        Event::RemoteHit,
        Event::LocalDram,
        Event::RemoteDram,
        Event::Exclusive,
        Event::LocalPeer,
        Event::Stores,
        Event::StoreL1Hit,
        Event::StoreNoLevel,
        Event::NoMapping,
        Event::Unparsed,
    ] {
        assert_eq!(counts.get(event), expected(event), "{word:#x} {event:?}");
    }
}

#[test]
fn words_that_perf_printed_are_counted_as_what_it_printed_of_them() {
    use Event::{Exclusive, Loads, LocalDram, LocalHitm, Records, StoreL1Hit, Stores, Unparsed};
    check(0x6_2980_0842, 8, true, &[Records, Loads, LocalHitm]);
    check(0x2_2908_0144, 8, true, &[Records, Stores, StoreL1Hit]);
    check(0x1e_0508_0021, 8, true, &[Records, Unparsed]);
    check(
        0x1a_4908_1042,
        8,
        true,
        &[Records, Loads, LocalDram, Exclusive],
    );
}

#[test]
fn without_address_or_mapping_an_access_is_counted_apart() {
    use Event::{LoadNoAddress, Loads, LocalHitm, NoMapping, Records};
    check(0x6_2980_0842, 0, false, &[Records, Loads, LoadNoAddress]);
    check(
        0x6_2980_0842,
        8,
        false,
        &[Records, Loads, LocalHitm, NoMapping],
    );
}

#[test]
fn an_access_without_a_pmu_is_a_load_or_store_of_unknown_level() {
    use Event::{Loads, Records, StoreNoLevel, Stores, Unparsed};
    let unknown = 1 << 5 | 1 << 19 | 1 << 26 | 0xf << 33;
    check(unknown | 2, 8, true, &[Records, Loads]);
    check(unknown | 4, 8, true, &[Records, Stores, StoreNoLevel]);
    check(unknown | 6, 8, true, &[Records, Loads]);
    check(unknown | 1, 8, true, &[Records, Unparsed]);
    check(0, 8, true, &[Records, Unparsed]);
}
