//! Golden cases: text files with what goes in and what must come out.
//!
//! Not here: what a case says (the crate whose feature it is of).

use std::path::Path;

/// Checks each `.txt` file of this directory of `vectors`, of which there are at least `least`. `now` gives a case with its outcome as it
/// is today; `UPDATE=1` writes that where it differs.
///
/// # Panics
/// Cases differ, there are fewer, or a file cannot be read.
pub fn vectors(dir: &str, least: usize, now: impl Fn(&str) -> String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../vectors")
        .join(dir);
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&dir).expect("a directory of vectors") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "txt") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).expect("a vector is text");
        let now = now(&text);
        if now == text {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, now).expect("a vector can be written");
        } else {
            wrong.push(format!("{}:\n{now}", path.display()));
        }
    }
    assert!(seen >= least, "{seen} vectors found in {}", dir.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
