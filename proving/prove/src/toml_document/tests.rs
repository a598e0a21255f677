//! Faults of a document, each told once.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

use super::{Faults, Time};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    inner: BTreeMap<String, u8>,
    #[serde(default)]
    wait: Option<Time>,
    #[serde(default)]
    list: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    name: String,
    #[serde(default)]
    words: Vec<String>,
}

#[test]
fn every_fault_has_its_path_and_hides_no_other() {
    let mut faults = Faults::default();
    let text = "wiat = 1\nwait = 'soon'\n[inner]\na = 1\nb = 'x'\n[[list]]\nname = 1\nwords = ['a', 2]\n\
                [[list]]\nname = 'x'\n[[list]]\nnam = 'x'\n";
    let read: Document = faults.document(text).expect("what is left");
    assert_eq!((read.inner.len(), read.wait.is_none()), (1, true));
    let items = faults.tables::<Item>("list", read.list);
    let names: Vec<_> = items
        .iter()
        .map(|(path, item)| (&**path, &*item.name))
        .collect();
    assert_eq!((names, items[0].1.words.len()), (vec![("list[1]", "x")], 0));
    let told: Vec<String> = faults.0.iter().map(ToString::to_string).collect();
    for part in [
        "inner.b: invalid type: string",
        "wait: \"soon\" is no time",
        "wiat: unknown field `wiat`",
        "list[0].name: invalid type: integer",
        "list[0].words[1]: invalid type: integer",
        "list[2].nam: unknown field",
        "list[2].name: has to be there",
    ] {
        let says = |told: &&String| told.starts_with(part);
        assert_eq!(told.iter().filter(says).count(), 1, "{part}: {told:#?}");
    }
    assert_eq!(told.len(), 7, "{told:#?}");
}

#[test]
fn what_is_no_toml_is_one_fault_with_its_line() {
    let mut faults = Faults::default();
    assert!(faults.document::<Document>("a = 1\n[[b]\n").is_none());
    assert!(faults.0[0].to_string().contains("line 2"), "{faults:?}");
}
