//! What `measure` found out since the machine was started: where it is kept, and whether it is of this start.

use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::destination;
use crate::{
    measure::costs::{MachineCosts, SCHEMA},
    report::OwnCosts,
    sys::capabilities::is_root,
};

/// Of root; gone when the machine is started anew, as what is in it is then void.
const OF_ROOT: &str = "/run/cohtrace";
const NAME: &str = "machine.json";
/// More than that of a thousand CPUs, all pairs of them looked at.
const MOST_BYTES: u64 = 256 << 20;

/// Identifies the running boot.
pub(super) fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Where the caller's costs are kept; `None` for a user without a directory of this boot (XDG_RUNTIME_DIR).
fn own_place() -> Option<PathBuf> {
    if is_root() {
        return Some(Path::new(OF_ROOT).join(NAME));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty())?;
    Some(Path::new(&runtime).join("cohtrace").join(NAME))
}

/// Keeps costs for other commands of this boot.
pub(super) fn keep(json: &str) -> Result<PathBuf> {
    let path = own_place().context("there is no directory of this boot (XDG_RUNTIME_DIR)")?;
    if let Some(folder) = path.parent()
        && !folder.is_dir()
    {
        (fs::DirBuilder::new().mode(0o755).create(folder))
            .with_context(|| format!("making {}", folder.display()))?;
    }
    destination::write(&path, json.as_bytes())?;
    Ok(path)
}

/// The costs that were measured since the machine was started, by the caller or by root; `None` where there are none that
/// can be read.
pub(super) fn of_this_boot() -> Option<MachineCosts> {
    let boot_id = boot_id()?;
    let places = own_place()
        .into_iter()
        .chain([Path::new(OF_ROOT).join(NAME)]);
    let mut costs = places.filter_map(|path| read(&path).ok());
    costs.find(|costs| costs.boot_id == boot_id)
}

/// What reports take of them, of what was observed in a boot: nothing where that is another one than this.
pub(super) fn own_costs(boot: Option<&str>) -> Option<OwnCosts> {
    let costs = of_this_boot().filter(|costs| boot == Some(costs.boot_id.as_str()))?;
    let locked_ns = costs.own_locked_ns()?;
    Some(OwnCosts { locked_ns })
}

/// Reads a file of costs, of any boot.
pub(super) fn read(path: &Path) -> Result<MachineCosts> {
    let cannot = || format!("reading {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let of_file = file.metadata().with_context(cannot)?;
    ensure!(of_file.is_file(), "{} is no regular file", path.display());
    let mut text = String::new();
    file.take(MOST_BYTES)
        .read_to_string(&mut text)
        .with_context(cannot)?;
    let costs: MachineCosts = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not what `cohtrace measure -o` writes",
            path.display()
        )
    })?;
    if costs.schema != SCHEMA {
        bail!(
            "{} is of schema {}; this cohtrace reads {SCHEMA}",
            path.display(),
            costs.schema
        );
    }
    Ok(costs)
}
