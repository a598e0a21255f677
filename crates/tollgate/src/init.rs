//! `tollgate init`: a configuration to start from, by what is found here.
//!
//! Invariant: no file is replaced, no secret is written, and what is written is a configuration that `run` takes. What an
//! engine says reaches neither the terminal nor the command to paste as it came.
//! Not here: the document (`config::starter`).

mod arguments;
mod plain;
mod probe;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread;

use config::{FoundEngine, Starter};
use plain::{shell_word, shown};
use probe::{Answer, models};

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
    let mut engines = named(&options.engine)?;
    if !options.no_probe {
        engines.extend(usual(USUAL, &engines));
    }
    let starter = config::starter(&engines, &World);
    let loaded = config::parse_document(path, starter.text.as_bytes(), &World)
        .map_err(|faults| format!("what was found makes no configuration\n{faults}"))?;
    if options.print {
        return Ok(starter.text);
    }
    write(path, &starter.text)?;
    let mut said = String::new();
    for backend in &loaded.snapshot.backends {
        let engine = engines.iter().find(|engine| *engine.name == *backend.name);
        said.push_str(&match engine {
            Some(engine) => told(engine),
            None if starter.is_placeholder => NOTHING.to_owned(),
            None => format!("{}: by the environment", backend.name),
        });
        said.push('\n');
    }
    said.push_str(&next(path, &starter));
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

/// A line about an engine that is written.
fn told(engine: &FoundEngine) -> String {
    let (name, url) = (&engine.name, shown(&engine.url, NAME_CHARS));
    let model = |model: &String| shown(model, NAME_CHARS);
    match &engine.models[..] {
        [] if engine.asks_for_a_key => format!("{name}: {url} asks for a key; add one in the file"),
        [] => format!("{name}: {url}, which does not say its models"),
        [only] => format!("{name}: {url} has {}", model(only)),
        [first, rest @ ..] => {
            format!("{name}: {url} has {} and {} more", model(first), rest.len())
        }
    }
}

/// What to type next. An engine's word is in it only where it is a model's name, which a shell takes as it stands.
fn next(path: &Path, starter: &Starter) -> String {
    let named = if path.as_os_str() == "tollgate.yaml" {
        String::new()
    } else {
        let word = path.to_str().and_then(shell_word);
        format!(" -c {}", word.as_deref().unwrap_or("FILE"))
    };
    let first = if starter.is_placeholder {
        "  write the address of your engine under `backends`\n"
    } else {
        ""
    };
    let (then, model) = match &starter.model {
        Some(model) => ("", model.as_str()),
        None => (", with a model of your engine in place of MODEL", "MODEL"),
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
fn named(urls: &[String]) -> Result<Vec<FoundEngine>, String> {
    let engine = |(index, url): (usize, &String)| {
        let url = with_root(url).ok_or_else(|| {
            let url = shown(url, NAME_CHARS);
            format!("--engine {url}: write an address such as http://127.0.0.1:8000/v1")
        })?;
        let name = match index {
            0 => "engine".to_owned(),
            _ => format!("engine-{}", index + 1),
        };
        let answer = models(&url).unwrap_or_default();
        Ok(found(name, url, answer))
    };
    urls.iter().enumerate().map(engine).collect()
}

/// Engines of this machine that answer, but for those that were named.
fn usual(places: &[(&str, u16)], named: &[FoundEngine]) -> Vec<FoundEngine> {
    thread::scope(|scope| {
        let asked: Vec<_> = places
            .iter()
            .map(|(name, port)| {
                scope.spawn(move || {
                    let url = format!("http://127.0.0.1:{port}/v1");
                    let answer = models(&url)?;
                    Some(found((*name).to_owned(), url, answer))
                })
            })
            .collect();
        let answered = asked.into_iter().filter_map(|asked| asked.join().ok()?);
        answered
            .filter(|engine| named.iter().all(|named| named.url != engine.url))
            .collect()
    })
}

fn found(name: String, url: String, answer: Answer) -> FoundEngine {
    FoundEngine {
        name,
        url,
        models: answer.models,
        asks_for_a_key: answer.asks_for_a_key,
    }
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
