//! Forty traces against a model that knows nothing of due moments: it counts pauses down, millisecond by millisecond.
//!
//! Answers take as long as their tokens; the model and the machine are told of the same ends.

mod by_hand;
mod model;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use model::{Event, Model};

/// A millisecond for each token of an answer.
fn answer_ms(output: u32) -> u64 {
    u64::from(output)
}

/// The machine, with answers that take as long as their tokens: everything that was sent, and what was cancelled.
fn run(rules: &Rules, traces: &Arc<[Trace]>) -> (Lanes, Vec<Event>) {
    let mut lanes = Lanes::new(rules.clone(), Arc::clone(traces)).expect("rules");
    let mut events = Vec::new();
    let mut ends: BinaryHeap<Reverse<(Duration, u64)>> = BinaryHeap::new();
    let mut now = Duration::ZERO;
    while lanes.phase() != Phase::Over {
        while let Some(sent) = lanes.take(now) {
            let output = match sent.kind {
                Kind::Primer => 1,
                Kind::WarmUp | Kind::Measured => {
                    traces[sent.trace].streams[sent.stream].requests[sent.request].output
                }
            };
            let end = now + Duration::from_millis(answer_ms(output));
            ends.push(Reverse((end, sent.number)));
            events.push(Event::of(&sent, now));
        }
        let end = ends.peek().map(|Reverse((end, _))| *end);
        let next = [end, lanes.next_at()].into_iter().flatten().min();
        now = next.expect("something happens").max(now);
        while let Some(&Reverse((end, number))) =
            ends.peek().filter(|Reverse((end, _))| *end <= now)
        {
            ends.pop();
            lanes.ended(number, end);
        }
        // Phases end by themselves.
        if lanes.phase() == Phase::Grace || lanes.next_at() == Some(now) {
            lanes.pass(now);
        }
    }
    (lanes, events)
}

/// Made-up traces with sub-agents beside their parents.
fn traces(seed: u64, count: u64) -> Arc<[Trace]> {
    let trace = |number: u64| {
        let mut rng = Rng::stream(seed, &[number]);
        let mut streams = vec![(format!("{number}"), None, requests(&mut rng, 0, 14))];
        for sub in 0..rng.below(4) {
            let parent = rng.below(1 + sub / 2) as usize;
            let anchors = &streams[parent].2;
            let anchor: &Ask = &anchors[rng.below(anchors.len() as u64) as usize];
            let begins = (anchor.at + anchor.took).as_millis() as u64 + rng.below(3_000);
            let own = requests(&mut rng, begins, 4);
            streams.push((format!("{number}/{sub}"), Some(parent), own));
        }
        Trace::new(format!("{number}"), 64, streams, |_, _| None).expect("a trace")
    };
    (0..count).map(trace).collect()
}

fn requests(rng: &mut Rng, begins: u64, most: u64) -> Vec<Ask> {
    let mut at = begins;
    let count = 1 + rng.below(most);
    (0..count)
        .map(|_| {
            let output = 1 + rng.below(4_000) as u32;
            let ask = Ask {
                at: Duration::from_millis(at),
                took: Duration::from_millis(answer_ms(output)),
                prompt: 100,
                output,
                ..Ask::default()
            };
            // Now and then somebody is away for longer than lanes may idle.
            let pause = if rng.below(12) == 0 {
                400_000
            } else {
                rng.below(9_000)
            };
            at += answer_ms(output) + pause;
            ask
        })
        .collect()
}

fn short(lanes: u32, seed: u64) -> Rules {
    Rules {
        measure: Duration::from_secs(120),
        grace: Duration::from_secs(2),
        lane_idle: Duration::from_secs(30),
        ..Rules::agentx(lanes, seed)
    }
}

/// What was sent, in an order that says nothing of who is asked first in one millisecond; plays are counted by lane.
fn in_order(events: &[Event]) -> Vec<Event> {
    let mut plays: Vec<Vec<u64>> = Vec::new();
    let mut all = events.to_vec();
    for event in &mut all {
        let lane = event.lane as usize;
        plays.resize_with(plays.len().max(lane + 1), Vec::new);
        let of_lane = &mut plays[lane];
        if of_lane.last() != Some(&event.play) {
            of_lane.push(event.play);
        }
        event.play = of_lane.len() as u64 - 1;
    }
    all.sort_by_key(|event| (event.at_ms, event.lane, event.stream, event.request));
    all
}

#[test]
fn forty_traces_are_sent_as_a_model_has_them() {
    let mut cancelled = 0;
    let mut idle = (0, 0);
    for (lanes, seed) in [(40, 1), (8, 2), (3, 3), (1, 4), (2, 5)] {
        println!("{lanes} lanes, seed {seed}");
        let rules = short(lanes, seed);
        let traces = traces(seed, 40);
        let (machine, events) = run(&rules, &traces);
        let began: Vec<(usize, usize)> = machine.beginnings().collect();
        let mut model = Model::new(&rules, &traces, &began);
        model.run();
        assert_eq!(events.len(), model.events.len());
        let (ours, theirs) = (in_order(&events), in_order(&model.events));
        for (nth, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "request {nth}");
        }
        assert_eq!(
            machine.begun().map(|begun| begun.as_millis()),
            Some(u128::from(model.begun))
        );
        let mut left: Vec<(u32, usize, usize)> = machine
            .under_way()
            .map(|sent| (sent.lane, sent.stream, sent.request))
            .collect();
        left.sort_unstable();
        assert_eq!(left, model.cancelled());
        cancelled += left.len();
        let (of_lanes, of_all) = machine.left_out();
        assert_eq!((of_lanes.times, of_all.times), model.left_out);
        idle = (idle.0 + of_lanes.times, idle.1 + of_all.times);
        let count = |kind| events.iter().filter(|event| event.kind == kind).count();
        assert_eq!(count(Kind::WarmUp), 10 * lanes as usize);
        assert!(
            count(Kind::Primer) >= lanes as usize / 2,
            "{}",
            count(Kind::Primer)
        );
        assert!(count(Kind::Measured) > 0);
    }
    // Otherwise the test would not say what it says.
    assert!(
        cancelled > 0 && idle.0 > 0 && idle.1 > 0,
        "{cancelled} {idle:?}"
    );
}

#[test]
fn lanes_begin_where_the_seed_says_and_take_each_trace_once_before_any_again() {
    let rules = short(8, 9);
    let traces = traces(9, 40);
    let (machine, events) = run(&rules, &traces);
    let (again, same) = run(&rules, &traces);
    assert_eq!(events, same);
    assert!(machine.beginnings().eq(again.beginnings()));
    let other: Vec<_> = run(&Rules { seed: 10, ..rules }, &traces)
        .0
        .beginnings()
        .collect();
    assert_ne!(machine.beginnings().collect::<Vec<_>>(), other);
    for (trace, request) in machine.beginnings() {
        let root = &traces[trace].streams[0];
        let length = traces[trace].length();
        let at = |request: usize| root.requests[request].at;
        // What is no history was sent after a quarter of the trace, unless it is the agent's last.
        assert!(at(request) >= length.mul_f64(0.25) || request + 1 == root.requests.len());
        assert!(request == 0 || at(request - 1) < length.mul_f64(0.75));
    }
    let mut plays: Vec<(u64, usize)> = events
        .iter()
        .map(|event| (event.play, event.trace))
        .collect();
    plays.sort_unstable();
    plays.dedup();
    let mut first: Vec<usize> = plays.iter().take(8).map(|(_, trace)| *trace).collect();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 8, "lanes begin with traces of their own");
}
