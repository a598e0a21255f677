//! What needs no key and is no part of OpenAI's API: health, metrics, tokens, and the engine's own pages.
//!
//! Invariant: pages under `/_engine/` that show what arrived are there only if the engine was told to keep it.
//! Not here: `/v1`, scores (the parent), what pages about the server say (`pages`).

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::table::{Inspection, Page};
use super::{Answer, JSON, full, pages, parse, typed, whole_body};
use crate::completions::token_id;
use crate::config::VLLM_VERSION;
use crate::error::Refusal;
use crate::faults::{FaultInjector, FaultRequest};
use crate::json::Json;
use crate::real_time::Command;
use crate::render::Conversation;
use crate::state::State;
use crate::tools;
use crate::validate::{self, MEDIA_TOKENS, Message};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers a page; its method is one of its route.
pub(super) async fn answer(
    state: &Arc<State>,
    head: &Parts,
    body: Incoming,
    wanted: Page,
) -> Result<Answer, Refusal> {
    let read = || whole_body(body, head, state.config.max_body_bytes);
    let page = |page: Value| Ok(full(JSON, page.to_string()));
    match wanted {
        Page::Health => Ok(full(JSON, Bytes::new())),
        Page::Version => page(json!({"version": VLLM_VERSION})),
        Page::Metrics => Ok(full(PROMETHEUS, state.recorder.metrics().exposition())),
        Page::Load => page(json!({"server_load": state.recorder.metrics().http.load})),
        Page::ServerInfo => page(pages::server_info(state, head.uri.query())?),
        Page::TokenizerInfo => page(pages::tokenizer_info(state)?),
        Page::OpenApi => page(pages::openapi(state.config.inspect)),
        Page::ResetPrefixCache => page(json!({"reset": reset_prefix_cache(state).await})),
        Page::Tokenize => tokenize(state, &read().await?),
        Page::Detokenize => detokenize(state, &read().await?),
        Page::Faults => match head.method {
            Method::POST => {
                let request: FaultRequest = typed(parse_any(&read().await?)?)?;
                let injector = FaultInjector::new(&request).map_err(Refusal::bad_request)?;
                Ok(report(state, Some(injector)))
            }
            Method::DELETE => Ok(report(state, Some(FaultInjector::default()))),
            _ => Ok(report(state, None)),
        },
    }
}

/// Whether nothing is cached any more: as in vLLM it stays while blocks are in use.
async fn reset_prefix_cache(state: &State) -> bool {
    if state.config.hardware.is_none() {
        return true;
    }
    let (answer, answered) = oneshot::channel();
    // The machine ends with the server, and then nothing is cached.
    let _ = state.engine.send(Command::ResetPrefixCache(answer));
    answered.await.unwrap_or(true)
}

fn report(state: &State, new: Option<FaultInjector>) -> Answer {
    let mut injector = state.injector();
    if let Some(new) = new {
        *injector = new;
    }
    full(JSON, injector.report().to_string())
}

fn parse_any(body: &[u8]) -> Result<Json, Refusal> {
    serde_json::from_slice(body)
        .map_err(|e| Refusal::bad_request(format!("JSON decode error: {e}")))
}

/// Answers a page that shows what arrived, if it is kept.
pub(super) fn inspection(
    state: &State,
    method: &Method,
    wanted: Inspection,
) -> Result<Answer, Refusal> {
    let Some(mut inspector) = state.recorder.inspector() else {
        return Err(Refusal::not_found("Not Found"));
    };
    let body = match wanted {
        Inspection::Stats => json!(state.recorder.metrics().stats()),
        Inspection::Requests => {
            if *method == Method::DELETE {
                inspector.clear();
            }
            json!({"requests": inspector.requests()})
        }
    };
    Ok(full(JSON, body.to_string()))
}

#[derive(Deserialize)]
struct Tokenize {
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    messages: Option<Vec<Message>>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    reasoning_effort: Option<String>,
    #[serde(default)]
    return_token_strs: Option<bool>,
}

fn tokenize(state: &State, body: &[u8]) -> Result<Answer, Refusal> {
    let (request, model) = parse(state, body)?;
    let (request, model): (Tokenize, _) = (typed(request)?, &state.models[model]);
    let tokens = match (request.prompt, request.messages) {
        (Some(prompt), None) => model.tokenizer().encode(&prompt),
        (None, Some(messages)) => {
            let harmony = model.format.is_harmony();
            let parsed = validate::messages(messages, harmony)?;
            let tools = tools::offered(request.tools.as_deref())?;
            let effort = crate::chat::effort(request.reasoning_effort.as_deref(), harmony)?;
            let mut prompt = model.prompt(&Conversation {
                messages: parsed.messages,
                tools,
                effort,
            })?;
            prompt.extend(std::iter::repeat_n(0, parsed.media * MEDIA_TOKENS));
            prompt
        }
        _ => return Err(Refusal::bad_request("give either prompt or messages").about("prompt")),
    };
    let strings = request.return_token_strs.unwrap_or(false).then(|| {
        let text = |id: &u32| model.tokenizer().decode(&[*id]).unwrap_or_default();
        tokens.iter().map(text).collect::<Vec<_>>()
    });
    let answer = json!({"count": tokens.len(), "max_model_len": state.config.max_model_len, "tokens": tokens,
        "token_strs": strings});
    Ok(full(JSON, answer.to_string()))
}

#[derive(Deserialize)]
struct Detokenize {
    tokens: Vec<Json>,
}

fn detokenize(state: &State, body: &[u8]) -> Result<Answer, Refusal> {
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
