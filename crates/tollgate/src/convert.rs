//! `tollgate convert`: the document that Kubernetes' objects come to, or the way back.
//!
//! Invariant: no secret is printed; written out, each is in a file that its owner alone can read, and no file is replaced.
//! Not here: what objects come to (`control`).

use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::{Fault, Faults, Located, Sources};
use control::{Lowered, Refused};

use crate::manifests::{self, Manifests};
use crate::output::{complain, told};
use crate::world::World;

/// Options of `convert`.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Kubernetes' objects: a file, or a directory of files. With `--to kubernetes` a document of the gate's.
    #[arg(value_name = "FILE|DIR", required = true)]
    places: Vec<PathBuf>,
    /// What is made: tollgate.yaml of objects, or objects of that, with what they cannot say as a document beside them.
    #[arg(long, value_name = "FORM", value_enum, default_value = "tollgate")]
    to: Form,
    /// Write tollgate.yaml and the files that it names into this directory, in place of printing it.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// What is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Tollgate,
    Kubernetes,
}

/// Converts, and says what was left out; 1 where there are faults.
pub(crate) fn convert(options: &Convert) -> ExitCode {
    match converted(options) {
        Ok(text) => told(&text),
        Err(lines) => {
            for line in lines {
                complain(&line);
            }
            ExitCode::FAILURE
        }
    }
}

/// Objects of a document of ours; on the standard error what stays one.
fn objects(place: &Path) -> Result<String, Vec<String>> {
    if place.is_dir() {
        let says = "it is a directory, and a document of the gate's is one file; name it";
        return Err(vec![format!("{}: {says}", place.display())]);
    }
    let read = World.read(place, FILE_BYTES_MAX);
    let text = read.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text else {
        let says = "cannot read the file: it has to be text of 4 MiB at most";
        return Err(vec![format!("{}: {says}", place.display())]);
    };
    // What it says is read as a gate would read it.
    let said = |faults: Vec<Fault>| shown(place, &faults, "");
    manifests::load(place, None, &World).map_err(|Faults { faults, .. }| said(faults))?;
    let made = control::manifests(place, &text).map_err(said)?;
    for line in shown(place, &made.notes, "note: ") {
        complain(&line);
    }
    if !made.left.is_empty() {
        let left = made.left.join(", ");
        complain(&format!(
            "objects cannot say all: {left} in a document beside them"
        ));
    }
    Ok(made.text.trim_end().to_owned())
}

/// Longest document, bytes.
const FILE_BYTES_MAX: usize = 4 << 20;

fn converted(options: &Convert) -> Result<String, Vec<String>> {
    let [place] = options.places.as_slice() else {
        return Err(vec![
            "several files are read from a directory: name the one that holds them".to_owned(),
        ]);
    };
    if options.to == Form::Kubernetes {
        return match options.output {
            Some(_) => Err(vec![
                "-o is for tollgate.yaml: objects are printed".to_owned(),
            ]),
            None => objects(place),
        };
    }
    let said = |faults: Vec<Fault>, warnings: Vec<Fault>| {
        let faults = shown(place, &faults, "");
        faults
            .into_iter()
            .chain(shown(place, &warnings, "warning: "))
            .collect::<Vec<_>>()
    };
    let refused = |Faults {
                       faults, warnings, ..
                   }: Faults| said(faults, warnings);
    let Some(manifests) = Manifests::read(place, &World).map_err(refused)? else {
        let says = match std::fs::metadata(place) {
            Ok(_) => "it holds no objects of Kubernetes".to_owned(),
            Err(_) if place.as_os_str() == "-" => {
                "the standard input is not read: write it into a file".to_owned()
            }
            Err(error) => format!("cannot read the file: {error}"),
        };
        return Err(vec![format!("{}: {says}", place.display())]);
    };
    let inputs = manifests.inputs();
    let lowered =
        control::lower(&inputs).map_err(|Refused { faults, warnings }| said(faults, warnings))?;
    // What they come to is read as a gate would read it.
    let loaded = manifests::load(place, None, &World).map_err(refused)?;
    for line in shown(place, &loaded.warnings, "warning: ") {
        complain(&line);
    }
    let Some(directory) = &options.output else {
        return Ok(format!("{}{}", remarks(&lowered), lowered.document)
            .trim_end()
            .to_owned());
    };
    let told = written(directory, &lowered).map_err(|says| vec![says])?;
    // Relative paths that objects or a file of ours beside them say start elsewhere now.
    let document = directory.join("tollgate.yaml");
    match manifests::load(&document, None, &World) {
        Ok(_) => Ok(told),
        Err(Faults { faults, .. }) => {
            let says = format!("{told}; it cannot be run as it is:");
            let faults = shown(&document, &faults, "");
            Err(std::iter::once(says).chain(faults).collect())
        }
    }
}

fn shown(place: &Path, faults: &[Fault], before: &str) -> Vec<String> {
    let line = |fault: &Fault| format!("{before}{}", Located { file: place, fault });
    faults.iter().map(line).collect()
}

/// Which files the document names.
fn remarks(lowered: &Lowered) -> String {
    let mut text = String::new();
    if !lowered.given.is_empty() {
        text.push_str(
            "# Files that stand beside this one (`tollgate convert -o DIR` writes them):\n",
        );
    }
    for (given, of) in lowered.given.iter().zip(&lowered.given_of) {
        let _ = writeln!(text, "#   {}: {of}", given.path.display());
    }
    text
}

/// Writes the document and its files; says where.
fn written(directory: &Path, lowered: &Lowered) -> Result<String, String> {
    let cannot = |path: &Path, error: io::Error| {
        let says = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                "it is there, and nothing is replaced: name another directory with -o, or take it away"
                    .to_owned()
            }
            _ => error.to_string(),
        };
        format!("{}: {says}", path.display())
    };
    let document = directory.join("tollgate.yaml");
    make(directory).map_err(|error| cannot(directory, error))?;
    write(&document, lowered.document.as_bytes()).map_err(|error| cannot(&document, error))?;
    for given in &lowered.given {
        let path = directory.join(&given.path);
        let parent = path.parent().unwrap_or(directory);
        make(parent).map_err(|error| cannot(parent, error))?;
        write(&path, given.content.expose()).map_err(|error| cannot(&path, error))?;
    }
    let files = crate::words::counted(lowered.given.len(), "file");
    Ok(format!("{}, and {files} that it names", document.display()))
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}
