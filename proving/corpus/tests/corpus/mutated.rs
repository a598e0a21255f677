//! Fixtures with bytes changed: no reader panics, loops or hands on what cannot be repaired.

use std::path::{Path, PathBuf};

use corpus::reader::{Format, Settings};
use corpus::repair::{Mode, Options, repair};
use parquet::basic::Compression;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::fixture::{as_parquet, fixtures, read};
use crate::seeded::seeded;

/// A change of bytes at a place of a file.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Cut(Index),
    Remove(Index, usize),
    Repeat(Index, usize),
    Insert(Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), 1..=255_u8).prop_map(|(at, by)| Change::Flip(at, by)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, n)| Change::Remove(at, n)),
        1 => (any::<Index>(), 1..40_usize).prop_map(|(at, n)| Change::Repeat(at, n)),
        2 => (any::<Index>(), marks()).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
    ]
}

/// What JSON is made of.
fn marks() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&str] = &[
        "\"", "{", "}", "[", "]", ",", ":", "null", "\\u", "\\ud800", "1e999", "-", "NaN", "\n",
        "\0",
    ];
    proptest::collection::vec(proptest::sample::select(WORDS), 1..4)
        .prop_map(|words| words.concat().into_bytes())
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let to = |at: usize, n: usize| (at + n).min(bytes.len());
        match self {
            Self::Flip(at, by) => {
                let at = at.index(bytes.len());
                bytes[at] ^= by;
            }
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Remove(at, n) => {
                let at = at.index(bytes.len());
                let to = to(at, *n);
                bytes.drain(at..to);
            }
            Self::Repeat(at, n) => {
                let at = at.index(bytes.len());
                let to = to(at, *n);
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            Self::Insert(at, new) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, new.iter().copied());
            }
        }
    }
}

/// Reads and repairs all; panics where a reader does, and where it makes more than a file of that length can say.
fn survives(format: Format, path: &Path) {
    let bytes = std::fs::metadata(path).expect("a file").len();
    let mut messages = 0;
    let read = read(format, &Settings::default(), &[path.to_owned()]);
    for session in read
        .records
        .into_iter()
        .filter_map(|(_, session)| session.ok())
    {
        for mode in [Mode::Strict, Mode::Paper] {
            let _ = repair(
                session.clone(),
                &Options {
                    mode,
                    ..Options::default()
                },
            );
        }
        messages += session.messages.len() as u64;
        let places = session
            .decisions
            .iter()
            .flat_map(|d| d.prompt.iter().chain(&d.answer));
        assert!(
            places
                .into_iter()
                .all(|place| *place < session.messages.len())
        );
    }
    assert!(messages <= bytes, "{messages} of {bytes}");
}

fn changed(from: &Path, to: PathBuf, changes: &[Change]) -> PathBuf {
    let mut bytes = std::fs::read(from).expect("reads");
    changes.iter().for_each(|change| change.apply(&mut bytes));
    std::fs::write(&to, bytes).expect("writes");
    to
}

proptest! {
    #![proptest_config(seeded("mutated", 64))]

    #[test]
    fn changed_text_is_survived(changes in proptest::collection::vec(change(), 1..4)) {
        let dir = tempfile::tempdir().expect("a directory");
        let files = [
            (Format::ToolBench, "toolbench/G1_answer/1_ChatGPT_DFS_woFilter_w2.json"),
            (Format::ToolBench, "toolbench/G2_answer/2_ChatGPT_DFS_woFilter_w2.json"),
            (Format::ToolLlama, "toolllama/toolllama_G123_dfs_eval.json"),
            (Format::Atif, "atif/job/trajectory.json"),
            (Format::Atif, "atif/job/trajectory-old.json"),
            (Format::TerminalBench, "terminal-bench/rows.jsonl"),
            (Format::OpenHands, "openhands/rows.jsonl"),
            (Format::SweAgent, "swe-agent/rows.jsonl"),
            (Format::CoderForge, "coderforge/rows.jsonl"),
            (Format::Messages, "messages/log.jsonl"),
            (Format::Omniact, "omniact/train.json"),
        ];
        for (format, file) in files {
            let name = Path::new(file).file_name().expect("a name");
            let path = changed(&fixtures().join(file), dir.path().join(name), &changes);
            survives(format, &path);
        }
    }

    #[test]
    fn changed_parquet_is_survived(changes in proptest::collection::vec(change(), 1..4), codec in any::<bool>()) {
        let dir = tempfile::tempdir().expect("a directory");
        let codec = if codec { Compression::SNAPPY } else { Compression::UNCOMPRESSED };
        for (format, fixture, schema) in [
            (Format::OpenHands, "openhands", "rows.schema"),
            (Format::ToolLlama, "toolllama-parquet", "lists.schema"),
        ] {
            let whole = as_parquet(dir.path(), fixture, schema, codec);
            let path = changed(&whole, dir.path().join("changed.parquet"), &changes);
            survives(format, &path);
        }
    }
}
