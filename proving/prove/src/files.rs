//! The files that the simulation is fed from: presets and recordings, and what is written of it.
//!
//! Invariant: an error names its file.
//! Not here: what the texts mean (`simulator`).

use std::fs;
use std::io;
use std::path::Path;

use simulator::preset::{Preset, PresetError};
use simulator::trace::{Trace, TraceError};

pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map_err(|error| of(path, &error))
}

pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| of(path, &error))
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
