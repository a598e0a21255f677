//! Rows that wait: with a count, without one, too long.

use std::any::Any;

use policy::billing::BilledBy;
use policy::disconnect::DisconnectOutcome;
use policy::record::{AttemptRecord, Closed, Gauge, Record};
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use tokens::Doubt;

use super::*;
use crate::exchange_id::without_output;
use crate::metrics::RESULTS;
use crate::moment;

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
        of: CountedModel {
            backend: "b".into(),
            model: "m".into(),
            tokenizer: 7,
        },
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
    let start = moment();
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
fn what_was_counted_before_the_end_is_settled_with_its_count() {
    let settled = Arc::new(Mutex::new([0, 0]));
    let kept = Arc::clone(&settled);
    let mut reconciler = reconciler(&Arc::default(), Box::new(Nowhere));
    reconciler.settle = Box::new(move |_, counts: Option<Counts>| {
        kept.lock().expect("no panic")[usize::from(counts.is_some())] += 1;
    });
    let (to, inbox) = inbox();
    let rows = RowSender(to);
    let exchanges = EVENTS_AT_ONCE as u64;
    for id in 1..=exchanges {
        assert_eq!(rows.hold(id, "row"), Ok(()));
        rows.0.send(counted(id, exact(10), near(20)));
    }
    // A counter that is stuck still holds its way to the reconciler.
    reconciler.run(&inbox, &AtomicBool::new(true));
    assert_eq!(*settled.lock().expect("no panic"), [0, exchanges]);
    drop(rows);
}

/// Keeps why the prompts of those records are doubted that it is told of.
struct Doubts(Arc<Mutex<Vec<&'static str>>>);

impl Sink for Doubts {
    fn exchange(&mut self, _: &Snapshot, record: &Record) {
        self.0.lock().expect("no panic").push(record.prompt_doubt);
    }
    fn attempt(&mut self, _: &Snapshot, _: &AttemptRecord) {}
    fn abandoned(&mut self, _: DisconnectOutcome) {}
    fn closed(&mut self, _: Closed) {}
    fn gauge(&mut self, _: Gauge, _: i64) {}
    fn tick(&mut self) {}
    fn copy(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

fn reconciler(metrics: &Arc<DriftMetrics>, sink: Box<dyn Sink + Send>) -> Reconciler<&'static str> {
    let witnesses = Witnesses {
        metrics: Arc::clone(metrics),
        calibrations: Arc::new(Calibrations::new(Arc::clone(metrics))),
        tolerances: Tolerances::new(None, None),
    };
    let sink = Arc::new(Mutex::new(sink));
    Reconciler::new(Box::new(|_, _| {}), witnesses, PATIENCE, sink)
}

#[test]
fn a_record_says_nothing_of_a_count_that_came_too_late_for_its_row() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let metrics = Arc::default();
    let mut reconciler = reconciler(&metrics, Box::new(Doubts(Arc::clone(&told))));
    let start = moment();
    for id in [4, 8] {
        reconciler.handle(ReconcileEvent::Held(id, "row"), start);
    }
    let ended = |id| {
        let mut event = counted(id, exact(11), near(20));
        if let ReconcileEvent::Counted(counted) = &mut event {
            counted.rest = Some(Box::new(Uncounted {
                of: Arc::new(Revision::first(Snapshot::default())),
                record: Record::default(),
                settled: None,
                has_row: true,
            }));
        }
        event
    };
    reconciler.handle(ended(4), start);
    reconciler.settle_overdue(start + PATIENCE);
    reconciler.handle(ended(8), start);
    assert_eq!(*told.lock().expect("no panic"), ["differs", ""]);
}

#[test]
fn of_embeddings_no_output_is_late() {
    let metrics = Arc::default();
    let mut reconciler = reconciler(&metrics, Box::new(Nowhere));
    let start = moment();
    for id in [4, without_output(8)] {
        reconciler.handle(ReconcileEvent::Held(id, "row"), start);
    }
    reconciler.settle_overdue(start + PATIENCE);
    let late = RESULTS.iter().position(|it| *it == "late").expect("one");
    let of = |direction| metrics.results(BilledBy::Reported, direction)[late];
    assert_eq!((of(Direction::Prompt), of(Direction::Output)), (2, 1));
}

#[test]
fn a_prompt_that_is_doubted_for_its_tokenizers_settings_alone_has_to_agree_exactly() {
    let of = |doubt| {
        let count = Count {
            tokens: 100,
            certainty: Certainty::Approximate(doubt),
        };
        Tolerances::new(None, None).of(Direction::Prompt, count)
    };
    assert_eq!(of(Doubt::TokenizerSettings), Tolerance::EXACT);
    assert_eq!(of(Doubt::TemplateUnknown), Tolerance::OVERHEAD);
}

#[test]
fn what_a_call_reports_of_its_prompt_counts_although_it_broke_off() {
    let settled = Arc::new(Mutex::new(Vec::new()));
    let metrics = Arc::default();
    let mut reconciler = reconciler(&metrics, Box::new(Nowhere));
    let kept = Arc::clone(&settled);
    reconciler.settle = Box::new(move |_, counts| {
        let doubt = counts.and_then(|counts| counts.prompt_doubt);
        kept.lock().expect("no panic").push(doubt);
    });
    let now = moment();
    for (id, tokens, is_whole) in [(4, 10, true), (8, 10, true), (12, 10, true), (16, 9, false)] {
        let mut event = counted(id, exact(tokens), near(20));
        if let ReconcileEvent::Counted(counted) = &mut event {
            counted.is_whole = is_whole;
            counted.shape = Shape::of(&[tokens::Feature::Chat]);
        }
        reconciler.handle(ReconcileEvent::Held(id, "row"), now);
        reconciler.handle(event, now);
    }
    let open = Some("not_compared");
    assert_eq!(
        *settled.lock().expect("no panic"),
        [open, open, None, Some("differs")]
    );
}

#[test]
fn a_report_that_is_not_believed_is_compared_with_nothing() {
    let settled = Arc::new(Mutex::new(Vec::new()));
    let metrics: Arc<DriftMetrics> = Arc::default();
    let mut reconciler = reconciler(&metrics, Box::new(Nowhere));
    let kept = Arc::clone(&settled);
    reconciler.settle = Box::new(move |_, counts| {
        let doubt = counts.and_then(|counts| counts.prompt_doubt);
        kept.lock().expect("no panic").push(doubt);
    });
    let now = moment();
    let good = (10, false);
    for (nth, (reported, is_beyond_body)) in [good, good, good, (50_000, true), good]
        .into_iter()
        .enumerate()
    {
        let id = (nth as u64 + 1) * 4;
        let mut event = counted(id, exact(10), near(20));
        if let ReconcileEvent::Counted(counted) = &mut event {
            counted.tokens.prompt = Billed::Reported(reported);
            counted.tokens.is_beyond_body = is_beyond_body;
            counted.shape = Shape::of(&[tokens::Feature::Chat]);
        }
        reconciler.handle(ReconcileEvent::Held(id, "row"), now);
        reconciler.handle(event, now);
    }
    let mut all = metrics.series().into_iter();
    let prompts = all.find(|(of, _)| &*of.model == "m" && of.direction == Direction::Prompt);
    let (_, prompts) = prompts.expect("its model");
    let drift = prompts.drift;
    assert_eq!((drift.tokens(), drift.exchanges()), ((40, 40), (4, 0)));
    let open = Some("not_compared");
    assert_eq!(
        *settled.lock().expect("no panic"),
        [open, open, None, None, None]
    );
}

#[test]
fn prompts_that_the_gate_failed_to_count_raise_the_alarm() {
    let metrics = Arc::default();
    let mut reconciler = reconciler(&metrics, Box::new(Nowhere));
    for id in (4..).step_by(4).take(5) {
        let failed = Some(Err(Missed::Failed));
        reconciler.handle(counted(id, failed, near(20)), moment());
    }
    let unread = metrics.unreadable().remove("m").expect("its model");
    assert_eq!((unread.share.is_raised(), unread.reason), (true, "failed"));
    let failed = RESULTS.iter().position(|it| *it == "failed").expect("one");
    let results = metrics.results(BilledBy::Reported, Direction::Prompt);
    assert_eq!(results[failed], 5);
}

#[test]
fn a_row_that_nobody_waits_for_comes_back() {
    let (to, inbox) = inbox();
    drop(inbox);
    assert_eq!(RowSender(to).hold(1, "row"), Err("row"));
}
