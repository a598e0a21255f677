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
mod work;

use experiment::random::Rng;

use crate::error::Refusal;
use crate::json::Json;
use grammar::Grammar;
use pattern::Pattern;
pub(crate) use request::Asked;
use schema::Schema;
use work::Work;

/// What the text of an answer has to be.
#[derive(Debug)]
pub(crate) struct Constraint {
    allowed: Allowed,
    /// The member of the call that asks for it.
    about: &'static str,
    work: Work,
}

#[derive(Debug)]
enum Allowed {
    Json(Schema),
    Regex(Pattern),
    Choice(Vec<String>),
    Grammar(Grammar),
}

/// Steps of a byte of a text that was made: it is split into tokens.
const COST_OF_BYTE: usize = 20;
/// Times that a text is made anew before a constraint counts as one that nothing satisfies.
const MAX_ATTEMPTS: usize = 64;

impl Constraint {
    /// JSON of a schema. `about` is the member that holds it.
    pub(crate) fn json(schema: &Json, about: &'static str) -> Result<Self, Refusal> {
        let work = Work::new();
        let schema = Schema::new(schema, &work).map_err(|why| refuse(&why, about))?;
        Ok(Self::of(Allowed::Json(schema), about, work))
    }

    /// Any object.
    fn object(about: &'static str) -> Self {
        let kind = Json::String("object".to_owned());
        let schema = Schema::unchecked(Json::Object(vec![("type".to_owned(), kind)]));
        Self::of(Allowed::Json(schema), about, Work::new())
    }

    /// `work` is what reading it has left.
    fn of(allowed: Allowed, about: &'static str, work: Work) -> Self {
        Self {
            allowed,
            about,
            work,
        }
    }

    /// A text that satisfies it, the same for the same seed. Refused where none is found.
    pub(crate) fn text(&self, seed: u64) -> Result<String, Refusal> {
        let (mut rng, work) = (Rng::new(seed), &self.work);
        let made = match &self.allowed {
            Allowed::Json(schema) => {
                value::make(schema, &mut rng, work).map(|value| value.to_string())
            }
            Allowed::Regex(pattern) => (0..MAX_ATTEMPTS)
                .find_map(|_| pattern.make(&mut rng, work))
                .ok_or_else(|| match work.is_spent() {
                    true => Work::refusal(),
                    false => "no text was found that the regex matches".to_owned(),
                }),
            Allowed::Choice(all) => {
                let chosen = all.get(rng.below(all.len() as u64) as usize);
                Ok(chosen.cloned().unwrap_or_default())
            }
            Allowed::Grammar(grammar) => grammar.make(&mut rng, work),
        };
        let paid = |text: String| {
            let paid = work.spend(text.len() * COST_OF_BYTE);
            paid.map(|()| text).ok_or_else(Work::refusal)
        };
        made.and_then(paid).map_err(|why| refuse(&why, self.about))
    }
}

fn refuse(why: &str, about: &'static str) -> Refusal {
    Refusal::bad_request(why).about(about)
}

#[cfg(test)]
mod tests;
