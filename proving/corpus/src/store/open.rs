//! Reading a corpus: sessions by profile, requests as slices of the map.
//!
//! Invariant: a corpus that opened has an index that agrees with itself, with `corpus.json` and with the length of
//! `bodies`: every part of every request lies within `bodies`. Whether the bytes there are the right ones is known
//! only after [`Corpus::verify`].
//! Not here: checking all bytes (`verify`), writing (`writer`).

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;

use super::layout::{
    HEADER_BYTES, Header, HeaderFault, SESSION_BYTES, SessionRecord, TURN_BYTES, TurnRecord,
    VERSION,
};
use super::{BODIES, INDEX, MANIFEST, MOST_MANIFEST_BYTES, StoreError, map};
use crate::manifest::Manifest;
use crate::regular;

/// A corpus that is open for reading. Cheap to share between threads by reference.
#[derive(Debug)]
pub struct Corpus {
    dir: PathBuf,
    manifest: Manifest,
    pub(super) header: Header,
    pub(super) index: Bytes,
    pub(super) bodies: Bytes,
    /// For each profile its sessions, as half-open range; a profile's sessions are stored together.
    ranges: Vec<(u64, u64)>,
}

impl Corpus {
    /// Opens the corpus in a directory.
    ///
    /// # Errors
    /// When a file cannot be read, is of another version, or does not agree with the others.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let index = map::map(&dir.join(INDEX)).map_err(|error| match error {
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                let says = "is no corpus: it has no index; `prove corpus build` makes one";
                StoreError::io(dir)(io::Error::new(io::ErrorKind::NotFound, says))
            }
            error => error,
        })?;
        let header = header(&dir.join(INDEX), &index)?;
        let manifest = manifest(&dir.join(MANIFEST), &header)?;
        let bodies = map::map(&dir.join(BODIES))?;
        let mut corpus = Self {
            dir: dir.to_owned(),
            manifest,
            header,
            index,
            bodies,
            ranges: Vec::new(),
        };
        corpus.check_sizes()?;
        corpus.check_records()?;
        Ok(corpus)
    }

    /// What the corpus is.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Bytes of its three files.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        self.header.bodies_bytes + self.index.len() as u64 + self.header.manifest_bytes
    }

    /// Number of sessions.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.header.sessions
    }

    /// Whether it has no session.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.header.turns
    }

    /// Number of sessions of a profile, by its place in the manifest.
    #[must_use]
    pub fn sessions_of(&self, profile: usize) -> u64 {
        self.ranges.get(profile).map_or(0, |(from, to)| to - from)
    }

    /// Session `i` of a profile.
    #[must_use]
    pub fn session_of(&self, profile: usize, i: u64) -> Option<Session<'_>> {
        let (from, to) = *self.ranges.get(profile)?;
        let at = from.checked_add(i).filter(|at| *at < to)?;
        self.session(at)
    }

    /// Session `i` of all.
    #[must_use]
    pub fn session(&self, i: u64) -> Option<Session<'_>> {
        (i < self.len()).then(|| Session {
            corpus: self,
            number: i,
            record: self.session_record(i),
        })
    }

    /// All sessions in their order: profile after profile.
    pub fn sessions(&self) -> impl Iterator<Item = Session<'_>> {
        (0..self.len()).filter_map(|i| self.session(i))
    }

    pub(super) fn session_at(&self, i: u64) -> usize {
        HEADER_BYTES + i as usize * SESSION_BYTES
    }

    pub(super) fn turn_at(&self, i: u64) -> usize {
        self.session_at(self.header.sessions) + i as usize * TURN_BYTES
    }

    pub(super) fn session_record(&self, i: u64) -> SessionRecord {
        let at = self.session_at(i);
        SessionRecord::read(self.index.get(at..at + SESSION_BYTES).unwrap_or_default())
    }

    fn turn_record(&self, i: u64) -> Option<TurnRecord> {
        let at = self.turn_at(i);
        TurnRecord::read(self.index.get(at..at + TURN_BYTES)?)
    }

    pub(super) fn damaged(&self, file: &str, at: usize, says: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            path: self.dir.join(file),
            at: at as u64,
            says: says.into(),
        }
    }

    fn check_sizes(&self) -> Result<(), StoreError> {
        let header = &self.header;
        let records = header
            .sessions
            .checked_mul(SESSION_BYTES as u64)
            .zip(header.turns.checked_mul(TURN_BYTES as u64))
            .and_then(|(a, b)| a.checked_add(b)?.checked_add(HEADER_BYTES as u64));
        if records != Some(self.index.len() as u64) {
            let says = format!(
                "{} sessions and {} requests do not fill {} bytes",
                header.sessions,
                header.turns,
                self.index.len()
            );
            return Err(self.damaged(INDEX, self.index.len(), says));
        }
        if self.bodies.len() as u64 != header.bodies_bytes {
            let says = format!(
                "it has {} bytes, and {} were written",
                self.bodies.len(),
                header.bodies_bytes
            );
            return Err(self.damaged(BODIES, self.bodies.len(), says));
        }
        if crc32fast::hash(&self.index[HEADER_BYTES..]) != header.records_crc {
            return Err(self.damaged(INDEX, HEADER_BYTES, "the records have another checksum"));
        }
        let profiles = self.manifest.profiles.len();
        if profiles as u64 != u64::from(header.profiles)
            || self.manifest.sessions != header.sessions
            || self.manifest.requests != header.turns
        {
            return Err(self.damaged(MANIFEST, 0, "it counts otherwise than the index"));
        }
        Ok(())
    }

    /// Sessions must follow one another without a gap, in `bodies` and in the turns, and point nowhere else.
    fn check_records(&mut self) -> Result<(), StoreError> {
        let mut ranges = vec![(0_u64, 0_u64); self.manifest.profiles.len()];
        let (mut next_byte, mut next_turn, mut profile) = (0_u64, 0_u64, 0_usize);
        for i in 0..self.header.sessions {
            let record = self.session_record(i);
            let fault = |says: &str| Err(self.damaged(INDEX, self.session_at(i), says));
            let end = record.start.checked_add(record.len);
            if record.start != next_byte || end.is_none_or(|end| end > self.header.bodies_bytes) {
                return fault("a session's bytes do not follow those of the one before");
            }
            if record.first_turn != next_turn
                || u64::from(record.turns) > self.header.turns - next_turn
            {
                return fault("a session's requests do not follow those of the one before");
            }
            if (record.profile as usize) < profile || record.profile >= self.header.profiles {
                return fault("sessions are not in the order of their profiles");
            }
            if u64::from(record.id_len) > record.len {
                return fault("a session's name is longer than the session");
            }
            profile = record.profile as usize;
            if ranges[profile].0 == ranges[profile].1 {
                ranges[profile] = (i, i);
            }
            ranges[profile].1 = i + 1;
            next_byte = record.start + record.len;
            next_turn += u64::from(record.turns);
            self.check_turns(&record, next_byte)?;
        }
        if next_byte != self.header.bodies_bytes || next_turn != self.header.turns {
            let says = "there are bytes or requests that belong to no session";
            return Err(self.damaged(INDEX, HEADER_BYTES, says));
        }
        self.ranges = ranges;
        Ok(())
    }

    fn check_turns(&self, session: &SessionRecord, end: u64) -> Result<(), StoreError> {
        let mut unrolled = 0_u64;
        for turn in session.first_turn..session.first_turn + u64::from(session.turns) {
            let fault = |says: &str| Err(self.damaged(INDEX, self.turn_at(turn), says));
            let Some(record) = self.turn_record(turn) else {
                return fault("a request has a flag that has no meaning");
            };
            let [head, body, tail] = record.parts;
            let own = [body, tail]
                .iter()
                .all(|part| part.start >= session.start && part.end().is_some_and(|e| e <= end));
            // A head may be shared with a session before.
            if !own || head.end().is_none_or(|e| e > end) {
                return fault("a request points outside its session");
            }
            unrolled += record.parts.iter().map(|p| u64::from(p.len)).sum::<u64>();
        }
        if unrolled == session.unrolled {
            Ok(())
        } else {
            Err(self.damaged(
                INDEX,
                self.turn_at(session.first_turn),
                "the lengths of a session's requests do not add up",
            ))
        }
    }
}

fn header(path: &Path, index: &Bytes) -> Result<Header, StoreError> {
    let damaged = |at: usize, says: &str| StoreError::Damaged {
        path: path.to_owned(),
        at: at as u64,
        says: says.to_owned(),
    };
    let Some(bytes) = index.first_chunk::<HEADER_BYTES>() else {
        return Err(damaged(index.len(), "it is shorter than its header"));
    };
    Header::read(bytes).map_err(|fault| match fault {
        HeaderFault::Magic => StoreError::Foreign {
            path: path.to_owned(),
            says: "is not the index of a corpus".to_owned(),
        },
        HeaderFault::Version(version) => StoreError::Foreign {
            path: path.to_owned(),
            says: format!(
                "has version {version}, and this program reads version {VERSION}: build the corpus anew"
            ),
        },
        HeaderFault::Checksum => damaged(0, "the header has another checksum"),
    })
}

fn manifest(path: &Path, header: &Header) -> Result<Manifest, StoreError> {
    let mut text = Vec::new();
    let most = header.manifest_bytes.min(MOST_MANIFEST_BYTES);
    regular::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut text))
        .map_err(StoreError::io(path))?;
    let damaged = |at: u64, says: String| StoreError::Damaged {
        path: path.to_owned(),
        at,
        says,
    };
    if text.len() as u64 != header.manifest_bytes {
        let more = if text.len() as u64 > most {
            " or more"
        } else {
            ""
        };
        let says = format!(
            "it has {} bytes{more}, and {} were written",
            text.len(),
            header.manifest_bytes
        );
        return Err(damaged(text.len() as u64, says));
    }
    if crc32fast::hash(&text) != header.manifest_crc {
        return Err(damaged(0, "it has another checksum".to_owned()));
    }
    serde_json::from_slice(&text).map_err(|error| damaged(0, format!("it cannot be read: {error}")))
}

/// One session of a corpus.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    corpus: &'a Corpus,
    number: u64,
    pub(super) record: SessionRecord,
}

impl<'a> Session<'a> {
    /// Its place among all sessions.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its name within its source.
    #[must_use]
    pub fn id(&self) -> String {
        let end = self.record.start + u64::from(self.record.id_len);
        String::from_utf8_lossy(self.corpus.slice(self.record.start, end)).into_owned()
    }

    /// The place of its profile in the manifest.
    #[must_use]
    pub fn profile(&self) -> usize {
        self.record.profile as usize
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.record.turns as usize
    }

    /// Whether it has no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record.turns == 0
    }

    /// Bytes of all its requests.
    #[must_use]
    pub fn bytes_unrolled(&self) -> u64 {
        self.record.unrolled
    }

    /// Request `i`.
    #[must_use]
    pub fn turn(&self, i: usize) -> Option<Turn<'a>> {
        let corpus = self.corpus;
        (i < self.len())
            .then(|| corpus.turn_record(self.record.first_turn + i as u64))
            .flatten()
            .map(|record| Turn { corpus, record })
    }

    /// Its requests in order.
    pub fn turns(&self) -> impl Iterator<Item = Turn<'a>> + use<'a> {
        let session = *self;
        (0..session.len()).filter_map(move |i| session.turn(i))
    }
}

/// One request of a corpus.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    corpus: &'a Corpus,
    record: TurnRecord,
}

impl<'a> Turn<'a> {
    /// Head, body and tail, which together are what is sent. Slices of the map: nothing is copied.
    #[must_use]
    pub fn parts(&self) -> [&'a [u8]; 3] {
        self.record
            .parts
            .map(|p| self.corpus.slice(p.start, p.start + u64::from(p.len)))
    }

    /// The same parts as shared bytes that keep the map alive; nothing is copied.
    #[must_use]
    pub fn bytes(&self) -> [Bytes; 3] {
        let bodies = &self.corpus.bodies;
        self.record.parts.map(|p| {
            let (start, len) = (p.start as usize, p.len as usize);
            if start + len <= bodies.len() {
                bodies.slice(start..start + len)
            } else {
                Bytes::new()
            }
        })
    }

    /// Bytes of what is sent.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.record.parts.iter().map(|p| u64::from(p.len)).sum()
    }

    /// Between the answer before (or the start of the session) and this request, where it was recorded.
    #[must_use]
    pub fn think(&self) -> Option<Duration> {
        self.record.think_ns.map(Duration::from_nanos)
    }

    /// Tokens of the prompt, as the target counts them.
    #[must_use]
    pub fn prompt_tokens(&self) -> u32 {
        self.record.prompt_tokens
    }

    /// Tokens of the prompt that the prompt before did not begin with.
    #[must_use]
    pub fn new_tokens(&self) -> u32 {
        self.record.new_tokens
    }

    /// Tokens of the recorded answer; 0 where there is none.
    #[must_use]
    pub fn answer_tokens(&self) -> u32 {
        self.record.answer_tokens
    }

    /// Whether its messages begin with those of the request before.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.record.goes_on
    }
}

impl Corpus {
    /// A part of `bodies`; empty where it would be outside, which `open` has ruled out.
    pub(super) fn slice(&self, start: u64, end: u64) -> &[u8] {
        self.bodies
            .get(start as usize..end as usize)
            .unwrap_or_default()
    }
}
