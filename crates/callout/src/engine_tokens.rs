//! What an engine says that a prompt counts, as vLLM 0.32 can be asked: nothing is generated.
//!
//! | question | what it sees |
//! |---|---|
//! | `{api}/{call}/render` | the call as it is; only with `--enable-scale-out` |
//! | `{api}/messages/count_tokens` | calls of Anthropic's dialect |
//! | `{root}/tokenize` | plain text, and what a chat template is given |
//!
//! The root is the API's without its `/v1`. A way that an engine has not for a model (404, 403, 405, 501) is not tried
//! again for it; one whose answer is no count is not tried again at all, since who answers may be no such engine, and may
//! have generated. For that case a question to `render` has a bound of its answer, which is no part of the prompt.
//! Invariant: `tokenize` is never given a conversation for Harmony, which it would render by another template, nor a
//! call with a member that it passes over. Only the place that was given is asked, and no redirect is followed.
//! Not here: which calls are asked for, and what is made of the answers (the host).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use policy::operation::Operation;
use policy::secret::Secret;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::client::{Call, Client, Reply, secret_value};
use crate::fault::Fault;
use crate::questions::Questions;
use crate::url::{Url, UrlFault};

/// The longest answer: the numbers of 100,000 tokens and more.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Models of an engine that are looked at.
const MODELS_MAX: usize = 64;
/// The longest name of a model.
const MODEL_BYTES_MAX: usize = 256;
/// What `tokenize` reads of a text, and of a conversation.
const OF_TEXT: [&str; 2] = ["prompt", "add_special_tokens"];
const OF_CONVERSATION: [&str; 6] = [
    "messages",
    "tools",
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "chat_template_kwargs",
];

/// Where an engine is asked, and what it is sent with each question.
#[derive(Debug, Clone)]
pub struct EnginePlace {
    /// Its API root, such as `http://engine:8000/v1`.
    pub api: Url,
    /// Headers, names in lower case; the gate's credential is one of them.
    pub headers: Vec<(String, Secret)>,
    /// What stands in the query of each request; mostly nothing.
    pub query: String,
}

/// A way to ask for a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskedBy {
    /// `…/render`: the prompt's tokens, made as for the call itself.
    Render,
    /// `…/messages/count_tokens`.
    CountTokens,
    /// `/tokenize`.
    Tokenize,
}

impl AskedBy {
    /// As it is shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Render => "render",
            Self::CountTokens => "count_tokens",
            Self::Tokenize => "tokenize",
        }
    }
}

/// A call whose prompt is to be counted.
#[derive(Debug, Clone, Copy)]
pub struct EngineQuestion<'q> {
    /// As the engine calls it.
    pub model: &'q str,
    /// Whose body it is.
    pub operation: Operation,
    /// A JSON object that has a member and no `model`.
    pub body: &'q str,
    /// The model's prompts are Harmony's.
    pub is_harmony: bool,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineSays {
    /// A count.
    Counts(EngineCount),
    /// It takes no such call (400, 413, 422), or fails on it (500): one in trouble fails on the other questions, too, and is
    /// compared in none.
    Refuses,
    /// There is no way to ask it this.
    Nothing,
}

/// A count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineCount {
    /// Of the prompt.
    pub tokens: u64,
    /// Their numbers, where it says.
    pub ids: Vec<u32>,
    /// How it was asked.
    pub by: AskedBy,
    /// The most tokens of a prompt and its answer, where it says.
    pub model_length: Option<u64>,
}

/// A model that an engine serves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EngineModel {
    /// As the engine calls it.
    pub id: String,
}

/// Asks one engine.
pub struct EngineTokens {
    client: Client,
    place: EnginePlace,
    questions: Arc<Questions>,
    lacks: Mutex<Lacks>,
}

/// What an engine turned out not to have.
#[derive(Default)]
struct Lacks {
    /// Ways that led to what is no count.
    ways: BTreeSet<AskedBy>,
    /// Ways that it has not for calls of an API and a model: a status does not tell an unknown path from an unknown model.
    calls: BTreeSet<(AskedBy, &'static str, String)>,
}

impl Lacks {
    fn has(&self, call: &(AskedBy, &'static str, String)) -> bool {
        self.ways.contains(&call.0) || self.calls.contains(call)
    }
}

impl EngineTokens {
    /// One that has asked nothing yet; questions are counted there.
    #[must_use]
    pub fn new(client: Client, place: EnginePlace, questions: Arc<Questions>) -> Self {
        Self {
            client,
            place,
            questions,
            lacks: Mutex::default(),
        }
    }

    /// What a call's prompt counts, by the first way that it has.
    ///
    /// # Errors
    /// [`Fault`] where it cannot be asked now.
    pub async fn count(&self, question: &EngineQuestion<'_>) -> Result<EngineSays, Fault> {
        for (by, path) in self.ways(question) {
            let operation = question.operation.as_str();
            let call = (by, operation, question.model.to_owned());
            if self.lacks().has(&call) {
                continue;
            }
            let added = match by {
                AskedBy::Render => bound_of_answer(question),
                AskedBy::CountTokens | AskedBy::Tokenize => None,
            };
            let body = named(question.model, added, question.body)?;
            let counted = match self.post(&path, body).await {
                Ok(reply) => match reply.status {
                    StatusCode::NOT_FOUND
                    | StatusCode::FORBIDDEN
                    | StatusCode::METHOD_NOT_ALLOWED
                    | StatusCode::NOT_IMPLEMENTED => {
                        self.lacks().calls.insert(call);
                        continue;
                    }
                    StatusCode::BAD_REQUEST
                    | StatusCode::UNPROCESSABLE_ENTITY
                    | StatusCode::PAYLOAD_TOO_LARGE
                    | StatusCode::INTERNAL_SERVER_ERROR => {
                        return Ok(EngineSays::Refuses);
                    }
                    _ => body_of(&reply).and_then(|body| read(by, body)),
                },
                Err(fault) => Err(fault),
            };
            match counted {
                Err(Fault::Garbage(_) | Fault::Large(_)) => {
                    self.lacks().ways.insert(by);
                }
                counted => return counted.map(EngineSays::Counts),
            }
        }
        Ok(EngineSays::Nothing)
    }

    /// The text of tokens; none where it cannot be asked for it.
    ///
    /// # Errors
    /// [`Fault`] where it cannot be asked now, or answers with what is no text.
    pub async fn text(&self, model: &str, ids: &[u32]) -> Result<Option<String>, Fault> {
        #[derive(Deserialize)]
        struct Detokenized {
            prompt: String,
        }
        let body = serde_json::json!({ "model": model, "tokens": ids }).to_string();
        let path = format!("{}/detokenize", self.root());
        let reply = self.post(&path, body).await?;
        if reply.status != StatusCode::OK {
            return Ok(None);
        }
        let read = serde_json::from_slice::<Detokenized>(body_of(&reply)?);
        let read = read.map_err(|_| Fault::Garbage("it has no text in its member prompt"))?;
        Ok(Some(read.prompt))
    }

    /// The models that it serves; none where it does not say.
    ///
    /// # Errors
    /// [`Fault`] where it cannot be asked now, or answers with what is no list of models.
    pub async fn models(&self) -> Result<Vec<EngineModel>, Fault> {
        #[derive(Deserialize)]
        struct Models {
            data: Vec<EngineModel>,
        }
        let path = format!("{}/models", self.api());
        let reply = self.send(Method::GET, &path, String::new()).await?;
        if reply.status != StatusCode::OK {
            return Ok(Vec::new());
        }
        let read = serde_json::from_slice::<Models>(body_of(&reply)?);
        let mut models = read
            .map_err(|_| Fault::Garbage("it is not a list of models"))?
            .data;
        models.retain(|model| model.id.len() <= MODEL_BYTES_MAX);
        models.truncate(MODELS_MAX);
        Ok(models)
    }

    /// How a call can be asked for, the most truthful way first.
    fn ways(&self, question: &EngineQuestion<'_>) -> Vec<(AskedBy, String)> {
        let api = self.api();
        let call = match question.operation {
            Operation::Chat => Some("chat/completions"),
            Operation::Completions => Some("completions"),
            Operation::Responses => Some("responses"),
            Operation::Messages => Some("messages"),
            _ => None,
        };
        let mut ways: Vec<_> = call
            .map(|call| (AskedBy::Render, format!("{api}/{call}/render")))
            .into_iter()
            .collect();
        if question.operation == Operation::Messages {
            ways.push((AskedBy::CountTokens, format!("{api}/messages/count_tokens")));
        }
        let is_seen = match question.operation {
            Operation::Completions => has_only(question.body, &OF_TEXT),
            Operation::Chat if question.is_harmony => false,
            Operation::Chat => has_only(question.body, &OF_CONVERSATION),
            _ => false,
        };
        if is_seen {
            ways.push((AskedBy::Tokenize, format!("{}/tokenize", self.root())));
        }
        ways
    }

    /// The path of its API, without a slash at its end.
    fn api(&self) -> &str {
        let target = self.place.api.target();
        let path = target.split('?').next().unwrap_or_default();
        path.trim_end_matches('/')
    }

    /// The path of what stands beside its API.
    fn root(&self) -> &str {
        api_root(self.api())
    }

    async fn post(&self, path: &str, body: String) -> Result<Reply, Fault> {
        self.send(Method::POST, path, body).await
    }

    async fn send(&self, method: Method, path: &str, body: String) -> Result<Reply, Fault> {
        let sent = self.sent(method, path, body).await;
        self.questions.note(sent.is_ok());
        sent
    }

    async fn sent(&self, method: Method, path: &str, body: String) -> Result<Reply, Fault> {
        let target = match self.place.query.as_str() {
            "" => path.to_owned(),
            query => format!("{path}?{query}"),
        };
        let unaskable = |_: UrlFault| Fault::Unaskable("its path");
        let url = self.place.api.at(&target).map_err(unaskable)?;
        let mut call = Call::new(method, &url, ANSWER_BYTES_MAX);
        call.headers = self.headers()?;
        call.body = Bytes::from(body);
        self.client.send(&call).await
    }

    fn headers(&self) -> Result<HeaderMap, Fault> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.place.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let name = name.map_err(|_| Fault::Unaskable("a header's name"))?;
            headers.insert(name, secret_value(value.expose())?);
        }
        let kind = HeaderValue::from_static("application/json");
        headers.insert(ACCEPT, kind.clone());
        headers.insert(CONTENT_TYPE, kind);
        Ok(headers)
    }

    fn lacks(&self) -> MutexGuard<'_, Lacks> {
        self.lacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path of an API without its `/v1`: what stands beside it is of the same engine.
#[must_use]
pub fn api_root(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.strip_suffix("/v1").unwrap_or(path)
}

/// A body with the model's name and a member more.
fn named(model: &str, added: Option<(&str, u64)>, body: &str) -> Result<String, Fault> {
    let rest = body.trim_start().strip_prefix('{');
    let rest = rest.ok_or(Fault::Unaskable("its body is no object"))?;
    let model = Value::from(model);
    Ok(match added {
        Some((name, value)) => format!("{{\"model\":{model},\"{name}\":{value},{rest}"),
        None => format!("{{\"model\":{model},{rest}"),
    })
}

/// The least answer that may be asked for, where a call does not bound it: templates are not given it, and with one
/// token no prompt that fits without is too long.
fn bound_of_answer(question: &EngineQuestion<'_>) -> Option<(&'static str, u64)> {
    let (name, least) = match question.operation {
        Operation::Chat | Operation::Completions | Operation::Messages => ("max_tokens", 1),
        // Providers refuse less.
        Operation::Responses => ("max_output_tokens", 16),
        _ => return None,
    };
    let members = members(question.body)?;
    let is_bound = members.contains_key(name) || members.contains_key("max_completion_tokens");
    (!is_bound).then_some((name, least))
}

/// Whether an object has no members but these.
fn has_only(body: &str, known: &[&str]) -> bool {
    members(body).is_some_and(|members| members.keys().all(|name| known.contains(&name.as_str())))
}

/// The members of an object.
fn members(body: &str) -> Option<BTreeMap<String, IgnoredAny>> {
    serde_json::from_str(body).ok()
}

fn body_of(reply: &Reply) -> Result<&[u8], Fault> {
    let body = reply.good(&["application/json"], "it is not application/json")?;
    Ok(body)
}

/// What says a count, whichever way it was asked.
#[derive(Deserialize)]
struct Counted {
    count: Option<u64>,
    input_tokens: Option<u64>,
    #[serde(default)]
    tokens: Vec<u32>,
    token_ids: Option<Vec<u32>>,
    max_model_len: Option<u64>,
}

fn read(by: AskedBy, body: &[u8]) -> Result<EngineCount, Fault> {
    let garbage = |_| Fault::Garbage("it is not JSON of the form that says a count");
    // A text completion has several prompts, which are rendered one by one.
    let all: Vec<Counted> = match body.trim_ascii_start().first() {
        Some(b'[') => serde_json::from_slice(body).map_err(garbage)?,
        _ => vec![serde_json::from_slice(body).map_err(garbage)?],
    };
    let none = Fault::Garbage("it says no count");
    if all.is_empty() {
        return Err(none);
    }
    let (mut tokens, mut ids, mut model_length) = (0_u64, Vec::new(), None);
    for one in all {
        let (count, of) = match by {
            AskedBy::Render => {
                let of = one.token_ids.ok_or(none.clone())?;
                (of.len() as u64, of)
            }
            AskedBy::CountTokens => (one.input_tokens.ok_or(none.clone())?, Vec::new()),
            AskedBy::Tokenize => (one.count.ok_or(none.clone())?, one.tokens),
        };
        if !of.is_empty() && of.len() as u64 != count {
            return Err(Fault::Garbage("its count is not that of its tokens"));
        }
        tokens = tokens.saturating_add(count);
        ids.extend(of);
        model_length = model_length.or(one.max_model_len);
    }
    Ok(EngineCount {
        tokens,
        ids,
        by,
        model_length,
    })
}

impl fmt::Debug for EngineTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api = (self.place.api.authority(), self.place.api.target());
        f.debug_tuple("EngineTokens").field(&api).finish()
    }
}

#[cfg(test)]
mod tests;
