//! Values over time, for plots.

use std::collections::BTreeMap;
use std::time::Duration;

use experiment::telemetry::Span;

use super::View;
use crate::campaign::queries::{
    GPU_BUSY, KV, NVLINK_RX, NVLINK_TX, POWER, PREEMPTIONS, RUNNING, WAITING,
};
use crate::report::document::Series;
use crate::scrape::names::NVLINK_CONVENTION;

/// Points of a series at most.
const MOST_POINTS: usize = 1_800;
/// Over which a point of a series is taken, at least.
const POINT: Duration = Duration::from_secs(10);

#[expect(clippy::cast_possible_truncation, reason = "a campaign has seconds")]
impl View<'_> {
    pub(super) fn series(&self) -> BTreeMap<String, Series> {
        let end = self
            .parts
            .course
            .phases
            .last()
            .map_or(Duration::ZERO, |p| p.to);
        let points = (end.as_secs() as usize / POINT.as_secs() as usize).clamp(1, MOST_POINTS);
        let every = (end / u32::try_from(points).unwrap_or(1)).max(Duration::from_secs(1));
        let width = every.max(POINT);
        let mut all = self.parts.series.clone();
        let mut add =
            |name: &str, unit: &str, source: &str, value: &dyn Fn(Span) -> Option<f64>| {
                let mut series = Series {
                    unit: unit.to_owned(),
                    source: source.to_owned(),
                    points: Vec::new(),
                };
                for at in 1..=points {
                    let to = every * u32::try_from(at).unwrap_or(1);
                    let span = Span {
                        from: to.saturating_sub(width),
                        to,
                    };
                    series.points.push((to.as_secs_f64(), value(span)));
                }
                if series.points.iter().any(|(_, value)| value.is_some()) {
                    all.insert(name.to_owned(), series);
                }
            };
        let ttft = self.ttft.to_string();
        for (name, unit, query) in [
            ("ttft_s", "s", &*ttft),
            ("kv_cache", "share", KV),
            ("preemptions", "in the interval", PREEMPTIONS),
            ("running", "requests", RUNNING),
            ("waiting", "requests", WAITING),
            ("gpu_utilisation", "%", GPU_BUSY),
            ("power_w", "W", POWER),
        ] {
            add(name, unit, query, &|span| self.asked(query, span));
        }
        let nvlink = format!(
            "{NVLINK_TX} + {NVLINK_RX}, or what their counters grew by; {NVLINK_CONVENTION}"
        );
        add("nvlink_bytes_per_s", "B/s", &nvlink, &|span| {
            self.nvlink(span)
        });
        let observed = self.parts.observed;
        add("requests_per_s", "requests/s", "client", &|span| {
            Some(observed.rates(span).0)
        });
        add("errors_per_s", "errors/s", "client", &|span| {
            Some(observed.rates(span).1)
        });
        if let Some(users) = self.users(end) {
            all.insert("users".to_owned(), users);
        }
        all
    }

    /// The controller's steps themselves: both sides of each change, at its moment.
    fn users(&self, end: Duration) -> Option<Series> {
        let mut points: Vec<(f64, Option<f64>)> = Vec::new();
        let mut now = None;
        for event in &self.parts.course.events {
            let users = f64::from(event.users);
            if now == Some(users) || points.len() + 3 > MOST_POINTS {
                continue;
            }
            let at = event.at.as_secs_f64();
            points.extend(now.map(|before| (at, Some(before))));
            points.push((at, Some(users)));
            now = Some(users);
        }
        points.push((end.as_secs_f64(), Some(now?)));
        Some(Series {
            unit: "users".to_owned(),
            source: "as the controller asked".to_owned(),
            points,
        })
    }
}
