//! Rules in Rego, the language of Open Policy Agent, by the crate `regorus`: read and checked when loaded.
//!
//! Invariant: allowed is what the query answers with `true`; `false`, any other value, no value and an error refuse.
//! A policy sees its input and nothing else: built-in functions are those of `functions`, and a policy that names another
//! does not load. An error of one is an error of all, as with OPA's `--strict-builtin-errors`. A decision takes at most [`STEPS_MAX`] steps, and its
//! functions at most [`FUNCTION_STEPS_MAX`] and [`BYTES_MADE_MAX`]. Each thread has an interpreter of its own.
//! Not here: the facts as a document (`facts`).

mod calls;
mod cost;
mod facts;
mod functions;
mod machine;
mod meter;
mod outline;
mod regular;
#[cfg(test)]
mod tests;
mod watched;

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use policy::authority::{Asked, Decision, Rules};
use regorus::Value;

use self::facts::Needs;
use self::machine::Policy;
pub use self::meter::{BYTES_MADE_MAX, FUNCTION_STEPS_MAX};
use crate::Fault;

/// The longest module, bytes.
pub const MODULE_BYTES_MAX: usize = 64 << 10;
/// The most modules of one policy.
pub const MODULES_MAX: usize = 64;
/// How deep brackets nest in a module.
pub const DEPTH_MAX: usize = 10;
/// How long a chain of operators, selections and indices is: `a.b.c`, `1 + 2 + 3`.
pub const CHAIN_MAX: usize = 100;
/// The most rules that a policy makes use of.
pub const RULES_MAX: usize = 256;
/// The most steps that one decision takes: about one for each expression and each turn of a loop.
pub const STEPS_MAX: NonZeroU32 = NonZeroU32::MIN.saturating_add(100_000 - 1);

/// The names of the functions that a policy may call.
pub fn functions() -> impl Iterator<Item = &'static str> {
    functions::names()
}

/// Compiles modules, each with its name, and the query that decides, such as `data.tollgate.allow`.
///
/// # Errors
///
/// Every module that cannot be read, or what is wrong with them together.
pub fn compile(modules: &[(&str, &str)], query: &str) -> Result<Arc<dyn Rules>, Vec<Fault>> {
    let faults = outline::faults(modules, query);
    if !faults.is_empty() {
        return Err(faults);
    }
    let texts = modules.iter().map(|(_, text)| *text);
    let needs = Needs::of(texts);
    let owned = |(name, text): &(&str, &str)| (Box::from(*name), Box::from(*text));
    let policy = Policy::new(modules.iter().map(owned).collect(), query)?;
    Ok(Arc::new(RuleSet {
        query: Arc::from(query),
        policy,
        needs,
    }))
}

#[derive(Debug)]
struct RuleSet {
    query: Arc<str>,
    policy: Policy,
    needs: Needs,
}

impl Rules for RuleSet {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        let input = |names: &[Value]| facts::input(asked, &self.needs, names);
        let answer = self.policy.answer(input);
        let why = match answer {
            Ok(Value::Bool(true)) => {
                return Decision {
                    allowed: true,
                    by: Some(Arc::clone(&self.query)),
                    why: None,
                };
            }
            Ok(Value::Bool(false)) => None,
            Ok(Value::Undefined) => Some(Cow::Owned(format!("{} is undefined", self.query))),
            Ok(_) => Some(Cow::Owned(format!(
                "{} is neither true nor false",
                self.query
            ))),
            Err(why) => Some(why),
        };
        Decision {
            allowed: false,
            by: None,
            why,
        }
    }
}
