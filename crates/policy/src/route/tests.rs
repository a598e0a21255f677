//! Which route takes a model, and which models are listed.

use std::sync::Arc;

use super::{check_named, choose, for_listing, model_named, models_of, unrestricted, why_private};
use crate::caller::Caller;
use crate::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use crate::id::{RouteId, WorkloadId};
use crate::model::ModelPattern;
use crate::refusal::Refusal;
use crate::snapshot::{Snapshot, Spellings};

fn plan<'a>(models: &'a [&'a str]) -> RoutePlan<'a> {
    RoutePlan {
        workloads: &["ide"],
        models,
        backends: &[ONE],
        ..RoutePlan::default()
    }
}

fn chosen(s: &Snapshot, model: Option<&str>) -> Option<RouteId> {
    choose(s, WorkloadId(0), model).ok().map(|g| g.grant.route)
}

fn offered(s: &Snapshot, workload: u32) -> Option<Vec<String>> {
    let names = models_of(s, WorkloadId(workload), None, "/v1/models")?;
    Some(names.iter().map(|n: &Arc<str>| n.to_string()).collect())
}

#[test]
fn the_first_route_in_written_order_wins() {
    let s = snapshot(&[plan(&["gpt-oss-120b"]), plan(&["gpt-*"]), plan(&[])]);
    assert_eq!(chosen(&s, Some("gpt-oss-120b")), Some(RouteId(0)));
    assert_eq!(chosen(&s, Some("gpt-oss-20b")), Some(RouteId(1)));
    assert_eq!(chosen(&s, Some("qwen")), Some(RouteId(2)));
    assert_eq!(chosen(&s, None), Some(RouteId(0)));
}

#[test]
fn names_are_compared_exactly_and_prefixes_from_the_start() {
    let s = snapshot(&[plan(&["gpt-4", "qwen/*"])]);
    for taken in ["gpt-4", "qwen/", "qwen/3-coder"] {
        assert_eq!(chosen(&s, Some(taken)), Some(RouteId(0)), "{taken}");
    }
    for left in ["GPT-4", "gpt-4o", "gpt", "xqwen/3", "qwen", ""] {
        assert_eq!(chosen(&s, Some(left)), None, "{left}");
    }
}

#[test]
fn a_call_that_leaves_the_model_out_enters_no_route_that_goes_by_model() {
    let s = snapshot(&[plan(&["gpt-oss-120b"]), plan(&[])]);
    let grant = unrestricted(&s, WorkloadId(0)).expect("the second route takes any model");
    assert_eq!(grant.grant.route, RouteId(1));
    let s = snapshot(&[plan(&["gpt-oss-120b"])]);
    assert!(matches!(
        unrestricted(&s, WorkloadId(0)),
        Err(Refusal::ModelRequired)
    ));
}

#[test]
fn a_workload_never_reaches_a_route_that_is_not_granted_to_it() {
    let other = RoutePlan {
        workloads: &["ci"],
        ..plan(&["secret-model"])
    };
    let s = snapshot(&[other, plan(&["gpt-4"])]);
    let ide = s.workload_named(b"ide").expect("registered");
    let refused = choose(&s, ide, Some("secret-model"));
    assert!(matches!(refused, Err(Refusal::ModelNotFound { model }) if model == "secret-model"));
    assert_eq!(offered(&s, ide.0), Some(vec!["gpt-4".to_owned()]));
}

#[test]
fn an_id_from_elsewhere_finds_nothing() {
    let s = snapshot(&[plan(&[])]);
    assert!(choose(&s, WorkloadId(7), Some("m")).is_err());
    assert_eq!(offered(&s, 7), Some(Vec::new()));
}

#[test]
fn models_are_listed_from_routes_and_backends_sorted_and_once() {
    let serving = BackendPlan {
        name: "serving",
        models: &["b", "a", "gpt-4"],
        ..ONE
    };
    let by_backend = RoutePlan {
        backends: &[serving],
        ..plan(&[])
    };
    let s = snapshot(&[plan(&["gpt-4", "z"]), by_backend]);
    let all = ["a", "b", "gpt-4", "z"].map(str::to_owned).to_vec();
    assert_eq!(offered(&s, 0), Some(all));
}

#[test]
fn a_prefix_lists_only_what_the_backend_declares_of_it() {
    let serving = BackendPlan {
        name: "serving",
        models: &["gpt-4", "qwen-3"],
        ..ONE
    };
    let s = snapshot(&[RoutePlan {
        backends: &[serving],
        ..plan(&["gpt-*"])
    }]);
    assert_eq!(offered(&s, 0), Some(vec!["gpt-4".to_owned()]));
}

#[test]
fn a_route_with_an_override_offers_the_model_it_sends() {
    let s = snapshot(&[RoutePlan {
        model: Some("gemini-2.5-flash"),
        ..plan(&[])
    }]);
    assert_eq!(offered(&s, 0), Some(vec!["gemini-2.5-flash".to_owned()]));
}

#[test]
fn where_nothing_is_declared_the_backend_must_be_asked() {
    assert_eq!(offered(&snapshot(&[plan(&[])]), 0), None);
    assert_eq!(
        offered(&snapshot(&[plan(&["m"]), plan(&["gpt-*"])]), 0),
        None
    );
}

#[test]
fn where_routes_lead_to_several_backends_one_is_asked_for_its_own_models_alone() {
    let near = BackendPlan {
        name: "near",
        models: &["gpt-4"],
        ..ONE
    };
    let far = BackendPlan { name: "far", ..ONE };
    let s = snapshot(&[
        RoutePlan {
            backends: &[near],
            ..plan(&["gpt-*"])
        },
        RoutePlan {
            backends: &[far],
            ..plan(&["claude-*"])
        },
    ]);
    let listed = |path: &str| models_of(&s, WorkloadId(0), None, path);
    let known = Some(vec![Arc::from("gpt-4")]);
    assert_eq!(listed("/v1/models"), known);
    assert_eq!(listed("/v1/models/gpt-4"), known);
    let asked = |path| {
        let chosen = for_listing(&s, WorkloadId(0), path);
        chosen.map(|chosen| chosen.grant.route).ok()
    };
    for (path, route) in [
        ("/v1/models/gpt-5", Some(RouteId(0))),
        ("/v1/models/claude-x", Some(RouteId(1))),
        ("/v1/models/other", None),
    ] {
        assert_eq!(listed(path), None, "{path}");
        assert_eq!(asked(path), route, "{path}");
    }
}

#[test]
fn models_that_their_route_leaves_out_are_taken_and_not_listed() {
    let small = RoutePlan {
        unlisted: &["gpt-old", "try-*"],
        ..plan(&["gpt-old", "gpt-4", "try-1"])
    };
    let s = snapshot(&[small, plan(&["other", "try-2"])]);
    for model in ["gpt-old", "try-1"] {
        assert_eq!(chosen(&s, Some(model)), Some(RouteId(0)), "{model}");
    }
    // Another route's model of a like name is listed: whose call it is says whether it is.
    let listed = ["gpt-4", "other", "try-2"].map(str::to_owned);
    assert_eq!(offered(&s, 0), Some(listed.to_vec()));
    let names = models_of(&s, WorkloadId(0), None, "/v1/models/gpt-old").expect("it is known here");
    assert!(model_named(&names, "/v1/models/gpt-old").is_err());
    // A backend that is asked for its whole list would tell of them; of one model it may be asked.
    let open = RoutePlan {
        unlisted: &["try-*"],
        ..plan(&[])
    };
    let s = snapshot(&[open]);
    let told = |path: &str| models_of(&s, WorkloadId(0), None, path);
    assert_eq!(told("/v1/models"), Some(Vec::new()));
    assert_eq!(told("/v1/models/try-1"), Some(Vec::new()));
    assert_eq!(told("/v1/models/gpt-4"), None);
}

#[test]
fn a_keys_own_models_are_not_listed_where_their_route_leaves_them_out() {
    let open = RoutePlan {
        unlisted: &["try-*"],
        ..plan(&[])
    };
    let s = snapshot(&[open]);
    let exact = |name: &str| ModelPattern::Exact(name.into());
    let caller = Caller {
        models: [exact("a"), exact("try-1")].into(),
        ..Caller::default()
    };
    let names = models_of(&s, WorkloadId(0), Some(&caller), "/v1/models");
    assert_eq!(names, Some(vec![Arc::from("a")]));
}

#[test]
fn one_model_is_shown_by_its_name_as_clients_encode_it() {
    let names: Vec<Arc<str>> = ["gpt-4", "qwen/3 coder"].map(Arc::from).to_vec();
    let shown = |path| model_named(&names, path).map(|one| one.map(|name| &**name));
    assert_eq!(shown("/v1/models").ok(), Some(None));
    for (path, name) in [
        ("/v1/models/gpt-4", "gpt-4"),
        ("/v1/models/qwen/3%20coder", "qwen/3 coder"),
        ("/v1/models/qwen%2F3%20coder", "qwen/3 coder"),
    ] {
        assert_eq!(shown(path).ok(), Some(Some(name)), "{path}");
    }
    for path in ["/v1/models/gpt", "/v1/models/", "/v1/models/gpt-4/"] {
        assert!(
            matches!(shown(path), Err(Refusal::ModelNotFound { .. })),
            "{path}"
        );
    }
}

/// A backend that has a name of its own for `gpt-4o`, and one more that has none.
fn named(models: &[&str]) -> Snapshot {
    let far = BackendPlan { name: "far", ..ONE };
    let backends = [ONE, far];
    let mut s = snapshot(&[RoutePlan {
        backends: &backends,
        ..plan(models)
    }]);
    let names = [("gpt-4o", "dep-a"), ("gpt-5", "gpt-5")];
    s.backends[0].model_names = names.map(|(gate, own)| (gate.into(), own.into())).into();
    s
}

#[test]
fn a_backends_own_name_for_a_model_is_no_way_around_what_the_model_costs() {
    for models in [&[][..], &["*"], &["gpt-*", "dep-*"]] {
        let s = named(models);
        assert_eq!(chosen(&s, Some("dep-a")), None, "{models:?}");
        for taken in ["gpt-4o", "gpt-5", "gpt-x"] {
            assert_eq!(chosen(&s, Some(taken)), Some(RouteId(0)), "{models:?}");
        }
    }
    let why = why_private(&named(&[]), WorkloadId(0), "dep-a").expect("a reason");
    assert!(why.contains("calls gpt-4o"), "{why}");
    let written = named(&["gpt-4o", "dep-a"]);
    assert_eq!(chosen(&written, Some("dep-a")), Some(RouteId(0)));
    let mut replaced = named(&[]);
    replaced.routes[0].model = Some("gpt-4o".into());
    assert_eq!(chosen(&replaced, Some("dep-a")), Some(RouteId(0)));
}

/// Vertex AI has the model where it is named by its publisher, too.
#[test]
fn a_second_spelling_of_a_model_is_no_way_around_what_the_model_costs() {
    let spelt = |models: &[&str]| {
        let mut s = snapshot(&[plan(models)]);
        s.backends[0].spellings = Some(Spellings {
            beginnings: ["models/", "publishers/", "google/"].into(),
            is_caseless: false,
        });
        s
    };
    let others = ["google/pro", "models/pro", "publishers/google/models/pro"];
    let unclear = ["..", "../x", "./x", "a/../b", "/x", "x/", "a//b"];
    for models in [&[][..], &["*"], &["pro", "m*", "g*", "p*", "a*", "*"]] {
        let s = spelt(models);
        assert_eq!(chosen(&s, Some("pro")), Some(RouteId(0)));
        assert_eq!(chosen(&s, Some("anthropic/pro")), Some(RouteId(0)));
        for model in others.into_iter().chain(unclear) {
            assert_eq!(chosen(&s, Some(model)), None, "{model} {models:?}");
            assert!(why_private(&s, WorkloadId(0), model).is_some());
        }
    }
    // Who writes it so has it so.
    for models in [&["google/pro"][..], &["google/*"]] {
        let s = spelt(models);
        assert_eq!(chosen(&s, Some("google/pro")), Some(RouteId(0)));
        assert_eq!(chosen(&s, Some("google/../x")), None);
    }
    let mut listed = spelt(&[]);
    listed.backends[0].models = vec!["google/pro".into()];
    assert_eq!(chosen(&listed, Some("google/pro")), Some(RouteId(0)));
    assert_eq!(chosen(&listed, Some("pro")), None, "it is spelt otherwise");
    let mut renamed = spelt(&[]);
    renamed.backends[0].model_names = [("google/mine".into(), "models/pro".into())].into();
    assert_eq!(chosen(&renamed, Some("google/mine")), Some(RouteId(0)));
    for other in ["pro", "google/pro", "models/pro"] {
        assert_eq!(chosen(&renamed, Some(other)), None, "{other}");
    }
    // Where bodies name the model, it is what it is called there.
    let s = snapshot(&[plan(&[])]);
    for model in others.into_iter().chain(unclear) {
        assert_eq!(chosen(&s, Some(model)), Some(RouteId(0)), "{model}");
    }
}

/// Azure's deployments know no capitals.
#[test]
fn a_model_in_other_letters_is_no_way_around_what_the_model_costs() {
    let spelt = |models: &[&str]| {
        let mut s = snapshot(&[plan(models)]);
        s.backends[0].spellings = Some(Spellings {
            is_caseless: true,
            ..Spellings::default()
        });
        s
    };
    let is_taken = |s: &Snapshot, model: &str| chosen(s, Some(model)) == Some(RouteId(0));
    for models in [&[][..], &["*"], &["gpt-*", "G*", "*"]] {
        let s = spelt(models);
        assert!(is_taken(&s, "gpt-5"));
        for model in [
            "GPT-5",
            "Gpt-5",
            "gpT-5",
            "gpt-5-Mini",
            "\u{212a}imi",
            "gpt-5/..",
        ] {
            assert!(!is_taken(&s, model), "{model} {models:?}");
        }
    }
    // Who writes it so has it so, and so alone.
    let mut listed = spelt(&[]);
    listed.backends[0].models = vec!["DeepSeek-R1".into()];
    let mut named = spelt(&[]);
    named.backends[0].model_names = [("DeepSeek-R1".into(), "DeepSeek-R1".into())].into();
    for s in [&listed, &named, &spelt(&["DeepSeek-R1", "*"])] {
        assert!(is_taken(s, "DeepSeek-R1"));
        for other in ["DEEPSEEK-R1", "deepseek-r1"] {
            assert!(!is_taken(s, other), "{other} is spelt otherwise");
        }
    }
    named.backends[0].model_names = [("mine".into(), "Dep-A".into())].into();
    assert!(is_taken(&named, "mine") && is_taken(&named, "dep-b"));
    assert!(!is_taken(&named, "dep-a") && !is_taken(&named, "Dep-A"));
}

#[test]
fn models_that_a_backend_names_otherwise_are_listed_by_the_gates_names() {
    let expected = ["gpt-4o".to_owned(), "gpt-5".to_owned()];
    assert_eq!(offered(&named(&[]), 0), Some(expected.to_vec()));
    let mut also = named(&[]);
    also.backends[0].models = vec!["dep-a".into()];
    assert_eq!(offered(&also, 0), Some(expected.to_vec()));
}

#[test]
fn a_callers_own_models_are_listed_where_names_are_known_and_else_asked_of_the_backend() {
    let known = snapshot(&[plan(&["a", "b-1", "b-2"])]);
    let open = snapshot(&[plan(&[])]);
    let caller = |models: &[ModelPattern]| Caller {
        models: models.into(),
        ..Caller::default()
    };
    let exact = || ModelPattern::Exact("a".into());
    let prefix = || ModelPattern::Prefix("b-".into());
    let listed = |s: &Snapshot, caller: &Caller| {
        let names = models_of(s, WorkloadId(0), Some(caller), "/v1/models")?;
        Some(
            names
                .iter()
                .map(|name| name.to_string())
                .collect::<Vec<_>>(),
        )
    };
    let both = caller(&[exact(), prefix()]);
    let names = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect());
    assert_eq!(listed(&known, &both), names(&["a", "b-1", "b-2"]));
    assert_eq!(listed(&known, &caller(&[exact()])), names(&["a"]));
    assert_eq!(listed(&open, &caller(&[exact()])), names(&["a"]));
    // Which names fit the pattern is not known here.
    assert_eq!(listed(&open, &both), None);
    for (path, is_own) in [
        ("/v1/models", true),
        ("/v1/models/a", true),
        ("/v1/models/b-7", true),
        ("/v1/models/%62-7", true),
        ("/v1/models/c", false),
        ("/v1/models/a/", false),
    ] {
        assert_eq!(check_named(Some(&both), path).is_ok(), is_own, "{path}");
        assert!(check_named(Some(&caller(&[])), path).is_ok());
        assert!(check_named(None, path).is_ok());
    }
}
