//! The demo's server of tools: three of them, over standard input and output.
//!
//! Not here: who may use them (`document`), the gate's side of it (`tollgate`).

use std::io::{BufRead, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

/// Serves until its input ends.
pub(crate) fn serve(input: impl BufRead, mut output: impl Write) -> ExitCode {
    for line in input.lines() {
        let Ok(line) = line else { break };
        let Some(answer) = answer(&line) else {
            continue;
        };
        if writeln!(output, "{answer}")
            .and_then(|()| output.flush())
            .is_err()
        {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// The answer to a message; none where it asks for none.
fn answer(line: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(line).ok()?;
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "tollgate-demo", "version": env!("CARGO_PKG_VERSION") },
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools() }),
        "tools/call" => called(&message["params"]),
        _ => {
            let error = json!({ "code": -32601, "message": "there is no such method" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn tools() -> Value {
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let numbers = json!({
        "type": "object",
        "properties": { "numbers": { "type": "array", "items": { "type": "number" } } },
        "required": ["numbers"],
    });
    json!([
        { "name": "count_words", "description": "How many words a text has", "inputSchema": text },
        { "name": "reverse", "description": "A text from its end", "inputSchema": text },
        { "name": "sum", "description": "What numbers come to", "inputSchema": numbers },
    ])
}

fn called(params: &Value) -> Value {
    let arguments = &params["arguments"];
    let text = arguments["text"].as_str();
    let said = match params["name"].as_str() {
        Some("count_words") => text.map(|text| text.split_whitespace().count().to_string()),
        Some("reverse") => text.map(|text| text.chars().rev().collect()),
        Some("sum") => arguments["numbers"].as_array().map(|numbers| {
            let sum: f64 = numbers.iter().filter_map(Value::as_f64).sum();
            sum.to_string()
        }),
        _ => None,
    };
    let is_error = said.is_none();
    let text = said
        .unwrap_or_else(|| "there is no such tool, or it was called without what it needs".into());
    json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
}

#[cfg(test)]
mod tests {
    //! What the tools say.

    use serde_json::{Value, json};

    use super::serve;

    #[test]
    fn each_tool_that_is_listed_can_be_called() {
        let call = |name: &str, arguments: Value| {
            json!({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "arguments": arguments}}).to_string()
        };
        let input = [
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
            "no JSON".to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
            call("count_words", json!({"text": "one two  three"})),
            call("reverse", json!({"text": "abc"})),
            call("sum", json!({"numbers": [1, 2.5]})),
            call("none", json!({})),
            r#"{"jsonrpc":"2.0","id":2,"method":"prompts/list"}"#.to_owned(),
        ];
        let mut output = Vec::new();
        let _done = serve(input.join("\n").as_bytes(), &mut output);
        let output = String::from_utf8(output).expect("text");
        let told: Vec<Value> = output
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(told.len(), 7, "{output}");
        assert_eq!(told[0]["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(told[1]["result"]["tools"].as_array().map(Vec::len), Some(3));
        let said: Vec<_> = told[2..6]
            .iter()
            .map(|of| of["result"]["content"][0]["text"].as_str().expect("text"))
            .collect();
        assert_eq!(said[..3], ["3", "cba", "3.5"]);
        assert_eq!(told[5]["result"]["isError"], true);
        assert_eq!(told[6]["error"]["code"], -32601);
    }
}
