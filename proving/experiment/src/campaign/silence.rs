//! Targets that say nothing: told of once, and too long a silence ends the campaign.
//!
//! Not here: a gate without an answer although its target speaks (`soak`).

use std::time::Duration;

use super::{Controller, Ending, EventKind};
use crate::telemetry::Telemetry;

/// A target of a gate that says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Silence {
    since: Duration,
    target: String,
}

impl Controller {
    /// Tells once when a target of a gate falls silent, and once when it is back.
    pub(super) fn hear_silence(&mut self, now: Duration, telemetry: &Telemetry) {
        let mut told = Vec::new();
        for (gate, watch) in self.plan.gates.iter().zip(&mut self.gates) {
            let since = gate
                .query
                .targets()
                .map(|target| (telemetry.last_heard(&target).unwrap_or_default(), target))
                .min();
            let Some((last, target)) = since else {
                continue;
            };
            let is_silent = now > last + self.plan.silence;
            match (is_silent, watch.silent.take()) {
                (true, None) => {
                    told.push((
                        EventKind::Silent,
                        format!("{target} says nothing: {} holds", gate.name),
                    ));
                    watch.silent = Some(Silence {
                        since: last,
                        target,
                    });
                }
                // One of its targets may be back while another is silent since later.
                (true, Some(before)) => {
                    watch.silent = Some(Silence {
                        since: last.max(before.since),
                        target,
                    });
                }
                (false, Some(before)) => {
                    let target = before.target;
                    told.push((EventKind::Heard, format!("{target} is back: {}", gate.name)));
                }
                (false, None) => {}
            }
        }
        for (kind, says) in told {
            self.note(now, kind, says);
        }
    }

    /// Ends where a target was silent for longer than the plan's patience, and says whether.
    pub(super) fn end_if_silent(&mut self, now: Duration) -> bool {
        let patience = self.plan.patience;
        let mut silent = self.gates.iter().filter_map(|watch| watch.silent.as_ref());
        let is_over = silent.any(|silence| now > silence.since + patience);
        if is_over {
            self.end(now, Ending::Unreachable);
        }
        is_over
    }
}
