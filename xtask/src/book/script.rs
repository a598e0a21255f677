//! A page as one script for bash: its blocks in their order, in one session, as a reader with one terminal goes through it.
//!
//! Before each block the script writes its line into a file, so that whoever waits knows how far it is.
//! Not here: where the script runs and for how long (`blocks`).

use std::fmt::Write;

use crate::markdown::Block;
use crate::markdown::words::{Beside, Words, is_shell};

/// What every script begins with. `set -m`: each thing that stays has a process group, to be ended as a whole.
const PROLOGUE: &str = r#"set -emo pipefail
declare -A serving
wait_for() {
  for _ in $(seq 200); do
    if (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; then return 0; fi
    kill -0 "$2" 2>/dev/null || break
    sleep 0.05
  done
  echo "nothing serves on $1" >&2
  cat "$3" >&2
  return 1
}
stop() {
  local pid=${serving[$1]:-}
  if [ -n "$pid" ]; then
    kill -TERM -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    for _ in $(seq 200); do
      kill -0 -- "-$pid" 2>/dev/null || break
      sleep 0.05
    done
    unset "serving[$1]"
  fi
}
"#;

const ENGINE: &str = "127.0.0.1:8000";
const GATE: &str = "127.0.0.1:1975";

/// A block that is run, or written to a file.
pub(super) struct Step<'a> {
    pub(super) block: Block<'a>,
    pub(super) words: Words<'a>,
}

/// The script. `progress` is the file of lines, `clone` what makes the directory look like a clone.
pub(super) fn script(steps: &[Step<'_>], progress: &str, clone: &str) -> String {
    let mut script = PROLOGUE.to_owned();
    for step in steps {
        let (line, words) = (step.block.line, &step.words);
        let _ = writeln!(script, "echo {line} >> {progress}");
        if words.is_clone {
            script.push_str(clone);
        }
        if let Some(address) = words.ends {
            let _ = writeln!(script, "stop {address}");
        }
        if let Some(beside) = words.beside {
            script.push_str(&start_beside(beside));
        }
        match (words.file, is_shell(&step.block)) {
            (Some(name), _) => write_file(&mut script, name, &step.block.text),
            (None, true) => run(&mut script, step),
            (None, false) => {}
        }
    }
    let _ = writeln!(script, "echo end >> {progress}");
    script
}

fn start_beside(beside: Beside) -> String {
    let start = |address: &str, command: &str, log: &str| {
        format!(
            "if [ -z \"${{serving[{address}]:-}}\" ]; then\n  {command} > {log} 2>&1 &\n  \
             serving[{address}]=$!\n  wait_for {address} $! {log}\nfi\n"
        )
    };
    let engine = "prove engine --preset instant --model gpt-oss-120b";
    let engine = start(ENGINE, engine, "engine.log");
    match beside {
        Beside::Engine => engine,
        Beside::Gate => engine + &start(GATE, "tollgate run", "gate.log"),
        Beside::Demo => start(GATE, "tollgate demo", "demo.log"),
    }
}

fn write_file(script: &mut String, name: &str, text: &str) {
    let dir = name
        .rsplit_once('/')
        .map(|(dir, _)| format!("mkdir -p {dir}\n"));
    script.push_str(&dir.unwrap_or_default());
    let _ = write!(
        script,
        "cat > {name} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK\n"
    );
}

/// The commands of a block, and what stays of it.
fn run(script: &mut String, step: &Step<'_>) {
    let mut commands = commands(&step.block);
    let last = step
        .words
        .serves
        .and_then(|address| Some((address, commands.pop()?)));
    for command in commands {
        let _ = match step.words.exit {
            Some(codes) => write!(
                script,
                "code=0\n{{\n{command}\n}} || code=$?\ncase ,{codes}, in *,$code,*) ;; *) exit $code ;; esac\n"
            ),
            None => writeln!(script, "{command}"),
        };
    }
    if let Some((address, command)) = last {
        let log = format!("served-{}.log", step.block.line);
        let _ = write!(
            script,
            "stop {address}\n{{\n{command}\n}} > {log} 2>&1 &\nserving[{address}]=$!\nwait_for {address} $! {log}\n"
        );
    }
}

/// A block's commands. In `console` they stand behind `$`, and end where no line goes on; what is between is output.
pub(super) fn commands(block: &Block<'_>) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let is_console = block.info.starts_with("console");
    let mut goes_on = false;
    for line in block.text.lines() {
        let command = line.strip_prefix("$ ");
        match (command, goes_on, commands.last_mut()) {
            (_, true, Some(last)) => {
                last.push('\n');
                last.push_str(line);
            }
            (Some(command), ..) if is_console => commands.push(command.to_owned()),
            (None, false, _) if !is_console => commands.push(line.to_owned()),
            // Output.
            _ => continue,
        }
        goes_on = commands.last().is_some_and(|command| is_open(command));
    }
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// Whether a command goes on in the next line: a backslash at its end, a quotation or a here-document that is open.
fn is_open(command: &str) -> bool {
    if let Some((first, rest)) = command.split_once('\n')
        && let Some(end) = end_of_document(first)
    {
        return !rest.lines().any(|line| line == end);
    }
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') => return false,
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    quote.is_some() || command.ends_with('\\') || end_of_document(command).is_some()
}

/// The word that ends the here-document that a line begins.
fn end_of_document(line: &str) -> Option<&str> {
    let (_, word) = line.split_once("<<")?;
    let word = word.split_whitespace().next()?;
    let word = word.trim_matches(['\'', '"']);
    word.chars()
        .all(|c| c.is_ascii_uppercase() || c == '_')
        .then_some(word)
}

#[cfg(test)]
mod tests {
    use super::commands;
    use crate::markdown::Page;

    fn of(text: &str) -> Vec<String> {
        commands(&Page::of(text).blocks()[0])
    }

    #[test]
    fn a_console_holds_commands_and_their_output() {
        let text = "```console\n$ a b \\\n    -d 'c\n  d'\nout\n$ e   # isn't\nmore\n```\n";
        assert_eq!(of(text), ["a b \\\n    -d 'c\n  d'", "e   # isn't"]);
    }

    #[test]
    fn a_script_is_commands_alone() {
        let text = "```sh\na \\\n  b\n\ncat > c <<'END'\n$ d\nEND\ne \"f\ng\"\n```\n";
        assert_eq!(
            of(text),
            ["a \\\n  b", "cat > c <<'END'\n$ d\nEND", "e \"f\ng\""]
        );
    }
}
