//! One trace with two sub-agents, step by step.

use super::*;

fn ask(at_s: u64, took_s: u64) -> Ask {
    Ask {
        at: Duration::from_secs(at_s),
        took: Duration::from_secs(took_s),
        prompt: 100,
        output: 10,
        ..Ask::default()
    }
}

/// The agent asks at 0, 10 and 40 s. A sub-agent for which it waits asks at 16 and 20; one for which nobody waits asks at 17 and 90.
fn one() -> Trace {
    let streams = vec![
        (
            "t".to_owned(),
            None,
            vec![ask(0, 4), ask(10, 5), ask(40, 2)],
        ),
        ("t/0".to_owned(), Some(0), vec![ask(16, 2), ask(20, 10)]),
        ("t/1".to_owned(), Some(0), vec![ask(17, 1), ask(90, 1)]),
    ];
    Trace::new("t".into(), 64, streams, |_, _| None).expect("a trace")
}

#[test]
fn sub_agents_belong_where_their_times_say_and_pauses_are_from_what_was_waited_for() {
    let trace = one();
    let parents: Vec<_> = trace.streams.iter().map(|stream| stream.parent).collect();
    let parent = |before| {
        Some(Parent {
            stream: 0,
            after: Some(1),
            before,
        })
    };
    assert_eq!(parents, [None, parent(Some(2)), parent(None)]);
    let pauses = |stream: usize| {
        let requests = trace.streams[stream].requests.iter();
        requests.map(|ask| ask.pause.as_secs()).collect::<Vec<_>>()
    };
    // 10 s after the sub-agent's last answer at 30 s.
    assert_eq!(pauses(0), [0, 6, 10]);
    assert_eq!(pauses(1), [1, 2]);
    assert_eq!(pauses(2), [2, 72]);
}

#[test]
fn a_lane_primes_warms_up_waits_and_joins_its_sub_agents() {
    let traces: Arc<[Trace]> = Arc::new([one()]);
    // It begins at 18 s: after the first question of each sub-agent.
    let rules = Rules {
        begins: (0.2, 0.2),
        warm_ups: 1,
        ..Rules::agentx(1, 1)
    };
    let mut lanes = Lanes::new(rules, traces).expect("rules");
    let s = Duration::from_secs;
    let take = |lanes: &mut Lanes, at: u64| {
        let mut all = Vec::new();
        while let Some(sent) = lanes.take(s(at)) {
            all.push((sent.number, sent.stream, sent.request, sent.kind));
        }
        all
    };
    assert_eq!(
        take(&mut lanes, 0),
        [
            (0, 0, 1, Kind::Primer),
            (1, 1, 0, Kind::Primer),
            (2, 2, 0, Kind::Primer)
        ]
    );
    assert_eq!(lanes.next_at(), None, "it waits for its primers");
    for number in 0..3 {
        lanes.ended(number, s(1));
    }
    // The trace's clock stood at 18 s and goes on: the sub-agent asks at 20 s.
    assert_eq!(lanes.next_at(), Some(s(3)));
    assert_eq!(take(&mut lanes, 3), [(3, 1, 1, Kind::WarmUp)]);
    assert_eq!(lanes.next_at(), None, "one request warms up");
    lanes.ended(3, s(7));
    assert_eq!(
        (lanes.phase(), lanes.begun()),
        (Phase::Measured, Some(s(7)))
    );
    // It has waited for the sub-agent alone, and pauses for 10 s as it did.
    assert_eq!(lanes.next_at(), Some(s(17)));
    assert_eq!(take(&mut lanes, 17), [(4, 0, 2, Kind::Measured)]);
    lanes.ended(4, s(18));
    // The other would ask at 90 - 18 + 1 s; nothing is under way, and nobody waits for more than 10 s.
    assert_eq!(lanes.next_at(), Some(s(28)));
    let (of_lanes, of_all) = lanes.left_out();
    assert_eq!((of_lanes.times, of_all.times, of_all.time), (0, 1, s(45)));
    assert_eq!(take(&mut lanes, 28), [(5, 2, 1, Kind::Measured)]);
    lanes.ended(5, s(29));
    // The whole tree has ended: the trace comes again, from its start.
    assert_eq!(take(&mut lanes, 29), [(6, 0, 0, Kind::Measured)]);
    assert_eq!(lanes.plays(), 2);
}

#[test]
fn what_is_under_way_after_the_grace_is_cancelled() {
    let traces: Arc<[Trace]> = Arc::new([one()]);
    let rules = Rules {
        begins: (0.0, 0.0),
        warm_ups: 0,
        measure: Duration::from_secs(5),
        grace: Duration::from_secs(3),
        ..Rules::agentx(1, 1)
    };
    let mut lanes = Lanes::new(rules, traces).expect("rules");
    let s = Duration::from_secs;
    assert_eq!(lanes.phase(), Phase::Measured, "nothing warms up");
    let sent = lanes.take(s(0)).expect("the first");
    assert_eq!((sent.kind, sent.request), (Kind::Measured, 0));
    assert_eq!(lanes.next_at(), Some(s(5)));
    assert_eq!(lanes.take(s(5)), None);
    assert_eq!((lanes.phase(), lanes.next_at()), (Phase::Grace, Some(s(8))));
    assert_eq!(lanes.take(s(8)), None);
    assert_eq!(lanes.phase(), Phase::Over);
    assert_eq!(lanes.under_way().count(), 1);
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let traces: Arc<[Trace]> = Arc::new([one()]);
    for (rules, says) in [
        (Rules::agentx(0, 1), "lanes"),
        (
            Rules {
                begins: (0.8, 0.2),
                ..Rules::agentx(1, 1)
            },
            "begins",
        ),
        (
            Rules {
                measure: Duration::ZERO,
                ..Rules::agentx(1, 1)
            },
            "duration",
        ),
    ] {
        let refused = Lanes::new(rules, Arc::clone(&traces)).expect_err("no sense");
        assert!(refused.contains(says), "{refused}");
    }
    assert!(Lanes::new(Rules::agentx(1, 1), Arc::new([])).is_err());
    let none = Trace::new("x".into(), 64, Vec::new(), |_, _| None);
    assert!(
        none.expect_err("no request")
            .to_string()
            .contains("trace x")
    );
}
