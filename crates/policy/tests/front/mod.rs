//! A protocol of its own on the public front: neither HTTP nor inference, and nothing of the exchange is touched.
//!
//! A message is a line: `from <name> key <key> <verb> <thing>`. `fetch` takes a request, `brew` takes tokens as well.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use policy::authority::{Asked, Decision, Rules};
use policy::budget::Unit;
use policy::caller::{Caller, Proven};
use policy::credential::Given;
use policy::exchange::Env;
use policy::front::{Begun, Call, Demand, Ended, Identification, Known, Presented};
use policy::id::PriceId;
use policy::identity::{HeaderSource, Proof, Source, Unproven, Verifier};
use policy::limit::Kind;
use policy::price::{Pico, Price, Rates};
use policy::record::{Count, Outcome, Record, Tokens};
use policy::refusal::Refusal;
use policy::route;
use policy::secret::Secret;
use policy::snapshot::Snapshot;
use policy::subject::Whose;
use wire::head::FieldName;

use crate::fixture::{ONE, RoutePlan, rate, snapshot};
use crate::world::{World, budget};

const SOMEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

/// A message, as the protocol has it.
struct Message<'m> {
    names: Vec<&'m str>,
    key: Option<&'m str>,
    verb: &'m str,
    thing: &'m str,
}

impl<'m> Message<'m> {
    fn read(line: &'m str) -> Self {
        let mut words = line.split(' ');
        let (mut names, mut key) = (Vec::new(), None);
        let verb = loop {
            match words.next().expect("a verb") {
                "from" => names.push(words.next().expect("a name")),
                "key" => key = words.next(),
                verb => break verb,
            }
        };
        let thing = words.next().unwrap_or_default();
        Self {
            names,
            key,
            verb,
            thing,
        }
    }
}

impl Presented for Message<'_> {
    fn named(&self, name: &FieldName) -> Result<Option<&[u8]>, Refusal> {
        match self.names.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.as_bytes())),
            _ => Err(Refusal::IdentityRepeated {
                header: name.to_string(),
            }),
        }
    }

    fn credential(&self) -> Given<'_> {
        match self.key {
            Some(key) => Given::Token(key.as_bytes()),
            None => Given::Nothing,
        }
    }

    fn peer(&self) -> IpAddr {
        SOMEWHERE
    }
}

/// Knows keys that are a name behind a `k`; of those behind a `q` it asks.
#[derive(Debug)]
struct Keys;

impl Keys {
    fn proof(credential: &[u8]) -> Proof {
        let name = String::from_utf8_lossy(&credential[1..]).into_owned();
        Proof {
            caller: Arc::new(Caller {
                workload: name.as_str().into(),
                user: Some("ada".into()),
                by: Proven::Key,
                ..Caller::default()
            }),
            until_unix_s: u64::MAX,
        }
    }
}

impl Verifier for Keys {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn keeps_proofs(&self) -> bool {
        false
    }

    fn fingerprint(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    fn verify(&self, credential: &[u8], _: u64) -> Result<Proof, Unproven> {
        match credential {
            [b'k', ..] => Ok(Self::proof(credential)),
            [b'q', ..] => Err(Unproven::Ask),
            _ => Err(Unproven::Invalid(Cow::Borrowed("no such key"))),
        }
    }

    fn ask(&self, credential: Secret) -> policy::caller::Later<Result<Proof, Unproven>> {
        let proof = Self::proof(credential.expose());
        Box::pin(std::future::ready(Ok(proof)))
    }
}

/// Allows everything but to brew at the harbour; notes what it is asked.
#[derive(Debug, Default)]
struct NoHarbour(Mutex<Vec<String>>);

impl Rules for NoHarbour {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        let line = format!(
            "{} {} {} {}",
            asked.workload, asked.operation, asked.path, asked.source
        );
        self.0.lock().expect("one thread").push(line);
        Decision {
            allowed: !(asked.operation == "brew" && asked.path == "harbour"),
            by: Some("no-harbour".into()),
            why: None,
        }
    }
}

fn world(change: impl FnOnce(&mut Snapshot)) -> World {
    let limits = [(Kind::Requests, rate(3, 60)), (Kind::Tokens, rate(100, 60))];
    let plan = RoutePlan {
        workloads: &["ide"],
        backends: &[ONE],
        limits: &limits,
        ..RoutePlan::default()
    };
    let mut s = snapshot(&[plan]);
    s.identity.sources = vec![
        Source::Credential(Arc::new(Keys)),
        Source::Header(HeaderSource::default()),
    ];
    change(&mut s);
    World::new(s)
}

fn identified(line: &str, world: &mut World) -> Result<Known, Box<Ended>> {
    let message = Message::read(line);
    let env = &mut world.env();
    let begun = Begun::new(Some("m-1"), std::iter::empty(), &message, 1_000_000, env);
    match begun.identify(&message, env) {
        Identification::Known(known) => Ok(known),
        Identification::Refused(ended) => Err(ended),
        Identification::Asks(asking) => {
            let (verifier, credential) = asking.question();
            let proof = wait(verifier.ask(credential.clone()));
            asking.answered(proof, &message, env)
        }
    }
}

/// The answer of a future that waits for nothing.
fn wait<T>(mut later: policy::caller::Later<T>) -> T {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match later.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

/// The whole way of a message: its record, and whether it ran.
fn served(line: &str, used: u64, world: &mut World) -> Ended {
    let known = match identified(line, world) {
        Ok(known) => known,
        Err(ended) => return *ended,
    };
    let message = Message::read(line);
    let env = &mut world.env();
    let call = Call {
        method: message.verb,
        path: message.thing,
        operation: message.verb,
        source: message.peer(),
        route: None,
        model: None,
    };
    let allowed = match known.authorize(&call, env.snapshot, env.now) {
        Ok(allowed) => allowed,
        Err(ended) => return *ended,
    };
    let workload = allowed.record().workload.expect("a caller");
    let chosen = match route::choose(env.snapshot, workload, None) {
        Ok(chosen) => chosen,
        Err(refusal) => return allowed.refuse(refusal, env.now),
    };
    let tokens = (message.verb == "brew").then_some(60);
    // Whoever has prices pays the first one.
    let price = (!env.snapshot.prices.all().is_empty()).then_some(PriceId(0));
    let admitted = match allowed.admit(chosen, Demand::charged(tokens), price, env) {
        Ok(admitted) => admitted,
        Err(ended) => return *ended,
    };
    assert_eq!(admitted.estimate().reserved, tokens.unwrap_or(0));
    if message.thing == "nowhere" {
        return admitted.release(Refusal::NoSuchPath, env);
    }
    let prompt = match tokens {
        Some(_) => Count::Counted(used),
        None => Count::Unknown,
    };
    let tokens = Tokens {
        prompt,
        ..Tokens::default()
    };
    admitted.settle(Outcome::Completed, tokens, env)
}

fn code(ended: &Ended) -> &'static str {
    assert_eq!(ended.refusal.is_none(), ended.record.code.is_empty());
    ended.record.code
}

fn shown(record: &Record) -> (&str, Option<u64>, bool) {
    (
        &record.id,
        record.tokens.prompt.tokens(),
        record.caller.is_some(),
    )
}

#[test]
fn a_message_is_identified_admitted_settled_and_recorded() {
    let mut world = world(|_| {});
    let ended = served("from ide brew tea", 20, &mut world);
    assert_eq!(code(&ended), "");
    assert!(ended.settled.is_some());
    assert_eq!(ended.record.outcome, Outcome::Completed);
    assert_eq!(shown(&ended.record), ("m-1", Some(20), false));
    assert!(ended.record.route.is_some());
    assert_eq!(
        (world.left(0), world.left(1)),
        (2, 80),
        "what it used is counted"
    );
}

#[test]
fn who_sends_it_is_known_by_a_name_a_key_or_an_answer_and_must_not_be_contradicted() {
    let mut world = world(|_| {});
    for (line, expected) in [
        ("from ide fetch tea", ""),
        ("key kide fetch tea", ""),
        ("from ide key qide fetch tea", ""),
        ("fetch tea", "credential_missing"),
        ("key x fetch tea", "invalid_api_key"),
        ("from ide from ops fetch tea", "identity_repeated"),
        ("from ops key kide fetch tea", "identity_contradicted"),
        ("key kops fetch tea", "workload_not_registered"),
    ] {
        let ended = served(line, 0, &mut world);
        assert_eq!(code(&ended), expected, "{line}");
        let is_proven = line.contains("key") && expected.is_empty();
        assert_eq!(ended.record.caller.is_some(), is_proven, "{line}");
    }
    assert_eq!(world.left(0), 0, "three of them were let in");
}

#[test]
fn limits_and_budgets_hold_and_what_did_not_run_is_given_back() {
    let mut world = world(|s| budget(s, Unit::Tokens, 150, Whose::Workload));
    let nowhere = served("from ide brew nowhere", 0, &mut world);
    assert_eq!(code(&nowhere), Refusal::NoSuchPath.reply().code);
    assert!(nowhere.settled.is_none());
    assert_eq!(
        (world.left(0), world.left(1), world.held(0, None)),
        (3, 100, 0)
    );
    assert_eq!(code(&served("from ide brew tea", 70, &mut world)), "");
    assert_eq!(
        (world.left(0), world.left(1), world.held(0, None)),
        (2, 30, 70)
    );
    let short = served("from ide brew tea", 70, &mut world);
    assert_eq!(code(&short), "rate_limit_exceeded");
    assert_eq!(
        (world.left(0), world.held(0, None)),
        (2, 70),
        "it holds nothing"
    );
    world.now = world.now.after(std::time::Duration::from_secs(60));
    assert_eq!(code(&served("from ide brew tea", 60, &mut world)), "");
    world.now = world.now.after(std::time::Duration::from_secs(60));
    let spent = served("from ide brew tea", 60, &mut world);
    assert_eq!(code(&spent), "insufficient_quota");
}

#[test]
fn what_has_a_price_and_no_tokens_costs_its_price() {
    let mut world = world(|s| {
        let euros = Unit::Money("EUR".into());
        // A nanoeuro is a thousand of the price's units.
        s.prices.add(Price {
            id: "p".into(),
            whose: "".into(),
            currency: "EUR".into(),
            request: Pico(40_000),
            rates: Rates::flat(Pico(0), Pico(0)),
            tiers: Vec::new(),
        });
        budget(s, euros, 100, Whose::Workload);
    });
    for spent in [40, 80] {
        let ended = served("from ide fetch tea", 0, &mut world);
        assert_eq!(code(&ended), "");
        assert_eq!(ended.record.tokens.prompt, Count::Unknown);
        let cost = ended.record.charge.and_then(|charge| charge.cost);
        assert_eq!(cost, Some(Pico(40_000)));
        assert_eq!(world.held(0, None), spent);
    }
    let over = served("from ide fetch tea", 0, &mut world);
    assert_eq!(code(&over), "insufficient_quota");
}

#[test]
fn rules_of_the_configuration_see_the_message_in_its_own_words() {
    let rules = Arc::new(NoHarbour::default());
    let mut world = world(|s| s.authority = Some(rules.clone()));
    assert_eq!(code(&served("from ide brew tea", 1, &mut world)), "");
    let denied = served("from ide brew harbour", 1, &mut world);
    assert_eq!(code(&denied), "not_authorized");
    assert_eq!(denied.record.reason.as_deref(), Some("rule no-harbour"));
    let asked = rules.0.lock().expect("one thread");
    assert_eq!(
        *asked,
        ["ide brew tea 192.0.2.7", "ide brew harbour 192.0.2.7"]
    );
    assert_eq!(world.left(0), 2, "what is denied takes nothing");
}

#[test]
fn a_message_that_an_env_of_another_moment_ends_says_how_long_it_took() {
    let mut world = world(|_| {});
    let known = identified("from ide fetch tea", &mut world).expect("a caller");
    world.now = world.now.after(std::time::Duration::from_millis(40));
    let now: Env<'_> = world.env();
    let ended = known.refuse(Refusal::NoSuchPath, now.now);
    assert_eq!(ended.record.duration.as_millis(), 40);
}

#[test]
fn what_is_counted_before_it_is_known_what_it_asks_for_counts_however_it_ends() {
    let mut world = world(|s| s.authority = Some(Arc::new(NoHarbour::default())));
    let call = |path| Call {
        method: "brew",
        path,
        operation: "brew",
        source: SOMEWHERE,
        route: None,
        model: None,
    };
    let mut left = Vec::new();
    for thing in ["harbour", "tea", "nowhere"] {
        let known = identified("from ide brew it", &mut world).expect("a caller");
        let env = &mut world.env();
        let workload = known.record().workload.expect("a caller");
        let chosen = route::choose(env.snapshot, workload, None).expect("a route");
        let counted = known.count(chosen, env).expect("it has a share");
        let ended = match thing {
            "nowhere" => counted.fail(Refusal::NoSuchPath, env),
            _ => match counted.authorize(&call(thing), chosen, env) {
                Ok(admitted) => admitted.settle(Outcome::Completed, Tokens::default(), env),
                Err(ended) => *ended,
            },
        };
        left.push((code(&ended), ended.record.outcome, world.left(0)));
    }
    assert_eq!(
        left,
        [
            ("not_authorized", Outcome::Refused, 2),
            ("", Outcome::Completed, 1),
            ("unknown_url", Outcome::Refused, 0),
        ]
    );
    let known = identified("from ide brew it", &mut world).expect("a caller");
    let env = &mut world.env();
    let workload = known.record().workload.expect("a caller");
    let chosen = route::choose(env.snapshot, workload, None).expect("a route");
    let refused = known.count(chosen, env).expect_err("nothing is left");
    assert_eq!(code(&refused), "rate_limit_exceeded");
}
