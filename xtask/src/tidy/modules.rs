//! The modules of each crate and what each needs of the others, read from the production sources.
//!
//! A module is a file that a root (`lib.rs`, `main.rs`) declares, directly or through others, outside
//! `#[cfg(test)]`. It needs the modules that its `use` items and its inline paths name (`crate::`, `super::`,
//! `self::`, and modules of its own). A name that a module passes on (`pub use`, or a `use` that its children
//! see) stands for the module that defines it; passing on needs nothing.
//! Modules below a module of the root count as part of that: a parent and its children are one thing to read.
//! Invariant: every need is between two modules of one crate's root.
//! Not here: calls of methods whose `impl` stands in another file, paths made by macros; which circles are
//! allowed (`circles`).

use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

use super::tree::Tree;
use super::words::words;

/// `a::b` as `["a", "b"]`; a root is empty.
type Path = Vec<String>;

/// The modules of one crate, each with those that it needs.
pub(super) struct Modules {
    needs: BTreeMap<Path, BTreeSet<Path>>,
}

/// The module of the crate's root that a module is or lies in.
fn top(module: &Path) -> Path {
    module.iter().take(1).cloned().collect()
}

/// What one file says.
#[derive(Default)]
struct Source {
    declares: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths of two words or more outside of `use` items.
    paths: Vec<Path>,
    /// Every word outside of `use` items.
    names: BTreeSet<String>,
}

struct Use {
    path: Path,
    /// The name by which it is known here; `*` for all names.
    name: String,
    is_pub: bool,
}

impl Modules {
    /// Of every crate that has sources, by the crate's name.
    pub(super) fn of_crates(tree: &Tree) -> BTreeMap<String, Self> {
        let mut crates: BTreeMap<String, BTreeMap<Path, Source>> = BTreeMap::new();
        for file in tree.rust() {
            let Some((dir, path)) = file.path.split_once("/src/") else {
                continue;
            };
            let name = dir.rsplit('/').next().unwrap_or(dir).to_owned();
            let sources = crates.entry(name).or_default();
            sources.insert(module(path), Source::read(&file.text));
        }
        let of = |(name, sources)| (name, Self::of(&produced(sources)));
        crates.into_iter().map(of).collect()
    }

    fn of(sources: &BTreeMap<Path, Source>) -> Self {
        let mut needs: BTreeMap<Path, BTreeSet<Path>> = BTreeMap::new();
        for (module, source) in sources {
            let is_needed = |used: &&Use| !used.is_pub || source.names.contains(&used.name);
            let used = source.uses.iter().filter(is_needed).map(|used| &used.path);
            let resolve = |path: &Path| resolve(sources, module, path, 0);
            let needed = used.chain(&source.paths).filter_map(resolve);
            let of = needs.entry(top(module)).or_default();
            of.extend(needed.map(|needed| top(&needed)));
            of.remove(&top(module));
        }
        Self { needs }
    }

    /// The circles: modules that need one another, directly or through others. Each stands in one at most.
    pub(super) fn circles(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<&Path, BTreeSet<&Path>> =
            self.needs.keys().map(|m| (m, self.reached(m))).collect();
        let both = |a: &Path, b: &Path| {
            reached.get(a).is_some_and(|r| r.contains(b))
                && reached.get(b).is_some_and(|r| r.contains(a))
        };
        let circle = |module: &Path| -> BTreeSet<String> {
            let others = self.needs.keys().filter(|other| both(module, other));
            others.map(name).collect()
        };
        let circles: BTreeSet<_> = self.needs.keys().map(circle).collect();
        circles.into_iter().filter(|c| !c.is_empty()).collect()
    }

    fn reached<'a>(&'a self, from: &'a Path) -> BTreeSet<&'a Path> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            let needed = self.needs.get(next).into_iter().flatten();
            open.extend(needed.filter(|needed| reached.insert(*needed)));
        }
        reached
    }
}

/// Every path that the production sources of the crate in a directory name, each with the module that names it.
pub(super) fn named(tree: &Tree, dir: &str) -> Vec<(String, Path)> {
    let sources = tree.rust().filter_map(|file| {
        let path = file.path.strip_prefix(dir)?.strip_prefix("/src/")?;
        Some((module(path), Source::read(&file.text)))
    });
    let mut named = Vec::new();
    for (module, source) in produced(sources.collect()) {
        let used = source.uses.into_iter().map(|used| used.path);
        let paths = used.chain(source.paths);
        named.extend(paths.map(|path| (name(&module), path)));
    }
    named
}

/// Those that a root declares outside of tests.
fn produced(mut sources: BTreeMap<Path, Source>) -> BTreeMap<Path, Source> {
    let mut produced = BTreeMap::new();
    let mut open = vec![Path::new()];
    while let Some(next) = open.pop() {
        let Some(source) = sources.remove(&next) else {
            continue;
        };
        let child = |name: &String| [next.as_slice(), from_ref(name)].concat();
        open.extend(source.declares.iter().map(child));
        produced.insert(next, source);
    }
    produced
}

fn module(file: &str) -> Path {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    match path {
        "lib" | "main" => Path::new(),
        _ => path.split('/').map(str::to_owned).collect(),
    }
}

fn name(module: &Path) -> String {
    match module.as_slice() {
        [] => "crate".to_owned(),
        names => names.join("::"),
    }
}

/// Names that stand for other names are followed this far.
const FOLLOWED: usize = 8;

/// The module that defines what `path` names, as seen from the module `from`.
fn resolve(
    sources: &BTreeMap<Path, Source>,
    from: &Path,
    path: &Path,
    followed: usize,
) -> Option<Path> {
    let mut at = from.clone();
    let mut rest = path.as_slice();
    match rest.first()?.as_str() {
        "crate" => at.clear(),
        "self" => {}
        "super" => {
            at.pop();
        }
        child if sources.get(from)?.declares.contains(child) => {
            at.push(child.to_owned());
        }
        _ => return None,
    }
    rest = rest.get(1..)?;
    while let Some((word, after)) = rest.split_first() {
        let child = [at.as_slice(), from_ref(word)].concat();
        if word == "super" {
            at.pop();
        } else if sources.contains_key(&child) {
            at = child;
        } else {
            break;
        }
        rest = after;
    }
    let Some((word, after)) = rest.split_first() else {
        return Some(at);
    };
    let stands_for = sources.get(&at)?.uses.iter().find(|u| u.name == *word);
    match stands_for {
        Some(used) if followed < FOLLOWED => {
            let path = [used.path.as_slice(), after].concat();
            resolve(sources, &at, &path, followed + 1)
        }
        _ => Some(at),
    }
}

impl Source {
    fn read(text: &str) -> Self {
        let words = words(text);
        let mut source = Self::default();
        let mut rest: &[&str] = &words;
        let mut is_pub = false;
        while let Some((word, after)) = rest.split_first() {
            rest = match (*word, after) {
                ("#", ["[", "cfg", "(", "test", ")", "]", item @ ..]) => after_item(item),
                ("pub", ["(", _, ")", item @ ..]) => {
                    is_pub = true;
                    rest = item;
                    continue;
                }
                ("pub", _) => {
                    is_pub = true;
                    rest = after;
                    continue;
                }
                ("mod", [name, ";", rest @ ..]) => {
                    source.declares.insert((*name).to_owned());
                    rest
                }
                ("use", tree) if tree.first() != Some(&"<") => {
                    source.read_use(&[], tree, is_pub);
                    after_item(tree)
                }
                _ => source.read_path(rest),
            };
            is_pub = false;
        }
        source
    }

    /// Reads one tree of a `use` and gives what follows it.
    fn read_use<'w, 't>(
        &mut self,
        before: &[&str],
        tree: &'w [&'t str],
        is_pub: bool,
    ) -> &'w [&'t str] {
        let mut path = before.to_vec();
        let mut rest = tree;
        let mut known_as = None;
        while let Some((word, after)) = rest.split_first() {
            let here = rest;
            rest = after;
            match *word {
                "::" => {}
                "as" => {
                    known_as = after.first().copied();
                    rest = after.get(1..).unwrap_or_default();
                }
                "{" => {
                    while !matches!(rest.first(), None | Some(&"}")) {
                        rest = self.read_use(&path, rest, is_pub);
                        rest = rest.strip_prefix(&[","]).unwrap_or(rest);
                    }
                    return rest.get(1..).unwrap_or_default();
                }
                "," | "}" | ";" => {
                    rest = here;
                    break;
                }
                word => path.push(word),
            }
        }
        if let Some(all @ ("self" | "*")) = path.pop_if(|word| matches!(*word, "self" | "*")) {
            known_as = known_as.or((all == "*").then_some(all));
        }
        if let Some(last) = path.last() {
            self.uses.push(Use {
                name: known_as.unwrap_or(last).to_owned(),
                path: path.iter().map(|word| (*word).to_owned()).collect(),
                is_pub,
            });
        }
        rest
    }

    /// Reads a word, or a path, and gives what follows it.
    fn read_path<'w, 't>(&mut self, words: &'w [&'t str]) -> &'w [&'t str] {
        let mut path = Path::new();
        let mut rest = words;
        while let Some((word, after)) = rest.split_first() {
            path.push((*word).to_owned());
            rest = after;
            match after {
                ["::", next, ..] if is_name(next) => rest = after.get(1..).unwrap_or_default(),
                _ => break,
            }
        }
        self.names
            .extend(path.first().filter(|word| is_name(word)).cloned());
        if path.len() > 1 {
            self.paths.push(path);
        }
        rest
    }
}

/// What follows an item: its `;`, or the brace that closes it.
fn after_item<'w, 't>(words: &'w [&'t str]) -> &'w [&'t str] {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(*word, "}" | ";") {
            return words.get(at + 1..).unwrap_or_default();
        }
    }
    &[]
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
