//! Configurations that are Kubernetes' objects: a file of them, or a directory.
//!
//! Invariant: a document of ours is read as if this were not there.
//! Not here: what objects come to (`control`), when they are read (`running`).

use std::io;
use std::path::{Path, PathBuf};

use config::{EditorServers, Fault, Faults, Loaded, Sources};
use control::Input;

use crate::mcp_servers::Sealed;

/// Longest of the files, bytes.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Most that the files of a directory hold together, bytes.
const BYTES_MAX: usize = 64 << 20;
/// Most files of a directory.
const FILES_MAX: usize = 1000;

/// The texts of what was named.
pub(crate) struct Manifests {
    /// Where relative paths start.
    directory: PathBuf,
    files: Vec<(PathBuf, String)>,
}

/// Loads a document of ours, or objects.
pub(crate) fn load(
    place: &Path,
    servers: Option<&EditorServers>,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    match Manifests::read(place, sources)? {
        Some(_) if servers.is_some() => {
            let hint = "`tollgate convert` makes a document of them, which can have both";
            let says =
                "holds objects of Kubernetes, which take no servers of tools from the command line";
            Err(Faults {
                file: place.to_owned(),
                faults: vec![fault(None, says.to_owned(), hint)],
                warnings: Vec::new(),
                watched: vec![place.to_owned()],
                key_files: Vec::new(),
            })
        }
        Some(manifests) => {
            let sealed = Sealed(sources);
            control::load(place, &manifests.directory, &manifests.inputs(), &sealed)
        }
        None => config::load_with(place, servers, sources),
    }
}

impl Manifests {
    /// What was named, where it is a directory or a file of objects.
    pub(crate) fn read(place: &Path, sources: &dyn Sources) -> Result<Option<Self>, Faults> {
        let Ok(mut names) = sources.list(place) else {
            // What cannot be read has its fault as a document.
            let text = sources.read(place, FILE_BYTES_MAX).ok();
            let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.filter(|text| control::is_manifest(text));
            return Ok(text.map(|text| Self {
                directory: place.parent().unwrap_or(Path::new("")).to_owned(),
                files: vec![(place.to_owned(), text)],
            }));
        };
        names.retain(|name| !is_hidden(name));
        names.sort();
        let mut faults = Vec::new();
        for below in names.iter().filter(|name| !is_document(name)) {
            // What is not read may be what closes a door.
            if let Some(file) = first_below(below, sources) {
                let says = "holds objects of Kubernetes in a directory below the one that is named, and those are not read";
                let hint = "put the file beside the others, or take the directory away";
                faults.push(fault(Some(&file), says.to_owned(), hint));
            }
        }
        names.retain(|name| is_document(name));
        if names.len() > FILES_MAX {
            faults.push(fault(None, format!("has more than {FILES_MAX} files"), ""));
            names.clear();
        }
        let mut files: Vec<(PathBuf, String)> = Vec::new();
        let mut room = BYTES_MAX;
        for name in &names {
            match text(name, sources) {
                Ok(text) if text.len() > room => {
                    let says = format!("its files hold more than {} MiB", BYTES_MAX >> 20);
                    faults.push(fault(None, says, "name a directory of fewer"));
                    break;
                }
                Ok(text) => {
                    room -= text.len();
                    files.push((name.clone(), text));
                }
                Err(says) => faults.push(fault(Some(name), says, "")),
            }
        }
        if faults.is_empty() && !files.iter().any(|(_, text)| control::is_manifest(text)) {
            let hint = "name a document of ours by its file, such as -c tollgate.yaml";
            let says = "cannot read the file: it is a directory, and none of its files (.yaml, .yml, .json) holds objects of Kubernetes";
            faults.push(fault(None, says.to_owned(), hint));
        }
        if faults.is_empty() {
            return Ok(Some(Self {
                directory: place.to_owned(),
                files,
            }));
        }
        Err(Faults {
            file: place.to_owned(),
            faults,
            warnings: Vec::new(),
            watched: std::iter::once(place.to_owned()).chain(names).collect(),
            key_files: Vec::new(),
        })
    }

    pub(crate) fn inputs(&self) -> Vec<Input<'_>> {
        let input = |(file, text)| Input { file, text };
        self.files
            .iter()
            .map(|(file, text): &(PathBuf, String)| input((file, text)))
            .collect()
    }
}

fn is_hidden(name: &Path) -> bool {
    let name = name.file_name();
    name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Whether it is one of the files that are read, by its name.
fn is_document(name: &Path) -> bool {
    let extension = name.extension().and_then(|e| e.to_str());
    let is = |of: &str| extension.is_some_and(|e| e.eq_ignore_ascii_case(of));
    is("yaml") || is("yml") || is("json")
}

/// The first file with objects in a directory, where it is one.
fn first_below(directory: &Path, sources: &dyn Sources) -> Option<PathBuf> {
    let mut names = sources.list(directory).ok()?;
    names.sort();
    let mut documents = names
        .into_iter()
        .filter(|name| !is_hidden(name) && is_document(name))
        .take(FILES_MAX);
    documents.find(|name| text(name, sources).is_ok_and(|text| control::is_manifest(&text)))
}

fn text(name: &Path, sources: &dyn Sources) -> Result<String, String> {
    let bytes = sources
        .read(name, FILE_BYTES_MAX)
        .map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                "the file is larger than 4 MiB, and no more is read".to_owned()
            }
            _ => format!("cannot read the file: {error}"),
        })?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())
}

fn fault(file: Option<&Path>, says: String, hint: &str) -> Fault {
    Fault {
        file: file.map(Path::to_owned),
        path: String::new(),
        line: None,
        says,
        hint: hint.to_owned(),
    }
}
