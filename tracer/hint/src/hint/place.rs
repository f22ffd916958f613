//! Where a line's units lie inside an object.

use super::Scene;

/// Bytes of one unit inside of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index into the scene's units.
    pub(super) unit: usize,
    /// First byte, from the object's start.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) size: u64,
}

impl Piece {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The units' pieces inside of an object, by offset; none where its place or size is not known.
pub(super) fn pieces_of(scene: &Scene, object: usize) -> Vec<Piece> {
    let Some((start, size)) = scene
        .objects
        .get(object)
        .and_then(|o| Some((o.start?, o.size?)))
    else {
        return Vec::new();
    };
    let line = scene.line.0.position();
    let mut out = Vec::new();
    for (unit, bytes) in scene.units.iter().enumerate() {
        for &(offset, length) in &bytes.pieces {
            let first = line.saturating_add(u64::from(offset)).max(start);
            let last = line
                .saturating_add(u64::from(offset) + u64::from(length))
                .min(start.saturating_add(size));
            if first < last {
                out.push(Piece {
                    unit,
                    offset: first - start,
                    size: last - first,
                });
            }
        }
    }
    out.sort_by_key(|piece| (piece.offset, piece.unit));
    out
}

/// The bytes of a struct that are on the scene's line, where the struct starts at `start`.
pub(super) fn line_of(scene: &Scene, start: u64) -> std::ops::Range<u64> {
    let first = scene.line.0.position();
    let end = first.saturating_add(scene.line_size.bytes());
    first.saturating_sub(start)..end.saturating_sub(start)
}
