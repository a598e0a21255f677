//! Who is recognised, and that two values are never a choice.
//!
//! Not here: where in an exchange this is asked (`exchange`).

use super::{Identified, identify};
use crate::caller::Peer;
use crate::fixture::{IDENTITY, ONE, RoutePlan, request, snapshot};
use crate::id::WorkloadId;
use crate::identity::{HeaderSource, Identity, Source};
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

mod proven {
    //! Credentials, certificates and headers together: who decides, and what is refused.

    use std::collections::HashMap;
    use std::net::IpAddr;
    use std::sync::Arc;

    use super::super::{Identified, identify};
    use super::two_workloads;
    use crate::caller::{Caller, Peer, PeerCertificate};
    use crate::client::Network;
    use crate::fixture::request;
    use crate::id::WorkloadId;
    use crate::identity::{Certificates, HeaderSource, Proof, Source, Trusted, Unproven, Verifier};
    use crate::shard::Shard;
    use crate::snapshot::Snapshot;

    const NOW: u64 = 1_000;

    /// `key-NAME` is the workload's of that name.
    #[derive(Debug)]
    struct Named;

    impl Verifier for Named {
        fn takes(&self, credential: &[u8]) -> bool {
            credential.starts_with(b"key-")
        }

        fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
            let mut print = [0; 32];
            for (at, byte) in credential.iter().enumerate() {
                print[at % 32] ^= byte;
            }
            print
        }

        fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven> {
            let name = std::str::from_utf8(&credential[4..]).expect("text");
            if name == "bad" {
                return Err(Unproven::Invalid("it is bad".into()));
            }
            Ok(Proof {
                caller: caller(name),
                until_unix_s: unix_s + 10,
            })
        }
    }

    /// Takes every credential, and says that it is another source's.
    #[derive(Debug)]
    struct Elsewhere;

    impl Verifier for Elsewhere {
        fn takes(&self, _: &[u8]) -> bool {
            true
        }

        fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
            Named.fingerprint(credential)
        }

        fn verify(&self, _: &[u8], _: u64) -> Result<Proof, Unproven> {
            Err(Unproven::Elsewhere("it is another's".into()))
        }
    }

    fn caller(workload: &str) -> Arc<Caller> {
        Arc::new(Caller {
            workload: workload.into(),
            user: Some("ada".into()),
            ..Caller::default()
        })
    }

    fn peer(address: [u8; 4], names: &[&str]) -> Peer {
        let certificate = PeerCertificate {
            names: names.iter().map(|name| Box::from(*name)).collect(),
            until_unix_s: NOW + 1,
        };
        Peer {
            address: address.into(),
            certificate: (!names.is_empty()).then(|| Arc::new(certificate)),
        }
    }

    /// Keys first, then certificates, then the header of a proxy.
    fn of_three() -> Snapshot {
        let mut s = two_workloads();
        let network = Network::new(IpAddr::from([10, 0, 0, 0]), 8).expect("a network");
        s.identity.sources = vec![
            Source::Credential(Arc::new(Named)),
            Source::Certificate(Certificates {
                exact: HashMap::from([("spiffe://a/ci".into(), caller("ci"))]),
                prefixes: vec![("spiffe://a/ide/".into(), caller("ide"))],
            }),
            Source::Header(HeaderSource {
                default: None,
                from: Trusted::Peers {
                    networks: vec![network],
                    certificates: vec!["spiffe://a/proxy".into()],
                },
            }),
        ];
        s
    }

    fn who(peer: &Peer, fields: &[(&str, &str)]) -> Result<String, &'static str> {
        let s = of_three();
        let head = request("POST", "/v1/chat/completions", fields);
        let mut shard = Shard::new(&s, None, 1);
        match identify(&head, peer, &s, &mut shard, NOW) {
            Ok(Identified::As(workload, caller, _)) => {
                let name = &s.workload(workload).expect("a workload").name;
                let how = if caller.is_some() { "proven" } else { "said" };
                Ok(format!("{name} {how}"))
            }
            Ok(Identified::Asks(_)) => panic!("nobody is asked"),
            Err(unidentified) => Err(unidentified.refusal.reply().code),
        }
    }

    const NAME: &str = "x-workload-app";
    const AUTH: &str = "authorization";

    #[test]
    fn the_first_source_that_something_is_brought_for_decides() {
        let outside = peer([192, 0, 2, 1], &[]);
        let proxy = peer([10, 1, 2, 3], &[]);
        let mesh = peer([192, 0, 2, 1], &["spiffe://a/ide/1"]);
        type Case<'a> = (&'a Peer, &'a [(&'a str, &'a str)], Result<&'a str, &'a str>);
        let cases: &[Case<'_>] = &[
            (&outside, &[(AUTH, "Bearer key-ide")], Ok("ide proven")),
            (&outside, &[("x-api-key", "key-ci")], Ok("ci proven")),
            (&outside, &[("api-key", "key-ci")], Ok("ci proven")),
            (&outside, &[(AUTH, "bearer key-ide")], Ok("ide proven")),
            (&mesh, &[], Ok("ide proven")),
            (&mesh, &[(AUTH, "Bearer key-ci")], Ok("ci proven")),
            (
                &peer([1, 1, 1, 1], &["x", "spiffe://a/ci"]),
                &[],
                Ok("ci proven"),
            ),
            (&proxy, &[(NAME, "ci")], Ok("ci said")),
            (
                &peer([1, 1, 1, 1], &["spiffe://a/proxy"]),
                &[(NAME, "ci")],
                Ok("ci said"),
            ),
            // A key that is nobody's business here, from a proxy that says who calls.
            (
                &proxy,
                &[(AUTH, "Bearer sk-unused"), (NAME, "ci")],
                Ok("ci said"),
            ),
            (&outside, &[], Err("credential_missing")),
            (&outside, &[(NAME, "ci")], Err("credential_missing")),
            (
                &outside,
                &[(AUTH, "Bearer sk-unknown")],
                Err("invalid_api_key"),
            ),
            (
                &outside,
                &[(AUTH, "Basic a2V5LWlkZQ==")],
                Err("invalid_api_key"),
            ),
            (&outside, &[(AUTH, "key-ide")], Err("invalid_api_key")),
            (&outside, &[(AUTH, "Bearer")], Err("invalid_api_key")),
            (&outside, &[(AUTH, "Bearer ")], Err("invalid_api_key")),
            (
                &outside,
                &[(AUTH, "Bearer key-ide key-ide")],
                Err("invalid_api_key"),
            ),
            (
                &outside,
                &[(AUTH, "Bearer\tkey-ide")],
                Err("invalid_api_key"),
            ),
            (&proxy, &[(NAME, "nobody")], Err("workload_not_registered")),
            // What is brought and not good is not passed on.
            (
                &proxy,
                &[(AUTH, "Bearer key-bad"), (NAME, "ci")],
                Err("invalid_api_key"),
            ),
            (&mesh, &[(AUTH, "Bearer key-bad")], Err("invalid_api_key")),
            (
                &outside,
                &[(AUTH, "Bearer key-nobody")],
                Err("workload_not_registered"),
            ),
        ];
        for (peer, fields, expected) in cases {
            let expected = expected.map(str::to_owned);
            assert_eq!(who(peer, fields), expected, "{fields:?} from {peer:?}");
        }
    }

    #[test]
    fn a_default_is_for_who_brings_nothing_wherever_it_stands() {
        let mut s = of_three();
        let default = Source::Header(HeaderSource {
            default: Some(WorkloadId(1)),
            from: Trusted::Anyone,
        });
        for place in [0, 3] {
            s.identity.sources.insert(place, default.clone());
            let code = |fields| {
                let head = request("GET", "/v1/models", fields);
                let mut shard = Shard::new(&s, None, 1);
                match identify(&head, &peer([192, 0, 2, 1], &[]), &s, &mut shard, NOW) {
                    Ok(Identified::As(workload, ..)) => Ok(workload),
                    Ok(Identified::Asks(_)) => panic!("nobody is asked"),
                    Err(unidentified) => Err(unidentified.refusal.reply().code),
                }
            };
            assert_eq!(code(&[]), Ok(WorkloadId(1)));
            assert_eq!(code(&[(AUTH, "Bearer key-ide")]), Ok(WorkloadId(0)));
            let bad = Err("invalid_api_key");
            assert_eq!(code(&[(AUTH, "Bearer sk-unknown")]), bad, "at {place}");
            assert_eq!(code(&[(AUTH, "Basic a2V5")]), bad);
            assert_eq!(code(&[(AUTH, "Bearer key-bad")]), bad);
            s.identity.sources.remove(place);
        }
    }

    #[test]
    fn the_log_says_what_was_brought_and_does_not_count() {
        let s = of_three();
        let reason = |peer: &Peer, fields: &[(&str, &str)]| {
            let head = request("GET", "/v1/models", fields);
            let refused = identify(&head, peer, &s, &mut Shard::new(&s, None, 1), NOW);
            let reason = refused.expect_err("a refusal").reason;
            reason.map_or_else(String::new, Into::into)
        };
        let mesh = peer([192, 0, 2, 1], &["spiffe://b/x"]);
        let outside = peer([192, 0, 2, 1], &[]);
        assert!(reason(&mesh, &[]).contains("spiffe://b/x"));
        assert!(reason(&outside, &[(NAME, "ci")]).contains("not believed from 192.0.2.1"));
        assert_eq!(reason(&outside, &[]), "");
        let contradicts = [(AUTH, "Bearer key-ide"), (NAME, "ci")];
        assert!(reason(&outside, &contradicts).contains("\"ci\", and \"ide\" is proven"));
    }

    #[test]
    fn the_user_of_a_certificate_known_by_the_beginning_of_a_name_is_that_name() {
        let mesh = peer([192, 0, 2, 1], &["spiffe://a/ide/7"]);
        let s = of_three();
        let head = request("GET", "/v1/models", &[]);
        let found = identify(&head, &mesh, &s, &mut Shard::new(&s, None, 1), NOW);
        let Ok(Identified::As(_, Some(caller), _)) = found else {
            panic!("{found:?}");
        };
        assert_eq!(caller.user.as_deref(), Some("spiffe://a/ide/7"));
    }

    #[test]
    fn a_header_can_contradict_what_is_proven_and_never_replace_it() {
        let proxy = peer([10, 1, 2, 3], &[]);
        let with = |name| who(&proxy, &[(AUTH, "Bearer key-ide"), (NAME, name)]);
        assert_eq!(with("ide"), Ok("ide proven".to_owned()));
        assert_eq!(with("ci"), Err("identity_contradicted"));
        assert_eq!(with("nobody"), Err("identity_contradicted"));
        assert_eq!(with(""), Err("identity_contradicted"));
        let twice = [(AUTH, "Bearer key-ide"), (NAME, "ide"), (NAME, "ide")];
        assert_eq!(who(&proxy, &twice), Err("identity_repeated"));
    }

    #[test]
    fn a_certificate_that_has_ended_proves_nothing() {
        let s = of_three();
        let head = request("GET", "/v1/models", &[]);
        let mut shard = Shard::new(&s, None, 1);
        let mesh = peer([192, 0, 2, 1], &["spiffe://a/ci"]);
        assert!(identify(&head, &mesh, &s, &mut shard, NOW).is_ok());
        assert!(identify(&head, &mesh, &s, &mut shard, NOW + 1).is_err());
        // Nor is it a reason to believe a header.
        let head = request("GET", "/v1/models", &[(NAME, "ci")]);
        let proxy = peer([192, 0, 2, 1], &["spiffe://a/proxy"]);
        assert!(identify(&head, &proxy, &s, &mut shard, NOW).is_ok());
        assert!(identify(&head, &proxy, &s, &mut shard, NOW + 1).is_err());
    }

    #[test]
    fn past_a_bound_bad_credentials_are_not_looked_at_and_known_ones_are_taken() {
        past_the_bound(&of_three());
        // Known by a source that is not the first.
        let mut s = of_three();
        let first = Source::Credential(Arc::new(Elsewhere));
        s.identity.sources.insert(0, first);
        past_the_bound(&s);
    }

    fn past_the_bound(s: &Snapshot) {
        let mut shard = Shard::new(s, None, 1);
        let mut said = |token: &str, from: [u8; 4]| {
            let fields = [(AUTH, format!("Bearer {token}"))];
            let fields: Vec<_> = fields.iter().map(|(n, v)| (*n, v.as_str())).collect();
            let head = request("GET", "/v1/models", &fields);
            match identify(&head, &peer(from, &[]), s, &mut shard, NOW) {
                Ok(_) => "known",
                Err(unidentified) => unidentified.refusal.reply().code,
            }
        };
        let here = [192, 0, 2, 1];
        assert_eq!(said("key-ide", here), "known");
        for n in 0..100 {
            assert_eq!(said("key-bad", here), "invalid_api_key", "{n}");
        }
        assert_eq!(said("key-bad", here), "too_many_bad_credentials");
        assert_eq!(
            said("key-ci", here),
            "too_many_bad_credentials",
            "not proven yet"
        );
        assert_eq!(said("key-ide", here), "known", "proven before");
        assert_eq!(said("key-ci", [192, 0, 2, 2]), "known", "another address");
    }
}
