//! A subject: a directory with `subject.toml` and templates of its config files.
//!
//! Invariant: adding a subject adds no code; whatever differs between subjects is in its directory.
//! Not here: starting it (`bench`), asking it (`check`, `cell`).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[cfg(test)]
mod tests;

/// `subject.toml` as a person writes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// One line for the reader of a table.
    pub(crate) summary: String,
    /// Where the program is.
    pub(crate) find: Find,
    /// What to do when it is not there.
    #[serde(default)]
    pub(crate) install: Option<String>,
    /// Arguments that make it print its version.
    #[serde(default)]
    pub(crate) version: Vec<String>,
    /// Arguments that start it in the foreground, with placeholders.
    #[serde(default)]
    pub(crate) start: Vec<String>,
    /// It must answer after at most so many seconds.
    #[serde(default = "fifteen")]
    pub(crate) ready_seconds: u64,
    /// How it is to be spoken to.
    #[serde(default)]
    pub(crate) client: Client,
}

/// How to find the program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Find {
    /// The first of these that exists: a name on PATH, or an absolute path.
    Path(Vec<String>),
    /// A binary of this workspace, built in release.
    Cargo(String),
    /// No gateway: the upstream itself.
    Upstream,
}

/// What the client sends besides the body.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// Instead of `/v1/chat/completions`.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// Further headers.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

/// A manifest in its directory.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
}

/// What placeholders stand for.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) port: u16,
    pub(crate) admin_port: u16,
    pub(crate) upstream_port: u16,
    pub(crate) cores: usize,
    pub(crate) dir: PathBuf,
}

/// Why a subject cannot be used; the first four are mistakes in its directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubjectError {
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path}: {source}")]
    Parse {
        path: PathBuf,
        source: Box<toml::de::Error>,
    },
    #[error("{path}: {says}")]
    Field { path: PathBuf, says: &'static str },
    #[error("{dir}: no subject named {name}; there are {known}")]
    Unknown {
        dir: PathBuf,
        name: String,
        known: String,
    },
    #[error("not installed: none of {names} is on PATH; {install}")]
    NotInstalled { names: String, install: String },
    #[error("{binary} is not built; build it with `cargo build --release -p {package}`")]
    NotBuilt { binary: PathBuf, package: String },
}

const fn fifteen() -> u64 {
    15
}

impl Subject {
    /// Reads the subjects of `dir`: those `wanted`, in that order, or all by name.
    pub(crate) fn load_all(dir: &Path, wanted: &[String]) -> Result<Vec<Self>, SubjectError> {
        let known = names(dir)?;
        let names = if wanted.is_empty() { &known } else { wanted };
        let load = |name: &String| {
            if known.contains(name) {
                return Self::load(&dir.join(name), name);
            }
            Err(SubjectError::Unknown {
                dir: dir.into(),
                name: name.clone(),
                known: known.join(", "),
            })
        };
        names.iter().map(load).collect()
    }

    fn load(dir: &Path, name: &str) -> Result<Self, SubjectError> {
        let path = dir.join("subject.toml");
        let text = fs::read_to_string(&path).map_err(|source| SubjectError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest = parse(&path, &text)?;
        Ok(Self {
            name: name.to_owned(),
            dir: dir.to_owned(),
            manifest,
        })
    }

    /// Whether this is the upstream without a gateway.
    pub(crate) fn is_direct(&self) -> bool {
        self.manifest.find == Find::Upstream
    }

    /// The program; `None` for the upstream itself.
    pub(crate) fn program(&self) -> Result<Option<PathBuf>, SubjectError> {
        match &self.manifest.find {
            Find::Upstream => Ok(None),
            Find::Path(names) => names
                .iter()
                .find_map(|name| on_path(name))
                .map(Some)
                .ok_or_else(|| {
                    let install = self
                        .manifest
                        .install
                        .clone()
                        .unwrap_or_else(|| "no package is known".into());
                    SubjectError::NotInstalled {
                        names: names.join(", "),
                        install,
                    }
                }),
            Find::Cargo(package) => {
                let binary = target_dir(&self.dir).join("release").join(package);
                if binary.is_file() {
                    return Ok(Some(binary));
                }
                Err(SubjectError::NotBuilt {
                    binary,
                    package: package.clone(),
                })
            }
        }
    }

    /// What the program says of its version: the first line that holds a digit.
    pub(crate) fn version_of(&self, program: &Path) -> Option<String> {
        let output = Command::new(program)
            .args(&self.manifest.version)
            .output()
            .ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let line = text
            .lines()
            .find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
        Some(line.trim().to_owned())
    }

    /// Renders the templates into `places.dir`, and the arguments.
    pub(crate) fn render(&self, places: &Places) -> io::Result<Vec<String>> {
        fs::create_dir_all(&places.dir)?;
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let Some(name) = path
                .file_name()
                .filter(|&name| path.is_file() && name != "subject.toml")
            else {
                continue;
            };
            fs::write(
                places.dir.join(name),
                places.fill(&fs::read_to_string(&path)?),
            )?;
        }
        Ok(self
            .manifest
            .start
            .iter()
            .map(|arg| places.fill(arg))
            .collect())
    }
}

impl Places {
    fn fill(&self, template: &str) -> String {
        template
            .replace("{port}", &self.port.to_string())
            .replace("{admin_port}", &self.admin_port.to_string())
            .replace("{upstream_port}", &self.upstream_port.to_string())
            .replace("{cores}", &self.cores.to_string())
            .replace("{dir}", &self.dir.to_string_lossy())
    }
}

fn parse(path: &Path, text: &str) -> Result<Manifest, SubjectError> {
    let parsed = toml::from_str(text);
    let manifest: Manifest = parsed.map_err(|source| SubjectError::Parse {
        path: path.into(),
        source: Box::new(source),
    })?;
    let fault = |says| {
        Err(SubjectError::Field {
            path: path.into(),
            says,
        })
    };
    match &manifest.find {
        Find::Path(names) if names.is_empty() => fault("`find.path` names no program"),
        Find::Path(_) | Find::Cargo(_) if manifest.start.is_empty() => {
            fault("`start` has no arguments")
        }
        Find::Upstream if !manifest.start.is_empty() => {
            fault("`start` has no meaning with `find = \"upstream\"`")
        }
        _ => Ok(manifest),
    }
}

fn names(dir: &Path) -> Result<Vec<String>, SubjectError> {
    let entries = fs::read_dir(dir).map_err(|source| SubjectError::Read {
        path: dir.into(),
        source,
    })?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("subject.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn on_path(name: &str) -> Option<PathBuf> {
    let direct = Path::new(name);
    if direct.is_absolute() {
        return direct.is_file().then(|| direct.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
}

/// Where cargo builds: `CARGO_TARGET_DIR`, or `target` beside the nearest `Cargo.lock` above.
fn target_dir(dir: &Path) -> PathBuf {
    if let Some(dir) = std::env::var_os("CARGO_TARGET_DIR") {
        return dir.into();
    }
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let root = dir.ancestors().find(|dir| dir.join("Cargo.lock").is_file());
    root.unwrap_or(Path::new(".")).join("target")
}
