//! How a subject takes ever more users: in a line, over a cliff, against a ceiling, or up to a plateau.
//!
//! The rule, over a ladder: scenarios that differ in their users alone, before an upstream that takes its time. What is ideal is
//! users over that time.
//! - *cliff*: at some rung less than half of the best throughput before it is left, or more than a hundredth of the requests fail.
//! - *linear*: at every rung at least [`NEAR`] of what is ideal.
//! - *ceiling*: below that at the first rung already: it never was faster.
//! - *plateau*: below that later; ever more users bring no more.
//!
//! Not here: what is measured (`cell`), plots of it (`page`).

use serde::Serialize;

use super::result::{RaceResult, Row};
use super::scenario::Scenario;

/// In percent.
const NEAR: f64 = 80.0;
/// A ladder has so many rungs at least.
const RUNGS_FEW: usize = 3;

/// The shape of one subject on one ladder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Shaped {
    pub(crate) subject: String,
    /// What its scenarios have in common of their names.
    pub(crate) ladder: String,
    pub(crate) shape: Shape,
    /// Users at the rung where it shows; of a line those of the last.
    pub(crate) users: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    Linear,
    Cliff,
    Ceiling,
    Plateau,
}

/// One rung of a subject.
#[derive(Debug, Clone, Copy)]
struct Rung {
    users: usize,
    rps: f64,
    /// Of what is ideal, in percent.
    ideal: f64,
    fails: bool,
}

impl Shape {
    pub(crate) const fn says(self) -> &'static str {
        match self {
            Self::Linear => "linear: to its last rung",
            Self::Cliff => "cliff: falls or fails",
            Self::Ceiling => "ceiling: never faster than at its first rung",
            Self::Plateau => "plateau: no faster from there on",
        }
    }
}

/// The shape of every subject on every ladder that it took part in.
pub(crate) fn shapes(result: &RaceResult) -> Vec<Shaped> {
    let mut ladders: Vec<(&str, Vec<&Scenario>)> = Vec::new();
    for scenario in result.scenarios.iter().filter(|of| is_rung(of)) {
        let Some((name, _)) = scenario.name.rsplit_once('_') else {
            continue;
        };
        match ladders.iter_mut().find(|(ladder, _)| *ladder == name) {
            Some((_, rungs)) => rungs.push(scenario),
            None => ladders.push((name, vec![scenario])),
        }
    }
    let mut all = Vec::new();
    for (ladder, mut rungs) in ladders {
        rungs.sort_by_key(|scenario| scenario.users);
        for told in &result.subjects {
            let rungs: Vec<Rung> = rungs
                .iter()
                .filter_map(|scenario| {
                    let rows = result.rows_of(&scenario.name);
                    let row = rows.into_iter().find(|row| row.subject == told.name)?;
                    Rung::of(scenario, row)
                })
                .collect();
            all.extend(shape(&rungs).map(|(shape, users)| Shaped {
                subject: told.name.clone(),
                ladder: ladder.to_owned(),
                shape,
                users,
            }));
        }
    }
    all
}

fn is_rung(scenario: &Scenario) -> bool {
    scenario.latency_ms > 0 && scenario.closed() && scenario.cpu_quota.is_none()
}

impl Rung {
    /// `None` where it was not measured.
    fn of(scenario: &Scenario, row: &Row) -> Option<Self> {
        (row.rounds > 0).then(|| Self {
            users: scenario.users,
            rps: row.median("rps").unwrap_or(0.0),
            ideal: row.median("ideal_percent").unwrap_or(0.0),
            fails: row.problem.is_some() && !row.failures.is_empty(),
        })
    }
}

/// The shape of these rungs, whose users grow; `None` where they are too few to have one.
fn shape(rungs: &[Rung]) -> Option<(Shape, usize)> {
    let (first, last) = (rungs.first()?, rungs.last()?);
    if rungs.len() < RUNGS_FEW {
        return None;
    }
    let mut best = 0.0_f64;
    for rung in rungs {
        if rung.fails || rung.rps < best / 2.0 {
            return Some((Shape::Cliff, rung.users));
        }
        best = best.max(rung.rps);
    }
    if first.ideal < NEAR {
        return Some((Shape::Ceiling, first.users));
    }
    let short = rungs.iter().find(|rung| rung.ideal < NEAR);
    Some(match short {
        Some(rung) => (Shape::Plateau, rung.users),
        None => (Shape::Linear, last.users),
    })
}

#[cfg(test)]
mod tests {
    //! The five gateways whose shapes were published with their figures.

    use super::{Rung, Shape, shape};

    fn rungs(measured: &[(usize, f64, bool)]) -> Vec<Rung> {
        let rung = |(users, rps, fails): &(usize, f64, bool)| Rung {
            users: *users,
            rps: *rps,
            ideal: rps / (*users as f64 / 0.06) * 100.0,
            fails: *fails,
        };
        measured.iter().map(rung).collect()
    }

    #[test]
    fn published_figures_have_the_published_shapes() {
        let all = [
            // Ferro Labs, Kong, Bifrost, LiteLLM, Portkey.
            (
                &[
                    (150, 2447.0, false),
                    (300, 4890.0, false),
                    (500, 8014.0, false),
                    (1000, 13925.0, false),
                ][..],
                Shape::Linear,
                1000,
            ),
            (
                &[
                    (150, 2443.0, false),
                    (300, 4885.0, false),
                    (500, 8133.0, false),
                    (1000, 15891.0, false),
                ],
                Shape::Linear,
                1000,
            ),
            (
                &[(150, 2441.0, false), (300, 0.0, true), (500, 0.0, true)],
                Shape::Cliff,
                300,
            ),
            (
                &[(50, 175.0, false), (150, 175.0, false), (300, 175.0, false)],
                Shape::Ceiling,
                50,
            ),
            (
                &[
                    (50, 783.0, false),
                    (150, 851.0, false),
                    (300, 843.0, false),
                    (500, 855.0, false),
                ],
                Shape::Plateau,
                150,
            ),
        ];
        for (measured, wanted, users) in all {
            assert_eq!(
                shape(&rungs(measured)),
                Some((wanted, users)),
                "{measured:?}"
            );
        }
        assert_eq!(
            shape(&rungs(&[(50, 800.0, false), (150, 2400.0, false)])),
            None
        );
        // Half of what was there before is a cliff, without a failure too.
        let fallen = [
            (50, 800.0, false),
            (150, 2400.0, false),
            (300, 1100.0, false),
        ];
        assert_eq!(shape(&rungs(&fallen)), Some((Shape::Cliff, 300)));
    }
}
