//! Published traces of arrivals as sessions: Mooncake's and Alibaba's lines of JSON, Azure's and BurstGPT's CSV, ServeGen's clients.
//!
//! A trace has moments, lengths and, in lines of JSON, names of blocks (`hash_ids`), and no text. Each arrival becomes a session
//! of one request whose prompt has that many words of one token each: a block of the same name has the same words in each
//! prompt, so that prompts share the beginnings that they shared when they were recorded.
//! Invariant: sessions come in the order of the trace, one for each arrival, equal ones too: the replay of its moments
//! (`experiment::arrivals::Trace`) takes them so.
//! Not here: reading the forms (`experiment::arrivals`), moments.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use experiment::arrivals::{Trace, Traced};
use experiment::random::Rng;

use super::files::{walk, whole, whole_units};
use super::synthetic::words;
use super::{At, Position, ReadError, Reader, Sink, Unit};
use crate::conversation::{Content, Conversation, Decision, Message, Role};

/// Bytes of a trace, decompressed.
const MOST_BYTES: usize = 1 << 30;
/// Names the streams of blocks, and of what no block names.
const BLOCK: u64 = 2;
const UNNAMED: u64 = 3;

/// How a trace is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Tokens of a block.
    pub tokens: u32,
    /// Tokens that the model's template adds to each prompt, which are taken off its text.
    pub template_tokens: u32,
}

impl Default for Blocks {
    /// As Mooncake's are.
    fn default() -> Self {
        Self {
            tokens: 512,
            template_tokens: 0,
        }
    }
}

/// The reader.
pub(super) struct TraceReader {
    pub(super) blocks: Blocks,
    pub(super) seed: u64,
}

impl Reader for TraceReader {
    fn name(&self) -> &'static str {
        "trace"
    }

    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        whole_units(walk(self.name(), paths, &[".jsonl", ".csv"])?)
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let format = |says: String| ReadError::Format {
            path: unit.file.to_path_buf(),
            says,
        };
        let bytes = whole(&unit.file, MOST_BYTES)?;
        let bytes = bytes.ok_or_else(|| format("has more than 1 GiB".into()))?;
        let text = String::from_utf8(bytes).map_err(|error| format(error.to_string()))?;
        let name = unit.file.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let trace = if Trace::is_servegen(&text) {
            let lengths = lengths_beside(&unit.file, &name)?;
            Trace::servegen(&name, &text, lengths.as_deref())
        } else {
            Trace::parse(&name, &text)
        };
        let trace = trace.map_err(|error| format(error.to_string()))?;
        for (number, arrival) in (0_u64..).zip(trace.arrivals()) {
            let position = Position {
                file: unit.file.clone(),
                at: At::Row(number),
                part: 0,
            };
            if !sink.wants(&position) {
                continue;
            }
            let session = self.session(format!("{name}-{number}"), number, arrival);
            if sink.give(position, Ok(session)) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}

/// What stands in the file beside a client's windows of ServeGen: `chunk-7-dataset.json` beside `chunk-7-trace.csv`.
fn lengths_beside(windows: &Path, name: &str) -> Result<Option<String>, ReadError> {
    let Some(client) = name.strip_suffix("-trace.csv") else {
        return Ok(None);
    };
    let path = windows.with_file_name(format!("{client}-dataset.json"));
    if !path.exists() {
        return Ok(None);
    }
    let format = |says: String| ReadError::Format {
        path: path.clone(),
        says,
    };
    let bytes = whole(&path, MOST_BYTES)?;
    let bytes = bytes.ok_or_else(|| format("has more than 1 GiB".into()))?;
    let text = String::from_utf8(bytes).map_err(|error| format(error.to_string()))?;
    Ok(Some(text))
}

impl TraceReader {
    fn session(&self, id: String, number: u64, arrival: &Traced) -> Conversation {
        let message = Message {
            role: Role::User,
            content: Some(Content::Text(self.prompt(number, arrival))),
            ..Message::default()
        };
        let decision = Decision {
            prompt: vec![0],
            answer: None,
            think: None,
            answer_tokens: Some(arrival.output_tokens.max(1)),
        };
        Conversation {
            id,
            messages: vec![message],
            decisions: vec![decision],
            ..Conversation::default()
        }
    }

    /// Block after block; what no name is left for is this prompt's alone.
    fn prompt(&self, number: u64, arrival: &Traced) -> String {
        let tokens = arrival
            .prompt_tokens
            .saturating_sub(self.blocks.template_tokens);
        let (mut left, mut text) = (tokens.max(1) as usize, String::new());
        let block = self.blocks.tokens.max(1) as usize;
        let mut say = |words: String| {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&words);
        };
        for name in &arrival.blocks {
            if left == 0 {
                break;
            }
            let now = left.min(block);
            // A shorter block of a name begins as a whole one does.
            say(words::text(
                now,
                &mut Rng::stream(self.seed, &[BLOCK, *name]),
            ));
            left -= now;
        }
        if left > 0 {
            say(words::text(
                left,
                &mut Rng::stream(self.seed, &[UNNAMED, number]),
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    //! Lengths, shared beginnings, order.

    use super::*;

    fn sessions(name: &str, text: &str) -> Vec<Conversation> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("a file");
        let blocks = Blocks {
            tokens: 16,
            template_tokens: 10,
        };
        let reader = TraceReader { blocks, seed: 7 };
        let units = reader.units(&[file]).expect("a unit");
        let mut all = Vec::new();
        let mut take = |_, session: Result<Conversation, super::super::Fault>| {
            all.push(session.expect("a session"));
            ControlFlow::Continue(())
        };
        reader
            .read(&units[0], &mut Sink::new(&mut take))
            .expect("a trace");
        all
    }

    fn words_of(session: &Conversation) -> Vec<String> {
        let Some(Content::Text(text)) = &session.messages[0].content else {
            panic!("a text")
        };
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn prompts_have_the_lengths_and_the_beginnings_that_were_recorded() {
        let lines = [
            (0, 60, 5, "[1,2,3,4]"),
            (10, 60, 7, "[1,2,9,8]"),
            (20, 60, 5, "[1,2,3,4]"),
            (30, 8, 1, "[1]"),
        ];
        let lines = lines.map(|(at, prompt, output, blocks)| {
            format!("{{\"timestamp\":{at},\"input_length\":{prompt},\"output_length\":{output},\"hash_ids\":{blocks}}}\n")
        });
        let all = sessions("mooncake.jsonl", &lines.concat());
        let prompts: Vec<Vec<String>> = all.iter().map(words_of).collect();
        let lengths: Vec<usize> = prompts.iter().map(Vec::len).collect();
        assert_eq!(lengths, [50, 50, 50, 1], "the template's ten come on top");
        let outputs: Vec<Option<u32>> = all
            .iter()
            .map(|one| one.decisions[0].answer_tokens)
            .collect();
        assert_eq!(outputs, [Some(5), Some(7), Some(5), Some(1)]);
        let common = |one: &[String], other: &[String]| {
            one.iter()
                .zip(other)
                .take_while(|(one, other)| one == other)
                .count()
        };
        let shared = common(&prompts[0], &prompts[1]);
        assert!(
            (32..36).contains(&shared),
            "two blocks of 16, and chance: {shared}"
        );
        assert_eq!(prompts[0], prompts[2], "equal arrivals stay");
        let ids: Vec<&str> = all.iter().map(|one| &*one.id).collect();
        assert_eq!(ids[..2], ["mooncake.jsonl-0", "mooncake.jsonl-1"]);
    }

    #[test]
    fn a_client_of_servegen_has_the_lengths_of_the_file_beside_its_windows() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("chunk-7-trace.csv");
        std::fs::write(&file, "0,0.1,1.0,Exponential,0,0\n").expect("a file");
        let lengths = r#"{"0": {"input_tokens": "{12: 1.0}", "output_tokens": "{3: 1.0}"}}"#;
        let lengths_at = dir.path().join("chunk-7-dataset.json");
        let reader = TraceReader {
            blocks: Blocks::default(),
            seed: 7,
        };
        let read = |file: &Path| {
            let mut all = Vec::new();
            let mut take = |_, session: Result<Conversation, super::super::Fault>| {
                all.push(session.expect("a session"));
                ControlFlow::Continue(())
            };
            let units = reader.units(&[file.to_owned()]).expect("a unit");
            reader
                .read(&units[0], &mut Sink::new(&mut take))
                .expect("a trace");
            all
        };
        let without = read(&file);
        std::fs::write(&lengths_at, lengths).expect("a file");
        let with = read(&file);
        assert!((30..100).contains(&with.len()), "{}", with.len());
        assert_eq!(with.len(), without.len());
        assert!(
            with.iter()
                .all(|one| words_of(one).len() == 12 && one.decisions[0].answer_tokens == Some(3))
        );
        assert!(without.iter().all(|one| words_of(one).len() == 1));
    }

    #[test]
    fn a_trace_without_blocks_shares_nothing() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,74,9\n\
            2023-11-16 18:17:04.0319600,74,20\n";
        let all = sessions("azure.csv", text);
        let prompts: Vec<Vec<String>> = all.iter().map(words_of).collect();
        assert_eq!((prompts[0].len(), prompts[1].len()), (64, 64));
        assert_ne!(prompts[0], prompts[1]);
    }
}
