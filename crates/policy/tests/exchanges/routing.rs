//! Which route a call takes, and which models a caller may ask for.

use std::sync::Arc;

use policy::budget::Unit;
use policy::caller::Caller;
use policy::exchange::Verdict;
use policy::id::RouteId;
use policy::limit::Kind::Requests;
use policy::model::ModelPattern;
use policy::operation::Operation::{Chat, Messages, Models, Transcriptions};
use policy::subject::Whose;

use crate::fixture::{BackendPlan, ONE, RoutePlan, rate, snapshot};
use crate::world::{Asked, FORM_OF_M, World, budget, call, knowing_callers, plan};

fn names(asked: &Asked) -> Vec<&str> {
    match &asked.verdict {
        Verdict::Models { names, .. } => names.iter().map(|name| &**name).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn models_are_answered_here_where_they_are_known_and_asked_where_only_the_backend_knows() {
    let mut world = World::routes(&[RoutePlan {
        models: &["b", "a"],
        limits: &[(Requests, rate(1, 60))],
        ..plan()
    }]);
    for _ in 0..3 {
        assert_eq!(names(&world.ask(&call(Models, ""))), ["a", "b"]);
    }
    assert_eq!(world.left(0), 1, "and cost nothing");
    let asked = World::routes(&[plan()]).ask(&call(Models, ""));
    assert_eq!(asked.estimate().reserved, 0);
    let record = asked.record();
    assert_eq!(
        (record.route, &record.model_sent),
        (Some(RouteId(0)), &None)
    );
}

#[test]
fn an_unknown_model_holds_nothing() {
    let mut world = World::routes(&[RoutePlan {
        models: &["m"],
        limits: &[(Requests, rate(2, 60))],
        ..plan()
    }]);
    let asked = world.ask(&call(Chat, r#"{"model":"x"}"#));
    assert_eq!((asked.code(), world.left(0)), ("model_not_found", 2));
}

#[test]
fn a_name_the_configuration_knows_is_shared_and_not_copied() {
    let serving = BackendPlan {
        models: &["m"],
        ..ONE
    };
    let mut world = World::routes(&[RoutePlan {
        backends: &[serving],
        ..plan()
    }]);
    let asked = world.ask(&call(Chat, r#"{"model":"m"}"#));
    let sent = asked.record().model_sent.as_ref().expect("a model");
    assert!(Arc::ptr_eq(sent, &world.of.snapshot.backends[0].models[0]));
}

#[test]
fn a_key_that_is_held_to_models_of_its_own_asks_for_those_alone() {
    let own = [
        ModelPattern::Exact("a".into()),
        ModelPattern::Prefix("b-".into()),
    ];
    let me = Arc::new(Caller {
        workload: "ide".into(),
        models: own.into(),
        ..Caller::default()
    });
    let mut s = snapshot(&[
        RoutePlan {
            models: &["a", "b-1", "c"],
            ..plan()
        },
        plan(),
    ]);
    knowing_callers(&mut s);
    let mut world = World::new(s);
    let mut code = |operation, body| world.ask(&call(operation, body).by(&me)).code();
    assert_eq!(code(Chat, r#"{"model":"a"}"#), "");
    assert_eq!(code(Chat, r#"{"model":"b-2"}"#), "");
    assert_eq!(code(Chat, r#"{"model":"c"}"#), "model_not_found");
    assert_eq!(code(Chat, "{}"), "model_required");
    assert_eq!(code(Transcriptions, FORM_OF_M), "model_not_found");
    // Which names fit a pattern, the backend is asked.
    let asked = world.ask(&call(Models, "").by(&me));
    assert_eq!(asked.estimate().reserved, 0);
}

/// A call of `m` whose tool names this model.
fn advised(model: &str) -> String {
    format!(
        r#"{{"model":"m","messages":[],"tools":[{{"type":"advisor_20260301","name":"advisor","model":"{model}"}}]}}"#
    )
}

#[test]
fn a_model_that_a_tool_names_is_held_to_the_rules_of_the_route() {
    let mut world = World::routes(&[
        RoutePlan {
            models: &["m", "n-*"],
            limits: &[(Requests, rate(9, 60))],
            ..plan()
        },
        RoutePlan {
            models: &["other"],
            ..plan()
        },
    ]);
    for model in ["m", "n-1"] {
        let asked = world.ask(&call(Messages, &advised(model)));
        assert_eq!(asked.code(), "", "{model}");
    }
    let held = world.left(0);
    // Another route of the workload has it: this call does not go there.
    for model in ["opus", "other", "no model"] {
        let asked = world.ask(&call(Messages, &advised(model)));
        let refused = asked.refusal().reply();
        let said = (refused.status, refused.code, refused.param);
        assert_eq!(said, (404, "model_not_found", Some("tools")), "{model}");
    }
    assert_eq!(world.left(0), held, "nothing is held");
    let body = r#"{"model":"m","messages":[],"models":["opus"]}"#;
    let asked = world.ask(&call(Chat, body));
    assert_eq!(asked.refusal().reply().param, Some("models"));
}

#[test]
fn a_route_that_says_the_model_lets_no_tool_name_another_one() {
    let mut world = World::routes(&[RoutePlan {
        model: Some("m"),
        ..plan()
    }]);
    assert_eq!(world.ask(&call(Messages, &advised("m"))).code(), "");
    let asked = world.ask(&call(Messages, &advised("opus")));
    assert_eq!(asked.code(), "model_not_found");
    // Where nothing goes by a model's name, a tool may name any.
    let mut free = World::routes(&[plan()]);
    assert_eq!(free.ask(&call(Messages, &advised("opus"))).code(), "");
}

#[test]
fn a_name_that_only_a_backend_uses_is_none_for_a_tool_either() {
    let mut s = snapshot(&[plan()]);
    s.backends[0].model_names = [(Arc::from("m"), Box::from("vendor/m"))].into();
    let mut world = World::new(s);
    let asked = world.ask(&call(Messages, &advised("vendor/m")));
    assert_eq!(asked.code(), "model_not_found");
    assert_eq!(world.ask(&call(Messages, &advised("opus"))).code(), "");
}

#[test]
fn a_key_that_is_for_some_models_alone_lets_no_tool_name_another_one() {
    let me = Arc::new(Caller {
        workload: "ide".into(),
        models: [ModelPattern::Exact("m".into())].into(),
        ..Caller::default()
    });
    let mut s = snapshot(&[plan()]);
    knowing_callers(&mut s);
    let mut world = World::new(s);
    let (own, other) = (advised("m"), advised("opus"));
    assert_eq!(world.ask(&call(Messages, &own).by(&me)).code(), "");
    let asked = world.ask(&call(Messages, &other).by(&me));
    assert_eq!(asked.code(), "model_not_found");
}

#[test]
fn a_model_that_a_budget_counts_apart_is_named_by_no_tool_of_another_one() {
    let mut s = snapshot(&[plan()]);
    for models in [&["opus"][..], &["m", "n"]] {
        budget(&mut s, Unit::Tokens, 1_000_000, Whose::Workload);
        let models = models.iter().map(|m| ModelPattern::Exact((*m).into()));
        let last = s.budgets.list.last_mut().expect("a budget");
        last.models = models.collect();
    }
    let mut world = World::new(s);
    for (model, code) in [("n", ""), ("x", ""), ("opus", "model_not_found")] {
        let asked = world.ask(&call(Messages, &advised(model)));
        assert_eq!(asked.code(), code, "{model}");
    }
}
