//! How often instructions were executed, of code that this was asked of: also those that access no memory.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::{Emulator, instructions::unpack};

/// An instruction, and its executions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Its address.
    pub ip: u64,
    /// Its bytes, at most 15.
    pub bytes: Vec<u8>,
    /// Executions by all threads.
    pub times: u64,
}

impl Emulator {
    /// Executions so far of the code that [`counting`](Emulator::counting) named, in the program's first process. One that
    /// was translated several times may be there several times.
    pub fn executed(&self) -> Vec<Executed> {
        let first = &self.memory[0];
        let described = first.header.instructions.load(Acquire);
        let executed = first.instructions.iter().take(described as usize);
        executed
            .filter_map(|instruction| {
                let times = instruction.executions.load(Relaxed);
                let code = &instruction.code;
                let (bytes, len) = unpack([code[0].load(Relaxed), code[1].load(Relaxed)]);
                (times > 0).then(|| Executed {
                    ip: instruction.ip.load(Relaxed),
                    bytes: bytes[..len].to_vec(),
                    times,
                })
            })
            .collect()
    }
}
