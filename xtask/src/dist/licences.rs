//! `THIRD-PARTY`: the licences of all that is linked, with their texts, as those ask that give it away.
//!
//! Invariant: no crate stands there without a text. One that comes without has the usual text of its licence, with its authors.
//! Not here: which licences are allowed (`deny.toml`, looked at by `tidy`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::crates::Linked;
use super::{files, succeed};
use crate::cargo::root;

/// How files with a licence are called, in small letters.
const NAMES: &[&str] = &["licen", "copying", "notice", "copyright", "unlicense"];
/// Directories that are not linked.
const NOT_LINKED: &[&str] = &["benches", "examples", "fuzz", "target", "tests"];

/// For crates that have no text of their own.
const USUAL: &[(&str, &str)] = &[
    ("BSD-3-Clause", include_str!("licences/BSD-3-Clause.txt")),
    ("MIT", include_str!("licences/MIT.txt")),
];

/// Who has which text.
struct Texts {
    /// In the order in which they were met.
    texts: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

/// The file.
pub(super) fn third_party(linked: &[Linked], tools: &Path) -> Result<String, String> {
    let mut texts = Texts {
        texts: Vec::new(),
        numbers: BTreeMap::new(),
    };
    let mut file = "What is linked into tollgate and was written by others: name, version, licence, and the numbers of \
                    its texts, which follow.\n\n"
        .to_owned();
    for one in linked.iter().filter(|one| one.is_foreign) {
        let numbers = texts.numbers_of(&texts_of(one)?);
        let (name, version) = &one.id;
        row(
            &mut file,
            &format!("{name} {version}"),
            &one.licence,
            &numbers,
        );
    }
    for (name, licence, found) in of_tools(tools)? {
        let numbers = texts.numbers_of(&found);
        row(&mut file, &name, licence, &numbers);
    }
    for (at, text) in texts.texts.iter().enumerate() {
        let head = format!("\n{:=<80}\n[{}]\n\n", "", at + 1);
        file.extend([head.as_str(), text, "\n"]);
    }
    Ok(file)
}

fn row(file: &mut String, name: &str, licence: &str, numbers: &str) {
    file.push_str(&format!("{name}  {licence}  {numbers}\n"));
}

/// A name, a licence, and its texts.
type Part = (String, &'static str, Vec<String>);

/// What compilers and linkers add of their own: Rust's library, and what zig has of itself, LLVM and glibc.
fn of_tools(tools: &Path) -> Result<Vec<Part>, String> {
    let rustc = |word: &[&str]| succeed(Command::new("rustc").args(word).current_dir(root()));
    let texts = Path::new(rustc(&["--print", "sysroot"])?.trim()).join("share/doc/rust/licenses");
    let version = rustc(&["--version"])?;
    let version = version.split(' ').nth(1).unwrap_or_default();
    let std = ["Apache-2.0.txt", "MIT.txt"].map(|name| texts.join(name));
    let mut found = vec![(
        format!("std (Rust) {version}"),
        "MIT OR Apache-2.0",
        std.iter()
            .map(|path| read(path))
            .collect::<Result<_, _>>()?,
    )];
    // Not there where a binary is packaged that something else linked.
    let Some(zig) = zig(tools) else {
        return Ok(found);
    };
    let parts = [
        ("compiler_rt (zig)", "MIT", "LICENSE"),
        (
            "libunwind (LLVM)",
            "Apache-2.0 WITH LLVM-exception",
            "lib/libunwind/LICENSE.TXT",
        ),
        (
            "start files (glibc)",
            "LGPL-2.1-or-later with the exception for linked files",
            "lib/libc/glibc/LICENSES",
        ),
    ];
    for (name, licence, path) in parts {
        found.push((name.to_owned(), licence, vec![read(&zig.join(path))?]));
    }
    Ok(found)
}

/// Where zig's files are in an environment of Python.
fn zig(tools: &Path) -> Option<PathBuf> {
    let lib = tools.join("lib");
    let mut pythons = files(&lib).ok()?.into_iter();
    let found = pythons.find(|name| name.starts_with("python3"))?;
    let zig = lib.join(found).join("site-packages/ziglang");
    zig.is_dir().then_some(zig)
}

impl Texts {
    /// `[1] [7]`.
    fn numbers_of(&mut self, found: &[String]) -> String {
        let numbers = found.iter().map(|text| {
            let known = self.numbers.get(text).copied();
            let number = known.unwrap_or_else(|| {
                self.texts.push(text.clone());
                self.numbers.insert(text.clone(), self.texts.len());
                self.texts.len()
            });
            format!("[{number}]")
        });
        let mut numbers: Vec<String> = numbers.collect();
        numbers.dedup();
        numbers.join(" ")
    }
}

/// The texts that a crate comes with, else the usual one.
fn texts_of(one: &Linked) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    find(&one.dir, &mut paths)?;
    paths.sort();
    let found: Vec<String> = paths
        .iter()
        .map(|path| read(path))
        .collect::<Result<_, _>>()?;
    if !found.is_empty() {
        return Ok(found);
    }
    let usual = USUAL.iter().find(|(name, _)| one.licence.contains(name));
    let (_, text) = usual.ok_or_else(|| {
        let (name, version) = &one.id;
        format!(
            "{name} {version} comes without a text of its licence ({}): add one to xtask/src/dist/licences",
            one.licence
        )
    })?;
    let authors = if one.authors.is_empty() {
        format!("the authors of {}", one.id.0)
    } else {
        one.authors.join(", ")
    };
    Ok(vec![text.trim().replace("@AUTHORS@", &authors)])
}

/// Files with a licence, of a crate and of what it brings along.
fn find(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for name in files(dir)? {
        let path = dir.join(&name);
        let small = name.to_lowercase();
        if path.is_dir() {
            if !NOT_LINKED.contains(&small.as_str()) {
                find(&path, found)?;
            }
        } else if is_licence(&small) {
            found.push(path);
        }
    }
    Ok(())
}

fn is_licence(name: &str) -> bool {
    let is_source = [".rs", ".c", ".h", ".py"]
        .iter()
        .any(|end| name.ends_with(end));
    !is_source && NAMES.iter().any(|start| name.starts_with(start))
}

/// A text, whatever its encoding, with the ends of its lines and of itself made alike.
fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{is_licence, texts_of};
    use crate::dist::crates::tests::LINKED;

    #[test]
    fn every_crate_has_a_text() {
        for one in LINKED.iter().filter(|one| one.is_foreign) {
            let texts = texts_of(one).expect("it has a text");
            assert!(
                texts.iter().all(|text| !text.contains("@AUTHORS@")),
                "{:?}",
                one.id
            );
            // A file may point at others; one at least is a text.
            let longest = texts.iter().map(String::len).max();
            assert!(
                longest.is_some_and(|length| length > 500),
                "{:?}: {texts:?}",
                one.id
            );
        }
    }

    #[test]
    fn a_licence_is_known_by_its_name() {
        for name in [
            "license",
            "licence.md",
            "license-apache",
            "copying.txt",
            "notice",
            "unlicense",
        ] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["license.rs", "readme.md", "cargo.toml", "copyright.py"] {
            assert!(!is_licence(name), "{name}");
        }
    }
}
