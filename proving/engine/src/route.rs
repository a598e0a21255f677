//! From a request to its answer: path, key, body, model, and the dialect that answers.
//!
//! Invariant: under `/v1` nothing is read before the key was checked; every refusal has vLLM's shape.
//! Not here: what each dialect accepts and says, which paths there are (`table`), the engine's own pages (`admin`,
//! `pages`), a call's way through the engine (`call`), its count as HTTP (`metered`).

mod admin;
mod call;
mod metered;
mod pages;
mod table;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::chat::Chat;
use crate::completions::Completion;
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::faults::Fault;
use crate::json::Json;
use crate::messages::Messages;
use crate::pace::AnswerWriter;
use crate::plan::Overrides;
use crate::responses::Responses;
use crate::state::State;
use crate::{embeddings, scoring};
use call::Call;
use metered::InFlight;
use table::{Kind, Route};

const JSON: &str = "application/json";

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Answers one request. Never fails: a refusal is an answer.
pub(crate) async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let route = Route::of(path);
    let in_flight = InFlight::start(&state, &head, route);
    let is_api = path.starts_with("/v1/") || route.is_some_and(|r| r.kind == Kind::Model);
    let answered = if is_api {
        api(&state, &head, body).await
    } else {
        admin::answer(&state, &head, body).await
    };
    let answer = answered.unwrap_or_else(|refusal| refusal.into_response().map(whole));
    Ok(match in_flight {
        Some(in_flight) => in_flight.watch(answer),
        None => answer,
    })
}

/// The route of a call, if it may be called so.
fn routed(head: &Parts) -> Result<&'static Route, Refusal> {
    let route = Route::of(head.uri.path()).ok_or_else(|| Refusal::not_found("Not Found"))?;
    if route.allows(&head.method) {
        Ok(route)
    } else {
        Err(Refusal::method())
    }
}

async fn api(state: &Arc<State>, head: &Parts, body: Incoming) -> Result<Answer, Refusal> {
    let read = match authorize(state, head) {
        Ok(()) => whole_body(body, head, state.config.max_body_bytes).await,
        Err(refusal) => Err(refusal),
    };
    let seen = state
        .recorder
        .inspector()
        .map(|mut i| i.arrived(head, read.as_deref().unwrap_or_default()));
    state.recorder.metrics().received += 1;
    let answered = match read {
        Ok(body) => dispatch(state, head, &body, seen).await,
        Err(refusal) => Err(refusal),
    };
    state.recorder.metrics().refused += u64::from(answered.is_err());
    let status = answered
        .as_ref()
        .map_or_else(|refusal| refusal.status, Response::status);
    if let (Some(mut inspector), Some(seen)) = (state.recorder.inspector(), seen) {
        inspector.answered(seen, status.as_u16());
    }
    answered
}

/// As in vLLM, a key is needed under `/v1` alone.
fn authorize(state: &State, head: &Parts) -> Result<(), Refusal> {
    let Some(key) = &state.config.api_key else {
        return Ok(());
    };
    if !head.uri.path().starts_with("/v1/") {
        return Ok(());
    }
    let given = head
        .headers
        .get(AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let bearer = given
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    if bearer.is_some_and(|(_, token)| token == key) {
        Ok(())
    } else {
        Err(Refusal::unauthorized())
    }
}

async fn whole_body(body: Incoming, head: &Parts, limit: usize) -> Result<Bytes, Refusal> {
    let declared = head
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        return Err(Refusal::body_too_large(limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::body_too_large(limit)),
        Err(error) => Err(Refusal::bad_request(format!(
            "the request body could not be read: {error}"
        ))),
    }
}

async fn dispatch(
    state: &Arc<State>,
    head: &Parts,
    body: &[u8],
    seen: Option<u64>,
) -> Result<Answer, Refusal> {
    let path = head.uri.path();
    let route = routed(head)?;
    if route.kind != Kind::Model {
        return model_cards(state, path);
    }
    let prefix = match path {
        "/v1/chat/completions" => "chatcmpl-",
        "/v1/completions" => "cmpl-",
        "/v1/responses" => "resp_",
        "/v1/messages" => "msg_",
        "/v1/embeddings" => "embd-",
        "/score" | "/v1/score" => "score-",
        _ => "rerank-",
    };
    let fault = Fault::of(&head.headers, &mut state.injector())?;
    if let Some(wait) = fault.stall_head {
        tokio::time::sleep(wait).await;
    }
    if let Some(refusal) = fault.refusal() {
        return Err(refusal);
    }
    let overrides = Overrides::read(&head.headers)?;
    let (request, model) = parse(state, body)?;
    let who = state.identity(prefix, &state.config.models[model]);
    let call = Call {
        state,
        model,
        seen,
        client_request_id: client_request_id(state, head),
        id: who.id.clone(),
        fault,
    };
    let (config, served) = (&state.config, &state.models[model]);
    let (writer, streams): (Box<dyn AnswerWriter>, bool) = match path {
        "/v1/chat/completions" => boxed(Chat::admit(
            config,
            served,
            typed(request)?,
            who,
            overrides,
        )?),
        "/v1/completions" => boxed(Completion::admit(
            config,
            served,
            &typed(request)?,
            who,
            overrides,
        )?),
        "/v1/responses" => boxed(Responses::admit(
            config,
            served,
            typed(request)?,
            who,
            overrides,
        )?),
        "/v1/messages" => boxed(Messages::admit(
            config,
            served,
            typed(request)?,
            who,
            overrides,
        )?),
        "/v1/embeddings" => {
            let done = embeddings::answer(config, served, &typed(request)?, &who)?;
            return Ok(call.at_once(done));
        }
        "/score" | "/v1/score" => {
            let done = scoring::score(config, served, &typed(request)?, &who)?;
            return Ok(call.at_once(done));
        }
        _ => {
            let done = scoring::rerank(config, served, &typed(request)?, &who)?;
            return Ok(call.at_once(done));
        }
    };
    call.generate(writer, streams).await
}

/// The caller's name for the call, where the ground truth is kept.
fn client_request_id(state: &State, head: &Parts) -> Option<Box<str>> {
    state.config.ground_truth.as_ref()?;
    let id = head.headers.get("x-request-id")?;
    Some(crate::ground_truth::id(id.as_bytes()))
}

fn boxed<S: AnswerWriter + 'static>((writer, streams): (S, bool)) -> (Box<dyn AnswerWriter>, bool) {
    (Box::new(writer), streams)
}

fn model_cards(state: &State, path: &str) -> Result<Answer, Refusal> {
    let (config, created) = (&state.config, state.started_s);
    let body = match path.strip_prefix("/v1/models/") {
        None => list(config, created),
        Some(model) if config.models.iter().any(|m| m == model) => card(config, model, created),
        Some(model) => return Err(Refusal::unknown_model(model)),
    };
    Ok(full(JSON, body.to_string()))
}

/// The models served, in the order of the configuration.
fn list(config: &EngineConfig, created: u64) -> Value {
    let cards: Vec<Value> = config
        .models
        .iter()
        .map(|model| card(config, model, created))
        .collect();
    json!({"object": "list", "data": cards})
}

/// A model as vLLM prints it.
fn card(config: &EngineConfig, model: &str, created: u64) -> Value {
    json!({
        "id": model, "object": "model", "created": created, "owned_by": config.owned_by, "root": model,
        "parent": null, "max_model_len": config.max_model_len, "permission": [],
    })
}

/// The body as JSON (of two equal members the last counts, as in Python) and the index of its model.
fn parse(state: &State, body: &[u8]) -> Result<(Json, usize), Refusal> {
    let request: Json = serde_json::from_slice(body)
        .map_err(|e| Refusal::bad_request(format!("JSON decode error: {e}")))?;
    let models = &state.config.models;
    match request.get("model") {
        _ if request.as_object().is_none() => Err(Refusal::bad_request(
            "the request body must be a JSON object",
        )),
        None | Some(Json::Null) if !models.is_empty() => Ok((request, 0)),
        Some(Json::String(name)) => match models.iter().position(|m| m == name) {
            Some(index) => Ok((request, index)),
            None => Err(Refusal::unknown_model(name)),
        },
        _ => Err(Refusal::bad_request("model must be a string").about("model")),
    }
}

fn typed<T: DeserializeOwned>(request: Json) -> Result<T, Refusal> {
    request
        .into_typed()
        .map_err(|e| Refusal::bad_request(format!("validation error: {e}")))
}

fn full(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    typed_answer(content_type, whole(Full::new(body.into())))
}

fn whole(body: Full<Bytes>) -> UnsyncBoxBody<Bytes, io::Error> {
    body.map_err(|never| match never {}).boxed_unsync()
}

fn typed_answer(content_type: &'static str, body: UnsyncBoxBody<Bytes, io::Error>) -> Answer {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
