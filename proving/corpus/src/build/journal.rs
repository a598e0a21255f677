//! What a build notes while it goes on, so that it can be interrupted, and summed up at the end.
//!
//! Three files beside the store's: `facts` has a line for each record, `blocks` the names of the blocks that each
//! request adds, `journal` a line for each time that all files were put on the disk, with their lengths then.
//! Invariant: what the last whole line of the journal says is on the disk; everything after it is forgotten.
//! Not here: the store's own files (`store`), the sums (`finish`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::files::hex;
use super::{BuildError, Plan, Prepared, Progress};
use crate::store::{Lengths, StoreError, resumed};

const FACTS: &str = "facts";
const BLOCKS: &str = "blocks";
const JOURNAL: &str = "journal";
/// All of them.
pub(super) const FILES: [&str; 3] = [FACTS, BLOCKS, JOURNAL];

/// What a record came to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fact {
    /// A session, written, or left out as a duplicate.
    Session(SessionFact),
    /// None.
    Skipped {
        profile: usize,
        place: String,
        reason: String,
        says: String,
    },
    /// A unit came to its end.
    Unit {
        profile: usize,
        unknown: BTreeMap<String, u64>,
        notes: BTreeMap<String, u64>,
        oddities: BTreeMap<String, u64>,
    },
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SessionFact {
    pub(super) profile: usize,
    /// Of what it says, in hexadecimal digits.
    pub(super) digest: String,
    pub(super) licence: Option<String>,
    pub(super) repairs: BTreeMap<String, u64>,
    /// Whether it ends early because of the context.
    pub(super) cut: bool,
    pub(super) duplicate: bool,
    /// Whether it is in the corpus.
    pub(super) kept: bool,
    pub(super) bytes_unrolled: u64,
    pub(super) turns: Vec<TurnFact>,
}

/// One request. Its new blocks are the next `fresh` names in `blocks`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct TurnFact {
    #[serde(rename = "p")]
    pub(super) prompt_tokens: u32,
    #[serde(rename = "n")]
    pub(super) new_tokens: u32,
    #[serde(rename = "a")]
    pub(super) answer_tokens: u32,
    #[serde(rename = "o")]
    pub(super) own: u32,
    #[serde(rename = "f")]
    pub(super) fresh: u32,
    #[serde(rename = "t")]
    pub(super) think_ms: Option<u64>,
    #[serde(rename = "b")]
    pub(super) bytes: u64,
}

/// The record after the last that was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) profile: usize,
    pub(super) unit: usize,
    pub(super) record: u64,
}

/// How far everything is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) at: Place,
    pub(super) lengths: Lengths,
    facts: u64,
    blocks: u64,
    pub(super) records: u64,
    pub(super) sessions: u64,
    pub(super) requests: u64,
    pub(super) skipped: u64,
    pub(super) bytes_unrolled: u64,
}

impl State {
    pub(super) fn progress(&self, share: f64) -> Progress {
        Progress {
            share,
            records: self.records,
            sessions: self.sessions,
            requests: self.requests,
            skipped: self.skipped,
            bytes_stored: self.lengths.bodies + self.lengths.sessions + self.lengths.turns,
            bytes_unrolled: self.bytes_unrolled,
            bytes_unrolled_before: 0,
        }
    }
}

/// The notes of a build.
pub(super) struct Journal {
    work: PathBuf,
    facts: BufWriter<File>,
    blocks: BufWriter<File>,
    journal: File,
    pub(super) state: State,
}

impl Journal {
    /// Opens the notes in the working directory, or begins them.
    pub(super) fn open(work: &Path, fingerprint: &str) -> Result<Self, BuildError> {
        let path = work.join(JOURNAL);
        let (valid, state) = match fs::read(&path) {
            Ok(text) => read(&text, fingerprint).ok_or_else(|| {
                BuildError::Plan(format!(
                    "{} holds a build with other options or sources: give the same ones, or remove it",
                    work.display()
                ))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (0, State::default()),
            Err(error) => return Err(StoreError::io(&path)(error).into()),
        };
        let open = |name: &str, length: u64| {
            let path = work.join(name);
            resumed(&path, length).map_err(StoreError::io(path))
        };
        let mut journal = Self {
            work: work.to_owned(),
            facts: BufWriter::new(open(FACTS, state.facts)?),
            blocks: BufWriter::new(open(BLOCKS, state.blocks)?),
            journal: open(JOURNAL, valid)?,
            state,
        };
        if valid == 0 {
            let line = format!("{fingerprint}\n");
            journal.append(line.as_bytes())?;
        }
        Ok(journal)
    }

    /// Notes what a record came to.
    pub(super) fn note(&mut self, fact: &Fact, blocks: &[u64]) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(fact).unwrap_or_default();
        line.push(b'\n');
        let path = self.work.join(FACTS);
        self.facts.write_all(&line).map_err(StoreError::io(path))?;
        for name in blocks {
            let path = || self.work.join(BLOCKS);
            let done = self.blocks.write_all(&name.to_le_bytes());
            done.map_err(|error| StoreError::io(path())(error))?;
        }
        self.state.facts += line.len() as u64;
        self.state.blocks += 8 * blocks.len() as u64;
        Ok(())
    }

    /// Puts the notes on the disk; then what was written until now stays. The store's files have to be there first.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        for (out, name) in [(&mut self.facts, FACTS), (&mut self.blocks, BLOCKS)] {
            let done = out.flush().and_then(|()| out.get_ref().sync_data());
            done.map_err(StoreError::io(self.work.join(name)))?;
        }
        let state = serde_json::to_string(&self.state).unwrap_or_default();
        let line = format!("{:08x} {state}\n", crc32fast::hash(state.as_bytes()));
        self.append(line.as_bytes())
    }

    /// Nothing of what was written is to be gone on from.
    pub(super) fn forget(self) -> Result<(), StoreError> {
        let path = self.work.join(JOURNAL);
        fs::remove_file(&path).map_err(StoreError::io(path))
    }

    /// Hands every fact to `each`, with the names of the blocks that it adds.
    pub(super) fn facts(
        &mut self,
        mut each: impl FnMut(Fact, &mut dyn FnMut(u32) -> io::Result<Vec<u64>>) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.work.join(FACTS);
        let mut read = || {
            self.facts.flush()?;
            self.blocks.flush()?;
            let facts = BufReader::new(File::open(&path)?);
            let mut blocks = BufReader::new(File::open(self.work.join(BLOCKS))?);
            let mut names = |count: u32| {
                let mut bytes = vec![0; 8 * count as usize];
                blocks.read_exact(&mut bytes)?;
                let (names, _) = bytes.as_chunks::<8>();
                Ok(names.iter().map(|name| u64::from_le_bytes(*name)).collect())
            };
            for line in facts.lines() {
                each(serde_json::from_str(&line?)?, &mut names)?;
            }
            Ok(())
        };
        read().map_err(StoreError::io(&path))
    }

    fn append(&mut self, line: &[u8]) -> Result<(), StoreError> {
        let done = self.journal.write_all(line);
        done.and_then(|()| self.journal.sync_data())
            .map_err(StoreError::io(self.work.join(JOURNAL)))
    }
}

/// The bytes of a journal that are whole lines, and the last state; `None` if it is that of another build.
fn read(text: &[u8], fingerprint: &str) -> Option<(u64, State)> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let whole = |line: &'_ &[u8]| line.ends_with(b"\n");
    let Some(first) = lines.next().filter(whole) else {
        return Some((0, State::default()));
    };
    if first.trim_ascii_end() != fingerprint.as_bytes() {
        return None;
    }
    let (mut valid, mut state) = (first.len() as u64, State::default());
    for line in lines.take_while(whole) {
        let parsed = std::str::from_utf8(line)
            .ok()
            .and_then(|line| line.trim_end().split_once(' '))
            .filter(|(crc, state)| *crc == format!("{:08x}", crc32fast::hash(state.as_bytes())))
            .and_then(|(_, state)| serde_json::from_str(state).ok());
        let Some(parsed) = parsed else {
            break;
        };
        state = parsed;
        valid += line.len() as u64;
    }
    Some((valid, state))
}

/// What makes two builds the same: everything that their bytes follow from.
pub(super) fn fingerprint(
    plan: &Plan<'_>,
    prepared: &[Prepared<'_>],
    target: &str,
    repair: &str,
) -> String {
    let profiles = prepared.iter().map(|profile| {
        let units: Vec<String> = profile
            .units
            .iter()
            .map(|unit| format!("{:?} {}", unit.part, unit.bytes))
            .collect();
        json!({
            "name": profile.plan.name, "reader": profile.plan.reader.name(), "options": profile.plan.options,
            "sessions": profile.plan.sessions, "licence": profile.plan.licence,
            "sources": profile.sources, "units": units, "named": profile.stamps.named,
        })
    });
    let whole = json!({
        "tool": plan.tool, "store": crate::store::VERSION, "model": plan.model, "seed": plan.seed,
        "output": plan.output, "ignore_eos": plan.ignore_eos, "stream": plan.stream, "max_context": plan.max_context,
        "block_tokens": plan.block_tokens, "keep_duplicates": plan.keep_duplicates, "strict": plan.strict,
        "target": target, "repair": repair, "profiles": profiles.collect::<Vec<_>>(),
    });
    hex(&Sha256::digest(whole.to_string()))
}
