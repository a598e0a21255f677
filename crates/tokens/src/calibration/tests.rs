//! What is said in each case that a user may meet.

use super::*;
use crate::count::Count;
use crate::drift::{self, Drift, Tolerance};
use crate::probes;
use crate::shape::Feature::{
    Answers as ToolAnswers, Calls, Chat, History, Messages, System, Text, Tools, Unicode,
};
use crate::tests::random::Random;

const USER: Shape = Shape::of(&[Chat]);
const AGENT: Shape = Shape::of(&[Chat, System, Tools]);
const TURNS: Shape = Shape::of(&[Chat, System, History]);

const NOT_COMPARED: Certainty = Certainty::Approximate(Doubt::NotCompared);
const DIFFERS: Certainty = Certainty::Approximate(Doubt::Differs);

/// A model as the gate sees it: its calibration and its alarm.
struct Gate {
    calibration: Calibration,
    alarm: Drift,
    said: Vec<Says>,
    asks: usize,
    now_s: i64,
}

impl Gate {
    fn new() -> Self {
        Self {
            calibration: Calibration::default(),
            alarm: Drift::new(Tolerance::EXACT),
            said: Vec::new(),
            asks: 0,
            now_s: 0,
        }
    }

    /// Asks an engine for all probes; it makes so many tokens more of each shape.
    fn ask(&mut self, more: impl Fn(Shape) -> u64) {
        self.now_s += 1;
        for probe in probes::all() {
            let reported = 100 + more(probe.shape);
            let calibration = &mut self.calibration;
            calibration.probe(probe.name, probe.shape, reported, 100, self.now_s);
        }
        let change = self.calibration.asked(self.now_s);
        self.said.extend(change.says);
    }

    /// One call, of which the engine reports so much more than we count. Whether the alarm went off.
    fn call(&mut self, shape: Shape, more: u64) -> bool {
        self.now_s += 1;
        let change = self.calibration.answer(shape, 200 + more, 200, self.now_s);
        self.asks += usize::from(change.asks_again);
        self.said.extend(change.says);
        change.is_for_alarm && self.alarm.observe(200 + more, 200) == drift::Change::Raised
    }

    fn said_of_features(&self) -> Vec<String> {
        let features = self.said.iter().map(|says| match says {
            Says::Differs(it) => format!("differs {}", it.features),
            Says::Changed(it, _) => format!("changed {}", it.features),
            Says::Agrees(features) => format!("agrees {features}"),
        });
        features.collect()
    }

    fn mark(&self, features: &[Feature]) -> Certainty {
        self.calibration.mark(Shape::of(features))
    }
}

fn is_conversation(shape: Shape) -> bool {
    !shape.has(Text) && !shape.has(Feature::Embeddings)
}

#[test]
fn nothing_is_exact_before_it_was_compared() {
    let gate = Gate::new();
    assert_eq!(gate.mark(&[Chat]), NOT_COMPARED);
    assert_eq!(gate.calibration.features(), Features::default());
    assert_eq!(gate.calibration.asked_at_s(), None);
}

#[test]
fn an_engine_that_makes_the_same_of_all_probes_makes_every_shape_exact() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    assert_eq!(
        gate.mark(&[Chat, System, Tools, Calls, ToolAnswers, Unicode]),
        Certainty::Exact
    );
    assert_eq!(gate.mark(&[Feature::Roles, Chat]), NOT_COMPARED);
    assert_eq!(gate.calibration.probes(), (probes::COUNT, 0));
    assert!(gate.said.is_empty() && gate.calibration.features().differ.is_empty());
}

#[test]
fn a_wrong_template_here_is_told_of_every_api_and_is_no_drift() {
    let mut gate = Gate::new();
    let more = |shape| if is_conversation(shape) { 4 } else { 0 };
    gate.ask(more);
    assert_eq!(
        gate.said_of_features(),
        ["differs chat", "differs responses", "differs messages"]
    );
    assert_eq!(gate.mark(&[Text, Unicode]), Certainty::Exact);
    assert_eq!(gate.mark(&[Chat]), DIFFERS);
    assert_eq!(gate.mark(&[Chat, Tools]), DIFFERS);
    for _ in 0..100 {
        assert!(!gate.call(USER, 4) && !gate.call(AGENT, 4));
    }
    assert_eq!(gate.said.len(), 3, "it is said once: {:?}", gate.said);
    let first = gate.calibration.differences().next().expect("a difference");
    assert_eq!((first.first.reported, first.first.counted), (104, 100));
    assert_eq!(first.first_s, 1);
}

#[test]
fn a_wrong_tokenizer_here_is_told_of_text_too() {
    let mut gate = Gate::new();
    gate.ask(|_| 7);
    let differ = gate.calibration.features().differ;
    assert!(differ.has(Text) && differ.has(Chat), "{differ}");
    assert_eq!(gate.mark(&[Text]), DIFFERS);
    assert!(!(0..100).any(|_| gate.call(USER, 7)));
    assert_eq!(gate.calibration.features().agreed, Shape::NONE);
}

#[test]
fn one_shape_that_is_read_wrongly_here_leaves_the_others_exact() {
    let mut gate = Gate::new();
    let more = |shape: Shape| if shape.has(Tools) { 5 } else { 0 };
    gate.ask(more);
    assert_eq!(gate.said_of_features(), ["differs tools"]);
    assert_eq!(gate.mark(&[Chat, System]), Certainty::Exact);
    assert_eq!(gate.mark(&[Chat, Tools]), DIFFERS);
    let mut alarms = 0;
    for _ in 0..100 {
        alarms += usize::from(gate.call(AGENT, 5));
        alarms += usize::from(gate.call(USER, 0));
    }
    assert_eq!((alarms, gate.said.len(), gate.asks), (0, 1, 0));
    let of_calls = gate.calibration.differences().last().expect("one");
    assert_eq!((of_calls.probe, of_calls.calls), (None, 100));
    assert!((of_calls.mean() - 5.0).abs() < 1e-9);
}

#[test]
fn of_several_probes_of_a_feature_the_one_that_differs_is_told_by_what_it_alone_has() {
    let mut gate = Gate::new();
    gate.ask(|shape| u64::from(shape.has(Feature::Nested)));
    assert_eq!(gate.said_of_features(), ["differs nested"]);
    assert_eq!(gate.mark(&[Chat, Tools]), Certainty::Exact);
    assert_eq!(gate.mark(&[Chat, Tools, Feature::Nested]), DIFFERS);
}

#[test]
fn a_shape_that_no_probe_has_is_told_apart_by_calls_and_accuses_nobody() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    let mut alarms = 0;
    for _ in 0..100 {
        alarms += usize::from(gate.call(TURNS, 0));
        alarms += usize::from(gate.call(AGENT, 5));
        alarms += usize::from(gate.call(USER, 0));
        gate.call(USER, 0);
    }
    assert_eq!(alarms, 0);
    assert_eq!(gate.said_of_features(), ["differs tools"]);
    assert!(gate.asks >= 1, "it is asked for what had agreed");
    assert_eq!(gate.calibration.mark(AGENT), DIFFERS);
    assert_eq!(gate.calibration.mark(TURNS), Certainty::Exact);
    // Forty that agree, and it is over.
    for _ in 0..CLEARED_AFTER {
        gate.call(AGENT, 0);
    }
    assert_eq!(gate.said_of_features(), ["differs tools", "agrees tools"]);
    assert_eq!(gate.calibration.mark(AGENT), Certainty::Exact);
}

#[test]
fn an_engine_that_lies_in_its_reports_is_found_by_the_alarm() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    for _ in 0..20 {
        assert!(!gate.call(USER, 0) && !gate.call(AGENT, 0) && !gate.call(TURNS, 0));
    }
    assert!(!gate.call(USER, 50));
    // It is asked again, and makes the same of the probes.
    assert_eq!(gate.asks, 1);
    gate.ask(|_| 0);
    assert!(!gate.call(AGENT, 50) && !gate.call(TURNS, 50));
    let last = gate.calibration.answer(USER, 250, 200, gate.now_s);
    assert!(last.is_for_alarm && last.makes_the_same);
    assert_eq!(gate.alarm.observe(250, 200), drift::Change::Raised);
    assert_eq!(gate.calibration.mark(AGENT), DIFFERS);
    assert!(gate.said.is_empty(), "{:?}", gate.said);
}

#[test]
fn an_engine_that_lies_of_one_feature_alone_is_found_although_that_feature_explains_it() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    let long = USER.with(Feature::Long);
    let mut at = None;
    for nth in 0..400 {
        // One call in twenty, and rounds in between, as they are asked for and as the clock has it.
        if gate.call(long, 200) {
            at = Some(nth);
            break;
        }
        for _ in 0..19 {
            assert!(!gate.call(USER, 0));
        }
        if nth % 5 == 4 {
            gate.ask(|_| 0);
        }
    }
    assert!(at.is_some_and(|at| at < 20), "{at:?}");
    assert!(gate.asks >= 1);
    assert_eq!(gate.said_of_features(), ["differs long"], "said once");
    assert_eq!(gate.calibration.mark(long), DIFFERS);
    assert_eq!(gate.calibration.mark(USER), Certainty::Exact);
    // It is honest again.
    let mut agree = 0;
    while gate.alarm.is_raised() && agree < 200 {
        gate.call(long, 0);
        agree += 1;
    }
    assert!(agree < 60, "{agree}");
    assert_eq!(gate.calibration.mark(long), Certainty::Exact);
}

#[test]
fn an_engine_that_lies_before_it_was_asked_first_is_found_after_the_round() {
    for shape in [USER, AGENT] {
        let mut gate = Gate::new();
        for _ in 0..5 {
            assert!(!gate.call(shape, 9));
        }
        assert_eq!(gate.said.len(), 1, "{:?}", gate.said);
        gate.ask(|_| 0);
        assert_eq!(gate.calibration.differences().count(), 0);
        assert!((0..4).any(|_| gate.call(shape, 9)), "{shape}");
        assert_eq!(gate.said.len(), 1, "{:?}", gate.said);
        assert_eq!(gate.calibration.mark(shape), DIFFERS);
    }
}

#[test]
fn a_probe_with_more_in_it_says_nothing_where_one_with_less_differs() {
    let mut gate = Gate::new();
    // The engine puts a system prompt of its own where a call has none.
    let more = |shape: Shape| {
        if is_conversation(shape) && !shape.has(System) {
            4
        } else {
            0
        }
    };
    gate.ask(more);
    for _ in 0..50 {
        assert!(!gate.call(USER, 4) && !gate.call(TURNS, 0));
        gate.ask(more);
        assert!(!gate.call(USER.with(History), 4));
    }
    let changed = gate.said.iter().any(|it| matches!(it, Says::Changed(..)));
    assert!(!changed, "{:?}", gate.said);
    assert_eq!(gate.calibration.mark(USER), DIFFERS);
}

#[test]
fn a_round_says_nothing_of_calls_that_began_to_differ_since() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    // The engine changes, and nobody asked it again.
    let change = gate.calibration.answer(AGENT, 205, 200, 50);
    assert!(change.asks_again && !change.makes_the_same);
    // Nor does one that asks for something else.
    gate.calibration
        .probe("text_words", Shape::of(&[Text]), 5, 5, 60);
    gate.calibration.asked(60);
    let change = gate.calibration.answer(AGENT, 205, 200, 70);
    assert!(!change.makes_the_same);
    gate.now_s = 80;
    gate.ask(|_| 0);
    let change = gate.calibration.answer(AGENT, 205, 200, 90);
    assert!(change.is_for_alarm && change.makes_the_same);
}

#[test]
fn a_probe_is_no_proof_once_calls_differ_and_three_that_agree_are() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    assert_eq!(gate.mark(&[Chat]), Certainty::Exact);
    gate.call(USER, 3);
    assert_eq!(gate.mark(&[Chat]), DIFFERS);
    assert_eq!(gate.mark(&[Messages]), Certainty::Exact);
    for _ in 0..3 {
        gate.call(USER, 0);
    }
    assert_eq!(gate.mark(&[Chat]), Certainty::Exact);
    gate.call(USER, 3);
    assert_eq!(gate.mark(&[Chat]), DIFFERS);
    gate.ask(|_| 0);
    assert_eq!(gate.mark(&[Chat]), Certainty::Exact);
}

#[test]
fn a_few_calls_that_differ_say_nothing_of_a_feature_whose_other_calls_agree() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    let tools = USER.with(Tools);
    for _ in 0..3 {
        gate.call(tools, 5);
        for _ in 0..10 {
            assert!(!gate.call(tools, 0) && !gate.call(USER, 0));
        }
    }
    assert!(gate.said.is_empty(), "{:?}", gate.said);
    assert_eq!(gate.calibration.mark(tools), Certainty::Exact);
}

#[test]
fn a_difference_that_there_is_no_room_to_keep_is_for_the_alarm() {
    let mut gate = Gate::new();
    let [one, ..] = Feature::ALL;
    for nth in 0..DIFFERENCES_MAX {
        let bits = u32::try_from(nth).expect("a few") << 5 | 0b11;
        let features = Shape::from_bits(bits);
        let pair = Pair {
            reported: 2,
            counted: 1,
        };
        let new = Difference::of(features, features, None, pair, 0);
        gate.calibration.differences.push(new);
    }
    let shape = Shape::NONE.with(one);
    assert!((0..8).any(|_| gate.call(shape, 5)));
}

#[test]
fn an_engine_that_lies_from_the_first_call_on_is_found_once_calls_of_several_shapes_differ() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    let shapes = [
        Shape::of(&[Chat, System, Tools, Unicode, Calls, ToolAnswers, History]),
        Shape::of(&[Chat, System, Tools, Unicode]),
    ];
    let at = (0..30).position(|nth: usize| gate.call(shapes[nth % 2], 50));
    assert!(at.is_some_and(|at| at < 15), "{at:?}");
}

#[test]
fn features_that_differ_only_together_accuse_nobody_however_many_come_in_a_row() {
    for is_asked in [true, false] {
        let mut gate = Gate::new();
        let together = Shape::of(&[Chat, Unicode, Tools, System]);
        if is_asked {
            gate.ask(|_| 0);
        }
        for _ in 0..5 {
            for other in [Unicode, Tools, System] {
                assert!(!gate.call(USER.with(other), 0));
            }
        }
        assert!(!(0..100).any(|_| gate.call(together, 5)));
        assert_eq!(gate.said.len(), 1, "{:?}", gate.said);
        assert_eq!(gate.calibration.mark(together), DIFFERS);
        let larger = together.with(History);
        assert_ne!(gate.calibration.mark(larger), Certainty::Exact);
    }
}

#[test]
fn an_engine_that_changes_at_noon_is_told_to_have_changed() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    gate.now_s = 100;
    assert!(!gate.call(AGENT, 5));
    assert_eq!(gate.asks, 1);
    gate.ask(|shape| if shape.has(Tools) { 5 } else { 0 });
    assert_eq!(gate.said_of_features(), ["changed tools"]);
    let [Says::Changed(difference, since)] = gate.said.as_slice() else {
        panic!("{:?}", gate.said);
    };
    assert_eq!((*since, difference.first_s), (1, 102));
    assert_eq!(gate.calibration.mark(AGENT), DIFFERS);
    // And back again.
    gate.ask(|_| 0);
    assert_eq!(gate.said_of_features(), ["changed tools", "agrees tools"]);
    assert_eq!(gate.calibration.mark(AGENT), Certainty::Exact);
}

#[test]
fn with_nobody_to_ask_a_difference_from_the_first_call_on_is_told_and_is_no_drift() {
    let mut gate = Gate::new();
    assert!(!(0..100).any(|_| gate.call(USER, 3)));
    assert_eq!(gate.said_of_features(), ["differs chat"]);
    assert_eq!(gate.mark(&[Chat]), DIFFERS);
    assert_eq!(gate.mark(&[Messages]), NOT_COMPARED);
    assert_eq!(gate.asks, 0);
}

#[test]
fn with_nobody_to_ask_three_answers_make_a_shape_exact_and_a_change_is_drift() {
    let mut gate = Gate::new();
    for done in 0..10 {
        let mark = if done < 3 {
            NOT_COMPARED
        } else {
            Certainty::Exact
        };
        assert_eq!(gate.mark(&[Chat]), mark, "after {done}");
        gate.call(USER, 0);
    }
    let raised: Vec<bool> = (0..4).map(|_| gate.call(USER, 3)).collect();
    assert_eq!(raised, [false, false, false, true]);
    assert_eq!(gate.mark(&[Chat]), DIFFERS);
    assert!(gate.said.is_empty(), "{:?}", gate.said);
    for _ in 0..3 {
        gate.call(USER, 0);
    }
    assert_eq!(gate.mark(&[Chat]), Certainty::Exact);
}

#[test]
fn a_feature_that_is_new_has_to_agree_by_itself() {
    let mut gate = Gate::new();
    for _ in 0..10 {
        gate.call(USER, 0);
    }
    assert_eq!(gate.calibration.mark(AGENT), NOT_COMPARED);
    for _ in 0..20 {
        assert!(!gate.call(AGENT, 5));
    }
    // Nothing had agreed of what is new in these calls, so nobody is accused of it.
    assert_eq!(gate.said_of_features(), ["differs tools+system"]);
    assert_eq!(gate.mark(&[Chat]), Certainty::Exact);
}

#[test]
fn counts_that_are_doubted_for_themselves_stay_so_but_for_the_tokenizers_settings() {
    let mut gate = Gate::new();
    gate.ask(|_| 0);
    let judge = |count| gate.calibration.judge(count, USER);
    let doubted = |doubt| Count::approximate(1, doubt);
    assert_eq!(judge(Count::exact(1)), Certainty::Exact);
    assert_eq!(judge(doubted(Doubt::TokenizerSettings)), Certainty::Exact);
    let number = Certainty::Approximate(Doubt::Number);
    assert_eq!(judge(doubted(Doubt::Number)), number);
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let mut random = Random::of("memory_is_bounded_whatever_comes");
    let mut gate = Gate::new();
    for _ in 0..20_000 {
        let of = |_| Feature::ALL[random.below(Feature::COUNT)];
        let shape = Shape::of(&(0..3).map(of).collect::<Vec<_>>());
        let more = random.below(2) as u64;
        gate.call(shape, more);
        gate.said.clear();
    }
    assert!(gate.calibration.recent.len() <= RECENT);
    assert!(gate.calibration.agreed_shapes.len() <= SHAPES_MAX);
    assert!(gate.calibration.differences.len() <= DIFFERENCES_MAX);
    assert!(gate.calibration.runs.iter().count() <= runs::RUNS_MAX);
}
