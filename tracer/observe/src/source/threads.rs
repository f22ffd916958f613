//! Where threads keep their stacks and thread-local storage, told once and again when it changes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{live::Live, local_storage::LocalStorage};
use crate::{
    access::{Pid, Tid},
    event::{Batch, Context, ContextKind},
    module::ModuleStore,
    space::MappedFiles,
    sys::process_memory,
};

/// A stack pointer that moved by more than this is told anew (another stack, a coroutine).
const STACK_MOVED_BYTES: u64 = 1 << 20;

/// What was last told of a thread.
struct ToldThread {
    sp: u64,
    tp: Option<u64>,
}

/// A thread as a sample of user mode shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledThread {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Stack pointer.
    pub sp: u64,
    /// Thread pointer, where known.
    pub tp: Option<u64>,
}

/// What was told of all threads.
pub(super) struct Threads {
    told: FxHashMap<Tid, ToldThread>,
    local_storage: LocalStorage,
}

impl Threads {
    /// Nothing told yet.
    pub(super) fn new(modules: Arc<ModuleStore>) -> Threads {
        Threads {
            told: FxHashMap::default(),
            local_storage: LocalStorage::new(modules),
        }
    }

    /// Threads ended.
    pub(super) fn forget(&mut self, ended: &[Tid]) {
        for tid in ended {
            self.told.remove(tid);
            self.local_storage.forget(*tid);
        }
    }

    /// Forgets what is known of other files than these.
    pub(super) fn keep_files(&mut self, files: &MappedFiles) {
        self.local_storage.keep_files(files);
    }

    /// Tells what is news of a thread.
    pub(super) fn tell(
        &mut self,
        time_ns: u64,
        thread: SampledThread,
        live: &mut Live,
        batch: &mut Batch,
    ) {
        if let Some(context) = self.thread_context(time_ns, thread) {
            live.tell(context, batch);
        }
        if let Some(tp) = thread.tp {
            let thread = (thread.pid, thread.tid, tp);
            self.tell_local_storage(time_ns, thread, live, batch);
        }
    }

    /// News of where the thread keeps its stack and its local storage, if it is news.
    fn thread_context(&mut self, time_ns: u64, thread: SampledThread) -> Option<Context> {
        let SampledThread { pid, tid, sp, tp } = thread;
        let told = self.told.get(&tid);
        if told.is_some_and(|t| t.tp == tp && t.sp.abs_diff(sp) < STACK_MOVED_BYTES) {
            return None;
        }
        self.told.insert(tid, ToldThread { sp, tp });
        Some(Context {
            time_ns,
            kind: ContextKind::Thread { pid, tid, sp, tp },
        })
    }

    /// News of where the thread has its thread-local variables.
    fn tell_local_storage(
        &mut self,
        time_ns: u64,
        thread: (Pid, Tid, u64),
        live: &mut Live,
        batch: &mut Batch,
    ) {
        let (pid, tid, tp) = thread;
        if !self.local_storage.is_due(time_ns, tid, tp) {
            return;
        }
        let mut read = |address| process_memory::read_word(pid, address);
        let blocks = (self.local_storage).look(time_ns, thread, &live.spaces, &mut read);
        for block in blocks {
            let kind = ContextKind::LocalStorage { pid, tid, block };
            live.tell(Context { time_ns, kind }, batch);
        }
    }
}
