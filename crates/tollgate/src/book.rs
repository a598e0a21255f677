//! Where the pages lie that a package installed, so that what the gate names of them can be opened.
//!
//! Messages name pages as the repository has them, `docs/troubleshooting.md#…`; where a package put them elsewhere, that place is
//! written instead.
//! Not here: the pages, and that they have what is named (`cargo xtask tidy`).

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where pages lie from the program's directory: in an archive, and where a Debian package and an image put them.
const PLACES: [&str; 2] = ["docs", "../share/doc/tollgate/docs"];
/// Of each of them.
const PAGE: &str = "troubleshooting.md";
/// How a message names the pages.
const NAMED: &str = "docs/";

/// A message with the place of each page that it names.
pub(crate) fn placed(message: &str) -> Cow<'_, str> {
    static INSTALLED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let program = std::env::current_exe().ok()?;
        installed(program.parent()?)
    });
    match installed {
        Some(pages) if message.contains(NAMED) => Cow::Owned(at(pages, message)),
        _ => Cow::Borrowed(message),
    }
}

fn installed(beside: &Path) -> Option<PathBuf> {
    let places = PLACES.iter().map(|place| beside.join(place));
    let found = places.filter_map(|place| place.canonicalize().ok());
    let mut found = found.filter(|place| place.join(PAGE).is_file());
    found.next()
}

/// Names begin a word or stand behind a quote; what stands within a path is somebody else's.
fn at(pages: &Path, message: &str) -> String {
    let mut placed = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(NAMED) {
        placed.push_str(before);
        match placed.chars().next_back() {
            None | Some(' ' | '"' | '`' | '(') => {
                placed.push_str(&pages.to_string_lossy());
                placed.push('/');
            }
            Some(_) => placed.push_str(NAMED),
        }
        rest = after;
    }
    placed.push_str(rest);
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_where_a_package_put_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let bin = dir.path().join("usr/bin");
        std::fs::create_dir_all(&bin).expect("made");
        assert_eq!(installed(&bin), None);
        let pages = dir.path().join("usr/share/doc/tollgate/docs");
        std::fs::create_dir_all(&pages).expect("made");
        std::fs::write(pages.join(PAGE), "").expect("a page");
        let found = installed(&bin).expect("installed");
        assert_eq!(found, pages.canonicalize().expect("it is there"));
        let archive = dir.path().join("opt/docs");
        std::fs::create_dir_all(&archive).expect("made");
        std::fs::write(archive.join(PAGE), "").expect("a page");
        assert!(installed(&dir.path().join("opt")).is_some());
    }

    #[test]
    fn what_names_no_page_stays() {
        let pages = Path::new("/usr/share/doc/tollgate/docs");
        for (message, wanted) in [
            (
                "x see=\"docs/troubleshooting.md#spans-are-lost\"",
                "x see=\"/usr/share/doc/tollgate/docs/troubleshooting.md#spans-are-lost\"",
            ),
            (
                "and docs/coming-from.md says",
                "and /usr/share/doc/tollgate/docs/coming-from.md says",
            ),
            (
                "docs/a, docs/b",
                "/usr/share/doc/tollgate/docs/a, /usr/share/doc/tollgate/docs/b",
            ),
            ("GET /v1/docs/x my-docs/y", "GET /v1/docs/x my-docs/y"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(at(pages, message), wanted);
        }
    }
}
