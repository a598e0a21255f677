//! `cargo xtask dist`: what is shipped. An archive whose binary runs on old systems, its symbols apart, a Debian package,
//! and the sums of all of them.
//!
//! Invariant: packing gives the same bytes of the same binary: times are the commit's, owners are 0, orders are sorted; and no
//! directory of the machine is in the binary. (It is in the symbols: of what zig compiles by itself.) One time is not the
//! commit's yet: mimalloc holds `__TIME__`, which zig's cache may keep of an earlier build.
//! Not here: the profile that it is built with (`Cargo.toml`), a build laid out by a profile of the hot path (`pgo`).

mod archive;
mod build;
mod deb;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{metadata, root, target_dir};

/// What is packaged, and how it calls itself.
struct Release {
    version: String,
    /// Seconds since 1970 of the commit: the time of every file.
    epoch: String,
    /// Without symbols.
    binary: PathBuf,
    /// The symbols of `binary`.
    symbols: PathBuf,
    needs: build::Needs,
    /// Where manual pages and completions lie, and nothing else.
    pages: PathBuf,
    /// Where packages go.
    out: PathBuf,
    /// Where they are put together.
    stage: PathBuf,
}

/// Builds, packages and tries. `built` is a binary to package in place of one that is built for old systems.
pub(crate) fn run(built: Option<&Path>) -> Result<(), String> {
    let target = target_dir(&metadata()?)?;
    let (out, stage) = (target.join("packages"), target.join("packages-stage"));
    for dir in [&out, &stage] {
        drop(fs::remove_dir_all(dir));
        make_dir(dir)?;
    }
    let epoch = epoch()?;
    let whole = match built {
        Some(binary) => binary.to_owned(),
        None => build::build(&target, &epoch)?,
    };
    let (binary, symbols) = build::split(&whole, &stage)?;
    let pages = stage.join("pages");
    for (shell, file) in deb::COMPLETIONS {
        let text = succeed(Command::new(&binary).args(["completions", shell]))?;
        write(&pages.join("completions").join(file_name(file)?), &text)?;
    }
    succeed(Command::new(&binary).arg("man").arg(pages.join("man1")))?;
    let release = Release {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        needs: build::Needs::of(&binary)?,
        epoch,
        binary,
        symbols,
        pages,
        out,
        stage,
    };
    archive::archive(&release)?;
    archive::symbols(&release)?;
    let deb = deb::deb(&release)?;
    sums(&release.out)?;
    println!("{}", told(&release)?);
    trial::run(&release, &deb)
}

/// The commit's time, unless `SOURCE_DATE_EPOCH` says another.
fn epoch() -> Result<String, String> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(said);
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root());
    Ok(succeed(&mut git)?.trim().to_owned())
}

/// Writes `SHA256SUMS` of what lies in a directory.
fn sums(dir: &Path) -> Result<(), String> {
    let mut sha256sum = Command::new("sha256sum");
    sha256sum.args(files(dir)?).current_dir(dir);
    let text = succeed(&mut sha256sum)?;
    write(&dir.join("SHA256SUMS"), &text)
}

/// Names of the files of a directory, sorted.
fn files(dir: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn told(release: &Release) -> Result<String, String> {
    let mut lines = vec![format!(
        "tollgate {}: needs glibc {} and {}",
        release.version,
        release.needs.glibc,
        release.needs.libraries.join(" ")
    )];
    let size = |path: &Path| {
        let found = fs::metadata(path).map_err(|cause| format!("{}: {cause}", path.display()));
        found.map(|found| format!("{:>12}", found.len()))
    };
    lines.push(format!("{}  the binary", size(&release.binary)?));
    for name in files(&release.out)? {
        lines.push(format!("{}  {name}", size(&release.out.join(&name))?));
    }
    Ok(lines.join("\n"))
}

/// Runs a command to its end and gives what it printed.
fn succeed(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|cause| format!("{command:?} did not start: {cause}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let complained = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{command:?} failed ({})\n{said}\n{}",
        output.status,
        complained.trim()
    ))
}

fn make_dir(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|cause| format!("{}: {cause}", dir.display()))
}

/// Writes a file, and the directories above it.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(dir) = path.parent() {
        make_dir(dir)?;
    }
    fs::write(path, text).map_err(|cause| format!("{}: {cause}", path.display()))
}

/// Copies a file or a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(dir) = to.parent() {
        make_dir(dir)?;
    }
    succeed(Command::new("cp").arg("-rT").arg(from).arg(to)).map(drop)
}

fn file_name(path: &str) -> Result<&str, String> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| format!("{path} names no file"))
}
