//! Structured outputs: text that a JSON Schema, a regular expression, a list of choices or a grammar allows.
//!
//! What is supported is what vLLM's default backend, xgrammar, compiles; what it does not is refused, and the refusal
//! names the keyword and its place.
//! Invariant: text that comes out satisfies all of what was asked for: it is checked by [`accepts`] and made again if it
//! does not. Work is bounded, whatever the schema: past a bound the call is refused.
//! Not here: which calls ask for it how (`request`), making a value (`value`), strings (`pattern`), grammars (`grammar`).

mod accepts;
mod grammar;
mod node;
mod pattern;
mod request;
mod schema;
mod value;

use experiment::random::Rng;

use crate::error::Refusal;
use crate::json::Json;
use grammar::Grammar;
use pattern::Pattern;
pub(crate) use request::Asked;
use schema::Schema;

/// What the text of an answer has to be.
#[derive(Debug)]
pub(crate) enum Constraint {
    Json(Schema),
    Regex(Pattern),
    Choice(Vec<String>),
    Grammar(Grammar),
}

/// Times that a text is made anew before a constraint counts as one that nothing satisfies.
const MAX_ATTEMPTS: usize = 64;

impl Constraint {
    /// JSON of a schema. `about` is the member that holds it.
    pub(crate) fn json(schema: &Json, about: &'static str) -> Result<Self, Refusal> {
        let schema = Schema::new(schema.clone());
        Ok(Self::Json(schema.map_err(|why| refuse(&why, about))?))
    }

    /// Any object.
    pub(crate) fn object() -> Self {
        let kind = Json::String("object".to_owned());
        Self::Json(Schema::unchecked(Json::Object(vec![(
            "type".to_owned(),
            kind,
        )])))
    }

    /// A text that satisfies it, the same for the same seed. Refused where none is found.
    pub(crate) fn text(&self, seed: u64) -> Result<String, Refusal> {
        let mut rng = Rng::new(seed);
        match self {
            Self::Json(schema) => value::make(schema, &mut rng)
                .map(|value| value.to_string())
                .map_err(|why| refuse(&why, "response_format")),
            Self::Regex(pattern) => (0..MAX_ATTEMPTS)
                .find_map(|_| pattern.make(&mut rng))
                .ok_or_else(|| refuse("no text was found that the regex matches", "regex")),
            Self::Choice(all) => {
                let chosen = all.get(rng.below(all.len() as u64) as usize);
                Ok(chosen.cloned().unwrap_or_default())
            }
            Self::Grammar(grammar) => grammar
                .make(&mut rng)
                .map_err(|why| refuse(&why, "grammar")),
        }
    }
}

fn refuse(why: &str, about: &'static str) -> Refusal {
    Refusal::bad_request(why).about(about)
}

#[cfg(test)]
mod tests;
