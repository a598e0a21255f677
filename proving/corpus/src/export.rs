//! A corpus in the forms that other tools read.
//!
//! - `paper`: one JSONL file for each profile, a line for each request: a thin envelope and the payload as an object,
//!   `{"session":…,"turn":…,"profile":…,"think_ms":…,"payload":{…}}`. `think_ms` is `null` where none is recorded;
//!   turns count from 0; the payload's bytes are those that are sent.
//! - `aiperf`: a directory of JSONL files, one for each session, a raw payload on each line.
//! - `vllm`: one JSONL file for `vllm bench serve --dataset-name custom`, a line for each request:
//!   `{"prompt":…,"output_tokens":…}`. The prompt is what the model's template makes, so it goes to `/v1/completions`
//!   with `--skip-chat-template`.
//!
//! Invariant: payloads are written as they lie in the corpus, byte for byte; lines come in the corpus's order.
//! Not here: how messages become a prompt; whoever exports gives that.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::json;

use crate::store::{Corpus, Session, StoreError, Turn};

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The white paper's full unroll.
    Paper,
    /// AIPerf's raw payloads.
    AiPerf,
    /// `vllm bench`'s custom data set.
    Vllm,
}

/// Writes the text of a prompt, given the body of its request.
pub type Prompt<'a> = &'a dyn Fn(&[u8]) -> Result<String, String>;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files.
    pub files: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Writes a corpus into a directory, which must not be there or be empty.
///
/// # Errors
/// When the directory is not empty, the disk refuses, or `prompt` says that a request makes no prompt.
pub fn export(
    corpus: &Corpus,
    format: Format,
    out: &Path,
    prompt: Prompt<'_>,
) -> Result<Exported, StoreError> {
    fs::create_dir_all(out).map_err(StoreError::io(out))?;
    let mut inside = fs::read_dir(out).map_err(StoreError::io(out))?;
    if inside.next().is_some() {
        let error = io::Error::other("is not empty; name another directory");
        return Err(StoreError::io(out)(error));
    }
    let mut names = std::collections::BTreeMap::new();
    for profile in &corpus.manifest().profiles {
        if let Some(other) = names.insert(file_name(&profile.name), &profile.name) {
            let says = format!(
                "profiles {other:?} and {:?} would be one file",
                profile.name
            );
            return Err(StoreError::io(out)(io::Error::other(says)));
        }
    }
    let mut done = Exported::default();
    for (i, profile) in corpus.manifest().profiles.iter().enumerate() {
        let sessions = (0..corpus.sessions_of(i)).filter_map(|n| corpus.session_of(i, n));
        let name = file_name(&profile.name);
        match format {
            Format::AiPerf => {
                for session in sessions {
                    let name = format!("{name}-{:07}.jsonl", session.number());
                    let mut lines = Lines::create(out, &name)?;
                    for turn in session.turns() {
                        lines.put(turn.parts().into_iter().chain([&b"\n"[..]]))?;
                    }
                    lines.close(&mut done)?;
                }
            }
            Format::Paper | Format::Vllm => {
                let mut lines = Lines::create(out, &format!("{name}.jsonl"))?;
                for session in sessions {
                    for (n, turn) in session.turns().enumerate() {
                        if format == Format::Paper {
                            envelope(&mut lines, &profile.name, &session, n, &turn)?;
                        } else {
                            custom(&mut lines, &turn, prompt)?;
                        }
                    }
                }
                lines.close(&mut done)?;
            }
        }
    }
    Ok(done)
}

fn envelope(
    lines: &mut Lines,
    profile: &str,
    session: &Session<'_>,
    n: usize,
    turn: &Turn<'_>,
) -> Result<(), StoreError> {
    let think = turn.think().map(|think| think.as_secs_f64() * 1e3);
    let before = format!(
        "{{\"session\":{},\"turn\":{n},\"profile\":{},\"think_ms\":{},\"payload\":",
        json!(session.id()),
        json!(profile),
        json!(think)
    );
    let [head, body, tail] = turn.parts();
    lines.put([before.as_bytes(), head, body, tail, b"}\n"])
}

fn custom(lines: &mut Lines, turn: &Turn<'_>, prompt: Prompt<'_>) -> Result<(), StoreError> {
    let text = prompt(&turn.parts().concat())
        .map_err(|why| StoreError::io(&lines.path)(io::Error::other(why)))?;
    let line = json!({"prompt": text, "output_tokens": turn.answer_tokens().max(1)});
    lines.put([line.to_string().as_bytes(), b"\n"])
}

/// A file of lines.
struct Lines {
    path: std::path::PathBuf,
    out: BufWriter<File>,
    done: Exported,
}

impl Lines {
    fn create(dir: &Path, name: &str) -> Result<Self, StoreError> {
        let path = dir.join(name);
        let file = File::create_new(&path).map_err(StoreError::io(&path))?;
        Ok(Self {
            path,
            out: BufWriter::with_capacity(1 << 18, file),
            done: Exported::default(),
        })
    }

    fn put<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) -> Result<(), StoreError> {
        for part in parts {
            self.out
                .write_all(part)
                .map_err(StoreError::io(&self.path))?;
            self.done.bytes += part.len() as u64;
        }
        self.done.requests += 1;
        Ok(())
    }

    fn close(mut self, done: &mut Exported) -> Result<(), StoreError> {
        self.out.flush().map_err(StoreError::io(&self.path))?;
        done.files += 1;
        done.requests += self.done.requests;
        done.bytes += self.done.bytes;
        Ok(())
    }
}

/// A profile's name as a file may have it: what is not a letter, a digit, `-` or `_` becomes `_`.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests;
