//! Order is kept, the last of two equal members counts, and typed requests are read.

use serde::Deserialize;

use super::*;

fn read(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

#[test]
fn members_keep_their_order() {
    let text = r#"{"z":1,"a":{"y":[true,null,-1.5,"é"],"b":2}}"#;
    assert_eq!(read(text).to_string(), text);
}

#[test]
fn of_two_equal_members_the_last_counts_at_the_first_ones_place() {
    assert_eq!(
        read(r#"{"a":1,"b":2,"a":3}"#).to_string(),
        r#"{"a":3,"b":2}"#
    );
}

#[test]
fn a_typed_request_is_read_out_of_it() {
    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct Typed {
        kind: Kind,
        #[serde(default)]
        missing: Option<u64>,
        null: Option<u64>,
        tools: Vec<Json>,
        #[serde(flatten)]
        more: More,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct More {
        n: i64,
    }
    let typed: Typed =
        read(r#"{"n":-2,"kind":"one","null":null,"tools":[{"b":1,"a":2}],"unknown":[]}"#)
            .into_typed()
            .unwrap();
    assert_eq!(
        (typed.kind, typed.missing, typed.null, typed.more.n),
        (Kind::One, None, None, -2)
    );
    assert_eq!(typed.tools[0].to_string(), r#"{"b":1,"a":2}"#);
    assert!(read(r#"{"n":"2"}"#).into_typed::<More>().is_err());
}

#[test]
fn a_body_that_is_too_deep_is_refused_and_not_overflowed() {
    let deep = "[".repeat(100_000);
    assert!(serde_json::from_str::<Json>(&deep).is_err());
}
