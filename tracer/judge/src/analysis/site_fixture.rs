//! Sites for tests.

use super::{Site, SiteCounts};
use crate::access::{Op, Pid, SpaceId, Tid};

/// A site of process 1 that samples decoded this often.
pub(crate) fn site(tid: u32, offset: u8, size: u8, op: Op, decoded: u32) -> SiteCounts {
    SiteCounts {
        decoded,
        ..SiteCounts::unseen(Site {
            space: SpaceId(0),
            ip: 0x401000,
            pid: Pid(1),
            tid: Tid(tid),
            offset,
            size,
            op,
            locked: false,
            kernel: false,
            size_known: true,
            within: 0,
        })
    }
}
