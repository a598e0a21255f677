//! What agents recorded, as a corpus, and its replay.
//!
//! Invariant: the replay is that of `prove load` and of campaigns; nothing here sends.
//! Not here: reading recordings (`corpus`), sending (`load`).

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corpus::store::Corpus;
use load::client::Protocol;
use load::observer::Record;

use super::crowd::{Crowd, Row, Rows};
use super::history::session_of;
use super::{AgentsError, PROFILE};
use crate::host::process::run_own;
use crate::load::steered::{Said, Steered, SteeredRun, Steering};

const TIMEOUT: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Builds a corpus of a recording: answers as long as they were.
pub(super) fn build(recording: &Path, model: &str, out: &Path) -> Result<(), AgentsError> {
    let built = run_own(|prove| {
        prove
            .args(["corpus", "build", "--ignore-eos"])
            .args(["--keep-duplicates", "--strict"])
            .args(["--profile", PROFILE, "--reader", "messages"])
            .arg(recording)
            .args(["--model", model, "--out"])
            .arg(out);
    });
    built.map_err(AgentsError::Build)
}

/// A corpus that is to be sent.
pub(super) struct Asked<'a> {
    pub(super) engine: SocketAddr,
    pub(super) corpus: &'a Path,
    pub(super) most: u32,
    /// Whether all together send each session once, and leave.
    pub(super) once: bool,
    pub(super) seed: u64,
    /// Where rows go.
    pub(super) file: PathBuf,
}

/// A replay that goes on.
pub(super) struct Replay {
    run: SteeredRun,
    rows: Rows,
    /// Who were asked for last.
    users: Cell<u32>,
}

impl Replay {
    pub(super) fn begin(asked: &Asked<'_>) -> Result<Self, AgentsError> {
        let think = "recorded"
            .parse()
            .map_err(|error| AgentsError::Bug(format!("{error}")))?;
        let steered = Steered::new(&Steering {
            corpus: asked.corpus.to_owned(),
            target: format!("http://{}/v1", asked.engine),
            seed: asked.seed,
            max_users: asked.most,
            once: asked.once,
            profiles: vec![Said {
                name: PROFILE.into(),
                weight: None,
                think: Some(think),
                scope: None,
                headers: Vec::new(),
            }],
            headers: Vec::new(),
            timeout: TIMEOUT,
            heeds_retry_after: None,
            protocol: Protocol::Http1,
            longest: LONGEST,
            base: PathBuf::new(),
        })?;
        let names = names(asked.corpus)?;
        let rows = Rows::default();
        let heard = rows.clone();
        let on_rows = move |records: &[Record]| {
            let new = records.iter().map(|record| row(record, &names));
            heard.lock().extend(new);
        };
        let run = steered.begin(&asked.file, Box::new(on_rows))?;
        Ok(Self {
            run,
            rows,
            users: Cell::new(0),
        })
    }

    /// Ends what is under way, and takes what was seen: rows, and the CPU time of the threads that sent.
    pub(super) fn finish(self) -> Result<(Vec<Row>, Duration), AgentsError> {
        self.run.running.control().stop();
        let (outcome, summed) = self.run.finish();
        let outcome = outcome?;
        summed?;
        let rows = std::mem::take(&mut *self.rows.lock());
        Ok((rows, outcome.client_cpu))
    }
}

impl Crowd for Replay {
    fn start(&self) -> Instant {
        self.run.running.start
    }

    fn set_users(&self, users: u32) {
        // Each wish wakes everybody.
        if self.users.replace(users) != users {
            self.run.running.control().set_users(0, users);
        }
    }

    fn is_over(&self) -> bool {
        self.run.running.is_over()
    }

    fn rows(&self) -> &Rows {
        &self.rows
    }
}

/// The script's numbers of a corpus's sessions.
fn names(corpus: &Path) -> Result<HashMap<u64, u64>, AgentsError> {
    let corpus = Corpus::open(corpus).map_err(|error| AgentsError::Build(error.to_string()))?;
    let all = 0..corpus.sessions_of(0);
    let name = |number| {
        let session = corpus.session_of(0, number)?;
        Some((number, session_of(&session.id())?))
    };
    Ok(all.filter_map(name).collect())
}

fn row(record: &Record, names: &HashMap<u64, u64>) -> Row {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a day are below 2^53"
    )]
    let s = |ns: u64| ns as f64 / 1e9;
    let sent = record.sent_ns.unwrap_or(record.intended_ns);
    Row {
        session: names.get(&record.session).copied().unwrap_or(u64::MAX),
        turn: record.turn,
        sent_s: s(sent),
        first_s: s(record.first_token_ns.unwrap_or(record.ended_ns)),
        ended_s: s(record.ended_ns),
        prompt: record.prompt_tokens.unwrap_or(0),
        output: record.completion_tokens.unwrap_or(0),
        cached: record.cached_tokens.unwrap_or(0),
        is_good: record.failure.is_none(),
    }
}
