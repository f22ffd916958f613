//! Fed accesses in time order, gives lines.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

use super::{
    budget::SpillOptions,
    error::SpillError,
    file::SpillFile,
    merge::merge,
    run::{RANGES, Run},
};
use crate::{
    access::{Access, Cost, LineKey, LineSize, Place, SpaceId},
    analysis::{AnalysisOptions, Line, LineFold, Objects, SortRecord, Totals},
};

/// A run that was sorted, the memory that its accesses had, and the file if there is one by now.
type Sorted = Result<(Run, Vec<SortRecord>, Option<SpillFile>), SpillError>;

/// Accesses being fed.
#[derive(Debug)]
pub struct SortedLines {
    fold: LineFold,
    options: SpillOptions,
    objects: Objects,
    totals: Totals,
    run_len: usize,
    filling: Vec<SortRecord>,
    spare: Vec<SortRecord>,
    sorting: Option<JoinHandle<Sorted>>,
    /// In the order in which they were fed.
    runs: Vec<Run>,
    /// Bytes of further runs that may stay in memory.
    memory_left: u64,
    /// Where the next run goes in the file.
    file_end: u64,
    file: Option<SpillFile>,
    failed: Option<SpillError>,
}

impl SortedLines {
    /// Nothing fed yet. Of the analysis' options, its bounds are none here.
    pub fn new(analysis: &AnalysisOptions, options: SpillOptions) -> SortedLines {
        SortedLines {
            fold: LineFold::new(analysis),
            objects: Objects::default(),
            totals: Totals::default(),
            run_len: options.budget.run_len(),
            filling: Vec::new(),
            spare: Vec::new(),
            sorting: None,
            runs: Vec::new(),
            memory_left: options.budget.kept_bytes(),
            file_end: 0,
            file: None,
            failed: None,
            options,
        }
    }

    /// Takes an access at its resolved place, with the cost on each line where that is known; none for that of the access.
    /// `space` is the address space of the executing process. After a failure nothing more is taken;
    /// [`finish`](SortedLines::finish) says it.
    pub fn observe_costed(
        &mut self,
        access: &Access,
        place: Place,
        space: SpaceId,
        costs: &[Cost<u32>],
    ) {
        self.totals.count(access, costs);
        let (filling, fold) = (&mut self.filling, &self.fold);
        let before = filling.len();
        fold.split(access, place, space, costs, &mut self.objects, |part| {
            filling.push(part);
        });
        let parts = (self.filling.len() - before) as u64;
        self.totals.touches =
            (self.totals.touches).saturating_add(parts.saturating_mul(access.executions()));
        // An access of the largest size has a thousand parts: the buffer may exceed the run by as many.
        if self.filling.len() >= self.run_len {
            self.hand_over();
        }
    }

    /// Whether something failed, so that feeding more is in vain.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// What was fed; nothing is ever dropped.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Line size that lines are told apart by.
    pub fn line_size(&self) -> LineSize {
        self.fold.line_size()
    }

    /// Has the full buffer sorted while the next one is filled.
    fn hand_over(&mut self) {
        if let Err(error) = self.try_hand_over() {
            self.failed.get_or_insert(error);
        }
        if self.failed.is_some() {
            self.filling.clear();
        }
    }

    fn try_hand_over(&mut self) -> Result<(), SpillError> {
        self.join()?;
        let spare = std::mem::take(&mut self.spare);
        let mut full = std::mem::replace(&mut self.filling, spare);
        self.filling.reserve(self.run_len);
        let (memory_left, file_end) = (self.memory_left, self.file_end);
        let (file, options) = (self.file.clone(), self.options.clone());
        let sort = move || {
            let mut run = Run::sort(&full);
            full.clear();
            if run.len() <= memory_left {
                return Ok((run, full, file));
            }
            let file = match file {
                Some(file) => file,
                None => SpillFile::create(&options.directories, options.budget.0)?,
            };
            run = run.into_file(&file, file_end)?;
            Ok((run, full, Some(file)))
        };
        let thread = thread::Builder::new().name("sort".to_owned()).spawn(sort);
        self.sorting = Some(thread.map_err(SpillError::Thread)?);
        Ok(())
    }

    /// Waits for the run that is being sorted.
    fn join(&mut self) -> Result<(), SpillError> {
        let Some(sorting) = self.sorting.take() else {
            return Ok(());
        };
        match sorting.join() {
            Ok(sorted) => {
                let (run, spare, file) = sorted?;
                self.file = file;
                if run.is_in_file() {
                    self.file_end += run.len();
                } else {
                    self.memory_left = self.memory_left.saturating_sub(run.len());
                }
                self.runs.push(run);
                self.spare = spare;
                Ok(())
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Ends feeding. The first failure, if there was one.
    pub fn finish(mut self) -> Result<FedLines, SpillError> {
        let joined = self.join();
        if let Some(error) = self.failed {
            return Err(error);
        }
        joined?;
        if !self.filling.is_empty() {
            self.runs.push(Run::sort(&self.filling));
        }
        Ok(FedLines {
            fold: self.fold,
            options: self.options,
            objects: self.objects,
            totals: self.totals,
            runs: self.runs,
            file: self.file,
        })
    }
}

/// All that was fed.
#[derive(Debug)]
pub struct FedLines {
    fold: LineFold,
    options: SpillOptions,
    objects: Objects,
    totals: Totals,
    runs: Vec<Run>,
    file: Option<SpillFile>,
}

impl FedLines {
    /// What was fed.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Runs that did not fit in memory.
    #[cfg(test)]
    pub(super) fn spilled_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.is_in_file()).count()
    }

    /// Folds every line and gives it to one of the visitors, on several threads; each visitor has lines of its own,
    /// in no particular order. At least one visitor comes back.
    pub fn each_line<V, T>(
        self,
        visitor: impl Fn() -> V + Sync,
        visit: impl Fn(&mut V, LineKey, &Line) + Sync,
        finish: impl Fn(V) -> T + Sync,
    ) -> Result<Vec<T>, SpillError>
    where
        T: Send,
    {
        let threads = self.options.threads.clamp(1, RANGES);
        let buffer_bytes = self.options.budget.read_buffer(self.runs.len(), threads);
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<SpillError>> = Mutex::new(None);
        let work = || {
            let mut visitor = visitor();
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed);
                if range >= RANGES {
                    break;
                }
                let lines = |key, line: &Line| visit(&mut visitor, key, line);
                if let Err(error) = self.fold_range(range, buffer_bytes, lines) {
                    next.store(RANGES, Ordering::Relaxed);
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                }
            }
            finish(visitor)
        };
        let visited = thread::scope(|scope| {
            let mut others = Vec::new();
            for _ in 1..threads {
                // Without a thread, the others do its part.
                let spawned = thread::Builder::new().spawn_scoped(scope, work);
                others.extend(spawned.ok());
            }
            let mut visited = vec![work()];
            for other in others {
                match other.join() {
                    Ok(result) => visited.push(result),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            visited
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(visited), Err)
    }

    fn fold_range(
        &self,
        range: usize,
        buffer_bytes: usize,
        mut lines: impl FnMut(LineKey, &Line),
    ) -> Result<(), SpillError> {
        let fold = &self.fold;
        let mut open: Option<(LineKey, Line)> = None;
        let file = self.file.as_ref();
        merge(
            &self.runs,
            range,
            file,
            buffer_bytes,
            |access| match access {
                Some(access) => {
                    let (_, line) = open.get_or_insert_with(|| {
                        let key = access.key(fold.line_size(), &self.objects);
                        (key, fold.start(access))
                    });
                    fold.observe(line, access);
                }
                None => {
                    if let Some((key, line)) = open.take() {
                        lines(key, &line);
                    }
                }
            },
        )
    }
}
