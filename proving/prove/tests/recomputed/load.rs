//! The figures of `prove load`, from its rows.
//!
//! Not here: what rows do not tell: when each event came, sessions whose first turn was never sent, the generator's CPU.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::rows::{Row, mean, read, times};
use super::{Figures, OF_HISTOGRAM, SHARES, nearest_rank};

/// What no row has.
const OF_NO_FILE: [&str; 13] = [
    "/version",
    "/run",
    "/unsent",
    "/left",
    "/seconds",
    "/profiles/*/unsent",
    "/profiles/*/left",
    "/profiles/*/seconds",
    "/generator/cpu_seconds",
    // Of what was drawn, be it sent or not.
    "/certificate/significance",
    "/certificate/judged",
    "/certificate/stalled_s",
    "/certificate/profiles",
];
/// Quantiles of times between events, of which a row has the longest.
const OF_EVENTS: [&str; 5] = ["p50", "p90", "p95", "p99", "p999"];
const MS: f64 = 1e-3;

/// What differs in a result from what its rows come to.
pub(crate) fn differences(report: &Value, rows: &Path) -> Vec<String> {
    let rows = read(rows);
    let mut figures = Figures::of(report);
    let run = |name: &str| report["run"][name].as_f64().expect("seconds");
    let window = Window {
        from: run("warm_up_s"),
        to: run("warm_up_s") + run("duration_s"),
    };
    let all: Vec<&Row> = rows.iter().collect();
    these(&mut figures, "", report, (&all, window));
    for (name, profile) in report["profiles"].as_object().expect("profiles") {
        let own: Vec<&Row> = rows.iter().filter(|row| row.profile == *name).collect();
        these(
            &mut figures,
            &format!("/profiles/{name}"),
            profile,
            (&own, window),
        );
    }
    generator(&mut figures, report, &all);
    figures.except(&OF_NO_FILE);
    figures.finish()
}

/// The measured time.
#[derive(Clone, Copy)]
struct Window {
    from: f64,
    to: f64,
}

impl Window {
    fn has(self, at: f64) -> bool {
        at >= self.from && at < self.to
    }

    /// Which share of the time between two moments lies in it.
    fn share(self, from: f64, to: f64) -> f64 {
        if to <= from {
            return if self.has(to) { 1.0 } else { 0.0 };
        }
        (to.min(self.to) - from.max(self.from)).max(0.0) / (to - from)
    }
}

/// The figures of a profile, or of all.
fn these(figures: &mut Figures<'_>, at: &str, told: &Value, (rows, window): (&[&Row], Window)) {
    let place = |name: &str| format!("{at}/{name}");
    let due: Vec<&Row> = rows
        .iter()
        .filter(|row| window.has(row.due()))
        .copied()
        .collect();
    let good: Vec<&Row> = due.iter().filter(|row| row.is_good()).copied().collect();
    figures.counts(&place("requests"), due.len());
    figures.counts(&place("answered"), good.len());
    figures.counts(&place("errors"), due.len() - good.len());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in due.iter().filter_map(|row| row.failure.as_deref()) {
        *kinds.entry(kind).or_default() += 1;
    }
    for (kind, count) in kinds {
        figures.counts(&place(&format!("errors_by_kind/{kind}")), count);
    }
    let early = rows
        .iter()
        .filter(|row| row.due() < window.from && !row.is_good());
    figures.counts(&place("warm_up_errors"), early.count());
    let says_nothing =
        |row: &&&Row| row.number("outputs") == Some(0) && row.number("events") > Some(0);
    let empty: u64 = told["empty_answers"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    let own = good.iter().filter(says_nothing).count() as u64;
    if empty != own {
        let says = format!(
            "{} are {empty} together; by the rows {own}",
            place("empty_answers")
        );
        figures.differences.push(says);
    }
    figures.except(&[&place("empty_answers")]);

    let seconds = told["seconds"].as_f64().expect("seconds");
    let ended = rows
        .iter()
        .filter(|row| row.is_good() && window.has(row.ended()));
    figures.equals(&place("requests_per_s"), float(ended.count()) / seconds);
    let tokens = rows.iter().filter(|row| row.is_good()).map(|row| {
        let tokens = row.number("completion_tokens").unwrap_or(0);
        let first = row.seconds("first_token_ns").unwrap_or_else(|| row.ended());
        int(tokens) * window.share(first, row.ended())
    });
    let tokens = tokens.sum::<f64>() / seconds;
    figures.is(&place("output_tokens_per_s"), Some(tokens), 1e-6);
    came(figures, (&place("events"), "events"), rows, window);
    came(
        figures,
        (&place("bytes_received"), "bytes_down"),
        rows,
        window,
    );
    let events = told["events"].as_f64().map(|events| events / seconds);
    figures.equals(&place("events_per_s"), events);

    sums(figures, &place("tokens"), rows, window);
    sessions(figures, at, rows);
    goodput(figures, at, told, &due);
    latencies(figures, at, &due, &good);
}

/// What came of a thing while it was measured: all of rows that began and ended then, and no more than of those that touch it.
fn came(
    figures: &mut Figures<'_>,
    (place, column): (&str, &'static str),
    rows: &[&Row],
    window: Window,
) {
    let sum = |rows: &mut dyn Iterator<Item = &&Row>| {
        let counts = rows.filter_map(|row| row.number(column));
        int(counts.sum::<i64>())
    };
    let inside = |row: &&&Row| {
        let began = row.seconds("head_ns").unwrap_or_else(|| row.ended());
        window.has(began) && window.has(row.ended())
    };
    let touch = |row: &&&Row| row.due() < window.to && row.ended() >= window.from;
    let least = sum(&mut rows.iter().filter(inside));
    let most = sum(&mut rows.iter().filter(touch));
    figures.lies_between(place, least, most);
}

/// Tokens as good answers reported them, of what was due after the warm-up.
fn sums(figures: &mut Figures<'_>, at: &str, rows: &[&Row], window: Window) {
    let good = rows
        .iter()
        .filter(|row| row.is_good() && row.due() >= window.from);
    let said: Vec<&Row> = good
        .filter(|row| row.number("prompt_tokens").is_some())
        .copied()
        .collect();
    let sum = |rows: &[&Row], name: &str| {
        int(rows.iter().filter_map(|row| row.number(name)).sum::<i64>())
    };
    let tells = said
        .iter()
        .filter(|row| row.number("cached_tokens").is_some());
    let of_cache: Vec<&Row> = tells.copied().collect();
    figures.equals(&format!("{at}/prompt"), sum(&said, "prompt_tokens"));
    figures.equals(&format!("{at}/completion"), sum(&said, "completion_tokens"));
    figures.equals(&format!("{at}/cached"), sum(&of_cache, "cached_tokens"));
    figures.equals(&format!("{at}/cached_of"), sum(&of_cache, "prompt_tokens"));
    figures.counts(&format!("{at}/reported"), said.len());
}

fn sessions(figures: &mut Figures<'_>, at: &str, rows: &[&Row]) {
    let mut last: BTreeMap<(&str, Option<i64>), &Row> = BTreeMap::new();
    let (mut again, mut begun, mut given_up) = (0, 0, 0);
    for row in rows {
        let before = last.insert((&row.profile, row.number("user")), row);
        let turn = |row: &Row| (row.number("session"), row.number("turn"));
        let is_again = before.is_some_and(|before| !before.is_good() && turn(before) == turn(row));
        again += usize::from(is_again);
        begun += usize::from(row.number("turn") == Some(0) && !is_again);
        given_up += usize::from(!row.is_good());
    }
    figures.counts(&format!("{at}/sent_again"), again);
    figures.counts(&format!("{at}/sessions/started"), begun);
    figures.counts(&format!("{at}/sessions/abandoned"), given_up - again);
    figures.counts(&format!("{at}/sessions/repeated"), begun - unique(rows));
    figures.except(&[&format!("{at}/sessions/turns_skipped")]);
    let reopened = rows
        .iter()
        .filter(|row| row.number("reopened") == Some(1))
        .count();
    figures.lies_between(
        &format!("{at}/reopened_connections"),
        float(reopened),
        f64::MAX,
    );
}

/// Of the levels that were asked for, which were kept.
fn goodput(figures: &mut Figures<'_>, at: &str, told: &Value, due: &[&Row]) {
    let Some(levels) = figures.report["run"]["slo"].as_str() else {
        return;
    };
    let place = |name: &str| format!("{at}/goodput/{name}");
    let limits: Vec<(&str, f64)> = levels
        .split(',')
        .map(|level| {
            let (name, limit) = level.split_once("<=").expect("a limit");
            (name, limit.trim_end_matches('s').parse().expect("seconds"))
        })
        .collect();
    let lost = ["unsent", "left"].map(|name| told[name].as_u64().expect("a count"));
    let lost = usize::try_from(lost.iter().sum::<u64>()).expect("a count");
    let (mut good, mut missed) = (0, BTreeMap::<&str, usize>::new());
    for row in due.iter().filter(|row| row.is_good()) {
        let mut is_good = true;
        for (name, limit) in &limits {
            let time = match *name {
                "ttft" => row.since_due(row.first()).unwrap_or(f64::MAX),
                "itl" => row.seconds("longest_gap_ns").unwrap_or(0.0),
                "tpot" => row.seconds("time_per_token_ns").unwrap_or(0.0),
                _ => row.ended() - row.due(),
            };
            if time > *limit {
                is_good = false;
                *missed.entry(*name).or_default() += 1;
            }
        }
        good += usize::from(is_good);
    }
    let failed = due.iter().filter(|row| !row.is_good()).count();
    figures.counts(&place("exchanges"), due.len() + lost);
    figures.counts(&place("good"), good);
    figures.counts(&place("failed"), failed + lost);
    for (name, count) in missed {
        figures.counts(&place(&format!("missed/{name}")), count);
    }
    figures.equals(&place("share"), float(good) / float(due.len() + lost));
}

fn latencies(figures: &mut Figures<'_>, at: &str, due: &[&Row], good: &[&Row]) {
    type Of = fn(&Row) -> Option<f64>;
    let of: [(&str, Of); 6] = [
        ("e2e_ms", |row| Some(row.ended() - row.due())),
        ("service_ms", |row| {
            Some(row.ended() - row.seconds("sent_ns")?)
        }),
        ("ttft_ms", |row| {
            row.since_due(row.seconds("first_token_ns"))
        }),
        ("ttft_visible_ms", |row| {
            row.since_due(row.seconds("first_visible_ns"))
        }),
        ("first_byte_ms", |row| row.since_due(row.seconds("body_ns"))),
        ("tpot_ms", |row| row.seconds("time_per_token_ns")),
    ];
    for (name, of) in of {
        figures.quantiles(
            &format!("{at}/{name}"),
            &times(good.iter().copied(), of),
            MS,
        );
    }
    // From the first event with output to the last are all times between two; a failed stream had some, too.
    let span = |row: &Row| Some(row.seconds("last_token_ns")? - row.seconds("first_token_ns")?);
    let spans: f64 = times(due.iter().copied(), span).iter().sum();
    let gaps: i64 = due
        .iter()
        .filter_map(|row| row.number("outputs"))
        .map(|outputs| (outputs - 1).max(0))
        .sum();
    let longest = times(due.iter().copied(), |row| row.seconds("longest_gap_ns"));
    let longest = longest.into_iter().reduce(f64::max);
    let place = |name: &str| format!("{at}/itl_ms/{name}");
    match longest {
        Some(longest) => {
            figures.near(&place("mean"), spans / int(gaps), MS);
            figures.near(&place("max"), longest, MS);
            for name in OF_EVENTS {
                let most = longest * (1.0 + OF_HISTOGRAM) + 1e-6;
                figures.lies_between(&place(name), 0.0, most / MS);
            }
        }
        None => figures.equals(&format!("{at}/itl_ms"), None),
    }
    // The generator's turn to a request lies between its due and its first byte.
    let mut sent = times(due.iter().copied(), |row| {
        row.since_due(row.seconds("sent_ns"))
    });
    sent.sort_by(f64::total_cmp);
    let most = |own: f64| (own * (1.0 + OF_HISTOGRAM) + 1e-6) / MS;
    for (name, share) in SHARES {
        figures.lies_between(
            &format!("{at}/lag_ms/{name}"),
            0.0,
            most(nearest_rank(&sent, share)),
        );
    }
    figures.lies_between(
        &format!("{at}/lag_ms/mean"),
        0.0,
        most(mean(&sent).unwrap_or(0.0)),
    );
}

fn generator(figures: &mut Figures<'_>, report: &Value, rows: &[&Row]) {
    figures.counts("/generator/rows", rows.len());
    figures.equals("/generator/rows_lost", 0.0);
    let cpu = report["generator"]["cpu_seconds"]
        .as_f64()
        .expect("seconds");
    let seconds = report["seconds"].as_f64().expect("seconds");
    let rate = report["requests_per_s"].as_f64().expect("a rate");
    figures.is("/generator/cores", Some(cpu / seconds), 1e-6);
    let per_request = cpu * 1e6 / (rate * seconds);
    figures.is("/generator/cpu_us_per_request", Some(per_request), 1e-6);
    let certificate = |name: &str| format!("/certificate/{name}");
    let sent = rows
        .iter()
        .filter(|row| row.number("sent_ns").is_some())
        .count();
    figures.lies_between(&certificate("leaving/sends"), 0.0, float(sent));
    figures.except(&["/certificate/leaving"]);
    let again = report["sent_again"].as_u64().expect("a count");
    let sends = rows.len() - usize::try_from(again).expect("a count");
    figures.counts(&certificate("cardinality/sends"), sends);
    figures.counts(&certificate("cardinality/unique_sessions"), unique(rows));
    figures.is(
        &certificate("cardinality/sessions"),
        report["sessions"]["started"].as_f64(),
        1e-9,
    );
    figures.except(&["/certificate/cardinality/expected_hits"]);
    let profiles = report["certificate"]["profiles"].as_array();
    for (at, profile) in profiles.into_iter().flatten().enumerate() {
        let name = profile["name"].as_str().expect("a name");
        let told = |of: &str| report["profiles"][name][of].as_u64().expect("a count");
        let [again, left] = [told("sent_again"), told("left")].map(usize::try_from);
        let own = rows.iter().filter(|row| row.profile == name).count() - again.expect("a count");
        let most = own + left.expect("a count");
        let place = certificate(&format!("profiles/{at}/sends"));
        figures.lies_between(&place, float(own), float(most));
    }
}

/// How many sessions had a request.
fn unique(rows: &[&Row]) -> usize {
    let each = rows.iter().map(|row| (&row.profile, row.number("session")));
    each.collect::<BTreeSet<_>>().len()
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn int(count: i64) -> f64 {
    count as f64
}
