//! Lives of processes that were recorded.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, ensure};
use cohtrace::{
    access::Pid,
    event::{Batch, ContextKind, Due},
    session::SessionReader,
};

use crate::churn::{Life, MOST_ACCESSES};

/// Lives that are told of one recording.
const MOST_LIVES: usize = 100;

/// The processes of a session that became another program and ended while it was recorded.
pub(crate) fn lives(session: &Path) -> Result<Vec<Life>> {
    let mut reader = SessionReader::open(session)?;
    let mut batch = Batch::default();
    let (mut open, mut lives) = (BTreeMap::<Pid, Life>::new(), Vec::new());
    while lives.len() < MOST_LIVES && reader.next_batch(&mut batch)? {
        for due in batch.in_order() {
            match due {
                Due::Context(context) => note(&context.kind, &mut open, &mut lives),
                Due::Access(access) => {
                    let life = open.get_mut(&access.pid);
                    if let Some(life) = life.filter(|life| life.accesses.len() < MOST_ACCESSES) {
                        life.accesses.push(*access);
                    }
                }
                Due::Allocation(_) => {}
            }
        }
        batch.clear();
    }
    lives.retain(|life: &Life| !life.mappings.is_empty() && !life.accesses.is_empty());
    ensure!(
        !lives.is_empty(),
        "no process began and ended in {}",
        session.display()
    );
    Ok(lives)
}

fn note(kind: &ContextKind, open: &mut BTreeMap<Pid, Life>, lives: &mut Vec<Life>) {
    match kind {
        ContextKind::Comm {
            pid, exec: true, ..
        } => {
            let life = Life {
                mappings: Vec::new(),
                accesses: Vec::new(),
            };
            open.insert(*pid, life);
        }
        ContextKind::Mapping { pid, mapping } => {
            if let Some(life) = open.get_mut(pid) {
                life.mappings.push(mapping.clone());
            }
        }
        ContextKind::Exit { pid, tid } if pid.0 == tid.0 => lives.extend(open.remove(pid)),
        _ => {}
    }
}
