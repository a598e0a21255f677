//! Each form against the requests of the corpus.

use serde_json::Value;

use super::*;
use crate::build::tests::{built, numbered};

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn last_message(body: &[u8]) -> Result<String, String> {
    let body: Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let messages = body["messages"].as_array().ok_or("no messages")?;
    Ok(messages
        .last()
        .map_or(String::new(), |m| m["content"].to_string()))
}

#[test]
fn the_three_forms_have_every_request() {
    let (temp, corpus) = built(&numbered(3));
    let out = |name: &str| temp.path().join(name);
    let turns: Vec<Value> = corpus
        .sessions()
        .flat_map(|session| session.turns())
        .map(|turn| serde_json::from_slice(&turn.parts().concat()).unwrap())
        .collect();

    let done = export(&corpus, Format::Paper, &out("paper"), &last_message).unwrap();
    let paper = lines(&out("paper").join("chat.jsonl"));
    assert_eq!((done.files, done.requests), (1, turns.len() as u64));
    assert_eq!(
        paper
            .iter()
            .map(|l| l["payload"].clone())
            .collect::<Vec<_>>(),
        turns
    );
    assert_eq!(paper[1]["session"], "s0");
    assert_eq!(
        (&paper[1]["turn"], &paper[1]["profile"]),
        (&1.into(), &"chat".into())
    );
    assert_eq!(
        (&paper[0]["think_ms"], &paper[1]["think_ms"]),
        (&Value::Null, &1500.0.into())
    );

    let done = export(&corpus, Format::AiPerf, &out("aiperf"), &last_message).unwrap();
    assert_eq!((done.files, done.requests), (3, turns.len() as u64));
    let second = lines(&out("aiperf").join("chat-0000001.jsonl"));
    assert_eq!(second, turns[second.len()..2 * second.len()]);

    export(&corpus, Format::Vllm, &out("vllm"), &last_message).unwrap();
    let custom = lines(&out("vllm").join("chat.jsonl"));
    assert_eq!(custom.len(), turns.len());
    assert!(
        custom
            .iter()
            .all(|l| l["prompt"].is_string() && l["output_tokens"].as_u64() >= Some(1))
    );

    let error = export(&corpus, Format::Vllm, &out("vllm"), &last_message).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    let refuse = |_: &[u8]| Err("no prompt".to_owned());
    assert!(export(&corpus, Format::Vllm, &out("refused"), &refuse).is_err());
}
