//! A recorded run of a real vLLM: a folder with `requests.jsonl`, `meta.json` and, if at hand, `timeseries.csv`.
//!
//! Arrival is on the wall clock and the rest on the engine's monotonic clock. The smallest gap between arrival and
//! queueing is taken as the offset between the two, so that times count from the first arrival on one clock; what
//! the server takes at least before queueing is part of that offset and cannot be told apart.
//! Invariant: requests are in order of arrival; each has its tokens and its times in order.
//! Not here: simulating the run (`replay`).

mod meta;
mod request;
mod timeseries;

pub use meta::Meta;
pub use request::{Recorded, Times};
pub use timeseries::Sample;

use std::io;
use std::path::{Path, PathBuf};

/// A run as it was recorded.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What the engine was set to.
    pub meta: Meta,
    /// In order of arrival.
    pub requests: Vec<Recorded>,
    /// One sample each second; empty without the file.
    pub timeseries: Vec<Sample>,
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file cannot be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file does not say what it has to.
    #[error("{}:{line}: {says}", .path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        /// What is wrong.
        says: String,
    },
}

impl Trace {
    /// Reads the folder.
    ///
    /// # Errors
    /// Says which file and line is not as it has to be.
    pub fn read(dir: &Path) -> Result<Self, TraceError> {
        let path = dir.join("meta.json");
        let meta = Meta::parse(&read(&path)?).map_err(|error| content(&path, error.0, error.1))?;
        let path = dir.join("requests.jsonl");
        let requests =
            request::parse(&read(&path)?).map_err(|error| content(&path, error.0, error.1))?;
        let path = dir.join("timeseries.csv");
        let timeseries = match std::fs::read_to_string(&path) {
            Ok(text) => {
                timeseries::parse(&text).map_err(|error| content(&path, error.0, error.1))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(TraceError::File { path, source }),
        };
        Ok(Self {
            meta,
            requests,
            timeseries,
        })
    }
}

fn read(path: &Path) -> Result<String, TraceError> {
    std::fs::read_to_string(path).map_err(|source| TraceError::File {
        path: path.to_owned(),
        source,
    })
}

fn content(path: &Path, line: usize, says: String) -> TraceError {
    TraceError::Content {
        path: path.to_owned(),
        line,
        says,
    }
}

/// Line (from 1) and what is wrong there.
type At = (usize, String);

#[cfg(test)]
mod tests;
