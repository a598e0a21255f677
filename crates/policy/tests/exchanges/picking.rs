//! Calls to pools whose endpoints a picker names: which are tried and in which order, and who is told.
//!
//! Not here: how a picker is asked (`callout`).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use policy::caller::Later;
use policy::exchange::{Answer, Exchange, Question, Verdict};
use policy::operation::Operation::Completions;
use policy::picker::{Field, Picked, PickedCall, Picker, Served};
use policy::snapshot::Snapshot;
use policy::wire::head::ResponseHead;
use policy::wire::meter::Meter;

use crate::fixture::{BackendPlan, RoutePlan, snapshot};
use crate::world::{Asked, World, call, plan};

const JSON: &str = "application/json";
const BODY: &str = r#"{"model":"m","max_tokens":10,"prompt":"hello"}"#;

/// A picker that is answered for by the test.
#[derive(Debug)]
struct Named {
    #[expect(dead_code, reason = "told by its Debug")]
    name: &'static str,
    fails_open: bool,
}

impl Picker for Named {
    fn pick(&self, _call: PickedCall) -> Later<Picked> {
        unreachable!("the test answers")
    }

    fn fails_open(&self) -> bool {
        self.fails_open
    }
}

/// Whom it was told of.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Served for Told {
    fn tell(self: Box<Self>, endpoint: &str, head: &ResponseHead) -> Option<Later<Vec<Field>>> {
        let told = format!("{endpoint} {}", head.status);
        self.0.lock().expect("no panic").push(told);
        None
    }
}

/// Two pools: endpoints 0 to 2 at `10.0.0.1:80` and on, 3 and 4 at `10.0.1.1:80` and on.
fn pools(fail_open: bool) -> Snapshot {
    let pool = |name, weights| BackendPlan {
        name,
        weights,
        models: &[],
    };
    let mut s = snapshot(&[RoutePlan {
        backends: &[pool("near", &[1, 1, 1]), pool("far", &[1, 1])],
        ..plan()
    }]);
    for (nth, endpoint) in s.endpoints.iter_mut().enumerate() {
        let (pool, nth) = (nth / 3, nth % 3 + 1);
        endpoint.origin.host = format!("10.0.{pool}.{nth}");
    }
    for (backend, name) in s.backends.iter_mut().zip(["near", "far"]) {
        backend.picker = Some(Arc::new(Named {
            name,
            fails_open: fail_open,
        }));
    }
    s.is_balanced = true;
    s
}

fn begun(world: &mut World) -> Asked {
    let mut asked = world.ask(&call(Completions, BODY));
    world.tell(&mut asked, Exchange::entered);
    asked
}

/// What is asked of whom.
fn question(asked: &Asked) -> (String, PickedCall) {
    let Verdict::Ask(ask) = &asked.verdict else {
        panic!("{:?}", asked.verdict);
    };
    match &ask.question {
        Question::Pick(picker, call) => (format!("{picker:?}"), (**call).clone()),
        other => panic!("{other:?}"),
    }
}

fn asks(asked: &Asked, name: &str) {
    let (picker, _) = question(asked);
    assert!(
        picker.contains(&format!("{name:?}")),
        "{picker} is no {name}"
    );
}

fn answer(world: &mut World, asked: &mut Asked, picked: Picked) {
    world.told(asked, Answer::Picked(picked));
}

fn picks(world: &mut World, asked: &mut Asked, addresses: &[&str], told: &Told) {
    let addresses = addresses
        .iter()
        .map(|text| text.parse::<SocketAddr>().expect("one"));
    let picked = Picked::Endpoints(addresses.collect(), Box::new(told.clone()));
    answer(world, asked, picked);
}

fn endpoint(asked: &Asked) -> u32 {
    match &asked.verdict {
        Verdict::Attempt(plan) => plan.endpoint.0,
        other => panic!("{other:?}"),
    }
}

/// What its client is told.
fn message(asked: &Asked) -> String {
    match &asked.verdict {
        Verdict::Refuse(refusal) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

fn fails(world: &mut World, asked: &mut Asked) {
    asked.exchange.sent(true);
    world.response(asked, 503, JSON);
}

#[test]
fn the_call_goes_down_the_list_and_who_served_is_told_to_who_picked() {
    let mut world = World::new(pools(false));
    let mut asked = begun(&mut world);
    let (_, call) = question(&asked);
    let field = |name: &[u8]| {
        let mut named = call.headers.iter().filter(|(field, _)| **field == *name);
        named
            .next()
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    assert_eq!(field(b":method").as_deref(), Some("POST"));
    assert_eq!(field(b":path").as_deref(), Some("/v1/completions"));
    assert_eq!(
        field(b"x-workload-app"),
        None,
        "who calls is nobody's business"
    );
    assert_eq!(call.body.concat(), BODY.as_bytes());
    let told = Told::default();
    // The second is of no pool, the third of another one.
    let list = [
        "10.0.0.3:80",
        "10.9.9.9:80",
        "10.0.1.1:80",
        "10.0.0.1:80",
        "10.0.0.1:81",
    ];
    picks(&mut world, &mut asked, &list, &told);
    assert_eq!(endpoint(&asked), 2);
    fails(&mut world, &mut asked);
    assert_eq!(
        endpoint(&asked),
        0,
        "the next of the list, and nobody is asked again"
    );
    asked.exchange.sent(true);
    assert!(
        !call.body.iter().all(bytes::Bytes::is_unique),
        "a picker may be asked again"
    );
    world.response(&mut asked, 200, JSON);
    assert!(
        call.body.iter().all(bytes::Bytes::is_unique),
        "it is kept by nobody else"
    );
    assert_eq!(*told.0.lock().expect("no panic"), ["10.0.0.1:80 200"]);
    let mut meter = Meter::new(asked.relay().form);
    world.end(&mut asked, &mut meter, false);
    let chosen = asked.record().extra.as_ref().and_then(|extra| extra.chosen);
    assert_eq!(chosen.map(|chosen| chosen.why.as_str()), Some("picker"));
}

#[test]
fn another_pool_has_its_own_picker_and_the_first_ones_endpoints_are_not_used_again() {
    let mut world = World::new(pools(false));
    let mut asked = begun(&mut world);
    asks(&asked, "near");
    let (near, far) = (Told::default(), Told::default());
    picks(&mut world, &mut asked, &["10.0.0.2:80"], &near);
    assert_eq!(endpoint(&asked), 1);
    fails(&mut world, &mut asked);
    asks(&asked, "far");
    picks(&mut world, &mut asked, &["10.0.1.2:80"], &far);
    assert_eq!(endpoint(&asked), 4);
    // Nothing is left that was picked: what failed last goes to the client.
    fails(&mut world, &mut asked);
    assert!(matches!(asked.verdict, Verdict::Relay(_)));
    assert!(near.0.lock().expect("no panic").is_empty());
    assert_eq!(*far.0.lock().expect("no panic"), ["10.0.1.2:80 503"]);
}

#[test]
fn without_a_pick_a_closed_pool_is_passed_over_and_an_open_one_chosen_from() {
    let unavailable = || Picked::Unavailable("gone".into());
    let mut world = World::new(pools(false));
    let mut asked = begun(&mut world);
    answer(&mut world, &mut asked, unavailable());
    asks(&asked, "far");
    answer(&mut world, &mut asked, unavailable());
    assert_eq!(asked.code(), "upstream_unavailable");
    assert_eq!(asked.record().status, 503);
    let told = "the endpoint picker of this pool did not answer, and no call goes there without it";
    assert_eq!(message(&asked), told);
    assert_eq!(
        asked.record().reason.as_deref(),
        Some("the endpoint picker: gone")
    );
    let mut world = World::new(pools(true));
    let mut asked = begun(&mut world);
    answer(&mut world, &mut asked, unavailable());
    assert!(endpoint(&asked) < 3, "any endpoint of the first pool");
    let reason = |asked: &Asked| asked.record().reason.as_deref().map(str::to_owned);
    assert_eq!(reason(&asked).as_deref(), Some("the endpoint picker: gone"));
    // One that names nobody of the pool is no better.
    let mut asked = begun(&mut world);
    picks(&mut world, &mut asked, &["10.0.1.1:80"], &Told::default());
    assert!(endpoint(&asked) < 3);
    let says = "the endpoint picker: it picked no endpoint of the pool";
    assert_eq!(reason(&asked).as_deref(), Some(says));
}

#[test]
fn a_call_of_a_split_route_goes_to_the_drawn_backend_alone() {
    let mut s = pools(false);
    s.routes[0].weights = vec![3, 1];
    let mut world = World::new(s);
    let mut near = 0;
    for _ in 0..400 {
        let mut asked = begun(&mut world);
        let (picker, _) = question(&asked);
        let (is_near, list) = match picker.contains("near") {
            true => (true, "10.0.0.2:80"),
            false => (false, "10.0.1.2:80"),
        };
        near += u32::from(is_near);
        picks(&mut world, &mut asked, &[list], &Told::default());
        assert_eq!(endpoint(&asked), if is_near { 1 } else { 4 });
        // The other pool has its own share of calls, and none of this one's.
        fails(&mut world, &mut asked);
        assert!(matches!(asked.verdict, Verdict::Relay(_)));
        let mut meter = Meter::new(asked.relay().form);
        world.end(&mut asked, &mut meter, false);
    }
    assert!((260..340).contains(&near), "{near} of 400");
}

#[test]
fn the_share_of_a_closed_backend_is_refused_and_the_rest_is_served() {
    let mut s = pools(false);
    s.routes[0].weights = vec![1, 1];
    s.backends[1].endpoints.clear();
    s.backends[1].picker = None;
    s.backends[0].picker = None;
    let mut world = World::new(s);
    let mut refused = 0;
    for _ in 0..200 {
        let asked = begun(&mut world);
        if let Verdict::Attempt(plan) = &asked.verdict {
            assert!(plan.endpoint.0 < 3);
            continue;
        }
        assert_eq!(asked.code(), "route_closed");
        refused += 1;
    }
    assert!((70..130).contains(&refused), "{refused} of 200");
}

#[test]
fn a_backend_of_which_no_address_is_ready_is_not_there_yet_and_one_that_is_closed_is_faulty() {
    for (are_unready, code, status) in [
        ([false, false], "route_closed", 500),
        ([true, false], "upstream_unavailable", 503),
        ([true, true], "upstream_unavailable", 503),
    ] {
        let mut s = pools(false);
        for (backend, is_unready) in s.backends.iter_mut().zip(are_unready) {
            backend.endpoints.clear();
            backend.picker = None;
            backend.is_unready = is_unready;
        }
        let mut world = World::new(s);
        let asked = begun(&mut world);
        assert_eq!((asked.code(), asked.record().status), (code, status));
    }
}

#[test]
fn what_a_picker_adds_to_an_answer_is_waited_for_before_it_is_relayed() {
    #[derive(Debug)]
    struct Adds;
    impl Served for Adds {
        fn tell(self: Box<Self>, _: &str, _: &ResponseHead) -> Option<Later<Vec<Field>>> {
            Some(Box::pin(std::future::ready(vec![(
                b"x-a".as_slice().into(),
                b"b".as_slice().into(),
            )])))
        }
    }
    let mut world = World::new(pools(false));
    let mut asked = begun(&mut world);
    let address = "10.0.0.2:80".parse().expect("one");
    let picked = Picked::Endpoints(vec![address], Box::new(Adds));
    answer(&mut world, &mut asked, picked);
    asked.exchange.sent(true);
    world.response(&mut asked, 200, JSON);
    match &asked.verdict {
        Verdict::Amend(amended) => assert!(matches!(amended.verdict, Verdict::Relay(_))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_that_does_not_answer_in_time_is_one_that_does_not_answer() {
    let mut world = World::new(pools(false));
    let mut asked = begun(&mut world);
    world.tell(&mut asked, |exchange, env| exchange.stalled(env));
    asks(&asked, "far");
    world.tell(&mut asked, |exchange, env| exchange.stalled(env));
    assert_eq!(asked.code(), "upstream_unavailable");
}

#[test]
fn a_call_that_the_picker_sheds_is_refused_with_its_status() {
    for status in [429, 503] {
        let mut world = World::new(pools(true));
        let mut asked = begun(&mut world);
        let why = "no capacity for this priority";
        answer(&mut world, &mut asked, Picked::Shed(status, why.into()));
        assert_eq!(asked.record().status, status, "and no other pool is asked");
        let told =
            format!("the endpoint picker of this pool refused the call with {status}: {why}");
        assert_eq!(message(&asked), told);
        let says = format!("the endpoint picker answered {status}: {why}");
        assert_eq!(asked.record().reason.as_deref(), Some(&*says));
    }
}
