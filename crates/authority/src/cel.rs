//! Rules in CEL: `workload == "coding" && model.startsWith("gpt-")`.
//!
//! The grammar is the crate `cel`'s. Its tree is checked against the types of the facts and made into nodes
//! (`check`), which `evaluate` walks without a map, a lock or an allocation in the usual case.
//! Invariant: a `deny` that is true, or that fails, refuses; else an `allow` that is true allows; else the call is
//! refused. The order of rules changes no verdict. A rule takes at most [`STEPS_MAX`] steps, all together take at most
//! [`ALL_STEPS_MAX`]; past either the rule fails.
//! Not here: the facts (`policy::authority`).

mod check;
mod evaluate;
mod name;
mod network;
mod node;
mod outline;
mod syntax;
#[cfg(test)]
mod tests;
mod value;
mod zone;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use policy::authority::{Asked, Condition, Decision, Members, Rules};

use self::evaluate::Evaluation;
use self::node::Node;
use self::value::Trouble;
use crate::Fault;

/// The longest expression, bytes.
pub const EXPRESSION_BYTES_MAX: usize = 8 << 10;
/// The most rules in one set.
pub const RULES_MAX: usize = 256;
/// The most steps that one rule takes: about one for each operation and each element that is looked at.
pub const STEPS_MAX: u32 = 1 << 16;
/// The most steps that the rules of a decision take together.
pub const ALL_STEPS_MAX: u32 = 8 * STEPS_MAX;
/// How deep an expression nests, and how long a chain of operators in it is.
pub const DEPTH_MAX: usize = 48;

/// What a rule does when its condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It allows the call, unless a rule denies it.
    Allow,
    /// It refuses the call, whatever allows it.
    Deny,
}

/// One rule, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, for faults and for the log.
    pub name: String,
    /// What it does.
    pub effect: Effect,
    /// When: an expression that is true or false.
    pub when: String,
}

/// The names of the functions that a rule may call, and of its loops.
pub fn functions() -> impl Iterator<Item = &'static str> {
    check::names()
}

/// Compiles a set of rules; without rules nothing is allowed.
///
/// # Errors
///
/// Every rule that is not usable, each with its first fault.
pub fn compile(rules: &[Rule]) -> Result<Arc<dyn Rules>, Vec<Fault>> {
    let mut faults = set_faults(rules);
    let mut set = RuleSet::default();
    for rule in rules.iter().take(RULES_MAX) {
        let compiled = syntax::parse(&rule.when).and_then(|tree| check::condition(&tree));
        match compiled {
            Ok(when) => set.push(rule, when),
            Err(says) => faults.push(Fault {
                rule: rule.name.clone(),
                says,
            }),
        }
    }
    if faults.is_empty() {
        Ok(Arc::new(set))
    } else {
        Err(faults)
    }
}

/// Compiles the condition of a filter, which may look at the arguments of a call where `has_arguments`.
///
/// # Errors
///
/// What is wrong with it, and where in it.
pub fn condition(text: &str, has_arguments: bool) -> Result<Arc<dyn Condition>, String> {
    let tree = syntax::parse(text)?;
    let (when, reads_arguments) = check::of_filter(&tree, has_arguments)?;
    Ok(Arc::new(OfFilter {
        when,
        reads_arguments,
    }))
}

#[derive(Debug)]
struct OfFilter {
    when: Node,
    reads_arguments: bool,
}

impl Condition for OfFilter {
    fn reads_arguments(&self) -> bool {
        self.reads_arguments
    }

    fn holds(
        &self,
        asked: &Asked<'_>,
        arguments: Option<&Members>,
    ) -> Result<bool, Cow<'static, str>> {
        let mut evaluation = Evaluation::new(asked, STEPS_MAX).knowing(arguments);
        let holds = evaluation.holds(&self.when);
        holds.map_err(|trouble| trouble.to_string().into())
    }
}

/// What is wrong with the set as a whole.
fn set_faults(rules: &[Rule]) -> Vec<Fault> {
    let fault = |rule: &Rule, says: String| Fault {
        rule: rule.name.clone(),
        says,
    };
    let mut names = BTreeSet::new();
    let mut faults: Vec<Fault> = rules
        .iter()
        .filter(|rule| !names.insert(rule.name.as_str()))
        .map(|rule| fault(rule, "another rule has this name".to_owned()))
        .collect();
    if let Some(rule) = rules.get(RULES_MAX) {
        let says = format!("is rule number {}; there can be {RULES_MAX}", RULES_MAX + 1);
        faults.push(fault(rule, says));
    }
    faults
}

#[derive(Debug, Default)]
struct RuleSet {
    denies: Vec<Compiled>,
    allows: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    name: Arc<str>,
    when: Node,
}

impl RuleSet {
    fn push(&mut self, rule: &Rule, when: Node) {
        let rules = match rule.effect {
            Effect::Allow => &mut self.allows,
            Effect::Deny => &mut self.denies,
        };
        rules.push(Compiled {
            name: Arc::from(rule.name.as_str()),
            when,
        });
    }
}

impl Rules for RuleSet {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        let mut steps_left = ALL_STEPS_MAX;
        for rule in &self.denies {
            match rule.holds(asked, &mut steps_left) {
                Ok(false) => {}
                Ok(true) => return rule.decides(false, None),
                Err(trouble) => return rule.decides(false, Some(trouble.into())),
            }
        }
        let mut failed = None;
        for rule in &self.allows {
            match rule.holds(asked, &mut steps_left) {
                Ok(false) => {}
                Ok(true) => return rule.decides(true, None),
                Err(trouble) => {
                    let name = &rule.name;
                    failed = failed.or_else(|| Some(format!("{name}: {trouble}").into()));
                }
            }
        }
        Decision {
            allowed: false,
            by: None,
            why: failed,
        }
    }
}

impl Compiled {
    /// Whether the condition holds, within the steps that are left.
    fn holds(&self, asked: &Asked<'_>, steps_left: &mut u32) -> Result<bool, String> {
        let mut evaluation = Evaluation::new(asked, *steps_left);
        let given = (*steps_left).min(STEPS_MAX);
        let holds = evaluation.holds(&self.when);
        let is_last = given < STEPS_MAX;
        *steps_left -= given - evaluation.steps_left();
        holds.map_err(|trouble| match trouble {
            Trouble::Steps if is_last => Trouble::AllSteps.to_string(),
            trouble => trouble.to_string(),
        })
    }

    fn decides(&self, allowed: bool, why: Option<Cow<'static, str>>) -> Decision {
        Decision {
            allowed,
            by: Some(Arc::clone(&self.name)),
            why,
        }
    }
}
