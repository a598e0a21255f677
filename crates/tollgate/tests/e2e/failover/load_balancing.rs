//! Several endpoints: weights, ejection, and a gate without free descriptors.

use tokio::task::JoinSet;

use super::{bad, good, pair, siblings};
use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Connection, Gate, Signal, Step, Upstream, chat, h2};
use crate::upstream_faults::{call, case, one};

#[test]
fn endpoints_get_calls_in_proportion_to_their_weights() {
    let (heavy, light) = (good(), good());
    let gate = Gate::start(&siblings(heavy.address, light.address, 3), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..400 {
        assert_eq!(connection.call(&call("m", false)).status, 200);
    }
    // 300 expected; the standard deviation is 8.7, and 60 is seven of them.
    let got = heavy.seen().len();
    assert!((240..=360).contains(&got), "{got} of 400 at weight 3 to 1");
    assert_eq!(got + light.seen().len(), 400);
}

#[test]
fn an_endpoint_that_keeps_failing_is_ejected() {
    let (sick, well) = (
        bad(),
        Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]),
    );
    let config = siblings(sick.address, well.address, 1);
    let gate = Gate::start(&format!("workers: 1\n{config}"), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..60 {
        assert_eq!(connection.call(&call("503", false)).status, 200);
    }
    assert_eq!(sick.seen().len(), 5, "five failures in a row, then peace");
    assert_eq!(well.seen().len(), 60);
}

#[test]
fn one_callers_errors_eject_an_endpoint_for_that_caller_alone() {
    let first = Upstream::start(|_, seen| match case(seen).as_str() {
        "crash" => vec![Step::Send(json(500, r#"{"error":{"message":"sampler"}}"#))],
        _ => vec![Step::Send(json(200, COMPLETION))],
    });
    let second = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let config = pair(first.address, second.address);
    let both = config.replace("workload: w,", "workload: [w, other],");
    let gate = Gate::start(&format!("workers: 1\n{both}"), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..20 {
        assert_eq!(connection.call(&call("crash", false)).status, 200);
    }
    assert_eq!(
        first.seen().len(),
        5,
        "then it is left alone for that caller"
    );
    let others = String::from_utf8(call("m", false)).expect("text");
    let others = others.replace("x-workload-app: w", "x-workload-app: other");
    for _ in 0..5 {
        assert_eq!(connection.call(others.as_bytes()).status, 200);
    }
    assert_eq!(first.seen().len(), 10, "and for nobody else");
}

/// Calls that are refused before any other is answered.
const REFUSED: usize = 20;

#[test]
fn running_out_of_descriptors_does_not_count_against_the_endpoint() {
    let refused = Signal::default();
    let until = refused.clone();
    let slow = Upstream::start(move |_, _| {
        vec![
            Step::Until(until.clone()),
            Step::Send(json(200, COMPLETION)),
        ]
    });
    let config = format!("workers: 1\n{}", one(slow.address));
    let gate = Gate::start_with_descriptors(128, &config);
    let exhausted = || {
        let label = "result=\"connections_exhausted\"";
        gate.metric("tollgate_attempts_total", &[label])
    };
    // No call is answered before so many were refused. The gate's own pages cannot tell of it: they need a descriptor.
    let answers = h2::run(async {
        let (mut asked, mut clients, mut answers) = (JoinSet::new(), Vec::new(), Vec::new());
        for _ in 0..4 {
            let mut client = h2::connect(gate.data).await;
            for _ in 0..50 {
                let call = h2::post("/v1/chat/completions", chat("m", false));
                let answer = client.send_request(call);
                asked.spawn(async { h2::whole(answer.await.expect("an answer")).await });
            }
            clients.push(client);
        }
        while let Some(answer) = asked.join_next().await {
            answers.push(answer.expect("no panic").expect("whole"));
            if answers.len() == REFUSED {
                refused.give();
            }
        }
        answers
    });
    let good = answers.iter().filter(|a| a.status == 200).count();
    let full: Vec<_> = answers.iter().filter(|a| a.status != 200).collect();
    assert!(
        good >= REFUSED && full.len() >= REFUSED,
        "{good} good of 200"
    );
    for answer in &full {
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.code(), "connections_exhausted");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    assert_eq!(
        exhausted().to_string(),
        full.len().to_string(),
        "under a label of its own"
    );
    assert_eq!(gate.call(&call("m", false)).status, 200, "it recovers");
}
