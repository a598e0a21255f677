//! The crates that are linked into what is shipped, as cargo resolves them for its target.
//!
//! Invariant: nothing that only compiles or tests is among them: no macro, no build script, no other system's crate.
//! Not here: what is made of them (`licences`, `sbom`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::arch::TARGET;
use super::succeed;
use crate::cargo::{metadata, root};

/// Name and version.
pub(super) type Id = (String, String);

/// A crate that is linked.
pub(super) struct Linked {
    pub(super) id: Id,
    /// Of the registry, not of this repository.
    pub(super) is_foreign: bool,
    /// An expression of SPDX.
    pub(super) licence: String,
    pub(super) authors: Vec<String>,
    /// SHA-256 of the crate as the registry has it.
    pub(super) checksum: Option<String>,
    /// Where its files are.
    pub(super) dir: PathBuf,
    /// What it links, of those that are linked.
    pub(super) needs: BTreeSet<Id>,
}

/// All of them, by name and version, of these packages of the workspace; they themselves are among them.
pub(super) fn linked(packages: &[&str]) -> Result<Vec<Linked>, String> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--locked", "--target", TARGET])
        .args(packages.iter().flat_map(|package| ["-p", package]))
        .args(["-e", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(root());
    let ids = listed(&succeed(&mut tree)?);
    let lock = fs::read_to_string(root().join("Cargo.lock"))
        .map_err(|cause| format!("Cargo.lock: {cause}"))?;
    of(&ids, &metadata()?, &checksums(&lock))
}

/// What `cargo tree` names, a crate to a line: `name v1.2.3`, and after it a path or a mark of having been seen.
fn listed(tree: &str) -> BTreeSet<Id> {
    let id = |line: &str| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some((name.to_owned(), version.to_owned()))
    };
    tree.lines().filter_map(id).collect()
}

/// The checksums of a `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let value = |block: &str, key: &str| {
        let found = block.lines().find_map(|line| {
            let quoted = line.strip_prefix(key)?.strip_prefix(" = \"")?;
            quoted.strip_suffix('"')
        });
        found.map(str::to_owned)
    };
    let entry = |block| {
        let id = (value(block, "name")?, value(block, "version")?);
        Some((id, value(block, "checksum")?))
    };
    lock.split("[[package]]").filter_map(entry).collect()
}

fn of(
    ids: &BTreeSet<Id>,
    metadata: &Value,
    checksums: &BTreeMap<Id, String>,
) -> Result<Vec<Linked>, String> {
    let packages: BTreeMap<Id, &Value> = list(metadata, "/packages")
        .filter_map(|package| Some((id_of(package)?, package)))
        .collect();
    // Cargo's own ids, by which its graph speaks.
    let names: BTreeMap<&str, &Id> = packages
        .iter()
        .filter_map(|(id, package)| Some((text(package, "id")?, id)))
        .collect();
    let mut needs: BTreeMap<&Id, BTreeSet<Id>> = BTreeMap::new();
    for node in list(metadata, "/resolve/nodes") {
        let Some(from) = text(node, "id").and_then(|id| names.get(id)) else {
            continue;
        };
        let normal = list(node, "/deps").filter(|dep| {
            list(dep, "/dep_kinds").any(|kind| kind.get("kind").is_none_or(Value::is_null))
        });
        let to = normal.filter_map(|dep| names.get(text(dep, "pkg")?).copied());
        let to = to.filter(|id| ids.contains(*id)).cloned();
        needs.insert(*from, to.collect());
    }
    let mut linked = Vec::new();
    for id in ids {
        let package = packages.get(id);
        let package = package.ok_or_else(|| format!("cargo metadata has no {} {}", id.0, id.1))?;
        let mut dir = PathBuf::from(text(package, "manifest_path").unwrap_or_default());
        dir.pop();
        let authors = list(package, "/authors").filter_map(Value::as_str);
        linked.push(Linked {
            id: id.clone(),
            is_foreign: package.get("source").is_some_and(Value::is_string),
            // Older manifests have a slash for `or`.
            licence: text(package, "license")
                .unwrap_or_default()
                .replace('/', " OR "),
            authors: authors.map(str::to_owned).collect(),
            checksum: checksums.get(id).cloned(),
            dir,
            needs: needs.remove(id).unwrap_or_default(),
        });
    }
    Ok(linked)
}

fn id_of(package: &Value) -> Option<Id> {
    let part = |key| text(package, key).map(str::to_owned);
    Some((part("name")?, part("version")?))
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use super::{Linked, checksums, linked, listed};

    /// Asked of cargo once for all tests.
    pub(in crate::dist) static LINKED: LazyLock<Vec<Linked>> =
        LazyLock::new(|| linked(&crate::dist::build::PACKAGES).expect("cargo knows"));

    #[test]
    fn what_is_linked_has_a_licence_and_what_is_foreign_a_checksum() {
        let linked = &*LINKED;
        let names: BTreeSet<&str> = linked.iter().map(|one| one.id.0.as_str()).collect();
        for name in [
            "tollgate",
            "wire",
            "libsqlite3-sys",
            "rustls",
            "libmimalloc-sys",
        ] {
            assert!(names.contains(name), "{name} is linked");
        }
        for name in [
            "syn",
            "serde_derive",
            "cc",
            "proptest",
            "jsonschema",
            "windows-sys",
        ] {
            assert!(!names.contains(name), "{name} is not linked");
        }
        for one in linked {
            assert!(!one.licence.is_empty(), "{:?} has a licence", one.id);
            assert_eq!(one.is_foreign, one.checksum.is_some(), "{:?}", one.id);
            assert!(one.dir.is_dir(), "{}", one.dir.display());
        }
        let tollgate = linked.iter().find(|one| one.id.0 == "tollgate");
        let needs = &tollgate.expect("is linked").needs;
        assert!(needs.iter().any(|(name, _)| name == "wire"), "{needs:?}");
    }

    #[test]
    fn lines_of_a_tree_and_blocks_of_a_lock_are_read() {
        let ids = listed("tollgate v0.1.0 (a path)\nbytes v1.2.3\nbytes v1.2.3 (*)\n\n");
        assert_eq!(ids.len(), 2);
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"5e\"\n\
                    dependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n";
        let sums = checksums(lock);
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[&("a".to_owned(), "1.0.0".to_owned())], "5e");
    }
}
