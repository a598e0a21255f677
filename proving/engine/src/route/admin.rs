//! What needs no key and is no part of OpenAI's API: health, metrics, and the engine's own pages.
//!
//! Invariant: pages under `/_engine/` that show what arrived are there only if the engine was told to keep it.
//! Not here: `/v1`, scores (the parent), `/tokenize` (`tokens`), what pages about the server say (`pages`).

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::table::{Inspection, Page};
use super::{Answer, JSON, full, pages, tokens, typed, whole_body};
use crate::config::VLLM_VERSION;
use crate::error::Refusal;
use crate::faults::{FaultInjector, FaultRequest};
use crate::json::Json;
use crate::real_time::Command;
use crate::state::State;

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
        Page::Tokenize => tokens::tokenize(state, &read().await?),
        Page::Detokenize => tokens::detokenize(state, &read().await?),
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
