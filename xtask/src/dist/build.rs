//! The binary for old systems: linked by zig against a glibc of our choice, and cut from its symbols.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{make_dir, succeed};
use crate::cargo::root;
use crate::parts::{DIST_GLIBC, DIST_PACKAGES};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What a binary asks of a system.
pub(super) struct Needs {
    /// The newest glibc of which it uses something, such as `2.28`.
    pub(super) glibc: String,
    /// Shared libraries, but for the loader.
    pub(super) libraries: Vec<String>,
}

impl Needs {
    pub(super) fn of(binary: &Path) -> Result<Self, String> {
        let text = succeed(Command::new("objdump").args(["-T", "-p"]).arg(binary))?;
        Ok(Self::read(&text))
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
        Self {
            glibc: versions
                .max_by_key(|version| number(version))
                .unwrap_or_default(),
            libraries: needed
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.starts_with("ld-linux"))
                .collect(),
        }
    }
}

/// Builds `tollgate` with the profile `dist` for a glibc as old as [`DIST_GLIBC`].
pub(super) fn build(target: &Path, epoch: &str) -> Result<PathBuf, String> {
    let bin = tools(&target.join("dist-tools"))?;
    println!("building for glibc {DIST_GLIBC}; this takes minutes");
    let path = std::env::var("PATH").unwrap_or_default();
    let sysroot = succeed(
        Command::new("rustc")
            .args(["--print", "sysroot"])
            .current_dir(root()),
    )?;
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .map_err(|cause| format!("CARGO_HOME: {cause}"))?;
    let source = root()
        .canonicalize()
        .map_err(|cause| format!("the checkout: {cause}"))?;
    let maps = [
        (source.display().to_string(), "/src"),
        (home, "/cargo"),
        (sysroot.trim().to_owned(), "/rustc"),
    ];
    let flags = |flag: &str| {
        let maps = maps.iter().map(|(from, to)| format!("{flag}{from}={to}"));
        maps.collect::<Vec<_>>().join(" ")
    };
    let mut zigbuild = Command::new(bin.join("cargo-zigbuild"));
    zigbuild
        .args([
            "zigbuild",
            "--locked",
            "--profile",
            "dist",
            "-p",
            "tollgate",
            "--target",
        ])
        .arg(format!("{TARGET}.{DIST_GLIBC}"))
        .arg("--target-dir")
        .arg(target)
        .current_dir(root())
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("SOURCE_DATE_EPOCH", epoch)
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTFLAGS", flags("--remap-path-prefix="))
        .env("CFLAGS", flags("-ffile-prefix-map="));
    let status = zigbuild
        .status()
        .map_err(|cause| format!("{zigbuild:?} did not start: {cause}"))?;
    if !status.success() {
        return Err(format!("{zigbuild:?} failed ({status})"));
    }
    Ok(target.join(TARGET).join("dist").join("tollgate"))
}

/// Installs zig and the tool that has cargo link by it, and gives the directory of their programs.
fn tools(dir: &Path) -> Result<PathBuf, String> {
    let (bin, stamp) = (dir.join("bin"), dir.join("installed"));
    let wanted = DIST_PACKAGES.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|is| is == wanted) {
        return Ok(bin);
    }
    println!("installing {}", DIST_PACKAGES.join(" "));
    succeed(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(dir),
    )?;
    let mut pip = Command::new(bin.join("python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]);
    succeed(pip.args(DIST_PACKAGES))?;
    fs::write(&stamp, wanted).map_err(|cause| format!("{}: {cause}", stamp.display()))?;
    Ok(bin)
}

/// The binary without symbols, and a file that has them.
///
/// No link is between them: it would hold a sum of the symbols, in which zig names the directory where it ran.
pub(super) fn split(whole: &Path, stage: &Path) -> Result<(PathBuf, PathBuf), String> {
    make_dir(stage)?;
    let (binary, symbols) = (stage.join("tollgate"), stage.join("tollgate.debug"));
    let objcopy = || {
        let mut command = Command::new("objcopy");
        command.current_dir(stage);
        command
    };
    let whole = whole
        .canonicalize()
        .map_err(|cause| format!("{}: {cause}", whole.display()))?;
    succeed(objcopy().arg("--only-keep-debug").arg(&whole).arg(&symbols))?;
    succeed(objcopy().arg("--strip-all").arg(&whole).arg(&binary))?;
    Ok((binary, symbols))
}

#[cfg(test)]
mod tests {
    use super::Needs;

    #[test]
    fn the_newest_glibc_is_found_by_number() {
        let text = "  NEEDED               libm.so.6\n  NEEDED               libc.so.6\n  \
                    NEEDED               ld-linux-x86-64.so.2\n\
                    0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.9) pipe2\n\
                    0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.28) fcntl64\n\
                    0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.3.4) memcpy\n";
        let needs = Needs::read(text);
        assert_eq!(needs.glibc, "2.28");
        assert_eq!(needs.libraries, ["libm.so.6", "libc.so.6"]);
    }
}
