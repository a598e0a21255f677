//! The same body is routed by identity; a call without an identity is refused.

use serde_json::Value;

use super::{Run, runs, values};

/// How often each engine saw the call of this outcome.
fn on_engines(run: &Run, outcome: &Value) -> (usize, usize) {
    let id = outcome["request_id"].as_str().expect("an id");
    let of = |seen: &[Value]| {
        let is_it = |request: &&Value| values(request, "x-request-id") == [id];
        seen.iter().filter(is_it).count()
    };
    (of(&run.on_prem), of(&run.frontier))
}

#[test]
fn the_same_body_is_routed_by_identity() {
    for run in runs() {
        let what = run.what();
        let second = &run.limited[0];
        assert_eq!(
            (&second["status"], &second["model"]),
            (&200.into(), &"gpt-oss-120b".into())
        );
        assert_eq!(on_engines(run, second), (1, 0), "{what}");

        let [first, nowhere] = &run.routed[..] else {
            panic!("{what}: {:?}", run.routed)
        };
        assert_eq!(
            (&first["status"], &first["model"]),
            (&200.into(), &"gemini-2.5-flash".into())
        );
        assert_eq!(on_engines(run, first), (0, 1), "{what}");

        assert_eq!(nowhere["status"], 404, "{nowhere}");
        assert_eq!(nowhere["error"], "NotFoundError");
        assert_eq!(nowhere["code"], "workload_not_registered");
        assert_eq!(nowhere["request_id"], nowhere["headers"]["x-request-id"]);
        assert_eq!(
            on_engines(run, nowhere),
            (0, 0),
            "{what}: an engine heard of it"
        );
        assert_eq!(run.record(nowhere)["attempts"], 0);
    }
}
