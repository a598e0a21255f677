//! Who is recognised, that two values are never a choice, and which of several sources decides.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use policy::caller::{Caller, Peer, PeerCertificate};
use policy::client::Network;
use policy::id::WorkloadId;
use policy::identity::{Certificates, HeaderSource, Proof, Source, Trusted, Unproven, Verifier};
use policy::refusal::Refusal;
use policy::revision::Revision;
use policy::snapshot::Snapshot;

use crate::fixture::{IDENTITY, ONE, RoutePlan, snapshot};
use crate::world::{Asked, Call, World};

/// Seconds since the Unix epoch.
const NOW: u64 = 1_000;
const AUTH: &str = "authorization";
const BAD: &str = "invalid_api_key";
const UNKNOWN: &str = "workload_not_registered";
const CONTRADICTED: &str = "identity_contradicted";

fn two_workloads() -> Snapshot {
    snapshot(&[RoutePlan {
        workloads: &["ide", "ci"],
        backends: &[ONE],
        ..RoutePlan::default()
    }])
}

fn world(of: &Arc<Revision>) -> World {
    let mut world = World::of(Arc::clone(of));
    world.unix_ms = NOW * 1000;
    world
}

fn asked(world: &mut World, fields: &[(&str, &str)]) -> Asked {
    world.head(&Call::of("GET", "/v1/models", fields), None)
}

/// Who it is and how that is known, or the code of its refusal.
fn known(asked: &Asked) -> &'static str {
    let record = asked.record();
    match (asked.code(), record.workload.map(WorkloadId::index)) {
        ("", Some(workload)) if record.caller.is_none() => ["ide said", "ci said"][workload],
        ("", Some(workload)) => ["ide proven", "ci proven"][workload],
        (code, _) => code,
    }
}

/// Where a header alone says who calls.
fn who(fields: &[(&str, &str)]) -> &'static str {
    let asked = asked(&mut World::new(two_workloads()), fields);
    if let policy::exchange::Verdict::Refuse(refusal) = &asked.verdict
        && let Refusal::IdentityRepeated { header } | Refusal::WorkloadNotRegistered { header } =
            &**refusal
    {
        assert_eq!(header, IDENTITY);
    }
    known(&asked)
}

#[test]
fn a_registered_name_is_known_in_any_case_of_the_header_and_with_blanks_around_it() {
    assert_eq!(who(&[("x-workload-app", "ide")]), "ide said");
    assert_eq!(who(&[("X-Workload-App", "\t ci ")]), "ci said");
    // What `connection` names still identifies.
    let named = [("connection", "x-workload-app"), ("x-workload-app", "ide")];
    assert_eq!(who(&named), "ide said");
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
        assert_eq!(who(&[("x-workload-app", value)]), UNKNOWN, "{value:?}");
    }
    assert_eq!(who(&[]), UNKNOWN);
    for name in [
        "x-workload_app",
        "x_workload_app",
        "x-workload-apps",
        "x-workload",
    ] {
        assert_eq!(who(&[(name, "ide")]), UNKNOWN, "{name}");
    }
    // A name that only looks like the header's makes no second value either.
    let both = [("x-workload_app", "ci"), ("x-workload-app", "ide")];
    assert_eq!(who(&both), "ide said");
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
        assert_eq!(who(fields), "identity_repeated", "{fields:?}");
    }
}

fn by_default() -> Source {
    Source::Header(HeaderSource {
        default: Some(WorkloadId(1)),
        ..HeaderSource::default()
    })
}

#[test]
fn a_default_stands_in_for_a_missing_header_and_for_nothing_else() {
    let mut s = two_workloads();
    s.identity.sources = vec![by_default()];
    let of = Arc::new(Revision::first(s));
    let who = |fields: &[(&str, &str)]| known(&asked(&mut world(&of), fields));
    assert_eq!(who(&[]), "ci said");
    assert_eq!(who(&[(IDENTITY, "ide")]), "ide said");
    for value in ["guest", ""] {
        assert_eq!(who(&[(IDENTITY, value)]), UNKNOWN);
    }
}

#[test]
fn a_header_names_the_user_where_it_is_asked_for_and_its_peer_is_believed() {
    let network = Network::new(IpAddr::from([10, 0, 0, 0]), 8).expect("a network");
    let believed = |names_user| {
        let mut s = two_workloads();
        s.identity.user_header = Some("x-user".into());
        s.identity.sources = vec![Source::Header(HeaderSource {
            default: Some(WorkloadId(1)),
            names_user,
            from: Trusted::Peers {
                networks: vec![network],
                certificates: Vec::new(),
            },
        })];
        Arc::new(Revision::first(s))
    };
    let of = believed(true);
    let inside = peer([10, 0, 0, 1], &[]);
    let user = |fields: &[(&str, &str)]| {
        let asked = from(&inside, fields, &of);
        let caller = asked.record().caller.clone();
        let user = caller.map(|caller| {
            let user = caller.user.as_deref().unwrap_or_default();
            format!("{} {user}", caller.workload)
        });
        match asked.code() {
            "" => user.unwrap_or_default(),
            code => code.to_owned(),
        }
    };
    assert_eq!(user(&[(IDENTITY, "ide"), ("X-User", "ada")]), "ide ada");
    assert_eq!(user(&[("x-user", "a@b.example")]), "ci a@b.example");
    assert_eq!(user(&[("x-user", "")]), "");
    assert_eq!(user(&[]), "");
    assert_eq!(user(&[(IDENTITY, "guest"), ("x-user", "ada")]), UNKNOWN);
    let twice = [("x-user", "ada"), ("x-user", "ada")];
    assert_eq!(user(&twice), "identity_repeated");
    assert_eq!(user(&[("x-user", "ada,bob")]), "identity_repeated");
    let (most, more) = ("x".repeat(256), "x".repeat(257));
    assert_eq!(user(&[("x-user", &most)]), format!("ci {most}"));
    for bad in [&more, "a\u{200b}da", "\u{202e}ada"] {
        assert_eq!(user(&[("x-user", bad)]), "user_unreadable", "{bad:?}");
    }
    let outside = from(&outside(), &[("x-user", "ada")], &of);
    assert_eq!(outside.code(), UNKNOWN);
    let asked = from(&inside, &[("x-user", "ada")], &believed(false));
    assert_eq!(known(&asked), "ci said");
}

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

/// Somebody whom nothing is believed of, by address.
fn outside() -> Peer {
    peer([192, 0, 2, 1], &[])
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
            names_user: false,
            from: Trusted::Peers {
                networks: vec![network],
                certificates: vec!["spiffe://a/proxy".into()],
            },
        }),
    ];
    s
}

fn from(peer: &Peer, fields: &[(&str, &str)], of: &Arc<Revision>) -> Asked {
    let mut world = world(of);
    world.peer = peer.clone();
    asked(&mut world, fields)
}

#[test]
fn the_first_source_that_something_is_brought_for_decides() {
    // Whom it comes from, what it brings, who it is. What is brought and not good is not passed on; a header can
    // contradict what is proven and never replace it.
    let cases = [
        ("outside", "authorization: Bearer key-ide", "ide proven"),
        ("outside", "x-api-key: key-ci", "ci proven"),
        ("outside", "api-key: key-ci", "ci proven"),
        ("outside", "authorization: bearer key-ide", "ide proven"),
        ("mesh", "", "ide proven"),
        ("mesh", "authorization: Bearer key-ci", "ci proven"),
        ("x spiffe://a/ci", "", "ci proven"),
        ("proxy", "NAMED", "ci said"),
        ("spiffe://a/proxy", "NAMED", "ci said"),
        ("proxy", "authorization: Bearer sk-unused, NAMED", "ci said"),
        ("outside", "", "credential_missing"),
        ("outside", "NAMED", "credential_missing"),
        ("outside", "authorization: Bearer sk-unknown", BAD),
        ("outside", "authorization: Basic a2V5LWlkZQ==", BAD),
        ("outside", "authorization: key-ide", BAD),
        ("outside", "authorization: Bearer", BAD),
        ("outside", "authorization: Bearer ", BAD),
        ("outside", "authorization: Bearer key-ide key-ide", BAD),
        ("outside", "authorization: Bearer\tkey-ide", BAD),
        ("outside", "authorization: Bearer key-nobody", UNKNOWN),
        ("proxy", "x-workload-app: nobody", UNKNOWN),
        ("proxy", "authorization: Bearer key-bad, NAMED", BAD),
        ("mesh", "authorization: Bearer key-bad", BAD),
        ("proxy", "KEY, x-workload-app: ide", "ide proven"),
        ("proxy", "KEY, x-workload-app: nobody", CONTRADICTED),
        ("proxy", "KEY, x-workload-app: ", CONTRADICTED),
        ("proxy", "KEY, NAMED", CONTRADICTED),
        ("proxy", "KEY, NAMED, NAMED", "identity_repeated"),
    ];
    let of = Arc::new(Revision::first(of_three()));
    for (whom, brings, expected) in cases {
        let peer = match whom {
            "outside" => outside(),
            "proxy" => peer([10, 1, 2, 3], &[]),
            "mesh" => peer([192, 0, 2, 1], &["spiffe://a/ide/1"]),
            names => peer([192, 0, 2, 1], &names.split(' ').collect::<Vec<_>>()),
        };
        let brings = brings.replace("NAMED", "x-workload-app: ci");
        let brings = brings.replace("KEY", "authorization: Bearer key-ide");
        let fields = brings
            .split(", ")
            .filter_map(|field| field.split_once(": "));
        let asked = from(&peer, &fields.collect::<Vec<_>>(), &of);
        assert_eq!(known(&asked), expected, "{brings:?} from {whom}");
    }
}

#[test]
fn a_default_is_for_who_brings_nothing_wherever_it_stands() {
    for place in [0, 3] {
        let mut s = of_three();
        s.identity.sources.insert(place, by_default());
        let of = Arc::new(Revision::first(s));
        let who = |fields: &[(&str, &str)]| known(&from(&outside(), fields, &of));
        assert_eq!(who(&[]), "ci said");
        assert_eq!(who(&[(AUTH, "Bearer key-ide")]), "ide proven");
        for value in ["Bearer sk-unknown", "Basic a2V5", "Bearer key-bad"] {
            assert_eq!(who(&[(AUTH, value)]), BAD, "at {place}");
        }
    }
}

#[test]
fn the_log_says_what_was_brought_and_does_not_count() {
    let of = Arc::new(Revision::first(of_three()));
    let mesh = peer([192, 0, 2, 1], &["spiffe://b/x"]);
    let ci = (IDENTITY, "ci");
    let contradicts = [(AUTH, "Bearer key-ide"), ci];
    for (peer, fields, says) in [
        (&mesh, &[][..], "spiffe://b/x"),
        (&outside(), &[ci], "not believed from 192.0.2.1"),
        (&outside(), &contradicts, "\"ci\", and \"ide\" is proven"),
    ] {
        let refused = from(peer, fields, &of);
        let reason = refused.record().reason.as_deref().unwrap_or_default();
        assert!(reason.contains(says), "{reason}");
        assert!(!refused.says().1.contains(says), "for the log alone");
    }
    assert_eq!(from(&outside(), &[], &of).record().reason, None);
}

#[test]
fn the_user_of_a_certificate_known_by_the_beginning_of_a_name_is_that_name() {
    let mesh = peer([192, 0, 2, 1], &["spiffe://a/ide/7"]);
    let found = from(&mesh, &[], &Arc::new(Revision::first(of_three())));
    let caller = found.record().caller.as_ref().expect("a caller");
    assert_eq!(caller.user.as_deref(), Some("spiffe://a/ide/7"));
}

#[test]
fn a_certificate_that_has_ended_proves_nothing_and_is_no_reason_to_believe_a_header() {
    let of = Arc::new(Revision::first(of_three()));
    for (name, fields) in [
        ("spiffe://a/ci", &[][..]),
        ("spiffe://a/proxy", &[(IDENTITY, "ci")]),
    ] {
        for (later, is_known) in [(0, true), (1, false)] {
            let mut world = world(&of);
            world.peer = peer([192, 0, 2, 1], &[name]);
            world.unix_ms += later * 1000;
            assert_eq!(asked(&mut world, fields).code().is_empty(), is_known);
        }
    }
}

#[test]
fn past_a_bound_bad_credentials_are_not_looked_at_and_known_ones_are_taken() {
    // Also where they are known by a source that is not the first.
    let mut second = of_three();
    let first = Source::Credential(Arc::new(Elsewhere));
    second.identity.sources.insert(0, first);
    for s in [of_three(), second] {
        let mut world = world(&Arc::new(Revision::first(s)));
        let mut said = |token: &str, address| {
            world.peer = peer(address, &[]);
            asked(&mut world, &[(AUTH, &format!("Bearer {token}"))]).code()
        };
        let here = [192, 0, 2, 1];
        assert_eq!(said("key-ide", here), "");
        for n in 0..100 {
            assert_eq!(said("key-bad", here), BAD, "{n}");
        }
        let too_many = "too_many_bad_credentials";
        assert_eq!(said("key-bad", here), too_many);
        assert_eq!(said("key-ci", here), too_many, "not proven yet");
        assert_eq!(said("key-ide", here), "", "proven before");
        assert_eq!(said("key-ci", [192, 0, 2, 2]), "", "another address");
        // Its proof has ended, and that it was proven once is known.
        world.unix_ms += 11_000;
        world.peer = outside();
        while asked(&mut world, &[(AUTH, "Bearer key-bad")]).code() != too_many {}
        let known = asked(&mut world, &[(AUTH, "Bearer key-ide")]).code();
        let unknown = asked(&mut world, &[(AUTH, "Bearer key-new")]).code();
        assert_eq!((known, unknown), ("", too_many));
    }
}
