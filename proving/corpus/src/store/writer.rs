//! Writing a corpus, session by session.
//!
//! It grows in `DIR.building` as three streams (bytes, session records, request records); at the end the streams of
//! records become the index, and the directory gets its name.
//! Invariant: memory does not grow with the corpus but for [`MOST_HEADS`] digests; `DIR` appears whole or not at all;
//! the same sessions give the same bytes, however often the writing was interrupted.
//! Not here: which sessions, and how far an interrupted build had come (`build`).

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout::{Header, Part, SESSION_BYTES, SessionRecord, TURN_BYTES, TurnRecord};
use super::{BODIES, INDEX, MANIFEST, StoreError};

/// Heads that are remembered, so that sessions with the same tools share one.
const MOST_HEADS: usize = 65_536;
const SESSIONS: &str = "sessions.part";
const TURNS: &str = "turns.part";
/// Says that all that is left to do is to tidy up.
const FINISHED: &str = "finished";

/// A session as it is handed to the writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredSession {
    /// The place of its profile in the manifest; never smaller than the one before's.
    pub profile: u32,
    /// Its name within its source.
    pub id: String,
    /// What all its requests begin with.
    pub head: Vec<u8>,
    /// The bodies of its requests.
    pub bodies: Vec<u8>,
    /// Its requests in order.
    pub turns: Vec<StoredTurn>,
}

/// A request as it is handed to the writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredTurn {
    /// Its part of [`StoredSession::bodies`].
    pub body: Range<usize>,
    /// What it ends with.
    pub tail: Vec<u8>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Those that the prompt before did not begin with.
    pub new_tokens: u32,
    /// Tokens of the recorded answer; 0 where there is none.
    pub answer_tokens: u32,
    /// Between the answer before and this request, where it was recorded.
    pub think: Option<Duration>,
    /// Whether its messages begin with those of the request before.
    pub goes_on: bool,
}

/// How far the three streams are written, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// Of `bodies`.
    pub bodies: u64,
    /// Of the records of sessions.
    pub sessions: u64,
    /// Of the records of requests.
    pub turns: u64,
}

/// A corpus that is being written.
#[derive(Debug)]
pub struct StoreWriter {
    work: PathBuf,
    bodies: BufWriter<File>,
    sessions: BufWriter<File>,
    turns: BufWriter<File>,
    lengths: Lengths,
    heads: HashMap<[u8; 16], Part>,
}

impl StoreWriter {
    /// Where a corpus that is to be `dir` is built.
    #[must_use]
    pub fn work_dir(dir: &Path) -> PathBuf {
        let mut name = dir.file_name().unwrap_or_default().to_owned();
        name.push(".building");
        dir.with_file_name(name)
    }

    /// Goes on in the working directory at these lengths; at zero it begins. What is beyond them is forgotten.
    ///
    /// # Errors
    /// When the files cannot be written, or are shorter than that.
    pub fn resume(work: &Path, lengths: Lengths) -> Result<Self, StoreError> {
        let open = |name: &str, length: u64| {
            let path = work.join(name);
            let file = resumed(&path, length).map_err(StoreError::io(&path))?;
            Ok::<_, StoreError>(BufWriter::with_capacity(1 << 20, file))
        };
        let mut writer = Self {
            work: work.to_owned(),
            bodies: open(BODIES, lengths.bodies)?,
            sessions: open(SESSIONS, lengths.sessions)?,
            turns: open(TURNS, lengths.turns)?,
            lengths,
            heads: HashMap::new(),
        };
        writer.find_heads()?;
        Ok(writer)
    }

    /// How far it is.
    #[must_use]
    pub fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// Writes a session. Returns the bytes of all its requests, each counted whole.
    ///
    /// # Errors
    /// When the disk refuses, or a length is beyond 32 bits.
    pub fn append(&mut self, session: &StoredSession) -> Result<u64, StoreError> {
        let too_long =
            || StoreError::io(self.work.join(BODIES))(io::Error::other("a part is beyond 4 GiB"));
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| too_long());
        let start = self.lengths.bodies;
        let mut region = Region::new(start);
        region.add(session.id.as_bytes());
        let (digest, head_len) = (digest(&session.head), length(&session.head)?);
        let known = self.heads.get(&digest).copied();
        let head = known.unwrap_or_else(|| Part {
            start: region.add(&session.head),
            len: head_len,
        });
        length(&session.bodies)?;
        let bodies = region.add(&session.bodies);
        let mut tails = HashMap::<&[u8], Part>::new();
        let mut records = Vec::with_capacity(session.turns.len() * TURN_BYTES);
        let mut unrolled = 0_u64;
        for turn in &session.turns {
            let len = length(&turn.tail)?;
            let tail = *tails.entry(&turn.tail).or_insert_with(|| Part {
                start: region.add(&turn.tail),
                len,
            });
            let body = Part {
                start: bodies + turn.body.start as u64,
                len: turn.body.len() as u32,
            };
            let record = TurnRecord {
                parts: [head, body, tail],
                prompt_tokens: turn.prompt_tokens,
                new_tokens: turn.new_tokens,
                answer_tokens: turn.answer_tokens,
                think_ns: turn
                    .think
                    .map(|think| u64::try_from(think.as_nanos()).unwrap_or(u64::MAX - 1)),
                goes_on: turn.goes_on,
            };
            unrolled += record.parts.iter().map(|p| u64::from(p.len)).sum::<u64>();
            records.extend(record.to_bytes());
        }
        let record = SessionRecord {
            profile: session.profile,
            turns: session.turns.len() as u32,
            first_turn: self.lengths.turns / TURN_BYTES as u64,
            start,
            len: region.bytes.len() as u64,
            crc: crc32fast::hash(&region.bytes),
            id_len: session.id.len() as u32,
            unrolled,
        };
        let put = |out: &mut BufWriter<File>, name: &str, bytes: &[u8]| {
            out.write_all(bytes)
                .map_err(StoreError::io(self.work.join(name)))
        };
        put(&mut self.bodies, BODIES, &region.bytes)?;
        put(&mut self.turns, TURNS, &records)?;
        put(&mut self.sessions, SESSIONS, &record.to_bytes())?;
        self.lengths.bodies += region.bytes.len() as u64;
        self.lengths.turns += records.len() as u64;
        self.lengths.sessions += SESSION_BYTES as u64;
        if known.is_none() && self.heads.len() < MOST_HEADS {
            self.heads.insert(digest, head);
        }
        Ok(unrolled)
    }

    /// Puts all that was written on the disk itself.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let streams = [
            (&mut self.bodies, BODIES),
            (&mut self.sessions, SESSIONS),
            (&mut self.turns, TURNS),
        ];
        for (out, name) in streams {
            let done = out.flush().and_then(|()| out.get_ref().sync_data());
            done.map_err(StoreError::io(self.work.join(name)))?;
        }
        Ok(())
    }

    /// Writes the index and the manifest, and gives the directory its name. `leftovers` are files of the build, and
    /// `mark` is what [`finished`](Self::finished) says should that be interrupted.
    ///
    /// # Errors
    /// When the disk refuses, or there is something at `dir`.
    pub fn finish(
        mut self,
        dir: &Path,
        manifest: &[u8],
        profiles: u32,
        leftovers: &[&str],
        mark: &str,
    ) -> Result<(), StoreError> {
        self.sync()?;
        let path = self.work.join(MANIFEST);
        write_synced(&path, manifest).map_err(StoreError::io(&path))?;
        let header = Header {
            profiles,
            sessions: self.lengths.sessions / SESSION_BYTES as u64,
            turns: self.lengths.turns / TURN_BYTES as u64,
            bodies_bytes: self.lengths.bodies,
            manifest_bytes: manifest.len() as u64,
            manifest_crc: crc32fast::hash(manifest),
            records_crc: 0,
        };
        let path = self.work.join(INDEX);
        self.write_index(&path, header)
            .map_err(StoreError::io(&path))?;
        let path = self.work.join(FINISHED);
        write_synced(&path, mark.as_bytes()).map_err(StoreError::io(&path))?;
        Self::settle(dir, leftovers)
    }

    /// The mark of a build that is finished but for its name, if there is one.
    #[must_use]
    pub fn finished(dir: &Path) -> Option<String> {
        fs::read_to_string(Self::work_dir(dir).join(FINISHED)).ok()
    }

    /// Gives a finished build its name.
    ///
    /// # Errors
    /// When the disk refuses, or there is something at `dir`.
    pub fn settle(dir: &Path, leftovers: &[&str]) -> Result<(), StoreError> {
        let work = Self::work_dir(dir);
        for name in leftovers.iter().chain(&[SESSIONS, TURNS, FINISHED]) {
            match fs::remove_file(work.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io(work.join(name))(error));
                }
                _ => {}
            }
        }
        // Replaces an empty directory too; one with anything in it is left alone, with an error.
        fs::rename(&work, dir).map_err(StoreError::io(dir))?;
        let parent = dir.parent().filter(|p| !p.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        File::open(parent)
            .and_then(|parent| parent.sync_all())
            .map_err(StoreError::io(parent))
    }

    fn write_index(&self, path: &Path, mut header: Header) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        out.write_all(&header.to_bytes())?;
        let mut crc = crc32fast::Hasher::new();
        let mut buffer = vec![0; 1 << 20];
        for name in [SESSIONS, TURNS] {
            let mut input = File::open(self.work.join(name))?;
            loop {
                let n = input.read(&mut buffer)?;
                if n == 0 {
                    break;
                }
                crc.update(&buffer[..n]);
                out.write_all(&buffer[..n])?;
            }
        }
        header.records_crc = crc.finalize();
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&header.to_bytes())?;
        out.flush()?;
        out.get_ref().sync_all()
    }

    /// Reads back the heads that sessions may share, in the order in which they came.
    fn find_heads(&mut self) -> Result<(), StoreError> {
        let path = self.work.join(BODIES);
        let mut bodies = File::open(&path).map_err(StoreError::io(&path))?;
        let mut turns = self.records(TURNS)?;
        let mut sessions = self.records(SESSIONS)?;
        let mut record = [0; SESSION_BYTES];
        for _ in 0..self.lengths.sessions / SESSION_BYTES as u64 {
            let read = |error| StoreError::io(&path)(error);
            sessions.read_exact(&mut record).map_err(read)?;
            let session = SessionRecord::read(&record);
            for turn in 0..session.turns {
                let mut record = [0; TURN_BYTES];
                turns.read_exact(&mut record).map_err(read)?;
                let head = TurnRecord::read(&record).map(|record| record.parts[0]);
                let own = head.filter(|head| turn == 0 && head.start >= session.start);
                let Some(head) = own.filter(|_| self.heads.len() < MOST_HEADS) else {
                    continue;
                };
                let mut bytes = vec![0; head.len as usize];
                let found = bodies.seek(SeekFrom::Start(head.start));
                found
                    .and_then(|_| bodies.read_exact(&mut bytes))
                    .map_err(read)?;
                self.heads.insert(digest(&bytes), head);
            }
        }
        Ok(())
    }

    fn records(&self, name: &str) -> Result<BufReader<File>, StoreError> {
        let path = self.work.join(name);
        let file = File::open(&path).map_err(StoreError::io(&path))?;
        Ok(BufReader::with_capacity(1 << 20, file))
    }
}

/// The bytes of one session.
struct Region {
    start: u64,
    bytes: Vec<u8>,
}

impl Region {
    fn new(start: u64) -> Self {
        Self {
            start,
            bytes: Vec::new(),
        }
    }

    /// Where it is then.
    fn add(&mut self, bytes: &[u8]) -> u64 {
        let at = self.start + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }
}

fn digest(bytes: &[u8]) -> [u8; 16] {
    let whole = Sha256::digest(bytes);
    std::array::from_fn(|i| whole[i])
}

/// A file that is to go on at `length`.
pub(crate) fn resumed(path: &Path, length: u64) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let there = file.metadata()?.len();
    if there < length {
        let says = format!("it has {there} bytes, and {length} were written; remove the directory");
        return Err(io::Error::other(says));
    }
    file.set_len(length)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
