//! What is sealed for a caller who is asked for as himself alone: of two whom nobody tells apart but by their tokens, none uses what is the
//! other's.
//!
//! Not here: sealing (unit tests of `mcp`), to whom tokens go (`own_tokens`), which are given for others (`exchanged`).

use serde_json::{Value, json};

use super::modern::{meta, modern_reply};
use super::own_tokens::{bringing, personal};
use super::tasks::{knows, making};
use super::{Caller, Told, config, initialize, server, url};
use crate::harness::{Gate, Step, Upstream, answer};

const HERS: &str = "x-one-token: hers";
const HIS: &str = "x-one-token: his";

/// A gate whose workload `ide` many people share: `one` takes their own tokens, and `two` takes none.
fn gate(one: &Upstream, two: &Upstream) -> Gate {
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ inline: shared }} }}\n    two: {{ url: \"{}\" }}",
        url(one),
        url(two)
    );
    let routes = "    - { workload: ide, own_tokens: { one: x-one-token } }";
    Gate::start(&config(&servers, routes), &[])
}

/// A message of a client with a session beside these headers.
fn sent(caller: &Caller<'_>, fields: &[&str], method: &str, params: &Value) -> Told {
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    caller.send("POST", fields, message.to_string().as_bytes())
}

#[test]
fn a_session_that_was_begun_with_a_token_is_worth_nothing_beside_another_or_none() {
    let (one, two) = (personal(), server("two"));
    let gate = gate(&one, &two);
    let begun = |fields: &[&str]| {
        let mut caller = Caller::new(&gate, "ide");
        let told = sent(&caller, fields, "initialize", &initialize());
        assert_eq!(told.status, 200, "{}", told.body);
        caller.session = told.session;
        caller
    };
    let tools = |caller: &Caller<'_>, fields: &[&str]| {
        let told = sent(caller, fields, "tools/call", &json!({"name": "two__read"}));
        let code = told.body["error"]["data"]["code"].as_str();
        (told.status, code.unwrap_or_default().to_owned())
    };
    let (good, none) = (
        (200, String::new()),
        (404, "mcp_session_not_found".to_owned()),
    );
    let (hers, shared) = (begun(&[HERS]), begun(&[]));
    assert_eq!(tools(&hers, &[HERS]), good);
    assert_eq!(tools(&shared, &[]), good);
    let before = (one.count(), two.count());
    for (session, fields) in [(&hers, &[HIS][..]), (&hers, &[]), (&shared, &[HIS])] {
        assert_eq!(tools(session, fields), none, "{fields:?}");
    }
    for method in ["GET", "DELETE"] {
        let told = hers.send(method, &[HIS], b"");
        assert_eq!(told.status, 404, "{method}");
    }
    assert_eq!((one.count(), two.count()), before, "nothing was sent");
    assert_eq!(tools(&hers, &[HERS]), good, "it is hers as before");
}

/// A server without sessions that asks something before it answers.
fn asking() -> Upstream {
    Upstream::start(|_, seen| {
        let message = match seen.body.is_empty() {
            true => json!({}),
            false => seen.json(),
        };
        let params = &message["params"];
        if message["method"] == "tools/call" && params["requestState"].is_null() {
            let result = json!({"resultType": "input_required", "requestState": "step 2", "inputRequests": {}});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            return vec![Step::Send(answer::json(200, &body.to_string()))];
        }
        vec![Step::Send(modern_reply("one", seen))]
    })
}

#[test]
fn a_state_that_was_given_beside_a_token_is_worth_nothing_beside_another() {
    let (one, two) = (asking(), asking());
    let gate = gate(&one, &two);
    let ide = Caller::new(&gate, "ide");
    let state = |tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        let told = bringing(&ide, &[HERS], "tools/call", &params);
        let state = told.body["result"]["requestState"].as_str();
        state.unwrap_or_else(|| panic!("{}", told.body)).to_owned()
    };
    let again = |tool: &str, state: &str, fields: &[&str]| {
        let params = json!({"name": tool, "arguments": {}, "requestState": state});
        let told = bringing(&ide, fields, "tools/call", &params);
        match told.body["error"]["data"]["code"].as_str() {
            Some(code) => code.to_owned(),
            None => told.body["result"]["state"].to_string(),
        }
    };
    let good = "\"step 2\"";
    let hers = state("one__read");
    assert_eq!(again("one__read", &hers, &[HERS]), good);
    for other in [&[HIS][..], &[]] {
        assert_eq!(again("one__read", &hers, other), "mcp_state_invalid");
    }
    // What another server gave has nothing to do with the token.
    let of_two = state("two__read");
    for fields in [&[HERS][..], &[HIS], &[]] {
        assert_eq!(again("two__read", &of_two, fields), good, "{fields:?}");
    }
}

#[test]
fn a_task_that_was_made_beside_a_token_is_nobodys_beside_another() {
    let (one, two) = (making(), making());
    let gate = gate(&one, &two);
    let ide = Caller::new(&gate, "ide");
    let made = |tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        let told = with_tasks(&ide, &[HERS], "tools/call", &params);
        let task = told.body["result"]["taskId"].as_str();
        task.unwrap_or_else(|| panic!("{}", told.body)).to_owned()
    };
    let asked = |task: &str, fields: &[&str]| {
        let named = format!("mcp-name: {task}");
        let fields: Vec<&str> = [&[&*named][..], fields].concat();
        let told = with_tasks(&ide, &fields, "tasks/get", &json!({"taskId": task}));
        match told.body["error"]["data"]["code"].as_str() {
            Some(code) => code.to_owned(),
            None => told.body["result"]["status"].to_string(),
        }
    };
    let (hers, of_two) = (made("one__read"), made("two__read"));
    assert_eq!(asked(&hers, &[HERS]), "\"completed\"");
    for other in [&[HIS][..], &[]] {
        assert_eq!(asked(&hers, other), "mcp_not_found");
    }
    for fields in [&[HERS][..], &[HIS], &[]] {
        assert_eq!(asked(&of_two, fields), "\"completed\"", "{fields:?}");
    }
}

/// A request of a client without a session that knows tasks.
fn with_tasks(caller: &Caller<'_>, fields: &[&str], method: &str, params: &Value) -> Told {
    let mut params = params.clone();
    params["_meta"] = meta(&knows());
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let own = super::modern::headers(method, &params);
    let own = own.iter().map(String::as_str).chain(fields.iter().copied());
    caller.send(
        "POST",
        &own.collect::<Vec<&str>>(),
        message.to_string().as_bytes(),
    )
}
