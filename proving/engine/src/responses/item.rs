//! One output item of a response: reasoning, a message or a function call, and the events that tell of it.
//!
//! Invariant: an item's deltas join to the text that its last event gives whole.
//! Not here: the order of items and their numbering (the parent).

use serde_json::{Value, json};

use crate::turn::{Channel, Turn};

pub(super) struct Item {
    pub(super) channel: Channel,
    id: String,
    call_id: String,
    name: String,
    text: String,
}

impl Item {
    /// The items of an answer, in the order in which they are said.
    pub(super) fn all(response: &str, turn: &Turn) -> Vec<Self> {
        let item = |channel, prefix: &str, text: &str| Self {
            channel,
            id: response.replacen("resp_", prefix, 1),
            call_id: response.replacen("resp_", "call_", 1),
            name: turn
                .tool
                .as_ref()
                .map(|tool| tool.name.clone())
                .unwrap_or_default(),
            text: text.to_owned(),
        };
        let mut items = Vec::new();
        if !turn.reasoning().is_empty() {
            items.push(item(Channel::Reasoning, "rs_", turn.reasoning()));
        }
        if turn.calls() {
            items.push(item(Channel::Arguments, "fc_", turn.arguments()));
        } else if !turn.content().is_empty() || items.is_empty() {
            items.push(item(Channel::Content, "msg_", turn.content()));
        }
        items
    }

    pub(super) fn whole(&self, status: &str) -> Value {
        self.as_value(status, &self.text)
    }

    fn as_value(&self, status: &str, text: &str) -> Value {
        let empty = status == "in_progress";
        match self.channel {
            Channel::Reasoning => {
                let content = if empty {
                    json!([])
                } else {
                    json!([{"type": "reasoning_text", "text": text}])
                };
                json!({"type": "reasoning", "id": self.id, "status": status, "summary": [], "content": content,
                    "encrypted_content": null})
            }
            Channel::Arguments => json!({"type": "function_call", "id": self.id, "status": status,
                "name": self.name, "call_id": self.call_id, "arguments": text}),
            Channel::Content | Channel::Mark => {
                let content = if empty {
                    json!([])
                } else {
                    json!([part(text)])
                };
                json!({"type": "message", "id": self.id, "status": status, "role": "assistant", "content": content})
            }
        }
    }

    pub(super) fn opening(&self, at: usize) -> Vec<(&'static str, Value)> {
        let item = self.as_value("in_progress", "");
        let mut events = vec![(
            "response.output_item.added",
            json!({"output_index": at, "item": item}),
        )];
        if self.channel == Channel::Content {
            events.push((
                "response.content_part.added",
                self.about(at, json!({"part": part("")})),
            ));
        }
        events
    }

    pub(super) fn delta(&self, at: usize, text: &str) -> (&'static str, Value) {
        let event = self.about(at, json!({"delta": text}));
        match self.channel {
            Channel::Reasoning => ("response.reasoning_text.delta", event),
            Channel::Arguments => ("response.function_call_arguments.delta", event),
            Channel::Content | Channel::Mark => {
                let mut event = event;
                event["logprobs"] = json!([]);
                ("response.output_text.delta", event)
            }
        }
    }

    pub(super) fn closing(&self, at: usize, status: &str) -> Vec<(&'static str, Value)> {
        let text = self.text.as_str();
        let mut events = match self.channel {
            Channel::Reasoning => vec![(
                "response.reasoning_text.done",
                self.about(at, json!({"text": text})),
            )],
            Channel::Arguments => {
                let event = self.about(at, json!({"arguments": text, "name": self.name}));
                vec![("response.function_call_arguments.done", event)]
            }
            Channel::Content | Channel::Mark => vec![
                (
                    "response.output_text.done",
                    self.about(at, json!({"text": text, "logprobs": []})),
                ),
                (
                    "response.content_part.done",
                    self.about(at, json!({"part": part(text)})),
                ),
            ],
        };
        events.push((
            "response.output_item.done",
            json!({"output_index": at, "item": self.whole(status)}),
        ));
        events
    }

    /// An event about this item, and about its only part unless it is a call.
    fn about(&self, at: usize, mut event: Value) -> Value {
        event["item_id"] = json!(self.id);
        event["output_index"] = json!(at);
        if self.channel != Channel::Arguments {
            event["content_index"] = json!(0);
        }
        event
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}
