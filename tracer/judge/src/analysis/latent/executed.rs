//! Who executes what on each line, of an order.

use rustc_hash::FxHashMap;

use super::elsewhere::MOST_SITES;
use crate::{
    access::{Access, LineKey, SpaceId},
    analysis::{Site, SiteCounts, line::Piece, small_map::SmallMap},
};

/// Executions by line and site.
#[derive(Debug, Default)]
pub(super) struct Executed {
    sites: FxHashMap<LineKey, SmallMap<Site, u64>>,
}

impl Executed {
    /// Counts what an access does on a line, if it touches it.
    pub(super) fn count(&mut self, access: &Access, space: SpaceId, key: LineKey, piece: &Piece) {
        if !access.op.touches() {
            return;
        }
        let site = Site::of(access, space, piece);
        let sites = self.sites.entry(key).or_default();
        if let Some(executions) = sites.slot(site, MOST_SITES) {
            *executions = executions.saturating_add(access.executions());
        }
    }

    /// Of a line.
    pub(super) fn of(&self, key: LineKey) -> Vec<SiteCounts> {
        let sites = self.sites.get(&key).into_iter().flat_map(SmallMap::iter);
        let counted = |(site, executions): &(Site, u64)| SiteCounts {
            emulated: *executions,
            ..SiteCounts::unseen(*site)
        };
        sites.map(counted).collect()
    }
}
