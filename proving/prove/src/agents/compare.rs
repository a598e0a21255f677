//! What live agents and their replay did to the engine, side by side, with a test of equal distribution for each measure.
//!
//! Values of one session hang together, so sessions are what is exchanged: each is in both runs. Gaps between arrivals are of no session, and
//! are compared as independent values.
//! Invariant: only sessions that are whole in both runs are compared; with so many measures each is tested at [`LEVEL`] over their number.
//! Not here: the tests themselves (`experiment::statistics`).

use std::collections::BTreeMap;

use experiment::random::Rng;
use experiment::statistics::{Fit, by_pair, quantile, two_samples};
use serde::Serialize;

use super::crowd::Row;

/// How often two runs of one law are told apart by chance, all measures together.
pub(super) const LEVEL: f64 = 0.01;
/// Exchanges of sessions.
const ROUNDS: u32 = 1_999;
/// Values of a distribution that are written down.
const POINTS: usize = 101;

/// A measure of both runs.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    /// How it was tested.
    pub(super) test: &'static str,
    pub(super) live: Values,
    pub(super) replay: Values,
    /// The greatest distance between both distributions.
    pub(super) distance: f64,
    /// How likely one law is as far from itself.
    pub(super) p: f64,
    /// Requests whose value is another in the replay; of measures that are counts.
    pub(super) different: Option<u64>,
    pub(super) is_equal: bool,
}

/// A distribution.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Values {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    /// Each hundredth, from the least to the greatest.
    pub(super) hundredths: Vec<f64>,
}

/// Sessions of both runs.
type Paired<'a> = Vec<(&'a [Row], &'a [Row])>;

/// Rows of a run by session, in the order of their turns.
type BySession = BTreeMap<u64, Vec<Row>>;

/// What one value of a session's row is; `None` where it has none.
type Of = fn(&[Row], usize) -> Option<f64>;

struct Kind {
    name: &'static str,
    unit: &'static str,
    is_count: bool,
    of: Of,
}

#[expect(clippy::cast_precision_loss, reason = "tokens below 2^53")]
const KINDS: [Kind; 7] = [
    Kind {
        name: "tokens of a prompt",
        unit: "",
        is_count: true,
        of: |rows, at| Some(rows.get(at)?.prompt as f64),
    },
    Kind {
        name: "tokens of an answer",
        unit: "",
        is_count: true,
        of: |rows, at| Some(rows.get(at)?.output as f64),
    },
    Kind {
        name: "tokens of a prompt that were cached",
        unit: "",
        is_count: true,
        of: |rows, at| Some(rows.get(at)?.cached as f64),
    },
    Kind {
        name: "pause before a request",
        unit: "s",
        is_count: false,
        of: |rows, at| Some(rows.get(at)?.sent_s - rows.get(at.checked_sub(1)?)?.ended_s),
    },
    Kind {
        name: "time to first token",
        unit: "s",
        is_count: false,
        of: |rows, at| rows.get(at).map(|row| row.first_s - row.sent_s),
    },
    Kind {
        name: "time per output token",
        unit: "s",
        is_count: false,
        of: |rows, at| {
            let row = rows.get(at).filter(|row| row.output > 1)?;
            Some((row.ended_s - row.first_s) / (row.output - 1) as f64)
        },
    },
    Kind {
        name: "time to the last token",
        unit: "s",
        is_count: false,
        of: |rows, at| rows.get(at).map(|row| row.ended_s - row.sent_s),
    },
];

/// Each measure of both runs, and how many sessions were whole in both.
pub(super) fn compare(live: &[Row], replay: &[Row], seed: u64) -> (Vec<Measure>, u64) {
    let (of_live, of_replay) = (by_session(live), by_session(replay));
    let both = of_live.iter().filter_map(|(session, rows)| {
        let other = of_replay.get(session)?;
        let is_whole = rows.len() == other.len() && rows.iter().chain(other).all(|row| row.is_good);
        is_whole.then_some((rows.as_slice(), other.as_slice()))
    });
    let both: Paired<'_> = both.collect();
    let mut measures: Vec<Measure> = Vec::new();
    for (place, kind) in (0..).zip(&KINDS) {
        let mut rng = Rng::stream(seed, &[place]);
        measures.extend(of_sessions(kind, &both, &mut rng));
    }
    let gaps = |all: &[Row]| {
        let mut sent: Vec<f64> = all.iter().map(|row| row.sent_s).collect();
        sent.sort_by(f64::total_cmp);
        sent.windows(2)
            .map(|two| two[1] - two[0])
            .collect::<Vec<f64>>()
    };
    let (one, other) = (gaps(live), gaps(replay));
    if let Some(fit) = two_samples(&one, &other) {
        measures.extend(measure(
            ("gap between arrivals", "s", "Kolmogorov-Smirnov"),
            (one, other),
            fit,
            None,
        ));
    }
    let level = LEVEL / measures.len().max(1) as f64;
    for measure in &mut measures {
        measure.is_equal = measure.p >= level;
    }
    (measures, both.len() as u64)
}

fn by_session(rows: &[Row]) -> BySession {
    let mut all = BySession::new();
    for row in rows {
        all.entry(row.session).or_default().push(*row);
    }
    for rows in all.values_mut() {
        rows.sort_by_key(|row| row.turn);
    }
    all
}

fn of_sessions(kind: &Kind, both: &Paired<'_>, rng: &mut Rng) -> Option<Measure> {
    let values = |rows: &[Row]| {
        let each = 0..rows.len();
        each.filter_map(|at| (kind.of)(rows, at))
            .collect::<Vec<f64>>()
    };
    let pairs: Vec<(Vec<f64>, Vec<f64>)> = both
        .iter()
        .map(|(one, other)| (values(one), values(other)))
        .collect();
    let fit = by_pair(&pairs, ROUNDS, rng)?;
    let different = kind.is_count.then(|| {
        let each = pairs.iter().flat_map(|(one, other)| one.iter().zip(other));
        each.filter(|(one, other)| one != other).count() as u64
    });
    let test = "Kolmogorov-Smirnov, sessions exchanged";
    let (one, other): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    measure(
        (kind.name, kind.unit, test),
        (one.concat(), other.concat()),
        fit,
        different,
    )
}

fn measure(
    (name, unit, test): (&'static str, &'static str, &'static str),
    (live, replay): (Vec<f64>, Vec<f64>),
    fit: Fit,
    different: Option<u64>,
) -> Option<Measure> {
    Some(Measure {
        name,
        unit,
        test,
        live: Values::of(live)?,
        replay: Values::of(replay)?,
        distance: fit.statistic,
        p: fit.p,
        different,
        is_equal: false,
    })
}

impl Values {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (count, sum) = (values.len(), values.iter().sum::<f64>());
        let at = |share: f64| quantile(&values, share);
        let hundredths = (0..POINTS).map(|step| at(step as f64 / (POINTS - 1) as f64));
        Some(Self {
            count: count as u64,
            mean: sum / count as f64,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            hundredths: hundredths.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    //! Runs that are the same, and one that is slower.

    use super::*;

    /// Sessions of three requests each, whose times hang together.
    fn run(rng: &mut Rng, slower: f64) -> Vec<Row> {
        let mut rows = Vec::new();
        for session in 0..120 {
            let mut at = rng.exponential(30.0);
            let level = slower * (0.1 + rng.exponential(0.05));
            for turn in 0..3 {
                let first = level + rng.exponential(0.01);
                rows.push(Row {
                    session,
                    turn,
                    sent_s: at,
                    first_s: at + first,
                    ended_s: at + first + 0.5,
                    prompt: 100 + session + u64::from(turn),
                    output: 20,
                    cached: 64,
                    is_good: true,
                });
                at += first + 0.5 + rng.exponential(1.0);
            }
        }
        rows
    }

    #[test]
    fn runs_of_one_law_are_equal_and_slower_first_tokens_are_found() {
        let seed = 5;
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let (live, same, slower) = (run(&mut rng, 1.0), run(&mut rng, 1.0), run(&mut rng, 1.6));
        let (measures, sessions) = compare(&live, &same, 1);
        assert_eq!(sessions, 120);
        assert!(
            measures.iter().all(|measure| measure.is_equal),
            "{measures:#?}"
        );
        assert_eq!(measures[0].different, Some(0));
        let (measures, _) = compare(&live, &slower, 1);
        let unequal: Vec<&str> = measures
            .iter()
            .filter(|m| !m.is_equal)
            .map(|m| m.name)
            .collect();
        assert!(unequal.contains(&"time to first token"), "{unequal:?}");
        assert!(!unequal.contains(&"tokens of a prompt"), "{unequal:?}");
    }

    #[test]
    fn a_session_that_is_not_whole_in_both_is_left_out_and_another_count_is_told() {
        let live = run(&mut Rng::new(5), 1.0);
        let mut replay = live.clone();
        replay[0].is_good = false;
        replay.remove(4);
        replay[30].cached = 0;
        let (measures, sessions) = compare(&live, &replay, 1);
        assert_eq!(sessions, 118);
        assert_eq!(measures[2].different, Some(1));
    }
}
