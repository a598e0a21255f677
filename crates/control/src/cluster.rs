//! All objects of the files, and what is looked up in them.
//!
//! Not here: whether a reference may be followed (`reference`).

use std::cell::{Ref, RefCell};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use config::Given;
use policy::secret::Secret;

use crate::fields::Item;
use crate::file_of;
use crate::findings::{Broken, Findings, Spot};
use crate::mode::Mode;
use crate::object::{CORE, Object};
use crate::reference::{Grant, Reference, is_granted, is_missing};
use crate::tree::Tree;

/// Where programs of the Envoy AI Gateway without a cluster are told where a Secret's content comes from.
const FROM_ENV: &str = "substitution.aigw.run/env/";
const FROM_FILE: &str = "substitution.aigw.run/file/";
/// The same in a name that an API server takes.
pub(crate) const IN_FILE: &str = "tollgate/file.";

/// Objects by kind and name.
pub(crate) struct Cluster<'n> {
    pub(crate) objects: Vec<Object<'n>>,
    /// Where each is among them, by group, kind, namespace and name.
    index: BTreeMap<[String; 4], usize>,
    grants: Vec<Grant>,
    given: RefCell<Vec<(Given, String)>>,
    pub(crate) mode: Mode,
    /// What was looked for by its name, by kind, namespace and name.
    wanted: RefCell<BTreeSet<[String; 3]>>,
}

/// The label by which a slice says whose it is.
const SERVICE: &str = "kubernetes.io/service-name";

/// Whether a slice is of a Service.
fn is_slice_of(slice: &Object<'_>, service: &Reference) -> bool {
    let mut labels = slice.labels.iter();
    slice.namespace == service.namespace
        && labels.any(|(key, value)| key == SERVICE && *value == service.name)
}

/// Where the content of a Secret or `ConfigMap` is.
pub(crate) enum Content {
    /// In a file that comes with the document.
    File(PathBuf),
    /// In a variable of the environment.
    Variable(String),
}

impl Content {
    /// As a source of a secret is written.
    pub(crate) fn source(&self, spot: &Spot) -> Tree {
        match self {
            Self::File(path) => {
                Tree::map([("file", Some(Tree::text(path.to_string_lossy()).of(spot)))])
            }
            Self::Variable(name) => Tree::map([("env", Some(Tree::text(name).of(spot)))]),
        }
    }
}

impl<'n> Cluster<'n> {
    pub(crate) fn new(objects: Vec<Object<'n>>, mode: Mode, findings: &mut Findings) -> Self {
        let mut index = BTreeMap::new();
        for (place, object) in objects.iter().enumerate() {
            if matches!(object.kind, "Secret" | "ConfigMap") {
                let mut top = object.top(findings);
                top.skip(&["type", "immutable", "data", "stringData", "binaryData"]);
                top.end(findings);
            }
            let id = [object.group, object.kind, &object.namespace, &object.name];
            match index.entry(id.map(str::to_owned)) {
                Entry::Vacant(free) => {
                    free.insert(place);
                }
                Entry::Occupied(_)
                    if matches!(
                        object.kind,
                        "Service" | "EndpointSlice" | "Pod" | "Namespace"
                    ) => {}
                Entry::Occupied(other) => {
                    let other = objects.get(*other.get()).unwrap_or(object);
                    let says = format!("stands in {}, too", other.spot.place());
                    findings.fault(&object.spot, says, "keep one of them");
                }
            }
        }
        let grants = objects
            .iter()
            .filter(|object| object.kind == "ReferenceGrant");
        let grants = grants.map(|object| Grant::of(object, findings)).collect();
        Self {
            objects,
            index,
            grants,
            given: RefCell::default(),
            mode,
            wanted: RefCell::default(),
        }
    }

    /// What was looked for by its name.
    pub(crate) fn wanted(&self) -> BTreeSet<[String; 3]> {
        self.wanted.borrow().clone()
    }

    pub(crate) fn of_kind<'c>(
        &'c self,
        kind: &'static str,
    ) -> impl Iterator<Item = &'c Object<'n>> {
        self.objects
            .iter()
            .filter(move |object| object.kind == kind)
    }

    /// What an object names, where it may and where that is there.
    pub(crate) fn resolve(
        &self,
        from: &Object<'_>,
        to: &Reference,
        findings: &mut Findings,
    ) -> Option<&Object<'n>> {
        if !is_granted(from, to, &self.grants, findings) {
            return None;
        }
        if to.group == CORE && matches!(to.kind.as_str(), "Secret" | "ConfigMap" | "Service") {
            self.wants(&to.kind, &to.namespace, &to.name);
        }
        let id = [&to.group, &to.kind, &to.namespace, &to.name];
        let found = self.index.get(&id.map(Clone::clone));
        let found = found.and_then(|place| self.objects.get(*place));
        if found.is_none() && self.is_refused(to, findings) {
            return None;
        }
        if found.is_none() {
            let there: Vec<&Object<'_>> = self.objects.iter().collect();
            is_missing(to, &there, findings);
        }
        found
    }

    fn wants(&self, kind: &str, namespace: &str, name: &str) {
        let id = [kind, namespace, name].map(str::to_owned);
        self.wanted.borrow_mut().insert(id);
    }

    /// The slices of a Service.
    pub(crate) fn slices_of<'c>(
        &'c self,
        service: &'c Reference,
    ) -> impl Iterator<Item = &'c Object<'n>> {
        self.wants("EndpointSlice", &service.namespace, &service.name);
        let all = self.of_kind("EndpointSlice");
        all.filter(move |slice| is_slice_of(slice, service))
    }

    /// The Pods of a namespace that have all of these labels, in the order of their names.
    pub(crate) fn pods_of<'c>(
        &'c self,
        namespace: &'c str,
        labels: &'c [(String, String)],
        at: &Spot,
        findings: &mut Findings,
    ) -> Vec<&'c Object<'n>> {
        let selector: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let selector = selector.join(",");
        self.wants("Pod", namespace, &selector);
        let id = ["Pod", namespace, &selector].map(str::to_owned);
        if let Some(why) = self.mode.refused.get(&id) {
            findings.fault(at, format!("is of Pods which {why}"), "");
        }
        let all = self.of_kind("Pod").filter(|pod| pod.namespace == namespace);
        let mut pods: Vec<&Object<'n>> = all
            .filter(|pod| labels.iter().all(|label| pod.labels.contains(label)))
            .collect();
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        // One that is asked for twice is one.
        pods.dedup_by(|a, b| a.name == b.name);
        pods
    }

    /// The labels of a namespace, with the one that each has.
    pub(crate) fn labels_of_namespace(&self, name: &str) -> Vec<(String, String)> {
        self.wants("Namespace", "default", name);
        let own = self.of_kind("Namespace").find(|object| object.name == name);
        let mut labels = own.map_or_else(Vec::new, |object| object.labels.clone());
        labels.push(("kubernetes.io/metadata.name".to_owned(), name.to_owned()));
        labels
    }

    /// Whether an object may name what need not be in these files.
    pub(crate) fn is_granted(
        &self,
        from: &Object<'_>,
        to: &Reference,
        findings: &mut Findings,
    ) -> bool {
        is_granted(from, to, &self.grants, findings) && !self.is_refused(to, findings)
    }

    /// Whether what is named is there and not taken; a fault where that is so.
    fn is_refused(&self, to: &Reference, findings: &mut Findings) -> bool {
        let id = [&to.kind, &to.namespace, &to.name].map(Clone::clone);
        let Some(why) = self.mode.refused.get(&id) else {
            return false;
        };
        let says = format!("names {}, which {why}", to.shown());
        findings.break_off(Broken::Missing, &to.spot, says, "");
        true
    }

    /// What a key of a Secret or `ConfigMap` holds.
    pub(crate) fn content(
        &self,
        from: &Object<'_>,
        to: &Reference,
        keys: &[&str],
        findings: &mut Findings,
    ) -> Option<Content> {
        if !to.is_one_of(&[(CORE, "Secret"), (CORE, "ConfigMap")], findings) {
            return None;
        }
        let object = self.resolve(from, to, findings)?;
        for key in keys {
            // Who may write objects in a cluster is not who may read the gate's machine.
            if let Some(elsewhere) = Self::elsewhere(object, key).filter(|_| !self.mode.is_live) {
                return Some(elsewhere);
            }
            if let Some(found) = self.bytes(object, key, findings) {
                return found.map(|bytes| Content::File(self.give(object, key, bytes)));
            }
        }
        let says = format!(
            "the {} {} has no key {}",
            object.kind,
            object.id(),
            keys.join(" or ")
        );
        findings.fault(&to.spot, says, "add it");
        None
    }

    /// Where a Secret says that its content is on this machine.
    fn elsewhere(object: &Object<'n>, key: &str) -> Option<Content> {
        let annotated = |start: &str| {
            let name = format!("{start}{key}");
            let mut all = object.annotations.iter();
            let found = all.find(|(n, _)| *n == name);
            found.map(|(_, value)| value.clone())
        };
        if let Some(variable) = annotated(FROM_ENV) {
            return Some(Content::Variable(variable));
        }
        if let Some(file) = annotated(FROM_FILE).or_else(|| annotated(IN_FILE)) {
            return Some(Content::File(file.into()));
        }
        Self::variable(object, key).map(Content::Variable)
    }

    /// The same, where it has to be a file.
    pub(crate) fn file(
        &self,
        from: &Object<'_>,
        to: &Reference,
        keys: &[&str],
        findings: &mut Findings,
    ) -> Option<Tree> {
        match self.content(from, to, keys, findings)? {
            Content::File(path) => Some(Tree::text(path.to_string_lossy()).of(&to.spot)),
            Content::Variable(_) => {
                let says = format!(
                    "has its {} in a variable, and this is a file",
                    keys.join(" or ")
                );
                findings.fault(&to.spot, says, format!("write it in the {}", to.kind));
                None
            }
        }
    }

    /// The names of all keys of a Secret or `ConfigMap`, and where they stand; those that stand elsewhere have no place of their own.
    pub(crate) fn keys(&self, object: &Object<'_>) -> Vec<(String, Spot)> {
        let mut top = object.top(&mut Findings::default());
        let mut keys: Vec<(String, Spot)> = Vec::new();
        for member in ["stringData", "data", "binaryData"] {
            let item = top.take(member);
            let all = item.map(|item| item.fields(&mut Findings::default()).all());
            keys.extend(
                all.into_iter()
                    .flatten()
                    .map(|(name, item)| (name.to_owned(), item.spot)),
            );
        }
        let named = object.annotations.iter().filter(|_| !self.mode.is_live);
        for (name, _) in named {
            let starts = [FROM_ENV, FROM_FILE, IN_FILE];
            let key = starts.iter().find_map(|start| name.strip_prefix(start));
            keys.extend(key.map(|key| (key.to_owned(), object.spot.clone())));
        }
        let mut seen = BTreeSet::new();
        keys.retain(|(name, _)| seen.insert(name.clone()));
        keys
    }

    /// What a key holds: nothing where there is no such key, and no bytes where those are faulty.
    pub(crate) fn bytes(
        &self,
        object: &Object<'n>,
        key: &str,
        findings: &mut Findings,
    ) -> Option<Option<Vec<u8>>> {
        let (item, is_encoded) = Self::item(object, key)?;
        let Some(said) = item.text(findings) else {
            return Some(None);
        };
        if object.kind == "Secret" && !self.mode.is_live && said.value.contains("${") {
            let says = "holds a variable, and only one that is the whole of it is filled in here";
            let hint = format!(
                "write ${{NAME}} alone, the annotation {FROM_ENV}{key}: NAME, or the value"
            );
            findings.fault(&said.spot, says, hint);
            return Some(None);
        }
        if !is_encoded {
            return Some(Some(said.value.into_bytes()));
        }
        let padding =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let text: String = said.value.split_whitespace().collect();
        let read = GeneralPurpose::new(&STANDARD, padding).decode(text);
        if read.is_err() {
            let hint = "write it under stringData as it is";
            findings.fault(&said.spot, "is not base64", hint);
        }
        Some(read.ok())
    }

    /// Where a key stands, and whether it is encoded there.
    fn item(object: &Object<'n>, key: &str) -> Option<(Item<'n>, bool)> {
        let mut top = object.top(&mut Findings::default());
        let members = [
            ("stringData", false),
            ("data", object.kind == "Secret"),
            ("binaryData", true),
        ];
        members.into_iter().find_map(|(member, is_encoded)| {
            let mut entries = top.take(member)?.fields(&mut Findings::default());
            let found = entries.all().into_iter().find(|(name, _)| *name == key);
            Some((found?.1, is_encoded))
        })
    }

    /// The variable that is the whole of what a Secret says, as programs without a cluster fill it in.
    fn variable(object: &Object<'n>, key: &str) -> Option<String> {
        let (item, is_encoded) = Self::item(object, key)?;
        let is_open = object.kind == "Secret" && !is_encoded;
        let said = item.text(&mut Findings::default()).filter(|_| is_open)?;
        let name = said.value.strip_prefix("${")?.strip_suffix('}')?;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let is_whole = !name.is_empty() && name.bytes().all(is_name);
        is_whole.then(|| name.to_owned())
    }

    /// Lays a key's content beside the document.
    pub(crate) fn give(&self, object: &Object<'_>, key: &str, bytes: Vec<u8>) -> PathBuf {
        let path = file_of(object.kind, &object.namespace, &object.name, key);
        let mut given = self.given.borrow_mut();
        if !given.iter().any(|(file, _)| file.path == path) {
            let file = Given {
                path: path.clone(),
                content: Secret::new(bytes),
            };
            given.push((file, format!("{} {}, key {key}", object.kind, object.id())));
        }
        path
    }

    pub(crate) fn given(&self) -> Ref<'_, Vec<(Given, String)>> {
        self.given.borrow()
    }
}
