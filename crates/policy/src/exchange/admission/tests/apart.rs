//! Limits and budgets of each key and user, and those that a caller brings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::super::look::look;
use super::*;
use crate::budget::{Budget, Calendar, Every, Scope, Unit};
use crate::caller::{Caller, OwnBudget, OwnLimit};
use crate::id::BudgetId;
use crate::subject::{Who, Whose};

const MONTH: Calendar = Calendar {
    every: Every::Month,
    east_min: 0,
};
const BODY: &str = r#"{"model":"m","max_tokens":90}"#;

fn caller(key: &str, user: &str) -> Caller {
    let name = |name: &str| (!name.is_empty()).then(|| Arc::from(name));
    Caller {
        workload: "ide".into(),
        key: name(key),
        user: name(user),
        ..Caller::default()
    }
}

/// A snapshot in which limits and budgets of tokens are for these.
fn apart(
    limits: &[(crate::limit::Kind, crate::limit::Rate, Whose)],
    budgets: &[(u64, Whose)],
) -> Revision {
    Revision::first(snapshot_apart(limits, budgets))
}

fn snapshot_apart(
    limits: &[(crate::limit::Kind, crate::limit::Rate, Whose)],
    budgets: &[(u64, Whose)],
) -> Snapshot {
    let rates: Vec<_> = limits
        .iter()
        .map(|(kind, rate, _)| (*kind, *rate))
        .collect();
    let mut s = snapshot(&[
        RoutePlan {
            limits: &rates,
            ..plan()
        },
        RoutePlan {
            workloads: &["other"],
            backends: &[ONE],
            ..RoutePlan::default()
        },
    ]);
    for (limit, (.., whose)) in s.limits.iter_mut().zip(limits) {
        limit.whose = *whose;
    }
    for (nth, (amount, whose)) in budgets.iter().enumerate() {
        s.budgets.list.push(Budget {
            name: format!("b{nth}").into(),
            unit: Unit::Tokens,
            amount: *amount,
            calendar: MONTH,
            scope: Scope::Everyone,
            models: Vec::new(),
            whose: *whose,
        });
    }
    let ids = (0..budgets.len()).map(|nth| BudgetId(u32::try_from(nth).expect("few")));
    s.budgets.of = vec![ids.collect(); s.workloads.len()];
    s
}

fn ask(s: &Revision, caller: Option<&Arc<Caller>>) -> Result<Admitted, Refusal> {
    ask_at(s, caller, NOW, Chat)
}

fn ask_at(
    s: &Revision,
    caller: Option<&Arc<Caller>>,
    now: Mono,
    operation: Operation,
) -> Result<Admitted, Refusal> {
    let opened = Opened {
        workload: WorkloadId(0),
        operation,
        listed: None,
    };
    let decided = admit(
        opened,
        caller,
        |_| Ok(()),
        operation
            .reads_body()
            .then(|| CallHead::read(BODY.as_bytes()).expect("a call"))
            .as_ref(),
        BODY.len() as u64,
        |_| Estimator::default(),
        &mut None,
        now,
        0,
        &s.snapshot,
        &s.levels,
    );
    match decided? {
        Decision::Forward(admitted) => Ok(admitted),
        other @ Decision::Models(_) => panic!("{other:?}"),
    }
}

fn settle(call: Admitted, tokens: u64, s: &Revision) {
    let tokens = Tokens {
        prompt: Count::Reported(tokens),
        completion: Count::Reported(0),
        ..Tokens::default()
    };
    let _settled = call
        .reservation
        .settle(&tokens, None, NOW, &s.snapshot, &s.levels);
}

fn says(refused: Result<Admitted, Refusal>) -> (u16, String) {
    let reply = refused.expect_err("refused").reply();
    (reply.status, reply.message)
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
        let s = apart(&[(Requests, rate(2, 60), whose)], &[]);
        let [first, second] = mine.map(|(key, user)| Arc::new(caller(key, user)));
        for caller in [&first, &second] {
            assert!(ask(&s, Some(caller)).is_ok());
        }
        let (status, text) = says(ask(&s, Some(&first)));
        let expected = format!(
            "limit reached: 2 requests per 60s for this {}; try again in 30 s",
            whose.as_str()
        );
        assert_eq!((status, text), (429, expected));
        for (key, user) in others {
            let other = Arc::new(caller(key, user));
            assert!(ask(&s, Some(&other)).is_ok(), "{whose:?} {key} {user}");
        }
        // One without has one of the two that they have together; whoever has no caller at all is one of them.
        assert!(ask(&s, None).is_ok());
        let (_, text) = says(ask(&s, None));
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
    let s = apart(&limits, &[(1000, Whose::User)]);
    let me = Arc::new(caller("k", "u"));
    let who = Who {
        workload: "ide",
        caller: Some(&me),
    };
    let budget = &s.snapshot.budgets.list[0];
    let held = || s.levels.held(BudgetId(0), budget, MONTH.of(0), &who);
    let tokens = || {
        let known = crate::subject::Subjects::default();
        let hold = s.levels.hold(LimitId(0), &who, &known).expect("a limit");
        hold.level(NOW).remaining
    };
    let first = ask(&s, Some(&me)).expect("admitted");
    let reserved = held();
    assert!(reserved > 90, "prompt and output");
    assert_eq!(tokens(), 1000 - reserved);
    first.reservation.release(NOW, &s.snapshot, &s.levels);
    assert_eq!((held(), tokens()), (0, 1000));
    let second = ask(&s, Some(&me)).expect("admitted");
    let usage = |n| Tokens {
        prompt: Count::Reported(n),
        completion: Count::Reported(0),
        ..Tokens::default()
    };
    let settled = second
        .reservation
        .settle(&usage(300), None, NOW, &s.snapshot, &s.levels);
    assert_eq!((held(), tokens()), (300, 700));
    // The gate's own count comes later, after a reload.
    let s = s.next(snapshot_apart(&limits, &[(2000, Whose::User)]), NOW);
    settled.correct(&usage(450), None, &s);
    let held = s
        .levels
        .held(BudgetId(0), &s.snapshot.budgets.list[0], MONTH.of(0), &who);
    assert_eq!(held, 450);
}

#[test]
fn a_callers_own_limits_hold_on_all_routes_together_and_beside_the_grants() {
    let mut me = caller("k", "");
    me.limits = Box::new([
        OwnLimit {
            kind: Requests,
            rate: rate(3, 60),
        },
        OwnLimit {
            kind: TokenKind,
            rate: rate(150, 150),
        },
    ]);
    let me = Arc::new(me);
    let s = apart(&[(Requests, rate(2, 30), Whose::Workload)], &[]);
    let first = ask(&s, Some(&me)).expect("admitted");
    let (status, text) = says(ask(&s, Some(&me)));
    assert_eq!(status, 429);
    assert!(
        text.starts_with("limit reached: 150 tokens per 150s for this key;"),
        "{text}"
    );
    settle(first, 10, &s);
    let second = ask(&s, Some(&me)).expect("room again");
    settle(second, 10, &s);
    // Of the workload's two none is left for thirty seconds, of its own three one is: the workload's is told.
    let (_, text) = says(ask(&s, Some(&me)));
    assert!(
        text.contains("2 requests per 30s for this workload; try again in 15 s"),
        "{text}"
    );
    // Nothing was taken from its own.
    let later = Mono(NOW.0 + 15_000_000_000);
    assert!(ask_at(&s, Some(&me), later, Embeddings).is_ok());
    // Another key has what it brings, and a key without limits only the workload's.
    let other = Arc::new(Caller {
        key: Some("other".into()),
        ..(*me).clone()
    });
    let later = Mono(later.0 + 60_000_000_000);
    assert!(ask_at(&s, Some(&other), later, Chat).is_ok());
    // The same key with the same limits on another route.
    let opened = Opened {
        workload: WorkloadId(0),
        operation: Chat,
        listed: None,
    };
    assert!(look(opened, Some(&me), later, 0, &s.snapshot, &s.levels).is_none());
}

#[test]
fn the_refusal_names_whoever_waits_longest() {
    let limits = [
        (Requests, rate(1, 10), Whose::Workload),
        (Requests, rate(1, 3600), Whose::User),
        (Requests, rate(1, 60), Whose::Key),
    ];
    let s = apart(&limits, &[]);
    let me = Arc::new(caller("k", "u"));
    assert!(ask(&s, Some(&me)).is_ok());
    let (_, text) = says(ask(&s, Some(&me)));
    assert!(
        text.contains("1 requests per 3600s for this user"),
        "{text}"
    );
    let opened = Opened {
        workload: WorkloadId(0),
        operation: Chat,
        listed: None,
    };
    let looked = look(opened, Some(&me), NOW, 0, &s.snapshot, &s.levels);
    let (_, refusal) = looked.expect("refused before the body");
    assert!(refusal.to_string().contains("for this user"), "{refusal}");
}

#[test]
fn budgets_of_each_user_and_of_the_caller_are_refused_by_name() {
    let s = apart(&[], &[(100_000, Whose::Workload), (250, Whose::User)]);
    let [a, b] = ["a", "b"].map(|user| Arc::new(caller("k", user)));
    for _ in 0..2 {
        settle(ask(&s, Some(&a)).expect("admitted"), 125, &s);
    }
    let (status, text) = says(ask(&s, Some(&a)));
    assert_eq!(status, 402);
    assert!(
        text.starts_with("the budget \"b1\" for this user has not enough left"),
        "{text}"
    );
    assert!(ask(&s, Some(&b)).is_ok());
    let opened = Opened {
        workload: WorkloadId(0),
        operation: Chat,
        listed: None,
    };
    let looked = |caller| look(opened, Some(caller), NOW, 0, &s.snapshot, &s.levels);
    assert!(looked(&a).is_some() && looked(&b).is_none());
    // Their own, beside the configuration's.
    let mut own = caller("own", "b");
    own.budgets = Box::new([OwnBudget {
        unit: Unit::Tokens,
        amount: 120,
        calendar: MONTH,
    }]);
    let own = Arc::new(own);
    settle(ask(&s, Some(&own)).expect("admitted"), 30, &s);
    let (status, text) = says(ask(&s, Some(&own)));
    assert_eq!(status, 402);
    assert!(
        text.starts_with("the own budget of this key has not enough left"),
        "{text}"
    );
    // A call that it refused holds nothing of the others.
    let who = Who {
        workload: "ide",
        caller: Some(&own),
    };
    let held = |id: u32| {
        let budget = &s.snapshot.budgets.list[id as usize];
        s.levels.held(BudgetId(id), budget, MONTH.of(0), &who)
    };
    assert!(held(1) < 250, "{}", held(1));
}

#[test]
fn own_budgets_of_money_fail_closed() {
    let mut me = caller("k", "u");
    me.budgets = Box::new([OwnBudget {
        unit: Unit::Money("USD".into()),
        amount: 1_000,
        calendar: MONTH,
    }]);
    let me = Arc::new(me);
    let s = apart(&[], &[]);
    let (status, text) = says(ask(&s, Some(&me)));
    assert_eq!(status, 403);
    assert!(
        text.starts_with("a budget of this caller's own counts money"),
        "{text}"
    );
    let refused = ask_at(&s, Some(&me), NOW, Transcriptions);
    assert_eq!(
        refused.expect_err("unread").reply().code,
        "operation_not_charged"
    );
    assert!(ask_at(&s, None, NOW, Transcriptions).is_ok());
}

#[test]
fn a_listed_call_that_nobody_charges_is_not_let_through_beside_own_budgets() {
    use crate::unread::{Listed, Template};
    let listed = |tokens| Listed {
        method: wire::head::Method::Post,
        path: Template::read("/v1/files").expect("a template"),
        tokens,
        price: None,
    };
    let mut me = caller("k", "u");
    me.limits = Box::new([OwnLimit {
        kind: TokenKind,
        rate: rate(100, 60),
    }]);
    let me = Arc::new(me);
    for (tokens, passes) in [(None, false), (Some(0), true), (Some(5), true)] {
        let s = revision(&[RoutePlan {
            unread: &[listed(tokens)],
            ..plan()
        }]);
        let opened = opened_by(&request("POST", "/v1/files", &[ME]), None, &s.snapshot);
        let opened = opened.expect("listed");
        let admitted = |caller| {
            let estimator = |_| Estimator::default();
            let (snapshot, levels) = (&s.snapshot, &s.levels);
            admit(
                opened,
                caller,
                |_| Ok(()),
                None,
                5,
                estimator,
                &mut None,
                NOW,
                0,
                snapshot,
                levels,
            )
            .is_ok()
        };
        assert_eq!(admitted(Some(&me)), passes, "{tokens:?}");
        assert!(admitted(None));
    }
}

#[test]
fn a_reload_keeps_slots_and_places_and_a_budget_that_begins_has_none() {
    let limits = |amount| [(Requests, rate(amount, 60), Whose::User)];
    let s = apart(&limits(2), &[(300, Whose::User)]);
    let me = Arc::new(caller("k", "u"));
    for _ in 0..2 {
        settle(ask(&s, Some(&me)).expect("admitted"), 100, &s);
    }
    assert_eq!(says(ask(&s, Some(&me))).0, 429);
    let again = s.next(snapshot_apart(&limits(2), &[(300, Whose::User)]), NOW);
    assert_eq!(says(ask(&again, Some(&me))).0, 429);
    assert!(again.levels.has_from(&s.levels, BudgetId(0)));
    let who = Who {
        workload: "ide",
        caller: Some(&me),
    };
    let held = |of: &Revision| {
        of.levels
            .held(BudgetId(0), &of.snapshot.budgets.list[0], MONTH.of(0), &who)
    };
    assert_eq!(held(&again), 200);
    // For each key it is another budget, and back again another one still: each is read from the ledger anew.
    let keys = again.next(snapshot_apart(&[], &[(300, Whose::Key)]), NOW);
    assert_eq!(
        (
            held(&keys),
            keys.levels.has_from(&again.levels, BudgetId(0))
        ),
        (0, false)
    );
    let users = keys.next(snapshot_apart(&[], &[(300, Whose::User)]), NOW);
    assert_eq!(held(&users), 0);
    let budget = &users.snapshot.budgets.list[0];
    assert!(
        users
            .levels
            .restore(BudgetId(0), budget, MONTH.of(0), &who, 250)
    );
    assert_eq!(held(&users), 250);
    assert_eq!(says(ask(&users, Some(&me))).0, 402);
}

#[test]
fn a_full_table_refuses_new_subjects_and_none_that_it_has() {
    let mut s = snapshot_apart(&[], &[(100_000, Whose::User)]);
    s.bounds.subjects = 1;
    let s = Revision::first(s);
    let user = |n: u64| Arc::new(caller("k", &format!("u{n}")));
    let came = (0..)
        .take_while(|n| ask(&s, Some(&user(*n))).is_ok())
        .count() as u64;
    let refused = ask(&s, Some(&user(came))).expect_err("no place");
    let reply = refused.reply();
    assert_eq!((reply.status, reply.code), (503, "subjects_exhausted"));
    assert!((0..came).all(|n| ask(&s, Some(&user(n))).is_ok()));
    assert_eq!(s.levels.usage(NOW, 0).turned_away, 2);
}

/// Eight threads, few users with limits and budgets of their own, each call settled once: nobody passes its amount, and
/// what is held is what was settled.
#[test]
fn subjects_on_many_threads_keep_to_their_amounts() {
    const USERS: usize = 5;
    let limits = [(Requests, rate(400, 1_000_000), Whose::User)];
    let s = apart(&limits, &[(20_000, Whose::User)]);
    let users: Vec<_> = (0..USERS)
        .map(|n| Arc::new(caller("k", &n.to_string())))
        .collect();
    let came: Vec<_> = users
        .iter()
        .map(|_| (AtomicU64::new(0), AtomicU64::new(0)))
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (s, users, came) = (&s, &users, &came);
            scope.spawn(move || {
                for call in 0..800 {
                    let n = (call + thread) % USERS;
                    let Ok(admitted) = ask(s, Some(&users[n])) else {
                        continue;
                    };
                    let tokens = (call % 60) as u64;
                    came[n].0.fetch_add(1, Ordering::Relaxed);
                    came[n].1.fetch_add(tokens, Ordering::Relaxed);
                    settle(admitted, tokens, s);
                }
            });
        }
    });
    for (user, (calls, tokens)) in users.iter().zip(came) {
        let who = Who {
            workload: "ide",
            caller: Some(user),
        };
        let budget = &s.snapshot.budgets.list[0];
        let held = s.levels.held(BudgetId(0), budget, MONTH.of(0), &who);
        let (calls, tokens) = (calls.into_inner(), tokens.into_inner());
        assert_eq!(held, tokens);
        assert!(tokens <= 20_000 && calls <= 400, "{calls} {tokens}");
        assert!(calls == 400 || tokens > 19_000, "{calls} {tokens}");
    }
}
