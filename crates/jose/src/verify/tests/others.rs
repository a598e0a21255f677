//! Tokens that other implementations signed (`vectors/jose/others.txt`), and what is left out of their keys.

use crate::claims::Path;
use crate::fixture::{keys, outcome, sections};

#[test]
fn tokens_of_other_implementations_are_good_and_say_what_they_were_given() {
    let keys = keys();
    assert_eq!((keys.len(), keys.left_out()), (7, [].as_slice()));
    let (_, expected) = sections().find(|(title, _)| *title == "claims").unwrap();
    let expected: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(expected).unwrap();
    let mut seen = 0;
    for (title, token) in sections().skip(2) {
        let claims = outcome(token.trim_end()).unwrap_or_else(|why| panic!("{title}: {why}"));
        assert_eq!(claims.all(), &expected, "{title}");
        let account = Path::members(["kubernetes.io", "serviceaccount", "name"]);
        assert_eq!(claims.text(&account), Some("sä"));
        seen += 1;
    }
    assert_eq!(seen, 25);
}
