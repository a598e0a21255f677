//! A `dist` build laid out by a profile of the hot path: instrument, serve the scenarios whose
//! instructions are counted, build again with what was seen.
//!
//! Invariant: the profile comes from this checkout and this compiler, and is thrown away; nothing of it is
//! kept in the repository.
//! Not here: the plain `release` build, which is what the tests run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, metadata, of_compiler, sysroot, target_dir};
use crate::command::run_shown;
use crate::instructions;

/// Exchanges of each scenario that the instrumented gate serves.
const EXCHANGES: u32 = 3000;

/// Builds, trains and builds again. Gives where the binary is.
pub(crate) fn run() -> Result<PathBuf, String> {
    let tool = profdata()?;
    let dir = target_dir(&metadata()?)?.join("pgo");
    let (raw, merged) = (dir.join("raw"), dir.join("merged.profdata"));
    drop(std::fs::remove_dir_all(&raw));
    println!("1/3  building with instrumentation");
    let instrumented = build(&dir, &format!("-Cprofile-generate={}", raw.display()))?;
    println!("2/3  serving the scenarios, {EXCHANGES} exchanges each");
    instructions::train(&instrumented, &dir.join("training"), EXCHANGES)?;
    run_shown(
        Command::new(&tool)
            .arg("merge")
            .arg("-o")
            .arg(&merged)
            .arg(&raw),
    )?;
    println!("3/3  building with the profile");
    let built = build(&dir, &format!("-Cprofile-use={}", merged.display()))?;
    let binary = dir.join("tollgate");
    std::fs::copy(&built, &binary).map_err(|cause| format!("{}: {cause}", built.display()))?;
    Ok(binary)
}

fn build(dir: &Path, flags: &str) -> Result<PathBuf, String> {
    let mut command = cargo(&[
        "build",
        "--profile",
        "dist",
        "-p",
        "tollgate",
        "--target-dir",
    ]);
    run_shown(command.arg(dir).env("RUSTFLAGS", flags))?;
    Ok(dir.join("dist").join("tollgate"))
}

/// The tool that merges profiles: it must be of the compiler's own LLVM.
fn profdata() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("LLVM_PROFDATA") {
        return Ok(named.into());
    }
    let llvm = of_compiler("LLVM version")?;
    let major = llvm.split('.').next().unwrap_or_default();
    let shipped = sysroot()?
        .join("lib/rustlib")
        .join(of_compiler("host")?)
        .join("bin/llvm-profdata");
    let packaged = PathBuf::from(format!("llvm-profdata-{major}"));
    let runs = |tool: &PathBuf| Command::new(tool).arg("--version").output().is_ok();
    [shipped, packaged].into_iter().find(runs).ok_or_else(|| {
        format!(
            "no llvm-profdata of LLVM {major}. Install one: rustup component add llvm-tools, or \
             sudo apt-get install llvm-{major}, or name it in LLVM_PROFDATA"
        )
    })
}
