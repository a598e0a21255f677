//! Faults that the process finds, with the file and line of the place that they speak of, as those of a document have them.
//!
//! Not here: finding them (`needs`, `running`), where a place stands (`config`).

use std::path::Path;

use config::{Fault, Sources, line_of};

use crate::source::Source;

/// `tollgate.yaml:5: identity[0].keys.file: keys …`, of a fault that begins with a place of the document; what begins with none is
/// given back.
pub(crate) fn located(
    source: &Source,
    fault: String,
    sources: &dyn Sources,
) -> Result<String, String> {
    let place = fault.split_once(": ").map(|(place, _)| place);
    match place.and_then(|place| line_of(source.file()?, place, sources)) {
        Some(line) => Ok(format!("{}:{line}: {fault}", source.name().display())),
        None => Err(fault),
    }
}

/// Gives each that has none the line of its place.
pub(crate) fn with_lines(file: Option<&Path>, faults: &mut [Fault], sources: &dyn Sources) {
    for fault in faults.iter_mut().filter(|fault| fault.line.is_none()) {
        fault.line = file.and_then(|file| line_of(file, &fault.path, sources));
    }
}
