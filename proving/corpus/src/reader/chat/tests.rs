//! Messages in the API's form, and times.

use super::*;
use crate::json::parse;

fn json(text: &str) -> Json {
    parse(text.as_bytes(), &mut Default::default()).unwrap()
}

#[test]
fn members_that_are_null_are_as_those_that_are_not_there() {
    let mut tally = Tally::default();
    let padded = r#"{"role":"user","content":"a","name":null,"tool_calls":null,"tool_call_id":null,"function_call":null}"#;
    let bare = message(json(r#"{"role":"user","content":"a"}"#), &mut tally).unwrap();
    assert_eq!(message(json(padded), &mut tally).unwrap(), bare);
    assert_eq!(tally, Tally::default());
}

#[test]
fn times_are_read_in_the_forms_that_logs_have() {
    for text in [
        "\"2026-02-03T10:00:00.250Z\"",
        "\"2026-02-03T11:00:00.250+01:00\"",
        "\"2026-02-03T10:00:00.25\"",
        "\"2026-02-03 10:00:00.250\"",
        "1770112800.25",
        "1770112800250",
    ] {
        assert_eq!(seconds(&json(text)), Some(1_770_112_800.25), "{text}");
    }
    assert_eq!(seconds(&json("\"yesterday\"")), None);
    assert_eq!(between(5.0, 4.0), None);
    assert_eq!(between(f64::NAN, 4.0), None);
    assert_eq!(between(0.0, 1e12), None);
    assert_eq!(between(1.5, 4.0), Some(Duration::from_millis(2_500)));
}

#[test]
fn neighbours_of_the_assistant_are_two_decisions_without_a_pause_between() {
    let mut tally = Tally::default();
    let all = json(
        r#"[{"role":"user","content":"a","timestamp":1},{"role":"assistant","content":"thought","timestamp":2},
            {"role":"assistant","content":"act","timestamp":9},{"role":"user","content":"b","timestamp":10},
            {"role":"assistant","content":"c"}]"#,
    );
    let (messages, times) = messages(all, &mut tally).unwrap();
    let session = linear("s".to_owned(), Vec::new(), messages, &times).unwrap();
    let told: Vec<_> = session
        .decisions
        .iter()
        .map(|d| (d.prompt.len(), d.think))
        .collect();
    assert_eq!(
        told,
        [(1, None), (2, None), (4, Some(Duration::from_secs(1)))]
    );
}
