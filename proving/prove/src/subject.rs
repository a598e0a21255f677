//! A subject: a directory with `subject.toml` and templates of its config files.
//!
//! Invariant: adding a subject adds no code; whatever differs between subjects is in its directory.
//! Not here: what a manifest may say (`manifest`), fetching a program (`install`), starting it for a race (`race::bench`).

mod binary;
mod install;
mod manifest;
mod places;
mod started;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use binary::{built_dir, changed_source, target_dir};
use install::find_below;
pub(crate) use manifest::{Body, Client, Counting, Dialect, Manifest};
use manifest::{Find, Install, parse};
pub(crate) use places::Places;
pub(crate) use started::{NotStarted, Started, Surroundings};

use crate::host::program;

#[cfg(test)]
mod tests;

/// A manifest in its directory.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
}

/// How a subject is started, everything filled in.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) args: Vec<String>,
    /// Arguments of the run before its first start.
    pub(crate) prepare: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) client: Client,
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
    #[error("not found: {program}; {advice}")]
    NotInstalled { program: String, advice: String },
    #[error(
        "not found: {package}: not {built}, not beside this program, not on PATH; install it, or build it with `cargo build --profile dist -p {package}`"
    )]
    NotBuilt { built: String, package: String },
}

/// The Cargo profiles whose binary is raced, the one that is shipped first.
const PROFILES: [&str; 2] = ["dist", "release"];
/// How the version of a program of ours ends that says its profile.
const BUILD: &str = " build)";

/// The profile that a version names, where that is not the one that is shipped.
fn other_profile(version: &str) -> Option<&str> {
    let (_, profile) = version.strip_suffix(BUILD)?.rsplit_once('(')?;
    (profile != PROFILES[0]).then_some(profile)
}

impl Subject {
    /// Reads the subjects of `dir`: those `wanted`, in that order, or by name all that need not be wanted.
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
        let mut subjects: Vec<Self> = names.iter().map(load).collect::<Result<_, _>>()?;
        subjects.retain(|subject| !wanted.is_empty() || !subject.manifest.only_when_named);
        Ok(subjects)
    }

    /// Reads the subject of one directory, which has its name.
    pub(crate) fn of(dir: &Path) -> Result<Self, SubjectError> {
        // `.` has a name of its own.
        let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = real.file_name().unwrap_or(real.as_os_str());
        Self::load(dir, &name.to_string_lossy())
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

    /// The subject that takes its place under a campaign's load: itself, unless it names another.
    pub(crate) fn under_load(self) -> Result<Self, SubjectError> {
        match &self.manifest.under_load {
            Some(name) => Self::of(&self.dir.join("..").join(name)),
            None => Ok(self),
        }
    }

    /// Whether this is the upstream without a gateway.
    pub(crate) fn is_direct(&self) -> bool {
        self.manifest.find == Find::Upstream
    }

    /// Whether it has a part in `scenario`.
    pub(crate) fn takes_part_in(&self, scenario: &str) -> bool {
        let begins = |prefix: &String| scenario.starts_with(prefix);
        self.manifest.scenarios.is_empty() || self.manifest.scenarios.iter().any(begins)
    }

    /// The program; `None` for the upstream itself.
    pub(crate) fn program(&self) -> Result<Option<PathBuf>, SubjectError> {
        match &self.manifest.find {
            Find::Upstream => Ok(None),
            Find::Path(names) => match names.iter().find_map(|name| program::on_path(name)) {
                Some(program) => Ok(Some(program)),
                None => Err(self.not_installed(format!("none of {} on PATH", names.join(", ")))),
            },
            Find::Installed(pattern) => match self.installed(pattern) {
                Some(program) => Ok(Some(program)),
                None => Err(self.not_installed(format!("no {pattern} was installed"))),
            },
            Find::Cargo(package) => {
                let built = built(&self.dir, package);
                let binary = built.iter().find(|binary| binary.is_file()).cloned();
                let found = binary
                    .or_else(|| program::beside(package))
                    .or_else(|| program::on_path(package));
                found.map(Some).ok_or_else(|| SubjectError::NotBuilt {
                    built: match built.first() {
                        Some(binary) => format!("at {}", binary.display()),
                        None => "in a checkout".into(),
                    },
                    package: package.clone(),
                })
            }
        }
    }

    fn installed(&self, pattern: &str) -> Option<PathBuf> {
        let place = self.manifest.install.as_ref()?.place(&self.base())?;
        find_below(&place.canonicalize().ok()?, pattern)
    }

    fn not_installed(&self, program: String) -> SubjectError {
        let advice = self.manifest.install.as_ref().map(Install::advice);
        SubjectError::NotInstalled {
            program,
            advice: advice.unwrap_or_else(|| "no package is known".into()),
        }
    }

    fn base(&self) -> PathBuf {
        target_dir(&self.dir).join("race")
    }

    /// Fetches the program where it is missing; the error is for a table.
    pub(crate) fn install(&self) -> Result<(), String> {
        match (self.program(), &self.manifest.install) {
            (Err(SubjectError::NotInstalled { .. }), Some(install)) => install.fetch(&self.base()),
            _ => Ok(()),
        }
    }

    /// What makes its figures those of another program than one might think.
    pub(crate) fn warning(&self) -> Option<String> {
        let Find::Cargo(package) = &self.manifest.find else {
            return None;
        };
        let program = self.program().ok()??;
        let target = target_dir(&self.dir);
        let build = format!("build it with `cargo build --profile dist -p {package}`");
        if let Some(source) = changed_source(&program) {
            let root = target.parent().unwrap_or(&target);
            let source = source.strip_prefix(root).unwrap_or(&source);
            return Some(format!(
                "the binary is older than {}; {build}",
                source.display()
            ));
        }
        let [_, quick] = PROFILES;
        // What was installed is what is shipped.
        let is_quick = program.starts_with(target.join(quick));
        if is_quick {
            return Some(format!(
                "the binary is of the quick profile `{quick}`, not as shipped; {build}"
            ));
        }
        // One that lies elsewhere says it itself.
        let said = self.version_of(&program)?;
        other_profile(&said).map(|profile| {
            format!("the binary is of the profile `{profile}`, not as shipped; {build}")
        })
    }

    /// What the program says of its version, the first line that holds a digit, or what is pinned.
    pub(crate) fn version_of(&self, program: &Path) -> Option<String> {
        if self.manifest.version.is_empty() {
            let pinned = self.manifest.install.as_ref()?.pinned()?;
            return Some(pinned.to_owned());
        }
        let output = Command::new(program)
            .args(&self.manifest.version)
            .output()
            .ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let line = text
            .lines()
            .find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let said = line.trim().replace(&*program.to_string_lossy(), &name);
        Some(match self.profile_of(program) {
            Some(profile) if !said.ends_with(BUILD) => format!("{said} ({profile}{BUILD}"),
            _ => said,
        })
    }

    /// The Cargo profile that a program of ours was built with, by the folder it lies in.
    fn profile_of(&self, program: &Path) -> Option<&'static str> {
        let target = target_dir(&self.dir);
        let built = |profile: &&str| program.starts_with(target.join(profile));
        matches!(self.manifest.find, Find::Cargo(_))
            .then(|| PROFILES.into_iter().find(built))
            .flatten()
    }

    /// Renders the templates into `places.dir`, and what it is started with.
    pub(crate) fn render(&self, places: &Places) -> io::Result<Launch> {
        fs::create_dir_all(&places.dir)?;
        let like = self.manifest.like.as_ref();
        let model = like.and_then(|name| Some(self.dir.parent()?.join(name)));
        for dir in model.iter().chain([&self.dir]) {
            render_files(dir, places).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", dir.display()))
            })?;
        }
        let filled = |args: &[String]| args.iter().map(|arg| places.fill(arg)).collect();
        Ok(Launch {
            args: filled(&self.manifest.start),
            prepare: filled(&self.manifest.prepare),
            env: places.fill_values(&self.manifest.env),
            client: places.fill_client(&self.manifest.client),
        })
    }
}

fn render_files(dir: &Path, places: &Places) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let Some(name) = path
            .file_name()
            .filter(|&name| path.is_file() && name != "subject.toml")
        else {
            continue;
        };
        let text = places.fill(&fs::read_to_string(&path)?);
        if let Some(port) = Places::unfilled(&text) {
            let name = name.display();
            return Err(io::Error::other(format!(
                "{name}: nothing here gives {port}; upstreams by name are those of a verify suite"
            )));
        }
        crate::files::write_private(&places.dir.join(name), &text)?;
    }
    Ok(())
}

/// Where cargo leaves a program of ours, the profile that is shipped first; nowhere where there is no checkout.
fn built(dir: &Path, package: &str) -> Vec<PathBuf> {
    let target = built_dir(dir);
    let built = |target: PathBuf| PROFILES.map(|profile| target.join(profile).join(package));
    target.map(built).into_iter().flatten().collect()
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
