//! Datasets to conversations: a reader for each format.
//!
//! A reader divides its files into units, which threads read apart from one another, and hands on each record with its
//! position. A first pass (`list`) names the records; a second reads those that are wanted.
//! Invariant: memory is bounded by the largest record ([`MAX_RECORD_BYTES`]) and not by the file; a record that cannot
//! be read is handed on as a fault, and the next one is read. The same files give the same records in the same order.
//! Not here: what engines take (`repair`).

mod agentx;
mod atif;
mod chat;
mod coderforge;
mod columns;
mod files;
mod format;
mod messages;
mod omniact;
mod openhands;
mod records;
mod rows;
mod swe_agent;
mod synthetic;
mod tally;
mod terminal_bench;
mod toolbench;
mod toolllama;
mod trace;
mod unrolled;
mod whole;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conversation::Conversation;

pub use format::{Format, Settings};
pub use omniact::{Place, Screen};
pub use synthetic::{Geometry, Spread, Synthetic};
pub use tally::{Names, Tally};
pub use trace::Blocks;

/// The bytes of one record, decompressed.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// One format.
pub trait Reader: Send + Sync {
    /// The format's name on a command line.
    fn name(&self) -> &'static str;

    /// Divides files, and what lies in directories in the order of their names, into units.
    ///
    /// # Errors
    ///
    /// A path that is not there or cannot be read, or that holds no file of this format.
    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError>;

    /// Reads the wanted records of a unit. What was given before an error stands.
    ///
    /// # Errors
    ///
    /// A unit that cannot be read on; what is wrong with one record alone goes into the sink.
    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError>;

    /// Names the records of a unit without their messages, where the format makes that cheaper than reading them.
    /// Records that only whole reading finds to be unusable are named too.
    ///
    /// # Errors
    ///
    /// As [`Reader::read`].
    fn list(
        &self,
        unit: &Unit,
        each: &mut dyn FnMut(Position, &str) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let mut name = |position, session: Result<Conversation, Fault>| match session {
            Ok(session) => each(position, &session.id),
            Err(_) => ControlFlow::Continue(()),
        };
        self.read(unit, &mut Sink::new(&mut name))
    }

    /// Hands on the files that the records of a unit name and reading it opens, there or not, until `each` breaks.
    /// Most formats name none. What cannot be read names none either: reading says so.
    fn named(&self, _unit: &Unit, _each: &mut dyn FnMut(&Path) -> ControlFlow<()>) {}
}

/// What one thread reads at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The file.
    pub file: Arc<Path>,
    /// Which part of it.
    pub part: Part,
    /// About how many bytes this is, for the division of work and for progress.
    pub bytes: u64,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All of it.
    Whole,
    /// The lines that begin in this range of bytes.
    Bytes {
        /// The first byte.
        from: u64,
        /// The byte after the last.
        to: u64,
    },
    /// One row group of a Parquet file.
    RowGroup(usize),
    /// Sessions of a generator.
    Sessions {
        /// The first.
        from: u64,
        /// The one after the last.
        to: u64,
    },
}

/// Where a record is: the same in every reading of the same files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The file.
    pub file: Arc<Path>,
    /// Where in the file.
    pub at: At,
    /// Of the sessions in one record, which: most formats have one, 0.
    pub part: u32,
}

/// Where in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// The file is one record.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// The byte at which it begins, from 0.
    Byte(u64),
    /// A row, from 0.
    Row(u64),
    /// A member of the file's object.
    Member(String),
    /// A session that a generator made, from 0.
    Session(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        match &self.at {
            At::Whole => {}
            At::Line(line) => write!(f, ", line {line}")?,
            At::Byte(byte) => write!(f, ", byte {byte}")?,
            At::Row(row) => write!(f, ", row {row}")?,
            At::Member(name) => write!(f, ", member {name:?}")?,
            At::Session(number) => write!(f, ", session {number}")?,
        }
        if self.part > 0 {
            write!(f, ", part {}", self.part)?;
        }
        Ok(())
    }
}

/// Why a record gives no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{says}")]
pub struct Fault {
    /// Whether the record is at fault, or has nothing to replay.
    pub kind: FaultKind,
    /// A stable name for counting.
    pub reason: &'static str,
    /// What is wrong with this one.
    pub says: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The record is as its format has it, and holds nothing to replay.
    Skipped,
    /// The record is broken.
    Broken,
}

impl Fault {
    /// A record that holds nothing to replay.
    pub fn skipped(reason: &'static str, says: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Skipped,
            reason,
            says: says.into(),
        }
    }

    /// A record that is broken.
    pub fn broken(reason: &'static str, says: impl Into<String>) -> Self {
        Self {
            kind: FaultKind::Broken,
            reason,
            says: says.into(),
        }
    }
}

/// Why reading cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system, or a damaged compressed file.
    #[error("{}: {source}", path.display())]
    File {
        /// What was read.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The file is not of this format, or uses what is not supported.
    #[error("{}: {says}", path.display())]
    Format {
        /// What was read.
        path: PathBuf,
        /// What is wrong, and what to do.
        says: String,
    },
    /// Nothing to read.
    #[error("no {format} file ({suffixes}) in {}", list(paths))]
    NoFiles {
        /// The reader.
        format: &'static str,
        /// What its files end in.
        suffixes: String,
        /// Where it looked.
        paths: Vec<PathBuf>,
    },
}

impl ReadError {
    /// What is wrong, without the file's name: whoever keeps it names the file by its place in the source.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Self::File { source, .. } => source.to_string(),
            Self::Format { says, .. } => says.clone(),
            Self::NoFiles { .. } => self.to_string(),
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "no path at all".to_owned();
    }
    let all: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    all.join(", ")
}

/// What takes a record, and says whether to go on.
type Each<'a> = &'a mut dyn FnMut(Position, Result<Conversation, Fault>) -> ControlFlow<()>;

/// Where a reader puts what it reads.
pub struct Sink<'a> {
    each: Each<'a>,
    wanted: Option<&'a dyn Fn(&Position) -> bool>,
    tally: Tally,
}

impl<'a> Sink<'a> {
    /// Hands every record to `each`, which ends the reading by breaking.
    pub fn new(each: Each<'a>) -> Self {
        Self {
            each,
            wanted: None,
            tally: Tally::default(),
        }
    }

    /// Of all records only those that `wanted` says; what is not wanted is not counted either.
    #[must_use]
    pub fn only(mut self, wanted: &'a dyn Fn(&Position) -> bool) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// What was read so far, in numbers.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What was read, in numbers.
    #[must_use]
    pub fn into_tally(self) -> Tally {
        self.tally
    }

    /// Whether this record is wanted; a reader need not read one that is not.
    #[must_use]
    pub fn wants(&self, position: &Position) -> bool {
        self.wanted.is_none_or(|wanted| wanted(position))
    }

    /// Counts, where a reader found something that is not the fault of a record.
    pub fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Hands on one record, or why it is none.
    pub fn give(
        &mut self,
        position: Position,
        session: Result<Conversation, Fault>,
    ) -> ControlFlow<()> {
        if !self.wants(&position) {
            return ControlFlow::Continue(());
        }
        match &session {
            Ok(session) => self.tally.read(session),
            Err(fault) => self.tally.fault(&position, fault),
        }
        (self.each)(position, session)
    }
}
