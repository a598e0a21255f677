//! Reads an answer of `generateContent`, and the events of `streamGenerateContent`, each of which is such an answer of its own.
//!
//! A stream has no end mark: what came is whole where a reason to finish was told, and it may be told more than once.
//! Of several candidates the first is read: a call that asks for more is refused.
//! Not here: errors with a status (`super::read_error`).

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::filter::Stop;

use super::compact::compact;
use crate::answer::{Ended, Event, Finish, Reader, Tail, Usage};
use crate::calls::{MADE, hash};
use crate::raw::{Raw, Text, read_json};
use crate::report::{Count, Told};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(borrow)]
    response_id: Option<Text<'a>>,
    #[serde(borrow)]
    model_version: Option<Text<'a>>,
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default)]
    usage_metadata: Told<Counts>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow)]
    finish_message: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow)]
    function_call: Option<Call<'a>>,
    inline_data: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
struct Counts {
    prompt_token_count: Count,
    tool_use_prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
}

impl Counts {
    /// Takes what a later event says, member by member.
    fn merge(&mut self, later: Self) {
        let take = |into: &mut Count, later: Count| into.0 = later.0.or(into.0);
        take(&mut self.prompt_token_count, later.prompt_token_count);
        take(
            &mut self.tool_use_prompt_token_count,
            later.tool_use_prompt_token_count,
        );
        take(
            &mut self.cached_content_token_count,
            later.cached_content_token_count,
        );
        take(
            &mut self.candidates_token_count,
            later.candidates_token_count,
        );
        take(&mut self.thoughts_token_count, later.thoughts_token_count);
    }

    fn usage(self) -> Usage {
        let sum = |one: Count, other: Count| match (one.0, other.0) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Usage {
            prompt: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            cache_read: self.cached_content_token_count.0,
            completion: sum(self.candidates_token_count, self.thoughts_token_count),
            reasoning: self.thoughts_token_count.0,
            ..Usage::default()
        }
    }
}

/// The state of one answer.
#[derive(Debug, Default)]
pub(crate) struct GenerateReader {
    /// Its id, once it has begun.
    id: Option<String>,
    calls: u32,
    tail: Tail,
    usage: Counts,
}

fn text<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_ref().map_or("", |text| &text.0)
}

impl GenerateReader {
    fn read(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let document: Document<'_> = read_json(json)?;
        if document.error.is_some() {
            let error = super::read_error(200, json).ok_or(Stop::Malformed)?;
            self.tail.close();
            tell(Event::Error(error));
            return Ok(());
        }
        if self.id.is_none() {
            let id = text(&document.response_id);
            self.id = Some(id.to_owned());
            let model = text(&document.model_version);
            tell(Event::Begin { id, model });
        }
        self.usage
            .merge(document.usage_metadata.0.unwrap_or_default());
        let feedback = document.prompt_feedback.as_ref();
        if feedback.is_some_and(|feedback| !text(&feedback.block_reason).is_empty()) {
            self.tail.ends(Ended::Finished(Finish::Refused));
        }
        let candidates = document.candidates.iter().flatten();
        for candidate in candidates.filter(|candidate| candidate.index.unwrap_or(0) == 0) {
            let content = candidate.content.as_ref();
            let parts = content.and_then(|content| content.parts.as_ref());
            for part in parts.into_iter().flatten() {
                self.part(part, tell)?;
            }
            self.finished(candidate);
        }
        Ok(())
    }

    fn part(&mut self, part: &Part<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        if part.inline_data.is_some() {
            // Nobody could ask for an image or sound, and an answer without it is another one.
            return Err(Stop::Malformed);
        }
        let signature = Some(text(&part.thought_signature)).filter(|text| !text.is_empty());
        if let Some(call) = &part.function_call {
            self.call(call, signature, tell);
            return Ok(());
        }
        let said = text(&part.text);
        match part.thought {
            _ if said.is_empty() => {}
            Some(true) => tell(Event::Thinking(said)),
            Some(false) | None => tell(Event::Text(said)),
        }
        signature.map(Event::Signature).into_iter().for_each(tell);
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>, signature: Option<&str>, tell: &mut dyn FnMut(Event<'_>)) {
        let (nth, name) = (self.calls, text(&call.name));
        self.calls += 1;
        let args = call.args.map(|args| args.get().as_bytes());
        let args = args.and_then(Raw::read).filter(|args| !args.is_null());
        let json = args.map_or("{}".into(), compact);
        let made;
        let id = match text(&call.id) {
            "" => {
                let answer = self.id.as_deref().filter(|id| !id.is_empty());
                let hashed = || format!("{:016x}", hash(&[name, &json]));
                let of = answer.map_or_else(hashed, str::to_owned);
                made = format!("{MADE}{of}_{nth}");
                &made
            }
            id => id,
        };
        tell(Event::Call {
            nth,
            id,
            name,
            signature,
        });
        tell(Event::Arguments { nth, json: &json });
    }

    /// The reasons of <https://ai.google.dev/api/generate-content#FinishReason>, and of Vertex AI.
    fn finished(&mut self, candidate: &Candidate<'_>) {
        let finish = match text(&candidate.finish_reason) {
            "" | "FINISH_REASON_UNSPECIFIED" => return,
            // It says the same of an answer that ends with calls.
            "STOP" if self.calls > 0 => Finish::ToolCalls,
            "STOP" => Finish::Stop,
            "MAX_TOKENS" => Finish::Length,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "MODEL_ARMOR"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => Finish::Refused,
            // A call that the model did not get right, and what is to come: no success is made of it.
            other => {
                let message = text(&candidate.finish_message);
                self.tail.ends(Ended::otherwise(other, message));
                return;
            }
        };
        self.tail.ends(Ended::Finished(finish));
    }
}

impl Reader for GenerateReader {
    fn event(&mut self, data: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        if self.tail.is_over() {
            return Ok(());
        }
        self.read(data, tell)
    }

    fn document(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        self.read(json, tell)?;
        self.over(tell);
        self.tail.whole()
    }

    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        self.tail.tell(self.usage.usage(), tell);
    }
}
