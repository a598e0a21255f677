//! Models that a call names besides its own, and that its provider asks, too: those of tools that are models (Anthropic's advisor,
//! OpenAI's `image_generation`, OpenRouter's tools and plugins), those to turn to next (OpenRouter's `models`, LiteLLM's `fallbacks`,
//! Vercel's `providerOptions.gateway.models`), those of a compound (Groq) or of a guard (Together), the one that Vertex AI routes to, an
//! adapter that an engine answers with in its model's place (SGLang, TensorRT-LLM), and a `preset` that says which model it is
//! (OpenRouter). Items of a response that goes on (`input` of Responses) may hold tools, too.
//!
//! Invariant: a name is compared as it reads, however it is escaped and in whatever letters it is written. What stands in a schema, an
//! example or a header is the caller's own text, and names nothing.
//! Not here: whether they may be named (`policy`), the call's own model (`head`), models of the requests that a call holds
//! (`inner_models`), the grammar, which the body has passed (`json`).

use super::cursor::Cursor;
use super::stored::may_name;
use crate::dialect::model_name;
use crate::json::{is_spelling, unescape};

/// A model that a call names besides its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Besides {
    /// The member of the body in which it is named.
    pub member: &'static str,
    /// Its name; [`UNREADABLE`](Self::UNREADABLE) for what can be none.
    pub model: Box<str>,
}

impl Besides {
    /// In the place of a name that no model can have.
    pub const UNREADABLE: &'static str = "(unreadable)";
}

/// Members of a body in which models may be named, and of Google's bodies those of [`OF_GOOGLE`].
pub(super) const MEMBERS: &[&str] = &[
    "tools",
    "models",
    "plugins",
    "fallbacks",
    "context_window_fallbacks",
    "content_policy_fallbacks",
    "context_window_fallback_dict",
    "safety_model",
    "compound_custom",
    "providerOptions",
    "provider_options",
    "lora_path",
    "lora_request",
    "preset",
    "extra_body",
    "model_list",
    "user_config",
];
const OF_GOOGLE: &[&str] = &["generationConfig", "generation_config"];
/// And of Responses the items: most have no tools, and nobody watches for them.
const OF_RESPONSES: &[&str] = &["input"];

/// Names under which a text, or a list of texts, names models.
const NAMES: &[&str] = &[
    "model",
    "models",
    "model_id",
    "model_name",
    "modelName",
    "analysis_models",
    "allowed_models",
    "answering_model",
    "reasoning_model",
    "safety_model",
];

/// Names under which each text is a model, also in an object or a list of them, whatever it is called there.
const MAPS: &[&str] = &[
    "context_window_fallbacks",
    "content_policy_fallbacks",
    "context_window_fallback_dict",
    "lora_name",
    "lora_path",
    "lora_request",
    "preset",
];

/// Models to turn to next: by name, in requests of their own, or in a list for each other model.
const FALLBACKS: &str = "fallbacks";

/// How such a name ends, in lower case.
const HINTS: &[&str] = &[
    "model\"",
    "models\"",
    "model_id\"",
    "model_name\"",
    "modelname\"",
    "fallbacks\"",
    "fallback_dict\"",
    "lora_name\"",
    "lora_path\"",
    "lora_request\"",
    "preset\"",
];

/// What stands under one of these is the caller's own.
const FREE: &[&str] = &[
    "$defs",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "enum",
    "examples",
    "headers",
    "input_examples",
    "input_schema",
    "items",
    "metadata",
    "oneOf",
    "output_schema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "patternProperties",
    "properties",
    "responseJsonSchema",
    "responseSchema",
    "response_json_schema",
    "response_schema",
    "schema",
];

/// The most models that are kept of one call; one that names more has [`Besides::UNREADABLE`] among them.
const MODELS_LIMIT: usize = 64;

/// The models that a whole body names besides the call's own, each once.
pub(super) fn named(body: &[u8]) -> Vec<Besides> {
    let mut found = Vec::new();
    let mut document = Cursor { text: body, at: 0 };
    document.next();
    document.at += 1;
    loop {
        match document.next() {
            Some(b'"') => {
                let name = unescape(document.string()).unwrap_or_default();
                document.next();
                document.at += 1;
                let value = document.value();
                let mut members = MEMBERS.iter().chain(OF_GOOGLE).chain(OF_RESPONSES);
                let watched = members.find(|known| is_spelling(name.as_bytes(), known.as_bytes()));
                if let Some(member) = watched {
                    look(member, value, &mut found);
                }
            }
            Some(b',') => document.at += 1,
            _ => return found,
        }
    }
}

/// Looks for models in the value of this member of the body.
fn look(member: &'static str, value: &[u8], found: &mut Vec<Besides>) {
    let next = Holds::under(member);
    if next == Holds::Other && !may_name(value, HINTS) {
        return;
    }
    let mut walk = Walk {
        cursor: Cursor { text: value, at: 0 },
        open: Vec::new(),
        next,
    };
    while let Some(raw) = walk.next_model() {
        keep(member, raw, found);
    }
}

fn keep(member: &'static str, raw: &[u8], found: &mut Vec<Besides>) {
    if raw.is_empty() || found.len() > MODELS_LIMIT {
        return;
    }
    let text = unescape(raw).unwrap_or_default();
    let model = match model_name(text.as_bytes()) {
        Some(name) if found.len() < MODELS_LIMIT => name,
        _ => Besides::UNREADABLE,
    };
    if !found.iter().any(|known| *known.model == *model) {
        let model = model.into();
        found.push(Besides { member, model });
    }
}

fn is_one_of(list: &[&str], name: &[u8]) -> bool {
    let mut list = list.iter();
    list.any(|known| is_spelling(name, known.as_bytes()))
}

/// What a value is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Members that name models, to any depth.
    Other,
    /// A model, or a list of them.
    Model,
    /// For each of its names a model or a list of them; or a list of such objects, or of models.
    Map,
    /// A model, a request that names one, or for each of its names a list of models; or a list of these.
    Fallback,
    /// A list of models, and nothing else that is one.
    Listed,
}

impl Holds {
    fn under(name: &str) -> Self {
        if is_one_of(NAMES, name.as_bytes()) {
            Self::Model
        } else if is_one_of(MAPS, name.as_bytes()) {
            Self::Map
        } else if is_spelling(name.as_bytes(), FALLBACKS.as_bytes()) {
            Self::Fallback
        } else {
            Self::Other
        }
    }
}

/// A container whose end has not come.
enum Open {
    /// What each of its values is read for.
    List(Holds),
    /// What each of its values is read for, where that does not follow from its name.
    Object(Option<Holds>),
}

/// Goes through a value for texts that are names of models.
struct Walk<'a> {
    cursor: Cursor<'a>,
    open: Vec<Open>,
    /// What the value that comes next is read for.
    next: Holds,
}

impl<'a> Walk<'a> {
    /// The next text that names a model, without its quotes.
    fn next_model(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(Open::List(each)) = self.open.last() {
                self.next = *each;
            }
            match self.cursor.next()? {
                b'"' => {
                    let raw = self.cursor.string();
                    if self.cursor.next() == Some(b':') {
                        self.cursor.at += 1;
                        self.enter(raw);
                    } else {
                        match std::mem::replace(&mut self.next, Holds::Other) {
                            Holds::Other | Holds::Listed => {}
                            Holds::Model | Holds::Map | Holds::Fallback => return Some(raw),
                        }
                    }
                    continue;
                }
                b'[' => self.open.push(Open::List(match self.next {
                    Holds::Listed => Holds::Model,
                    next => next,
                })),
                b'{' => self.open.push(Open::Object(match self.next {
                    Holds::Map => Some(Holds::Model),
                    Holds::Fallback => Some(Holds::Listed),
                    Holds::Other | Holds::Model | Holds::Listed => None,
                })),
                b'}' | b']' => {
                    self.open.pop();
                }
                _ => {}
            }
            self.next = Holds::Other;
            self.cursor.at += 1;
        }
    }

    /// A member of this name follows.
    fn enter(&mut self, raw: &[u8]) {
        let name = unescape(raw).unwrap_or_default();
        self.next = match (self.open.last(), Holds::under(&name)) {
            // A request says its model by name.
            (Some(Open::Object(Some(Holds::Listed))), Holds::Other) => Holds::Listed,
            (Some(Open::Object(Some(Holds::Model))), _) => Holds::Model,
            (_, by_name) => by_name,
        };
        if self.next == Holds::Other && FREE.contains(&&*name) {
            self.cursor.value();
        }
    }
}

#[cfg(test)]
mod tests;
