//! From a request to its answer: path, key, body, model, and the dialect that answers.
//!
//! Invariant: under `/v1` nothing is read before the key was checked; every refusal has vLLM's shape.
//! Not here: what each dialect accepts and says, which paths there are (`table`), the engine's own pages (`admin`,
//! `pages`), tokens without an answer (`tokens`), a call's way through the engine (`call`), its count as HTTP (`metered`).

mod admin;
mod call;
mod metered;
mod pages;
mod table;
mod tokens;

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
use crate::generation::Identity;
use crate::json::Json;
use crate::messages::Messages;
use crate::pace::AnswerWriter;
use crate::plan::Overrides;
use crate::responses::Responses;
use crate::state::State;
use crate::{embeddings, scoring};
use call::Call;
use metered::InFlight;
use table::{Api, Operation, Route, Work};

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
    let allowed = match route {
        None => Err(Refusal::not_found("Not Found")),
        Some(route) if !route.allows(&head.method) => Err(Refusal::method()),
        Some(route) => Ok(route.operation),
    };
    let is_api =
        path.starts_with("/v1/") || matches!(route.map(|r| r.operation), Some(Operation::Api(_)));
    let answered = match allowed {
        Ok(Operation::Page(page)) => admin::answer(&state, &head, body, page).await,
        Ok(Operation::Inspection(page)) => admin::inspection(&state, &head.method, page),
        Ok(Operation::Api(operation)) => api(&state, &head, body, Ok(operation)).await,
        Err(refusal) if is_api => api(&state, &head, body, Err(refusal)).await,
        Err(refusal) => Err(refusal),
    };
    let answer = answered.unwrap_or_else(|refusal| refusal.into_response().map(whole));
    Ok(match in_flight {
        Some(in_flight) => in_flight.watch(answer),
        None => answer,
    })
}

/// Answers a call of the API: its operation, or why it has none, which only those are told who have the key.
async fn api(
    state: &Arc<State>,
    head: &Parts,
    body: Incoming,
    operation: Result<Api, Refusal>,
) -> Result<Answer, Refusal> {
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
        Ok(body) => match operation {
            Ok(Api::Models) => model_cards(state, head.uri.path()),
            Ok(Api::Tokens(asked)) => tokens::of_call(state, &body, asked),
            Ok(Api::Work(work)) => perform(state, head, &body, seen, work).await,
            Err(refusal) => Err(refusal),
        },
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

/// Has a model do its work: faults that are asked for first, then the call's admission, then its answer.
async fn perform(
    state: &Arc<State>,
    head: &Parts,
    body: &[u8],
    seen: Option<u64>,
    work: Work,
) -> Result<Answer, Refusal> {
    let fault = Fault::of(&head.headers, &mut state.injector())?;
    if let Some(wait) = fault.stall_head {
        tokio::time::sleep(wait).await;
    }
    if let Some(refusal) = fault.refusal() {
        return Err(refusal);
    }
    let overrides = Overrides::read(&head.headers)?;
    let (request, model) = parse(state, body)?;
    let who = state.identity(work.prefix(), &state.config.models[model]);
    let call = Call {
        state,
        model,
        seen,
        client_request_id: client_request_id(state, head),
        id: who.id.clone(),
        fault,
    };
    match admit(state, model, request, who, overrides, work)? {
        Admitted::Paced(writer, streams) => call.generate(writer, streams).await,
        Admitted::AtOnce(done) => Ok(call.at_once(done)),
    }
}

/// What an admitted call is answered by.
enum Admitted {
    /// Tokens at their pace, and whether as a stream.
    Paced(Box<dyn AnswerWriter>, bool),
    /// An answer for which none is generated, and the tokens that it took.
    AtOnce((Value, u64)),
}

fn admit(
    state: &State,
    model: usize,
    request: Json,
    who: Identity,
    overrides: Overrides,
    work: Work,
) -> Result<Admitted, Refusal> {
    let (config, model) = (&state.config, &state.models[model]);
    Ok(match work {
        Work::Chat => paced(Chat::admit(config, model, typed(request)?, who, overrides)?),
        Work::Completions => {
            let request = typed(request)?;
            paced(Completion::admit(config, model, &request, who, overrides)?)
        }
        Work::Responses => {
            let request = typed(request)?;
            paced(Responses::admit(config, model, request, who, overrides)?)
        }
        Work::Messages => {
            let request = typed(request)?;
            paced(Messages::admit(config, model, request, who, overrides)?)
        }
        Work::Embeddings => {
            let request = typed(request)?;
            Admitted::AtOnce(embeddings::answer(config, model, &request, &who)?)
        }
        Work::Score => Admitted::AtOnce(scoring::score(config, model, &typed(request)?, &who)?),
        Work::Rerank => Admitted::AtOnce(scoring::rerank(config, model, &typed(request)?, &who)?),
    })
}

fn paced<S: AnswerWriter + 'static>((writer, streams): (S, bool)) -> Admitted {
    Admitted::Paced(Box::new(writer), streams)
}

/// The caller's name for the call, where the ground truth is kept.
fn client_request_id(state: &State, head: &Parts) -> Option<Box<str>> {
    state.config.ground_truth.as_ref()?;
    let id = head.headers.get("x-request-id")?;
    Some(crate::ground_truth::id(id.as_bytes()))
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
