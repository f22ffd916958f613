//! What `sample_id_all` puts behind every record that is no sample: whose it is, and when and where it was written.

use super::{bytes::PutBytes as _, fields::Fields, sample_type as sample};

/// The fields of the trailer, in its order.
const FIELDS: [u64; 6] = [
    sample::TID,
    sample::TIME,
    sample::ID,
    sample::STREAM_ID,
    sample::CPU,
    sample::IDENTIFIER,
];

/// Whose a record is, and when and where it was written; `None` is what the trailer does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Process and thread.
    pub task: Option<(u32, u32)>,
    /// By the event's clock, nanoseconds.
    pub time: Option<u64>,
    /// The number by which the kernel tells events of one recording apart.
    pub id: Option<u64>,
    /// Where it was written.
    pub cpu: Option<u32>,
}

impl Trailer {
    /// Cuts the trailer of an event's `sample_type` off the end of a record. `None` when the record is shorter.
    pub fn split(fields: Fields<'_>, sample_type: u64) -> Option<(Fields<'_>, Trailer)> {
        let has = |field: &u64| sample_type & field != 0;
        let bytes = fields.rest();
        let words = FIELDS.iter().filter(|field| has(field)).count();
        let (body, trailer) = bytes.split_at_checked(bytes.len().checked_sub(words * 8)?)?;
        let mut trailer = Fields::new(trailer, fields.order());
        let mut found = Trailer::default();
        for field in FIELDS.into_iter().filter(has) {
            match field {
                sample::TID => found.task = Some((trailer.u32()?, trailer.u32()?)),
                sample::TIME => found.time = Some(trailer.u64()?),
                sample::ID | sample::IDENTIFIER => found.id = Some(trailer.u64()?),
                sample::CPU => {
                    found.cpu = Some(trailer.u32()?);
                    trailer.u32()?;
                }
                _ => trailer.skip_words(1)?,
            }
        }
        Some((Fields::new(body, fields.order()), found))
    }

    /// Appends it, with the fields of the event's `sample_type`; those that are not known are 0.
    pub fn put(&self, out: &mut Vec<u8>, sample_type: u64) {
        for field in FIELDS {
            if sample_type & field == 0 {
                continue;
            }
            match field {
                sample::TID => {
                    let (pid, tid) = self.task.unwrap_or_default();
                    out.u32(pid);
                    out.u32(tid);
                }
                sample::TIME => out.u64(self.time.unwrap_or(0)),
                sample::CPU => out.u64(u64::from(self.cpu.unwrap_or(0))),
                sample::STREAM_ID => out.u64(0),
                _ => out.u64(self.id.unwrap_or(0)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_format::fields::ByteOrder;

    const ALL: u64 = sample::TID
        | sample::TIME
        | sample::ID
        | sample::STREAM_ID
        | sample::CPU
        | sample::IDENTIFIER;

    const FULL: Trailer = Trailer {
        task: Some((1, 2)),
        time: Some(3),
        id: Some(4),
        cpu: Some(5),
    };

    fn split(bytes: &[u8], sample_type: u64) -> Option<(usize, Trailer)> {
        let (body, trailer) = Trailer::split(Fields::new(bytes, ByteOrder::Little), sample_type)?;
        Some((body.rest().len(), trailer))
    }

    #[test]
    fn what_is_put_is_read_and_the_body_stays() {
        // Fields of samples alone make no difference.
        for sample_type in [ALL, ALL | sample::IP | sample::WEIGHT] {
            let mut out = vec![9; 5];
            FULL.put(&mut out, sample_type);
            assert_eq!(split(&out, sample_type), Some((5, FULL)));
            assert_eq!(split(&out[6..], sample_type), None);
        }
    }

    #[test]
    fn what_the_event_does_not_record_is_not_known() {
        let mut out = Vec::new();
        FULL.put(&mut out, sample::TIME);
        let only_time = Trailer {
            time: FULL.time,
            ..Trailer::default()
        };
        assert_eq!(split(&out, sample::TIME), Some((0, only_time)));
        assert_eq!(split(&out, 0), Some((8, Trailer::default())));
    }
}
