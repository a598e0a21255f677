//! Which messages pass, for Harmony models and for others.

use super::*;

fn check(harmony: bool, text: &str) -> Result<ParsedMessages, String> {
    let parsed: Vec<Message> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    messages(parsed, harmony).map_err(|e| format!("{e:?}"))
}

#[test]
fn good_messages_pass() {
    for good in [
        r#"[{"role":"user","content":"hi"}]"#,
        r#"[{"role":"developer","content":"d"},{"role":"system","content":[{"type":"text","text":"s"}]}]"#,
        r#"[{"role":"assistant","content":null,
             "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"c","content":"42"}]"#,
    ] {
        assert!(check(true, good).is_ok(), "{good}");
    }
}

#[test]
fn bad_messages_are_refused() {
    for bad in [
        "[]",
        r#"[{"role":"user"}]"#,
        r#"[{"role":"user","content":null}]"#,
        r#"[{"role":"user","content":5}]"#,
        r#"[{"role":1,"content":"x"}]"#,
        r#"[{"content":"x"}]"#,
        r#"[{"role":"robot","content":"x"}]"#,
        r#"[{"role":"assistant","content":null}]"#,
        r#"[{"role":"tool","content":"42"}]"#,
        r#"[{"role":"user","content":[{"type":"smell"}]}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":5}]}]"#,
        r#"[{"role":"user","content":[{"text":"untyped"}]}]"#,
        r#"[{"role":"assistant","tool_calls":[{"id":"c"}]}]"#,
    ] {
        assert!(check(false, bad).is_err(), "{bad}");
        assert!(check(true, bad).is_err(), "{bad}");
    }
}

#[test]
fn a_function_message_and_an_image_are_refused_by_harmony_only() {
    for one in [
        r#"[{"role":"function","name":"f","content":"42"}]"#,
        r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]"#,
    ] {
        assert!(check(true, one).is_err(), "{one}");
        assert!(check(false, one).is_ok(), "{one}");
    }
}

#[test]
fn parts_join_and_reasoning_has_two_names() {
    let text = r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        {"role":"assistant","reasoning_content":"r","content":"c"},{"role":"assistant","reasoning":"r"}]"#;
    let parsed = check(true, text).unwrap();
    assert_eq!(parsed.messages[0].text.as_deref(), Some("ab"));
    assert_eq!(parsed.messages[1].reasoning, parsed.messages[2].reasoning);
}

#[test]
fn texts_of_one_message_are_lines_for_a_template_and_touch_in_harmony() {
    let parts = r#"[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a"},
        {"type":"text","text":""},{"type":"text","text":"b"},{"type":"text","text":""}]}]"#;
    for (harmony, text) in [(false, "a\nb"), (true, "ab")] {
        let parsed = check(harmony, parts).expect("good messages");
        assert_eq!(parsed.messages[0].text.as_deref(), Some(text));
    }
}
