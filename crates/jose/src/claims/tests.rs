//! Where claims are found.

use std::sync::Arc;

use serde_json::json;

use super::{Claims, Path};

fn claims() -> Claims {
    let all = json!({
        "sub": "a",
        "count": 1,
        "realm": {"role": "reader", "": "empty", "list": ["x"]},
        "kubernetes.io": {"namespace": "ns"},
        "https://a.example/role": "writer",
    });
    Claims::new(Arc::new(all.as_object().unwrap().clone()), Some(7))
}

#[test]
fn a_path_leads_to_a_text_or_to_nothing() {
    let claims = claims();
    let rows = [
        (Path::dotted("sub"), Some("a")),
        (Path::dotted("realm.role"), Some("reader")),
        (Path::dotted("realm."), Some("empty")),
        (Path::dotted("realm"), None),
        (Path::dotted("realm.list"), None),
        (Path::dotted("realm.list.0"), None),
        (Path::dotted("sub.a"), None),
        (Path::dotted("count"), None),
        (Path::dotted("Sub"), None),
        (Path::dotted(""), None),
        (Path::dotted("kubernetes.io.namespace"), None),
        (Path::members(["kubernetes.io", "namespace"]), Some("ns")),
        (Path::members(["https://a.example/role"]), Some("writer")),
        (Path::members([]), None),
    ];
    for (path, expected) in rows {
        assert_eq!(claims.text(&path), expected, "{path:?}");
    }
    let value = |path| claims.value(&Path::dotted(path)).cloned();
    assert_eq!(value("count"), Some(json!(1)));
    assert_eq!(value("realm.list"), Some(json!(["x"])));
    assert_eq!(value("none"), None);
}

#[test]
fn what_claims_say_is_not_printed() {
    let claims = claims();
    assert_eq!(
        format!("{claims:?}"),
        "Claims { count: 5, expires: Some(7), .. }"
    );
}
