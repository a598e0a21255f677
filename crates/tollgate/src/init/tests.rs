//! What is found is written, and what is written is taken.

use std::io;
use std::path::Path;

use config::{FoundEngine, Sources};
use engine::{EngineConfig, spawn_thread};

use super::probe::Silence;
use super::{Found, named, next, told, usual, with_root};

/// A world with these variables.
struct With(&'static [(&'static str, &'static str)]);

impl Sources for With {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

fn engine_of(name: &str, port: u16, models: &[&str], asks_for_a_key: bool) -> FoundEngine {
    FoundEngine {
        name: name.to_owned(),
        url: format!("http://127.0.0.1:{port}/v1"),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
        asks_for_a_key,
    }
}

#[test]
fn an_address_without_the_apis_root_is_written_with_it_whatever_its_variable_says_later() {
    const NOW: &[(&str, &str)] = &[
        ("ANTHROPIC_API_KEY", "canary"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9001"),
    ];
    const LATER: &[(&str, &str)] = &[
        ("ANTHROPIC_API_KEY", "canary"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9002/v1"),
    ];
    const UNSET: &[(&str, &str)] = &[("ANTHROPIC_API_KEY", "canary")];
    let text = config::starter(&[], &With(NOW)).text;
    for environment in [NOW, LATER, UNSET] {
        let path = Path::new("tollgate.yaml");
        let loaded = config::parse_document(path, text.as_bytes(), &With(environment))
            .unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        assert_eq!(loaded.snapshot.endpoints[0].base_path, "/v1", "{text}");
    }
}

#[test]
fn what_is_written_is_taken_without_a_warning_whatever_was_found() {
    let environments: [&[(&str, &str)]; 5] = [
        &[],
        &[("OPENAI_API_KEY", "canary")],
        &[
            ("ANTHROPIC_API_KEY", "canary"),
            ("GEMINI_API_KEY", "canary"),
        ],
        &[("OPENAI_BASE_URL", "http://127.0.0.1:9000/v1")],
        &[
            ("OPENAI_API_KEY", "canary"),
            ("ANTHROPIC_API_KEY", "canary"),
            ("GEMINI_API_KEY", "canary"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9001"),
        ],
    ];
    let odd = ["gpt-oss-120b", "a/b:c", "with ${A} \"quotes\"", "all*"];
    let engines = [
        engine_of("vllm", 8000, &odd, false),
        engine_of("ollama", 11434, &["gpt-oss-120b", "llama3.2:3b"], false),
        engine_of("litellm", 4000, &[], true),
    ];
    for environment in environments {
        for many in 0..=engines.len() {
            let engines = &engines[..many];
            let text = config::starter(engines, &With(environment)).text;
            let path = Path::new("tollgate.yaml");
            let loaded = config::parse_document(path, text.as_bytes(), &With(environment))
                .unwrap_or_else(|faults| panic!("{faults}\n{text}"));
            assert_eq!(loaded.warnings, [], "{text}");
            assert!(!text.contains("canary"), "{text}");
            // What is offered is taken, too.
            // Where several are written, what clients are told of is known without one that is asked.
            let several = loaded.snapshot.backends.len() > 1;
            if several && environment.iter().any(|(name, _)| name.ends_with("_KEY")) {
                let known = ["gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.5-flash"];
                let mut priced = loaded.snapshot.prices.models();
                assert!(priced.any(|model| known.contains(&&**model)), "{text}");
            }
            let more = ["prices:", "budgets:", "tokenizers:"].into_iter();
            let more = more.fold(text.clone(), |text, word| {
                text.replace(&format!("\n# {word}"), &format!("\n{word}"))
            });
            let taken = config::parse_document(path, more.as_bytes(), &With(environment));
            assert!(taken.is_ok(), "{:?}\n{more}", taken.err());
            assert_ne!(more.len(), text.len());
            let is_there = |engine: &FoundEngine| {
                let mut backends = loaded.snapshot.backends.iter();
                backends.any(|backend| *backend.name == *engine.name)
            };
            // LiteLLM did not say what it has, so no route could lead there.
            assert!(engines.iter().take(2).all(is_there), "{text}");
            assert!(
                engines.len() < 3 || text.contains("  # litellm: { url: "),
                "{text}"
            );
        }
    }
}

#[test]
fn an_engine_that_answers_is_found_with_its_models() {
    let engine = spawn_thread(EngineConfig::default()).expect("an engine");
    let port = engine.addr().port();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let free = nobody.local_addr().expect("an address").port();
    drop(nobody);
    let found = usual(&[("vllm", port), ("sglang", free)], &[]);
    let [only] = &found[..] else {
        panic!("{found:?}");
    };
    let of = &only.engine;
    assert_eq!((of.name.as_str(), of.models.len()), ("vllm", 1), "{of:?}");
    let said = named(&[format!("http://127.0.0.1:{port}")]).expect("an address");
    assert_eq!(said[0].engine.models, of.models);
    assert_eq!(usual(&[("vllm", port)], &said), [], "it was named");
    let silent = named(&[format!("http://127.0.0.1:{free}/v1")]).expect("an address");
    assert_eq!(silent[0].engine.models, Vec::<String>::new());
    assert!(
        matches!(&silent[0].silence, Some(Silence::Unreachable(why)) if why.contains("refused"))
    );
    let line = told(&silent[0]);
    assert!(
        line.contains("/v1 cannot be reached: ") && line.ends_with("It is written all the same."),
        "{line}"
    );
}

#[test]
fn an_address_has_a_scheme_and_gets_the_root_that_was_left_out() {
    for (given, meant) in [
        ("http://a:8000", Some("http://a:8000/v1")),
        ("http://a:8000/", Some("http://a:8000/v1")),
        ("https://a/api/v2/", Some("https://a/api/v2")),
        ("a:8000", None),
        ("ftp://a", None),
        ("http://", None),
    ] {
        assert_eq!(with_root(given).as_deref(), meant, "{given}");
    }
}

#[test]
fn what_an_engine_says_reaches_no_shell_and_no_terminal_as_it_came() {
    let path = Path::new("a b;c.yaml");
    let paste = "gpt'; touch pwned; echo '";
    let said = |models: &[&str]| {
        let engines = [engine_of("vllm", 8000, models, false)];
        let starter = config::starter(&engines, &With(&[]));
        let [engine] = engines;
        let silence = None;
        (told(&Found { engine, silence }), next(path, &starter, None))
    };
    let (line, commands) = said(&[paste, "a\u{1b}]0;owned\u{7}"]);
    assert_eq!(
        line,
        "vllm: http://127.0.0.1:8000/v1 has gpt'; touch pwned; echo ' and 1 more"
    );
    assert!(!commands.contains("pwned"), "{commands}");
    assert!(
        commands.contains("in place of MODEL:") && commands.contains(r#"{"model": "MODEL", "#),
        "{commands}"
    );
    assert!(
        commands.contains("\n  tollgate run -c 'a b;c.yaml'\n"),
        "{commands}"
    );
    let (_, commands) = said(&[paste, "a/b:c@d"]);
    assert!(
        !commands.contains("MODEL") && commands.contains(r#"{"model": "a/b:c@d", "#),
        "{commands}"
    );
    let (line, _) = said(&[&"\u{1b}[2Ja\u{202e}".repeat(100_000)]);
    assert!(
        line.chars().count() < 200
            && line.starts_with("vllm: http://127.0.0.1:8000/v1 has \u{fffd}[2Ja\u{fffd}")
    );
    assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'));
}

#[test]
fn only_where_nothing_was_found_is_an_address_asked_for() {
    let named = [engine_of("engine", 8000, &[], false)];
    let cases = [
        (&[][..], With(&[]), true),
        (&[], With(&[("OPENAI_API_KEY", "canary")]), false),
        (&named, With(&[]), false),
    ];
    for (engines, environment, is_placeholder) in cases {
        let starter = config::starter(engines, &environment);
        assert_eq!(starter.is_placeholder, is_placeholder, "{}", starter.text);
        let said = next(Path::new("tollgate.yaml"), &starter, None);
        assert_eq!(
            said.contains("write the address of your engine"),
            is_placeholder
        );
        assert!(said.contains("\n  tollgate run\n"), "{said}");
    }
    let keyed = [engine_of("engine", 8000, &[], true)];
    let starter = config::starter(&keyed, &With(&[]));
    let said = next(Path::new("tollgate.yaml"), &starter, Some("engine"));
    assert!(said.contains("to the backend engine\n"), "{said}");
}
