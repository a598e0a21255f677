//! `tollgate init`: a configuration to start from, by what is found here.
//!
//! Invariant: no file is replaced, no secret is written, and what is written is a configuration that `run` takes.
//! Not here: the document (`config::starter`).

mod arguments;
mod probe;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::thread;

use config::FoundEngine;
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

/// Looks, writes, and gives what there is to say.
///
/// # Errors
/// Why nothing was written, in words.
pub(crate) fn init(options: &Init) -> Result<String, String> {
    let path = &options.output;
    let is_there = format!(
        "{} is there, and is left as it is; -o FILE names another, --print writes none",
        path.display()
    );
    if !options.print && path.symlink_metadata().is_ok() {
        return Err(is_there);
    }
    let mut engines = named(&options.engine)?;
    if !options.no_probe {
        engines.extend(usual(USUAL, &engines));
    }
    let text = config::starter(&engines, &World);
    let loaded = config::parse_document(path, text.as_bytes(), &World)
        .map_err(|faults| format!("what was found makes no configuration\n{faults}"))?;
    if options.print {
        return Ok(text);
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(is_there),
        Err(error) => return Err(format!("cannot write {}: {error}", path.display())),
    };
    file.write_all(text.as_bytes())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    let mut said = String::new();
    for backend in &loaded.snapshot.backends {
        let engine = engines.iter().find(|engine| *engine.name == *backend.name);
        said.push_str(&told(&backend.name, engine));
        said.push('\n');
    }
    let is_usual = path.as_os_str() == "tollgate.yaml";
    let named = if is_usual {
        String::new()
    } else {
        format!(" -c {}", path.display())
    };
    let model = engines.iter().find_map(|engine| engine.models.first());
    let first = match model {
        Some(_) => "",
        None if engines.is_empty() && said.contains(NOTHING) => {
            "  write the address of your engine under `backends`\n"
        }
        None => "",
    };
    let then = match model {
        Some(_) => "",
        None => ", with a model of your engine in place of MODEL",
    };
    let model = serde_json::Value::from(model.map_or("MODEL", String::as_str));
    said.push_str(&format!(
        "wrote {}\n\nNext:\n{first}  tollgate run{named}\n\nThen, from another terminal{then}:\n  \
         curl http://127.0.0.1:1975/v1/chat/completions \\\n    \
         -H 'content-type: application/json' \\\n    \
         -d '{{\"model\": {model}, \"messages\": [{{\"role\": \"user\", \"content\": \"Say hello.\"}}]}}'",
        path.display()
    ));
    Ok(said)
}

/// What is said where there is neither an engine nor a provider's key.
const NOTHING: &str = "nothing was found: put the address of your engine in the file";

/// A line about a backend that is written.
fn told(name: &str, engine: Option<&FoundEngine>) -> String {
    let Some(engine) = engine else {
        return match name {
            "engine" => NOTHING.to_owned(),
            _ => format!("{name}: by the environment"),
        };
    };
    let FoundEngine { url, models, .. } = engine;
    match &models[..] {
        [] if engine.asks_for_a_key => format!("{name}: {url} asks for a key; add one in the file"),
        [] => format!("{name}: {url}, which does not say its models"),
        [model] => format!("{name}: {url} has {model}"),
        [model, rest @ ..] => format!("{name}: {url} has {model} and {} more", rest.len()),
    }
}

/// Engines that somebody named: they are written whether they answer or not.
fn named(urls: &[String]) -> Result<Vec<FoundEngine>, String> {
    let engine = |(index, url): (usize, &String)| {
        let url = with_root(url).ok_or_else(|| {
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
