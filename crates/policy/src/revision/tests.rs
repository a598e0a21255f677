//! How versions count on.

use super::*;
use crate::credential::UpstreamAuth;
use crate::fixture::{ONE, RoutePlan, snapshot};
use crate::secret::Secret;

fn configured(hash: &str, key: &str) -> Snapshot {
    let mut s = snapshot(&[RoutePlan {
        workloads: &["w"],
        backends: &[ONE],
        ..RoutePlan::default()
    }]);
    s.version = format!("{hash}-1").into();
    s.endpoints[0].auth = UpstreamAuth::Header {
        name: "authorization".to_owned(),
        value: Secret::new(key.as_bytes().to_vec()),
    };
    s
}

#[test]
fn a_version_counts_the_changes_of_the_document_and_of_secrets_alone() {
    let mut revision = Revision::first(configured("aa", "one"));
    for (hash, key, version) in [
        ("aa", "one", "aa-1"),
        ("aa", "two", "aa-2"),
        ("bb", "two", "bb-3"),
        ("bb", "two", "bb-3"),
        ("aa", "one", "aa-4"),
    ] {
        revision = revision.next(configured(hash, key), Mono(0));
        assert_eq!(*revision.snapshot.version, *version);
    }
}

#[test]
fn another_content_of_a_file_that_the_document_refers_to_is_a_change() {
    let of = |content: &str| Snapshot {
        contents: Some(Secret::new(content.as_bytes().to_vec())),
        ..configured("aa", "one")
    };
    let mut revision = Revision::first(of("one"));
    for (content, version) in [("one", "aa-1"), ("two", "aa-2"), ("two", "aa-2")] {
        revision = revision.next(of(content), Mono(0));
        assert_eq!(*revision.snapshot.version, *version);
    }
    assert!(!format!("{:?}", revision.snapshot).contains("two"));
}
