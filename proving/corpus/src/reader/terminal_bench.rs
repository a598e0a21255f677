//! Dumps of Terminal-Bench runs, in rows: `steps` as JSON in a string, `trajectory` as ATIF in a string, or
//! `conversations` as Harbor exports them.
//!
//! What the members of a step are called differs from dump to dump and is not specified, so several names are taken
//! for each, and what has none of them is counted. Trials without steps are skipped.
//! Not here: trajectories in files of their own (`atif`).

use super::atif::{self, Step, Steps};
use super::chat::{MAX_MESSAGES, arguments_of, content, linear, messages, role, seconds, tools};
use super::rows::{Rows, inner_json, said};
use super::{Fault, Tally};
use crate::conversation::{Content, Conversation, FunctionCall, Role, ToolCall};
use crate::json::Json;

pub(super) const READER: Rows = Rows {
    name: "terminal-bench",
    columns: &[
        "task_name",
        "trial_id",
        "trial_name",
        "run_id",
        "episode",
        "steps",
        "trajectory",
        "conversations",
        "tool_definitions",
    ],
    passed: &[
        "agent",
        "model",
        "model_provider",
        "reward",
        "duration_seconds",
        "input_tokens",
        "output_tokens",
        "cache_tokens",
        "cost_cents",
        "started_at",
        "ended_at",
        "category",
        "difficulty",
        "agent_model",
        "instruction",
        "n_steps",
        "n_input_tokens",
        "n_output_tokens",
        "cost_usd",
        "result",
        "test_report",
        "solution",
        "task_config",
        "date",
        "task",
        "verifier_output",
    ],
    names: &["trial_id", "trial_name", "episode"],
    name_of: |row, fallback| {
        let trial = said(row, &["trial_id", "trial_name"]);
        let trial = trial.unwrap_or_else(|| fallback.to_owned());
        match said(row, &["episode"]) {
            Some(episode) => format!("{trial}/{episode}"),
            None => trial,
        }
    },
    session: sessions,
};

const SOURCE: &[&str] = &["src", "source", "role", "from"];
const SAID: &[&str] = &["msg", "message", "content", "text", "value"];
const CALLS: &[&str] = &["tools", "tool_calls", "calls", "actions"];
const RESULTS: &[&str] = &["obs", "observation", "output", "result", "results"];
const TIME: &[&str] = &["ts", "timestamp", "time"];
const THOUGHT: &[&str] = &["reasoning", "reasoning_content", "thinking"];
const CALL_NAME: &[&str] = &["fn", "name", "function_name", "tool"];
const CALL_ARGUMENTS: &[&str] = &["args", "arguments", "input", "cmd", "command"];
const CALL_ID: &[&str] = &["id", "tool_call_id", "call_id"];

fn sessions(mut row: Json, name: &str, tally: &mut Tally) -> Vec<Result<Conversation, Fault>> {
    if let Some(trajectory) = row.take("trajectory").filter(|t| !t.is_null()) {
        return match inner_json(Some(trajectory), "trajectory", tally) {
            Ok(mut trajectory) => {
                // The row's own name is the one that the first pass finds.
                let _ = (
                    trajectory.take("trajectory_id"),
                    trajectory.take("session_id"),
                );
                atif::sessions(trajectory, name, tally)
            }
            Err(fault) => vec![Err(fault)],
        };
    }
    let session = match row.take("conversations").filter(|c| !c.is_null()) {
        Some(conversations) => exported(row, conversations, name, tally),
        None => trial(row, name, tally),
    };
    vec![session]
}

/// A row of Harbor's export: an episode of a trial.
fn exported(
    mut row: Json,
    conversations: Json,
    name: &str,
    tally: &mut Tally,
) -> Result<Conversation, Fault> {
    let mut conversations = inner_json(Some(conversations), "conversations", tally)?;
    let mut offered = inner_json(row.take("tool_definitions"), "tool_definitions", tally)?;
    conversations.drop_nulls();
    offered.drop_nulls();
    let (messages, beside) = messages(conversations, tally)?;
    linear(
        name.to_owned(),
        tools(Some(offered), tally),
        messages,
        &beside,
    )
}

/// A trial with its steps.
fn trial(mut row: Json, name: &str, tally: &mut Tally) -> Result<Conversation, Fault> {
    let steps = match inner_json(row.take("steps"), "steps", tally)? {
        Json::Array(steps) if !steps.is_empty() => steps,
        Json::Array(_) | Json::Null => {
            return Err(Fault::skipped("no_steps", "the trial has no steps"));
        }
        _ => return Err(Fault::broken("no_steps", "its steps are no list")),
    };
    if steps.len() > MAX_MESSAGES {
        let says = format!("has {} steps, at most 20,000 are read", steps.len());
        return Err(Fault::broken("too_many_messages", says));
    }
    let mut session = Steps::default();
    for step in steps {
        let step = tolerant(step, tally)?;
        session.add(step, tally);
    }
    session.finish(name.to_owned(), Vec::new())
}

fn tolerant(mut step: Json, tally: &mut Tally) -> Result<Step, Fault> {
    let known = [SOURCE, SAID, CALLS, RESULTS, TIME, THOUGHT].concat();
    tally.unknown_members("step", &step, &known);
    let source = any(&mut step, SOURCE);
    let role = match source.as_ref().and_then(Json::as_str) {
        Some("environment" | "terminal" | "observation") => Role::User,
        Some(name) => role(name).ok_or_else(|| {
            Fault::broken("unknown_source", format!("a step has the source {name:?}"))
        })?,
        None => return Err(Fault::broken("unknown_source", "a step has no source")),
    };
    let thought = any(&mut step, THOUGHT);
    Ok(Step {
        role,
        time: any(&mut step, TIME).as_ref().and_then(seconds),
        said: any(&mut step, SAID).and_then(|said| content(said, tally)),
        reasoning: thought.and_then(|t| t.as_str().map(str::to_owned)),
        calls: calls(any(&mut step, CALLS), tally),
        results: results(any(&mut step, RESULTS), tally),
        ..Step::default()
    })
}

/// The first of these members that is there and is not `null`.
fn any(value: &mut Json, names: &[&str]) -> Option<Json> {
    let name = names.iter().find(|name| value.present(name).is_some())?;
    value.take(name)
}

fn calls(value: Option<Json>, tally: &mut Tally) -> Vec<ToolCall> {
    let all = match value {
        None => return Vec::new(),
        Some(Json::Array(all)) => all,
        Some(one) => vec![one],
    };
    let call = |mut call: Json| {
        // The members of OpenAI's form stand one level deeper.
        let mut inner = call.take("function").filter(Json::is_object);
        let id = any(&mut call, CALL_ID).and_then(|id| id.as_str().map(str::to_owned));
        let from = inner.as_mut().unwrap_or(&mut call);
        let arguments = any(from, CALL_ARGUMENTS).unwrap_or_default();
        let named = any(from, CALL_NAME).unwrap_or_else(|| from.clone());
        let Json::String(name) = named else {
            tally.note("call_without_name");
            return None;
        };
        let arguments = arguments_of(arguments);
        Some(ToolCall {
            id,
            function: FunctionCall { name, arguments },
        })
    };
    all.into_iter().filter_map(call).collect()
}

fn results(value: Option<Json>, tally: &mut Tally) -> Vec<(Option<String>, Option<Content>)> {
    let all = match value {
        None => return Vec::new(),
        Some(mut whole @ Json::Object(_)) => match whole.take("results") {
            Some(Json::Array(all)) => all,
            _ => vec![whole],
        },
        Some(Json::Array(all)) => all,
        Some(one) => vec![one],
    };
    let result = |mut one: Json| {
        let id = any(&mut one, &["source_call_id", "tool_call_id", "id"]);
        let id = id.and_then(|id| id.as_str().map(str::to_owned));
        let said = match one {
            mut object @ Json::Object(_) => any(&mut object, SAID).or(Some(object)),
            other => Some(other),
        };
        (id, said.and_then(|said| content(said, tally)))
    };
    all.into_iter().map(result).collect()
}
