//! Where cargo puts binaries, and whether one is older than what it is built from.
//!
//! Invariant: a binary whose sources cannot be told is never called old.
//! Not here: building; a race measures what is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[cfg(test)]
mod tests;

/// Where cargo builds: `CARGO_TARGET_DIR`, or `target` beside the nearest `Cargo.lock` above. Nowhere, where there is neither.
pub(super) fn built_dir(dir: &Path) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("CARGO_TARGET_DIR") {
        return Some(dir.into());
    }
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let root = dir.ancestors().find(|dir| dir.join("Cargo.lock").is_file());
    root.map(|root| root.join("target"))
}

/// Where things are kept that are built or fetched: `target` here, where there is no checkout.
pub(super) fn target_dir(dir: &Path) -> PathBuf {
    built_dir(dir).unwrap_or_else(|| Path::new(".").join("target"))
}

/// The first source that changed after `binary` was built, from the list that cargo leaves beside it.
pub(super) fn changed_source(binary: &Path) -> Option<PathBuf> {
    let built = modified(binary)?;
    let list = fs::read_to_string(binary.with_extension("d")).ok()?;
    let (_, sources) = list.lines().next()?.split_once(": ")?;
    let newer = |path: &PathBuf| modified(path).is_some_and(|changed| changed > built);
    words(sources).into_iter().map(PathBuf::from).find(newer)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// Words between blanks; a blank inside a word is written `\ `.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => words.last_mut().expect("one word").extend(chars.next()),
            ' ' => words.push(String::new()),
            c => words.last_mut().expect("one word").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
