//! The files that the simulation is fed from: presets and recordings, and what is written of it.
//!
//! Invariant: an error names its file.
//! Not here: what the texts mean (`simulator`).

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use simulator::preset::{Preset, PresetError};
use simulator::trace::{Trace, TraceError};

/// Files of presets, recordings and workloads are not larger, bytes.
const LARGEST: u64 = 2 << 30;

pub(crate) fn read(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path).map_err(|error| of(path, &error))?;
    // A pipe or a device may never end.
    if !about.is_file() || about.len() > LARGEST {
        let says = format!("{}: not a file of at most {LARGEST} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, says));
    }
    fs::read_to_string(path).map_err(|error| of(path, &error))
}

/// Fails where nothing can be written to this path, or where it is one of the recording's own files.
pub(crate) fn check_out(path: &Path, recording: &Path) -> io::Result<()> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let inputs = ["meta.json", "requests.jsonl", "timeseries.csv"];
    let is_input =
        |name: &str| real(path).is_some_and(|out| real(&recording.join(name)) == Some(out));
    if inputs.into_iter().any(is_input) {
        let says = format!("{}: is a file of the recording itself", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, says));
    }
    check_writable(path)
}

/// Fails where nothing can be written to this path.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    let is_new = !path.exists();
    let open = fs::OpenOptions::new().append(true).create(true).open(path);
    open.map(drop).map_err(|error| of(path, &error))?;
    if is_new {
        fs::remove_file(path).map_err(|error| of(path, &error))?;
    }
    Ok(())
}

/// Writes a file that its owner alone can read, as gateways ask of those with secrets.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    // One that was there has its own.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| of(path, &error))
}

/// Writes a file whole or not at all: what was there stays until the new one is.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    // A name that nobody can have put a link at; what could be written of it goes with it.
    let new = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(dir.unwrap_or(Path::new(".")));
    let written = new.and_then(|mut new| {
        new.write_all(text.as_bytes())?;
        new.persist(path).map_err(|error| error.error)
    });
    written.map(drop).map_err(|error| of(path, &error))
}

fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The preset of that name, or the one in that file.
pub(crate) fn preset(name_or_path: &str) -> io::Result<Preset> {
    let parsed = match Preset::named(name_or_path) {
        Err(unknown @ PresetError::Unknown { .. }) => match read(Path::new(name_or_path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown),
            text => Preset::parse(&text?, name_or_path),
        },
        named => named,
    };
    parsed.map_err(io::Error::other)
}

/// The recording in a folder; it may lack its `timeseries.csv`.
pub(crate) fn trace(dir: &Path) -> io::Result<Trace> {
    let file = |name: &str| read(&dir.join(name));
    let timeseries = match file("timeseries.csv") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        text => Some(text?),
    };
    Trace::parse(
        &file("meta.json")?,
        &file("requests.jsonl")?,
        timeseries.as_deref(),
    )
    .map_err(|TraceError { file, line, says }| {
        io::Error::other(format!("{}:{line}: {says}", dir.join(file).display()))
    })
}
