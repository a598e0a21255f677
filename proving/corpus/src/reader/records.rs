//! Where one JSON record ends and the next begins: lines, and the elements of one large array.
//!
//! Invariant: no more than one record is in memory; one that is longer than [`MAX_RECORD_BYTES`] is passed over.
//! Not here: what a record says.

use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{at, format, is_gzip, length, open};
use super::{At, Fault, MAX_RECORD_BYTES, Part, ReadError, Unit};
use crate::regular;

/// A file of lines that is longer is divided.
const UNIT_BYTES: u64 = 64 << 20;

/// What takes a record's bytes.
pub(super) type Take<'a> = &'a mut dyn FnMut(At, Result<&[u8], Fault>) -> ControlFlow<()>;

/// Files of lines as units: a large one that is not compressed as several.
pub(super) fn line_units(files: Vec<PathBuf>) -> Result<Vec<Unit>, ReadError> {
    let mut units = Vec::new();
    for path in files {
        let bytes = length(&path)?;
        let gzip = is_gzip(&path)?;
        let file: Arc<Path> = Arc::from(path);
        if bytes <= UNIT_BYTES || gzip {
            let part = Part::Whole;
            units.push(Unit { file, part, bytes });
            continue;
        }
        let mut from = 0;
        while from < bytes {
            let to = bytes.min(from + UNIT_BYTES);
            units.push(Unit {
                file: Arc::clone(&file),
                part: Part::Bytes { from, to },
                bytes: to - from,
            });
            from = to;
        }
    }
    Ok(units)
}

/// Reads the lines that begin in a unit; empty ones are passed over.
pub(super) fn lines(unit: &Unit, take: Take<'_>) -> Result<(), ReadError> {
    let path = &unit.file;
    match unit.part {
        Part::Bytes { from, to } => {
            let mut file = regular::open(path).map_err(|source| at(path, source))?;
            let before = from.saturating_sub(1);
            file.seek(SeekFrom::Start(before))
                .map_err(|source| at(path, source))?;
            let mut input = BufReader::new(file);
            let mut offset = before;
            if from > 0 {
                // The line that began before belongs to the unit before.
                let passed = line(&mut input, &mut Vec::new()).map_err(|e| at(path, e))?;
                offset += passed.bytes;
            }
            each_line(path, &mut input, offset, Some(to), take)
        }
        _ => each_line(path, &mut *open(path)?, 0, None, take),
    }
}

/// Lines to an end; they are named by their numbers where the start of the file is known, else by their bytes.
fn each_line(
    path: &Path,
    input: &mut dyn BufRead,
    mut offset: u64,
    to: Option<u64>,
    take: Take<'_>,
) -> Result<(), ReadError> {
    let mut bytes = Vec::new();
    let mut number = 0;
    while to.is_none_or(|to| offset < to) {
        bytes.clear();
        let read = line(input, &mut bytes).map_err(|source| at(path, source))?;
        if read.bytes == 0 {
            break;
        }
        number += 1;
        let place = match to {
            Some(_) => At::Byte(offset),
            None => At::Line(number),
        };
        offset += read.bytes;
        let record = if read.whole {
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            Ok(bytes.as_slice())
        } else {
            Err(too_long())
        };
        if take(place, record).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn too_long() -> Fault {
    Fault::broken("too_long", "is longer than 64 MiB")
}

struct Line {
    /// Bytes that were passed, with the end of the line.
    bytes: u64,
    /// Whether all of them were kept.
    whole: bool,
}

/// Reads to the end of a line, and keeps it unless it is too long.
fn line(input: &mut dyn BufRead, kept: &mut Vec<u8>) -> io::Result<Line> {
    let mut read = Line {
        bytes: 0,
        whole: true,
    };
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() {
            return Ok(read);
        }
        let end = memchr::memchr(b'\n', chunk);
        let length = end.map_or(chunk.len(), |end| end + 1);
        if kept.len() + length > MAX_RECORD_BYTES {
            read.whole = false;
            kept.clear();
        }
        if read.whole {
            kept.extend_from_slice(&chunk[..length]);
        }
        input.consume(length);
        read.bytes += length as u64;
        if end.is_some() {
            return Ok(read);
        }
    }
}

/// Reads the elements of the array that a file is, each named by the byte at which it begins.
pub(super) fn items(path: &Path, take: Take<'_>) -> Result<(), ReadError> {
    let mut input = open(path)?;
    let mut array = Array::default();
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(at(path, source)),
        };
        if chunk.is_empty() {
            break;
        }
        let length = chunk.len();
        for byte in chunk {
            match array.step(*byte) {
                Step::Within => {}
                Step::NoArray => {
                    let says =
                        "is no JSON array; for one record a line, name the file .jsonl or .ndjson";
                    return Err(format(path, says));
                }
                Step::Item => {
                    if array.hand_on(&mut *take).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        input.consume(length);
    }
    if !array.ended {
        let fault = Fault::broken("cut_short", "the file ends before its array does");
        let _ = take(At::Byte(array.from), Err(fault));
    }
    Ok(())
}

enum Step {
    Within,
    Item,
    NoArray,
}

/// Follows brackets and strings, and nothing else: what is wrong inside an element is found when that is read.
#[derive(Default)]
struct Array {
    at: u64,
    from: u64,
    depth: usize,
    in_string: bool,
    escaped: bool,
    too_long: bool,
    ended: bool,
    item: Vec<u8>,
}

impl Array {
    fn step(&mut self, byte: u8) -> Step {
        self.at += 1;
        if self.ended {
            return Step::Within;
        }
        if self.in_string {
            self.keep(byte);
            self.in_string = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return Step::Within;
        }
        if self.depth == 0 {
            // A mark at the start of the file is no character.
            let passed = byte.is_ascii_whitespace() || matches!(byte, 0xef | 0xbb | 0xbf);
            return match byte {
                b'[' => {
                    self.depth = 1;
                    Step::Within
                }
                _ if passed => Step::Within,
                _ => Step::NoArray,
            };
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => self.depth += 1,
            b',' if self.depth == 1 => return Step::Item,
            b']' | b'}' if self.depth == 1 => {
                self.ended = true;
                return Step::Item;
            }
            b']' | b'}' => self.depth -= 1,
            _ => {}
        }
        self.keep(byte);
        Step::Within
    }

    fn keep(&mut self, byte: u8) {
        if self.item.is_empty() {
            if byte.is_ascii_whitespace() {
                return;
            }
            if !self.too_long {
                self.from = self.at - 1;
            }
        }
        if self.item.len() == MAX_RECORD_BYTES {
            self.too_long = true;
            self.item.clear();
        }
        if !self.too_long {
            self.item.push(byte);
        }
    }

    fn hand_on(&mut self, take: Take<'_>) -> ControlFlow<()> {
        let place = At::Byte(self.from);
        let going = if self.too_long {
            take(place, Err(too_long()))
        } else if self.item.is_empty() {
            ControlFlow::Continue(())
        } else {
            take(place, Ok(&self.item))
        };
        self.item.clear();
        self.too_long = false;
        going
    }
}

#[cfg(test)]
mod tests;
