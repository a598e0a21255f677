//! Messages to a Harmony model as vLLM 0.32.0 reads them: what differs from a chat, and what is left out.

use crate::config::EngineConfig;
use crate::json::Json;
use crate::messages::Asking;
use crate::model::Model;

/// What stands behind the system message of the prompt.
fn shown(body: &str) -> Result<String, String> {
    let config = EngineConfig::default();
    let model = Model::all(&config, "2025-06-28").unwrap().pop().unwrap();
    let body: Json = serde_json::from_str(body).unwrap();
    let asking: Asking = body.into_typed().unwrap();
    let asked = asking
        .asked(&model)
        .map_err(|refusal| refusal.message().to_owned())?;
    let text = model.tokenizer().decode(&asked.prompt).unwrap();
    let (_, behind) = text.split_once("<|end|>").unwrap();
    let behind = behind.strip_suffix("<|start|>assistant").unwrap();
    Ok(behind.to_owned())
}

const INSTRUCTIONS: &str = "<|start|>developer<|message|># Instructions\n\n";

#[test]
fn system_texts_within_the_conversation_join_the_first_without_what_bills() {
    let text = shown(
        r#"{"system": [{"type": "text", "text": "x-anthropic-billing-header: 1\nall"}, {"type": "text", "text": "be"}],
            "messages": [{"role": "user", "content": "a"}, {"role": "system", "content": " brief"},
            {"role": "system", "content": "x-anthropic-billing-header: 2\nall"}, {"role": "user", "content": "b"}]}"#,
    );
    let users = "<|start|>user<|message|>a<|end|><|start|>user<|message|>b<|end|>";
    assert_eq!(
        text.unwrap(),
        format!("{INSTRUCTIONS}be brief<|end|>{users}")
    );
}

#[test]
fn a_tools_use_is_written_as_python_writes_json_and_its_result_as_lines() {
    let text = shown(
        r#"{"messages": [
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "So"},
                {"type": "tool_use", "id": "c", "name": "look", "input": {"at": [1, "é"], "b": {}}}]},
            {"role": "user", "content": [{"type": "text", "text": "go"}, {"type": "tool_result", "tool_use_id": "c",
                "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}]}]}"#,
    );
    let wanted = concat!(
        "<|start|>assistant<|channel|>commentary<|message|>So<|end|>",
        "<|start|>assistant<|channel|>analysis<|message|>t<|end|>",
        "<|start|>assistant to=functions.look<|channel|>commentary json<|message|>",
        "{\"at\": [1, \"\\u00e9\"], \"b\": {}}<|call|>",
        "<|start|>functions.look<|channel|>commentary to=assistant<|message|>x\ny<|end|>",
        "<|start|>user<|message|>go<|end|>",
    );
    assert_eq!(text.unwrap(), wanted);
}

#[test]
fn pictures_say_nothing_and_a_message_of_nothing_is_left_out() {
    let text = shown(
        r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]},
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}},
                {"type": "text", "text": "go"}]}]}"#,
    );
    assert_eq!(text.unwrap(), "<|start|>user<|message|>go<|end|>");
    assert!(shown(r#"{"messages": [{"role": "robot", "content": "x"}]}"#).is_err());
}

#[test]
fn thinking_that_is_off_and_an_effort_reach_the_model() {
    let system = |more: &str| {
        let config = EngineConfig::default();
        let model = Model::all(&config, "2025-06-28").unwrap().pop().unwrap();
        let body = format!(r#"{{"messages": [{{"role": "user", "content": "a"}}]{more}}}"#);
        let body: Json = serde_json::from_str(&body).unwrap();
        let asked = body.into_typed::<Asking>().unwrap().asked(&model);
        asked.map(|asked| model.tokenizer().decode(&asked.prompt).unwrap())
    };
    for (more, effort) in [
        ("", "medium"),
        (r#", "output_config": {"effort": "high"}"#, "high"),
        (
            r#", "output_config": {"effort": "high"}, "thinking": {"type": "disabled"}"#,
            "low",
        ),
    ] {
        let text = system(more).unwrap();
        assert!(
            text.contains(&format!("Reasoning: {effort}\n")),
            "{more}: {text}"
        );
    }
    assert!(system(r#", "output_config": {"effort": "max"}"#).is_err());
}
