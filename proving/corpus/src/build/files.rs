//! The files of a profile: their names, lengths and digests.
//!
//! Invariant: a name says nothing of the machine: it begins below the path that was given.
//! Not here: what is in them (`reader`).

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::manifest::Source;
use crate::reader::{At, Position, ReadError, Unit};
use crate::regular;

/// The files of the units, each once, in their order. A generator has none.
pub(super) fn sources(paths: &[PathBuf], units: &[Unit]) -> Result<Vec<Source>, ReadError> {
    let mut sources: Vec<Source> = Vec::new();
    let mut last: Option<&Path> = None;
    for unit in units {
        if last == Some(&*unit.file) || !unit.file.is_file() {
            continue;
        }
        last = Some(&unit.file);
        let (bytes, sha256) = digest(&unit.file).map_err(|source| ReadError::File {
            path: unit.file.to_path_buf(),
            source,
        })?;
        sources.push(Source {
            file: shown(paths, &unit.file),
            bytes,
            sha256,
        });
    }
    Ok(sources)
}

/// A file by the name that it has below the path that was given.
pub(super) fn shown(paths: &[PathBuf], file: &Path) -> String {
    let below = paths
        .iter()
        .filter_map(|path| file.strip_prefix(path).ok())
        .find(|below| !below.as_os_str().is_empty());
    let name = file.file_name().map(Path::new);
    let name = below.or(name).unwrap_or(file);
    name.to_string_lossy().into_owned()
}

/// A position whose file has its shown name.
pub(super) fn place(paths: &[PathBuf], position: &Position) -> String {
    let file: &Path = &position.file;
    let short = Position {
        file: Path::new(&shown(paths, file)).into(),
        at: position.at.clone(),
        part: position.part,
    };
    short.to_string()
}

/// The position of a unit that cannot be read on.
pub(super) fn of_unit(unit: &Unit) -> Position {
    Position {
        file: unit.file.clone(),
        at: At::Whole,
        part: 0,
    }
}

fn digest(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = regular::open(path)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(&buffer[..n]);
        bytes += n as u64;
    }
    Ok((bytes, hex(&hash.finalize())))
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
