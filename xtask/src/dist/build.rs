//! The programs for old systems: linked by zig against a glibc of our choice, and cut from their symbols.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arch::TARGET;
use super::{date, make_dir, succeed, write};
use crate::cargo::{root, sysroot};
use crate::command::run_shown;
use crate::parts::{DIST_GLIBC, DIST_WHEELS};
use crate::setup::stamp::Stamp;
use crate::setup::venv;

/// Names the directory of zig.
pub(super) const TOOLS: &str = "TOLLGATE_DIST_TOOLS";

/// The program that packages are made for.
pub(super) const GATE: &str = "tollgate";
/// What it starts from beside itself.
pub(super) const DEMO: &str = "tollgate-demo";
/// All that packages of the gate hold.
pub(super) const PROGRAMS: [&str; 2] = [GATE, DEMO];
/// The packages of the workspace that they are.
pub(super) const PACKAGES: [&str; 2] = ["tollgate", "demo"];
/// The proving ground, which has packages of its own.
pub(super) const PROVE: &str = "prove";

/// What programs ask of a system.
pub(super) struct Needs {
    /// The newest glibc of which they use something, such as `2.28`.
    pub(super) glibc: String,
    /// Shared libraries, sorted, but for the loader.
    pub(super) libraries: Vec<String>,
}

impl Needs {
    pub(super) fn of(programs: &[PathBuf]) -> Result<Self, String> {
        let text = succeed(Command::new("objdump").args(["-T", "-p"]).args(programs))?;
        Ok(Self::read(&text))
    }

    /// Whether they ask for GCC's own library, which is a package of its own.
    pub(super) fn has_libgcc(&self) -> bool {
        let mut libraries = self.libraries.iter();
        libraries.any(|name| name.starts_with("libgcc_s"))
    }

    /// Of what `objdump -T -p` prints.
    fn read(text: &str) -> Self {
        let number = |version: &str| -> Vec<u32> {
            version
                .split('.')
                .filter_map(|part| part.parse().ok())
                .collect()
        };
        let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
            let version: String = rest
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            (!version.is_empty()).then_some(version)
        });
        let needed = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("NEEDED"));
        let needed: BTreeSet<&str> = needed.map(str::trim).collect();
        Self {
            glibc: versions
                .max_by_key(|version| number(version))
                .unwrap_or_default(),
            libraries: needed
                .into_iter()
                .filter(|name| !name.starts_with("ld-linux"))
                .map(str::to_owned)
                .collect(),
        }
    }
}

/// Zig as `cargo zigbuild` calls it, but linking from `/`: what zig compiles of its own names the directory that it runs in.
const LINKING: &str = r#"#!/bin/sh
for word; do
    case $word in -c | -E | -S) exec "@PYTHON@" "$@" ;; esac
done
case $3 in cc | c++) cd / ;; esac
exec "@PYTHON@" "$@"
"#;

/// Builds the programs with the profile `dist` for a glibc as old as [`DIST_GLIBC`], and gives the gate.
///
/// What C compiles keeps no hour: mimalloc holds `__DATE__` and `__TIME__`, for which the commit's stand.
pub(super) fn build(target: &Path, epoch: &str) -> Result<PathBuf, String> {
    let bin = tools(&tools_dir(target))?;
    println!("building for glibc {DIST_GLIBC}; this takes minutes");
    let path = std::env::var("PATH").unwrap_or_default();
    let maps = maps()?;
    let flags = |flag: &str| {
        let maps = maps.iter().map(|(from, to)| format!("{flag}{from}={to}"));
        maps.collect::<Vec<_>>().join(" ")
    };
    let times = times(&date(epoch, "+%Y-%m-%d")?, &date(epoch, "+%H:%M:%S")?);
    // Of its own and empty: zig compiles again what it links, and nothing of another directory comes in.
    let cache = target.join("zig-cache");
    drop(fs::remove_dir_all(&cache));
    let mut zigbuild = Command::new(bin.join("cargo-zigbuild"));
    zigbuild
        .args(["zigbuild", "--locked", "--profile", "dist"])
        .args(
            PACKAGES
                .into_iter()
                .chain([PROVE])
                .flat_map(|package| ["-p", package]),
        )
        .args(["--target", &format!("{TARGET}.{DIST_GLIBC}")])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("SOURCE_DATE_EPOCH", epoch)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_ZIGBUILD_PYTHON_PATH", linking(&bin)?)
        .env("ZIG_GLOBAL_CACHE_DIR", &cache)
        .env("ZIG_LOCAL_CACHE_DIR", &cache)
        .env("RUSTFLAGS", flags("--remap-path-prefix="))
        // The last that fits counts: zig's own headers lie below the source where it was not built elsewhere.
        .env(
            "CFLAGS",
            format!(
                "{} -ffile-prefix-map={}=/zig {times}",
                flags("-ffile-prefix-map="),
                tools_dir(target).display()
            ),
        );
    run_shown(&mut zigbuild)?;
    Ok(target.join(TARGET).join("dist").join(GATE))
}

/// Writes the program that stands before zig.
fn linking(bin: &Path) -> Result<PathBuf, String> {
    let bin = bin
        .canonicalize()
        .map_err(|cause| format!("{}: {cause}", bin.display()))?;
    let file = bin.join("python-linking");
    let python = bin.join("python");
    write(
        &file,
        &LINKING.replace("@PYTHON@", &python.display().to_string()),
    )?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755))
        .map_err(|cause| format!("{}: {cause}", file.display()))?;
    Ok(file)
}

/// Directories of this machine, and what stands for each in the binary.
fn maps() -> Result<[(String, &'static str); 3], String> {
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|cause| format!("CARGO_HOME: {cause}"))?;
    let source = root()
        .canonicalize()
        .map_err(|cause| format!("the checkout: {cause}"))?;
    Ok([
        (source.display().to_string(), "/src"),
        (home, "/cargo"),
        (sysroot()?.display().to_string(), "/rustc"),
    ])
}

/// What a C compiler is told of its day and hour. Neither may hold a space: `CFLAGS` is cut at spaces.
fn times(day: &str, hour: &str) -> String {
    format!("-Wno-builtin-macro-redefined -D__DATE__=\"{day}\" -D__TIME__=\"{hour}\"")
}

/// Where zig is. Its directory is in the symbols of what it compiles by itself: `TOLLGATE_DIST_TOOLS` lets builds share one.
pub(super) fn tools_dir(target: &Path) -> PathBuf {
    let named = std::env::var_os(TOOLS).filter(|named| !named.is_empty());
    named.map_or_else(|| target.join("dist-tools"), PathBuf::from)
}

/// Installs zig and the tool that has cargo link by it, and gives the directory of their programs.
pub(super) fn tools(dir: &Path) -> Result<PathBuf, String> {
    let bin = dir.join("bin");
    let stamp = Stamp::new(dir, &[DIST_WHEELS]);
    if !(stamp.is_there() && bin.join("cargo-zigbuild").is_file()) {
        print!("installing\n{DIST_WHEELS}");
        venv::of_wheels(dir, DIST_WHEELS)?;
        stamp.put()?;
    }
    Ok(bin)
}

/// The file that has a program's symbols.
pub(super) fn symbols(name: &str) -> String {
    format!("{name}.debug")
}

/// Makes the program without symbols and the file that has them of the program as it was built.
///
/// No link is between them: it would hold a sum of the symbols, in which zig names the directory where it ran.
pub(super) fn split(whole: &Path, stage: &Path, name: &str) -> Result<(), String> {
    make_dir(stage)?;
    let (binary, symbols) = (stage.join(name), stage.join(symbols(name)));
    let objcopy = || {
        let mut command = Command::new("objcopy");
        command.current_dir(stage);
        command
    };
    let whole = whole
        .canonicalize()
        .map_err(|cause| format!("{}: {cause}", whole.display()))?;
    succeed(objcopy().arg("--only-keep-debug").arg(&whole).arg(&symbols))?;
    succeed(objcopy().arg("--strip-all").arg(&whole).arg(&binary)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::Needs;

    #[test]
    fn the_newest_glibc_is_found_by_number_and_each_library_once() {
        let text = "  NEEDED               libm.so.6\n  NEEDED               libc.so.6\n  NEEDED               libm.so.6\n  \
                    NEEDED               ld-linux-x86-64.so.2\n\
                    0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.9) pipe2\n\
                    0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.28) fcntl64\n\
                    0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.3.4) memcpy\n";
        let needs = Needs::read(text);
        assert_eq!(needs.glibc, "2.28");
        assert_eq!(needs.libraries, ["libc.so.6", "libm.so.6"]);
        assert!(!needs.has_libgcc());
        assert!(Needs::read("  NEEDED  libgcc_s.so.1\n").has_libgcc());
    }
}
