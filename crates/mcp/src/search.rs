//! Two tools in place of many: one finds the tools of a large catalogue by words, the other calls one that was found.
//!
//! A model's prompt has the definitions of all tools that its client lists; of a thousand it uses three. What is found is a part of the list
//! that the client would be told otherwise, and a call of one that was found is a call of that tool.
//! Invariant: the same words find the same tools in the same order; a call names the one tool that is called, and has its arguments as they
//! were written.
//! Not here: who may see and use what (the host asks as for any list and any call).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::json::Kind;

use crate::envelope::{Fault, Value, members, text_of};
use crate::reply::{self, string};

/// The tool that finds tools.
pub const FIND: &str = "tollgate__find_tools";
/// The tool that calls one of them.
pub const CALL: &str = "tollgate__call_tool";
/// Tools that are found unless the call says how many.
const FOUND: usize = 5;
/// Most tools that are found.
const FOUND_MAX: usize = 20;
/// Most bytes of what is told of them; the first is told whatever it takes.
const TOLD_BYTES_MAX: usize = 64 << 10;
/// Most words of a query.
const WORDS_MAX: usize = 32;
/// As much of a tool's description is looked through.
const LOOKED_BYTES_MAX: usize = 4 << 10;
/// From so many letters on, a word stands for those that begin with it.
const STEM: usize = 3;
/// A word in a tool's name says more than one in its description.
const IN_NAME: u64 = 4;

/// What a client is told of the tools in their place.
#[must_use]
pub fn listed() -> Vec<u8> {
    format!(
        r#"{{"tools":[{{"name":"{FIND}","description":"Finds tools by what they do. Describe the task in a few words; the answer has the tools that fit best, with their input schemas. Call one with {CALL}.","inputSchema":{{"type":"object","properties":{{"query":{{"type":"string","description":"what the tool should do, or its name"}},"limit":{{"type":"integer","minimum":1,"maximum":{FOUND_MAX},"description":"how many; {FOUND} unless said"}}}},"required":["query"]}},"annotations":{{"readOnlyHint":true}}}},{{"name":"{CALL}","description":"Calls a tool that {FIND} has found.","inputSchema":{{"type":"object","properties":{{"name":{{"type":"string","description":"the name of the tool"}},"arguments":{{"type":"object","description":"its arguments, by its input schema"}}}},"required":["name"]}}}}]}}"#
    )
    .into_bytes()
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    words: BTreeSet<String>,
    limit: usize,
}

impl Query {
    /// Reads it out of the params of a call.
    ///
    /// # Errors
    /// [`Fault`] where it says no words.
    pub fn read(message: &[u8], params: Option<&Range<usize>>) -> Result<Self, Fault> {
        let (_, arguments) = called(message, params)?;
        let (_, text, _) = arguments.ok_or(Fault::NotRpc("`arguments` are missing"))?;
        let [query, limit] = members(text, ["query", "limit"], 0)?;
        let query = query.as_ref().and_then(text_of);
        let query = query.ok_or(Fault::NotRpc("`arguments.query` must be a string"))?;
        let limit = match limit {
            None => FOUND,
            Some((_, text, _)) => serde_json::from_slice(text)
                .map_err(|_| Fault::NotRpc("`arguments.limit` must be a number of tools"))?,
        };
        Ok(Self {
            words: words(&query).take(WORDS_MAX).collect(),
            limit: limit.clamp(1, FOUND_MAX),
        })
    }

    /// The result of the call: what fits best of a list of tools, as its client would be told it.
    ///
    /// # Errors
    /// [`Fault`] where that is no list.
    pub fn answer(&self, list: &[u8]) -> Result<Vec<u8>, Fault> {
        let list: List<'_> = serde_json::from_slice(list).map_err(|_| Fault::NotJson)?;
        let tools: Vec<Tool<'_>> = list
            .tools
            .iter()
            .filter_map(|raw| Tool::read(raw))
            .collect();
        let mut told = String::from("[");
        let mut is_whole = true;
        for tool in self.best(&tools) {
            let shown = tool.shown();
            if told.len() > 1 && told.len() + shown.len() > TOLD_BYTES_MAX {
                is_whole = false;
                break;
            }
            if told.len() > 1 {
                told.push(',');
            }
            told.push_str(&shown);
        }
        told.push(']');
        let says = match (&*told, is_whole) {
            ("[]", _) => format!("None of {} tools has these words: try others.", tools.len()),
            (_, true) => told,
            (_, false) => {
                told + "\nMore fit, which are too long to be told at once: use more words."
            }
        };
        let mut out = br#"{"content":[{"type":"text","text":"#.to_vec();
        out.extend(string(&says));
        out.extend_from_slice(b"}]}");
        Ok(out)
    }

    /// Those in which words of the query stand, the best first, and of those that are as good the one that is listed first.
    fn best<'t, 'a>(&self, tools: &'t [Tool<'a>]) -> Vec<&'t Tool<'a>> {
        let mut scores = vec![0_u64; tools.len()];
        for word in &self.words {
            let found: Vec<u64> = tools.iter().map(|tool| tool.weight(word)).collect();
            let with = found.iter().filter(|weight| **weight > 0).count().max(1);
            // What few tools have tells more.
            let rarity = u64::from((tools.len() / with).max(1).ilog2()) + 1;
            for (score, weight) in scores.iter_mut().zip(found) {
                *score += weight * rarity;
            }
        }
        let mut best: Vec<(u64, &Tool<'_>)> = scores.into_iter().zip(tools).collect();
        best.retain(|(score, _)| *score > 0);
        best.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        best.into_iter()
            .take(self.limit)
            .map(|(_, of)| of)
            .collect()
    }
}

/// The message that a call of a found tool is: a call of that tool itself.
///
/// # Errors
/// [`Fault`] where it names none.
pub fn unwrapped(message: &[u8], params: Option<&Range<usize>>) -> Result<Vec<u8>, Fault> {
    let (name_at, arguments) = called(message, params)?;
    let (_, text, at) = arguments.ok_or(Fault::NotRpc("`arguments` are missing"))?;
    let [name, own] = members(text, ["name", "arguments"], 0)?;
    let name = name.as_ref().and_then(text_of);
    let name = name.ok_or(Fault::NotRpc("`arguments.name` must be a string"))?;
    let own = match own {
        None => b"{}",
        Some((Kind::Object, own, _)) => own,
        Some(_) => return Err(Fault::NotRpc("`arguments.arguments` must be an object")),
    };
    Ok(reply::edited(
        message,
        vec![(name_at, string(&name)), (at, own.to_vec())],
    ))
}

/// Where a call's name stands, and its arguments.
fn called<'a>(
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<(Range<usize>, Option<Value<'a>>), Fault> {
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let text = message.get(params.clone()).unwrap_or_default();
    let [name, arguments] = members(text, ["name", "arguments"], params.start)?;
    let (.., name) = name.ok_or(Fault::NotRpc("`params` names nothing"))?;
    if arguments.as_ref().is_some_and(|of| of.0 != Kind::Object) {
        return Err(Fault::NotRpc("`params.arguments` must be an object"));
    }
    Ok((name, arguments))
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// A tool, as far as it is looked through and told.
struct Tool<'a> {
    name: Cow<'a, str>,
    description: Option<Cow<'a, str>>,
    schema: Option<&'a [u8]>,
    in_name: Vec<String>,
    beside: BTreeSet<String>,
}

impl<'a> Tool<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        let raw = raw.get().as_bytes();
        let names = ["name", "title", "description", "inputSchema"];
        let [name, title, description, schema] = members(raw, names, 0).ok()?;
        let name = text_of(&name?)?;
        let text = |of: Option<Value<'a>>| of.as_ref().and_then(text_of);
        let (title, description) = (text(title), text(description));
        let mut beside: BTreeSet<String> = BTreeSet::new();
        beside.extend(title.iter().flat_map(|title| words(title)));
        beside.extend(description.iter().flat_map(|of| words(looked(of))));
        let schema = schema.map(|(_, text, _)| text);
        let properties = schema.and_then(|text| {
            let [properties] = members(text, ["properties"], 0).ok()?;
            serde_json::from_slice::<serde_json::Map<_, _>>(properties?.1).ok()
        });
        let properties = properties.unwrap_or_default();
        beside.extend(properties.keys().flat_map(|name| words(name)));
        Some(Self {
            in_name: words(&name).collect(),
            name,
            description,
            schema,
            beside,
        })
    }

    /// How much a word of a query says for it.
    fn weight(&self, word: &str) -> u64 {
        let of = |own: &str| u64::from(is_meant(word, own)) * if own == word { 2 } else { 1 };
        let in_name = self.in_name.iter().map(|own| of(own)).max().unwrap_or(0);
        let beside = self.beside.iter().map(|own| of(own)).max().unwrap_or(0);
        in_name * IN_NAME + beside
    }

    /// As it is told: what a model needs to call it.
    fn shown(&self) -> String {
        let mut out = b"{\"name\":".to_vec();
        out.extend(string(&self.name));
        if let Some(description) = &self.description {
            out.extend_from_slice(b",\"description\":");
            out.extend(string(description));
        }
        if let Some(schema) = self.schema {
            out.extend_from_slice(b",\"inputSchema\":");
            out.extend_from_slice(schema);
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Whether a word of a query means a tool's: it is it, or one begins with the other (`file`, `files`).
fn is_meant(word: &str, own: &str) -> bool {
    let begins = |long: &str, short: &str| short.chars().count() >= STEM && long.starts_with(short);
    word == own || begins(own, word) || begins(word, own)
}

/// As much of a text as is looked through.
fn looked(text: &str) -> &str {
    let mut end = text.len().min(LOOKED_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The words of a text in small letters: letters and digits, of `readFile` two.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    parts.flat_map(|part| {
        let mut words: Vec<String> = Vec::new();
        let mut was_small = false;
        for c in part.chars() {
            match words.last_mut() {
                Some(word) if !(was_small && c.is_uppercase()) => word.extend(c.to_lowercase()),
                _ => words.push(c.to_lowercase().collect()),
            }
            was_small = c.is_lowercase() || c.is_numeric();
        }
        words
    })
}

#[cfg(test)]
mod tests {
    //! What is found, in which order, and what a call of it becomes.

    use serde_json::{Value, json};

    use super::{CALL, FIND, Query, listed, unwrapped};
    use crate::envelope::{Fault, Message};

    fn call(name: &str, arguments: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": {"progressToken": 1}}})
        .to_string()
    }

    fn query(arguments: &Value) -> Result<Query, Fault> {
        let text = call(FIND, arguments);
        let message = Message::read(text.as_bytes()).expect("a message");
        Query::read(text.as_bytes(), message.params.as_ref())
    }

    fn catalogue() -> Vec<u8> {
        json!({"tools": [
            {"name": "files__read_file", "description": "Read the contents of a file.", "inputSchema": {"type": "object"}, "_meta": {"x": 1}},
            {"name": "files__writeFile", "description": "Write text.", "inputSchema": {"type": "object", "properties": {"path": {}}}},
            {"name": "mail__send", "description": "Send an e-mail with attachments (files)."},
            {"name": "mail__list", "title": "Inbox", "description": "List messages."},
            {"name": "clock__now"},
        ]})
        .to_string()
        .into_bytes()
    }

    fn found(arguments: &Value) -> Vec<String> {
        let answer = query(arguments).expect("a query").answer(&catalogue());
        let answer: Value = serde_json::from_slice(&answer.expect("a list")).expect("JSON");
        let text = answer["content"][0]["text"].as_str().expect("a text");
        let tools: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned());
        names.collect()
    }

    #[test]
    fn what_fits_best_is_found_first_and_what_does_not_fit_is_not() {
        for (words, expected) in [
            (
                "write a file",
                &["files__writeFile", "files__read_file", "mail__send"][..],
            ),
            (
                "FILES",
                &["files__read_file", "files__writeFile", "mail__send"],
            ),
            ("inbox", &["mail__list"]),
            ("path", &["files__writeFile"]),
            ("sending", &["mail__send"]),
            ("clock__now", &["clock__now"]),
            ("weather", &[]),
            ("", &[]),
        ] {
            assert_eq!(found(&json!({"query": words})), expected, "{words}");
        }
        assert_eq!(found(&json!({"query": "files", "limit": 1})).len(), 1);
        assert_eq!(found(&json!({"query": "files", "limit": 0})).len(), 1);
    }

    #[test]
    fn a_tool_is_told_with_what_a_model_needs_to_call_it() {
        let answer = query(&json!({"query": "read"}))
            .expect("a query")
            .answer(&catalogue());
        let answer: Value = serde_json::from_slice(&answer.expect("a list")).expect("JSON");
        let text = answer["content"][0]["text"].as_str().expect("a text");
        let expected = json!([{"name": "files__read_file", "description": "Read the contents of a file.", "inputSchema": {"type": "object"}}]);
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), expected);
    }

    #[test]
    fn what_is_told_has_a_bound() {
        let long = "file ".repeat(4000);
        let tools: Vec<Value> = (0..20)
            .map(|n| json!({"name": format!("t{n}"), "description": long}))
            .collect();
        let list = json!({"tools": tools}).to_string();
        let query = query(&json!({"query": "file", "limit": 20})).expect("a query");
        let answer = query.answer(list.as_bytes()).expect("a list");
        assert!(answer.len() < 80 << 10, "{}", answer.len());
        assert!(String::from_utf8_lossy(&answer).contains("More fit"));
    }

    #[test]
    fn a_query_without_words_is_a_fault_that_says_so() {
        for none in [
            json!({}),
            json!({"query": 1}),
            json!({"query": "a", "limit": "x"}),
        ] {
            assert!(query(&none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_call_of_what_was_found_is_a_call_of_that_tool() {
        let of = |arguments: &str| {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"arguments":{arguments},"_meta":{{"a":1}},"name":"{CALL}"}}}}"#
            );
            let message = Message::read(text.as_bytes()).expect("a message");
            let text = unwrapped(text.as_bytes(), message.params.as_ref());
            text.map(|text| String::from_utf8(text).expect("text"))
        };
        assert_eq!(
            of(r#"{"arguments":{"n":1.50,"b": [ 1 ]},"name":"a__b"}"#).as_deref(),
            Ok(
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"n":1.50,"b": [ 1 ]},"_meta":{"a":1},"name":"a__b"}}"#
            )
        );
        assert!(of(r#"{"name":"a__b"}"#).is_ok_and(|text| text.contains(r#""arguments":{},"#)));
        for none in [
            "{}",
            "[]",
            r#"{"name":1}"#,
            r#"{"name":"a","arguments":[]}"#,
            r#"{"name":"a","name":"b"}"#,
            r#"{"name":"a","Name":"b"}"#,
        ] {
            assert!(of(none).is_err(), "{none}");
        }
    }

    #[test]
    fn two_tools_are_listed() {
        let listed: Value = serde_json::from_slice(&listed()).expect("JSON");
        let names: Vec<&Value> = listed["tools"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|of| &of["name"])
            .collect();
        assert_eq!(names, [FIND, CALL]);
    }
}
