//! The graph of crates, read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
}

pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: Option<String>,
    /// Whether it is one of ours.
    pub(super) is_member: bool,
    needs: Vec<Need>,
}

struct Need {
    id: String,
    /// A normal dependency, not one of tests or build scripts only.
    is_linked: bool,
}

impl Graph {
    pub(super) fn read(metadata: &Value) -> Result<Self, String> {
        let members: BTreeSet<&str> = list(metadata, "workspace_members")?
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let mut needs: BTreeMap<&str, Vec<Need>> = BTreeMap::new();
        let resolve = metadata
            .get("resolve")
            .ok_or("cargo metadata: no resolve")?;
        for node in list(resolve, "nodes")? {
            let of_node = list(node, "deps")?
                .iter()
                .map(need)
                .collect::<Result<_, _>>()?;
            needs.insert(text(node, "id")?, of_node);
        }
        let mut packages = BTreeMap::new();
        for package in list(metadata, "packages")? {
            let id = text(package, "id")?;
            let licence = package.get("license").and_then(Value::as_str);
            let read = Package {
                name: text(package, "name")?.to_owned(),
                version: text(package, "version")?.to_owned(),
                licence: licence.map(str::to_owned),
                is_member: members.contains(id),
                needs: needs.remove(id).unwrap_or_default(),
            };
            packages.insert(id.to_owned(), read);
        }
        Ok(Self { packages })
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = &Package> {
        self.packages.values()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages().filter(|package| package.is_member)
    }

    /// What the manifest of `package` names, of any kind.
    pub(super) fn needs(&self, package: &Package) -> impl Iterator<Item = &Package> {
        package
            .needs
            .iter()
            .filter_map(|need| self.packages.get(&need.id))
    }

    /// All that is linked into `package`, directly or through others.
    pub(super) fn linked(&self, package: &Package) -> Vec<&Package> {
        let mut seen = BTreeSet::new();
        let mut open = vec![package];
        while let Some(next) = open.pop() {
            for need in next.needs.iter().filter(|need| need.is_linked) {
                if let Some((id, linked)) = self.packages.get_key_value(&need.id)
                    && seen.insert(id.as_str())
                {
                    open.push(linked);
                }
            }
        }
        seen.into_iter()
            .filter_map(|id| self.packages.get(id))
            .collect()
    }
}

fn need(dep: &Value) -> Result<Need, String> {
    let is_linked = list(dep, "dep_kinds")?
        .iter()
        .any(|kind| kind.get("kind").is_none_or(Value::is_null));
    Ok(Need {
        id: text(dep, "pkg")?.to_owned(),
        is_linked,
    })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value
        .get(key)
        .and_then(Value::as_array)
        .ok_or_else(|| format!("cargo metadata: no list {key}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("cargo metadata: no text {key}"))
}
