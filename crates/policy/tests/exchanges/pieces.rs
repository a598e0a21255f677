//! Calls that are billed by the piece or by the second: what they hold, and what they are charged.

use policy::budget::Unit;
use policy::disconnect::OnDisconnect;
use policy::operation::Operation::{ImageEdits, Images, Transcriptions};
use policy::price::{Pico, Price, Rates};
use policy::subject::Whose;
use policy::tokens::Count;
use policy::wire::meter::Meter;

use crate::fixture::snapshot;
use crate::world::{Asked, Call, FORM, ME, World, budget, call, plan};

/// What a piece costs.
const EACH: i128 = 1_000_000_000_000;
/// The same in units of a budget of money.
const EACH_HELD: u64 = 1_000_000_000;
const TEN: &str = r#"{"model":"m","prompt":"a cat","n":10}"#;
const EDIT_OF_TEN: &str = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b\r\ncontent-disposition: form-data; name=\"n\"\r\n\r\n10\r\n--b--\r\n";

fn priced() -> World {
    let mut s = snapshot(&[plan()]);
    s.routes[0].abandon = OnDisconnect::Cancel;
    let price = Price {
        id: "p".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(EACH),
        rates: Rates::flat(Pico(0), Pico(0)),
        tiers: Vec::new(),
    };
    s.prices.insert("m", None, price);
    budget(
        &mut s,
        Unit::Money("USD".into()),
        25 * EACH_HELD,
        Whose::Workload,
    );
    World::new(s)
}

fn cost(world: &mut World, asked: Asked, answer: &str) -> Option<i128> {
    let mut asked = asked;
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(true);
    world.response(&mut asked, 200, "application/json");
    let mut meter = Meter::new(asked.relay().form);
    meter.observe(answer.as_bytes());
    world.end(&mut asked, &mut meter, false);
    let cost = asked.record().charge?.cost?;
    Some(cost.0)
}

#[test]
fn images_hold_what_is_asked_for_and_cost_what_came() {
    let edit = Call::of("POST", "/v1/images/edits", &[ME, FORM]).with(EDIT_OF_TEN);
    for (ask, operation) in [(call(Images, TEN), Images), (edit, ImageEdits)] {
        for (answer, pieces) in [
            (r#"{"created":1,"data":[{},{},{}]}"#, 3),
            (
                r#"{"created":1,"data":[{}],"usage":{"input_tokens":5,"output_tokens":7}}"#,
                1,
            ),
            // It does not tell.
            (r#"{"created":1}"#, 10),
            ("{", 10),
        ] {
            let mut world = priced();
            let asked = world.ask(&ask);
            assert_eq!(asked.code(), "", "{operation:?}");
            assert_eq!(world.held(0, None), 10 * EACH_HELD);
            let cost = cost(&mut world, asked, answer);
            assert_eq!(cost, Some(pieces * EACH), "{operation:?} {answer}");
        }
    }
    // Three times ten are more than the budget has.
    let mut world = priced();
    let _held = [TEN, TEN].map(|ten| world.ask(&call(Images, ten)));
    assert_eq!(world.ask(&call(Images, TEN)).code(), "insufficient_quota");
}

#[test]
fn images_whose_client_leaves_unanswered_cost_all_that_were_asked_for() {
    let mut world = priced();
    let mut asked = world.ask(&call(Images, TEN));
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(true);
    asked.exchange.give_up(false);
    asked
        .exchange
        .finish(&mut Meter::default(), false, &mut world.env());
    let charge = asked.record().charge.expect("a price");
    assert_eq!(charge.cost, Some(Pico(10 * EACH)));
}

#[test]
fn seconds_of_a_transcription_come_to_ten_tokens_each() {
    let fields = [ME, FORM];
    let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    for (answer, prompt) in [
        (
            r#"{"text":"a","usage":{"type":"duration","seconds":3600}}"#,
            Count::Estimated(36_000),
        ),
        (r#"{"text":"a","duration":"8.47"}"#, Count::Estimated(90)),
        (
            r#"{"text":"a","duration":8.47,"usage":{"type":"tokens","input_tokens":5,"output_tokens":7}}"#,
            Count::Reported(5),
        ),
        (r#"{"text":"a"}"#, Count::Estimated(1)),
    ] {
        let mut world = priced();
        let ask = Call::of("POST", "/v1/audio/transcriptions", &fields).with(form);
        let mut asked = world.ask(&ask);
        assert_eq!(asked.record().operation, Some(Transcriptions));
        let _plan = world.attempt(&mut asked);
        asked.exchange.sent(true);
        world.response(&mut asked, 200, "application/json");
        let mut meter = Meter::new(asked.relay().form);
        meter.observe(answer.as_bytes());
        world.end(&mut asked, &mut meter, false);
        assert_eq!(asked.record().tokens.prompt, prompt, "{answer}");
    }
}
