//! What two prompts share, and what they do not.

use bytes::Bytes;
use testing::{Draw, seed};

use super::{BLOCKS_MAX, Prompt};

fn prompt(body: &str) -> Prompt {
    Prompt::of(&[Bytes::copy_from_slice(body.as_bytes())]).expect("a prompt")
}

/// Bytes of the blocks with which both begin.
fn shared(one: &str, other: &str) -> u64 {
    let (one, other) = (prompt(one), prompt(other));
    let pairs = one.blocks().iter().zip(other.blocks());
    let same = pairs.take_while(|(one, other)| one == other).count();
    one.bytes_of(same)
}

fn words(bytes: usize) -> String {
    "lorem ipsum ".chars().cycle().take(bytes).collect()
}

#[test]
fn a_longer_conversation_shares_all_whole_blocks_of_the_one_before() {
    let first = words(3000);
    let before = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{first}"}}]}}"#);
    let after = format!(
        r#"{{"stream":true,"messages":[{{"role":"user","content":"{first}"}},{{"role":"assistant","content":"yes"}}],"model":"m","temperature":0.5}}"#
    );
    let whole = prompt(&before).bytes();
    assert_eq!(
        whole,
        3000 + r#"[{"role":"user","content":""}]"#.len() as u64
    );
    assert_eq!(shared(&before, &after), whole / 256 * 256);
}

#[test]
fn what_differs_at_the_beginning_of_the_rendered_prompt_leaves_nothing_shared() {
    let text = words(2000);
    let call = |rest: &str| format!(r#"{{"messages":[{{"content":"{text}"}}]{rest}}}"#);
    let plain = call("");
    for rest in [
        r#","model":"n""#,
        r#","tools":[{"type":"function"}]"#,
        r#","system":"be brief""#,
        r#","reasoning_effort":"high""#,
        r#","cache_salt":"tenant""#,
    ] {
        assert_eq!(shared(&plain, &call(rest)), 0, "{rest}");
        assert!(shared(&call(rest), &call(rest)) > 0, "{rest}");
    }
    for rest in [r#","max_tokens":7"#, r#","seed":1"#, r#","user":"ada""#] {
        assert!(shared(&plain, &call(rest)) > 1500, "{rest}");
    }
}

#[test]
fn tools_that_stand_behind_the_messages_come_first() {
    let (text, tools) = (words(1000), words(1000));
    let call = |nth: u32| {
        format!(r#"{{"messages":[{{"content":"{nth}{text}"}}],"tools":[{{"name":"{tools}"}}]}}"#)
    };
    // The tools, whole, and nothing of the messages.
    let tools_bytes = format!(r#"[{{"name":"{tools}"}}]"#).len() as u64;
    assert_eq!(shared(&call(1), &call(2)), tools_bytes);
}

#[test]
fn a_body_in_pieces_gives_the_same_chain() {
    let draw = &mut Draw::new(seed("a_body_in_pieces_gives_the_same_chain"));
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, words(5000));
    let whole = prompt(&body);
    for _ in 0..50 {
        let mut pieces = Vec::new();
        let mut rest = body.as_bytes();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + draw.below(rest.len()));
            pieces.push(Bytes::copy_from_slice(piece));
            rest = after;
        }
        assert_eq!(Prompt::of(&pieces).as_ref(), Some(&whole));
    }
}

#[test]
fn a_chain_has_an_end_however_long_the_prompt() {
    let body = format!(r#"{{"prompt":"{}"}}"#, words(5 << 20));
    let prompt = prompt(&body);
    assert_eq!(prompt.blocks().len(), BLOCKS_MAX);
    assert_eq!(prompt.bytes(), 256 * 256 + (BLOCKS_MAX as u64 - 256) * 2048);
}

#[test]
fn what_is_no_call_with_a_prompt_has_none() {
    for body in ["", "[]", "{", r#"{"model":"m"}"#, "plain text"] {
        assert_eq!(Prompt::of(&[Bytes::from(body)]), None, "{body}");
    }
    assert_eq!(Prompt::of(&[]), None);
}
