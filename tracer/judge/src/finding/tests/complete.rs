//! Complete orders of accesses, as an emulator gives them, judged live and recorded.

use super::{answers::findings, programs::BASE};
use crate::{
    access::{Access, Measured, Op},
    analysis::{
        AnalysisOptions,
        emulated_fixture::emulated,
        watched_fixture::{Act, load, repeated, store},
    },
    event::Batch,
    finding::{Confidence, Judgement, Reason, Significance, Thresholds, Verdict},
    pipeline::Pipeline,
    spill::{Budget, SpillOptions},
};

/// A stream under construction; time goes on as in an emulator, slowly and unevenly.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) accesses: Vec<Access>,
    now_ns: u64,
}

impl Stream {
    pub(super) fn access(&mut self, act: Act, repeats: u32) {
        let Act {
            tid,
            op,
            offset: at,
            ..
        } = act;
        self.now_ns += 1 + u64::from(tid) * 700_000;
        self.accesses.push(Access {
            time_ns: self.now_ns,
            locked: op == Op::Rmw,
            measured: Measured {
                repeats,
                ..Measured::default()
            },
            ..emulated(
                tid,
                0x40_1000 + at * 16 + u64::from(op.index()),
                op,
                BASE + at,
            )
        });
    }

    /// Each of these in turn, so many times over.
    pub(super) fn turns(mut self, times: usize, acts: &[Act]) -> Stream {
        for act in repeated(times, acts) {
            self.access(act, 0);
        }
        self
    }

    /// One thread on lines that nobody else touches: 4 messages each.
    pub(super) fn alone(mut self, lines: u64) -> Stream {
        for line in 0..lines {
            self.access(load(9, 0x10_0000 + line * 64), 3);
            self.access(store(9, 0x10_0000 + line * 64), 3);
        }
        self
    }

    pub(super) fn pipelines(&self) -> [Pipeline; 2] {
        let options = AnalysisOptions::default();
        let spill = SpillOptions {
            budget: Budget(1 << 26),
            directories: Vec::new(),
            threads: 2,
        };
        [
            Pipeline::new(options, Thresholds::default()),
            Pipeline::sorted(options, Thresholds::default(), spill),
        ]
        .map(|mut pipeline| {
            for accesses in self.accesses.chunks(97) {
                let accesses = accesses.to_vec();
                pipeline.feed(&Batch {
                    accesses,
                    ..Batch::default()
                });
            }
            pipeline.finish().expect("there is room");
            pipeline
        })
    }

    /// What is judged, live and recorded alike.
    pub(super) fn judge(&self) -> Vec<Judgement> {
        let [live, recorded] = self.pipelines();
        assert_eq!(live.judge(), recorded.judge());
        assert_eq!(live.pairs(), recorded.pairs());
        assert_eq!(live.totals(), recorded.totals());
        assert_eq!(live.tally, recorded.tally);
        live.judge()
    }

    pub(super) fn check(&self, expected: &[(u64, Verdict)]) -> Vec<Judgement> {
        let judgements = self.judge();
        assert_eq!(findings(&judgements), expected, "{judgements:#?}");
        for finding in judgements.iter().filter(|j| j.is_finding()) {
            assert_eq!(finding.confidence, Confidence::Confirmed);
        }
        judgements
    }

    pub(super) fn check_reason(&self, reason: Reason) {
        let judgements = self.check(&[]);
        assert_eq!(
            judgements[0].significance,
            Significance::Insignificant(reason),
            "{judgements:#?}"
        );
    }
}

pub(super) fn stream() -> Stream {
    Stream::default()
}
