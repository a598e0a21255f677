//! Trajectories in the Agent Trajectory Interchange Format, versions 1.0 to 1.8.
//!
//! A step of an agent is one decision, and its observation comes after it: as answers of tools where it has calls, else
//! as the user's message that the agent was shown. Steps that are copied from a trajectory before are history and no
//! decisions; so are those with `llm_call_count` 0. Trajectories of subagents are sessions of their own.
//!
//! **Times.** The format says no more than *when the step was recorded*. Agents record a step after its tools have run
//! (terminus-2), or when its answer is complete (those whose logs are converted). The time from one step of an agent to
//! the next therefore brackets one run of tools and one answer of the model, in either order. Where a step of the user
//! or the system lies between two, its time ends the think time; elsewhere the whole bracket is taken, and counted as
//! `think_times_with_answer`: it is an upper bound, longer than the pause by one answer.
//! Not here: dumps that have such trajectories in rows (`terminal_bench`).

use super::chat::{between, seconds, tools};
use super::whole::Whole;
use super::{Fault, Tally};
use crate::conversation::{Content, Conversation, Decision, FunctionCall, Message, Role, ToolCall};
use crate::json::Json;

const VERSIONS: &[&str] = &[
    "ATIF-v1.0",
    "ATIF-v1.1",
    "ATIF-v1.2",
    "ATIF-v1.3",
    "ATIF-v1.4",
    "ATIF-v1.5",
    "ATIF-v1.6",
    "ATIF-v1.7",
    "ATIF-v1.8",
];
/// Trajectories of subagents in one record.
const MAX_TRAJECTORIES: usize = 1_000;
const KNOWN: &[&str] = &[
    "schema_version",
    "session_id",
    "trajectory_id",
    "agent",
    "steps",
    "notes",
    "final_metrics",
    "continued_trajectory_ref",
    "subagent_trajectories",
    "extra",
];
const KNOWN_STEP: &[&str] = &[
    "step_id",
    "timestamp",
    "source",
    "model_name",
    "reasoning_effort",
    "message",
    "reasoning_content",
    "tool_calls",
    "observation",
    "metrics",
    "is_copied_context",
    "llm_call_count",
    "extra",
];

pub(super) const READER: Whole = Whole {
    name: "atif",
    sessions: |file, name, tally| sessions(file, name, tally),
};

/// The sessions of a trajectory: its own first, then those of its subagents.
pub(super) fn sessions(
    trajectory: Json,
    name: &str,
    tally: &mut Tally,
) -> Vec<Result<Conversation, Fault>> {
    let mut all = Vec::new();
    let mut waiting = vec![(trajectory, name.to_owned())];
    while let Some((mut trajectory, name)) = waiting.pop() {
        if all.len() == MAX_TRAJECTORIES {
            let says = "holds more than 1,000 trajectories of subagents";
            all.push(Err(Fault::broken("too_many_trajectories", says)));
            break;
        }
        let below = trajectory.take("subagent_trajectories");
        let id = ["trajectory_id", "session_id"]
            .iter()
            .find_map(|member| trajectory.text(member))
            .filter(|_| all.is_empty())
            .map_or(name, str::to_owned);
        if let Some(Json::Array(below)) = below {
            let named = below.into_iter().enumerate().map(|(k, one)| {
                let own = one.text("trajectory_id").or(one.text("session_id"));
                let own = own.map_or_else(|| format!("subagent-{}", k + 1), str::to_owned);
                (one, format!("{id}/{own}"))
            });
            let named: Vec<_> = named.collect();
            waiting.extend(named.into_iter().rev());
        }
        all.push(session(trajectory, id, tally));
    }
    all
}

fn session(mut trajectory: Json, id: String, tally: &mut Tally) -> Result<Conversation, Fault> {
    match trajectory.text("schema_version") {
        Some(version) if VERSIONS.contains(&version) => {}
        Some(version) => {
            let says =
                format!("its schema_version is {version:?}; known are ATIF-v1.0 to ATIF-v1.8");
            return Err(Fault::broken("unknown_version", says));
        }
        None => {
            let says = "has no schema_version, so it is no trajectory";
            return Err(Fault::skipped("no_trajectory", says));
        }
    }
    tally.unknown_members("trajectory", &trajectory, KNOWN);
    let mut agent = trajectory.take("agent").unwrap_or_default();
    let tools = tools(agent.take("tool_definitions"), tally);
    let Some(Json::Array(steps)) = trajectory.take("steps") else {
        return Err(Fault::broken("no_steps", "its steps are no list"));
    };
    let mut session = Steps::default();
    for step in steps {
        tally.unknown_members("step", &step, KNOWN_STEP);
        session.add(Step::of(step, tally)?, tally);
    }
    session.finish(id, tools)
}

/// One step, in the form that ATIF and the dumps are brought to.
#[derive(Default)]
pub(super) struct Step {
    pub(super) role: Role,
    pub(super) said: Option<Content>,
    pub(super) reasoning: Option<String>,
    pub(super) calls: Vec<ToolCall>,
    /// What came back, each with the call that it answers.
    pub(super) results: Vec<(Option<String>, Option<Content>)>,
    /// When it was recorded, in seconds.
    pub(super) time: Option<f64>,
    pub(super) answer_tokens: Option<u32>,
    /// Whether no model was asked here.
    pub(super) is_history: bool,
}

impl Step {
    fn of(mut step: Json, tally: &mut Tally) -> Result<Self, Fault> {
        let role = match step.text("source") {
            Some("system") => Role::System,
            Some("user") => Role::User,
            Some("agent") => Role::Assistant,
            other => {
                let says = format!("a step has the source {other:?}");
                return Err(Fault::broken("unknown_source", says));
            }
        };
        let copied = step.get("is_copied_context").and_then(Json::as_bool) == Some(true);
        let calls = step.get("llm_call_count").and_then(Json::as_u64);
        let tokens = step.get("metrics").and_then(|m| m.get("completion_tokens"));
        Ok(Self {
            role,
            answer_tokens: tokens
                .and_then(Json::as_u64)
                .and_then(|n| n.try_into().ok()),
            time: step.get("timestamp").and_then(seconds),
            reasoning: step.text("reasoning_content").map(str::to_owned),
            said: step.take("message").and_then(|said| content(said, tally)),
            calls: calls_of(step.take("tool_calls"), tally),
            results: results(step.take("observation"), tally),
            is_history: copied || calls == Some(0),
        })
    }
}

fn calls_of(calls: Option<Json>, tally: &mut Tally) -> Vec<ToolCall> {
    let Some(Json::Array(calls)) = calls else {
        return Vec::new();
    };
    let call = |mut call: Json| {
        let Some(name) = call.text("function_name").map(str::to_owned) else {
            tally.note("call_without_name");
            return None;
        };
        let id = call.text("tool_call_id").filter(|id| !id.is_empty());
        let id = id.map(str::to_owned);
        let arguments = super::chat::arguments_of(call.take("arguments").unwrap_or_default());
        let function = FunctionCall { name, arguments };
        Some(ToolCall { id, function })
    };
    calls.into_iter().filter_map(call).collect()
}

fn results(observation: Option<Json>, tally: &mut Tally) -> Vec<(Option<String>, Option<Content>)> {
    let results = observation.and_then(|mut observation| observation.take("results"));
    let Some(Json::Array(results)) = results else {
        return Vec::new();
    };
    let result = |mut result: Json| {
        let call = result.text("source_call_id").map(str::to_owned);
        let said = result.take("content").and_then(|said| content(said, tally));
        (call, said)
    };
    results.into_iter().map(result).collect()
}

/// Text, or parts in the API's form. Images and sounds are files beside the trajectory, and stand as their paths.
fn content(value: Json, tally: &mut Tally) -> Option<Content> {
    let Json::Array(parts) = value else {
        return super::chat::content(value, tally);
    };
    let part = |part: Json| {
        let text = match (part.text("type"), part.text("text")) {
            (Some("text"), Some(text)) => text.to_owned(),
            (kind, _) => {
                tally.note("media_left_as_path");
                let path = part.get("source").and_then(|source| source.text("path"));
                format!(
                    "[{}: {}]",
                    kind.unwrap_or("part"),
                    path.unwrap_or("no path")
                )
            }
        };
        Json::object([("type", Json::from("text")), ("text", Json::String(text))])
    };
    Some(Content::Parts(parts.into_iter().map(part).collect()))
}

/// A session that grows by steps.
#[derive(Default)]
pub(super) struct Steps {
    messages: Vec<Message>,
    decisions: Vec<Decision>,
    /// When the agent's last step was recorded.
    answered: Option<f64>,
    /// When the last step of another was, after that.
    asked: Option<f64>,
}

impl Steps {
    pub(super) fn add(&mut self, step: Step, tally: &mut Tally) {
        if step.role == Role::Assistant {
            if !step.is_history {
                self.decide(&step, tally);
                self.answered = step.time;
                self.asked = None;
            }
        } else {
            self.asked = step.time.or(self.asked);
        }
        let calls: Vec<Option<String>> = step.calls.iter().map(|call| call.id.clone()).collect();
        if step.said.is_some() || step.reasoning.is_some() || !step.calls.is_empty() {
            self.messages.push(Message {
                role: step.role,
                content: step.said,
                reasoning: step.reasoning,
                tool_calls: step.calls,
                ..Message::default()
            });
        }
        for (k, (call, said)) in step.results.into_iter().enumerate() {
            self.observe(&calls, k, call, said, tally);
        }
    }

    fn observe(
        &mut self,
        calls: &[Option<String>],
        k: usize,
        call: Option<String>,
        content: Option<Content>,
        tally: &mut Tally,
    ) {
        if calls.is_empty() && call.is_none() {
            if content.is_some() {
                self.messages.push(Message {
                    role: Role::User,
                    content,
                    ..Message::default()
                });
            }
            return;
        }
        if call.is_some() && !calls.contains(&call) {
            tally.note("observation_without_call");
        }
        self.messages.push(Message {
            role: Role::Tool,
            content,
            tool_call_id: call.or_else(|| calls.get(k).cloned().flatten()),
            ..Message::default()
        });
    }

    fn decide(&mut self, step: &Step, tally: &mut Tally) {
        if self.messages.is_empty() {
            tally.note("agent_begins");
            return;
        }
        let until = self.asked.or_else(|| {
            let bracket = self.answered.and(step.time);
            if bracket.is_some() {
                tally.note("think_times_with_answer");
            }
            bracket
        });
        let think = self.answered.zip(until);
        self.decisions.push(Decision {
            prompt: (0..self.messages.len()).collect(),
            // A step that says nothing leaves no message, but it was asked.
            answer: (step.said.is_some() || step.reasoning.is_some() || !step.calls.is_empty())
                .then_some(self.messages.len()),
            think: think.and_then(|(from, to)| between(from, to)),
            answer_tokens: step.answer_tokens,
        });
    }

    pub(super) fn finish(self, id: String, tools: Vec<Json>) -> Result<Conversation, Fault> {
        if self.decisions.is_empty() {
            let says = "no step of it asks a model";
            return Err(Fault::skipped("no_decisions", says));
        }
        Ok(Conversation {
            id,
            licence: None,
            tools,
            messages: self.messages,
            decisions: self.decisions,
        })
    }
}
