//! Limits and budgets of each key and user, and those that a caller brings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use policy::batch_store::Batches;
use policy::batches::{Late, Used, allowed, charge_late, price_of};
use policy::billing::BilledBy;
use policy::budget::Unit;
use policy::caller::{Caller, OwnBudget, OwnLimit};
use policy::id::{BudgetId, EndpointId};
use policy::limit::{Kind, Kind::Requests, Kind::Tokens as TokenKind, Rate};
use policy::operation::Operation::{Chat, Embeddings, Transcriptions};
use policy::price::{Payers, Pico, Price, Rates, WHOLE};
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use policy::subject::Whose;
use policy::tokens::{Count, Tokens};
use wire::batch::Api;
use wire::usage::{Reading, Usage};

use super::unread::{UPLOAD, file};
use crate::fixture::{RoutePlan, rate, snapshot};
use crate::world::{
    Asked, FORM_OF_M, MONTH, World, budget, call, knowing_callers, plan, usage, who,
};

const BODY: &str = r#"{"model":"m","max_tokens":90}"#;

/// A business unit's rate: what is reserved, what is charged, and by which price.
#[test]
fn a_callers_tag_decides_what_its_call_costs_and_what_its_budget_holds() {
    let mut s = apart(&[], &[]);
    let of = |id: &str, pico: i128| Price {
        id: id.into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(0),
        rates: Rates::flat(Pico(pico * 1000), Pico(pico * 1000)),
        tiers: Vec::new(),
    };
    let payers = Arc::new(Payers {
        tags: vec![("team".into(), "research".into())],
        ..Payers::default()
    });
    s.prices
        .insert_for("m", Some(&payers), None, of("research", 1));
    s.prices.insert("m", None, of("all", 4));
    budget(
        &mut s,
        Unit::Money("USD".into()),
        1_000_000,
        Whose::Workload,
    );
    let mut world = World::new(s);
    let mut held = 0;
    for (team, rate, id) in [("research", 1, "research"), ("sales", 4, "all")] {
        let mut of_team = Caller::clone(&caller("k1", "ada"));
        of_team.tags = [("team".into(), team.into())].into();
        let asked = ask(&mut world, &Arc::new(of_team));
        let reserved = asked.estimate().reserved;
        assert_eq!(world.held(0, None) - held, reserved * rate, "{team}");
        let charge = world.charged(asked, 30, 20).expect("it has a price");
        let price = world.of.snapshot.prices.get(charge.price).expect("there");
        assert_eq!(
            (&*price.id, charge.cost),
            (id, Some(Pico(i128::from(50 * rate) * 1000)))
        );
        held += 50 * rate;
        assert_eq!(world.held(0, None), held);
    }
}

#[test]
fn each_user_has_a_rolling_window_and_callers_without_one_share_theirs() {
    let mut s = apart(&[(Requests, rate(2, 60), Whose::User)], &[]);
    s.limits[0].window = policy::limit::Window::Rolling;
    let mut world = World::new(s);
    let begin = world.now;
    for second in [0, 31] {
        world.now = begin.after(Duration::from_secs(second));
        for (key, user) in [
            ("k1", "ada"),
            ("k2", "ada"),
            ("k3", "bob"),
            ("k4", ""),
            ("k5", ""),
        ] {
            let code = match (second, key) {
                (31, "k1" | "k2" | "k4" | "k5") => "rate_limit_exceeded",
                _ => "",
            };
            let asked = ask(&mut world, &caller(key, user));
            assert_eq!(asked.code(), code, "{key} after {second} s");
        }
    }
    // A reload with another amount keeps what each took.
    let mut s = apart(&[(Requests, rate(3, 60), Whose::User)], &[]);
    s.limits[0].window = policy::limit::Window::Rolling;
    world.reload(s);
    let codes = [1, 2].map(|_| ask(&mut world, &caller("k1", "ada")).code());
    assert_eq!(codes, ["", "rate_limit_exceeded"]);
}

fn caller(key: &str, user: &str) -> Arc<Caller> {
    bringing(key, user, &[], &[])
}

/// One that has limits and budgets of its own.
fn bringing(
    key: &str,
    user: &str,
    limits: &[(Kind, Rate)],
    budgets: &[(Unit, u64)],
) -> Arc<Caller> {
    let name = |name: &str| (!name.is_empty()).then(|| Arc::from(name));
    let limit = |&(kind, rate): &_| OwnLimit { kind, rate };
    let budget = |(unit, amount): &(Unit, u64)| OwnBudget {
        unit: unit.clone(),
        amount: *amount,
        calendar: MONTH,
    };
    Arc::new(Caller {
        workload: "ide".into(),
        key: name(key),
        user: name(user),
        limits: limits.iter().map(limit).collect(),
        budgets: budgets.iter().map(budget).collect(),
        ..Caller::default()
    })
}

/// In which limits and budgets of tokens are for these.
fn apart(limits: &[(Kind, Rate, Whose)], budgets: &[(u64, Whose)]) -> Snapshot {
    let rates: Vec<_> = limits
        .iter()
        .map(|(kind, rate, _)| (*kind, *rate))
        .collect();
    let mut s = snapshot(&[RoutePlan {
        limits: &rates,
        ..plan()
    }]);
    for (limit, (.., whose)) in s.limits.iter_mut().zip(limits) {
        limit.whose = *whose;
    }
    for (amount, whose) in budgets {
        budget(&mut s, Unit::Tokens, *amount, *whose);
    }
    knowing_callers(&mut s);
    s
}

fn ask(world: &mut World, caller: &Arc<Caller>) -> Asked {
    world.ask(&call(Chat, BODY).by(caller))
}

fn waiting(world: &mut World, caller: &Arc<Caller>) -> Asked {
    world.waiting(&call(Chat, BODY).by(caller))
}

/// Asks for a call that is admitted and comes to so many tokens.
fn spend(world: &mut World, caller: &Arc<Caller>, tokens: u64) {
    let asked = ask(world, caller);
    assert_eq!(asked.code(), "");
    world.settle(asked, tokens, 0);
}

#[test]
fn each_key_and_each_user_has_its_rate_and_those_without_share_one() {
    for (whose, mine, others) in [
        (
            Whose::Key,
            [("a", "x"), ("a", "y")],
            [("b", "x"), ("", "x")],
        ),
        (
            Whose::User,
            [("a", "x"), ("b", "x")],
            [("a", "y"), ("a", "")],
        ),
    ] {
        let mut world = World::new(apart(&[(Requests, rate(2, 60), whose)], &[]));
        let [first, second] = mine.map(|(key, user)| caller(key, user));
        for caller in [&first, &second] {
            assert_eq!(ask(&mut world, caller).code(), "");
        }
        let expected = format!(
            "limit reached: 2 requests per 1m for this {}; try again in 30 s",
            whose.as_str()
        );
        assert_eq!(ask(&mut world, &first).says(), (429, expected));
        for (key, user) in others {
            let code = ask(&mut world, &caller(key, user)).code();
            assert_eq!(code, "", "{whose:?} {key} {user}");
        }
        // One without has one of the two that they have together; whoever has no caller at all is one of them.
        assert_eq!(world.ask(&call(Chat, BODY)).code(), "");
        let (_, text) = world.ask(&call(Chat, BODY)).says();
        let nobody = format!("for callers of this workload without a {};", whose.as_str());
        assert!(text.contains(&nobody), "{text}");
    }
}

#[test]
fn what_a_subject_took_is_settled_or_given_back_once() {
    let limits = [
        (TokenKind, rate(1000, 1000), Whose::User),
        (Requests, rate(9, 60), Whose::Key),
    ];
    let configured = |amount| {
        let mut s = apart(&limits, &[(amount, Whose::User)]);
        s.routes[0].billed_by = BilledBy::Counted;
        s
    };
    let mut world = World::new(configured(1000));
    let me = caller("k", "u");
    // What the budget holds and what the limit has left, beside one more call.
    let stand = |world: &mut World| {
        let asked = ask(world, &me);
        let (reserved, held) = (asked.estimate().reserved, world.held(0, Some(&me)));
        let left = asked.limits(world)[0].level.remaining;
        world.release(asked);
        (held - reserved, left + reserved)
    };
    assert_eq!(stand(&mut world), (0, 1000));
    let first = ask(&mut world, &me);
    let reserved = first.estimate().reserved;
    assert!(reserved > 90, "prompt and output");
    assert_eq!(stand(&mut world), (reserved, 1000 - reserved));
    world.release(first);
    assert_eq!(stand(&mut world), (0, 1000));
    let second = ask(&mut world, &me);
    let settled = world.answered(second, &usage(300, 0), true).settled;
    assert_eq!(stand(&mut world), (300, 700));
    // The gate's own count comes later, after a reload.
    world.reload(configured(2000));
    let count = Tokens {
        prompt: Count::Counted(450),
        ..Tokens::default()
    };
    settled.expect("it waits").correct(&count, None, &world.of);
    assert_eq!(stand(&mut world), (450, 550));
}

#[test]
fn a_callers_own_limits_hold_on_all_routes_together_and_beside_the_grants() {
    let limits = [(Requests, rate(3, 60)), (TokenKind, rate(150, 150))];
    let [me, other] = ["k", "other"].map(|key| bringing(key, "", &limits, &[]));
    let mut world = World::new(apart(&[(Requests, rate(2, 30), Whose::Workload)], &[]));
    let first = ask(&mut world, &me);
    let (status, text) = ask(&mut world, &me).says();
    let expected = "limit reached: 150 tokens per 150s for this key;";
    assert!(status == 429 && text.starts_with(expected), "{text}");
    world.settle(first, 10, 0);
    spend(&mut world, &me, 10);
    // Of the workload's two none is left for thirty seconds, of its own three one is: the workload's is told.
    let (_, text) = ask(&mut world, &me).says();
    let expected = "2 requests per 30s for this workload; try again in 15 s";
    assert!(text.contains(expected), "{text}");
    // Nothing was taken from its own.
    world.now = world.now.after(Duration::from_secs(15));
    let small = call(Embeddings, BODY).by(&me);
    assert_eq!(world.ask(&small).code(), "");
    // Another key has what it brings.
    world.now = world.now.after(Duration::from_mins(1));
    assert_eq!(ask(&mut world, &other).code(), "");
    assert_eq!(waiting(&mut world, &me).code(), "");
}

#[test]
fn the_refusal_names_whoever_waits_longest_before_the_body_too() {
    let limits = [
        (Requests, rate(1, 10), Whose::Workload),
        (Requests, rate(1, 3600), Whose::User),
        (Requests, rate(1, 60), Whose::Key),
    ];
    let mut world = World::new(apart(&limits, &[]));
    let me = caller("k", "u");
    assert_eq!(ask(&mut world, &me).code(), "");
    for refused in [ask(&mut world, &me), waiting(&mut world, &me)] {
        let (_, text) = refused.says();
        assert!(text.contains("1 request per 1h for this user"), "{text}");
    }
}

#[test]
fn budgets_of_each_user_and_of_the_caller_are_refused_by_name() {
    let budgets = [(100_000, Whose::Workload), (250, Whose::User)];
    let limits = [(Requests, rate(9, 60), Whose::Workload)];
    let mut world = World::new(apart(&limits, &budgets));
    let [a, b] = ["a", "b"].map(|user| caller("k", user));
    for _ in 0..2 {
        spend(&mut world, &a, 125);
    }
    let (status, text) = ask(&mut world, &a).says();
    let expected = "the budget \"b1\" for this user has not enough left";
    assert!(status == 402 && text.starts_with(expected), "{text}");
    assert_eq!(world.left(0), 7, "a call that it refused holds nothing");
    assert_eq!(ask(&mut world, &b).code(), "");
    assert_eq!(waiting(&mut world, &a).says().0, 402);
    assert_eq!(waiting(&mut world, &b).code(), "");
    // Their own, beside the configuration's.
    let own = bringing("own", "b", &[], &[(Unit::Tokens, 120)]);
    spend(&mut world, &own, 30);
    let before = world.held(1, Some(&own));
    let (status, text) = ask(&mut world, &own).says();
    let expected = "this key's own budget has not enough left";
    assert!(status == 402 && text.starts_with(expected), "{text}");
    assert_eq!(
        world.held(1, Some(&own)),
        before,
        "it holds nothing of others"
    );
}

#[test]
fn own_budgets_of_money_fail_closed() {
    let me = bringing("k", "u", &[], &[(Unit::Money("USD".into()), 1_000)]);
    let mut world = World::new(apart(&[], &[]));
    let (status, text) = ask(&mut world, &me).says();
    let expected = "a budget of this caller's own counts money";
    assert!(status == 403 && text.starts_with(expected), "{text}");
    let form = call(Transcriptions, FORM_OF_M);
    let mine = form.by(&me);
    assert_eq!(world.ask(&mine).code(), "model_not_priced");
    assert_eq!(world.ask(&form).code(), "");
}

#[test]
fn a_listed_call_that_nobody_charges_is_not_let_through_beside_own_limits_and_budgets() {
    let limited = bringing("k", "u", &[(TokenKind, rate(100, 60))], &[]);
    let budgeted = bringing("k", "u", &[], &[(Unit::Tokens, 100)]);
    let of_money = bringing("k", "u", &[], &[(Unit::Money("USD".into()), 100)]);
    let no = "operation_not_charged";
    for (tokens, codes) in [
        (None, [no; 3]),
        (Some(0), ["", "", no]),
        (Some(5), ["", "", no]),
    ] {
        let mut s = snapshot(&[RoutePlan {
            unread: &[file(tokens, None)],
            ..plan()
        }]);
        knowing_callers(&mut s);
        let mut world = World::new(s);
        for (caller, code) in [&limited, &budgeted, &of_money].into_iter().zip(codes) {
            assert_eq!(world.ask(&UPLOAD.by(caller)).code(), code, "{tokens:?}");
        }
        assert_eq!(world.ask(&UPLOAD).code(), "");
    }
}

#[test]
fn a_reload_keeps_slots_and_places_and_a_budget_that_begins_has_none() {
    let of_users = || {
        apart(
            &[(Requests, rate(2, 60), Whose::User)],
            &[(300, Whose::User)],
        )
    };
    let mut world = World::new(of_users());
    let me = caller("k", "u");
    for _ in 0..2 {
        spend(&mut world, &me, 100);
    }
    let before = Arc::clone(&world.of);
    for _ in 0..2 {
        assert_eq!(ask(&mut world, &me).says().0, 429);
        world.reload(of_users());
    }
    assert!(world.of.levels.has_from(&before.levels, BudgetId(0)));
    assert_eq!(world.held(0, Some(&me)), 200);
    // For each key it is another budget, and back again another one still: each is read from the ledger anew.
    let before = Arc::clone(&world.of);
    world.reload(apart(&[], &[(300, Whose::Key)]));
    assert!(!world.of.levels.has_from(&before.levels, BudgetId(0)));
    assert_eq!(world.held(0, Some(&me)), 0);
    world.reload(apart(&[], &[(300, Whose::User)]));
    assert_eq!(world.held(0, Some(&me)), 0);
    let Revision { snapshot, levels } = &*world.of;
    let (budget, who) = (&snapshot.budgets.list[0], who(Some(&me)));
    assert!(levels.restore(BudgetId(0), budget, MONTH.of(0), &who, 250));
    assert_eq!(world.held(0, Some(&me)), 250);
    assert_eq!(ask(&mut world, &me).says().0, 402);
}

/// Its user may have called nothing in the period in which it is counted, and its calls may tell of no token.
#[test]
fn a_batch_is_owed_by_a_user_who_has_no_place_yet_and_by_the_call_where_no_token_is_told() {
    let mut s = apart(&[], &[(300, Whose::User)]);
    let each = Price {
        id: "each".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(7000),
        rates: Rates::flat(Pico(0), Pico(0)),
        tiers: Vec::new(),
    };
    s.prices.insert("m", None, each);
    budget(
        &mut s,
        Unit::Money("USD".into()),
        1_000_000,
        Whose::Workload,
    );
    s.routes[0].batches = Some(Box::new(Batches {
        api: Api::OpenAi,
        unsettled: 1,
        price_share: WHOLE,
        every: Duration::from_secs(60),
    }));
    let mut world = World::new(s);
    let of = Arc::clone(&world.of);
    let me = caller("k1", "ada");
    let workload = of.snapshot.workload_named(b"ide").expect("a workload");
    let (chosen, batches, _) = allowed(&of.snapshot, workload, |_, _| true).expect("a rule");
    let model: Arc<str> = "m".into();
    let late = Late {
        id: "batch_1",
        workload,
        caller: Some(&me),
        hides_user: false,
        chosen,
        batches,
        endpoint: EndpointId(0),
        model: &model,
        unix_ms: 0,
    };
    let price = price_of(&late, &of.snapshot, &of.levels);
    let told = Reading::Valid(Usage {
        prompt: Some(400),
        completion: Some(100),
        ..Usage::default()
    });
    let mut used = Used::default();
    used.add(&told, None, price, &of.snapshot);
    let _row = charge_late(&late, &used, false, &mut world.env());
    assert_eq!((world.held(0, Some(&me)), world.held(1, None)), (500, 7));
    assert_eq!(ask(&mut world, &me).says().0, 402);

    let mut untold = Used::default();
    untold.add(&Reading::Absent, None, price, &of.snapshot);
    let _row = charge_late(&late, &untold, false, &mut world.env());
    assert_eq!((world.held(0, Some(&me)), world.held(1, None)), (500, 14));
}

#[test]
fn a_full_table_refuses_new_subjects_and_none_that_it_has() {
    let mut s = apart(&[], &[(100_000, Whose::User)]);
    s.bounds.subjects = 1;
    let mut world = World::new(s);
    let user = |n: u64| caller("k", &format!("u{n}"));
    let is_admitted = |world: &mut World, n| ask(world, &user(n)).code().is_empty();
    let came = (0..).take_while(|n| is_admitted(&mut world, *n)).count() as u64;
    let reply = ask(&mut world, &user(came)).refusal().reply();
    assert_eq!((reply.status, reply.code), (503, "subjects_exhausted"));
    assert!((0..came).all(|n| is_admitted(&mut world, n)));
    assert_eq!(world.of.levels.usage(world.now, 0).turned_away, 2);
}

/// Whoever is believed about users can invent them, and is let in with none that is not counted.
#[test]
fn invented_users_take_no_places_of_keys() {
    let mut s = apart(&[], &[(100_000, Whose::User), (100_000, Whose::Key)]);
    s.bounds.subjects = 64;
    let mut world = World::new(s);
    let invented = |n: u64| caller("k", &format!("u{n}"));
    let turned_away = (0..10_000)
        .filter(|n| ask(&mut world, &invented(*n)).code() == "subjects_exhausted")
        .count();
    assert!(turned_away > 9000, "{turned_away}");
    // A key that comes for the first time, and all who have no user together.
    for n in 0..8 {
        let key = caller(&format!("key {n}"), "");
        assert_eq!(ask(&mut world, &key).code(), "", "key {n}");
    }
    assert_eq!(ask(&mut world, &invented(0)).code(), "");
}

/// Eight threads, few users with limits and budgets of their own, each call settled once: nobody passes its amount, and
/// what is held is what was settled.
#[test]
fn subjects_on_many_threads_keep_to_their_amounts() {
    let limits = [(Requests, rate(400, 1_000_000), Whose::User)];
    let world = World::new(apart(&limits, &[(10_000, Whose::User)]));
    let users: [_; 5] = std::array::from_fn(|n| caller("k", &n.to_string()));
    let came: [(AtomicU64, AtomicU64); 5] = Default::default();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (of, users, came) = (&world.of, &users, &came);
            scope.spawn(move || {
                let mut world = World::of(Arc::clone(of));
                for call in 0..400 {
                    let n = (call + thread) % users.len();
                    let asked = ask(&mut world, &users[n]);
                    if !asked.code().is_empty() {
                        continue;
                    }
                    // Of some users' calls the limit admits too few, of others' the budget.
                    let tokens = 1 + (call * (1 + n) % 40) as u64;
                    came[n].0.fetch_add(1, Ordering::Relaxed);
                    came[n].1.fetch_add(tokens, Ordering::Relaxed);
                    world.settle(asked, tokens, 0);
                }
            });
        }
    });
    for (user, (calls, tokens)) in users.iter().zip(came) {
        let (calls, tokens) = (calls.into_inner(), tokens.into_inner());
        assert_eq!(world.held(0, Some(user)), tokens);
        assert!(tokens <= 10_000 && calls <= 400, "{calls} {tokens}");
        assert!(calls == 400 || tokens > 9_000, "{calls} {tokens}");
    }
}
