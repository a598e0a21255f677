//! What users had, by the rows of their requests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Again, LEFT, OF_BOTH, Told, float, list};
use crate::recomputed::rows::{Row, mean, times};
use crate::recomputed::{OF_HISTOGRAM, SHARES, nearest_rank};

impl Again<'_> {
    pub(super) fn phase(&mut self, at: usize, span: Told, rows: &[&Row]) {
        let place = |name: &str| format!("/phases/{at}/{name}");
        let left = if self.report["phases"][at]["name"] == "soak" {
            self.left()
        } else {
            0
        };
        let good = rows.iter().filter(|row| row.is_good()).count();
        let errors = rows.len() - good + left;
        let rate = per_second(good, span);
        self.figures.counts(&place("requests"), good + errors);
        self.figures.counts(&place("errors"), errors);
        self.figures.equals(&place("requests_per_s"), rate);
        self.figures.equals(
            &place("error_share"),
            share(errors, good + errors).unwrap_or(0.0),
        );
        self.figures
            .equals(&place("peak_requests_per_s"), peak(span, rows).max(rate));
    }

    /// The same, as users had it.
    pub(super) fn step(&mut self, at: usize, rows: &[Row]) {
        let place = |name: &str| format!("/steps/{at}/{name}");
        let span = Told::of(&self.report["steps"][at]);
        let ended: Vec<&Row> = rows.iter().filter(|row| span.has(row.ended())).collect();
        let good: Vec<&Row> = ended.iter().filter(|row| row.is_good()).copied().collect();
        self.figures.counts(&place("requests"), good.len());
        self.figures
            .equals(&place("requests_per_s"), per_second(good.len(), span));
        self.figures
            .counts(&place("errors"), ended.len() - good.len());
        let first = rows.iter().filter(|row| row.is_good());
        let first = first.filter(|row| row.first().is_some_and(|at| span.has(at)));
        let mut first = times(first, |row| row.since_due(row.first()));
        first.sort_by(f64::total_cmp);
        for (name, share) in [("ttft_p50_s", 0.5), ("ttft_p99_s", 0.99)] {
            let own = (!first.is_empty()).then(|| nearest_rank(&first, share));
            self.figures.is(&place(name), own, 2.0 * OF_HISTOGRAM);
        }
        let per_token = times(good.iter().copied(), |row| row.seconds("time_per_token_ns"));
        self.figures.equals(&place("tpot_mean_s"), mean(&per_token));
        let whole = times(good, |row| Some(row.ended() - row.due()));
        self.figures.equals(&place("e2e_mean_s"), mean(&whole));
    }

    pub(super) fn soak(&mut self, span: Told, rows: &[&Row]) {
        let good: Vec<&Row> = rows.iter().filter(|row| row.is_good()).copied().collect();
        self.figures.counts("/soak/requests", good.len());
        self.figures
            .equals("/soak/requests_per_second", per_second(good.len(), span));
        let e2e = times(good.iter().copied(), |row| Some(row.ended() - row.due()));
        self.figures.equals("/soak/e2e_s", mean(&e2e));
        for (at, row) in list(self.report, "latency").iter().enumerate() {
            let place = format!("/latency/{at}/client");
            match row["measure"].as_str() {
                Some(measure @ ("TTFT" | "TPOT" | "E2E")) => self.client(&place, measure, &good),
                _ => self.figures.equals(&place, None),
            }
        }
    }

    pub(super) fn profiles(&mut self, span: Told, rows: &[&Row], all: &[Row]) {
        let told = list(self.report, "profiles");
        let users: Vec<f64> = told
            .iter()
            .filter_map(|profile| profile["users"].as_f64())
            .collect();
        let together = self.users(span);
        if (users.iter().sum::<f64>() - together).abs() > 0.5 {
            let says = format!("users of profiles {users:?} are not {together}");
            self.figures.differences.push(says);
        }
        let lost = self.left();
        for (at, (profile, users)) in told.iter().zip(users).enumerate() {
            let place = |name: &str| format!("/profiles/{at}/{name}");
            let own: Vec<&Row> = rows
                .iter()
                .filter(|row| profile["name"] == *row.profile)
                .copied()
                .collect();
            let good: Vec<&Row> = own.iter().filter(|row| row.is_good()).copied().collect();
            let left = if told.len() == 1 { lost } else { 0 };
            self.figures.equals(&place("users"), users);
            self.figures.counts(&place("requests"), own.len() + left);
            self.figures
                .counts(&place("errors"), own.len() - good.len() + left);
            self.figures
                .equals(&place("requests_per_s"), per_second(good.len(), span));
            let reported = |name: &'static str| {
                let said = good
                    .iter()
                    .filter(|row| row.number("prompt_tokens").is_some());
                let tokens = said.map(|row| row.number(name).unwrap_or(0));
                mean(&tokens.map(float).collect::<Vec<_>>())
            };
            self.figures
                .equals(&place("prompt_tokens_mean"), reported("prompt_tokens"));
            self.figures
                .equals(&place("output_tokens_mean"), reported("completion_tokens"));
            let pauses = pauses(all, profile["name"].as_str().expect("a name"), span);
            self.figures.equals(&place("think_mean_s"), mean(&pauses));
            let cached = |row: &&&Row| {
                Some((
                    float(row.number("cached_tokens")?),
                    float(row.number("prompt_tokens")?),
                ))
            };
            let (hits, of) = good
                .iter()
                .filter_map(|row| cached(&row))
                .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            self.figures
                .equals(&place("cached_share"), (of > 0.0).then(|| hits / of));
            for (name, measure) in [("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E")] {
                self.client(&place(name), measure, &good);
            }
        }
    }

    /// Quantiles of what users had.
    pub(super) fn client(&mut self, place: &str, measure: &str, good: &[&Row]) {
        let own = times(good.iter().copied(), |row| match measure {
            "TTFT" => row.since_due(row.first()),
            "TPOT" => row.seconds("time_per_token_ns"),
            _ => Some(row.ended() - row.due()),
        });
        self.figures.quantiles(place, &own, 1.0);
        self.figures.counts(&format!("{place}/count"), own.len());
    }

    pub(super) fn errors(&mut self, rows: &[Row], phases: &[Told]) {
        let names: Vec<&str> = list(self.report, "phases")
            .iter()
            .filter_map(|phase| phase["name"].as_str())
            .collect();
        let mut own: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for row in rows {
            let Some(kind) = &row.failure else { continue };
            let at = phases.iter().position(|phase| phase.has(row.due()));
            let phase = at.map_or("over", |at| names[at]);
            *own.entry((phase, kind)).or_default() += 1;
        }
        for (at, error) in list(self.report, "errors").iter().enumerate() {
            let (phase, kind) = (
                error["phase"].as_str().expect("text"),
                error["kind"].as_str().expect("text"),
            );
            let count = if kind == LEFT {
                self.left()
            } else {
                own.remove(&(phase, kind)).unwrap_or(0)
            };
            self.figures.counts(&format!("/errors/{at}/count"), count);
        }
        let forgotten = own
            .iter()
            .map(|of| format!("{of:?} is no row of the errors"));
        self.figures.differences.extend(forgotten);
    }

    pub(super) fn sessions(&mut self, rows: &[Row]) {
        let sessions = rows
            .iter()
            .filter_map(|row| Some((&row.profile, row.number("session")?)));
        let unique = sessions.collect::<BTreeSet<_>>().len();
        self.figures.counts("/prefix_cache/unique_sessions", unique);
        let begun = rows
            .iter()
            .filter(|row| row.is_good() && row.number("turn") == Some(0));
        self.figures
            .counts("/prefix_cache/begun_sessions", begun.count());
    }

    /// Where nothing failed, the gateway's pages have as many requests and tokens as the rows.
    pub(super) fn witnesses(&mut self, rows: &[Row]) {
        let told = list(self.report, "tokens").iter();
        let told: Vec<&Value> = told.filter(|row| row["workload"] != OF_BOTH).collect();
        if told.is_empty() || rows.iter().any(|row| !row.is_good()) {
            return;
        }
        let sum = |name: &str| {
            told.iter()
                .filter_map(|row| row[name].as_i64())
                .sum::<i64>()
        };
        let by_workload = told
            .iter()
            .map(|row| (row["workload"].as_str(), row["requests"].as_i64()));
        let requests = by_workload
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .flatten()
            .sum();
        let own = |name: &'static str| rows.iter().filter_map(|row| row.number(name)).sum::<i64>();
        for (name, told, own) in [
            (
                "requests",
                requests,
                i64::try_from(rows.len()).expect("a count"),
            ),
            ("input_tokens", sum("input_tokens"), own("prompt_tokens")),
            (
                "output_tokens",
                sum("output_tokens"),
                own("completion_tokens"),
            ),
        ] {
            if told != own {
                let says = format!("the tokens' {name} are {told} together; by the rows {own}");
                self.figures.differences.push(says);
            }
        }
    }

    /// The generator's turn to a request lies between its due and its first byte.
    pub(super) fn generator(&mut self, rows: &[Row]) {
        let sent = times(rows, |row| row.since_due(row.seconds("sent_ns")));
        self.figures.counts("/generator/lag/count", sent.len());
        self.figures.equals("/generator/rows_lost", 0.0);
        let profiles = self.report["certificate"]["profiles"].as_array();
        for (at, profile) in profiles.into_iter().flatten().enumerate() {
            let own = rows.iter().filter(|row| profile["name"] == *row.profile);
            let place = format!("/certificate/profiles/{at}/sends");
            self.figures.counts(&place, own.count());
        }
        let mut sorted = sent;
        sorted.sort_by(f64::total_cmp);
        for (name, share) in SHARES {
            let most = nearest_rank(&sorted, share) * (1.0 + OF_HISTOGRAM) + 1e-6;
            self.figures
                .lies_between(&format!("/generator/lag/{name}"), 0.0, most);
        }
        let most = mean(&sorted).unwrap_or(0.0) * (1.0 + OF_HISTOGRAM) + 1e-6;
        self.figures.lies_between("/generator/lag/mean", 0.0, most);
    }

    /// Ends a second, over whole seconds.
    pub(super) fn rate_of_ends(&mut self, place: &str, span: Told, is_good: bool) {
        let Some(rows) = &self.rows else { return };
        let whole = Told {
            from: span.from.floor(),
            to: span.to.floor(),
        };
        let ended = rows
            .iter()
            .filter(|row| row.is_good() == is_good && whole.has(row.ended()));
        let own = per_second(ended.count(), whole);
        self.figures.equals(place, own);
    }

    pub(super) fn left(&self) -> usize {
        let errors = list(self.report, "errors").iter();
        let left = errors.filter(|error| error["kind"] == LEFT);
        let counts = left.filter_map(|error| error["count"].as_u64());
        usize::try_from(counts.sum::<u64>()).expect("a count")
    }
}

/// The greatest rate over ten whole seconds of a phase of what was due and answered, or over as many as it has.
fn peak(span: Told, rows: &[&Row]) -> f64 {
    let whole = span.seconds().floor();
    let width = whole.clamp(1.0, 10.0);
    let dues = || {
        let good = rows.iter().filter(|row| row.is_good());
        good.map(|row| row.due() - span.from)
    };
    let (mut begins, mut most) = (0.0, 0.0_f64);
    while begins + width <= whole {
        let inside = dues().filter(|due| *due >= begins && *due < begins + width);
        most = most.max(float(i64::try_from(inside.count()).expect("a count")) / width);
        begins += 1.0;
    }
    most
}

fn per_second(count: usize, span: Told) -> f64 {
    float(i64::try_from(count).expect("a count")) / span.seconds()
}

fn share(part: usize, of: usize) -> Option<f64> {
    let float = |count: usize| float(i64::try_from(count).expect("a count"));
    (of > 0).then(|| float(part) / float(of))
}

/// How long users of a profile paused before what was due in a span: since their request before, whatever became of it, but
/// where a refused one was sent again.
fn pauses(rows: &[Row], profile: &str, span: Told) -> Vec<f64> {
    let mut last: BTreeMap<i64, &Row> = BTreeMap::new();
    let mut pauses = Vec::new();
    for row in rows.iter().filter(|row| row.profile == profile) {
        let user = row.number("user").expect("each row has its user");
        let Some(before) = last.insert(user, row) else {
            continue;
        };
        let turn = |row: &Row| (row.number("session"), row.number("turn"));
        let is_again = !before.is_good() && turn(before) == turn(row);
        if span.has(row.due()) && !is_again {
            pauses.push(row.due() - before.ended());
        }
    }
    pauses
}
