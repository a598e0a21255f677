//! Who is recognised, and that two values are never a choice.
//!
//! Not here: where in an exchange this is asked (`exchange`).

use super::{HeaderSource, Identified, Identity, Source, identify};
use crate::caller::Peer;
use crate::fixture::{IDENTITY, ONE, RoutePlan, request, snapshot};
use crate::id::WorkloadId;
use crate::refusal::Refusal;
use crate::shard::Shard;
use crate::snapshot::Snapshot;

fn identified(head: &wire::head::RequestHead, s: &Snapshot) -> Result<WorkloadId, Refusal> {
    let peer = Peer::from(std::net::IpAddr::from([192, 0, 2, 1]));
    let mut shard = Shard::new(s, None, 1);
    match identify(head, &peer, s, &mut shard, 1_000) {
        Ok(Identified::As(workload, None, _)) => Ok(workload),
        Ok(other) => panic!("a header proves nothing: {other:?}"),
        Err(unidentified) => Err(unidentified.refusal),
    }
}

fn two_workloads() -> Snapshot {
    snapshot(&[RoutePlan {
        workloads: &["ide", "ci"],
        backends: &[ONE],
        ..RoutePlan::default()
    }])
}

fn who(fields: &[(&str, &str)]) -> Result<WorkloadId, &'static str> {
    let head = request("POST", "/v1/chat/completions", fields);
    identified(&head, &two_workloads()).map_err(|refusal| match refusal {
        Refusal::IdentityRepeated { header } | Refusal::WorkloadNotRegistered { header }
            if header != IDENTITY =>
        {
            "a refusal that names another header"
        }
        refusal => refusal.reply().code,
    })
}

#[test]
fn a_registered_name_is_known_in_any_case_of_the_header_and_with_blanks_around_it() {
    assert_eq!(who(&[("x-workload-app", "ide")]), Ok(WorkloadId(0)));
    assert_eq!(who(&[("X-Workload-App", "\t ci ")]), Ok(WorkloadId(1)));
}

#[test]
fn whoever_is_not_registered_is_unknown() {
    for value in [
        "",
        "guest",
        "IDE",
        "ide ci",
        "ide;ci",
        "id",
        "idee",
        "ide\u{200b}",
        "їde",
    ] {
        let got = who(&[("x-workload-app", value)]);
        assert_eq!(got, Err("workload_not_registered"), "{value:?}");
    }
    assert_eq!(who(&[]), Err("workload_not_registered"));
}

#[test]
fn a_name_that_only_looks_like_the_header_is_not_it() {
    for name in [
        "x-workload_app",
        "x_workload_app",
        "x-workload-apps",
        "x-workload",
    ] {
        assert_eq!(
            who(&[(name, "ide")]),
            Err("workload_not_registered"),
            "{name}"
        );
    }
    // Such a name does not make a second value either.
    let both = [("x-workload_app", "ci"), ("x-workload-app", "ide")];
    assert_eq!(who(&both), Ok(WorkloadId(0)));
}

#[test]
fn two_values_are_an_error_even_where_they_agree() {
    let cases: [&[(&str, &str)]; 5] = [
        &[("x-workload-app", "ide"), ("x-workload-app", "ide")],
        &[("x-workload-app", "ide"), ("X-Workload-App", "ci")],
        &[("x-workload-app", "guest"), ("x-workload-app", "")],
        &[("x-workload-app", "ide,ci")],
        &[("x-workload-app", "ide,")],
    ];
    for fields in cases {
        assert_eq!(who(fields), Err("identity_repeated"), "{fields:?}");
    }
}

#[test]
fn what_connection_names_still_identifies() {
    let fields = [("connection", "x-workload-app"), ("x-workload-app", "ide")];
    assert_eq!(who(&fields), Ok(WorkloadId(0)));
}

#[test]
fn a_default_stands_in_for_a_missing_header_and_for_nothing_else() {
    let mut s = two_workloads();
    let source = HeaderSource {
        default: Some(WorkloadId(1)),
        ..HeaderSource::default()
    };
    s.identity = Identity {
        sources: vec![Source::Header(source)],
        header: IDENTITY.to_owned(),
        ..Identity::default()
    };
    let code = |fields| {
        let head = request("GET", "/v1/models", fields);
        identified(&head, &s).map_err(|refusal| refusal.reply().code)
    };
    assert_eq!(code(&[]), Ok(WorkloadId(1)));
    assert_eq!(code(&[("x-workload-app", "ide")]), Ok(WorkloadId(0)));
    assert_eq!(
        code(&[("x-workload-app", "guest")]),
        Err("workload_not_registered")
    );
    assert_eq!(
        code(&[("x-workload-app", "")]),
        Err("workload_not_registered")
    );
}
