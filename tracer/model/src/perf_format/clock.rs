//! Clocks by number and name: `CLOCK_*` of include/uapi/linux/time.h.

const CLOCKS: [(u32, &str); 5] = [
    (0, "CLOCK_REALTIME"),
    (1, "CLOCK_MONOTONIC"),
    (4, "CLOCK_MONOTONIC_RAW"),
    (7, "CLOCK_BOOTTIME"),
    (11, "CLOCK_TAI"),
];

/// The clock's name.
pub fn name(number: u32) -> Option<&'static str> {
    let found = CLOCKS.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}

/// The clock of that name.
pub fn number(name: &str) -> Option<u32> {
    let found = CLOCKS.iter().find(|(_, known)| *known == name);
    found.map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    #[test]
    fn clocks_have_the_numbers_of_the_c_library() {
        for (number, name) in [
            (libc::CLOCK_REALTIME, "CLOCK_REALTIME"),
            (libc::CLOCK_MONOTONIC, "CLOCK_MONOTONIC"),
            (libc::CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"),
            (libc::CLOCK_BOOTTIME, "CLOCK_BOOTTIME"),
            (libc::CLOCK_TAI, "CLOCK_TAI"),
        ] {
            assert_eq!(super::name(number as u32), Some(name));
            assert_eq!(super::number(name), Some(number as u32));
        }
        assert_eq!(super::name(99), None);
        assert_eq!(super::number("perf_clock"), None);
    }
}
