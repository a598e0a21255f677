//! A run of a corpus whose users somebody else steers.
//!
//! Invariant: nobody is at work before somebody asks for it; a run ends by itself after the time it was given.
//! Not here: how many users there are to be (`experiment::campaign`), what becomes of its rows.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use experiment::arrivals::{Scope, Spec};
use experiment::workload::{Load, Part};
use load::client::{Protocol, Reach};
use load::run::{Outcome, Plan, Running};
use load::source::{IdHeader, Secret};

use super::rig::{self, OnRows, RunOverrides};
use super::rows::{Rows, Summed};
use super::source::Replayed;
use super::traffic::{self, File, TrafficRequest, Users, Value};
use super::{ReplayError, has, request_of, target};
use crate::overhead::ask::ID_HEADER;
use crate::report::document::PrefixCache;
use corpus::manifest::Manifest;
use corpus::store::Corpus;

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Steering {
    pub(crate) corpus: PathBuf,
    /// The gateway's base URL.
    pub(crate) target: String,
    pub(crate) seed: u64,
    pub(crate) max_users: u32,
    /// Whether all users together send each session once, and then leave.
    pub(crate) once: bool,
    pub(crate) profiles: Vec<Said>,
    /// Of every request.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    /// As of `prove load --heed-retry-after`.
    pub(crate) heeds_retry_after: Option<Duration>,
    pub(crate) protocol: Protocol,
    /// After which it ends by itself.
    pub(crate) longest: Duration,
    /// Where traces of laws are looked for.
    pub(crate) base: PathBuf,
}

/// What is said of a profile.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) weight: Option<f64>,
    pub(crate) think: Option<Spec>,
    pub(crate) scope: Option<Scope>,
    pub(crate) headers: Vec<(String, String)>,
}

/// A run that can begin.
pub(crate) struct Steered {
    plan: Plan,
    pub(crate) profiles: Vec<SteeredProfile>,
    pub(crate) corpus: CorpusFacts,
}

/// A profile of it.
#[derive(Debug, Clone)]
pub(crate) struct SteeredProfile {
    pub(crate) name: String,
    /// Its share of all users is this over the sum of all.
    pub(crate) weight: f64,
    /// Of its pauses.
    pub(crate) law: String,
}

/// What is known of the corpus.
#[derive(Debug, Clone)]
pub(crate) struct CorpusFacts {
    pub(crate) model: String,
    sessions: u64,
    manifest: Manifest,
}

impl CorpusFacts {
    /// What a report says of it.
    pub(crate) fn prefix_cache(&self) -> PrefixCache {
        PrefixCache {
            predicted: Some(self.manifest.prefix.hit_rate),
            sessions: Some(self.sessions),
            corpus_unique_sessions: Some(self.manifest.unique_sessions),
            ..PrefixCache::default()
        }
    }

    /// As [`Manifest::expected_hits`].
    pub(crate) fn expected_hits(&self, unique_share: f64) -> f64 {
        self.manifest.expected_hits(unique_share)
    }

    /// Why so many users, each at work on a session, would repeat themselves from the start on.
    pub(crate) fn too_few_for(&self, users: u32, least: f64) -> Option<String> {
        super::too_few(&self.manifest, u64::from(users), least)
    }
}

/// The model that a corpus asks for.
pub(crate) fn model_of(corpus: &Path) -> Result<String, ReplayError> {
    Ok(Corpus::open(corpus)?.manifest().model.clone())
}

/// A run that goes on.
pub(crate) struct SteeredRun {
    pub(crate) running: Running,
    rows: Rows,
    secrets: Vec<Secret>,
}

/// Whether a header's variables of the environment are there.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), ReplayError> {
    Value::read(name, value).map(drop)
}

/// Whether somebody listens at a gateway's address.
pub(crate) fn reachable(url: &str, patience: Duration) -> Result<(), String> {
    let target = target::parse(url).map_err(|error| error.to_string())?;
    let mut last = String::from("it has no address");
    for address in target.addresses() {
        match TcpStream::connect_timeout(address, patience) {
            Ok(_) => return Ok(()),
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Err(format!("the gateway cannot be reached: {last}"))
}

impl Steered {
    /// Reads the corpus, whose sums are checked, and plans.
    pub(crate) fn new(asked: &Steering) -> Result<Self, ReplayError> {
        let corpus = Corpus::open(&asked.corpus)?;
        corpus.verify(|_| {})?;
        let has = has(&corpus);
        let request = TrafficRequest {
            seed: asked.seed,
            users: Users::OfEach(asked.max_users),
            once: asked.once,
            connections: 1,
            ..request_of(&corpus, &asked.headers)?
        };
        let file = File::of(&asked.profiles);
        let planned = traffic::plan(&request, &file, &asked.base, &has)?;
        let profiles = planned.workload.profiles.iter().zip(&planned.profiles);
        let profiles = profiles.map(|(profile, &at)| {
            let said = asked.profiles.iter().find(|said| said.name == profile.name);
            #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 sessions")]
            let sessions = has[at].sessions as f64;
            SteeredProfile {
                name: profile.name.clone(),
                weight: said.and_then(|said| said.weight).unwrap_or(sessions),
                law: match &profile.load {
                    Load::Closed { think, .. } => think.to_string(),
                    Load::Open { arrivals, .. } => arrivals.to_string(),
                },
            }
        });
        let facts = CorpusFacts {
            model: corpus.manifest().model.clone(),
            manifest: corpus.manifest().clone(),
            sessions: has.iter().map(|profile| profile.sessions).sum(),
        };
        let profiles = profiles.collect();
        let id = IdHeader::new(ID_HEADER).map_err(|error| ReplayError::Usage(error.to_string()))?;
        let mut requests = planned.traffic;
        for traffic in &mut requests {
            traffic.request_id = Some(id.clone());
        }
        let plan = Plan {
            reach: Reach {
                protocol: asked.protocol,
                ..Reach::plain(target::parse(&asked.target)?, asked.timeout)
            },
            source: Arc::new(Replayed::new(corpus, planned.profiles)),
            workload: planned.workload,
            traffic: requests,
            threads: 1,
            fleet: Part::WHOLE,
            warm_up: Duration::ZERO,
            measure: asked.longest,
            drain: Duration::ZERO,
            most: None,
            backs_off: true,
            heeds_retry_after: asked.heeds_retry_after,
            usage: true,
            records: None,
            certify: true,
        };
        Ok(Self {
            plan,
            profiles,
            corpus: facts,
        })
    }

    /// Begins; rows go to the file, and to whoever hears them.
    pub(crate) fn begin(&self, file: &Path, on_rows: OnRows) -> Result<SteeredRun, ReplayError> {
        let names = self.profiles.iter().map(|profile| profile.name.clone());
        let wanted = RunOverrides {
            records: Some(file),
            on_rows: Some(on_rows),
            seed: None,
        };
        let (running, rows) = rig::begin(&self.plan, names.collect(), None, wanted)?;
        Ok(SteeredRun {
            secrets: rig::secrets(&self.plan),
            running,
            rows,
        })
    }
}

impl SteeredRun {
    /// Waits for what is under way, and takes what was seen, each whether or not the other can be had. What went wrong with
    /// the file of rows stands in the sums.
    pub(crate) fn finish(self) -> (Result<Outcome, ReplayError>, Result<Summed, ReplayError>) {
        let outcome = self.running.finish().map_err(ReplayError::from);
        let summed = self.rows.finish().map_err(ReplayError::Bug);
        (
            outcome.map(|outcome| without(&self.secrets, outcome)),
            summed,
        )
    }
}

/// What answers said, without our credentials.
fn without(secrets: &[Secret], mut outcome: Outcome) -> Outcome {
    for profile in &mut outcome.profiles {
        for said in profile.observations.said.values_mut() {
            for secret in secrets {
                *said = secret.hidden_in(said);
            }
        }
    }
    outcome
}
