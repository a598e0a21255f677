//! `/v1/chat/completions`: the request, and the answer whole or as chunks.
//!
//! Invariant: each choice of a stream is a role chunk, a chunk for every `stream_interval` tokens that say something,
//! and a finish chunk; then (only if asked) the usage chunk with no choices, then `[DONE]`.
//! Not here: message shapes (`validate`), tool schemas (`tools`), time (`pace`).

mod logprobs;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::logprobs::{check_entries, entries, of_prompt};
use crate::model::Model;
use crate::pace::{AnswerWriter, Events};
use crate::plan::{Finish, Overrides, Plan};
use crate::render::{Arguments, Conversation, Effort, Tool};
use crate::sampling::{Sampling, StreamOptions};
use crate::structured;
use crate::tokenizer::TokenId;
use crate::tools::{self, Auto, Forced};
use crate::turn::{AnswerSpec, Channel, Turn};
use crate::validate::{self, MEDIA_TOKENS};

#[derive(Deserialize)]
pub(crate) struct ChatRequest {
    messages: Vec<Json>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    tool_choice: Option<Json>,
    #[serde(default)]
    reasoning_effort: Option<String>,
    #[serde(flatten)]
    template: TemplateMembers,
    #[serde(default)]
    documents: Option<Json>,
    #[serde(flatten)]
    structured: structured::Asked,
    #[serde(default)]
    logprobs: Option<bool>,
    #[serde(default)]
    top_logprobs: Option<i64>,
    #[serde(default)]
    max_completion_tokens: Option<i64>,
    #[serde(flatten)]
    sampling: Sampling,
}

impl ChatRequest {
    /// The call that the answer is to be, if it is to be one.
    fn tool(
        &self,
        tools: &[Tool],
        config: &EngineConfig,
        model: &Model,
        prompt: &[TokenId],
    ) -> Result<Option<Forced>, Refusal> {
        let choice = self.tool_choice.as_ref().filter(|c| **c != Json::Null);
        let is_none = choice.and_then(Json::as_str) == Some("none");
        if choice.is_some() && !is_none && self.tools.is_none() {
            let why = "When using `tool_choice`, `tools` must be set.";
            return Err(Refusal::bad_request(why).about("tool_choice"));
        }
        let auto = Auto::of(config, model.format.is_harmony());
        tools::chosen(tools, choice, auto, model.seed(config.seed, prompt))
    }
}

/// What a chat request asks a model with.
pub(crate) struct Asked {
    conversation: Conversation,
    /// Parts that are no text.
    media: usize,
}

impl ChatRequest {
    /// The prompt of the call, cut where it says so.
    pub(crate) fn prompt(
        &mut self,
        config: &EngineConfig,
        model: &Model,
    ) -> Result<Vec<TokenId>, Refusal> {
        let prompt = self.asked(model)?.prompt(model)?;
        self.sampling.truncate(prompt, config.max_model_len)
    }

    /// Most tokens of the answer, if it says so.
    pub(crate) fn cap(&self) -> Option<i64> {
        self.max_completion_tokens.or(self.sampling.cap())
    }

    /// Takes the messages out and checks them.
    pub(crate) fn asked(&mut self, model: &Model) -> Result<Asked, Refusal> {
        let harmony = model.format.is_harmony();
        let parsed = validate::messages(std::mem::take(&mut self.messages), harmony)?;
        let asked = self.reasoning_effort.as_deref();
        let effort = effort(asked, harmony)?;
        let mut arguments = std::mem::take(&mut self.template).arguments()?;
        arguments.documents = self.documents.take();
        arguments.effort = asked.map(str::to_owned);
        Ok(Asked {
            conversation: Conversation {
                messages: parsed.messages,
                tools: given(self.tools.as_deref())?,
                effort,
                arguments,
                ..Conversation::default()
            },
            media: parsed.media,
        })
    }
}

impl Asked {
    /// The prompt, in which each part that is no text counts [`MEDIA_TOKENS`].
    pub(crate) fn prompt(&self, model: &Model) -> Result<Vec<TokenId>, Refusal> {
        let mut prompt = model.prompt(&self.conversation)?;
        prompt.extend(std::iter::repeat_n(0, self.media * MEDIA_TOKENS));
        Ok(prompt)
    }
}

/// A chat answer.
pub(crate) struct Chat {
    who: Identity,
    plan: Plan,
    options: StreamOptions,
    /// Alternatives to show with each token, if any are to be shown.
    logprobs: Option<usize>,
    prompt_logprobs: Value,
    head: String,
    sent: Vec<usize>,
}

impl Chat {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        model: &Model,
        mut request: ChatRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        request.sampling = request.sampling.capped(request.max_completion_tokens);
        request.sampling.check(model.tokenizer())?;
        let logprobs = logprobs::asked(
            request.logprobs,
            request.top_logprobs,
            model.tokenizer().vocabulary_size(),
        )?;
        let (harmony, asked) = (model.format.is_harmony(), request.asked(model)?);
        let effort = asked.conversation.effort;
        let prompt = request
            .sampling
            .truncate(asked.prompt(model)?, config.max_model_len)?;
        let content = request.structured.constraint()?;
        let tool = request.tool(asked.conversation.tools(), config, model, &prompt)?;
        let spec = AnswerSpec {
            harmony,
            reasoning_eighths: eighths(effort),
            tool,
            content,
        };
        let mut plan = Plan::settle(
            config,
            model,
            vec![prompt],
            &request.sampling.lengths()?,
            &spec,
            overrides,
        )?;
        let top = request.sampling.prompt_logprobs();
        plan.reads_cache = top.is_none();
        check_entries(entries(plan.prompt_tokens(), top), "prompt_logprobs")?;
        if !request.sampling.streams() {
            let said = plan.completion_tokens() as u64;
            check_entries(entries(said, logprobs), "top_logprobs")?;
        }
        let prompt_logprobs = top.map_or(Value::Null, |top| {
            of_prompt(model.tokenizer(), plan.prompt_of(0), top)
        });
        let head = format!(
            "data: {{\"id\":\"{}\",\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\"choices\":[",
            who.id,
            who.created,
            Value::from(who.model.as_str())
        );
        let options = request.sampling.stream_options();
        let sent = vec![0; plan.choices.len()];
        Ok((
            Self {
                who,
                plan,
                options,
                logprobs,
                prompt_logprobs,
                head,
                sent,
            },
            request.sampling.streams(),
        ))
    }

    fn finish_reason(&self, choice: usize) -> &'static str {
        let choice = &self.plan.choices[choice];
        match &choice.turn.tool {
            Some(tool) if !tool.named && choice.finish == Finish::Stop => "tool_calls",
            _ => choice.finish.as_str(),
        }
    }

    fn chunk(&self, choice: usize, delta: &Value, finish: Option<&str>, logprobs: &Value) -> Bytes {
        let mut text = format!(
            "{{\"index\":{choice},\"delta\":{delta},\"logprobs\":{logprobs},\"finish_reason\":"
        );
        text.push_str(&Value::from(finish).to_string());
        if finish.is_some() {
            let stop = Value::from(self.plan.choices[choice].turn.stopped_by.as_deref());
            text.push_str(&format!(",\"stop_reason\":{stop}"));
        }
        text.push('}');
        let with_usage = self.options.continuous_usage_stats == Some(true);
        self.event(&text, with_usage.then(|| self.sent[choice]))
    }

    fn event(&self, choices: &str, completion_tokens: Option<usize>) -> Bytes {
        let mut event = String::with_capacity(self.head.len() + choices.len() + 128);
        event.push_str(&self.head);
        event.push_str(choices);
        event.push(']');
        if let Some(tokens) = completion_tokens {
            event.push_str(",\"usage\":");
            event.push_str(&usage_of(&self.plan, tokens).to_string());
        }
        event.push_str("}\n\n");
        Bytes::from(event)
    }

    fn tool_call_id(&self, choice: usize) -> String {
        let id = self.who.id.replacen("chatcmpl-", "chatcmpl-tool-", 1);
        if choice == 0 {
            id
        } else {
            format!("{id}-{choice}")
        }
    }

    /// The delta of tokens that go to one channel.
    fn delta(channel: Channel, text: &str) -> Option<Value> {
        match channel {
            _ if text.is_empty() => None,
            Channel::Mark => None,
            Channel::Reasoning => Some(json!({"reasoning": text, "reasoning_content": text})),
            Channel::Content => Some(json!({"content": text})),
            Channel::Arguments => {
                Some(json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}))
            }
        }
    }

    fn call_opening(&self, choice: usize, name: &str) -> Value {
        json!({"tool_calls": [{"id": self.tool_call_id(choice), "type": "function", "index": 0,
            "function": {"name": name, "arguments": ""}}]})
    }

    fn say(&self, choice: usize, from: usize, to: usize, out: &mut Events) {
        let turn = &self.plan.choices[choice].turn;
        let mut at = from;
        while at < to {
            let channel = turn.token(at).0;
            let end = (at..to).find(|i| turn.token(*i).0 != channel).unwrap_or(to);
            let text: String = (at..end).map(|i| turn.token(i).1).collect();
            let opens =
                channel == Channel::Arguments && (at == 0 || turn.token(at - 1).0 != channel);
            if let (true, Some(tool)) = (opens, &turn.tool) {
                out.push_back(self.chunk(
                    choice,
                    &self.call_opening(choice, &tool.name),
                    None,
                    &Value::Null,
                ));
            }
            if let Some(delta) = Self::delta(channel, &text) {
                let logprobs = self
                    .logprobs
                    .map_or(Value::Null, |top| logprobs::of(turn, at..end, top));
                out.push_back(self.chunk(choice, &delta, None, &logprobs));
            }
            at = end;
        }
    }

    fn message(&self, choice: usize, turn: &Turn) -> Value {
        let reasoning = Some(turn.reasoning()).filter(|r| !r.is_empty());
        let calls = match &turn.tool {
            Some(tool) if turn.calls() => {
                json!([{"id": self.tool_call_id(choice), "type": "function",
                "function": {"name": tool.name, "arguments": turn.arguments()}}])
            }
            _ => json!([]),
        };
        let content = Some(turn.content()).filter(|c| !c.is_empty());
        json!({"role": "assistant", "content": content, "refusal": null, "annotations": null, "audio": null,
            "function_call": null, "tool_calls": calls, "reasoning": reasoning, "reasoning_content": reasoning})
    }
}

impl AnswerWriter for Chat {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn tokens(&mut self, choice: usize, from: usize, to: usize, out: &mut Events) {
        if from == 0 {
            out.push_back(self.chunk(
                choice,
                &json!({"role": "assistant", "content": ""}),
                None,
                &Value::Null,
            ));
        }
        self.sent[choice] = to;
        self.say(choice, from, to, out);
        if to == self.plan.choices[choice].turn.tokens() {
            out.push_back(self.chunk(
                choice,
                &json!({}),
                Some(self.finish_reason(choice)),
                &Value::Null,
            ));
        }
    }

    fn closing(&mut self, out: &mut Events) {
        if self.options.include_usage == Some(true) {
            out.push_back(self.event("", Some(self.plan.completion_tokens())));
        }
        out.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    fn whole(&self) -> Bytes {
        let choices: Vec<Value> = (0..self.plan.choices.len())
            .map(|i| {
                let turn = &self.plan.choices[i].turn;
                let logprobs = self.logprobs.map_or(Value::Null, |top| logprobs::of(turn, 0..turn.tokens(), top));
                json!({"index": i, "message": self.message(i, turn), "logprobs": logprobs,
                    "finish_reason": self.finish_reason(i), "stop_reason": turn.stopped_by, "token_ids": null})
            })
            .collect();
        let answer = json!({
            "id": self.who.id, "object": "chat.completion", "created": self.who.created, "model": self.who.model,
            "choices": choices, "service_tier": null, "system_fingerprint": null,
            "usage": usage_of(&self.plan, self.plan.completion_tokens()),
            "prompt_logprobs": self.prompt_logprobs, "prompt_token_ids": null, "kv_transfer_params": null,
        });
        Bytes::from(answer.to_string())
    }
}

/// What a request says to the template of its conversation.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TemplateMembers {
    add_generation_prompt: Option<bool>,
    continue_final_message: Option<bool>,
    chat_template: Option<Json>,
    chat_template_kwargs: Option<Json>,
}

impl TemplateMembers {
    pub(crate) fn arguments(self) -> Result<Arguments, Refusal> {
        arguments(
            self.chat_template_kwargs,
            self.chat_template.as_ref(),
            self.add_generation_prompt,
            self.continue_final_message,
        )
    }
}

/// What a template is given: `own` is `chat_template_kwargs`, and what has members of its own wins over it, be it only by
/// its default.
pub(crate) fn arguments(
    own: Option<Json>,
    template: Option<&Json>,
    opens: Option<bool>,
    continues: Option<bool>,
) -> Result<Arguments, Refusal> {
    let own = match own {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Object(own)) => own,
        Some(_) => {
            let why = "chat_template_kwargs must be an object";
            return Err(Refusal::bad_request(why).about("chat_template_kwargs"));
        }
    };
    let of_own = own.iter().find(|(name, _)| name == "chat_template");
    let given = [template, of_own.map(|(_, value)| value)];
    if given.into_iter().flatten().any(|one| *one != Json::Null) {
        return Err(Refusal::bad_request(
            "Chat template is passed with request, but --trust-request-chat-template is not set. Refused request with \
             untrusted chat template.",
        ));
    }
    if (opens, continues) == (Some(true), Some(true)) {
        return Err(Refusal::bad_request(
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True.",
        ));
    }
    Ok(Arguments {
        own,
        opens,
        continues: continues.unwrap_or(false),
        ..Arguments::default()
    })
}

/// Tools of a chat, if there are any: an empty list is none, which vLLM refuses.
pub(crate) fn given(tools: Option<&[Json]>) -> Result<Option<Vec<Tool>>, Refusal> {
    let offered = tools::offered(tools)?;
    Ok(tools.filter(|tools| !tools.is_empty()).map(|_| offered))
}

/// A conversation that a template is to write.
pub(crate) fn conversation(
    messages: Vec<Json>,
    tools: Option<&[Json]>,
    arguments: Arguments,
) -> Result<Conversation, Refusal> {
    Ok(Conversation {
        messages: validate::messages(messages, false)?.messages,
        tools: given(tools)?,
        arguments,
        ..Conversation::default()
    })
}

/// Reads `reasoning_effort`. Harmony has three; a template is told any that vLLM knows.
pub(crate) fn effort(asked: Option<&str>, harmony: bool) -> Result<Effort, Refusal> {
    let about = |why: String| Err(Refusal::bad_request(why).about("reasoning_effort"));
    match asked {
        None | Some("medium") => Ok(Effort::Medium),
        Some("low") => Ok(Effort::Low),
        Some("high") => Ok(Effort::High),
        Some("none") if harmony => {
            about("Harmony does not support reasoning_effort='none'".to_owned())
        }
        Some(other @ ("minimal" | "xhigh" | "max")) if harmony => about(format!(
            "reasoning_effort='{other}' is not supported by Harmony. Supported values are: high, medium, low."
        )),
        Some("none" | "minimal") => Ok(Effort::Low),
        Some("xhigh" | "max") => Ok(Effort::High),
        Some(other) => about(format!("unknown reasoning_effort {other:?}")),
    }
}

/// Share of an answer's words that are reasoning.
pub(crate) fn eighths(effort: Effort) -> usize {
    match effort {
        Effort::Low => 1,
        Effort::Medium => 2,
        Effort::High => 4,
    }
}

/// Usage of chat and plain completions, with so many tokens generated by now.
pub(crate) fn usage_of(plan: &Plan, completion_tokens: usize) -> Value {
    let mut usage = usage(plan.prompt_tokens(), completion_tokens);
    if let Some(cached) = plan.told_cached_tokens() {
        usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
    }
    usage
}

/// Usage of a prompt of which nothing was cached.
pub(crate) fn usage(prompt_tokens: u64, completion_tokens: usize) -> Value {
    json!({
        "prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens + completion_tokens as u64,
        "completion_tokens": completion_tokens, "prompt_tokens_details": null,
    })
}

#[cfg(test)]
mod tests;
