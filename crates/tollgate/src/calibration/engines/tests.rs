//! Who is asked of a document's backends, where, with what, and for which models.

use std::io;

use super::*;

/// No file and no variable.
struct Nothing;

impl config::Sources for Nothing {
    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        match path.file_name().and_then(|name| name.to_str()) {
            Some("tokenizer.json" | "template.jinja") => Ok(b"{}".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

const TOKENIZERS: &str = "tokenizers: { gpt-oss: harmony, \"llama-*\": { file: tokenizer.json, template: template.jinja }, gpt-4o: o200k }\n";

pub(in crate::calibration) fn of(backends: &str, more: &str) -> Engines {
    let text = format!(
        "backends:\n{backends}routes: [ {{ workload: w, backend: [a] }} ]\n{TOKENIZERS}{more}"
    );
    let loaded = config::parse_document(Path::new("/x/t.yaml"), text.as_bytes(), &Nothing);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let revision = Arc::new(Revision::first(loaded.snapshot));
    Engines::of(
        &revision,
        &loaded.host,
        &Nothing,
        Some(&Services::default()),
    )
    .expect("engines")
}

/// Backend, address with path, and whether the credential goes there.
fn asked(engines: &Engines) -> Vec<(String, String, bool)> {
    let all = engines.all.iter();
    all.map(|engine| {
        let place = format!("{}{}", engine.api.authority(), engine.api.target());
        let has_credential = engine.auth != UpstreamAuth::None;
        (engine.backend.to_string(), place, has_credential)
    })
    .collect()
}

fn row(backend: &str, place: &str, has_credential: bool) -> (String, String, bool) {
    (backend.to_owned(), place.to_owned(), has_credential)
}

#[test]
fn an_engine_is_asked_where_its_backend_is_and_a_credential_goes_nowhere_else() {
    let engines = of(
        "  a: { endpoints: [ { url: http://127.0.0.1:1/v1 }, { url: http://127.0.0.1:2/v1 } ], credential: { inline: canary } }\n  \
         b: { url: http://127.0.0.1:3/v1, tokens: off }\n  \
         c: { url: http://127.0.0.1:4/v1, credential: { inline: canary }, tokens: \"http://127.0.0.1:5/v1\" }\n  \
         d: { url: http://127.0.0.1:6/v1, credential: { inline: canary }, tokens: \"http://127.0.0.1:6/own/v1\" }\n  \
         f: { url: http://127.0.0.1:6/own/v1, credential: { inline: canary }, tokens: \"http://127.0.0.1:6/own\" }\n  \
         e: { url: http://127.0.0.1:7/v1, proxy: \"http://127.0.0.1:8\" }\n",
        "",
    );
    assert_eq!(
        asked(&engines),
        [
            row("a", "127.0.0.1:1/v1", true),
            row("a", "127.0.0.1:2/v1", true),
            row("c", "127.0.0.1:5/v1", false),
            row("d", "127.0.0.1:6/own/v1", false),
            row("f", "127.0.0.1:6/own", true),
        ]
    );
    assert_eq!((engines.unasked("a"), engines.unasked("e")), (0, 1));
    assert_eq!(engines.every, Some(Duration::from_secs(6 * 60 * 60)));
}

#[test]
fn models_are_those_of_the_configuration_or_those_that_are_served() {
    let engines = of(
        "  a: { url: http://127.0.0.1:1/v1, models: [gpt-oss, gpt-4o, other], model_names: { llama-8b: own/llama } }\n  \
         b: { url: http://127.0.0.1:2/v1 }\n",
        "",
    );
    let names = |engine: &Engine, served: &[&str]| {
        let served: Vec<String> = served.iter().map(|name| (*name).to_owned()).collect();
        let models = engines.models(engine, &served).into_iter();
        models
            .map(|model| (model.label.to_string(), model.name, model.is_harmony))
            .collect::<Vec<_>>()
    };
    let [a, b] = &engines.all[..] else {
        panic!("two engines");
    };
    let model =
        |label: &str, name: &str, is_harmony| (label.to_owned(), name.to_owned(), is_harmony);
    assert!(!engines.asks_for_models(a) && engines.asks_for_models(b));
    assert_eq!(
        names(a, &["llama-70b"]),
        [
            model("gpt-oss", "gpt-oss", true),
            model("llama-8b", "own/llama", false)
        ]
    );
    // What has no name in the configuration stands with its pattern.
    assert_eq!(
        names(b, &["llama-70b", "llama-80b", "gpt-4o", "x"]),
        [model("llama-*", "llama-70b", false)]
    );
    let over = engines.passed_over.iter();
    let over: Vec<_> = over.map(|it| (&*it.backend, &*it.model, it.why)).collect();
    assert_eq!(over, [("a", "gpt-4o", "its template is not public")]);
}

#[test]
fn who_asks_the_same_is_told_from_who_does_not() {
    let backends = "  a: { url: http://127.0.0.1:1/v1, models: gpt-oss }\n";
    let one = of(backends, "");
    assert!(one.is_like(&of(backends, "drain: { grace: 1s }\n")));
    for (backends, more) in [
        ("  a: { url: http://127.0.0.1:2/v1, models: gpt-oss }\n", ""),
        ("  a: { url: http://127.0.0.1:1/v1 }\n", ""),
        (backends, "counting: { calibration: { every: 1h } }\n"),
        (backends, "counting: { calibration: off }\n"),
    ] {
        assert!(!one.is_like(&of(backends, more)), "{backends} {more}");
    }
    assert_eq!(of(backends, "counting: { calibration: off }\n").every, None);
}

#[test]
fn a_backend_moves_with_its_addresses_and_with_who_is_asked() {
    let backends = "  a: { url: http://127.0.0.1:1/v1, models: gpt-oss }\n";
    let one = of(backends, "");
    assert!(!one.moves(&of(backends, "counting: { calibration: off }\n"), "a"));
    for backends in [
        "  a: { url: http://127.0.0.1:2/v1, models: gpt-oss }\n",
        "  a: { url: http://127.0.0.1:1/x/v1, models: gpt-oss }\n",
        "  a: { url: http://127.0.0.1:1/v1, tokens: off }\n",
        "  a: { url: http://127.0.0.1:1/v1, tokens: \"http://127.0.0.1:2/v1\" }\n",
        "  a: { url: http://127.0.0.1:1/v1, models: gpt-oss, model_names: { gpt-oss: other } }\n",
        "  a: { url: http://127.0.0.1:1/v1, models: gpt-oss, headers: { x-pool: other } }\n",
    ] {
        assert!(one.moves(&of(backends, ""), "a"), "{backends}");
    }
}
