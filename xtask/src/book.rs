//! `cargo xtask book`: the pages of the repository as a book with search, in `target/book/html`; and its blocks, run.
//!
//! Invariant: a warning of mdBook, a link or an anchor of the book that leads nowhere, and a page that is no chapter are
//! failures.
//! Not here: the pages themselves (`docs/SUMMARY.md` lists them), links as GitHub shows them (`tidy::links`).

pub(crate) mod blocks;
mod html;
mod layout;
mod mdbook;
mod script;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{metadata, root, target_dir};
use crate::tidy::tree::Tree;

/// Builds the book and checks it.
pub(crate) fn build() -> Result<(), String> {
    let target = target_dir(&metadata()?)?;
    let mdbook = mdbook::find_or_install(&target.join("book-tools"))?;
    let book = target.join("book");
    let tree = Tree::read(&root())?;
    let laid_out = layout::lay_out(&tree, &root(), &book)?;
    let said = run(&mdbook, &book)?;
    let warnings: Vec<&str> = said.lines().filter(|line| is_warning(line)).collect();
    if !warnings.is_empty() {
        return Err(format!("mdBook warns:\n{}", warnings.join("\n")));
    }
    let site = html::Site::read(&book.join("html"))?;
    let faults = site.faults();
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        return Err(format!("book: {} links lead nowhere", faults.len()));
    }
    site.has_search()?;
    println!(
        "{}: {} pages, {} files beside them; {} links within the book, {} of them to anchors; no warning",
        book.join("html").display(),
        laid_out.pages,
        laid_out.files,
        site.links(),
        site.links_to_anchors(),
    );
    Ok(())
}

/// Runs mdBook; gives what it said.
fn run(mdbook: &Path, book: &Path) -> Result<String, String> {
    let output = Command::new(mdbook)
        .args(["build", "."])
        .current_dir(book)
        .output()
        .map_err(|cause| format!("{}: {cause}", mdbook.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(said)
    } else {
        Err(format!("mdBook failed ({})\n{said}", output.status))
    }
}

/// Whether a line that mdBook says is more than a word of progress.
fn is_warning(line: &str) -> bool {
    let level = line.split_whitespace().find(|word| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphabetic());
        matches!(word, "INFO" | "DEBUG" | "TRACE" | "WARN" | "ERROR")
    });
    !line.trim().is_empty() && !level.is_some_and(|word| word.contains("INFO"))
}

/// What cannot be read or written.
fn at(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |cause| format!("{}: {cause}", path.display())
}

/// A path below a directory, as the repository writes it.
fn below(dir: &Path, path: &str) -> PathBuf {
    path.split('/')
        .fold(dir.to_owned(), |dir, part| dir.join(part))
}

#[cfg(test)]
mod tests;
