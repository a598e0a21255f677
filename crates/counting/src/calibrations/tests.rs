//! What rows and the alarm have of a comparison.

use std::time::Duration;

use testing::{PATIENCE, nothing_happens_for};
use tokens::{Feature, probes};
use tracing::span;

use super::*;

const CHAT: Shape = Shape::of(&[Feature::Chat]);
const TOOLS: Shape = Shape::of(&[Feature::Chat, Feature::Tools]);

struct Gate {
    calibrations: Calibrations,
    metrics: Arc<DriftMetrics>,
    of: CountedModel,
}

impl Gate {
    fn new() -> Self {
        let metrics = Arc::<DriftMetrics>::default();
        Self {
            calibrations: Calibrations::new(Arc::clone(&metrics)),
            metrics,
            of: CountedModel {
                backend: "b".into(),
                model: "m".into(),
                tokenizer: 7,
            },
        }
    }

    /// The mark of a call that we count as 100.
    fn call(&self, shape: Shape, certainty: Certainty, reported: Option<u64>) -> Certainty {
        let count = Count {
            tokens: 100,
            certainty,
        };
        let tolerance = match certainty {
            Certainty::Exact => Tolerance::EXACT,
            Certainty::Approximate(_) => Tolerance::OVERHEAD,
        };
        let prompt = Prompted {
            count,
            shape,
            reported,
            is_whole: true,
            tolerance,
        };
        self.calibrations.take(&self.of, prompt, 5)
    }

    fn exact(&self, shape: Shape, reported: u64) -> Certainty {
        self.call(shape, Certainty::Exact, Some(reported))
    }

    fn ask(&self, more: impl Fn(Shape) -> u64) {
        self.calibrations.probed(&self.of, |calibration| {
            for probe in probes::all() {
                let reported = 50 + more(probe.shape);
                calibration.probe(probe.name, probe.shape, reported, 50, 5);
            }
            calibration.asked(5)
        });
    }

    fn alarms(&self) -> u64 {
        let series = self.metrics.series();
        series.values().map(|series| series.alarms).sum()
    }
}

const NOT_COMPARED: Certainty = Certainty::Approximate(Doubt::NotCompared);
const DIFFERS: Certainty = Certainty::Approximate(Doubt::Differs);

#[test]
fn a_call_that_nobody_compared_is_not_exact_and_three_that_agree_make_it_so() {
    let gate = Gate::new();
    assert_eq!(gate.call(CHAT, Certainty::Exact, None), NOT_COMPARED);
    let marks: Vec<_> = (0..4).map(|_| gate.exact(CHAT, 100)).collect();
    assert_eq!(
        marks,
        [
            NOT_COMPARED,
            NOT_COMPARED,
            Certainty::Exact,
            Certainty::Exact
        ]
    );
    // One that was left says nothing of itself, and has what others said.
    assert_eq!(gate.call(CHAT, Certainty::Exact, None), Certainty::Exact);
    assert_eq!(gate.call(TOOLS, Certainty::Exact, None), NOT_COMPARED);
}

#[test]
fn a_call_whose_report_is_another_is_never_exact() {
    let gate = Gate::new();
    gate.ask(|_| 0);
    assert_eq!(gate.exact(CHAT, 100), Certainty::Exact);
    assert_eq!(gate.exact(CHAT, 101), DIFFERS);
    assert_eq!(gate.alarms(), 0);
    let wanted = || gate.calibrations.wanted(|_, _| true);
    assert_eq!(wanted(), [("b".into(), "m".into())]);
    assert!(wanted().is_empty(), "it is asked for once");
    for _ in 0..3 {
        gate.exact(CHAT, 101);
    }
    assert_eq!(gate.alarms(), 1);
    let kept = gate.calibrations.wanted(|_, _| false);
    assert!(kept.is_empty());
    assert_eq!(wanted().len(), 1, "later");
}

#[test]
fn what_differs_from_the_first_call_on_accuses_nobody_and_is_in_the_sums() {
    let gate = Gate::new();
    for _ in 0..50 {
        gate.exact(CHAT, 103);
    }
    assert_eq!(gate.exact(CHAT, 103), DIFFERS);
    assert_eq!(gate.alarms(), 0);
    let series = gate.metrics.series();
    let drift = &series.values().next().expect("one").drift;
    assert_eq!(
        (drift.exchanges(), drift.tokens()),
        ((51, 51), (5253, 5100))
    );
}

#[test]
fn an_engine_that_changed_raises_the_alarm_without_a_call_and_ends_it() {
    let gate = Gate::new();
    gate.ask(|_| 0);
    let tools = |shape: Shape| u64::from(shape.has(Feature::Tools));
    gate.ask(tools);
    assert_eq!(gate.alarms(), 1);
    let is_on = || {
        let series = gate.metrics.series();
        series.values().any(|series| series.drift.is_raised())
    };
    assert!(is_on());
    gate.ask(|_| 0);
    assert!(!is_on());
}

#[test]
fn the_alarm_of_an_engine_that_changed_ends_where_another_takes_its_place() {
    for replace in [
        (|gate: &Gate| gate.calibrations.keep_only([8].into())) as fn(&Gate),
        |gate| gate.calibrations.forget(|backend| backend == "b", || ()),
    ] {
        let gate = Gate::new();
        gate.ask(|_| 0);
        gate.ask(|shape| u64::from(shape.has(Feature::Tools)));
        let is_on = || {
            let series = gate.metrics.series();
            series.values().any(|series| series.drift.is_raised())
        };
        assert!(is_on());
        replace(&gate);
        assert!(!is_on());
        assert_eq!(gate.alarms(), 1);
    }
}

/// A log whose reader does something at each line.
struct AtEachLine<F>(F);

impl<F: Fn() + 'static> tracing::Subscriber for AtEachLine<F> {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0();
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn no_alarm_is_raised_for_a_backend_that_moves_while_its_change_is_told() {
    let gate = Arc::new(Gate::new());
    gate.ask(|_| 0);
    let moved = Arc::clone(&gate);
    let moves = move || moved.calibrations.forget(|backend| backend == "b", || ());
    tracing::subscriber::with_default(AtEachLine(moves), || {
        gate.ask(|shape| u64::from(shape.has(Feature::Tools)));
    });
    assert_eq!(gate.alarms(), 1);
    let series = gate.metrics.series();
    assert!(!series.values().any(|series| series.drift.is_raised()));
}

#[test]
fn an_alarm_ends_by_what_raised_it_and_not_by_another_backend() {
    let mut gate = Gate::new();
    let tools = |shape: Shape| u64::from(shape.has(Feature::Tools));
    let rounds = |gate: &Gate| {
        gate.ask(|_| 0);
        gate.ask(tools);
    };
    rounds(&gate);
    gate.of.backend = "other".into();
    rounds(&gate);
    let is_on = |gate: &Gate| {
        let series = gate.metrics.series();
        series.values().any(|series| series.drift.is_raised())
    };
    gate.ask(|_| 0);
    assert!(is_on(&gate), "the first still differs");
    gate.of.backend = "b".into();
    gate.ask(|_| 0);
    assert!(!is_on(&gate));
    assert_eq!(gate.alarms(), 2, "each has its own");
    // One that calls raised.
    for _ in 0..4 {
        gate.exact(CHAT, 101);
    }
    assert!(is_on(&gate));
    gate.of.backend = "other".into();
    rounds(&gate);
    gate.ask(|_| 0);
    assert!(is_on(&gate));
}

#[test]
fn what_is_near_for_its_own_reason_stays_so_and_agrees_within_its_tolerance() {
    let gate = Gate::new();
    let near = Certainty::Approximate(Doubt::TemplateUnknown);
    for _ in 0..10 {
        assert_eq!(gate.call(CHAT, near, Some(110)), near);
    }
    // It says nothing of counts that would be exact.
    assert_eq!(gate.call(CHAT, Certainty::Exact, None), NOT_COMPARED);
    for _ in 0..4 {
        gate.call(CHAT, near, Some(200));
    }
    assert_eq!(gate.alarms(), 1);
    let settings = Certainty::Approximate(Doubt::TokenizerSettings);
    gate.ask(|_| 0);
    assert_eq!(gate.call(CHAT, settings, None), Certainty::Exact);
}

#[test]
fn a_bounded_number_of_models_is_told_apart() {
    let mut gate = Gate::new();
    for nth in 0..MODELS_MAX + 50 {
        gate.of.model = Arc::from(format!("m{nth}"));
        gate.exact(CHAT, 100);
    }
    assert_eq!(gate.calibrations.summaries().len(), MODELS_MAX);
    for _ in 0..5 {
        assert_eq!(gate.exact(CHAT, 100), NOT_COMPARED);
    }
}

#[test]
fn nothing_is_known_of_a_tokenizer_that_the_configuration_has_no_longer() {
    let gate = Gate::new();
    gate.ask(|_| 0);
    assert_eq!(gate.exact(CHAT, 100), Certainty::Exact);
    gate.calibrations.keep_only([7, 8].into());
    assert_eq!(gate.exact(CHAT, 100), Certainty::Exact);
    gate.calibrations.keep_only([8].into());
    assert!(gate.calibrations.summaries().is_empty());
    // Calls and questions that began before.
    for _ in 0..5 {
        assert_eq!(gate.exact(CHAT, 100), NOT_COMPARED);
    }
    gate.ask(|_| 0);
    assert!(gate.calibrations.summaries().is_empty());
}

#[test]
fn what_is_known_of_a_backend_is_forgotten_when_it_stands_elsewhere() {
    let gate = Gate::new();
    gate.ask(|_| 0);
    assert_eq!(gate.exact(CHAT, 100), Certainty::Exact);
    gate.calibrations
        .forget(|backend| backend == "other", || ());
    assert_eq!(gate.exact(CHAT, 100), Certainty::Exact);
    gate.calibrations.forget(|backend| backend == "b", || ());
    assert!(gate.calibrations.summaries().is_empty());
    assert_eq!(gate.exact(CHAT, 100), NOT_COMPARED);
}

#[test]
fn what_an_engine_says_at_its_new_address_is_not_forgotten_with_what_it_said_at_the_old_one() {
    let gate = Gate::new();
    gate.ask(|_| 1);
    assert_eq!(gate.call(CHAT, Certainty::Exact, None), DIFFERS);
    std::thread::scope(|scope| {
        gate.calibrations.forget(
            |backend| backend == "b",
            || {
                let (asks, begun) = std::sync::mpsc::channel();
                let gate = &gate;
                scope.spawn(move || {
                    asks.send(()).expect("somebody waits");
                    gate.ask(|_| 0);
                });
                begun.recv_timeout(PATIENCE).expect("it begins");
                // It waits then, or has told all by now.
                nothing_happens_for(Duration::from_millis(50));
            },
        );
    });
    assert_eq!(gate.call(CHAT, Certainty::Exact, None), Certainty::Exact);
}
