//! Traces of agents without their text, as AgentX replays them: a line for each session, `{id, block_size, hash_id_scope, requests:
//! [{t, in, out, hash_ids, api_time, think_time, …}]}`.
//!
//! A prompt is words of one token each, block after block: a block has the same words wherever its name comes, in the session or, where
//! `hash_id_scope` is `global`, in all of them. What a prompt shares with the one before is the same messages, so that a corpus
//! has it once. A request with `requests` of its own is a group of sub-agents, each a session beside its parent's.
//! Invariant: a session has its requests in the order of the trace, with its pauses, of which none is longer than [`MOST_IDLE`].
//! Not here: where in a trace a replay begins, and when it ends (`load`).

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use experiment::random::Rng;

use super::files::walk;
use super::records::{line_units, lines};
use super::rows::{fallback, read_json, said};
use super::synthetic::words;
use super::trace::Blocks;
use super::{Fault, Position, ReadError, Reader, Sink, Unit};
use crate::conversation::{Content, Conversation, Decision, Message, Role};
use crate::json::Json;

/// A pause that is longer was somebody away, and is cut to this.
const MOST_IDLE: Duration = Duration::from_secs(300);
/// Deeper nested sub-agents are not followed.
const MOST_DEEP: usize = 8;
/// Names the streams of blocks, and of what no block names.
const BLOCK: u64 = 4;
const UNNAMED: u64 = 5;
/// The most tokens of one prompt: its words are made before a model's context is asked.
const MOST_TOKENS: u64 = 4 << 20;
/// The scope in which names mean the same in every session.
const GLOBAL: &str = "global";

/// The reader.
pub(super) struct AgentXReader {
    pub(super) blocks: Blocks,
    pub(super) seed: u64,
}

/// One request as the trace has it.
#[derive(Debug, Clone)]
struct Asked {
    tokens: usize,
    answer: u32,
    blocks: Vec<u64>,
    think: Option<Duration>,
}

/// Where a session's words come from.
struct Words<'a> {
    seed: u64,
    /// Names of blocks mean the same within it.
    scope: u64,
    /// What no block names is this session's alone.
    session: &'a str,
    block: usize,
}

impl Reader for AgentXReader {
    fn name(&self) -> &'static str {
        "agentx"
    }

    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        line_units(walk(self.name(), paths, &[".jsonl", ".ndjson"])?)
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        lines(unit, &mut |at, bytes| {
            let position = Position {
                file: unit.file.clone(),
                at,
                part: 0,
            };
            if !sink.wants(&position) {
                return ControlFlow::Continue(());
            }
            let row = bytes.and_then(|bytes| read_json(bytes, sink.tally_mut()));
            let sessions = match row {
                Ok(row) => self.sessions(&row, &fallback(&position)),
                Err(fault) => vec![Err(fault)],
            };
            for (part, session) in (0..).zip(sessions) {
                let position = Position {
                    part,
                    ..position.clone()
                };
                sink.give(position, session)?;
            }
            ControlFlow::Continue(())
        })
    }
}

impl AgentXReader {
    /// The session of a line, and behind it those of its sub-agents.
    fn sessions(&self, row: &Json, name: &str) -> Vec<Result<Conversation, Fault>> {
        let id = said(row, &["id"]).unwrap_or_else(|| name.to_owned());
        let of_row = row.get("block_size").and_then(Json::as_u64);
        let block = of_row.unwrap_or(u64::from(self.blocks.tokens));
        let block = usize::try_from(block).unwrap_or(usize::MAX).max(1);
        let scope = match row.text("hash_id_scope") {
            Some(GLOBAL) => 0,
            _ => number(&id),
        };
        let mut all = Vec::new();
        self.follow(row, &id, (block, scope), 0, &mut all);
        all
    }

    fn follow(
        &self,
        of: &Json,
        id: &str,
        (block, scope): (usize, u64),
        deep: usize,
        all: &mut Vec<Result<Conversation, Fault>>,
    ) {
        let Some(requests) = of.list("requests") else {
            let fault = Fault::broken("no_requests", "has no list of requests");
            return all.push(Err(fault));
        };
        let (groups, own): (Vec<&Json>, Vec<&Json>) = requests
            .iter()
            .partition(|request| request.list("requests").is_some());
        let words = Words {
            seed: self.seed,
            scope,
            session: id,
            block,
        };
        if !own.is_empty() || groups.is_empty() {
            all.push(asked(&own).and_then(|own| self.session(id, &own, &words)));
        }
        for (nth, group) in groups.into_iter().enumerate() {
            if deep < MOST_DEEP {
                let id = format!("{id}/{nth}");
                self.follow(group, &id, (block, scope), deep + 1, all);
            }
        }
    }

    fn session(
        &self,
        id: &str,
        requests: &[Asked],
        words: &Words<'_>,
    ) -> Result<Conversation, Fault> {
        if requests.is_empty() {
            return Err(Fault::broken("no_requests", "asks nothing"));
        }
        let mut session = Conversation {
            id: id.to_owned(),
            ..Conversation::default()
        };
        // The messages of whole blocks of the prompt before, with the blocks of each.
        let mut before: Vec<(usize, &[u64])> = Vec::new();
        for (nth, asked) in (0_u64..).zip(requests) {
            let tokens = asked
                .tokens
                .saturating_sub(self.blocks.template_tokens as usize);
            let tokens = tokens.max(1);
            let whole = asked.blocks.len().min(tokens / words.block);
            let named = asked.blocks.get(..whole).unwrap_or_default();
            let mut rest = named;
            let shared = before.iter().take_while(|(_, blocks)| {
                let after = rest.strip_prefix(*blocks);
                rest = after.unwrap_or(rest);
                after.is_some()
            });
            let shared = shared.count();
            before.truncate(shared);
            if !rest.is_empty() {
                before.push((session.messages.len(), rest));
                let texts: Vec<String> = rest
                    .iter()
                    .map(|name| words.of(*name, words.block))
                    .collect();
                session.messages.push(message(texts.join(" ")));
            }
            let mut prompt: Vec<usize> = before.iter().map(|(place, _)| *place).collect();
            let left = tokens - whole * words.block;
            if left > 0 {
                let text = match asked.blocks.get(whole) {
                    Some(name) => words.with_rest(*name, left, nth),
                    None => words.unnamed(left, nth),
                };
                prompt.push(session.messages.len());
                session.messages.push(message(text));
            }
            session.decisions.push(Decision {
                prompt,
                answer: None,
                think: asked.think.map(|think| think.min(MOST_IDLE)),
                answer_tokens: Some(asked.answer.max(1)),
            });
        }
        Ok(session)
    }
}

impl Words<'_> {
    /// The first words of a block.
    fn of(&self, name: u64, count: usize) -> String {
        words::text(
            count,
            &mut Rng::stream(self.seed, &[BLOCK, self.scope, name]),
        )
    }

    /// Words that are this request's alone.
    fn unnamed(&self, count: usize, nth: u64) -> String {
        let of = [UNNAMED, number(self.session), nth];
        words::text(count, &mut Rng::stream(self.seed, &of))
    }

    /// The last block, which may be short of one, and what no name is left for.
    fn with_rest(&self, name: u64, count: usize, nth: u64) -> String {
        let named = count.min(self.block);
        match count - named {
            0 => self.of(name, named),
            rest => format!("{} {}", self.of(name, named), self.unnamed(rest, nth)),
        }
    }
}

fn message(text: String) -> Message {
    Message {
        role: Role::User,
        content: Some(Content::Text(text)),
        ..Message::default()
    }
}

/// The requests of a session, each with its pause: as the trace says it, or from the end of the one before.
fn asked(requests: &[&Json]) -> Result<Vec<Asked>, Fault> {
    let seconds = |of: &Json, name: &str| of.get(name).and_then(Json::as_f64);
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    let mut all = Vec::with_capacity(requests.len());
    let mut ended: Option<f64> = None;
    for request in requests {
        let count = |name: &str| request.get(name).and_then(Json::as_u64);
        let tokens =
            count("in").ok_or_else(|| Fault::broken("no_length", "says no `in` tokens"))?;
        let begins = seconds(request, "t");
        if tokens > MOST_TOKENS {
            let says = "asks for more `in` tokens than 4194304, which no model takes";
            return Err(Fault::broken("too_long", says));
        }
        let think = match (seconds(request, "think_time"), begins, ended) {
            (Some(think), _, _) => Some(think),
            (None, Some(begins), Some(ended)) => Some(begins - ended),
            _ => None,
        };
        let blocks = request.list("hash_ids").unwrap_or_default();
        let blocks: Option<Vec<u64>> = blocks.iter().map(Json::as_u64).collect();
        all.push(Asked {
            tokens: usize::try_from(tokens).unwrap_or(usize::MAX),
            answer: u32::try_from(count("out").unwrap_or(1)).unwrap_or(u32::MAX),
            blocks: blocks
                .ok_or_else(|| Fault::broken("bad_hash_ids", "has hash_ids that are no numbers"))?,
            think: think.and_then(duration),
        });
        ended = begins.map(|begins| begins + seconds(request, "api_time").unwrap_or(0.0));
    }
    Ok(all)
}

/// A number of a name, the same in every build.
fn number(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    //! Made-up sessions in the form of the published ones.

    use super::*;

    const TWO: &str = concat!(
        r#"{"id":"one","models":["m"],"block_size":4,"hash_id_scope":"local","requests":["#,
        r#"{"t":0.0,"type":"main","in":10,"out":5,"hash_ids":[1,2,3],"api_time":2.0},"#,
        r#"{"t":5.0,"type":"main","in":18,"out":7,"hash_ids":[1,2,4,5,6],"api_time":1.0,"think_time":1.5},"#,
        r#"{"t":9000.0,"type":"main","in":9,"out":1,"hash_ids":[7,8],"api_time":1.0},"#,
        r#"{"type":"subagents","requests":[{"t":6.0,"in":8,"out":2,"hash_ids":[1,9]}]}]}"#,
        "\n",
        r#"{"id":"two","block_size":4,"hash_id_scope":"local","requests":[{"in":8,"out":2,"hash_ids":[1,2]}]}"#,
        "\n",
    );

    fn sessions(text: &str) -> Vec<Result<Conversation, Fault>> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("traces.jsonl");
        std::fs::write(&file, text).expect("a file");
        let reader = AgentXReader {
            blocks: Blocks::default(),
            seed: 7,
        };
        let units = reader.units(&[file]).expect("a unit");
        let mut all = Vec::new();
        let mut take = |_, session| {
            all.push(session);
            ControlFlow::Continue(())
        };
        for unit in &units {
            reader
                .read(unit, &mut Sink::new(&mut take))
                .expect("a trace");
        }
        all
    }

    fn prompt(session: &Conversation, nth: usize) -> Vec<String> {
        let places = session.decisions[nth].prompt.iter();
        let texts = places.map(|place| match &session.messages[*place].content {
            Some(Content::Text(text)) => text.clone(),
            other => panic!("{other:?}"),
        });
        let texts: Vec<String> = texts.collect();
        texts.join(" ").split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn prompts_have_their_lengths_their_pauses_and_share_what_they_shared() {
        let all: Vec<Conversation> = sessions(TWO)
            .into_iter()
            .map(|s| s.expect("good"))
            .collect();
        let ids: Vec<&str> = all.iter().map(|session| &*session.id).collect();
        assert_eq!(
            ids,
            ["one", "one/0", "two"],
            "sub-agents stand beside their parent"
        );
        let one = &all[0];
        let lengths: Vec<usize> = (0..3).map(|nth| prompt(one, nth).len()).collect();
        assert_eq!(lengths, [10, 18, 9]);
        let answers: Vec<Option<u32>> = one.decisions.iter().map(|d| d.answer_tokens).collect();
        assert_eq!(answers, [Some(5), Some(7), Some(1)]);
        let thinks: Vec<Option<Duration>> = one.decisions.iter().map(|d| d.think).collect();
        let seconds = |s: f64| Some(Duration::from_secs_f64(s));
        assert_eq!(
            thinks,
            [None, seconds(1.5), Some(MOST_IDLE)],
            "a long pause is cut"
        );
        // Two blocks of four are the same message in both.
        assert_eq!(one.decisions[0].prompt[0], one.decisions[1].prompt[0]);
        assert_eq!(prompt(one, 0)[..8], prompt(one, 1)[..8]);
        assert_ne!(prompt(one, 0)[..8], prompt(one, 2)[..8]);
        assert_eq!(
            prompt(one, 0)[..4],
            prompt(&all[1], 0)[..4],
            "of one trace, of one scope"
        );
        assert_ne!(
            prompt(one, 0)[..4],
            prompt(&all[2], 0)[..4],
            "names of another trace"
        );
    }

    #[test]
    fn names_of_a_global_scope_mean_the_same_everywhere() {
        let text = TWO.replace("local", "global");
        let all: Vec<Conversation> = sessions(&text)
            .into_iter()
            .map(|s| s.expect("good"))
            .collect();
        assert_eq!(prompt(&all[0], 0)[..8], prompt(&all[2], 0)[..8]);
    }

    #[test]
    fn a_line_that_says_too_little_is_a_fault_of_its_own() {
        let text = "{\"id\":\"a\"}\n{\"id\":\"b\",\"requests\":[{\"out\":1}]}\n{\"id\":\"c\",\"requests\":[]}\n\
                    {\"id\":\"d\",\"requests\":[{\"in\":3,\"hash_ids\":[\"x\"]}]}\n{\"id\":\"e\",\"requests\":[{\"in\":3}]}\n\
                    {\"id\":\"f\",\"requests\":[{\"in\":1000000000000}]}\n";
        let all = sessions(text);
        let are_good: Vec<bool> = all.iter().map(Result::is_ok).collect();
        assert_eq!(are_good, [false, false, false, false, true, false]);
    }
}
