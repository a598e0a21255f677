//! Which messages pass, for Harmony models and for others.

use super::*;

fn check(harmony: bool, text: &str) -> Result<ParsedMessages, String> {
    let parsed: Vec<Json> = serde_json::from_str(text).map_err(|e| e.to_string())?;
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
        // As vLLM has it: nothing to say is no fault.
        r#"[{"role":"user"},{"role":"user","content":[]},{"role":"user","content":null}]"#,
        r#"[{"role":"assistant","content":null},{"role":"tool","content":null}]"#,
        r#"[{"role":"user","content":["plain",{"type":"thinking","thinking":"t"}]}]"#,
    ] {
        assert!(check(true, good).is_ok(), "{good}");
    }
}

#[test]
fn bad_messages_are_refused() {
    for bad in [
        "[]",
        "[5]",
        r#"[{"role":"user","content":5}]"#,
        r#"[{"role":1,"content":"x"}]"#,
        r#"[{"content":"x"}]"#,
        r#"[{"role":"user","content":[{"type":"smell"}]}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":5}]}]"#,
        r#"[{"role":"user","content":[{"text":"untyped"}]}]"#,
        r#"[{"role":"assistant","tool_calls":[{"id":"c"}]}]"#,
        r#"[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}}]}]"#,
        r#"[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}}]}]"#,
        r#"[{"role":"assistant","tool_calls":5}]"#,
        r#"[{"role":"assistant","reasoning":5}]"#,
    ] {
        assert!(check(false, bad).is_err(), "{bad}");
        assert!(check(true, bad).is_err(), "{bad}");
    }
}

#[test]
fn other_roles_are_refused_by_harmony_only() {
    for one in [
        r#"[{"role":"function","name":"f","content":"42"}]"#,
        r#"[{"role":"robot","content":"x"}]"#,
    ] {
        assert!(check(true, one).is_err(), "{one}");
        assert!(check(false, one).is_ok(), "{one}");
    }
}

#[test]
fn an_image_counts_but_in_harmony() {
    let image = r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]"#;
    assert_eq!(check(true, image).unwrap().media, 0);
    assert_eq!(check(false, image).unwrap().media, 1);
}

#[test]
fn reasoning_has_two_names_and_calls_have_one_order() {
    let text = r#"[{"role":"assistant","reasoning_content":"r","content":"c"},
        {"role":"assistant","reasoning":null,"content":"c","reasoning_content":"r","tool_calls":
        [{"index":0,"type":"function","id":"i","function":{"name":"f","arguments":"{}","x":1}}]}]"#;
    let parsed = check(true, text).unwrap();
    let shown: Vec<String> = parsed.messages.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            r#"{"role":"assistant","reasoning":"r","content":"c"}"#,
            concat!(
                r#"{"role":"assistant","content":"c","reasoning":"r","tool_calls":[{"id":"i","#,
                r#""function":{"arguments":"{}","name":"f","x":1},"type":"function","index":0}]}"#
            ),
        ]
    );
}
