//! Compares the decoders with the languages that they model, over generated bodies and paths.
//!
//! Where a language is not installed, the test compares the others and is counted as skipped.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::cases::{Case, Rng};
use super::decoders::{Call, Decoder};

/// Bodies and paths of a run, half of each.
const LINES: usize = 20_000;

const PYTHON: &str = r#"
import json, sys
from urllib.parse import unquote
def show(v): return "-" if v is None else v
for line in sys.stdin:
    kind, text = line[0], line[2:-1]
    if kind == "P":
        print(unquote(text.split("?")[0])); continue
    d = json.loads(text)
    o = d.get("stream_options") or {}
    p = d.get("prompt")
    listed = isinstance(p, list) and any(isinstance(i, (str, list)) for i in p)
    print(show(d.get("model")), int(bool(d.get("stream"))), int(bool(o.get("include_usage"))),
          *(show(d.get(k)) for k in ("max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of")),
          len(p) if listed else 1)
"#;

const JAVASCRIPT: &str = r#"
const show = (v) => v === null || v === undefined ? "-" : v;
const out = [];
for (const line of require("fs").readFileSync(0, "utf8").split("\n")) {
  if (!line) continue;
  const text = line.slice(2);
  if (line[0] === "P") {
    try { out.push(decodeURIComponent(text.split("?")[0]).toLowerCase()); } catch { out.push("refused"); }
    continue;
  }
  const d = JSON.parse(text), o = d.stream_options || {}, p = d.prompt;
  const listed = Array.isArray(p) && p.some((i) => typeof i === "string" || Array.isArray(i));
  out.push([show(d.model), Number(!!d.stream), Number(!!o.include_usage), show(d.max_tokens),
    show(d.max_completion_tokens), show(d.max_output_tokens), show(d.n), show(d.best_of),
    listed ? p.length : 1].join(" "));
}
process.stdout.write(out.join("\n") + "\n");
"#;

const GO: &str = r#"
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
)

type call struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	MaxOutputTokens     *int64 `json:"max_output_tokens"`
	N                   *int64 `json:"n"`
	BestOf              *int64 `json:"best_of"`
	Prompt              any    `json:"prompt"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		text := in.Text()[2:]
		if in.Text()[0] == 'P' {
			decoded, err := url.PathUnescape(strings.SplitN(text, "?", 2)[0])
			if err != nil {
				fmt.Fprintln(out, "refused")
			} else {
				fmt.Fprintln(out, path.Clean(decoded))
			}
			continue
		}
		var c call
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			fmt.Fprintln(out, "refused")
			continue
		}
		if c.Model == "" {
			c.Model = "-"
		}
		usage := 0
		if c.StreamOptions != nil && c.StreamOptions.IncludeUsage {
			usage = 1
		}
		stream := 0
		if c.Stream {
			stream = 1
		}
		fmt.Fprint(out, c.Model, " ", stream, " ", usage)
		for _, n := range []*int64{c.MaxTokens, c.MaxCompletionTokens, c.MaxOutputTokens, c.N, c.BestOf} {
			if n == nil {
				fmt.Fprint(out, " -")
			} else {
				fmt.Fprint(out, " ", *n)
			}
		}
		prompts := 1
		if list, ok := c.Prompt.([]any); ok {
			for _, item := range list {
				switch item.(type) {
				case string, []any:
					prompts = len(list)
				}
			}
		}
		fmt.Fprintln(out, "", prompts)
	}
}
"#;

#[test]
fn the_decoders_agree_with_the_languages_they_model() {
    let mut rng = Rng::new(testing::seed("the_decoders_agree_with_the_languages"));
    let mut corpus = String::new();
    let mut lines = Vec::new();
    while lines.len() < LINES {
        let case = Case::generate(&mut rng);
        // One answer per line.
        let coded = case.target.to_ascii_lowercase();
        let breaks_lines = ["%0a", "%0d", "%250a", "%250d"]
            .iter()
            .any(|line_end| coded.contains(line_end));
        let target = if breaks_lines {
            "/".to_owned()
        } else {
            case.target
        };
        let said = Decoder::Go.read(case.body.as_bytes());
        let breaks_lines = said.is_some_and(|call| shown(&call).contains(['\n', '\r']));
        let body = if breaks_lines {
            "{}".to_owned()
        } else {
            case.body
        };
        for (kind, text) in [("B", body), ("P", target)] {
            writeln!(corpus, "{kind} {text}").expect("a line");
            lines.push((kind, text));
        }
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("main.go");
    std::fs::write(&path, GO).expect("a file");
    let languages = [
        (Decoder::Go, Command::new("go")),
        (Decoder::Python, Command::new("python3")),
        (Decoder::JavaScript, Command::new("node")),
    ];
    let mut compared = 0;
    let mut missing = Vec::new();
    for (decoder, mut command) in languages {
        match decoder {
            Decoder::Go => command.arg("run").arg(&path).env("GO111MODULE", "off"),
            Decoder::Python => command.args(["-X", "utf8", "-c", PYTHON]),
            Decoder::JavaScript | Decoder::Lenient => command.args(["-e", JAVASCRIPT]),
        };
        let Some(answers) = run(command, &corpus) else {
            missing.push(decoder.name());
            continue;
        };
        let answers: Vec<&str> = answers.lines().collect();
        assert_eq!(answers.len(), lines.len(), "{}", decoder.name());
        for ((kind, text), answer) in lines.iter().zip(answers) {
            let ours = match *kind {
                "B" => decoder.read(text.as_bytes()).map(|call| shown(&call)),
                _ => decoder.path(text),
            };
            let ours = ours.unwrap_or_else(|| "refused".to_owned());
            assert_eq!(
                ours.escape_debug().to_string(),
                answer.escape_debug().to_string(),
                "{}: {text}",
                decoder.name()
            );
            compared += 1;
        }
    }
    println!("{compared} readings compared");
    if !missing.is_empty() {
        testing::skip(&format!("{} not installed", missing.join(" and ")));
    }
}

fn shown(call: &Call) -> String {
    let mut text = format!(
        "{} {} {}",
        call.model.as_deref().unwrap_or("-"),
        u8::from(call.stream),
        u8::from(call.include_usage)
    );
    for count in [
        call.max_tokens,
        call.max_completion_tokens,
        call.max_output_tokens,
        call.n,
        call.best_of,
    ] {
        match count {
            Some(count) => write!(text, " {count}").expect("a line"),
            None => text.push_str(" -"),
        }
    }
    write!(text, " {}", call.prompts).expect("a line");
    text
}

/// The output of a command for this input; `None` where the command is not installed.
fn run(mut command: Command, input: &str) -> Option<String> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.ok()?;
    let mut to = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || to.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("a writer").expect("all is read");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    Some(String::from_utf8(output.stdout).expect("text"))
}
