//! How far calls without a cap, many at once, overdraw a budget of money.

use policy::budget::Unit;
use policy::operation::Operation::Chat;
use policy::price::{Pico, Price, Rates};
use policy::refusal::Refusal;
use policy::subject::Whose;

use crate::fixture::snapshot;
use crate::world::{World, budget, call, plan};

/// A token costs a thousand of the budget's units (1e-9 USD).
const TOKEN: u64 = 1_000;
/// What a call may come to: 1,000 such tokens, a hundred times.
const AMOUNT: u64 = 100 * 1_000 * TOKEN;
const BODY: &str = r#"{"model":"m","user":"abcdefghijklmnopqrs"}"#;
/// What is estimated for it.
const PROMPT: u64 = 11;

fn budgeted(output_max: Option<u64>) -> World {
    let mut s = snapshot(&[plan()]);
    let rate = Pico(i128::from(TOKEN) * 1_000);
    let price = Price {
        id: "p".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(0),
        rates: Rates::flat(rate, rate),
        tiers: Vec::new(),
    };
    s.prices.insert("m", None, price);
    s.routes[0].output_max = output_max;
    budget(&mut s, Unit::Money("USD".into()), AMOUNT, Whose::Workload);
    World::new(s)
}

/// Lets calls in until the budget refuses, ends all of them with answers of `completion` tokens, and gives how many there
/// were, what each had reserved, and what the period came to. Nothing is let in afterwards if that is more than the amount.
fn filled(world: &mut World, completion: u64) -> (u64, u64, u64) {
    let mut calls = Vec::new();
    loop {
        let asked = world.ask(&call(Chat, BODY));
        if !asked.code().is_empty() {
            break;
        }
        calls.push(asked);
    }
    let (many, reserved) = (calls.len() as u64, calls[0].estimate().reserved);
    for asked in calls {
        world.settle(asked, PROMPT, completion);
    }
    let spent = world.held(0, None);
    if spent > AMOUNT {
        let refused = world.ask(&call(Chat, r#"{"model":"m","max_tokens":1}"#));
        assert!(matches!(refused.refusal(), Refusal::BudgetExhausted { .. }));
    }
    (many, reserved, spent)
}

#[test]
fn it_is_at_most_what_each_call_in_flight_came_to_beyond_its_reservation() {
    let longest = 5_000;
    let (many, reserved, spent) = filled(&mut budgeted(None), longest);
    assert!(many * reserved * TOKEN <= AMOUNT);
    let beyond = many * (PROMPT + longest - reserved) * TOKEN;
    assert!(spent > AMOUNT, "calls without a cap do overdraw");
    assert!(spent <= AMOUNT + beyond, "{spent} of {AMOUNT} + {beyond}");
}

#[test]
fn it_is_nothing_where_the_route_says_how_long_an_answer_can_be() {
    let (many, reserved, spent) = filled(&mut budgeted(Some(5_000)), 5_000);
    assert_eq!(reserved, 5_000 + PROMPT);
    assert_eq!(many, AMOUNT / (reserved * TOKEN));
    assert!(spent <= AMOUNT, "{spent}");
    let asked = budgeted(Some(5_000)).ask(&call(Chat, BODY));
    let most = 5_000 + BODY.len() as u64 + 1_024;
    assert_eq!(asked.estimate().at_most, Some(most));
    // A cap of the call counts before that of its route.
    let capped = r#"{"model":"m","max_tokens":7,"user":"abcdef"}"#;
    let asked = budgeted(Some(5_000)).ask(&call(Chat, capped));
    assert_eq!(asked.estimate().reserved, 7 + PROMPT);
}
