//! From lines of messages to a corpus whose counts are the engine's, and what is shown of it.

use std::path::Path;
use std::time::Duration;

use ::corpus::build::Progress;
use ::corpus::store::{BODIES, Corpus};
use clap::Parser;
use engine::prompt::PromptModel;
use simulator::kv::{Chain, KvCache, KvConfig, Table};

use super::figures;
use super::groups::{Group, Groups};
use super::progress::{describe, time};
use super::{Command, build, corpus, inspect};
use crate::report::plain::{self, Paper};

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Parser)]
struct Profiles {
    #[command(flatten)]
    groups: Groups,
}

fn run(arguments: &[&str]) -> super::Outcome {
    let line = ["prove"].iter().chain(arguments);
    corpus(&Line::parse_from(line).command)
}

fn groups(line: &str) -> Result<Vec<Group>, String> {
    let words = std::iter::once("prove").chain(line.split_whitespace());
    let parsed = Profiles::try_parse_from(words).map_err(|error| error.to_string())?;
    Ok(parsed.groups.0)
}

/// Sessions of a chat with a tool, of which some begin alike.
fn logs() -> String {
    let mut text = String::new();
    for i in 0..12 {
        let system = format!("You are helpful. {}", "Be kind. ".repeat(20 + i % 3));
        let line = serde_json::json!({
            "id": format!("chat-{i}"),
            "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.",
                "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}}],
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": format!("What is number {i}?")},
                {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
                    "function": {"name": "look", "arguments": format!("{{\"q\": \"{i}\"}}")}}]},
                {"role": "tool", "tool_call_id": "c1", "content": format!("It is {i}. ").repeat(30)},
                {"role": "assistant", "content": format!("Number {i} is {i}.")},
                {"role": "user", "content": "And the next?"},
                {"role": "assistant", "content": "One more."},
            ],
        });
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn built(dir: &Path, more: &[&str]) -> Corpus {
    let logs_file = dir.join("logs.jsonl");
    std::fs::write(&logs_file, logs()).unwrap();
    let (logs_file, out) = (logs_file.display().to_string(), dir.join("corpus"));
    let shown = out.display().to_string();
    let line = [
        "build",
        "--profile",
        "chat",
        "--reader",
        "messages",
        &logs_file,
        "--out",
        &shown,
    ];
    assert!(run(&[&line, more].concat()).unwrap());
    Corpus::open(&out).unwrap()
}

#[test]
fn what_the_index_counts_is_what_the_engine_counts() {
    for model in ["gpt-oss-120b", "another"] {
        let temp = tempfile::tempdir().unwrap();
        let corpus = built(temp.path(), &["--model", model]);
        assert_eq!((corpus.len(), corpus.requests()), (12, 36));
        let prompts = PromptModel::new(model, None, "2026-01-01").unwrap();
        for turn in corpus.sessions().flat_map(|s| s.turns()) {
            let tokens = prompts.prompt(&turn.parts().concat()).unwrap().len();
            assert_eq!(turn.prompt_tokens() as usize, tokens);
            assert!(turn.answer_tokens() > 0);
        }
    }
}

#[test]
fn the_predicted_hits_are_those_of_the_simulated_cache() {
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &[]);
    let prompts = PromptModel::new("gpt-oss-120b", None, "2026-01-01").unwrap();
    let mut cache = KvCache::new(KvConfig {
        block_size: 16,
        blocks: 1 << 16,
        prefix_caching: true,
        sliding_window: None,
    });
    let (mut queries, mut hits) = (0, 0);
    for (i, turn) in corpus.sessions().flat_map(|s| s.turns()).enumerate() {
        let ids = prompts.prompt(&turn.parts().concat()).unwrap();
        let chain = Chain::of_tokens(&ids, 16, i as u64);
        let hit = cache.look_up(&chain, ids.len() as u32);
        let mut table = Table::default();
        let rest = ids.len() as u32 - hit.tokens;
        assert!(cache.admit(&mut table, &chain, hit, rest, None));
        cache.release(&mut table);
        queries += ids.len() as u64;
        hits += u64::from(hit.tokens);
    }
    let predicted = corpus.manifest().prefix.hits;
    assert_eq!(
        (predicted.queries_tokens, predicted.hit_tokens),
        (queries, hits)
    );
    assert!(predicted.hit_tokens_own < hits && hits < queries);
}

#[test]
fn a_damaged_corpus_is_told_from_one_that_is_not_there() {
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &[]);
    drop(corpus);
    let dir = temp.path().join("corpus").display().to_string();
    assert!(run(&["verify", &dir]).unwrap());
    assert!(run(&["inspect", &dir, "--json"]).unwrap());
    let bodies = temp.path().join("corpus").join(BODIES);
    let mut bytes = std::fs::read(&bodies).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&bodies, bytes).unwrap();
    assert!(!run(&["verify", &dir]).unwrap());
    assert!(run(&["verify", "/there/is/none"]).is_err());
}

#[test]
fn a_corpus_is_exported_as_prompts_that_encode_to_the_same_tokens() {
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &[]);
    let (dir, out) = (temp.path().join("corpus"), temp.path().join("out"));
    let (dir, shown) = (dir.display().to_string(), out.display().to_string());
    assert!(run(&["export", &dir, "--format", "vllm", "--out", &shown]).unwrap());
    let lines = std::fs::read_to_string(out.join("chat.jsonl")).unwrap();
    assert_eq!(lines.lines().count() as u64, corpus.requests());
    let vocabulary = engine::tokenizer::Tokenizer::o200k();
    for (line, turn) in lines.lines().zip(corpus.sessions().flat_map(|s| s.turns())) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let ids = vocabulary.encode_marked(line["prompt"].as_str().unwrap());
        assert_eq!(ids.len(), turn.prompt_tokens() as usize);
        assert_eq!(line["output_tokens"], turn.answer_tokens());
    }
}

#[test]
fn a_file_of_profiles_is_what_a_command_line_says() {
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &["--seed", "7", "--model", "gpt-oss-20b"]);
    let config = "model = \"gpt-oss-20b\"\nseed = 7\n[[profile]]\nname = \"chat\"\nreader = \"messages\"\n\
                  paths = [\"logs.jsonl\"]\n";
    let (file, out) = (temp.path().join("corpus.toml"), temp.path().join("other"));
    std::fs::write(&file, config).unwrap();
    let (file, shown) = (file.display().to_string(), out.display().to_string());
    assert!(run(&["build", "--config", &file, "--out", &shown]).unwrap());
    let other = Corpus::open(&out).unwrap();
    assert_eq!(corpus.manifest(), other.manifest());
    assert!(corpus.bytes_on_disk() == other.bytes_on_disk());
    std::fs::write(&file, "profiles = 1").unwrap();
    assert!(run(&["build", "--config", &file, "--out", &shown]).is_err());
}

#[test]
fn each_profile_has_what_stands_after_it() {
    let two = groups(
        "--profile a --reader toolbench x y --sessions 5 --profile b --reader synthetic --set turns=3 --licence MIT z",
    )
    .unwrap();
    assert_eq!(two.len(), 2);
    assert_eq!(
        (two[0].name.as_str(), two[0].reader.as_str()),
        ("a", "toolbench")
    );
    assert_eq!(two[0].paths, [Path::new("x"), Path::new("y")]);
    assert_eq!((two[0].sessions, two[1].sessions), (Some(5), None));
    assert_eq!(
        (two[1].paths.len(), two[1].options["turns"].as_str()),
        (1, "3")
    );
    assert_eq!(two[1].licence.as_deref(), Some("MIT"));
    for (line, says) in [
        (
            "x --profile a --reader messages",
            "before the first --profile",
        ),
        (
            "--reader messages --profile a",
            "before the first --profile",
        ),
        ("--profile a", "has no --reader"),
        ("--profile a --reader messages --reader atif", "two readers"),
        ("--profile a --reader synthetic --set turns", "no `=`"),
    ] {
        let error = groups(line).unwrap_err();
        assert!(error.contains(says), "{line}: {error}");
    }
}

#[test]
fn the_help_names_every_format() {
    use clap::CommandFactory;
    let help = Profiles::command().render_long_help().to_string();
    for format in ::corpus::reader::Format::ALL {
        assert!(help.contains(format.as_str()), "{format}");
    }
}

#[test]
fn a_setting_that_a_reader_does_not_have_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("corpus").display().to_string();
    for (set, says) in [
        ("speed=3", "no setting \"speed\""),
        ("turns=many", "is no number"),
        ("turns=-1", "0 or more"),
    ] {
        let line = [
            "build",
            "--profile",
            "a",
            "--reader",
            "synthetic",
            "--set",
            set,
            "--out",
            &out,
        ];
        let error = run(&line).unwrap_err().to_string();
        assert!(error.contains(says), "{set}: {error}");
    }
}

fn page(name: &str, corpus: &Corpus, (width, is_bold): (usize, bool)) -> String {
    plain::text(&inspect::sections(name, corpus), Paper { width, is_bold })
}

#[test]
fn a_page_has_what_the_manifest_has_and_keeps_its_width() {
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &[]);
    for width in [60, 80, 140] {
        let text = page("name", &corpus, (width, false));
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        for expected in ["requests", "36", "predicted hit rate", "logs.jsonl", "█"] {
            assert!(text.contains(expected), "{expected}");
        }
        assert!(!text.contains('\u{1b}'));
    }
    assert!(page("name", &corpus, (80, true)).contains("\u{1b}[1m"));
}

#[test]
fn nothing_of_a_dataset_reaches_a_terminal_as_a_command() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("lo\u{1b}[31mgs.jsonl");
    let evil = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
    let mut line = serde_json::json!({
        "license": format!("MIT{evil}"),
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    });
    line[format!("member{evil}")] = 1.into();
    std::fs::write(&file, format!("{line}\n")).unwrap();
    let (file, out) = (file.display().to_string(), temp.path().join("corpus"));
    let shown = out.display().to_string();
    let line = |name: &'static str| {
        let line = ["build", "--profile", name, "--reader", "messages"];
        [&line[..], &[&file, "--out", &shown]].concat()
    };
    for (name, says) in [
        ("\u{1b}[2J", "not printed"),
        ("", "is empty"),
        ("a\u{202e}b", "not printed"),
    ] {
        let error = run(&line(name)).unwrap_err().to_string();
        assert!(
            error.contains("name of profile") && error.contains(says),
            "{error}"
        );
    }
    assert!(super::options::check_name(&"n".repeat(129)).is_err());
    assert_eq!(super::options::check_name(&"n".repeat(128)), Ok(()));
    assert!(run(&line("chat")).unwrap());
    let name = format!("name{evil}");
    let text = page(&name, &Corpus::open(&out).unwrap(), (140, false));
    for expected in ["member\u{fffd}]0;x", "MIT\u{fffd}]0;x", "lo\u{fffd}[31mgs"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let obeyed = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
    assert!(!text.contains(obeyed), "{text:?}");
    let error = run(&["verify", &format!("/there/is/{evil}")]).unwrap_err();
    assert!(!error.to_string().contains(obeyed), "{error}");
}

#[test]
fn fewer_sessions_than_were_asked_for_are_told() {
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &["--sessions", "5000"]);
    assert_eq!(
        build::fewer(corpus.manifest()),
        ["profile chat: 5,000 sessions were asked for, 12 are there; its sources have 12"]
    );
    let temp = tempfile::tempdir().unwrap();
    let corpus = built(temp.path(), &["--sessions", "12"]);
    assert!(build::fewer(corpus.manifest()).is_empty());
}

#[test]
fn numbers_are_shown_as_people_read_them() {
    assert_eq!(
        [0, 999, 1_000, 1_234_567].map(crate::text::number),
        ["0", "999", "1,000", "1,234,567"]
    );
    assert_eq!(
        [999, 1_500, 2_000_000].map(figures::bytes),
        ["999 B", "1.5 kB", "2.0 MB"]
    );
    assert_eq!([5.0, 120.0, 7_200.0].map(time), ["5 s", "2 min", "2.0 h"]);
    let counts = figures::by_powers([1, 2, 3, 9].into_iter());
    let counts = counts.iter().map(|bar| (&*bar.name, &*bar.says));
    let expected = [("1", "1"), ("2-", "2"), ("4-", "0"), ("8-", "1")];
    assert_eq!(counts.collect::<Vec<_>>(), expected);
}

#[test]
fn progress_says_how_long_it_takes_from_where_this_call_began() {
    let progress = Progress {
        share: 0.75,
        sessions: 1_000,
        skipped: 2,
        bytes_unrolled: 30_000_000,
        bytes_unrolled_before: 10_000_000,
        ..Progress::default()
    };
    assert_eq!(
        describe(&progress, Duration::from_secs(10), 0.5),
        "[###############-----] 75 % · 1,000 sessions · 2 skipped · 2.0 MB/s · 10 s left"
    );
}

#[test]
fn an_output_is_recorded_free_or_a_number() {
    use ::corpus::unroll::Output;
    assert_eq!(build::output("recorded"), Ok(Output::Recorded));
    assert_eq!(build::output("12"), Ok(Output::Tokens(12)));
    assert!(build::output("0").is_err() && build::output("long").is_err());
}
