//! Which rule of a compiled policy calls which: how deep calls go, and that none comes back to itself.
//!
//! A machine takes stack for each call inside a call, so this is settled before a policy is used. So is how often a
//! decision can meet its bound: of a function with several definitions the interpreter tries each, also behind one
//! that failed, and begins to count anew.

use std::collections::BTreeMap;

use regorus::Value;
use regorus::rvm::instructions::LiteralOrRegister;
use regorus::rvm::{Instruction, Program};

/// How deep rules call rules.
pub(super) const CALLS_MAX: usize = 32;

/// How many definitions are tried at most behind each other, all functions that call each other together.
const TRIES_MAX: usize = 32;

/// What is wrong with the calls of a program.
pub(super) fn fault(program: &Program) -> Option<String> {
    let calls = calls(program);
    let mut known = vec![None; calls.len()];
    let mut deepest = 0;
    for rule in 0..calls.len() {
        match depth(rule, &calls, &mut known, 0) {
            Some(depth) => deepest = deepest.max(depth),
            None => {
                let name = program
                    .rule_infos
                    .get(rule)
                    .map_or("a rule", |rule| &*rule.name);
                return Some(format!(
                    "{name} calls itself, or rules call each other more than {CALLS_MAX} deep"
                ));
            }
        }
    }
    if deepest > CALLS_MAX {
        return Some(format!(
            "rules call each other {deepest} deep; at most {CALLS_MAX}"
        ));
    }
    let mut known = vec![None; calls.len()];
    let most = (0..calls.len()).map(|rule| tries(rule, program, &calls, &mut known));
    (most.max() > Some(TRIES_MAX)).then(|| {
        format!("functions with several definitions call each other; those of each times those of the next are {TRIES_MAX} at most")
    })
}

/// Definitions of a function, times those of what it calls. No call comes back.
fn tries(
    rule: usize,
    program: &Program,
    calls: &[Vec<usize>],
    known: &mut [Option<usize>],
) -> usize {
    if let Some(Some(tries)) = known.get(rule) {
        return *tries;
    }
    let called = calls.get(rule).into_iter().flatten();
    let most = called
        .map(|called| tries(*called, program, calls, known))
        .max();
    let of = program.rule_infos.get(rule);
    let own = of
        .filter(|of| of.function_info.is_some())
        .map_or(1, |of| of.definitions.len());
    let tries = own.max(1).saturating_mul(most.unwrap_or(1));
    if let Some(place) = known.get_mut(rule) {
        *place = Some(tries);
    }
    tries
}

/// How deep calls go from a rule; `None` when deeper than allowed, and so where it comes back to itself.
fn depth(
    rule: usize,
    calls: &[Vec<usize>],
    known: &mut [Option<usize>],
    above: usize,
) -> Option<usize> {
    if above > CALLS_MAX {
        return None;
    }
    if let Some(Some(depth)) = known.get(rule) {
        return Some(*depth);
    }
    let mut deepest = 0;
    for called in calls.get(rule).into_iter().flatten() {
        deepest = deepest.max(depth(*called, calls, known, above + 1)?);
    }
    if let Some(place) = known.get_mut(rule) {
        *place = Some(deepest + 1);
    }
    Some(deepest + 1)
}

/// The rules that each rule calls.
fn calls(program: &Program) -> Vec<Vec<usize>> {
    let owners = owners(program);
    let mut calls = vec![Vec::new(); program.rule_infos.len()];
    for (at, instruction) in program.instructions.iter().enumerate() {
        let owner = owners.range(..=at).next_back().map(|(_, rule)| *rule);
        let Some(from) = owner.and_then(|owner| calls.get_mut(owner)) else {
            continue;
        };
        from.extend(called(program, instruction));
    }
    for from in &mut calls {
        from.sort_unstable();
        from.dedup();
    }
    calls
}

/// Where the instructions of a rule begin: those up to the next such place are its own.
fn owners(program: &Program) -> BTreeMap<usize, usize> {
    let mut owners = BTreeMap::new();
    for (rule, info) in program.rule_infos.iter().enumerate() {
        let bodies = info.definitions.iter().flatten();
        let blocks = info.destructuring_blocks.iter().flatten();
        for at in bodies.chain(blocks) {
            owners.insert(usize::try_from(*at).unwrap_or(usize::MAX), rule);
        }
    }
    owners
}

/// The rules that an instruction may call.
fn called(program: &Program, instruction: &Instruction) -> Vec<usize> {
    let data = &program.instruction_data;
    match instruction {
        Instruction::CallRule { rule_index, .. } => vec![usize::from(*rule_index)],
        Instruction::FunctionCall { params_index } => {
            let params = data.function_call_params.get(usize::from(*params_index));
            params
                .map(|params| usize::from(params.func_rule_index))
                .into_iter()
                .collect()
        }
        Instruction::VirtualDataDocumentLookup { params_index } => {
            let params = data
                .virtual_data_document_lookup_params
                .get(usize::from(*params_index));
            params
                .map(|params| below(program, &params.path_components))
                .unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// All rules whose path begins as this one, as far as it is known.
fn below(program: &Program, path: &[LiteralOrRegister]) -> Vec<usize> {
    let mut prefix = String::from("data");
    for part in path {
        let LiteralOrRegister::Literal(at) = part else {
            break;
        };
        let Some(Value::String(name)) = program.literals.get(usize::from(*at)) else {
            break;
        };
        prefix.push('.');
        prefix.push_str(name);
    }
    let is_below = |name: &str| {
        let rest = name.strip_prefix(prefix.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            || prefix.starts_with(&format!("{name}."))
    };
    let rules = program.rule_infos.iter().enumerate();
    rules
        .filter(|(_, rule)| is_below(&rule.name))
        .map(|(at, _)| at)
        .collect()
}
