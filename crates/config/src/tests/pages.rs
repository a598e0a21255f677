//! Every piece of YAML of every page is taken, or refused as the page says; and `deploy/compose` fits together.
//!
//! A word behind `yaml` says what a piece is: none a whole document, `part` top-level members, `part=route` members of a route,
//! `part=rules` rules of an authority, `faulty` a document with the faults that stand below it, `of=…` something of others.
//! `file=…` is for whoever runs the page.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::world::DOCUMENT;
use crate::node::{Node, Value, parse};
use crate::{Faults, Loaded, Sources, load};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Where each file that a page names is there, with what its name promises, and each variable is set.
struct Generous<'a>(&'a str);

impl Sources for Generous<'_> {
    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let content = match &*name {
            _ if path == Path::new(DOCUMENT) => self.0,
            "service-account.json" => {
                r#"{"type":"service_account","client_email":"a","private_key":"b","token_uri":"https://c"}"#
            }
            "keys.jsonl" => "",
            "pets.yaml" => {
                "openapi: 3.1.0\nservers: [ { url: 'https://pets.example' } ]\npaths: { /pets: { get: {} } }\n"
            }
            "jwks.json" => r#"{"keys":[]}"#,
            "tokenizer.json" | "tokenizer_config.json" => "{}",
            _ if name.ends_with(".pem") => {
                "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
            }
            _ if name.ends_with(".key") => {
                "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"
            }
            // A secret, another one for each name.
            _ => {
                let sum = name
                    .bytes()
                    .fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
                return Ok(format!("{sum:064x}").into_bytes());
            }
        };
        Ok(content.as_bytes().to_vec())
    }

    fn var(&self, _name: &str) -> Option<String> {
        Some("canary-of-more-than-thirty-two-bytes".into())
    }
}

fn taken(text: &str) -> Result<Loaded, Faults> {
    load(Path::new(DOCUMENT), &Generous(text))
}

/// A piece of YAML with its place and the words behind its fence.
struct Piece {
    place: String,
    words: Vec<String>,
    text: String,
}

/// Markdown of the directories that pages are in.
fn pages() -> Vec<PathBuf> {
    let dirs = ["", "docs", "docs/decisions", "deploy", "deploy/compose"];
    let entries = dirs.iter().flat_map(|dir| {
        let dir = Path::new(ROOT).join(dir);
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    });
    entries
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect()
}

fn pieces() -> Vec<Piece> {
    let mut pieces = Vec::new();
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let mut at = 1;
        for (i, part) in page.split("\n```").enumerate() {
            at += part.matches('\n').count() + usize::from(i > 0);
            let Some((info, text)) = part.split_once('\n') else {
                continue;
            };
            // Fences come in pairs: behind an odd one there is a block.
            if let (1, Some(words)) = (i % 2, info.strip_prefix("yaml")) {
                let name = path.strip_prefix(ROOT).unwrap().display();
                pieces.push(Piece {
                    place: format!("{name}, before line {at}"),
                    words: words.split_whitespace().map(str::to_owned).collect(),
                    text: format!("{text}\n"),
                });
            }
        }
    }
    pieces
}

/// The names below a top-level member.
fn names(text: &str, member: &str) -> Vec<String> {
    let Ok(node) = parse(text) else {
        return Vec::new();
    };
    match find(&node, member).map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.iter().map(|entry| entry.key.clone()).collect(),
        _ => Vec::new(),
    }
}

fn find<'a>(node: &'a Node, member: &str) -> Option<&'a Node> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key == member)?;
    Some(&entry.node)
}

/// A part with what else a document needs, and does not change what the part says.
fn completed(part: &str) -> String {
    let mut text = part.to_owned();
    let has = |member: &str| part.starts_with(member) || part.contains(&format!("\n{member}"));
    if !has("backends:") {
        text += "backends:\n";
        for (at, name) in ["on-prem", "hosted", "frontier", "engine"]
            .iter()
            .enumerate()
        {
            text += &format!("  {name}: {{ url: http://127.0.0.1:800{at}/v1 }}\n");
        }
    }
    if !has("routes:") {
        let backend = names(&text, "backends").remove(0);
        let workloads = "[chat, batch, coding, nightly, team-a, trial]";
        text += &format!("routes: [ {{ workload: {workloads}, backend: {backend} }} ]\n");
    }
    text
}

#[test]
fn every_piece_of_yaml_is_taken_or_refused_as_its_page_says() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut refused = Vec::new();
    let indented = |text: &str, by: &str| {
        let lines = text.lines().map(|line| format!("{by}{line}\n"));
        lines.collect::<String>()
    };
    for piece in pieces() {
        let kind = piece.words.iter().find(|word| !word.starts_with("file="));
        let kind = kind.map_or("", String::as_str);
        *kinds.entry(kind.to_owned()).or_default() += 1;
        let text = match kind {
            "" => piece.text.clone(),
            "part" => completed(&piece.text),
            "part=route" => {
                let route = "routes:\n  - workload: chat\n    backend: engine\n";
                completed(&format!("{route}{}", indented(&piece.text, "    ")))
            }
            "part=rules" => completed(&format!("authority:\n  rules:\n{}", piece.text)),
            "faulty" => {
                faulty(&piece);
                continue;
            }
            _ if kind.starts_with("of=") => {
                for document in piece.text.split("\n---\n") {
                    let read = parse(document);
                    assert!(
                        read.is_ok_and(|node| matches!(node.value, Value::Map(_))),
                        "{}",
                        piece.place
                    );
                }
                continue;
            }
            other => panic!("{}: a block of yaml {other}", piece.place),
        };
        if let Err(faults) = taken(&text) {
            refused.push(format!("{}:\n{text}\n{faults}", piece.place));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    println!("pieces of YAML: {kinds:?}");
    let all: usize = kinds.values().sum();
    assert!(
        all >= 55 && kinds[""] >= 20 && kinds["part"] >= 25,
        "{kinds:?}"
    );
    assert_eq!(kinds["faulty"], 1);
}

/// What is shown under a faulty document is what its reader is told.
fn faulty(piece: &Piece) {
    let page = std::fs::read_to_string(Path::new(ROOT).join("docs/config.md")).unwrap();
    let faults = taken(&piece.text).unwrap_err().to_string();
    let shown = page.split("\n```text\n").nth(1).unwrap();
    let shown = shown.split("\n```").next().unwrap();
    let faults = faults.replace("/etc/tollgate/tollgate.yaml", "tollgate.yaml");
    assert_eq!(faults, shown, "{}", piece.place);
}

/// The texts of a list, or the only one.
fn texts(node: Option<&Node>) -> Vec<String> {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items.iter().flat_map(|item| texts(Some(item))).collect(),
        Some(Value::Scalar(scalar)) => vec![scalar.text.clone()],
        _ => Vec::new(),
    }
}

#[test]
fn the_stack_in_containers_is_the_one_of_plain_processes() {
    let deploy = Path::new(ROOT).join("deploy");
    let read = |name: &str| std::fs::read_to_string(deploy.join(name)).unwrap();
    let gate = read("compose/tollgate.yaml");
    assert_eq!(taken(&gate).unwrap().warnings, []);
    let compose =
        parse(&read("compose/compose.yaml")).unwrap_or_else(|faults| panic!("{faults:?}"));
    let script = read("compose/stack.sh").replace("\"$dir/series\"", "/prometheus");
    let script = script.replace(
        "\"$deploy/prometheus/prometheus.yml\"",
        "/etc/prometheus/prometheus.yml",
    );
    let volumes = find(&compose, "volumes").unwrap();
    let services = find(&compose, "services").unwrap();
    let Value::Map(entries) = &services.value else {
        panic!("no services");
    };
    let mut mounts = 0;
    for service in entries {
        let of = |member: &str| texts(find(&service.node, member));
        // One network, and every address on loopback: no port is published.
        assert_eq!(of("network_mode"), ["host"], "{}", service.key);
        assert!(find(&service.node, "ports").is_none(), "{}", service.key);
        for volume in of("volumes") {
            mounts += 1;
            let (from, to) = volume.rsplit_once(":/").unwrap();
            assert!(
                to.ends_with(":ro") || find(volumes, from).is_some(),
                "{volume}"
            );
            if !from.starts_with('$') && find(volumes, from).is_none() {
                let from = deploy.join("compose").join(from);
                assert!(from.exists(), "{volume}: there is no {}", from.display());
            }
        }
        for name in of("depends_on") {
            assert!(find(services, &name).is_some(), "{}: {name}", service.key);
        }
        // What a container is started with, a process is.
        for argument in of("command") {
            assert!(
                script.contains(&argument),
                "{}: {argument} is not in stack.sh",
                service.key
            );
        }
    }
    assert_eq!((entries.len(), mounts), (4, 7));
    // Grafana has no administrator and no sign-in, however it is started.
    let grafana = find(services, "grafana").unwrap();
    let Value::Map(variables) = &find(grafana, "environment").unwrap().value else {
        panic!("no variables of Grafana");
    };
    for variable in variables {
        let says = texts(Some(&variable.node)).concat();
        let set = format!("{}={says}", variable.key);
        assert!(script.contains(&set), "{set} is not in stack.sh");
    }
    for wanted in [
        "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION",
        "GF_AUTH_DISABLE_LOGIN_FORM",
        "GF_AUTH_BASIC_ENABLED",
    ] {
        assert!(
            variables.iter().any(|variable| variable.key == wanted),
            "{wanted}"
        );
    }
    // Who is asked listens there.
    let prometheus = read("prometheus/prometheus.yml");
    let source = read("grafana/provisioning/datasources/prometheus.yml");
    let all = format!("{gate}{script}");
    for target in prometheus.split("targets: [\"").skip(1) {
        let target = target.split('"').next().unwrap();
        assert!(all.contains(target), "nothing listens on {target}");
    }
    let url = source
        .split("url: http://")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(
        all.contains(&format!("--web.listen-address={url}")),
        "{url}"
    );
    assert!(
        read("grafana/provisioning/dashboards/tollgate.yml").contains("/etc/tollgate/dashboards")
    );
}
