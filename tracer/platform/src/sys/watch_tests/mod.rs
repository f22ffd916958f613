//! Watch windows on the running kernel. Where the user cannot, each test says so and returns.

mod kept;
mod others;
mod stage;
mod windows;
