//! The conversations that ToolLLaMA is trained on: a large JSON array, or Parquet, with one step of a session in each
//! record, in ReAct's text.
//!
//! A record's id is `Step N: <query>`. The steps of one query are one session, in the order of the file; ids are not
//! unique, since a search tries again. As each record has its whole history, the last [`OPEN_SESSIONS`] queries are kept
//! open: steps that lie further apart are two sessions, and counted.
//! Invariant: memory is bounded by the open sessions, which together hold no more than [`OPEN_BYTES`].
//! Not here: the raw answers, from which these were made (`toolbench`).

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::chat::role;
use super::columns;
use super::files::{walk, whole_units};
use super::records::{items, lines};
use super::rows::read_json;
use super::unrolled::Unrolled;
use super::{At, Fault, Position, ReadError, Reader, Sink, Tally, Unit};
use crate::conversation::{Arguments, Content, FunctionCall, Message, Role};
use crate::digest::digest;
use crate::json::{Json, Oddities, parse_python};

/// Queries whose steps may still come.
const OPEN_SESSIONS: usize = 64;
/// Bytes of the records of all open sessions.
const OPEN_BYTES: usize = 256 << 20;
/// Queries that are remembered, so that a session that was split gets another id.
const MAX_QUERIES: usize = 4_000_000;
const COLUMNS: &[&str] = &["id", "conversations"];
/// What stands before the functions in the system's text.
const FUNCTIONS: &str = "\nSpecifically, you have access to the following APIs: ";

/// The reader of all three forms: an array, lines, and Parquet with lists of structs or structs of lists.
pub(super) struct ToolLlama;

impl Reader for ToolLlama {
    fn name(&self) -> &'static str {
        "toolllama"
    }

    /// A file is one unit, since the steps of a session may stand anywhere in it.
    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        let suffixes = [".json", ".jsonl", ".ndjson", ".parquet"];
        whole_units(walk(self.name(), paths, &suffixes)?)
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let mut open = Open::default();
        let mut stopped = false;
        let read = each_record(unit, sink, &mut |position, record, sink| {
            let going = open.add(position, record, sink);
            stopped = going.is_break();
            going
        });
        if !stopped {
            let _ = open.close_all(sink);
        }
        read
    }
}

type TakeRecord<'a> =
    &'a mut dyn FnMut(Position, Result<Json, Fault>, &mut Sink<'_>) -> ControlFlow<()>;

fn each_record(unit: &Unit, sink: &mut Sink<'_>, take: TakeRecord<'_>) -> Result<(), ReadError> {
    let position = |at| Position {
        file: unit.file.clone(),
        at,
        part: 0,
    };
    if columns::is_parquet(&unit.file)? {
        let mut oddities = Oddities::default();
        let read = columns::rows(unit, COLUMNS, &mut oddities, &mut |row, record| {
            take(position(At::Row(row)), record, sink)
        });
        sink.tally_mut().oddities.absorb(oddities);
        return read;
    }
    let name = unit.file.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let each: super::records::Take<'_> = &mut |at, bytes| {
        let record = bytes.and_then(|bytes| read_json(bytes, sink.tally_mut()));
        take(position(at), record, sink)
    };
    if name.ends_with(".jsonl") || name.ends_with(".ndjson") {
        lines(unit, each)
    } else {
        items(&unit.file, each)
    }
}

/// Sessions whose steps may still come, in the order of their first steps.
#[derive(Default)]
struct Open {
    sessions: VecDeque<OpenSession>,
    bytes: usize,
    queries: HashSet<u64>,
}

struct OpenSession {
    query: u64,
    first: Position,
    bytes: usize,
    tools: Vec<Json>,
    steps: Result<Unrolled, Fault>,
}

impl Open {
    fn add(
        &mut self,
        position: Position,
        record: Result<Json, Fault>,
        sink: &mut Sink<'_>,
    ) -> ControlFlow<()> {
        let step = record.and_then(|record| Step::of(record, sink.tally_mut()));
        let step = match step {
            Ok(step) => step,
            Err(fault) => return sink.give(position, Err(fault)),
        };
        self.bytes += step.bytes;
        let at = self.sessions.iter().position(|s| s.query == step.query);
        let at = at.unwrap_or_else(|| {
            self.sessions.push_back(OpenSession {
                query: step.query,
                first: position,
                bytes: 0,
                tools: step.tools,
                steps: Ok(Unrolled::default()),
            });
            self.sessions.len() - 1
        });
        let session = &mut self.sessions[at];
        session.bytes += step.bytes;
        if let Ok(steps) = &mut session.steps
            && let Err(fault) = steps.add(step.history, sink.tally_mut())
        {
            session.steps = Err(fault);
        }
        while self.sessions.len() > OPEN_SESSIONS || self.bytes > OPEN_BYTES {
            self.close_first(sink)?;
        }
        ControlFlow::Continue(())
    }

    fn close_all(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        while !self.sessions.is_empty() {
            self.close_first(sink)?;
        }
        ControlFlow::Continue(())
    }

    fn close_first(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let Some(session) = self.sessions.pop_front() else {
            self.bytes = 0;
            return ControlFlow::Continue(());
        };
        self.bytes -= session.bytes;
        let mut id = format!("toolllama-{:016x}", session.query);
        let is_new = self.queries.len() < MAX_QUERIES && self.queries.insert(session.query);
        if !is_new {
            sink.tally_mut().note("session_in_several_pieces");
            let (At::Line(n) | At::Byte(n) | At::Row(n)) = session.first.at else {
                return ControlFlow::Continue(());
            };
            id.push_str(&format!("-{n}"));
        }
        let steps = session.steps;
        let conversation = steps.and_then(|steps| steps.finish(id, session.tools));
        sink.give(session.first, conversation)
    }
}

/// One record.
struct Step {
    query: u64,
    bytes: usize,
    tools: Vec<Json>,
    history: Vec<Message>,
}

impl Step {
    fn of(mut record: Json, tally: &mut Tally) -> Result<Self, Fault> {
        tally.unknown_members("record", &record, COLUMNS);
        let id = record.text("id");
        let id = id.ok_or_else(|| Fault::broken("no_id", "has no id"))?;
        let query = digest(query(id));
        let said = said(record.take("conversations").unwrap_or_default(), tally)?;
        let mut step = Self {
            query,
            bytes: said.iter().map(|(_, text)| text.len() + 64).sum(),
            tools: Vec::new(),
            history: Vec::with_capacity(said.len()),
        };
        let mut called = None;
        for (role, text) in said {
            let message = match role {
                Role::System => system(text, &mut step.tools, tally),
                Role::Assistant => react(&text, tally),
                Role::Function => Message {
                    name: called.take(),
                    ..plain(role, text)
                },
                _ => plain(role, text),
            };
            if let Some(call) = &message.function_call {
                called = Some(call.name.clone());
            }
            step.history.push(message);
        }
        Ok(step)
    }
}

/// What an id says after its step.
fn query(id: &str) -> &str {
    let rest = id
        .strip_prefix("Step ")
        .and_then(|rest| rest.split_once(": "));
    rest.filter(|(step, _)| step.bytes().all(|b| b.is_ascii_digit()))
        .map_or(id, |(_, query)| query)
}

/// Who said what, from a list of structs or from a struct of lists.
fn said(conversations: Json, tally: &mut Tally) -> Result<Vec<(Role, String)>, Fault> {
    let pairs: Vec<(Json, Json)> = match conversations {
        Json::Array(all) => all
            .into_iter()
            .map(|mut one| {
                tally.unknown_members("conversations", &one, &["from", "value"]);
                (
                    one.take("from").unwrap_or_default(),
                    one.take("value").unwrap_or_default(),
                )
            })
            .collect(),
        mut lists @ Json::Object(_) => {
            let (Some(Json::Array(from)), Some(Json::Array(value))) =
                (lists.take("from"), lists.take("value"))
            else {
                let says = "its conversations lack from or value";
                return Err(Fault::broken("no_messages", says));
            };
            if from.len() != value.len() {
                let says = "its conversations have more of from than of value, or less";
                return Err(Fault::broken("no_messages", says));
            }
            from.into_iter().zip(value).collect()
        }
        _ => return Err(Fault::broken("no_messages", "has no conversations")),
    };
    let one = |(from, value): (Json, Json)| {
        let role = from
            .as_str()
            .and_then(role)
            .ok_or_else(|| Fault::broken("unknown_role", format!("a message is from {from}")))?;
        match value {
            Json::String(text) => Ok((role, text)),
            Json::Null => Ok((role, String::new())),
            other => Ok((role, other.to_string())),
        }
    };
    pairs.into_iter().map(one).collect()
}

fn plain(role: Role, text: String) -> Message {
    Message {
        role,
        content: Some(Content::Text(text)),
        ..Message::default()
    }
}

/// Takes the functions out of the system's text, where Python's print of them can be read.
fn system(mut text: String, tools: &mut Vec<Json>, tally: &mut Tally) -> Message {
    if let Some(at) = text.find(FUNCTIONS) {
        let printed = text[at + FUNCTIONS.len()..].trim();
        match parse_python(printed, &mut tally.oddities) {
            Ok(Json::Array(all)) if all.iter().all(Json::is_object) => {
                *tools = all;
                text.truncate(at);
            }
            _ => tally.note("functions_left_in_text"),
        }
    }
    plain(Role::System, text)
}

/// Reads ReAct's text: thoughts, and the action with its input.
fn react(text: &str, tally: &mut Tally) -> Message {
    const ACTION: &str = "\nAction:";
    const INPUT: &str = "\nAction Input:";
    let parts = text.find(INPUT).and_then(|input| {
        let action = text[..input].rfind(ACTION)?;
        let name = text[action + ACTION.len()..input].trim();
        Some((&text[..action], name, text[input + INPUT.len()..].trim()))
    });
    let Some((thoughts, name, input)) = parts else {
        tally.note("react_left_as_text");
        return plain(Role::Assistant, text.to_owned());
    };
    let thoughts: Vec<&str> = thoughts
        .split("\nThought:")
        .map(str::trim)
        .filter(|thought| !thought.is_empty())
        .collect();
    Message {
        role: Role::Assistant,
        content: (!thoughts.is_empty()).then(|| Content::Text(thoughts.join("\n"))),
        function_call: Some(FunctionCall {
            name: name.to_owned(),
            arguments: Arguments::Text(input.to_owned()),
        }),
        ..Message::default()
    }
}

#[cfg(test)]
mod tests;
