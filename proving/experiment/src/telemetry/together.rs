//! What is divided by one another: what two counters grew by between the same two moments, or a counter and the clock.
//!
//! A counter is *known* at a moment in which its target was heard if each of its series had a number, or if none of them had
//! ever been there, so that it has counted nothing. A page whose sum is `NaN`, `+Inf` or no number at all is none to divide.
//! Invariant: both ends of a span are moments in which both are known, or there is no answer.
//! Not here: what is asked (`query`), what is kept (`record`).

use std::time::Duration;

use super::record::{Kept, Telemetry};
use super::{Selector, Span};

/// Two targets are asked one after the other: moments so near are the same.
const NEAR: Duration = Duration::from_secs(5);

/// Which series two selectors have to have in a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Series {
    /// The same, as the parts of a histogram have.
    Alike,
    /// Whichever.
    Any,
}

/// A counter at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    grown: f64,
    labels: u64,
}

impl Kept {
    /// How it stood when its target was heard.
    fn known(&self, at: Duration) -> Option<Known> {
        if self.first.is_none_or(|first| at < first) {
            return Some(Known {
                grown: 0.0,
                labels: 0,
            });
        }
        let point = self.points.partition_point(|point| point.at < at);
        let point = self.points.get(point)?;
        (point.at == at && point.is_whole).then_some(Known {
            grown: point.grown,
            labels: point.labels,
        })
    }
}

impl Telemetry {
    /// What both grew by in a span, from its last moment before it, or the first in it, to the last in it.
    pub(super) fn grown_together(
        &self,
        one: &Selector,
        other: &Selector,
        series: Series,
        span: Span,
    ) -> Option<(f64, f64)> {
        let (of_one, of_other) = (self.kept.get(one)?, self.kept.get(other)?);
        if one.target != other.target {
            let (begun_one, ended_one) = self.ends(one, span)?;
            let (begun_other, ended_other) = self.ends(other, span)?;
            let are_near = |one: Duration, other: Duration| one.abs_diff(other) <= NEAR;
            let is_same = are_near(begun_one, begun_other) && are_near(ended_one, ended_other);
            let grown =
                |kept: &Kept, from, to| Some(kept.known(to)?.grown - kept.known(from)?.grown);
            let one = grown(of_one, begun_one, ended_one)?;
            let other = grown(of_other, begun_other, ended_other)?;
            return is_same.then_some((one, other));
        }
        let known = |at: Duration| {
            let (one, other) = (of_one.known(at)?, of_other.known(at)?);
            let fits = series == Series::Any || one.labels == other.labels;
            fits.then_some((one.grown, other.grown))
        };
        let (begun, ended) = self.known_ends(&one.target, span, known)?;
        Some((ended.0 - begun.0, ended.1 - begun.1))
    }

    /// What a counter grew by each second.
    pub(super) fn rate(&self, of: &Selector, span: Span) -> Option<f64> {
        let kept = self.kept.get(of)?;
        kept.within(span).last()?;
        let (begun, ended) = self.ends(of, span)?;
        let seconds = ended.saturating_sub(begun).as_secs_f64();
        let grown = kept.known(ended)?.grown - kept.known(begun)?.grown;
        (seconds > 0.0).then_some(grown / seconds)
    }

    /// The moments between which one counter is known.
    fn ends(&self, of: &Selector, span: Span) -> Option<(Duration, Duration)> {
        let kept = self.kept.get(of)?;
        self.known_ends(&of.target, span, |at| kept.known(at).map(|_| at))
    }

    /// What is known at both ends of a span: at the last moment before it, or else at the first in it, and at its last.
    fn known_ends<T>(
        &self,
        target: &str,
        span: Span,
        known: impl Fn(Duration) -> Option<T>,
    ) -> Option<(T, T)> {
        let moments = self.heard.get(target)?;
        let begins = moments.partition_point(|&at| at <= span.from);
        let ends = moments.partition_point(|&at| at <= span.to);
        let (before, inside) = (moments.get(..begins)?, moments.get(begins..ends)?);
        let found = |at: &Duration| known(*at).map(|value| (*at, value));
        let (to, ended) = inside.iter().rev().find_map(found)?;
        let begun = before.iter().rev().find_map(found);
        let (from, begun) = begun.or_else(|| inside.iter().find_map(found))?;
        // The first page of all says what was counted before it.
        let is_first = moments.first() == Some(&to);
        (from < to || is_first).then_some((begun, ended))
    }
}
