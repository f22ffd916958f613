//! How often gains that were predicted came true, over all that this user compared: kept by `diff`, told by it and by
//! `validate --event gain`.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::destination;
use crate::{
    finding::Grade,
    report::difference::{Difference, GainChange},
    sys::capabilities::is_root,
};

/// Of root, unless XDG_STATE_HOME names another place; a user's are there, else below the home directory.
const OF_ROOT: &str = "/var/lib/cohtrace";
const NAME: &str = "gains.jsonl";
/// Of a larger file the rest is left out: some hundred thousand comparisons.
const MOST_BYTES: u64 = 32 << 20;

/// One thread's gain, as it was predicted and as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// Which two sessions, which word and thread: what is compared twice counts once.
    of: String,
    grade: String,
    predicted: f64,
    low: f64,
    high: f64,
    real: f64,
}

/// Gains of one grade.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Score {
    /// Threads compared.
    pub compared: u64,
    /// Of those, within a tenth of the real gain.
    pub within_tenth: u64,
    /// Of those, with the real gain between what was said at least and at most.
    pub inside: u64,
    /// Mean of predicted by real.
    pub mean_ratio: f64,
}

/// By the grades' names.
pub(super) type Scores = BTreeMap<String, Score>;

fn place() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let state = match directory("XDG_STATE_HOME") {
        Some(state) => PathBuf::from(state),
        None if is_root() => return Some(Path::new(OF_ROOT).join(NAME)),
        None => PathBuf::from(directory("HOME")?).join(".local/state"),
    };
    Some(state.join("cohtrace").join(NAME))
}

/// Adds what a comparison showed, and tells all scores with it. Nothing is written where nothing was compared.
pub(super) fn keep(difference: &Difference, sessions: &[String; 2]) -> Result<Scores> {
    let path = place().context("there is neither XDG_STATE_HOME nor HOME")?;
    if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.with_context(|| format!("making {}", folder.display()))?;
    }
    let mut known = read(&path)?;
    let new: Vec<Entry> = (difference.gains.iter())
        .map(|gain| entry(gain, sessions))
        .filter(|entry| !known.iter().any(|known| known.of == entry.of))
        .collect();
    let mut lines = String::new();
    for entry in &new {
        lines += &serde_json::to_string(entry).context("writing JSON")?;
        lines.push('\n');
    }
    let cannot = || format!("writing {}", path.display());
    let mut file = destination::append(&path).with_context(cannot)?;
    file.write_all(lines.as_bytes()).with_context(cannot)?;
    known.extend(new);
    Ok(scores(&known))
}

/// All scores; none where nothing was ever compared.
pub(super) fn all() -> Result<Scores> {
    let known = place().map(|path| read(&path)).transpose()?;
    Ok(scores(&known.unwrap_or_default()))
}

fn entry(gain: &GainChange, [before, after]: &[String; 2]) -> Entry {
    Entry {
        of: format!(
            "{before} {after} {} {}",
            gain.word,
            gain.comm.as_deref().unwrap_or_default()
        ),
        grade: gain.grade.name().to_owned(),
        predicted: gain.predicted,
        low: gain.predicted_low,
        high: gain.predicted_high,
        real: gain.real,
    }
}

/// What the file holds. A line that is none of ours, as one that was cut off, is left out.
fn read(path: &Path) -> Result<Vec<Entry>> {
    let cannot = || format!("reading {}", path.display());
    if fs::metadata(path).is_err() {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    (file.take(MOST_BYTES).read_to_end(&mut bytes)).with_context(cannot)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

fn scores(entries: &[Entry]) -> Scores {
    let mut scores = Scores::new();
    let good = entries
        .iter()
        .filter(|entry| entry.real > 0.0 && entry.predicted.is_finite());
    for entry in good {
        let score = scores.entry(entry.grade.clone()).or_default();
        let ratio = entry.predicted / entry.real;
        score.compared += 1;
        score.within_tenth += u64::from((ratio - 1.0).abs() <= 0.1);
        score.inside += u64::from((entry.low..=entry.high).contains(&entry.real));
        score.mean_ratio += (ratio - score.mean_ratio) / score.compared as f64;
    }
    scores
}

/// A line for each grade.
pub(super) fn text(scores: &Scores) -> String {
    let lines = scores.iter().map(|(grade, score)| {
        format!(
            "gains so far, {grade}: {} of {} within a tenth of the real one, {} inside what was said; predicted by real {:.2}\n",
            score.within_tenth, score.compared, score.inside, score.mean_ratio
        )
    });
    lines.collect()
}

/// Whether a grade's predictions are right on the whole: within a tenth in nine of ten, which holds are held to.
pub(super) fn is_right(scores: &Scores) -> bool {
    let held = scores.get(Grade::Held.name());
    held.is_none_or(|held| held.within_tenth * 10 >= held.compared * 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(predicted: f64, real: f64) -> Entry {
        Entry {
            of: format!("{predicted} {real}"),
            grade: "held".to_owned(),
            predicted,
            low: predicted * 0.9,
            high: predicted * 1.1,
            real,
        }
    }

    #[test]
    fn predictions_that_came_true_are_counted_apart_from_those_that_did_not() {
        let known = scores(&[entry(2.0, 2.1), entry(2.0, 4.0)]);
        let held = known["held"];
        assert_eq!((held.compared, held.within_tenth, held.inside), (2, 1, 1));
        assert!(!is_right(&known));
        assert!(is_right(&scores(&[entry(2.0, 2.1)])) && is_right(&scores(&[])));
    }

    #[test]
    fn lines_of_others_and_ones_that_were_cut_off_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        assert_eq!(read(&path).unwrap(), []);
        let good = serde_json::to_string(&entry(2.0, 2.1)).unwrap();
        fs::write(&path, format!("{good}\nnot ours\n{}", &good[..20])).unwrap();
        assert_eq!(read(&path).unwrap(), [entry(2.0, 2.1)]);
    }
}
