//! The pages as mdBook wants them: where they lie in the repository, so that links between them hold, with `index.md` for
//! `README.md`, and the files that they link to beside them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{at, below};
use crate::markdown::Page;
use crate::tidy::links::{SUMMARY, inside};
use crate::tidy::tree::Tree;

pub(super) struct LaidOut {
    pub(super) pages: usize,
    /// What is no page and linked to.
    pub(super) files: usize,
}

/// Makes `book` anew: `book.toml`, and `src` with everything.
pub(super) fn lay_out(tree: &Tree, root: &Path, book: &Path) -> Result<LaidOut, String> {
    for dir in ["src", "html"] {
        drop(fs::remove_dir_all(book.join(dir)));
    }
    let src = book.join("src");
    let settings = tree.get("docs/book.toml").ok_or("no docs/book.toml")?;
    put(&book.join("book.toml"), settings.text.as_bytes())?;
    let mut pages = 0;
    let mut linked = BTreeSet::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let links = Page::of(&file.text).links();
        let targets = links
            .iter()
            .filter_map(|link| inside(&file.path, &link.target));
        linked.extend(
            targets
                .map(|(path, _)| path)
                .filter(|path| !path.ends_with(".md")),
        );
        if file.path == SUMMARY {
            put(&src.join("SUMMARY.md"), chapters(&file.text).as_bytes())?;
        } else {
            pages += 1;
            put(
                &below(&src, &page(&file.path)),
                with_indices(&file.text).as_bytes(),
            )?;
        }
    }
    for path in &linked {
        let from = below(root, path);
        if from.is_file() {
            let content = fs::read(&from).map_err(at(&from))?;
            put(&below(&src, path), &content)?;
        }
    }
    Ok(LaidOut {
        pages,
        files: linked.len(),
    })
}

/// The page's path in the book. mdBook makes `index.html` of a `README.md`, and leaves links to it as they were.
fn page(path: &str) -> String {
    match path.strip_suffix("README.md") {
        Some(dir) => format!("{dir}index.md"),
        None => path.to_owned(),
    }
}

/// The page with links to indices.
pub(super) fn with_indices(text: &str) -> String {
    rewritten(text, |target| {
        let (file, anchor) = match target.find('#') {
            Some(at) => target.split_at(at),
            None => (target, ""),
        };
        let is_inside = !target.contains(':') && file.ends_with("README.md");
        is_inside.then(|| page(file) + anchor)
    })
}

/// The list of chapters, from the root of the repository.
pub(super) fn chapters(text: &str) -> String {
    rewritten(text, |target| {
        inside(SUMMARY, target).map(|(file, _)| page(&file))
    })
}

/// The page with its links' targets replaced, where `other` has another one.
fn rewritten(text: &str, other: impl Fn(&str) -> Option<String>) -> String {
    let links = Page::of(text).links();
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.lines().enumerate() {
        let mut line = line.to_owned();
        for link in links.iter().filter(|link| link.line == at + 1) {
            if let Some(target) = other(&link.target) {
                let (from, to) = (format!("]({}", link.target), format!("]({target}"));
                line = line.replace(&from, &to);
            }
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn put(path: &Path, content: &[u8]) -> Result<(), String> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(at(dir))?;
    }
    fs::write(path, content).map_err(at(path))
}
