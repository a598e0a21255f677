//! A compiled policy, and a machine for it in each thread.
//!
//! The program's values are counted references: shared by all workers, each decision would write to memory that
//! all of them read. So each thread compiles its own, at the first decision that it makes, from texts that compiled
//! before.
//! Invariant: a thread keeps the machines of at most [`KEPT`] policies, the latest used.

use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::VmError;
use regorus::rvm::{Program, RegoVM};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, Value};

use super::{INSTRUCTIONS_MAX, RULES_MAX, builtins, calls, facts};
use crate::Fault;

/// Machines that a thread keeps: those of a policy, and of the one before while calls of both are under way.
const KEPT: usize = 4;

/// A policy's texts, which compile.
#[derive(Debug)]
pub(super) struct Policy {
    /// Unlike any other's in this process.
    id: u64,
    modules: Box<[(Box<str>, Box<str>)]>,
    query: Box<str>,
}

struct Machine {
    policy: u64,
    machine: RegoVM,
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
        Ok(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            modules,
            query: Box::from(query),
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
                Some(machine) => machine.run(input),
                None => Err(Cow::Borrowed("there is no machine")),
            }
        })
    }

    fn machine(&self) -> Result<Machine, Cow<'static, str>> {
        let program = program(&self.modules, &self.query)
            .map_err(|_| Cow::Borrowed("the policy does not compile again"))?;
        let mut machine = RegoVM::new();
        machine.load_program(program);
        machine.set_max_instructions(INSTRUCTIONS_MAX);
        // Never due, because instructions end before; without a timer of its own a machine asks a global lock for one.
        machine.set_execution_timer_config(Some(ExecutionTimerConfig {
            limit: Duration::MAX,
            check_interval: NonZeroU32::MAX,
        }));
        let data = machine.set_data(Value::new_object());
        data.map_err(|_| Cow::Borrowed("the policy takes no data"))?;
        Ok(Machine {
            policy: self.id,
            machine,
            names: facts::names(),
        })
    }
}

impl Machine {
    fn run(
        &mut self,
        input: impl FnOnce(&[Value]) -> Result<Value, Cow<'static, str>>,
    ) -> Result<Value, Cow<'static, str>> {
        self.machine.set_input(input(&self.names)?);
        let answer = self.machine.execute_entry_point_by_index(0);
        self.machine.set_input(Value::Null);
        answer.map_err(|error| says(&error))
    }
}

/// Without what the error quotes, which can be a claim.
fn says(error: &VmError) -> Cow<'static, str> {
    match error {
        VmError::InstructionLimitExceeded { limit, .. } => {
            Cow::Owned(format!("the policy took more than {limit} instructions"))
        }
        VmError::RegexSizeLimitExceeded { limit, .. } => Cow::Owned(format!(
            "a regular expression takes more than {limit} bytes when compiled"
        )),
        other => {
            let shown = format!("{other:?}");
            let kind: String = shown
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .collect();
            Cow::Owned(format!("the policy failed: {kind}"))
        }
    }
}

/// Texts to a program.
fn program(modules: &[(Box<str>, Box<str>)], query: &str) -> Result<Arc<Program>, Vec<Fault>> {
    let mut engine = Engine::new();
    let mut faults = Vec::new();
    for (name, text) in modules {
        if let Err(error) = engine.add_policy(String::from(&**name), String::from(&**text)) {
            faults.push(fault(name, &error.to_string()));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
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
    let mut says: Vec<String> = names.filter_map(builtins::fault).collect();
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
