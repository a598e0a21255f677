//! A campaign's document from where `prove run` left it: report.json, or the one inside report.html.
//!
//! Invariant: an error names the file, and what is wrong with it.
//! Not here: what is made of it.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::html::DATA;
use crate::files;
use crate::report::document::{Document, Evidence, VERSION};

/// The document of a run: of a directory, of a report.json or of a report.html.
pub(super) fn read(run: &Path) -> io::Result<Document> {
    let path = found(run)?;
    let text = files::read(&path)?;
    let json = if path.extension().is_some_and(|end| end == "html") {
        inside(&text).ok_or_else(|| {
            wrong(
                &path,
                "holds no document: it is not a report of `prove run`",
            )
        })?
    } else {
        &text
    };
    document(&path, json)
}

/// The document that a text is; `path` is where it was found.
pub(super) fn document(path: &Path, json: &str) -> io::Result<Document> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| wrong(path, format!("damaged JSON: {error}")))?;
    let version = value.get("version").and_then(Value::as_u64);
    match version {
        None => return Err(wrong(path, "is no report: it has no `version`")),
        Some(version) if version > u64::from(VERSION) => {
            let says = format!(
                "is of version {version}, and this prove reads up to {VERSION}: use a newer one"
            );
            return Err(wrong(path, says));
        }
        Some(_) => {}
    }
    Document::deserialize(value)
        .map_err(|error| wrong(path, format!("is no report of this version: {error}")))
}

fn found(run: &Path) -> io::Result<PathBuf> {
    if !run.is_dir() {
        return Ok(run.to_owned());
    }
    let names = ["json", "html"].into_iter().flat_map(|end| {
        [Evidence::Real, Evidence::SimulatedEngine].map(|evidence| evidence.file(end))
    });
    let mut files = names.map(|name| run.join(name));
    let found = files.find(|path| path.exists());
    found.ok_or_else(|| {
        wrong(
            run,
            "no report here: neither report.json nor report.html, nor those of a simulated engine (`prove run --out` writes them)",
        )
    })
}

/// The document in a page.
fn inside(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once(DATA)?;
    rest.split_once("</script>").map(|(json, _)| json)
}

fn wrong(path: &Path, says: impl std::fmt::Display) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{}: {says}", path.display()),
    )
}
