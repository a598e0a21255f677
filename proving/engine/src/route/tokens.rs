//! Tokens without an answer: `/tokenize`, `/detokenize`, what a message counts, and what a call would be read as.
//!
//! Invariant: the count of a message and the tokens of a call are those for which the call itself would report usage.
//! `/tokenize` writes a conversation by the template, also where calls are written in Harmony, as vLLM does.
//! Not here: faults, which answers of the model alone have; metrics of the engine, which is not asked.

use serde::Deserialize;
use serde_json::{Value, json};

use super::table::{Tokens, Work};
use super::{Answer, JSON, full, parse, typed};
use crate::chat::{self, ChatRequest};
use crate::completions::{CompletionRequest, token_id};
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::messages::{Asking, MessagesRequest};
use crate::model::Model;
use crate::responses::ResponsesRequest;
use crate::state::State;
use crate::tokenizer::TokenId;

/// Answers what a call counts.
pub(super) fn of_call(state: &State, body: &[u8], asked: Tokens) -> Result<Answer, Refusal> {
    let answer = match asked {
        Tokens::Count => count(state, body)?,
        Tokens::Render(_) if !state.config.enable_scale_out => {
            return Err(Refusal::scale_out_disabled());
        }
        Tokens::Render(work) => render(state, body, work)?,
    };
    Ok(full(JSON, answer.to_string()))
}

fn count(state: &State, body: &[u8]) -> Result<Value, Refusal> {
    let (request, model) = parse(state, body)?;
    let asking: Asking = typed(request)?;
    let tokens = asking.asked(&state.models[model])?.prompt.len();
    Ok(json!({"input_tokens": tokens, "context_management": {"original_input_tokens": tokens}}))
}

/// A call's prompt, as the engine behind the server would be asked for it.
fn render(state: &State, body: &[u8], work: Work) -> Result<Value, Refusal> {
    let (request, index) = parse(state, body)?;
    let (config, model) = (&state.config, &state.models[index]);
    let who = state.identity(work.prefix(), &config.models[index]);
    let streams = request.get("stream").is_some_and(Json::is_true);
    let one = |prompt: &[TokenId], cap| generate_request(config, &who, prompt, cap, streams);
    match work {
        Work::Completions => {
            let request: CompletionRequest = typed(request)?;
            let prompts = request.asked(config, model)?;
            let all = prompts.iter().map(|prompt| one(prompt, request.cap()));
            Ok(Value::Array(all.collect::<Result<_, _>>()?))
        }
        Work::Responses => {
            let request: ResponsesRequest = typed(request)?;
            one(&request.asked(model)?.prompt, request.cap())
        }
        Work::Messages => {
            let request: MessagesRequest = typed(request)?;
            one(&request.asking.asked(model)?.prompt, request.cap())
        }
        Work::Chat => {
            let mut request: ChatRequest = typed(request)?;
            let cap = request.cap();
            one(&request.prompt(config, model)?, cap)
        }
        Work::Embeddings | Work::Score | Work::Rerank => Err(Refusal::not_found("Not Found")),
    }
}

fn generate_request(
    config: &EngineConfig,
    who: &Identity,
    prompt: &[TokenId],
    cap: Option<i64>,
    streams: bool,
) -> Result<Value, Refusal> {
    let limit = crate::plan::output_limit(config.max_model_len, prompt.len() as u64, cap)?;
    Ok(json!({
        "request_id": who.id, "token_ids": prompt, "features": null, "sampling_params": {"max_tokens": limit},
        "model": who.model, "stream": streams, "stream_options": null, "cache_salt": null, "priority": 0,
        "kv_transfer_params": null, "ec_transfer_params": null, "token_offsets": null,
    }))
}

#[derive(Deserialize)]
struct Tokenize {
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    messages: Option<Vec<Json>>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    add_special_tokens: Option<bool>,
    #[serde(flatten)]
    template: chat::TemplateMembers,
    #[serde(default)]
    return_token_strs: Option<bool>,
}

pub(super) fn tokenize(state: &State, body: &[u8]) -> Result<Answer, Refusal> {
    let (request, model) = parse(state, body)?;
    let (request, model): (Tokenize, _) = (typed(request)?, &state.models[model]);
    let wants_strings = request.return_token_strs.unwrap_or(false);
    let tokens = request.tokens(model)?;
    let strings = wants_strings.then(|| {
        let text = |id: &u32| model.tokenizer().decode(&[*id]).unwrap_or_default();
        tokens.iter().map(text).collect::<Vec<_>>()
    });
    let answer = json!({"count": tokens.len(), "max_model_len": state.config.max_model_len, "tokens": tokens,
        "token_strs": strings});
    Ok(full(JSON, answer.to_string()))
}

impl Tokenize {
    fn tokens(self, model: &Model) -> Result<Vec<TokenId>, Refusal> {
        let Some(messages) = self.messages else {
            let Some(prompt) = self.prompt else {
                let why = "give either prompt or messages";
                return Err(Refusal::bad_request(why).about("prompt"));
            };
            let adds_special = self.add_special_tokens.unwrap_or(true);
            return Ok(model.tokenizer().encode_prompt(&prompt, adds_special));
        };
        let arguments = self.template.arguments()?;
        let conversation = chat::conversation(messages, self.tools.as_deref(), arguments)?;
        let mut tokens = model.templated(&conversation)?;
        if self.add_special_tokens == Some(true) {
            tokens = model.tokenizer().with_special(tokens);
        }
        Ok(tokens)
    }
}

#[derive(Deserialize)]
struct Detokenize {
    tokens: Vec<Json>,
}

pub(super) fn detokenize(state: &State, body: &[u8]) -> Result<Answer, Refusal> {
    let (request, model) = parse(state, body)?;
    let (request, model): (Detokenize, _) = (typed(request)?, &state.models[model]);
    let fault = |why: String| Refusal::bad_request(why).about("tokens");
    let ids: Option<Vec<u32>> = request.tokens.iter().map(token_id).collect();
    let ids = ids.ok_or_else(|| fault("tokens must be whole numbers of 32 bits".to_owned()))?;
    let prompt = model
        .tokenizer()
        .decode(&ids)
        .map_err(|id| fault(format!("token {id} is out of vocabulary")))?;
    Ok(full(JSON, json!({"prompt": prompt}).to_string()))
}
