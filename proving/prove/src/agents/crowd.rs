//! Those who are at work, be they live agents or a replay, and two ways to steer them: so many to the end, or more and more until the
//! engine is saturated.
//!
//! Invariant: both are steered by the same code; the saturation point is that of `experiment::campaign`.
//! Not here: who they are (`live`, `replay`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use experiment::campaign::{
    Baseline, Controller, Course, Ending, Gate, Phase, Plan, Soak, Then, Threshold,
};
use experiment::telemetry::{Query, Sample, Telemetry, Value};

use crate::interrupt;
use crate::progress::Line;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Between two samples.
const PERIOD: Duration = Duration::from_secs(1);
/// What the gate asks: as the paper's, the mean time to first token.
const TTFT: &str = "mean(client:ttft_seconds)";
/// The paper's: T2 is where it passes so many times what it was at first.
const TIMES: f64 = 3.0;
/// Consecutive windows above it.
const WINDOWS: u32 = 2;

/// One exchange; seconds since the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Row {
    /// By the script's number.
    pub(super) session: u64,
    pub(super) turn: u32,
    pub(super) sent_s: f64,
    pub(super) first_s: f64,
    pub(super) ended_s: f64,
    pub(super) prompt: u64,
    pub(super) output: u64,
    pub(super) cached: u64,
    pub(super) is_good: bool,
}

/// Rows as they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows(Arc<Mutex<Vec<Row>>>);

impl Rows {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who are at work.
pub(super) trait Crowd {
    fn start(&self) -> Instant;
    /// So many are to be at work: those of the lowest numbers.
    fn set_users(&self, users: u32);
    fn is_over(&self) -> bool;
    fn rows(&self) -> &Rows;
}

/// How the ramp goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ramp {
    pub(super) first: u32,
    pub(super) step: u32,
    pub(super) window: Duration,
    pub(super) most: u32,
}

/// So many come in over this time, and stay until everything is done. False where somebody ended it.
pub(super) fn steady(crowd: &impl Crowd, name: &str, users: u32, over: Duration) -> bool {
    let mut line = Line::new();
    while !crowd.is_over() && !interrupt::was_heard() {
        let share = crowd.start().elapsed().as_secs_f64() / over.as_secs_f64().max(1e-3);
        let there = (f64::from(users) * share).ceil() as u32;
        crowd.set_users(there.clamp(1, users));
        line.show(|| format!("{name}: {} requests answered", crowd.rows().lock().len()));
        interrupt::sleep(LOOK);
    }
    line.end();
    !interrupt::was_heard()
}

/// More and more, until the saturation point is found or all are there.
pub(super) fn saturate(crowd: &impl Crowd, name: &str, ramp: Ramp) -> Result<Course, String> {
    let plan = plan(ramp)?;
    let queries: Vec<Query> = plan.gates.iter().map(|gate| gate.query.clone()).collect();
    let faults = |faults: Vec<experiment::campaign::PlanFault>| {
        let faults = faults.iter().map(ToString::to_string);
        faults.collect::<Vec<_>>().join("; ")
    };
    let mut controller = Controller::new(plan).map_err(faults)?;
    let mut telemetry = Telemetry::new(&queries);
    let (mut line, mut due) = (Line::new(), PERIOD);
    loop {
        crowd.set_users(controller.users());
        interrupt::sleep(due.saturating_sub(crowd.start().elapsed()));
        due += PERIOD;
        let now = crowd.start().elapsed();
        telemetry.hear(&sample(now, &crowd.rows().lock()));
        controller.tick(now, &telemetry);
        line.show(|| {
            format!(
                "{name}: {}, {} at work",
                controller.phase().word(),
                controller.users()
            )
        });
        if interrupt::was_heard() {
            controller.stop(now, Ending::Interrupted);
        } else if crowd.is_over() {
            controller.stop(now, Ending::Broken("nobody is at work any more".into()));
        }
        if !matches!(controller.phase(), Phase::Baseline | Phase::Ramp) {
            break;
        }
    }
    line.end();
    Ok(controller.course().clone())
}

/// What was seen until now, as the gate asks for it.
fn sample(at: Duration, rows: &[Row]) -> Sample {
    let good = rows.iter().filter(|row| row.is_good);
    let (sum, count) = good.fold((0.0, 0.0), |(sum, count), row| {
        (sum + (row.first_s - row.sent_s), count + 1.0)
    });
    let value = |metric: &str, value: f64| Value {
        metric: metric.to_owned(),
        labels: Vec::new(),
        value,
    };
    Sample {
        at,
        target: "client".into(),
        values: vec![
            value("ttft_seconds_sum", sum),
            value("ttft_seconds_count", count),
        ],
    }
}

fn plan(ramp: Ramp) -> Result<Plan, String> {
    let query: Query = TTFT.parse().map_err(|error| format!("bug: {error}"))?;
    let gate = Gate {
        name: "T2".into(),
        query,
        threshold: Threshold::TimesBaseline(TIMES),
        windows: WINDOWS,
        over: PERIOD,
        then: Then::Retract,
    };
    Ok(Plan {
        baseline: Baseline {
            users: ramp.first,
            warm_up: ramp.window,
            min: ramp.window * 3,
            requests: 50,
            max: ramp.window * 60,
        },
        step: ramp.step,
        window: ramp.window,
        max_users: ramp.most,
        max_held: WINDOWS + 6,
        retract: 1.0,
        soak: Soak {
            settle: PERIOD,
            length: PERIOD,
        },
        gates: vec![gate],
        silence: PERIOD * 10,
        patience: PERIOD * 60,
    })
}

#[cfg(test)]
mod tests {
    //! The gate on what was seen.

    use super::*;

    #[test]
    fn the_gate_hears_the_mean_of_good_first_tokens() {
        let row = |after: f64, is_good| Row {
            session: 0,
            turn: 0,
            sent_s: 1.0,
            first_s: 1.0 + after,
            ended_s: 9.0,
            prompt: 1,
            output: 1,
            cached: 0,
            is_good,
        };
        let said = sample(PERIOD, &[row(0.5, true), row(1.5, true), row(7.0, false)]);
        let values: Vec<f64> = said.values.iter().map(|value| value.value).collect();
        assert_eq!(values, [2.0, 2.0]);
        let ramp = Ramp {
            first: 4,
            step: 2,
            window: Duration::from_secs(5),
            most: 60,
        };
        plan(ramp)
            .expect("a query")
            .check()
            .expect("it can be carried out");
    }
}
