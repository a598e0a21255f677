//! Where the time of a run's requests goes, by the gate's own histogram of stages.
//!
//! Not here: what the gate counts under which stage (`docs/metrics.md`), what each part used (`measure`).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use load::client::fetch;
use serde::Serialize;

use crate::host::ready::get;
use crate::scrape::exposition::Page;

const PAGE: &str = "/stats/prometheus";
const FAMILY: &str = "tollgate_stage_seconds";
const PATIENCE: Duration = Duration::from_secs(10);

/// What the gate has counted so far: seconds and how often, by stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counted(BTreeMap<String, (f64, f64)>);

/// One stage of the requests of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Stage {
    pub(super) stage: String,
    /// How often there was one.
    pub(super) times: u64,
    /// Of all requests, those that had none included.
    pub(super) us_per_request: f64,
}

impl Counted {
    /// What the page at this address shows.
    ///
    /// # Errors
    /// There is no page.
    pub(super) fn read(admin: SocketAddr) -> Result<Self, String> {
        let page = fetch(admin, &get(PAGE), PATIENCE);
        let page = page.map_err(|error| format!("the gate's metrics: {error}"))?;
        Ok(Self::of(&Page::read(&page.body)))
    }

    fn of(page: &Page) -> Self {
        let mut counted = Self::default();
        for value in &page.values {
            let Some(suffix) = value.metric.strip_prefix(FAMILY) else {
                continue;
            };
            let mut labels = value.labels.iter();
            let Some((_, stage)) = labels.find(|(name, _)| name == "stage") else {
                continue;
            };
            let entry = counted.0.entry(stage.clone()).or_default();
            match suffix {
                "_sum" => entry.0 = value.value,
                "_count" => entry.1 = value.value,
                _ => {}
            }
        }
        counted
    }

    /// What came since, for each of so many requests; the longest first.
    pub(super) fn since(&self, before: &Self, requests: u64) -> Vec<Stage> {
        let of = |(stage, (sum, count)): (&String, &(f64, f64))| {
            let (sum_before, count_before) = before.0.get(stage).copied().unwrap_or_default();
            #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
            let us_per_request = (sum - sum_before) * 1e6 / requests.max(1) as f64;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count"
            )]
            let times = (count - count_before).max(0.0) as u64;
            Stage {
                stage: stage.clone(),
                times,
                us_per_request,
            }
        };
        let mut stages: Vec<Stage> = self.0.iter().map(of).collect();
        stages.retain(|stage| stage.times > 0);
        stages.sort_by(|a, b| b.us_per_request.total_cmp(&a.us_per_request));
        stages
    }
}

#[cfg(test)]
mod tests {
    //! Two pages of a gate.

    use super::*;

    fn page(own: f64, asked: f64) -> Counted {
        let text = format!(
            "# TYPE tollgate_stage_seconds histogram\n\
             tollgate_stage_seconds_bucket{{stage=\"own\",le=\"+Inf\"}} 10\n\
             tollgate_stage_seconds_sum{{stage=\"own\"}} {own}\ntollgate_stage_seconds_count{{stage=\"own\"}} 10\n\
             tollgate_stage_seconds_sum{{stage=\"identity\"}} {asked}\ntollgate_stage_seconds_count{{stage=\"identity\"}} {}\n\
             tollgate_own_seconds_sum{{operation=\"chat\"}} 7\n",
            asked * 1000.0
        );
        Counted::of(&Page::read(text.as_bytes()))
    }

    #[test]
    fn stages_are_told_by_request_and_the_longest_first() {
        let told = page(0.003, 0.04).since(&page(0.001, 0.02), 20);
        let stages: Vec<(&str, u64)> = told.iter().map(|s| (&*s.stage, s.times)).collect();
        assert_eq!(
            stages,
            [("identity", 20)],
            "own was counted as often before"
        );
        assert!((told[0].us_per_request - 1000.0).abs() < 1e-6, "{told:?}");
        let all = page(0.003, 0.04).since(&Counted::default(), 10);
        assert_eq!(all.len(), 2);
        assert!((all[1].us_per_request - 300.0).abs() < 1e-6, "{all:?}");
    }
}
