//! Rows that wait: with a count, without one, too long.

use std::any::Any;

use policy::billing::BilledBy;
use policy::disconnect::DisconnectOutcome;
use policy::record::{AttemptRecord, Closed, Gauge, Record};
use policy::snapshot::Snapshot;
use tokens::Doubt;

use super::*;
use crate::metrics::RESULTS;

const PATIENCE: Duration = Duration::from_secs(60);

struct Nowhere;

impl Sink for Nowhere {
    fn exchange(&mut self, _: &Snapshot, _: &Record) {}
    fn attempt(&mut self, _: &Snapshot, _: &AttemptRecord) {}
    fn abandoned(&mut self, _: DisconnectOutcome) {}
    fn closed(&mut self, _: Closed) {}
    fn gauge(&mut self, _: Gauge, _: i64) {}
    fn tick(&mut self) {}
    fn copy(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

fn counted(id: u64, prompt: Found, output: Found) -> ReconcileEvent<&'static str> {
    let count = |tokens: u64| Billed::Reported(tokens);
    ReconcileEvent::Counted(Box::new(Counted {
        id,
        of: ("b".into(), "m".into(), 7),
        shape: Shape::NONE,
        unreadable: None,
        tokens: Tokens {
            prompt: count(10),
            completion: count(20),
            ..Tokens::default()
        },
        is_whole: true,
        prompt,
        output,
        rest: None,
        permits: Vec::new(),
    }))
}

fn exact(tokens: u64) -> Found {
    Some(Ok(Count {
        tokens,
        certainty: Certainty::Exact,
    }))
}

fn near(tokens: u64) -> Found {
    Some(Ok(Count {
        tokens,
        certainty: Certainty::Approximate(Doubt::EncodedAgain),
    }))
}

#[test]
fn every_row_is_settled_once_be_its_count_early_late_or_never() {
    let settled = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&settled);
    let metrics = Arc::new(DriftMetrics::default());
    let mut reconciler = Reconciler::new(
        Box::new(move |row, counts| kept.lock().expect("no panic").push((row, counts))),
        Witnesses {
            metrics: Arc::clone(&metrics),
            calibrations: Arc::new(Calibrations::new(Arc::clone(&metrics))),
            tolerances: Tolerances::new(None, None),
        },
        PATIENCE,
        Arc::new(Mutex::new(Box::new(Nowhere))),
    );
    let start = Instant::now();
    reconciler.handle(ReconcileEvent::Held(1, "in time"), start);
    reconciler.handle(counted(1, exact(10), near(20)), start);
    reconciler.handle(ReconcileEvent::Held(2, "late"), start);
    reconciler.settle_overdue(start + PATIENCE - Duration::from_secs(1));
    assert_eq!(reconciler.held.len(), 1);
    reconciler.settle_overdue(start + PATIENCE);
    // Too late: it is settled already.
    reconciler.handle(counted(2, exact(10), near(20)), start);
    reconciler.handle(ReconcileEvent::Held(3, "busy"), start);
    let busy = Some(Err(Missed::Busy));
    reconciler.handle(counted(3, exact(11), busy), start);
    // Left when all is over.
    let (to, inbox) = inbox();
    let rows = RowSender(to);
    assert_eq!(rows.hold(4, "never"), Ok(()));
    drop(rows);
    reconciler.run(&inbox, &AtomicBool::new(false));

    let of = |result| RESULTS.iter().position(|r| *r == result).expect("a result");
    assert_eq!(
        metrics.results(BilledBy::Reported, Direction::Prompt)[of("late")],
        2
    );
    assert_eq!(
        metrics.results(BilledBy::Counted, Direction::Output)[of("busy")],
        1
    );
    // What was late is not exact as well.
    let late = metrics.results(BilledBy::Reported, Direction::Prompt);
    assert_eq!(late[of("exact")], 0);
    let counts = |prompt, completion| {
        Some(Counts {
            prompt: Some(prompt),
            completion,
            prompt_doubt: (prompt != 10).then_some("differs"),
            prompt_uncounted: None,
            completion_uncounted: completion.is_none().then_some("busy"),
            billed: None,
        })
    };
    assert_eq!(
        *settled.lock().expect("no panic"),
        [
            ("in time", counts(10, Some(20))),
            ("late", None),
            ("busy", counts(11, None)),
            ("never", None)
        ]
    );
}

#[test]
fn a_row_that_nobody_waits_for_comes_back() {
    let (to, inbox) = inbox();
    drop(inbox);
    assert_eq!(RowSender(to).hold(1, "row"), Err("row"));
}
