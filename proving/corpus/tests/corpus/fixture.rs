//! The fixtures, and what readers and repair make of them as text.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use corpus::conversation::{Arguments, Content, Conversation, Message};
use corpus::json::{Json, Oddities, parse};
use corpus::reader::{Fault, Format, Position, Settings, Sink, Tally};
use corpus::repair::{Options, Repairs, repair};
use parquet::basic::Compression;

use crate::shredded;

/// A text is shown to this length.
const SHOWN: usize = 100;

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Rows of a fixture as a Parquet file in a directory of its own: those that are named like the schema, or `rows.jsonl`.
pub(crate) fn as_parquet(dir: &Path, fixture: &str, schema: &str, codec: Compression) -> PathBuf {
    let from = fixtures().join(fixture);
    let own = from.join(schema.replace(".schema", ".jsonl"));
    let rows = std::fs::read_to_string(own)
        .or_else(|_| std::fs::read_to_string(from.join("rows.jsonl")))
        .expect("rows");
    let read = |line: &str| parse(line.as_bytes(), &mut Oddities::default()).expect("JSON");
    let rows: Vec<Json> = rows.lines().map(read).collect();
    let schema = std::fs::read_to_string(from.join(schema)).expect("schema");
    let path = dir.join("data").join("rows.parquet");
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    shredded::write(&path, &schema, &rows, 2, codec);
    path
}

/// All records, and what was counted.
pub(crate) struct Read {
    pub(crate) records: Vec<(Position, Result<Conversation, Fault>)>,
    pub(crate) tally: Tally,
    /// Units that could not be read on.
    pub(crate) errors: Vec<String>,
}

pub(crate) fn read(format: Format, settings: &Settings, paths: &[PathBuf]) -> Read {
    let mut all = Read {
        records: Vec::new(),
        tally: Tally::default(),
        errors: Vec::new(),
    };
    let reader = format.reader(settings);
    let units = match reader.units(paths) {
        Ok(units) => units,
        Err(error) => {
            all.errors.push(error.to_string());
            return all;
        }
    };
    for unit in units {
        let mut each = |position, session| {
            all.records.push((position, session));
            ControlFlow::Continue(())
        };
        let mut sink = Sink::new(&mut each);
        let read = reader.read(&unit, &mut sink);
        let tally = sink.into_tally();
        all.tally.absorb(tally);
        all.errors.extend(read.err().map(|error| error.to_string()));
    }
    all
}

/// What was read, repaired and not, as text without the paths of this machine.
pub(crate) fn told(read: &Read, root: &Path, options: &Options<'_>) -> String {
    let mut text = String::new();
    let mut repairs = Repairs::default();
    for (position, session) in &read.records {
        let position = position
            .to_string()
            .replace(&format!("{}/", root.display()), "");
        let _ = writeln!(text, "=== {position}");
        match session {
            Err(fault) => {
                let _ = writeln!(text, "{:?}: {}: {}", fault.kind, fault.reason, fault.says);
            }
            Ok(session) => {
                session_told(&mut text, session);
                let (repaired, made) = repair(session.clone(), options);
                let _ = writeln!(text, "--- repaired");
                session_told(&mut text, &repaired);
                repairs.absorb(&made);
            }
        }
    }
    let _ = writeln!(text, "=== counted");
    let tally = &read.tally;
    let _ = writeln!(
        text,
        "sessions {}, decisions {}",
        tally.sessions, tally.decisions
    );
    let tables = [
        ("skipped", &tally.skipped),
        ("broken", &tally.broken),
        ("notes", &tally.notes),
    ];
    for (name, table) in tables {
        for (what, count) in table {
            let _ = writeln!(text, "{name} {what} {count}");
        }
    }
    for (name, count) in &tally.unknown.counts {
        let _ = writeln!(text, "unknown {name} {count}");
    }
    if tally.oddities != Oddities::default() {
        let _ = writeln!(text, "{:?}", tally.oddities);
    }
    for (kind, count) in repairs.iter() {
        let _ = writeln!(text, "repair {kind} {count}");
    }
    for error in &read.errors {
        let _ = writeln!(
            text,
            "error {}",
            error.replace(&format!("{}/", root.display()), "")
        );
    }
    text
}

fn session_told(text: &mut String, session: &Conversation) {
    let _ = write!(text, "session {}", session.id);
    if let Some(licence) = &session.licence {
        let _ = write!(text, ", {licence}");
    }
    let _ = writeln!(text);
    for tool in &session.tools {
        let _ = writeln!(text, "tool {tool}");
    }
    for (place, message) in session.messages.iter().enumerate() {
        let _ = writeln!(text, "{place} {}", message_told(message));
    }
    for decision in &session.decisions {
        let prompt: Vec<String> = decision.prompt.iter().map(usize::to_string).collect();
        let _ = write!(text, "asked {}", prompt.join(" "));
        if let Some(answer) = decision.answer {
            let _ = write!(text, " -> {answer}");
        }
        if let Some(think) = decision.think {
            let _ = write!(text, ", after {think:?}");
        }
        if let Some(tokens) = decision.answer_tokens {
            let _ = write!(text, ", {tokens} tokens");
        }
        let _ = writeln!(text);
    }
}

fn message_told(message: &Message) -> String {
    let mut text = message.role.as_str().to_owned();
    if let Some(name) = &message.name {
        let _ = write!(text, " name={name:?}");
    }
    if let Some(id) = &message.tool_call_id {
        let _ = write!(text, " answers={id:?}");
    }
    let _ = match &message.content {
        None => write!(text, " null"),
        Some(Content::Text(said)) => write!(text, " {}", short(&format!("{said:?}"))),
        Some(Content::Parts(parts)) => {
            write!(text, " {}", short(&Json::Array(parts.clone()).to_string()))
        }
    };
    if let Some(reasoning) = &message.reasoning {
        let _ = write!(text, " reasoning={reasoning:?}");
    }
    for call in &message.tool_calls {
        let id = call.id.as_deref().unwrap_or("-");
        let _ = write!(
            text,
            " call({id} {} {})",
            call.function.name,
            arguments(&call.function.arguments)
        );
    }
    if let Some(call) = &message.function_call {
        let _ = write!(
            text,
            " function_call({} {})",
            call.name,
            arguments(&call.arguments)
        );
    }
    text
}

fn arguments(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Text(text) => short(&format!("{text:?}")),
        Arguments::Object(value) => format!("object {value}"),
    }
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    if end == text.len() {
        text.to_owned()
    } else {
        format!("{}… ({} bytes)", &text[..end], text.len())
    }
}
