//! A streamed answer as an agent reads it: chunk by chunk, event by event, each parsed.
//!
//! Invariant: the same events give the same answer however they were cut into chunks; an answer without its end is none.
//! Not here: the connection (`line`).

use serde_json::{Value, json};

/// Bytes of an event at most.
const MOST_BYTES: usize = 1 << 20;
const DONE: &str = "[DONE]";

/// What came so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Call>,
    pub(super) prompt: u64,
    pub(super) output: u64,
    pub(super) cached: Option<u64>,
    pub(super) events: u64,
    is_over: bool,
    /// What no event has ended yet.
    rest: Vec<u8>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Answer {
    /// Reads a chunk; whether there was output in it.
    pub(super) fn read(&mut self, chunk: &[u8]) -> Result<bool, String> {
        self.rest.extend_from_slice(chunk);
        let mut has_output = false;
        while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.rest.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event);
            for data in event.lines().filter_map(|line| line.strip_prefix("data: ")) {
                has_output |= self.event(data)?;
            }
        }
        if self.rest.len() > MOST_BYTES {
            return Err("an event of the answer has no end".into());
        }
        Ok(has_output)
    }

    fn event(&mut self, data: &str) -> Result<bool, String> {
        self.events += 1;
        if data == DONE {
            self.is_over = true;
            return Ok(false);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|error| format!("an event is no JSON: {error}"))?;
        if let Some(says) = event.pointer("/error/message").and_then(Value::as_str) {
            return Err(says.to_owned());
        }
        let count = |path: &str| event.pointer(path).and_then(Value::as_u64);
        self.prompt = count("/usage/prompt_tokens").unwrap_or(self.prompt);
        self.output = count("/usage/completion_tokens").unwrap_or(self.output);
        self.cached = count("/usage/prompt_tokens_details/cached_tokens").or(self.cached);
        let Some(delta) = event.pointer("/choices/0/delta") else {
            return Ok(false);
        };
        let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
        let before = (self.text.len(), self.reasoning.len());
        self.text.push_str(text("content"));
        self.reasoning.push_str(text("reasoning"));
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        let calls = calls.map(Vec::as_slice).unwrap_or_default();
        for call in calls {
            self.call(call);
        }
        Ok(!calls.is_empty() || before != (self.text.len(), self.reasoning.len()))
    }

    fn call(&mut self, delta: &Value) {
        let place = delta.get("index").and_then(Value::as_u64).unwrap_or(0);
        let place = usize::try_from(place).unwrap_or(0).min(63);
        if self.calls.len() <= place {
            self.calls.resize_with(place + 1, Call::default);
        }
        let text = |path: &str| {
            delta
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        if let Some(call) = self.calls.get_mut(place) {
            call.id.push_str(text("/id"));
            call.name.push_str(text("/function/name"));
            call.arguments.push_str(text("/function/arguments"));
        }
    }

    /// Whether it came to its end.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_over
    }

    /// As the history has it.
    pub(super) fn message(&self) -> Value {
        let calls = self.calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        let calls: Vec<Value> = calls.collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if let Some(members) = message.as_object_mut() {
            if !self.reasoning.is_empty() {
                members.insert("reasoning".into(), json!(self.reasoning));
            }
            if !calls.is_empty() {
                members.insert("tool_calls".into(), calls.into());
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    //! A stream with reasoning, a call in pieces and usage, cut anywhere.

    use super::*;

    const STREAM: &str = concat!(
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"h\u{fc}m\",\"reasoning_content\":\"h\u{fc}m\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a \"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"search\",\"arguments\":\"\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\n",
        "data: [DONE]\n\n",
    );

    #[test]
    fn an_answer_is_the_same_however_it_is_cut() {
        let mut whole = Answer::default();
        assert!(whole.read(STREAM.as_bytes()).expect("a stream"));
        assert!(whole.is_whole());
        assert_eq!(
            (whole.text.as_str(), whole.reasoning.as_str()),
            ("a b", "hüm")
        );
        assert_eq!((whole.prompt, whole.output, whole.cached), (9, 4, Some(8)));
        assert_eq!(
            whole.message()["tool_calls"][0]["function"]["arguments"],
            "{}"
        );
        for length in 1..60 {
            let mut cut = Answer::default();
            for chunk in STREAM.as_bytes().chunks(length) {
                cut.read(chunk).expect("a stream");
            }
            assert_eq!(cut, whole, "{length}");
        }
    }

    #[test]
    fn an_error_within_the_stream_and_an_answer_without_its_end_are_told() {
        let mut answer = Answer::default();
        let error = "data: {\"error\":{\"message\":\"no more\"}}\n\n";
        assert_eq!(answer.read(error.as_bytes()), Err("no more".into()));
        let mut answer = Answer::default();
        let cut = STREAM.strip_suffix("data: [DONE]\n\n").expect("its end");
        answer.read(cut.as_bytes()).expect("a stream");
        assert!(!answer.is_whole());
    }
}
