//! What an agent has in mind: its messages, sent again with each step, and when each was known.
//!
//! Invariant: what is recorded is what was sent, message by message.
//! Not here: what is said (`script`, the engine).

use serde_json::{Value, json};

use super::answer::Answer;
use super::script::Script;

/// One session's.
#[derive(Debug)]
pub(super) struct History {
    session: u64,
    messages: Vec<Value>,
    known: Vec<Known>,
    /// Ids of calls that wait for what their tools find.
    called: Vec<String>,
}

/// What is recorded beside a message.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// When it was, in seconds since 1970.
    at_s: f64,
    /// Tokens of an answer, as the engine reported them.
    tokens: Option<u64>,
}

impl History {
    pub(super) fn begin(script: &Script, session: u64) -> Self {
        Self {
            session,
            messages: vec![Script::system(), script.task(session)],
            known: Vec::new(),
            called: Vec::new(),
        }
    }

    /// What the tools of the last answer found, or what a user says to it.
    pub(super) fn observe(&mut self, found: &str) {
        if self.called.is_empty() {
            self.messages
                .push(json!({"role": "user", "content": found}));
        }
        for id in self.called.drain(..) {
            self.messages
                .push(json!({"role": "tool", "tool_call_id": id, "content": found}));
        }
    }

    /// The request, written anew.
    pub(super) fn request(&self, model: &str) -> Vec<u8> {
        let body = json!({
            "model": model,
            "stream": true,
            "stream_options": {"include_usage": true},
            "tools": Script::tools(),
            "messages": self.messages,
        });
        body.to_string().into_bytes()
    }

    /// It was sent then, so everything in it was known.
    pub(super) fn sent(&mut self, at_s: f64) {
        let known = Known { at_s, tokens: None };
        self.known.resize(self.messages.len(), known);
    }

    /// It was answered, whole at this moment.
    pub(super) fn answered(&mut self, answer: &Answer, at_s: f64) {
        self.messages.push(answer.message());
        let known = Known {
            at_s,
            tokens: Some(answer.output),
        };
        self.known.resize(self.messages.len(), known);
        self.called = answer.calls.iter().map(|call| call.id.clone()).collect();
    }

    /// The session as a line of the `messages` reader; `None` where nothing was answered in it.
    pub(super) fn recorded(&self) -> Option<String> {
        let mut messages = self.messages.clone();
        messages.truncate(self.known.len());
        let answered = |message: &Value| message["role"] == "assistant";
        messages.iter().any(answered).then_some(())?;
        for (message, known) in messages.iter_mut().zip(&self.known) {
            let Some(members) = message.as_object_mut() else {
                continue;
            };
            members.insert("timestamp".into(), json!(known.at_s));
            if let Some(tokens) = known.tokens {
                members.insert("usage".into(), json!({"completion_tokens": tokens}));
            }
        }
        let line =
            json!({"id": id_of(self.session), "tools": Script::tools(), "messages": messages});
        Some(line.to_string())
    }
}

/// The name of a session in a recording.
pub(super) fn id_of(session: u64) -> String {
    format!("agent-{session:07}")
}

/// The session of that name.
pub(super) fn session_of(id: &str) -> Option<u64> {
    id.rsplit('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    //! What is recorded is what was sent.

    use super::*;

    #[test]
    fn a_session_is_recorded_with_the_moments_at_which_its_messages_were_known() {
        let script = Script {
            seed: 1,
            sessions: 3,
            steps: 4.0,
            tool_s: 1.0,
            found: 20.0,
        };
        let mut history = History::begin(&script, 2);
        assert_eq!(history.recorded(), None);
        let request: Value = serde_json::from_slice(&history.request("m")).expect("JSON");
        assert_eq!(
            request["messages"],
            json!([Script::system(), script.task(2)])
        );
        history.sent(10.0);
        let mut answer = Answer::default();
        let call = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"search\",\"arguments\":\"{}\"}}]}}]}\n\n";
        answer.read(call.as_bytes()).expect("a stream");
        history.answered(&answer, 12.5);
        history.observe(&script.found(2, 1));
        // What is not sent is not recorded.
        let line: Value = serde_json::from_str(&history.recorded().expect("a line")).expect("JSON");
        assert_eq!(line["messages"].as_array().map(Vec::len), Some(3));
        history.sent(14.0);
        let line: Value = serde_json::from_str(&history.recorded().expect("a line")).expect("JSON");
        let times: Vec<f64> = (0..4)
            .filter_map(|at| line["messages"][at]["timestamp"].as_f64())
            .collect();
        assert_eq!(times, [10.0, 10.0, 12.5, 14.0]);
        assert_eq!(line["messages"][3]["tool_call_id"], "c");
        assert_eq!(
            line["messages"][2]["usage"],
            json!({"completion_tokens": 0})
        );
        assert!(line["messages"][3].get("usage").is_none());
        assert_eq!(session_of(line["id"].as_str().expect("an id")), Some(2));
    }
}
