//! Objects to a configuration: lowered, and read as if a person had written what they come to.
//!
//! Invariant: what a Secret holds is at hand as a file of memory, and on no disk.

use std::io;
use std::path::{Path, PathBuf};

use config::{Fault, Faults, Given, Loaded, Sources};

use crate::lower::ordered;
use crate::{Input, Lowered, Refused, lower};

/// Lowers the objects of these files and loads what they come to. `place` is the file or directory that was named, and relative
/// paths start from `directory`.
///
/// # Errors
/// All that is wrong with the objects, or else with what they come to, told of them.
pub fn load(
    place: &Path,
    directory: &Path,
    inputs: &[Input<'_>],
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    let files: Vec<PathBuf> = inputs.iter().map(|input| input.file.to_owned()).collect();
    let mut watched = vec![place.to_owned()];
    watched.extend(files.into_iter().filter(|file| file != place));
    let lowered = lower(inputs).map_err(|Refused { faults, warnings }| Faults {
        file: place.to_owned(),
        faults,
        warnings,
        watched: watched.clone(),
        key_files: Vec::new(),
    })?;
    completed(place, directory, &lowered, watched, sources)
}

/// Loads what objects came to.
///
/// # Errors
/// All that is wrong with it, told of the objects that say it.
pub(crate) fn completed(
    place: &Path,
    directory: &Path,
    lowered: &Lowered,
    mut watched: Vec<PathBuf>,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    let Lowered {
        document,
        given,
        origins,
        warnings,
        ..
    } = lowered;
    let at = |given: &Given| Given {
        path: directory.join(&given.path),
        content: given.content.clone(),
    };
    let given: Vec<Given> = given.iter().map(at).collect();
    let beside = Beside {
        given: &given,
        sources,
    };
    let file = directory.join("manifests");
    let told = |faults: Vec<Fault>, before: Vec<Fault>| {
        let told = faults.into_iter().map(|fault| origins.told(fault));
        ordered(before.into_iter().chain(told).collect())
    };
    let followed = |found: Vec<PathBuf>| {
        let is_there =
            |path: &PathBuf| *path != file && !given.iter().any(|given| given.path == *path);
        found.into_iter().filter(is_there)
    };
    match config::parse_document(&file, document.as_bytes(), &beside) {
        Ok(mut loaded) => {
            loaded.warnings = told(loaded.warnings, warnings.clone());
            watched.extend(followed(loaded.watched));
            loaded.watched = watched;
            loaded.given = given;
            Ok(loaded)
        }
        Err(faults) => {
            watched.extend(followed(faults.watched));
            Err(Faults {
                file: place.to_owned(),
                faults: told(faults.faults, Vec::new()),
                warnings: told(faults.warnings, warnings.clone()),
                watched,
                key_files: faults.key_files,
            })
        }
    }
}

/// Files that came with a document, and those of the world.
#[expect(
    missing_debug_implementations,
    reason = "it holds secrets, and the world"
)]
pub struct Beside<'s> {
    /// Those that came along.
    pub given: &'s [Given],
    /// All others.
    pub sources: &'s dyn Sources,
}

impl Sources for Beside<'_> {
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        match self.given.iter().find(|given| given.path == path) {
            Some(given) if given.content.expose().len() > bytes_max => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            Some(given) => Ok(given.content.expose().to_vec()),
            None => self.sources.read(path, bytes_max),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.sources.list(directory)
    }

    fn mode(&self, path: &Path) -> io::Result<u32> {
        match self.given.iter().any(|given| given.path == path) {
            true => Err(io::ErrorKind::Unsupported.into()),
            false => self.sources.mode(path),
        }
    }

    fn var(&self, name: &str) -> Option<String> {
        self.sources.var(name)
    }
}
