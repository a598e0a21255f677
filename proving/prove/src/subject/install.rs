//! Fetching a subject from the registry that carries it, into a directory of its own.
//!
//! Invariant: nothing is fetched unless it was asked for; versions are those that the manifest pins.
//! Not here: where the program is in what was fetched (`subject`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::manifest::Install;

#[cfg(test)]
mod tests;

impl Install {
    /// Where it is installed below `base`; `None` where the system keeps it.
    pub(super) fn place(&self, base: &Path) -> Option<PathBuf> {
        let (kind, packages) = match self {
            Self::Pip(packages) => ("pip", packages),
            Self::Npm(packages) => ("npm", packages),
            Self::Apt(_) | Self::ByHand(_) => return None,
        };
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') {
                c
            } else {
                '_'
            }
        };
        let name: String = packages.join("+").chars().map(plain).collect();
        Some(base.join(format!("{kind}-{name}")))
    }

    /// What a person would do.
    pub(super) fn advice(&self) -> String {
        match self {
            Self::Apt(package) => format!("`--install`, or apt-get install {package}"),
            Self::Pip(packages) => {
                format!("`--install` gets {} by pip", packages.join(" "))
            }
            Self::Npm(packages) => {
                format!("`--install` gets {} by npm", packages.join(" "))
            }
            Self::ByHand(text) => text.clone(),
        }
    }

    /// The version as it is pinned.
    pub(super) fn pinned(&self) -> Option<&str> {
        match self {
            Self::Pip(packages) | Self::Npm(packages) => packages.first().map(String::as_str),
            Self::Apt(_) | Self::ByHand(_) => None,
        }
    }

    /// Fetches it; the error is what the reader of a table sees.
    pub(super) fn fetch(&self, base: &Path) -> Result<(), String> {
        for command in self.commands(base) {
            run(command)?;
        }
        match self {
            Self::ByHand(text) => Err(format!("no registry carries it: {text}")),
            Self::Apt(_) | Self::Pip(_) | Self::Npm(_) => Ok(()),
        }
    }

    fn commands(&self, base: &Path) -> Vec<Command> {
        let place = self.place(base).unwrap_or_default();
        match self {
            Self::Apt(package) => {
                let mut apt = Command::new("apt-get");
                apt.args(["install", "-y", "--no-install-recommends", package])
                    .env("DEBIAN_FRONTEND", "noninteractive");
                vec![apt]
            }
            Self::Pip(packages) => {
                let mut venv = Command::new("python3");
                venv.args(["-m", "venv"]).arg(&place);
                let mut pip = Command::new(place.join("bin/python"));
                pip.args(["-m", "pip", "install", "--disable-pip-version-check", "-q"])
                    .args(packages);
                vec![venv, pip]
            }
            Self::Npm(packages) => {
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
                    .arg(&place)
                    .args(packages);
                vec![npm]
            }
            Self::ByHand(_) => Vec::new(),
        }
    }
}

/// Runs a command whose output a person sees on standard error.
fn run(mut command: Command) -> Result<(), String> {
    let line = format!("{command:?}").replace('"', "");
    eprintln!("$ {line}");
    let failed = |error: io::Error| format!("`{line}`: {error}");
    let output = command
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .map_err(failed)?;
    if output.success() {
        Ok(())
    } else {
        Err(format!("`{line}` ended with {output}"))
    }
}

/// The first path that `pattern` fits below `root`; `*` stands for any one name.
pub(super) fn find_below(root: &Path, pattern: &str) -> Option<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/') {
        found = found.iter().flat_map(|dir| step(dir, part)).collect();
    }
    found.into_iter().find(|path| path.is_file())
}

fn step(dir: &Path, part: &str) -> Vec<PathBuf> {
    if part != "*" {
        return vec![dir.join(part)];
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.path()).collect();
    names.sort();
    names
}
