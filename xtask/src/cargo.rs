//! How cargo and its compiler are called and where their things are.
//!
//! Invariant: paths come from cargo at run time, so a moved checkout or another target directory works.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::command::{run_quietly, succeed};

/// `cargo <words>`, run in the root of the workspace by the cargo that runs us.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(root());
    command
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest_dir
        .as_deref()
        .and_then(|dir| dir.parent())
        .map_or_else(|| ".".into(), PathBuf::from)
}

/// `cargo metadata` of the workspace, with the resolved graph.
pub(crate) fn metadata() -> Result<Value, String> {
    let output = cargo(&["metadata", "--format-version", "1", "--locked"])
        .output()
        .map_err(|cause| format!("cargo metadata did not start: {cause}"))?;
    if !output.status.success() {
        let says = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata failed: {}", says.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| format!("cargo metadata: {cause}"))
}

/// Where cargo puts what it builds, as `cargo metadata` says.
pub(crate) fn target_dir(metadata: &Value) -> Result<PathBuf, String> {
    let dir = metadata.get("target_directory").and_then(Value::as_str);
    dir.map(PathBuf::from)
        .ok_or_else(|| "cargo metadata names no target_directory".into())
}

/// The profile of the lanes: `release` for what the gate is made of.
pub(crate) const PROFILE: &str = "tests";

/// Builds programs of these packages with the profile `release`.
pub(crate) fn build_release(packages: &[&str]) -> Command {
    let mut command = cargo(&["build", "--release"]);
    command.args(packages.iter().flat_map(|package| ["-p", *package]));
    command
}

/// Where that puts them.
pub(crate) fn release_dir() -> Result<PathBuf, String> {
    Ok(target_dir(&metadata()?)?.join("release"))
}

/// The gate that it made.
pub(crate) fn release_binary() -> Result<PathBuf, String> {
    let binary = release_dir()?.join("tollgate");
    if binary.is_file() {
        Ok(binary)
    } else {
        Err(format!("no {}", binary.display()))
    }
}

/// What `rustc -vV` says under a name, such as `host`.
pub(crate) fn of_compiler(name: &str) -> Result<String, String> {
    let said = succeed(rustc().arg("-vV"))?;
    let mut lines = said.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    value
        .map(str::to_owned)
        .ok_or_else(|| format!("rustc -vV says no {name}"))
}

/// The directory of the compiler and its libraries.
pub(crate) fn sysroot() -> Result<PathBuf, String> {
    run_quietly(rustc().args(["--print", "sysroot"])).map(PathBuf::from)
}

/// The compiler that the workspace pins.
fn rustc() -> Command {
    let mut command = Command::new("rustc");
    command.current_dir(root());
    command
}

#[cfg(test)]
mod tests {
    use super::{of_compiler, sysroot};

    #[test]
    fn the_compiler_says_its_host_and_its_llvm_and_nothing_of_another_name() {
        let host = of_compiler("host").expect("a host");
        let libraries = sysroot().expect("a directory").join("lib/rustlib");
        assert!(libraries.join(&host).is_dir(), "{host}");
        let llvm = of_compiler("LLVM version").expect("a version");
        assert!(llvm.starts_with(|c: char| c.is_ascii_digit()), "{llvm}");
        let says = of_compiler("hos").expect_err("that is half of a name");
        assert_eq!(says, "rustc -vV says no hos");
    }
}
