//! A response as it stands: what its first events and its last have, and what an answer that is one document is.

use super::made::Item;
use crate::answer::{Error, Finish, Usage};
use crate::call::Echo;
use crate::json::Json;

pub(super) struct Document<'a> {
    /// Its id, but for how ids of responses begin.
    pub(super) stem: &'a str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) items: &'a [Item],
    pub(super) echo: &'a Echo,
}

/// How a response stands.
pub(super) enum State<'a> {
    InProgress,
    Over(&'a Finish, &'a Usage),
    Failed(&'a Error),
}

impl State<'_> {
    const fn status(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Over(Finish::Length | Finish::Refused, _) => "incomplete",
            Self::Over(..) => "completed",
            Self::Failed(_) => "failed",
        }
    }

    /// Why it is incomplete.
    const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Over(Finish::Length, _) => Some("max_output_tokens"),
            Self::Over(Finish::Refused, _) => Some("content_filter"),
            _ => None,
        }
    }
}

impl Document<'_> {
    pub(super) fn write(&self, state: &State<'_>, json: &mut Json) {
        json.object(|json| {
            json.say("id", &format!("resp_{}", self.stem));
            json.say("object", "response");
            json.key("created_at").whole(self.created);
            json.say("status", state.status());
            match state {
                State::Failed(error) => json.key("error").object(|json| {
                    json.say("code", code(error));
                    json.say("message", &error.message);
                }),
                _ => json.key("error").null(),
            }
            match state.reason() {
                Some(reason) => json
                    .key("incomplete_details")
                    .object(|json| json.say("reason", reason)),
                None => json.key("incomplete_details").null(),
            }
            json.say("model", self.model);
            json.key("output").list(|json| {
                if !matches!(state, State::InProgress) {
                    self.items.iter().for_each(|item| item.write(json));
                }
            });
            json.members(&self.echo.0);
            json.key("usage");
            match state {
                State::Over(_, usage) => self::usage(usage, json),
                _ => json.null(),
            }
        });
    }
}

/// The code of a response's error. What an API of OpenAI's kin says is said on: clients know some of its codes.
fn code(error: &Error) -> &str {
    match (&error.code, error.status) {
        (Some(code), _) => code,
        (None, 429) => "rate_limit_exceeded",
        (None, 500..) => "server_error",
        (None, _) => "invalid_prompt",
    }
}

fn usage(usage: &Usage, json: &mut Json) {
    let (Some(input), output) = (usage.prompt, usage.completion.unwrap_or(0)) else {
        // Nobody counted: a zero would say that it cost nothing.
        return json.null();
    };
    json.object(|json| {
        json.key("input_tokens").whole(input);
        json.key("input_tokens_details").object(|json| {
            json.key("cached_tokens")
                .whole(usage.cache_read.unwrap_or(0));
            json.key("cache_write_tokens")
                .whole(usage.cache_written.unwrap_or(0));
        });
        json.key("output_tokens").whole(output);
        json.key("output_tokens_details").object(|json| {
            json.key("reasoning_tokens")
                .whole(usage.reasoning.unwrap_or(0));
        });
        json.key("total_tokens").whole(input.saturating_add(output));
    });
}
