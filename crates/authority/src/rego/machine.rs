//! A policy that compiles, and an interpreter of it in each thread.
//!
//! `regorus` has two ways to run a policy. Its machine of instructions is checked here for what the instructions tell
//! (which built-in functions are called, which rule calls which), and is not run: where a rule has two values at once it
//! goes on with none, so that `not` makes `true` of a contradiction. Its interpreter ends with an error, as OPA does.
//! Values are counted references: shared by all workers, each decision would write to memory that all of them
//! read. So each thread reads the texts again, at the first decision that it makes.
//! Invariant: a thread keeps the interpreters of at most [`KEPT`] policies, the latest used.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::Program;
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError, PolicyLengthConfig, Value};

use super::meter::{self, BYTES_MADE_MAX, FUNCTION_STEPS_MAX, Spent};
use super::regular::Patterns;
use super::watched::{COLUMNS_MAX, Watched};
use super::{RULES_MAX, STEPS_MAX, calls, facts, functions};
use crate::Fault;

/// Interpreters that a thread keeps: a policy's, and that of the one before while calls of both are under way.
const KEPT: usize = 4;

/// A policy's texts, which compile.
#[derive(Debug)]
pub(super) struct Policy {
    /// Unlike any other's in this process.
    id: u64,
    modules: Box<[(Box<str>, Watched)]>,
    query: Box<str>,
    patterns: Arc<Patterns>,
}

struct Machine {
    policy: u64,
    engine: Engine,
    query: String,
    names: Vec<Value>,
}

thread_local! {
    /// The latest used stands last.
    static MACHINES: RefCell<Vec<Machine>> = const { RefCell::new(Vec::new()) };
}

impl Policy {
    /// Compiles the texts once, to see that they do.
    pub(super) fn new(
        modules: Box<[(Box<str>, Box<str>)]>,
        query: &str,
    ) -> Result<Self, Vec<Fault>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let program = program(&modules, query)?;
        let faults = program_faults(&program, query);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut watched = Vec::with_capacity(modules.len());
        for (name, text) in &modules {
            let Some(text) = Watched::new(name, text) else {
                let says = "an operator cannot be told from another, or a name begins with __gate_, as those of the gate do";
                return Err(vec![fault(name, says)]);
            };
            watched.push((name.clone(), text));
        }
        let patterns = watched.iter().flat_map(|(_, of)| of.patterns.iter());
        let patterns = Arc::new(Patterns::new(patterns.map(String::as_str)));
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            modules: watched.into(),
            query: Box::from(query),
            patterns,
        })
    }

    /// What the query answers for an input, which is made from the names of its members.
    pub(super) fn answer(
        &self,
        input: impl FnOnce(&[Value]) -> Result<Value, Cow<'static, str>>,
    ) -> Result<Value, Cow<'static, str>> {
        MACHINES.with_borrow_mut(|machines| {
            match machines
                .iter()
                .rposition(|machine| machine.policy == self.id)
            {
                Some(at) if at + 1 == machines.len() => {}
                Some(at) => {
                    let found = machines.remove(at);
                    machines.push(found);
                }
                None => {
                    if machines.len() == KEPT {
                        machines.remove(0);
                    }
                    machines.push(self.machine()?);
                }
            }
            match machines.last_mut() {
                Some(machine) => machine.run(input).map_err(|why| self.written(why)),
                None => Err(Cow::Borrowed("there is no machine")),
            }
        })
    }

    /// What is said of a place in the text that runs, said of the text that was written.
    fn written(&self, why: Cow<'static, str>) -> Cow<'static, str> {
        let place = || {
            let (start, column) = why.rsplit_once(':')?;
            let (rest, line) = start.rsplit_once(':')?;
            let of = |(name, _): &&(Box<str>, Watched)| rest.ends_with(&**name);
            let (_, watched) = self.modules.iter().find(of)?;
            let column = watched.column(line.parse().ok()?, column.parse().ok()?);
            Some(Cow::Owned(format!("{start}:{column}")))
        };
        place().unwrap_or(why)
    }

    fn machine(&self) -> Result<Machine, Cow<'static, str>> {
        let bounds = PolicyLengthConfig {
            max_col: COLUMNS_MAX,
            ..PolicyLengthConfig::default()
        };
        let texts = self.modules.iter().map(|(name, of)| (&**name, &*of.text));
        let mut engine =
            engine(texts, bounds).map_err(|_| Cow::Borrowed("the policy cannot be read again"))?;
        engine.set_strict_builtin_errors(true);
        functions::install(&mut engine, &self.patterns)
            .ok_or(Cow::Borrowed("a function of the policy is not there"))?;
        // No time at all, looked at after so many steps: a bound by steps. Without a timer of its own an engine asks
        // a lock that all of them share for one.
        engine.set_execution_timer_config(ExecutionTimerConfig {
            limit: Duration::ZERO,
            check_interval: STEPS_MAX,
        });
        Ok(Machine {
            policy: self.id,
            engine,
            query: self.query.to_string(),
            names: facts::names(),
        })
    }
}

impl Machine {
    fn run(
        &mut self,
        input: impl FnOnce(&[Value]) -> Result<Value, Cow<'static, str>>,
    ) -> Result<Value, Cow<'static, str>> {
        self.engine.set_input(input(&self.names)?);
        meter::begin();
        let answer = self.engine.eval_rule(self.query.clone());
        self.engine.set_input(Value::Null);
        if let Some(spent) = meter::spent() {
            return Err(Cow::Owned(match spent {
                Spent::Steps => {
                    format!("the functions of the policy took more than {FUNCTION_STEPS_MAX} steps")
                }
                Spent::Bytes => {
                    format!("the functions of the policy made more than {BYTES_MADE_MAX} bytes")
                }
            }));
        }
        answer.map_err(|error| says(&self.query, error.downcast_ref(), &error.to_string()))
    }
}

/// Where it went wrong, without what the error quotes, which can be a claim.
fn says(query: &str, limit: Option<&LimitError>, error: &str) -> Cow<'static, str> {
    match limit {
        Some(LimitError::TimeLimitExceeded { .. }) => {
            Cow::Owned(format!("the policy took more than {STEPS_MAX} steps"))
        }
        Some(_) => Cow::Borrowed("the policy took more than it may"),
        None => {
            let place = error
                .split_once("--> ")
                .and_then(|(_, rest)| rest.lines().next());
            Cow::Owned(format!("the policy failed at {}", place.unwrap_or(query)))
        }
    }
}

/// Texts to an engine.
fn engine<'t>(
    modules: impl Iterator<Item = (&'t str, &'t str)>,
    bounds: PolicyLengthConfig,
) -> Result<Engine, Vec<Fault>> {
    let mut engine = Engine::new();
    engine.set_policy_length_config(bounds);
    let mut faults = Vec::new();
    for (name, text) in modules {
        if let Err(error) = engine.add_policy(name.to_owned(), text.to_owned()) {
            faults.push(fault(name, &error.to_string()));
        }
    }
    if faults.is_empty() {
        Ok(engine)
    } else {
        Err(faults)
    }
}

/// Texts to a program.
fn program(modules: &[(Box<str>, Box<str>)], query: &str) -> Result<Arc<Program>, Vec<Fault>> {
    let texts = modules.iter().map(|(name, text)| (&**name, &**text));
    let mut engine = engine(texts, PolicyLengthConfig::default())?;
    let of_query = |error: &dyn std::fmt::Display| vec![fault(query, &error.to_string())];
    let entry = Arc::from(query);
    let policy = engine.compile_with_entrypoint(&entry);
    let policy = policy.map_err(|error| of_query(&error))?;
    Compiler::compile_from_policy(&policy, &[query]).map_err(|error| of_query(&error))
}

/// In one line: the library draws a picture of where it is.
fn fault(rule: &str, drawn: &str) -> Fault {
    let lines = drawn.lines().map(str::trim);
    let words = lines.filter(|line| !line.is_empty() && !line.starts_with('|') && *line != "^");
    Fault {
        rule: rule.to_owned(),
        says: words.collect::<Vec<_>>().join(" "),
    }
}

fn program_faults(program: &Program, query: &str) -> Vec<Fault> {
    let names = program.builtin_info_table.iter().map(|of| of.name.as_str());
    let mut says: Vec<String> = names.filter_map(functions::fault).collect();
    if program.has_host_await {
        says.push("a policy asks nobody: __builtin_host_await is not offered".to_owned());
    }
    says.extend(calls::fault(program));
    let rules = program.rule_infos.len();
    if rules > RULES_MAX {
        says.push(format!(
            "the query makes use of {rules} rules; at most {RULES_MAX}"
        ));
    }
    let fault = |says| Fault {
        rule: query.to_owned(),
        says,
    };
    says.into_iter().map(fault).collect()
}
