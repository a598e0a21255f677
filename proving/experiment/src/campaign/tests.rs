//! The machine on made-up telemetry: what it decides, and that it always ends.

use super::*;
use crate::random::Rng;
use crate::telemetry::{Query, Sample, Value};

const TTFT: &str = "vllm:time_to_first_token_seconds";

/// An engine that says each second what it is told to, and the machine that hears it.
struct Rig {
    controller: Controller,
    telemetry: Telemetry,
    now: u64,
    ttft_sum: f64,
    requests: f64,
    preemptions: f64,
    /// A metric that pages no longer have.
    gone: Option<&'static str>,
}

impl Rig {
    fn new(plan: Plan) -> Self {
        Self {
            telemetry: Telemetry::new(plan.gates.iter().map(|gate| &gate.query)),
            controller: Controller::new(plan).unwrap(),
            now: 0,
            ttft_sum: 0.0,
            requests: 0.0,
            preemptions: 0.0,
            gone: None,
        }
    }

    fn page(&self) -> Sample {
        let value = |metric: &str, value| Value {
            metric: metric.to_owned(),
            labels: Vec::new(),
            value,
        };
        let mut sample = Sample {
            at: secs(self.now),
            target: "engine".into(),
            values: vec![
                value(&format!("{TTFT}_sum"), self.ttft_sum),
                value(&format!("{TTFT}_count"), self.requests),
                value("vllm:num_preemptions_total", self.preemptions),
                value("vllm:request_success_total", self.requests),
            ],
        };
        let is_there = |value: &Value| self.gone.is_none_or(|gone| value.metric != gone);
        sample.values.retain(is_there);
        sample
    }

    /// Seconds in which the page is there and stands still.
    fn frozen(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            self.telemetry.hear(&self.page());
            self.controller.tick(secs(self.now), &self.telemetry);
        }
    }

    /// A second in which ten requests end, each with this TTFT, and so many are preempted.
    fn second(&mut self, ttft: f64, preemptions: f64) {
        self.now += 1;
        self.requests += 10.0;
        self.ttft_sum += 10.0 * ttft;
        self.preemptions += preemptions;
        self.telemetry.hear(&self.page());
        self.controller.tick(secs(self.now), &self.telemetry);
    }

    fn seconds(&mut self, seconds: u64, ttft: f64) {
        (0..seconds).for_each(|_| self.second(ttft, 0.0));
    }

    /// Time goes on, and nobody says anything.
    fn silence(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            self.controller.tick(secs(self.now), &self.telemetry);
        }
    }

    /// To the first window of the ramp, with a baseline of 0.1 s.
    fn ramping(mut self) -> Self {
        self.telemetry.hear(&self.page());
        while self.controller.phase() == Phase::Baseline {
            self.second(0.1, 0.0);
        }
        assert_eq!(self.controller.phase(), Phase::Ramp);
        self
    }

    /// To the first second of a soak of so many.
    fn soaking(seconds: u64) -> Self {
        let mut plan = Plan {
            max_users: 16,
            ..Plan::default()
        };
        plan.soak.length = secs(seconds);
        let mut rig = Self::new(plan).ramping();
        while rig.controller.phase() != Phase::Soak {
            rig.seconds(1, 0.1);
        }
        rig
    }

    fn sustained(&self) -> Option<f64> {
        self.controller.course().soak.first()?.1
    }

    fn users(&self) -> u32 {
        self.controller.users()
    }

    fn ending(&self) -> Option<&Ending> {
        self.controller.course().ending.as_ref()
    }

    fn tells(&self, kind: EventKind) -> Vec<&str> {
        let events = self.controller.course().events.iter();
        let of_kind = events.filter(|event| event.kind == kind);
        of_kind.map(|event| event.says.as_str()).collect()
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn gate(name: &str, text: &str, threshold: Threshold, then: Then) -> Gate {
    Gate {
        name: name.into(),
        query: text.parse::<Query>().unwrap(),
        threshold,
        windows: 1,
        over: secs(60),
        then,
    }
}

#[test]
fn a_whole_campaign_goes_through_its_phases() {
    let mut plan = Plan {
        max_users: 40,
        ..Plan::default()
    };
    plan.soak.length = secs(600);
    let mut rig = Rig::new(plan).ramping();
    assert_eq!(rig.now, 90, "30 s of warm-up and 60 of baseline");
    assert_eq!(rig.users(), 16);
    assert!((rig.controller.limit(0).unwrap() - 0.3).abs() < 1e-9);
    assert_eq!(rig.controller.limit(1), Some(0.05));
    rig.seconds(60, 0.1);
    assert_eq!(rig.users(), 24);
    rig.seconds(120, 0.1);
    assert_eq!(rig.users(), 40);
    rig.seconds(60, 0.1);
    assert_eq!(rig.controller.phase(), Phase::Retract);
    assert_eq!(rig.users(), 40, "who was not saturated does not step back");
    assert_eq!(rig.controller.phase_ends(), Some(secs(90 + 240 + 60)));
    rig.seconds(60, 0.1);
    assert_eq!(rig.controller.phase(), Phase::Soak);
    rig.seconds(599, 0.1);
    assert_eq!(rig.controller.phase(), Phase::Soak);
    rig.seconds(1, 0.1);
    assert_eq!(rig.ending(), Some(&Ending::Completed));
    assert_eq!((rig.users(), rig.controller.phase()), (0, Phase::Over));
    let course = rig.controller.course();
    assert_eq!(course.t2_users, None);
    assert_eq!(rig.tells(EventKind::Unsaturated).len(), 1);
    let phases = course.phases.iter().map(|span| span.phase);
    let all = [Phase::Baseline, Phase::Ramp, Phase::Retract, Phase::Soak];
    assert!(phases.eq(all), "{:?}", course.phases);
    assert!(course.phases.windows(2).all(|p| p[0].to == p[1].from));
    let users: Vec<u32> = course.steps.iter().map(|step| step.users).collect();
    assert_eq!(users, [16, 24, 32, 40]);
}

#[test]
fn t2_is_found_after_exactly_two_windows_that_are_too_slow() {
    let mut rig = Rig::new(Plan::default()).ramping();
    while rig.users() < 224 {
        rig.seconds(60, 0.1);
    }
    rig.seconds(60, 0.4);
    assert_eq!((rig.controller.phase(), rig.users()), (Phase::Ramp, 224));
    rig.seconds(59, 0.4);
    assert_eq!(rig.controller.phase(), Phase::Ramp);
    rig.seconds(1, 0.4);
    assert_eq!(rig.controller.course().t2_users, Some(224));
    assert_eq!((rig.controller.phase(), rig.users()), (Phase::Retract, 190));
    let saturated = rig.tells(EventKind::Saturated);
    assert!(
        saturated[0].contains("224 users: T2") && saturated[0].contains("0.4000 above 0.3000"),
        "{saturated:?}"
    );
}

#[test]
fn a_slow_window_and_then_a_quiet_one_lets_users_come() {
    let mut rig = Rig::new(Plan::default()).ramping();
    for users in [16, 24] {
        rig.seconds(60, 0.4);
        assert_eq!(rig.users(), users, "held");
        rig.seconds(60, 0.1);
        assert_eq!(rig.users(), users + 8);
    }
    assert_eq!(rig.tells(EventKind::Held).len(), 2);
    let stable = rig.controller.course().steps.iter().map(|s| s.is_stable);
    assert!(stable.eq([false, true, false, true]));
    assert_eq!(rig.controller.course().t2_users, None);
}

#[test]
fn a_limit_itself_is_not_above_it() {
    let mut plan = Plan::default();
    plan.gates[0].threshold = Threshold::Above(0.25);
    let mut rig = Rig::new(plan).ramping();
    rig.seconds(60, 0.25);
    assert_eq!(rig.users(), 24);
}

#[test]
fn t3_ends_it_in_the_second_in_which_the_ratio_passes_in_any_phase() {
    for phase in [Phase::Ramp, Phase::Retract, Phase::Soak] {
        let plan = Plan {
            max_users: 16,
            ..Plan::default()
        };
        let mut rig = Rig::new(plan).ramping();
        rig.seconds(60, 0.1);
        while rig.controller.phase() != phase && phase != Phase::Ramp {
            rig.second(0.1, 0.0);
        }
        rig.second(0.1, 30.0);
        assert_eq!(rig.ending(), None, "30 of 600 in a minute are 5 %");
        rig.second(0.1, 1.0);
        let Some(Ending::Aborted(limit)) = rig.ending() else {
            panic!("{:?}", rig.ending());
        };
        assert_eq!(
            (limit.gate.as_str(), limit.limit, limit.users),
            ("T3", 0.05, 16)
        );
        assert!((limit.value - 31.0 / 600.0).abs() < 1e-9);
        assert_eq!(rig.users(), 0);
        assert_eq!(rig.tells(EventKind::Aborted).len(), 1);
    }
}

#[test]
fn t3_ends_it_in_the_baseline_too() {
    let mut rig = Rig::new(Plan::default());
    rig.telemetry.hear(&rig.page());
    rig.seconds(3, 0.1);
    rig.second(0.1, 9.0);
    assert!(matches!(rig.ending(), Some(Ending::Aborted(_))));
}

#[test]
fn a_silent_target_holds_and_comes_back() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.seconds(40, 0.1);
    rig.silence(20);
    assert_eq!(rig.users(), 16, "held");
    let silent = rig.tells(EventKind::Silent);
    assert_eq!(silent.len(), 2, "each gate that needs it, once: {silent:?}");
    assert!(silent[0].contains("engine says nothing: T2 holds"));
    rig.seconds(60, 0.1);
    assert_eq!(rig.users(), 24);
    assert_eq!(rig.tells(EventKind::Heard).len(), 2);
    assert_eq!(rig.ending(), None);
}

#[test]
fn a_target_that_is_silent_for_too_long_ends_it() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.silence(120);
    assert_eq!(rig.ending(), None);
    rig.silence(1);
    assert_eq!(rig.ending(), Some(&Ending::Unreachable));
    let mut never = Rig::new(Plan::default());
    never.silence(121);
    assert_eq!(never.ending(), Some(&Ending::Unreachable));
}

/// A gate that asks two targets.
fn of_both() -> Plan {
    let text = "ratio(engine:vllm:num_preemptions_total, gateway:done_total)";
    Plan {
        gates: vec![gate("both", text, Threshold::Above(1.0), Then::Hold)],
        ..Plan::default()
    }
}

fn gateway_speaks(rig: &mut Rig, at: u64) {
    let page = Sample {
        at: secs(at),
        target: "gateway".into(),
        ..rig.page()
    };
    rig.telemetry.hear(&page);
}

#[test]
fn what_is_back_is_what_was_silent() {
    let mut rig = Rig::new(of_both());
    // The engine speaks all the time, the gateway in the first three seconds and after a pause.
    for second in 1..=20 {
        if !(4..15).contains(&second) {
            gateway_speaks(&mut rig, second);
        }
        rig.second(0.1, 0.0);
    }
    let silent = rig.tells(EventKind::Silent);
    assert_eq!(silent, ["gateway says nothing: both holds"]);
    assert_eq!(rig.tells(EventKind::Heard), ["gateway is back: both"]);
}

#[test]
fn the_patience_with_one_target_does_not_count_for_another() {
    let mut rig = Rig::new(of_both());
    // The engine is silent for a minute and a half; before it is back, the gate falls silent.
    for _ in 0..80 {
        let now = rig.now;
        gateway_speaks(&mut rig, now);
        rig.silence(1);
    }
    rig.silence(10);
    rig.seconds(109, 0.1);
    assert_eq!(
        (rig.now, rig.ending()),
        (199, None),
        "the gate's last was 79"
    );
    let silent = rig.tells(EventKind::Silent);
    assert_eq!(silent.len(), 1, "some target is all the time: {silent:?}");
    rig.seconds(1, 0.1);
    assert_eq!(rig.ending(), Some(&Ending::Unreachable));
}

#[test]
fn a_gate_whose_metric_never_was_there_lets_no_baseline_end() {
    for text in [
        "max(engine:vllm:no_such_gauge)",
        "ratio(engine:no_such_total, engine:vllm:request_success_total)",
    ] {
        let mut plan = Plan::default();
        plan.gates
            .push(gate("odd", text, Threshold::Above(1.0), Then::Hold));
        let mut rig = Rig::new(plan);
        rig.seconds(1829, 0.1);
        assert_eq!(
            (rig.controller.phase(), rig.ending()),
            (Phase::Baseline, None)
        );
        rig.seconds(1, 0.1);
        assert_eq!(rig.ending(), Some(&Ending::NoBaseline));
    }
}

#[test]
fn a_soak_is_not_complete_while_a_gate_has_nobody_to_ask() {
    let mut rig = Rig::soaking(60);
    rig.seconds(50, 0.1);
    rig.silence(20);
    assert_eq!((rig.controller.phase(), rig.ending()), (Phase::Soak, None));
    rig.seconds(1, 0.1);
    assert_eq!(rig.ending(), Some(&Ending::Completed));
    assert!(rig.sustained().is_some(), "the window waited with the soak");
}

#[test]
fn a_soak_that_saturates_near_its_end_opens_its_gate_again() {
    let mut rig = Rig::soaking(10_800);
    rig.seconds(9_600, 0.1);
    assert_eq!(rig.tells(EventKind::Reopened).len(), 0);
    // Slow minutes hold fewer requests: over the whole soak the mean may well be below the limit.
    rig.seconds(1_200, 1.5);
    assert_eq!(rig.ending(), Some(&Ending::Completed));
    assert!((rig.sustained().unwrap() - 1.5).abs() < 1e-9);
    let reopened = rig.tells(EventKind::Reopened);
    assert_eq!(reopened.len(), 1, "{reopened:?}");
    assert!(
        reopened[0].contains("16 users: T2: 1.500 above 0.3000"),
        "{reopened:?}"
    );
}

#[test]
fn one_slow_window_of_a_soak_opens_no_gate_that_wants_two() {
    let mut rig = Rig::soaking(600);
    rig.seconds(120, 0.1);
    rig.seconds(60, 1.5);
    rig.seconds(420, 0.1);
    assert_eq!(rig.ending(), Some(&Ending::Completed));
    assert!((rig.sustained().unwrap() - 0.1).abs() < 1e-9);
    assert_eq!(rig.tells(EventKind::Reopened).len(), 0);
    let mut short = Rig::soaking(20);
    short.seconds(20, 1.5);
    let sustained = short.sustained().unwrap();
    assert!(sustained > 1.0, "one window is all there is: {sustained}");
}

#[test]
fn a_soak_whose_metric_vanishes_or_whose_page_freezes_does_not_pass() {
    for gone in ["vllm:num_preemptions_total", "vllm:request_success_total"] {
        let mut rig = Rig::soaking(10_800);
        rig.seconds(60, 0.1);
        rig.gone = Some(gone);
        rig.seconds(60 + 120, 0.1);
        assert_eq!(rig.ending(), None);
        rig.seconds(1, 0.1);
        assert_eq!(rig.ending(), Some(&Ending::Unanswered("T3".into())));
        assert_eq!(rig.tells(EventKind::Unanswered), ["T3 has no answer"]);
        assert!(rig.tells(EventKind::Silent).is_empty(), "its target speaks");
    }
    let mut frozen = Rig::soaking(10_800);
    frozen.seconds(60, 0.1);
    frozen.frozen(180);
    assert_eq!(frozen.ending(), None);
    frozen.frozen(1);
    assert!(matches!(frozen.ending(), Some(Ending::Unanswered(_))));
    let mut back = Rig::soaking(600);
    back.seconds(60, 0.1);
    back.frozen(150);
    back.seconds(390, 0.1);
    assert_eq!(back.ending(), Some(&Ending::Completed));
    let answered = back.tells(EventKind::Answered);
    assert_eq!(answered.len(), back.tells(EventKind::Unanswered).len());
    assert!(answered[0].ends_with("has an answer again"), "{answered:?}");
    assert!(back.tells(EventKind::Heard).is_empty());
}

#[test]
fn a_metric_that_vanishes_in_the_ramp_holds_it() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.gone = Some("vllm:num_preemptions_total");
    rig.seconds(180, 0.1);
    assert_eq!(rig.users(), 16);
    assert!(rig.tells(EventKind::Held)[0].contains("T3 has no answer"));
}

#[test]
fn a_baseline_without_a_relative_gate_waits_for_requests_too() {
    let mut plan = Plan::default();
    plan.gates.remove(0);
    plan.baseline.requests = 1000;
    let mut rig = Rig::new(plan);
    rig.telemetry.hear(&rig.page());
    rig.seconds(129, 0.1);
    assert_eq!(rig.controller.phase(), Phase::Baseline);
    rig.seconds(1, 0.1);
    assert_eq!(rig.controller.phase(), Phase::Ramp);
}

#[test]
fn what_is_left_is_known_in_every_phase() {
    let mut rig = Rig::new(Plan::default());
    assert_eq!(rig.controller.phase_ends(), Some(secs(90)), "at least");
    rig.telemetry.hear(&rig.page());
    rig.frozen(100);
    assert_eq!(rig.controller.phase_ends(), Some(secs(1830)), "at most");
    let rig = Rig::new(Plan::default()).ramping();
    let ends = (rig.controller.phase_ends(), rig.controller.window_ends());
    assert_eq!(ends, (None, Some(secs(150))));
}

#[test]
fn a_lapse_is_told_as_one_whatever_was_counted_in_it() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.now += 8 * 3600;
    rig.second(0.1, 1e6);
    assert_eq!(rig.ending(), Some(&Ending::Lapsed(secs(28801))));
}

#[test]
fn an_answer_that_is_missing_between_two_slow_windows_breaks_their_run() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.seconds(60, 0.4);
    rig.silence(60);
    rig.seconds(60, 0.4);
    assert_eq!(rig.controller.course().t2_users, None);
    rig.seconds(60, 0.4);
    assert_eq!(rig.controller.course().t2_users, Some(16));
}

#[test]
fn a_baseline_that_never_comes_ends_it() {
    let mut rig = Rig::new(Plan::default());
    rig.telemetry.hear(&rig.page());
    // Pages, and no request in any.
    for _ in 0..1829 {
        rig.now += 1;
        rig.telemetry.hear(&rig.page());
        rig.controller.tick(secs(rig.now), &rig.telemetry);
    }
    assert_eq!(rig.ending(), None);
    rig.now += 1;
    rig.telemetry.hear(&rig.page());
    rig.controller.tick(secs(rig.now), &rig.telemetry);
    assert_eq!(rig.ending(), Some(&Ending::NoBaseline));
}

#[test]
fn a_baseline_waits_for_its_requests_and_leaves_out_the_warm_up() {
    let mut plan = Plan::default();
    plan.baseline.requests = 1000;
    let mut rig = Rig::new(plan);
    rig.telemetry.hear(&rig.page());
    rig.seconds(30, 9.0);
    rig.seconds(99, 0.2);
    assert_eq!(rig.controller.phase(), Phase::Baseline);
    rig.seconds(1, 0.2);
    assert_eq!(rig.controller.phase(), Phase::Ramp);
    let baselines = &rig.controller.course().baselines;
    assert_eq!(baselines[1], ("T3".into(), None));
    let (name, t2) = &baselines[0];
    assert!(name == "T2" && (t2.unwrap() - 0.2).abs() < 1e-9);
}

#[test]
fn windows_that_are_held_too_often_end_it() {
    let mut plan = Plan::default();
    plan.gates[0].then = Then::Hold;
    plan.max_held = 4;
    let mut rig = Rig::new(plan).ramping();
    rig.seconds(239, 0.4);
    assert_eq!(rig.ending(), None, "a gate that only holds finds no T2");
    rig.seconds(1, 0.4);
    assert_eq!(rig.ending(), Some(&Ending::Held));
}

#[test]
fn a_clock_that_jumps_over_its_patience_ends_it_and_a_short_jump_does_not() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.now += 100;
    rig.seconds(1, 0.1);
    assert_eq!(rig.ending(), None);
    rig.now += 8 * 3600;
    rig.seconds(1, 0.1);
    assert_eq!(rig.ending(), Some(&Ending::Lapsed(secs(28801))));
    let course = rig.controller.course();
    assert!(course.phases.iter().all(|p| p.phase != Phase::Soak));
}

#[test]
fn a_clock_that_goes_back_stands_still() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.seconds(30, 0.1);
    let before = rig.controller.course().clone();
    rig.controller.tick(secs(5), &rig.telemetry);
    assert_eq!(rig.controller.course(), &before);
    rig.controller.stop(secs(5), Ending::Interrupted);
    let course = rig.controller.course();
    assert!(course.phases.iter().all(|span| span.from <= span.to));
    assert!(course.events.is_sorted_by_key(|event| event.at));
    assert_eq!(course.ending, Some(Ending::Interrupted));
    rig.controller.stop(secs(900), Ending::Held);
    rig.seconds(5, 9.0);
    assert_eq!(rig.ending(), Some(&Ending::Interrupted), "it ends once");
}

#[test]
fn an_engine_that_starts_again_counts_from_0_and_nothing_is_lost() {
    let mut rig = Rig::new(Plan::default()).ramping();
    rig.seconds(30, 0.1);
    (rig.ttft_sum, rig.requests) = (0.0, 0.0);
    rig.seconds(30, 0.4);
    let step = &rig.controller.course().steps[0];
    assert!(step.is_stable, "half at 0.1 s and half at 0.4: {step:?}");
    assert_eq!(rig.users(), 24);
}

#[test]
fn a_retraction_is_rounded_down_and_leaves_one() {
    let to = |users: u32, retract: f64| {
        let plan = Plan {
            baseline: Baseline {
                users,
                ..Plan::default().baseline
            },
            max_users: users,
            retract,
            ..Plan::default()
        };
        let mut rig = Rig::new(plan).ramping();
        rig.seconds(120, 0.4);
        assert_eq!(rig.controller.course().t2_users, Some(users));
        rig.users()
    };
    assert_eq!(to(224, 0.85), 190);
    assert_eq!(to(100, 0.29), 29, "though the product is a little less");
    assert_eq!(to(1, 0.01), 1);
    assert_eq!(to(7, 1.0), 7);
}

#[test]
fn faults_of_a_plan_are_told_all_at_once() {
    let query = "max(engine:x)";
    let mut bad = gate("twice", query, Threshold::Above(f64::NAN), Then::Hold);
    bad.windows = 0;
    bad.over = Duration::ZERO;
    let mut relative = gate("twice", query, Threshold::TimesBaseline(0.0), Then::Retract);
    relative.windows = 2;
    let plan = Plan {
        baseline: Baseline {
            users: 0,
            warm_up: Duration::MAX,
            min: secs(60),
            requests: 0,
            max: secs(59),
        },
        step: 0,
        window: Duration::ZERO,
        max_users: 2_000_000,
        max_held: 0,
        retract: f64::NAN,
        soak: Soak {
            settle: Duration::MAX,
            length: Duration::ZERO,
        },
        gates: vec![bad, relative],
        silence: Duration::ZERO,
        patience: Duration::MAX,
    };
    let faults = Controller::new(plan).unwrap_err();
    let members: Vec<&str> = faults.iter().map(|fault| fault.member.as_str()).collect();
    let all = [
        "baseline.warm_up",
        "baseline.max",
        "ramp.window",
        "soak.settle",
        "soak.length",
        "scrape.silence",
        "scrape.patience",
        "baseline.users",
        "ramp.step",
        "ramp.max_users",
        "ramp.max_held",
        "ramp.retract",
        "gate[0]",
        "gate[0].windows",
        "gate[0].over",
        "gate[1]",
        "gate[1].windows",
        "gate[1].name",
    ];
    assert_eq!(members, all);
    assert!(Plan::default().check().is_ok());
    let mut never = Plan::default();
    never.gates[0].windows = 31;
    let faults = never.check().unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "gate[0].windows: are more than ramp.max_held: the ramp would always end before"
    );
    let more = Plan {
        max_users: 7,
        ..Plan::default()
    };
    let faults = more.check().unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "baseline.users: are more than ramp.max_users"
    );
}

fn any_plan(rng: &mut Rng) -> Plan {
    let max_users = 1 + rng.below(60) as u32;
    let mut plan = Plan {
        baseline: Baseline {
            users: 1 + rng.below(max_users.into()) as u32,
            warm_up: secs(rng.below(10)),
            min: secs(1 + rng.below(20)),
            requests: rng.below(50),
            max: secs(21 + rng.below(60)),
        },
        step: 1 + rng.below(10) as u32,
        window: secs(1 + rng.below(10)),
        max_users,
        max_held: 1 + rng.below(5) as u32,
        retract: 0.01 + 0.99 * rng.unit(),
        soak: Soak {
            settle: secs(rng.below(10)),
            length: secs(1 + rng.below(100)),
        },
        ..Plan::default()
    };
    plan.gates[0].windows = 1 + rng.below(u64::from(plan.max_held.min(3))) as u32;
    plan.gates[1].over = secs(1 + rng.below(30));
    plan
}

/// Whatever is heard: slow or fast, some preemptions, some silence.
fn any_course(plan: &Plan, rng: &mut Rng) -> Course {
    let mut rig = Rig::new(plan.clone());
    let (slow, lost, mute) = (rng.unit(), 0.02 * rng.unit(), 0.1 * rng.unit());
    let bound = plan.longest();
    while rig.controller.phase() != Phase::Over {
        if rng.unit() < mute {
            rig.silence(1 + rng.below(12));
        } else {
            let ttft = if rng.unit() < slow { 0.5 } else { 0.1 };
            let preempted = f64::from(rng.unit() < lost) * 3.0;
            rig.second(ttft, preempted);
        }
        assert!(rig.users() <= plan.max_users);
        assert!(rig.now <= bound.as_secs() + 12, "{} s", rig.now);
    }
    assert_eq!(rig.users(), 0);
    rig.controller.course().clone()
}

#[test]
fn whatever_is_heard_it_ends_in_time_with_no_more_users_than_wanted_and_the_same_way_again() {
    let mut endings = std::collections::BTreeMap::<String, u32>::new();
    for seed in 0..150 {
        println!("seed {seed}");
        let plan = any_plan(&mut Rng::new(seed));
        let course = any_course(&plan, &mut Rng::new(seed + 1000));
        assert_eq!(course, any_course(&plan, &mut Rng::new(seed + 1000)));
        assert!(course.events.is_sorted_by_key(|event| event.at));
        assert!(course.steps.is_sorted_by_key(|step| step.to));
        assert!(course.phases.windows(2).all(|p| p[0].to == p[1].from));
        let t2 = course.t2_users;
        assert!(t2.is_none_or(|users| users <= plan.max_users));
        let ending = course.ending.expect("it is over");
        let word = format!("{ending:?}");
        let word = word.split(['(', ' ']).next().unwrap_or_default();
        *endings.entry(word.to_owned()).or_default() += 1;
    }
    println!("{endings:?}");
    for ending in ["Completed", "Aborted", "Held"] {
        assert!(endings.contains_key(ending), "{endings:?}");
    }
}
