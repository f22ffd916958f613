//! The thread that writes a session while the next batch is observed.

use std::{
    mem,
    sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    thread::{Builder, JoinHandle},
};

use anyhow::{Context as _, Result, anyhow};

use super::rights;
use crate::{
    event::Batch,
    session::{Meta, SessionError, SessionWriter},
};

/// Batches that wait at most, while one is written and one is filled: about as many accesses of an emulated program as
/// it makes while a segment is encoded.
const WAITING: usize = 8;

/// What the thread leaves: the writer, and what failed.
type Left = (SessionWriter, Result<(), SessionError>);

/// A session's writer at work.
pub(super) struct Writer {
    /// `None` when no more is taken.
    full: Option<SyncSender<Batch>>,
    written: Receiver<Batch>,
    thread: Option<JoinHandle<Left>>,
    /// Back from the thread, whose failure was told.
    failed: Option<SessionWriter>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(writer: SessionWriter) -> Result<Writer> {
        let (full, batches) = sync_channel(WAITING);
        let (back, written) = channel();
        let thread = Builder::new()
            .name("write".to_owned())
            .spawn(move || write(writer, &batches, &back))
            .context("starting the thread that writes the session")?;
        Ok(Writer {
            full: Some(full),
            written,
            thread: Some(thread),
            failed: None,
        })
    }

    /// Hands over a batch, and leaves an empty one. An error is told once, when the thread has met it.
    pub(super) fn append(&mut self, batch: &mut Batch) -> Result<()> {
        let next = self.written.try_recv().unwrap_or_default();
        let batch = mem::replace(batch, next);
        let taken = self
            .full
            .as_ref()
            .is_some_and(|full| full.send(batch).is_ok());
        if !taken && self.failed.is_none() {
            let (writer, result) = self.join()?;
            self.failed = Some(writer);
            result?;
        }
        Ok(())
    }

    /// Waits until all is on disk, and ends the session. What failed before and was not told is told now.
    pub(super) fn finish(mut self, meta: Meta) -> Result<()> {
        let (writer, result) = match self.failed.take() {
            Some(writer) => (writer, Ok(())),
            None => self.join()?,
        };
        let finished = writer.finish(meta);
        result?;
        Ok(finished?)
    }

    fn join(&mut self) -> Result<Left> {
        self.full = None;
        let left = self.thread.take().and_then(|thread| thread.join().ok());
        left.ok_or_else(|| anyhow!("the thread that writes the session panicked"))
    }
}

fn write(mut writer: SessionWriter, batches: &Receiver<Batch>, back: &Sender<Batch>) -> Left {
    if let Err(source) = rights::write_files() {
        let path = writer.path().to_owned();
        let kept_segments = 0;
        return (
            writer,
            Err(SessionError::Write {
                path,
                kept_segments,
                source,
            }),
        );
    }
    for mut batch in batches {
        if let Err(error) = writer.append(&batch) {
            return (writer, Err(error));
        }
        batch.clear();
        // At the end nobody waits for it.
        let _ = back.send(batch);
    }
    (writer, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        access::{Access, Basis, Cpu, Op, Pid, Tid},
        session::WriterOptions,
    };

    fn batch(time_ns: u64) -> Batch {
        let access = Access {
            time_ns,
            addr: 0x1000,
            ip: 0x40_1000,
            pid: Pid(1),
            tid: Tid(1),
            cpu: Cpu(0),
            size: 8,
            op: Op::Load,
            basis: Basis::Emulated,
            locked: false,
            kernel: false,
            ..Access::BLANK
        };
        Batch {
            accesses: vec![access],
            ..Batch::default()
        }
    }

    fn writer(path: &std::path::Path, segment_rows: usize) -> Writer {
        let options = WriterOptions {
            segment_rows,
            ..WriterOptions::default()
        };
        Writer::start(SessionWriter::create(path, Meta::new(), &options).unwrap()).unwrap()
    }

    #[test]
    fn all_batches_are_on_disk_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.coh");
        let mut writer = writer(&path, 1);
        for n in 0..20 {
            let mut batch = batch(n);
            writer.append(&mut batch).unwrap();
            assert!(batch.is_empty());
        }
        writer.finish(Meta::new()).unwrap();
        assert_eq!(
            std::fs::read_dir(path.join("accesses")).unwrap().count(),
            20
        );
    }

    #[test]
    fn a_failure_is_told_once_whenever_it_shows() {
        for batches in [1, 20] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.coh");
            let mut writer = writer(&path, 1);
            std::fs::remove_dir_all(&path).unwrap();
            let results: Vec<_> = (0..batches).map(|n| writer.append(&mut batch(n))).collect();
            let told = results.iter().filter(|result| result.is_err()).count();
            let at_the_end = writer.finish(Meta::new()).is_err();
            assert!(told <= 1);
            assert!(told == 1 || at_the_end);
        }
    }
}
