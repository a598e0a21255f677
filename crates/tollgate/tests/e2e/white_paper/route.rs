//! The same body is routed by identity; a call without an identity is refused.

use super::{call, make};
use crate::harness::{Demo, Sdk, seen_by};

#[test]
fn the_same_body_is_routed_by_identity() {
    for (sdk, stream) in Sdk::ways() {
        let demo = Demo::start();
        let on_engines = || (seen_by(demo.on_prem).len(), seen_by(demo.frontier).len());
        assert_eq!(on_engines(), (0, 0));
        let as_whom = |workload: &str| make(sdk, &demo, &[call(workload, stream)]).remove(0);

        let second = as_whom("swe-rebench-ide");
        assert_eq!(
            (&second["status"], &second["model"]),
            (&200.into(), &"gpt-oss-120b".into())
        );
        assert_eq!(on_engines(), (1, 0), "{sdk:?} {stream}");

        let first = as_whom("toolbench-agent");
        assert_eq!(
            (&first["status"], &first["model"]),
            (&200.into(), &"gemini-2.5-flash".into())
        );
        assert_eq!(on_engines(), (1, 1), "{sdk:?} {stream}");

        let nowhere = as_whom("unknown-guest");
        assert_eq!(nowhere["status"], 404, "{nowhere}");
        assert_eq!(nowhere["error"], "NotFoundError");
        assert_eq!(nowhere["code"], "workload_not_registered");
        assert_eq!(nowhere["request_id"], nowhere["headers"]["x-request-id"]);
        assert_eq!(
            on_engines(),
            (1, 1),
            "{sdk:?} {stream}: an engine heard of it"
        );

        let records = demo.records(3);
        assert_eq!(records.len(), 3);
        // Workers write their lines in any order.
        let refused = records
            .iter()
            .find(|record| record["request_id"] == nowhere["request_id"]);
        assert_eq!(refused.expect("is logged")["attempts"], 0);
    }
}
