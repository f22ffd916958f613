//! How to load a line that is going to be stored to: with ownership, so that the store needs no request of
//! its own.

/// Its stable name in reports.
pub const FETCH_FOR_OWNERSHIP: &str = "fetch-for-ownership";

/// x86-64: prefetch with intent to write (AMD64 Architecture Programmer's Manual volume 3, PREFETCHW; in
/// Intel processors since Broadwell, CPUID.80000001H:ECX.PREFETCHW).
pub const X86: &str = "prefetchw";

/// aarch64: prefetch for store into the first level, to be kept (Arm ARM C6.2, PRFM).
pub const AARCH64: &str = "prfm pstl1keep";

/// What the compiler, or the programmer, should do about a load. `load` and `store` name the places.
pub fn sentence(load: &str, store: &str) -> String {
    format!(
        "The load at {load} is followed by a store to the same line at {store}. Fetch the line for ownership \
         before the load (`__builtin_prefetch(address, 1)` in C and C++, `{X86}` on x86-64, `{AARCH64}` on \
         aarch64): then one request brings what now takes two."
    )
}
