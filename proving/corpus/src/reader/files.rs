//! Paths to files, and files to bytes.
//!
//! Directories are walked in the order of names; links to directories are not followed, so no walk runs in circles.
//! Invariant: a walk ends at [`MAX_DEPTH`] levels and [`MAX_FILES`] files with an error. Only regular files are opened.
//! What a record names is read only if it lies below the root, wherever links lead.
//! Not here: where a record ends (`records`), Parquet (`columns`).

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::{Part, ReadError, Unit};
use crate::regular;

/// Directories inside one another.
const MAX_DEPTH: usize = 32;
/// Files of one corpus.
const MAX_FILES: usize = 1_000_000;
/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// The files at these paths: a file as it is, of a directory those with one of the suffixes (or that and `.gz`).
pub(super) fn walk(
    format: &'static str,
    paths: &[PathBuf],
    suffixes: &[&str],
) -> Result<Vec<PathBuf>, ReadError> {
    let mut files = Vec::new();
    for path in paths {
        let about = fs::metadata(path).map_err(|source| at(path, source))?;
        if about.is_dir() {
            visit(path, 0, suffixes, &mut files)?;
        } else {
            files.push(path.clone());
        }
    }
    if files.is_empty() {
        return Err(ReadError::NoFiles {
            format,
            suffixes: suffixes.join(", "),
            paths: paths.to_vec(),
        });
    }
    Ok(files)
}

fn visit(
    dir: &Path,
    depth: usize,
    suffixes: &[&str],
    files: &mut Vec<PathBuf>,
) -> Result<(), ReadError> {
    if depth == MAX_DEPTH {
        return Err(format(dir, "lies more than 32 directories deep"));
    }
    let entries: io::Result<Vec<_>> = fs::read_dir(dir).and_then(Iterator::collect);
    let mut entries = entries.map_err(|source| at(dir, source))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(|source| at(&path, source))?;
        if kind.is_dir() {
            visit(&path, depth + 1, suffixes, files)?;
        } else if accepts(&path, suffixes)
            && (kind.is_file() || kind.is_symlink() && path.is_file())
        {
            if files.len() == MAX_FILES {
                return Err(format(dir, "holds more than 1,000,000 files"));
            }
            files.push(path);
        }
    }
    Ok(())
}

fn accepts(path: &Path, suffixes: &[&str]) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default().to_lowercase();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    suffixes.iter().any(|suffix| plain.ends_with(suffix))
}

/// Each file as one unit.
pub(super) fn whole_units(files: Vec<PathBuf>) -> Result<Vec<Unit>, ReadError> {
    let unit = |file: PathBuf| {
        let bytes = length(&file)?;
        Ok(Unit {
            file: Arc::from(file),
            part: Part::Whole,
            bytes,
        })
    };
    files.into_iter().map(unit).collect()
}

/// The bytes of a file on disk.
pub(super) fn length(path: &Path) -> Result<u64, ReadError> {
    let about = fs::metadata(path).map_err(|source| at(path, source))?;
    Ok(about.len())
}

/// What a file begins with.
pub(super) fn begins(path: &Path, bytes: &[u8]) -> Result<bool, ReadError> {
    let file = regular::open(path).map_err(|source| at(path, source))?;
    let mut start = Vec::new();
    file.take(bytes.len() as u64)
        .read_to_end(&mut start)
        .map_err(|source| at(path, source))?;
    Ok(start == bytes)
}

/// Whether a file is compressed with gzip, whatever its name.
pub(super) fn is_gzip(path: &Path) -> Result<bool, ReadError> {
    begins(path, b"\x1f\x8b")
}

/// Opens a file, and decompresses it where it is compressed.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, ReadError> {
    let gzip = is_gzip(path)?;
    let file = regular::open(path).map_err(|source| at(path, source))?;
    let plain = BufReader::with_capacity(BUFFER_BYTES, file);
    Ok(if gzip {
        Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            MultiGzDecoder::new(plain),
        ))
    } else {
        Box::new(plain)
    })
}

/// A whole file; `None` where it is larger than `most` bytes.
pub(super) fn whole(path: &Path, most: usize) -> Result<Option<Vec<u8>>, ReadError> {
    let mut bytes = Vec::new();
    open(path)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| at(path, source))?;
    Ok((bytes.len() <= most).then_some(bytes))
}

/// Where a path that a record names lies, with all links followed; `None` where that is not below `root`.
///
/// # Errors
/// When there is nothing at the path, or it cannot be looked at.
pub(super) fn below(root: &Path, named: &str) -> io::Result<Option<PathBuf>> {
    let named = Path::new(named);
    let stays = named
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !stays {
        return Ok(None);
    }
    // A root without a name is the current directory.
    let root = fs::canonicalize(Path::new(".").join(root))?;
    let path = fs::canonicalize(root.join(named))?;
    Ok(path.starts_with(&root).then_some(path))
}

/// The last directory and the file's name without its suffixes, which names a session in any checkout of the data.
pub(super) fn short_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    match path.parent().and_then(Path::file_name) {
        Some(dir) => format!("{}/{stem}", dir.to_string_lossy()),
        None => stem.to_owned(),
    }
}

/// An error of the file system at a path.
pub(super) fn at(path: &Path, source: io::Error) -> ReadError {
    ReadError::File {
        path: path.to_owned(),
        source,
    }
}

/// A file that is not of the format.
pub(super) fn format(path: &Path, says: impl Into<String>) -> ReadError {
    ReadError::Format {
        path: path.to_owned(),
        says: says.into(),
    }
}

#[cfg(test)]
mod tests;
