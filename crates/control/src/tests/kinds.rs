//! The kinds that are deployed: what a rule of theirs reads has a bound, so that the API server knows what the rule costs at most.
//!
//! A rule is read by its words: each member that it names, but for one that it only asks `has` of, stands for all members of that name
//! below the rule's own place. That is more than it reads, and never less. Keys of a map have no bound in such a schema.

use std::collections::BTreeSet;

use config::{Node, Value, parse_all};
use serde_json::Value as Json;

const KINDS: [&str; 4] = [
    include_str!("../../../../deploy/kubernetes/crds/envoy-ai-gateway.yaml"),
    include_str!("../../../../deploy/kubernetes/crds/envoy-gateway.yaml"),
    include_str!("../../../../deploy/kubernetes/crds/gateway-api.yaml"),
    include_str!("../../../../deploy/kubernetes/crds/inference.yaml"),
];

#[test]
fn what_a_rule_of_a_deployed_kind_reads_has_a_bound() {
    let mut found = BTreeSet::new();
    let mut rules = 0;
    for kind in KINDS.into_iter().flat_map(documents) {
        let spec = &kind["spec"];
        for version in items(&spec["versions"]) {
            let name = spec["names"]["kind"].as_str().expect("a kind");
            rules += walk(&version["schema"]["openAPIV3Schema"], name, &mut found);
        }
    }
    assert!(rules > 500, "the rules are read: {rules}");
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "without a bound: {}", found.join("\n"));
}

#[test]
fn a_rule_names_what_it_reads() {
    let rule =
        "has(self.a) && (self.type == 'x.y' || size(self.b) > 0) && self.c.all(r, r.d == \"e.f\")";
    let (names, reads_self) = read(rule);
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        ["b", "c", "d", "type"]
    );
    assert!(!reads_self);
    assert!(read("self.matches('^a')").1 && read("size(self) < 9").1);
}

/// Those of a file: a line of JSON each, or YAML.
fn documents(text: &str) -> Vec<Json> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Json> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    match lines.is_empty() {
        true => parse_all(text).expect("YAML").iter().map(json).collect(),
        false => lines,
    }
}

/// Its texts, which is all that is read here.
fn json(node: &Node) -> Json {
    match &node.value {
        Value::Scalar(scalar) => scalar.raw.clone().into(),
        Value::List(items) => items.iter().map(json).collect(),
        Value::Map(entries) => {
            let member = |entry: &config::Entry| (entry.key.clone(), json(&entry.node));
            Json::Object(entries.iter().map(member).collect())
        }
    }
}

/// Notes what is read and has no bound; gives how many rules there are.
fn walk(schema: &Json, at: &str, found: &mut BTreeSet<String>) -> usize {
    let rules = items(&schema["x-kubernetes-validations"]);
    for rule in rules {
        let (names, reads_self) = read(rule["rule"].as_str().expect("a rule"));
        if reads_self && is_boundless(schema) {
            found.insert(at.to_owned());
        }
        below(schema, at, &names, found);
    }
    let within = children(schema).map(|(name, child)| walk(child, &format!("{at}.{name}"), found));
    rules.len() + within.sum::<usize>()
}

/// Notes members of these names without a bound, and what is in them.
fn below(schema: &Json, at: &str, names: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    for (name, child) in children(schema) {
        let is_member = !matches!(name, "[]" | "{}");
        if is_member && !names.contains(name) {
            continue;
        }
        let at = format!("{at}.{name}");
        if is_boundless(child) {
            found.insert(at.clone());
        }
        below(child, &at, names, found);
    }
}

/// Whether a value may be of any length. A number has one, and so has what can only be one of a list.
fn is_boundless(schema: &Json) -> bool {
    let has = |name: &str| {
        let all = items(&schema["allOf"]);
        let mut all = std::iter::once(schema).chain(all);
        all.any(|of| of.get(name).is_some())
    };
    match schema["type"].as_str() {
        Some("string") => !has("maxLength") && !has("enum") && schema["format"] != "date-time",
        Some("array") => !has("maxItems"),
        _ => false,
    }
}

fn children(schema: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let members = schema["properties"].as_object().into_iter().flatten();
    let members = members.map(|(name, child)| (name.as_str(), child));
    let inner = [("[]", "items"), ("{}", "additionalProperties")];
    let inner = inner.into_iter();
    members.chain(inner.filter_map(|(shown, name)| Some((shown, schema.get(name)?))))
}

fn items(list: &Json) -> &[Json] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The members that a rule reads, and whether it reads the value that it stands at.
fn read(rule: &str) -> (BTreeSet<String>, bool) {
    let mut plain = String::new();
    let mut quote = None;
    for c in rule.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if ['\'', '"'].contains(&c) => quote = Some(c),
            Some(_) => {}
            None => plain.push(c),
        }
    }
    while let Some(at) = plain.find("has(") {
        let end = plain[at..].find(')').map_or(plain.len(), |end| at + end);
        plain.replace_range(at..end, "");
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    let mut reads_self = false;
    let mut rest = plain.as_str();
    while let Some(at) = rest.find(is_word) {
        let is_member = rest[..at].ends_with('.');
        let word = &rest[at..];
        let (word, after) = word.split_at(word.find(|c| !is_word(c)).unwrap_or(word.len()));
        let is_called = after.starts_with('(');
        if is_member && !is_called {
            names.insert(word.to_owned());
        }
        // A member of it is read by its name; a function of it reads it.
        let next = after.strip_prefix('.').unwrap_or_default();
        let next = &next[next.find(|c| !is_word(c)).unwrap_or(next.len())..];
        reads_self |= word == "self" && (!after.starts_with('.') || next.starts_with('('));
        rest = after;
    }
    (names, reads_self)
}
