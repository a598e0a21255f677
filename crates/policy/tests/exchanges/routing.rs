//! Which route a call takes, and which models a caller may ask for.

use std::sync::Arc;

use policy::caller::Caller;
use policy::exchange::Verdict;
use policy::id::RouteId;
use policy::limit::Kind::Requests;
use policy::model::ModelPattern;
use policy::operation::Operation::{Chat, Models, Transcriptions};

use crate::fixture::{BackendPlan, ONE, RoutePlan, rate, snapshot};
use crate::world::{Asked, FORM_OF_M, World, call, knowing_callers, plan};

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
