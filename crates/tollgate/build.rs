//! Tells the program which Cargo profile it is built with: figures of another than `dist` are not those of what is shipped.
//!
//! Not here: who says it (`cli`, `version`).

use std::env;
use std::path::{Path, PathBuf};

#[expect(
    clippy::disallowed_methods,
    reason = "a build script is told by the environment where to write"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").map(PathBuf::from);
    // PROFILE knows `debug` and `release` alone; a profile's folder is the one above `build`.
    let profile = out.as_deref().and_then(folder_above_build);
    let version = env!("CARGO_PKG_VERSION");
    let said = match profile {
        Some("dist") => version.to_owned(),
        other => format!("{version} ({} build)", other.unwrap_or("unknown")),
    };
    println!("cargo::rustc-env=TOLLGATE_VERSION={said}");
}

fn folder_above_build(out: &Path) -> Option<&str> {
    let build = out
        .ancestors()
        .find(|dir| dir.file_name().is_some_and(|name| name == "build"))?;
    build.parent()?.file_name()?.to_str()
}
