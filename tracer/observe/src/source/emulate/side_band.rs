//! The plugin's log: which threads there are and what is mapped, as context of the stream.

use std::{
    collections::VecDeque,
    sync::atomic::Ordering::{Acquire, Relaxed, Release},
};

use super::guest_maps::GuestMaps;
use crate::{
    access::{Pid, Tid},
    event::{ContextKind, path_text},
    sys::emulator_layout::{ENTRY_WORDS, LOG_WORDS, Log, Shared, entry},
};

/// Bytes of a thread's name in the kernel, without the zero at the end.
const NAME_BYTES: usize = 15;

/// What the log told, until its time has come.
pub(super) struct SideBand {
    pid: Pid,
    /// Name that QEMU gives its own threads, and so all that nobody named.
    emulator: String,
    /// What they are called instead.
    program: String,
    maps: GuestMaps,
    waiting: VecDeque<(u64, ContextKind)>,
    /// Stack and thread pointers, as far as they are known.
    threads: Vec<Pointers>,
    /// The process's first thread was seen.
    begun: bool,
    /// How the process came to be, until its time is known.
    origin: Option<ContextKind>,
}

#[derive(Clone, Copy, Default)]
struct Pointers {
    tid: u32,
    sp: Option<u64>,
    tp: Option<u64>,
}

impl SideBand {
    /// Of a process that runs `program` in `emulator`, by their file names.
    pub(super) fn new(pid: Pid, emulator: &str, program: &str) -> SideBand {
        SideBand {
            pid,
            emulator: cut(emulator),
            program: cut(program),
            maps: GuestMaps::default(),
            waiting: VecDeque::new(),
            threads: Vec::new(),
            begun: false,
            origin: None,
        }
    }

    /// Of a process that this one forked.
    pub(super) fn forked(&self, child: Pid) -> SideBand {
        SideBand {
            pid: child,
            emulator: self.emulator.clone(),
            program: self.program.clone(),
            maps: self.maps.clone(),
            waiting: VecDeque::new(),
            threads: Vec::new(),
            begun: false,
            origin: Some(ContextKind::Fork {
                pid: child,
                tid: Tid(child.0),
                parent_pid: self.pid,
            }),
        }
    }

    /// Of the same process, which became another program.
    pub(super) fn became(&self, program: &str) -> SideBand {
        let pid = self.pid;
        let program = cut(program);
        SideBand {
            origin: Some(ContextKind::Comm {
                pid,
                tid: Tid(pid.0),
                comm: program.clone(),
                exec: true,
            }),
            ..SideBand::new(pid, &self.emulator, &program)
        }
    }

    /// Whether all was passed on.
    pub(super) fn is_through(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The process has ended.
    pub(super) fn ended(&mut self, tsc: u64) {
        let (pid, tid) = (self.pid, Tid(self.pid.0));
        self.waiting
            .push_back((tsc, ContextKind::Exit { pid, tid }));
    }

    /// Takes what the log has.
    pub(super) fn read(&mut self, shared: &Shared) {
        while let Some(entry) = next(&shared.log) {
            let tsc = entry.tsc;
            for kind in self.meaning(&entry) {
                self.waiting.push_back((tsc, kind));
            }
        }
    }

    /// Passes on what happened up to `limit`, in order.
    pub(super) fn pass(&mut self, limit: u64, mut take: impl FnMut(u64, ContextKind)) {
        while self.waiting.front().is_some_and(|(tsc, _)| *tsc <= limit) {
            if let Some((tsc, kind)) = self.waiting.pop_front() {
                take(tsc, kind);
            }
        }
    }

    /// An instruction at this address was executed: what it lies in is code, though the emulator maps it as data.
    pub(super) fn executed(&mut self, ip: u64) -> Option<ContextKind> {
        let mapping = self.maps.mark_executable(ip)?;
        Some(ContextKind::Mapping {
            pid: self.pid,
            mapping,
        })
    }

    /// Whether the thread's stack is not known yet.
    pub(super) fn lacks_stack(&self, processor: u32) -> bool {
        let thread = self.threads.get(processor as usize);
        thread.is_none_or(|thread| thread.sp.is_none())
    }

    /// A thread used its stack pointer, which was about here.
    pub(super) fn has_stack(&mut self, processor: u32, tid: u32, sp: u64) -> Vec<ContextKind> {
        let thread = self.thread(processor);
        thread.tid = tid;
        thread.sp = Some(sp);
        let thread = *thread;
        let mut told = Vec::new();
        if processor == 0 {
            let mapping = self.maps.name_stack(sp);
            told.extend(mapping.map(|mapping| ContextKind::Mapping {
                pid: self.pid,
                mapping,
            }));
        }
        told.extend(self.pointers(thread));
        told
    }

    fn thread(&mut self, processor: u32) -> &mut Pointers {
        let at = processor as usize;
        if self.threads.len() <= at {
            self.threads.resize(at + 1, Pointers::default());
        }
        &mut self.threads[at]
    }

    fn pointers(&self, thread: Pointers) -> Option<ContextKind> {
        Some(ContextKind::Thread {
            pid: self.pid,
            tid: Tid(thread.tid),
            sp: thread.sp?,
            tp: thread.tp,
        })
    }

    fn named(&self, tid: u32, name: &str) -> ContextKind {
        let comm = if name == self.emulator {
            &self.program
        } else {
            name
        };
        ContextKind::Comm {
            pid: self.pid,
            tid: Tid(tid),
            comm: comm.to_owned(),
            exec: false,
        }
    }

    fn meaning(&mut self, entry: &Entry) -> Vec<ContextKind> {
        let pid = self.pid;
        let [first, second, _] = entry.numbers;
        let tid = first as u32;
        match entry.kind {
            entry::BASELINE => {
                self.maps.baseline(&entry.text);
                self.origin.take().into_iter().collect()
            }
            entry::MAPS => self.mapped(&entry.text),
            entry::BREAK => {
                let mapping = self.maps.moved_break(first);
                let told = mapping.map(|mapping| ContextKind::Mapping { pid, mapping });
                told.into_iter().collect()
            }
            entry::THREAD => {
                self.thread(second as u32).tid = tid;
                let comm = self.named(tid, &entry.text);
                // The first thread is the process.
                let first = !std::mem::replace(&mut self.begun, true) || tid == pid.0;
                let fork = ContextKind::Fork {
                    pid,
                    tid: Tid(tid),
                    parent_pid: pid,
                };
                (!first).then_some(fork).into_iter().chain([comm]).collect()
            }
            entry::NAME => vec![self.named(tid, &entry.text)],
            entry::POINTER => self.has_pointer(tid, second).into_iter().collect(),
            entry::EXIT => {
                let comm = self.named(tid, &entry.text);
                vec![comm, ContextKind::Exit { pid, tid: Tid(tid) }]
            }
            _ => Vec::new(),
        }
    }

    fn mapped(&mut self, text: &str) -> Vec<ContextKind> {
        let pid = self.pid;
        let new = self.maps.update(text).into_iter();
        new.map(|mapping| ContextKind::Mapping { pid, mapping })
            .collect()
    }

    /// A thread that was not seen yet is told when it shows its stack: its number is not known here.
    fn has_pointer(&mut self, tid: u32, tp: u64) -> Option<ContextKind> {
        let thread = self
            .threads
            .iter_mut()
            .rev()
            .find(|thread| thread.tid == tid)?;
        thread.tp = Some(tp);
        let thread = *thread;
        self.pointers(thread)
    }
}

fn cut(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// One entry of the log.
struct Entry {
    kind: u32,
    tsc: u64,
    numbers: [u64; 3],
    text: String,
}

fn next(log: &Log) -> Option<Entry> {
    let head = log.head.load(Acquire);
    let tail = log.tail.load(Relaxed);
    if head == tail {
        return None;
    }
    let word = |n: u64| log.words[(tail + n) as usize % LOG_WORDS].load(Relaxed);
    let first = word(0);
    // The ring is no longer than this, whatever it says.
    let len = ((first >> 32) as usize).min((LOG_WORDS - ENTRY_WORDS) * 8);
    let text_words = len.div_ceil(8);
    let mut text = Vec::with_capacity(text_words * 8);
    for n in 0..text_words {
        text.extend(word((ENTRY_WORDS + n) as u64).to_le_bytes());
    }
    text.truncate(len);
    let entry = Entry {
        kind: first as u32,
        tsc: word(1),
        numbers: [word(2), word(3), word(4)],
        text: path_text::text(&text),
    };
    log.tail
        .store(tail + (ENTRY_WORDS + text_words) as u64, Release);
    Some(entry)
}
