//! Programs with known answers, and what must hold for all programs.
//!
//! One language for programs ([`programs`]), four observers: samples by time ([`samples`]), samples by a PMU ([`pmu`]),
//! watch windows, and an emulator's complete order. What all observers see alike is in [`known`]; what only one can
//! see, in that one's file.

mod answers;
mod complete;
mod complete_programs;
mod known;
mod pmu;
mod pmu_programs;
mod programs;
mod sampled_laws;
mod sampled_programs;
mod samples;
mod subject_programs;
mod watched_laws;
mod watched_pairs;
mod watched_programs;
