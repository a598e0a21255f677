//! Costs in cases that can be checked in the head, and against the definition at random.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Payer, Payers, Pico, Price, Prices, Rates, Tier, Volume};
use crate::id::{BackendId, BudgetId, WorkloadId};
use crate::record::{Count, Tokens};

fn rates(input: i128, cached: i128, output: i128, reasoning: i128) -> Rates {
    Rates {
        cached: Pico(cached),
        reasoning: Pico(reasoning),
        ..Rates::flat(Pico(input), Pico(output))
    }
}

fn price(rates: Rates) -> Price {
    Price {
        id: "p".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(0),
        rates,
        tiers: Vec::new(),
    }
}

fn tokens(prompt: u64, cached: Option<u64>, completion: u64, reasoning: Option<u64>) -> Tokens {
    Tokens {
        prompt: Count::Reported(prompt),
        completion: Count::Reported(completion),
        cached,
        reasoning,
        invalid: false,
        ..Tokens::default()
    }
}

#[test]
fn cached_and_reasoning_tokens_are_charged_once_and_at_their_own_rate() {
    let price = price(rates(10, 1, 100, 1000));
    let cost = |t| price.cost(&t).map(|c| c.0);
    assert_eq!(cost(tokens(5, None, 3, None)), Some(50 + 300));
    assert_eq!(
        cost(tokens(5, Some(2), 3, Some(1))),
        Some(3 * 10 + 2 + 2 * 100 + 1000)
    );
    assert_eq!(
        cost(tokens(5, Some(99), 3, Some(99))),
        Some(5 + 3000),
        "a part is never more than the whole"
    );
    assert_eq!(cost(tokens(0, None, 0, None)), Some(0));
}

#[test]
fn cache_writes_and_audio_are_charged_once_and_at_their_own_rates() {
    let price = price(Rates {
        cache_write_5m: Pico(125),
        cache_write_1h: Pico(200),
        audio_input: Pico(700),
        audio_output: Pico(9_000),
        ..rates(100, 10, 500, 500)
    });
    let cost = |t| price.cost(&t).map(|c| c.0);
    let written = Tokens {
        cache_write_5m: Some(4),
        cache_write_1h: Some(3),
        ..tokens(20, Some(2), 1, None)
    };
    assert_eq!(
        cost(written),
        Some(2 * 10 + 4 * 125 + 3 * 200 + 11 * 100 + 500)
    );
    let spoken = Tokens {
        audio_prompt: Some(15),
        audio_completion: Some(6),
        ..tokens(20, None, 10, Some(1))
    };
    assert_eq!(
        cost(spoken),
        Some(15 * 700 + 5 * 100 + 500 + 6 * 9_000 + 3 * 500)
    );
    let too_many = Tokens {
        cache_write_5m: Some(99),
        audio_prompt: Some(99),
        ..tokens(20, Some(2), 0, None)
    };
    assert_eq!(cost(too_many), Some(2 * 10 + 18 * 125));
    let all_at_most = price.at_most(20, 10).map(|c| c.0);
    assert_eq!(all_at_most, Some(20 * 700 + 10 * 9_000));
}

#[test]
fn a_tier_takes_the_whole_of_a_call_with_a_longer_prompt() {
    let tier = |above, n| Tier {
        above,
        rates: rates(n, n, n, n),
    };
    let price = Price {
        tiers: vec![tier(100, 2), tier(1000, 3)],
        request: Pico(7),
        ..price(rates(1, 1, 1, 1))
    };
    let cost = |prompt| price.cost(&tokens(prompt, None, 10, None)).map(|c| c.0);
    assert_eq!(cost(100), Some(7 + 110));
    assert_eq!(cost(101), Some(7 + 2 * 111));
    assert_eq!(cost(1001), Some(7 + 3 * 1011));
}

#[test]
fn what_is_not_known_or_does_not_fit_has_no_cost() {
    let some = price(rates(1, 1, 1, 1));
    let unknown = Tokens {
        completion: Count::Unknown,
        ..tokens(5, None, 0, None)
    };
    assert_eq!(some.cost(&unknown), None);
    assert_eq!(some.cost(&Tokens::default()), None);
    let dear = price(rates(i128::MAX, 0, 1, 1));
    assert_eq!(dear.cost(&tokens(2, None, 0, None)), None);
    assert_eq!(dear.cost(&tokens(1, None, 1, None)), None);
    let request = Price {
        request: Pico(i128::MAX),
        ..price(rates(1, 1, 1, 1))
    };
    assert_eq!(request.cost(&tokens(1, None, 0, None)), None);
}

#[test]
fn a_backends_own_price_goes_before_the_models() {
    let mut prices = Prices::default();
    let of = |n| price(rates(n, n, n, n));
    prices.insert("m", None, of(1));
    prices.insert("m", Some(BackendId(3)), of(3));
    prices.insert("only", Some(BackendId(3)), of(4));
    let input = |model, backend| {
        prices
            .of(model, backend, Payer::default())
            .map(|p| p.rates.input.0)
    };
    assert_eq!(input("m", None), Some(1));
    assert_eq!(input("m", Some(BackendId(2))), Some(1));
    assert_eq!(input("m", Some(BackendId(3))), Some(3));
    assert_eq!(input("only", Some(BackendId(2))), None, "unknown, not zero");
    assert_eq!(input("other", None), None);
    assert_eq!(prices.iter().count(), 3);
}

#[test]
fn the_first_price_that_is_for_a_call_is_what_it_costs() {
    let mut prices = Prices::default();
    let of = |n| price(rates(n, n, n, n));
    let text = |text: &str| Arc::<str>::from(text);
    let research = Payers {
        tags: vec![
            (text("team"), text("research")),
            (text("team"), text("lab")),
        ],
        ..Payers::default()
    };
    let batch = Payers {
        workloads: vec![WorkloadId(2)],
        keys: vec![text("k1")],
        ..Payers::default()
    };
    let (research, batch) = (Arc::new(research), Arc::new(batch));
    prices.insert_for("m", Some(&research), None, of(1));
    prices.insert_for("m", Some(&research), Some(BackendId(3)), of(2));
    prices.insert_for("m", Some(&batch), None, of(3));
    prices.insert("m", None, of(4));
    prices.insert_for("some", Some(&batch), None, of(5));
    let costs = |model, backend, workload, key: &str, tags: &[(&str, &str)]| {
        let tags: Vec<_> = tags
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let payer = Payer {
            workload: Some(WorkloadId(workload)),
            key: (!key.is_empty()).then_some(key),
            tags: &tags,
            volume: None,
        };
        let price = prices.of(model, Some(BackendId(backend)), payer);
        price.map(|price| price.rates.input.0)
    };
    let lab = [("floor", "2"), ("team", "lab")];
    assert_eq!(costs("m", 0, 0, "", &[]), Some(4));
    assert_eq!(costs("m", 0, 0, "", &lab), Some(1));
    assert_eq!(costs("m", 3, 0, "", &lab), Some(2));
    assert_eq!(
        costs("m", 0, 0, "", &[("team", "sales"), ("lab", "team")]),
        Some(4)
    );
    assert_eq!(costs("m", 0, 2, "k1", &[]), Some(3));
    assert_eq!(costs("m", 0, 2, "k1", &lab), Some(1), "the first");
    // All that is said has to fit.
    assert_eq!(costs("m", 0, 2, "k2", &[]), Some(4));
    assert_eq!(costs("m", 0, 1, "k1", &[]), Some(4));
    assert_eq!(costs("some", 0, 2, "k1", &[]), Some(5));
    assert_eq!(costs("some", 0, 2, "", &[]), None, "unknown, not another's");
    let any: Vec<i128> = prices
        .of_any("m", BackendId(3))
        .map(|p| p.rates.input.0)
        .collect();
    assert_eq!(any, [2, 3, 4]);
}

/// So much is used of the budget 1, and nothing of others.
#[derive(Debug)]
struct OfBudgetOne(u64);

impl Volume for OfBudgetOne {
    fn used(&self, budget: BudgetId) -> u64 {
        if budget == BudgetId(1) { self.0 } else { 0 }
    }
}

#[test]
fn a_price_above_a_volume_is_for_calls_above_it() {
    let mut prices = Prices::default();
    let of = |n| price(rates(n, n, n, n));
    let above = |budget, above| {
        Arc::new(Payers {
            volume: Some((BudgetId(budget), above)),
            ..Payers::default()
        })
    };
    prices.insert_for("m", Some(&above(1, 1000)), None, of(1));
    prices.insert_for("m", Some(&above(1, 100)), None, of(2));
    prices.insert_for("m", Some(&above(2, 0)), None, of(3));
    prices.insert("m", None, of(4));
    let at = |volume: Option<&dyn Volume>| {
        let payer = Payer {
            volume,
            ..Payer::default()
        };
        prices.of("m", None, payer).map(|p| p.rates.input.0)
    };
    let used = |tokens| at(Some(&OfBudgetOne(tokens)));
    assert_eq!(used(0), Some(4));
    assert_eq!(used(100), Some(4));
    assert_eq!(used(101), Some(2));
    assert_eq!(used(1001), Some(1));
    assert_eq!(at(None), Some(4), "nobody knows what is used");
}

proptest! {
    #[test]
    fn a_cost_is_the_sum_over_single_tokens_and_below_the_most(
        r in prop::array::uniform4(0..1_000_000_000_000_000_i128),
        request in 0..1_000_000_000_i128,
        prompt in 0..2000_u64,
        completion in 0..2000_u64,
        cached in prop::option::of(0..3000_u64),
        reasoning in prop::option::of(0..3000_u64),
        above in 0..2000_u64,
        long in prop::array::uniform4(0..1_000_000_000_000_000_i128),
    ) {
        let [a, b, c, d] = r;
        let [la, lb, lc, ld] = long;
        let price = Price {
            request: Pico(request),
            tiers: vec![Tier { above, rates: rates(la, lb, lc, ld) }],
            ..price(rates(a, b, c, d))
        };
        let [a, b, c, d] = if prompt > above { long } else { r };
        let mut sum = request;
        for nth in 0..prompt {
            sum += if nth < cached.unwrap_or(0) { b } else { a };
        }
        for nth in 0..completion {
            sum += if nth < reasoning.unwrap_or(0) { d } else { c };
        }
        let cost = price.cost(&tokens(prompt, cached, completion, reasoning));
        prop_assert_eq!(cost, Some(Pico(sum)));
        prop_assert!(cost <= price.at_most(prompt, completion));
    }

    #[test]
    fn nothing_overflows(
        r in prop::array::uniform4(any::<i128>().prop_map(|n| n.saturating_abs())),
        prompt: u64, completion: u64, cached: Option<u64>, reasoning: Option<u64>,
    ) {
        let [a, b, c, d] = r;
        let price = price(rates(a, b, c, d));
        let cost = price.cost(&tokens(prompt, cached, completion, reasoning));
        prop_assert!(cost.is_none_or(|cost| cost.0 >= 0));
        let _most = (price.at_most(prompt, completion), price.at_most_of(prompt));
    }
}
