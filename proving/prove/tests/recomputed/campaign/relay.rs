//! What the gateway adds, by the stamps of client and relay of the same requests.

use std::collections::BTreeSet;

use super::{Again, Told, list};
use crate::recomputed::rows::{Row, mean, times};
use crate::recomputed::{EXACT, SHARES, nearest_rank};

/// Points of a distribution at most.
const POINTS: usize = 200;

impl Again<'_> {
    /// The requests that were sent in a span, and their points over all of the run.
    pub(super) fn overhead(&mut self, span: Told, rows: &[Row]) {
        if self.report["overhead"].is_null() {
            return;
        }
        let pairs = self.pairs.take().expect("a file of pairs");
        self.are_of_rows(&pairs, rows);
        let inside = |row: &&Row| {
            let sent = row.seconds("sent_ns").expect("of each pair");
            sent > span.from && sent <= span.to
        };
        let own: Vec<&Row> = pairs.iter().filter(inside).collect();
        let of = |name: &'static str| times(own.iter().copied(), |row| row.seconds(name));
        let (there, first) = (of("to_upstream_ns"), of("first_back_ns"));
        let last = of("last_back_ns");
        let each = |one: &[f64], sign: f64, other: &[f64]| -> Vec<f64> {
            one.iter()
                .zip(other)
                .map(|(one, other)| one + sign * other)
                .collect()
        };
        let gate = each(&there, 1.0, &first);
        self.figures.counts("/overhead/requests", own.len());
        for (place, values) in [
            ("/overhead/upstream_s", &of("upstream_ns")),
            ("/overhead/downstream_s", &of("downstream_ns")),
            ("/overhead/parts/0/1", &there),
            ("/overhead/parts/1/1", &first),
            ("/overhead/parts/2/1", &last),
        ] {
            self.figures.equals(place, mean(values));
        }
        self.spread("/overhead/gate", &gate);
        self.spread("/overhead/last_byte", &last);
        self.spread("/overhead/drawn_out", &each(&last, -1.0, &first));
        self.distribution(gate);
        self.over_time(&pairs);
        self.own_record(&own);
    }

    /// Each pair is a good row, and says the same of it.
    fn are_of_rows(&mut self, pairs: &[Row], rows: &[Row]) {
        let sent = |row: &Row| row.seconds("sent_ns");
        let told = |row: &Row, took: Option<f64>| {
            (
                row.profile.clone(),
                id(row),
                row.number("sent_ns"),
                took.map(ns),
            )
        };
        let good = rows.iter().filter(|row| row.is_good());
        let good: BTreeSet<_> = good
            .map(|row| told(row, sent(row).map(|sent| row.ended() - sent)))
            .collect();
        let others = pairs
            .iter()
            .filter(|pair| !good.contains(&told(pair, pair.seconds("downstream_ns"))));
        if let Some(other) = others.map(id).next() {
            let says = format!("the pair {other} is no good row, or another");
            self.figures.differences.push(says);
        }
    }

    fn spread(&mut self, place: &str, values: &[f64]) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        self.figures.counts(&format!("{place}/count"), values.len());
        self.figures
            .is(&format!("{place}/mean"), mean(values), 1e-6);
        for (name, share) in SHARES {
            let own = nearest_rank(&sorted, share);
            self.figures
                .is(&format!("{place}/{name}"), Some(own), EXACT);
        }
    }

    fn distribution(&mut self, mut gate: Vec<f64>) {
        gate.sort_by(f64::total_cmp);
        let points = gate.len().min(POINTS);
        for at in 0..points {
            let share = share_of(at + 1, points);
            let place = format!("/overhead/cdf/{at}");
            self.figures.is(
                &format!("{place}/0"),
                Some(nearest_rank(&gate, share)),
                EXACT,
            );
            self.figures.equals(&format!("{place}/1"), share);
        }
    }

    /// Means of what was sent in each ten seconds.
    fn over_time(&mut self, pairs: &[Row]) {
        for (name, parts) in [
            ("upstream_s", &["upstream_ns"][..]),
            ("downstream_s", &["downstream_ns"]),
            ("gate_s", &["to_upstream_ns", "first_back_ns"]),
        ] {
            let points = list(&self.report["series"][name], "points");
            let width = points
                .first()
                .and_then(|point| point[0].as_f64())
                .unwrap_or(0.0);
            for at in 0..points.len() {
                let place = format!("/series/{name}/points/{at}");
                let middle = self.figures.get(&format!("{place}/0")).expect("a moment");
                let bin = Told {
                    from: middle - width,
                    to: middle + width,
                };
                let inside = pairs
                    .iter()
                    .filter(|pair| pair.seconds("sent_ns").is_some_and(|at| bin.has(at)));
                let took = times(inside, |pair| {
                    parts.iter().map(|part| pair.seconds(part)).sum()
                });
                self.figures.equals(&format!("{place}/1"), mean(&took));
            }
        }
    }

    /// The mean of what the gateway recorded of the same requests, whose microseconds are rounded down.
    fn own_record(&mut self, pairs: &[&Row]) {
        let ids: BTreeSet<String> = pairs.iter().map(|pair| id(pair)).collect();
        let lines = self.log.iter().filter(|line| {
            let id = line["request_id"]
                .as_str()
                .and_then(|id| id.strip_prefix("prove-"));
            id.and_then(|id| id.split_once('-'))
                .is_some_and(|(_, id)| ids.contains(id))
        });
        let own: Vec<f64> = lines.filter_map(|line| line["own_us"].as_f64()).collect();
        let own = mean(&own).map(|us| (us + 0.5) / 1e6);
        self.figures.equals("/overhead/own_record_s", own);
    }
}

/// As the header of a request has it, behind the number of its profile.
fn id(row: &Row) -> String {
    let parts = ["user", "session", "turn", "intended_ns"];
    let parts = parts.map(|name| row.number(name).expect("of each row").to_string());
    parts.join("-")
}

#[expect(clippy::cast_possible_truncation, reason = "nanoseconds of a request")]
fn ns(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "counts of points")]
fn share_of(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}
