//! `tollgate init`: a configuration to start from, by what is found here.
//!
//! Invariant: no file is replaced, no secret is written, and what is written is a configuration that `run` takes. What an
//! engine says reaches neither the terminal nor the command to paste as it came.
//! Not here: the document (`config::starter`).

mod arguments;
mod plain;
mod probe;

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::thread;

use config::{FoundEngine, Starter};
use plain::{shell_word, shown};
use probe::{Answer, Silence, models};

pub(crate) use self::arguments::Init;
use crate::world::World;

/// Where engines of this machine listen unless told otherwise.
const USUAL: &[(&str, u16)] = &[
    ("vllm", 8000),
    ("sglang", 30000),
    ("ollama", 11434),
    ("llama-cpp", 8080),
    ("lm-studio", 1234),
    ("litellm", 4000),
];

/// Characters of a model's name and of an address, of which an engine may say any number.
const NAME_CHARS: usize = 80;
/// Characters of why an engine said nothing, in which there may be words of the system.
const SILENCE_CHARS: usize = 200;
/// Characters of a path: as many as Linux takes.
const PATH_CHARS: usize = 4096;

/// Looks, writes, and gives what there is to say.
///
/// # Errors
/// Why nothing was written, in words.
pub(crate) fn init(options: &Init) -> Result<String, String> {
    let path = &options.output;
    if !options.print && path.symlink_metadata().is_ok() {
        return Err(refusal(path));
    }
    let mut found = named(&options.engine)?;
    if !options.no_probe {
        found.extend(usual(USUAL, &found));
    }
    let engines: Vec<FoundEngine> = found.iter().map(|found| found.engine.clone()).collect();
    let starter = config::starter(&engines, &World);
    let loaded = config::parse_document(path, starter.text.as_bytes(), &World)
        .map_err(|faults| format!("what was found makes no configuration\n{faults}"))?;
    if options.print {
        // The document alone goes to standard output.
        let silent = found.iter().filter(|found| found.silence.is_some());
        for found in silent {
            drop(writeln!(io::stderr(), "{}", told(found)));
        }
        return Ok(starter.text);
    }
    write(path, &starter.text)?;
    let mut said = String::new();
    for backend in &loaded.snapshot.backends {
        let found = found
            .iter()
            .find(|found| *found.engine.name == *backend.name);
        said.push_str(&match found {
            Some(found) => told(found),
            None if starter.is_placeholder => NOTHING.to_owned(),
            None => format!("{}: by the environment", backend.name),
        });
        said.push('\n');
    }
    let wants_key = engines.iter().find(|engine| engine.asks_for_a_key);
    let wants_key = wants_key.map(|engine| engine.name.as_str());
    said.push_str(&next(path, &starter, wants_key));
    Ok(said)
}

/// Why a file that is there is not written.
fn refusal(path: &Path) -> String {
    format!(
        "{} is there, and is left as it is; -o FILE names another, --print writes none",
        shown_path(path)
    )
}

/// Makes the file. One that cannot be written to its end is taken away again, so that the next try finds none.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let fault = |error| format!("cannot write {}: {error}", shown_path(path));
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(refusal(path)),
        Err(error) => return Err(fault(error)),
    };
    file.write_all(text.as_bytes()).map_err(|error| {
        // The first error is the one to tell.
        drop(std::fs::remove_file(path));
        fault(error)
    })
}

/// What is said where there is neither an engine nor a provider's key.
const NOTHING: &str = "nothing was found: put the address of your engine in the file";

/// An engine that is written.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    engine: FoundEngine,
    /// Why it said no models, where it was named and did not.
    silence: Option<Silence>,
}

/// A line about an engine that is written.
fn told(found: &Found) -> String {
    let engine = &found.engine;
    let (name, url) = (&engine.name, shown(&engine.url, NAME_CHARS));
    if let Some(silence) = &found.silence {
        let why = shown(&silence.to_string(), SILENCE_CHARS);
        return format!("{name}: {url} {why} It is written all the same.");
    }
    let model = |model: &String| shown(model, NAME_CHARS);
    match &engine.models[..] {
        [] if engine.asks_for_a_key => format!("{name}: {url} asks for a key"),
        [] => format!("{name}: {url} has no models"),
        [only] => format!("{name}: {url} has {}", model(only)),
        [first, rest @ ..] => {
            format!("{name}: {url} has {} and {} more", model(first), rest.len())
        }
    }
}

/// What to type next. An engine's word is in it only where it is a model's name, which a shell takes as it stands.
fn next(path: &Path, starter: &Starter, wants_key: Option<&str>) -> String {
    let named = if path.as_os_str() == "tollgate.yaml" {
        String::new()
    } else {
        let word = path.to_str().and_then(shell_word);
        format!(" -c {}", word.as_deref().unwrap_or("FILE"))
    };
    let first = match wants_key {
        Some(name) => {
            format!("  add `credential: {{ env: NAME_OF_A_VARIABLE }}` to the backend {name}\n")
        }
        None if starter.is_placeholder => {
            "  write the address of your engine under `backends`\n".to_owned()
        }
        None => String::new(),
    };
    let (then, model) = match &starter.model {
        Some(model) => ("", model.as_str()),
        None => (", with a model in place of MODEL", "MODEL"),
    };
    format!(
        "wrote {}\n\nNext:\n{first}  tollgate run{named}\n\nThen, from another terminal{then}:\n  \
         curl http://127.0.0.1:1975/v1/chat/completions \\\n    \
         -H 'content-type: application/json' \\\n    \
         -d '{{\"model\": \"{model}\", \"messages\": [{{\"role\": \"user\", \"content\": \"Say hello.\"}}]}}'",
        shown_path(path)
    )
}

fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy(), PATH_CHARS)
}

/// Engines that somebody named: they are written whether they answer or not.
fn named(urls: &[String]) -> Result<Vec<Found>, String> {
    let engine = |(index, url): (usize, &String)| {
        let url = with_root(url).ok_or_else(|| {
            let url = shown(url, NAME_CHARS);
            format!("--engine {url}: write an address such as http://127.0.0.1:8000/v1")
        })?;
        let name = match index {
            0 => "engine".to_owned(),
            _ => format!("engine-{}", index + 1),
        };
        Ok(match models(&url) {
            Ok(answer) => found(name, url, answer, None),
            Err(silence) => found(name, url, Answer::default(), Some(silence)),
        })
    };
    urls.iter().enumerate().map(engine).collect()
}

/// Engines of this machine that answer, but for those that were named.
fn usual(places: &[(&str, u16)], named: &[Found]) -> Vec<Found> {
    thread::scope(|scope| {
        let asked: Vec<_> = places
            .iter()
            .map(|(name, port)| {
                scope.spawn(move || {
                    let url = format!("http://127.0.0.1:{port}/v1");
                    let answer = models(&url).ok()?;
                    Some(found((*name).to_owned(), url, answer, None))
                })
            })
            .collect();
        let answered = asked.into_iter().filter_map(|asked| asked.join().ok()?);
        answered
            .filter(|found| {
                let mut named = named.iter();
                named.all(|named| named.engine.url != found.engine.url)
            })
            .collect()
    })
}

fn found(name: String, url: String, answer: Answer, silence: Option<Silence>) -> Found {
    let engine = FoundEngine {
        name,
        url,
        models: answer.models,
        asks_for_a_key: answer.asks_for_a_key,
    };
    Found { engine, silence }
}

/// An address with the root of the API, which may be left out.
fn with_root(url: &str) -> Option<String> {
    let url = url.trim_end_matches('/');
    let (scheme, rest) = url.split_once("://")?;
    let is_known = matches!(scheme, "http" | "https") && !rest.is_empty();
    let root = if rest.contains('/') { "" } else { "/v1" };
    is_known.then(|| format!("{url}{root}"))
}

#[cfg(test)]
mod tests;
