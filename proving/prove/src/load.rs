//! `prove load`: sends a corpus at an endpoint, exactly when its law says, and says what came back.
//!
//! Invariant: a figure stands beside the certificate of what was sent; a run whose generator could not keep up is void and
//! has an exit code of its own.
//! Not here: the client (`load`, the crate), laws and their tests (`experiment`), building a corpus (`corpus`).

mod fleet;
mod live;
pub(crate) mod locust;
mod records;
mod report;
mod rig;
mod rows;
mod source;
pub(crate) mod steered;
pub(crate) mod target;
pub(crate) mod traffic;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use corpus::manifest::Manifest;
use corpus::store::{Corpus, StoreError};
use experiment::arrivals::{Process, Scope, Spec};
use experiment::slo::Slo;
use experiment::workload::{Load, Part};
use load::client::{Protocol, Reach, TargetError, Trust};
use load::observer::Answers;
use load::run::{LoadError, Plan};

use crate::host::descriptors;
use crate::interrupt::Interrupt;
use crate::numbers::{self, within};
use crate::report::plain::Paper;
use crate::text::say;
use live::Live;
use records::RecordsError;
use report::{Report, Run};
use rig::{Rig, RunOverrides};
use source::Replayed;
use traffic::{CorpusProfile, File, NamedArrivals, Planned, TrafficRequest, Users, Value};

/// Between two looks at a run that goes on.
const LOOK: Duration = Duration::from_millis(20);

/// Replays a corpus at an OpenAI-compatible endpoint.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Options {
    /// A corpus that `prove corpus build` made.
    corpus: PathBuf,
    /// Where to: the base URL that an SDK is given, such as http://127.0.0.1:1975/v1; several are sent to in turn.
    #[arg(long, value_name = "URL", required_unless_present = "locustfile")]
    target: Vec<String>,
    /// Users, each with one session at a time, shared out by the sessions of each profile [default: 10]; under a Locust
    /// master, the most of each profile [default: 1000].
    #[arg(long, conflicts_with = "rate")]
    users: Option<u32>,
    /// Open loop: session starts a second, whoever still waits, such as 2.5.
    #[arg(long, value_parser = |text: &str| within(text, 1e-6, 1e6))]
    rate: Option<f64>,
    /// Send every session once and end.
    #[arg(long, conflicts_with_all = ["rate", "arrivals"])]
    once: bool,
    /// The law of pauses, of all profiles or of one: [PROFILE=]PROCESS, such as gamma:7.5s,cv=1.5.
    #[arg(long, value_parser = traffic::named_process)]
    think: Vec<(Option<String>, Spec)>,
    /// Open loop: the law of session starts, likewise; with --rate, that is its rate, and it needs no mean: gamma:cv=1.5.
    #[arg(long, value_parser = traffic::named_arrivals)]
    arrivals: Vec<NamedArrivals>,
    /// Who shares the bursts of a modulated law: user, profile or fleet.
    #[arg(long)]
    scope: Option<Scope>,
    /// A file that says this by profile.
    #[arg(long, value_name = "FILE")]
    traffic: Option<PathBuf>,
    /// A header of every request, NAME: VALUE; ${NAME} stands for a variable of the environment.
    #[arg(long, value_parser = traffic::header)]
    header: Vec<(String, String)>,
    /// How long, after the warm-up [default: 60s; with --once, until the last answer].
    #[arg(long, value_parser = numbers::time)]
    duration: Option<Duration>,
    /// Time at the start that does not count.
    #[arg(long, default_value = "0s", value_parser = numbers::time)]
    warm_up: Duration,
    /// Users come in evenly over this time.
    #[arg(long, default_value = "0s", value_parser = numbers::time)]
    ramp: Duration,
    /// How long answers may take after the end.
    #[arg(long, default_value = "30s", value_parser = numbers::time)]
    drain: Duration,
    /// End after so many requests.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// An answer that is not whole after this is an error.
    #[arg(long, default_value = "600s", value_parser = numbers::time)]
    timeout: Duration,
    /// Who is refused with 429 or 503 waits as long as its `retry-after` says and sends the same again, where that is no more
    /// than this; else the session is given up.
    #[arg(long, value_name = "MOST", num_args = 0..=1, default_missing_value = "60s", value_parser = numbers::time)]
    heed_retry_after: Option<Duration>,
    /// Open loop: sessions of a profile that may be under way at once; more of them wait, and are late.
    #[arg(long, default_value_t = 10_000, value_parser = |text: &str| within(text, 1_usize, 1_000_000))]
    connections: usize,
    /// Threads that send [default: the CPUs there are].
    #[arg(long)]
    threads: Option<usize>,
    /// Seed of everything that is drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Speak HTTP/2, on so many connections for each thread.
    #[arg(long, value_name = "CONNECTIONS", num_args = 0..=1, default_missing_value = "1", value_parser = |text: &str| within(text, 1_usize, 1_000))]
    http2: Option<usize>,
    /// Authorities to trust, PEM [default: the system's].
    #[arg(long, value_name = "FILE", conflicts_with = "dangerously_trust_anyone")]
    ca: Option<PathBuf>,
    /// Take any certificate: whoever stands between sees every credential.
    #[arg(long)]
    dangerously_trust_anyone: bool,
    /// Service levels, such as ttft<=2s,tpot<=50ms: how many exchanges keep them.
    #[arg(long)]
    slo: Option<Slo>,
    /// The share of exchanges that has to keep them.
    #[arg(long, default_value_t = 0.95, requires = "slo", value_parser = |text: &str| within(text, 0.0, 1.0))]
    slo_share: f64,
    /// The share of requests that may fail before the run counts as failed.
    #[arg(long, default_value_t = 0.01, value_parser = |text: &str| within(text, 0.0, 1.0))]
    error_share: f64,
    /// Join this Locust master as a worker: it says how many users to have, and when.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["rate", "arrivals", "once", "requests", "warm_up", "ramp"])]
    locust_master: Option<String>,
    /// How the worker is called at the master.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "prove",
        requires = "locust_master"
    )]
    locust_name: String,
    /// Print the locustfile that a Locust master needs for this corpus, and end.
    #[arg(long)]
    locustfile: bool,
    /// A row for each exchange, as Parquet.
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// Write the result to a file, too, as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Refuse a run whose sessions repeat themselves: at least this share has to be no repetition.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "0.1", value_parser = |text: &str| within(text, 0.0, 1.0))]
    strict: Option<f64>,
    /// Take the corpus without checking the sums of its sessions first.
    #[arg(long)]
    unchecked: bool,
}

const AFTER: &str = "\
Exit codes: 0 good, 1 the certificate failed, too many requests failed or the
service levels were missed, 2 nothing could be done, 4 void: the generator could
not keep up.

docs/load.md has the laws, the file of traffic and the certificate.";

/// Nothing could be done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplayError {
    #[error(transparent)]
    Corpus(#[from] StoreError),
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Input(io::Error),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    Fleet(#[from] locust::JoinError),
    #[error("the Locust master was lost: {0}")]
    Lost(String),
    #[error("the rig could not be set up: {0}")]
    Rig(#[from] io::Error),
    #[error("{0}")]
    Bug(&'static str),
}

/// How a run ended, as an exit code tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ended {
    Good,
    /// The certificate failed, too many requests did, or service levels were missed.
    Failed,
    /// The generator could not keep up.
    Void,
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        Self::from(match ended {
            Ended::Good => 0,
            Ended::Failed => 1,
            Ended::Void => 4,
        })
    }
}

/// Replays, and prints the result.
pub(crate) fn replay(options: &Options) -> Result<Ended, ReplayError> {
    descriptors::raise();
    check_files(options)?;
    let corpus = open(options)?;
    if options.locustfile {
        say(&fleet::locustfile(&has(&corpus))?)?;
        return Ok(Ended::Good);
    }
    let rig = rig(options, corpus)?;
    match &options.locust_master {
        Some(master) => fleet::work(options, &rig, master),
        None => alone(options, &rig),
    }
}

/// Files that could not be written are found before anything is sent.
fn check_files(options: &Options) -> Result<(), ReplayError> {
    let (out, records) = (options.out.as_deref(), options.records.as_deref());
    if out.is_some() && out == records {
        let says = "--out and --records name the same file";
        return Err(ReplayError::Usage(says.into()));
    }
    for path in out.into_iter().chain(records) {
        let opened = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        opened.map_err(|error| {
            ReplayError::Input(io::Error::new(
                error.kind(),
                format!("{}: {error}", path.display()),
            ))
        })?;
    }
    Ok(())
}

/// One run, until it is over or interrupted.
fn alone(options: &Options, rig: &Rig) -> Result<Ended, ReplayError> {
    let interrupt = Interrupt::heed()?;
    eprint!("{}", rig.summary());
    let begun = rig.begin(RunOverrides {
        records: options.records.as_deref(),
        ..RunOverrides::default()
    })?;
    let users = rig.run().users.values();
    let users: u64 = users.map(|users| u64::from(*users)).sum();
    let live = Live::new(rig.names(), rig.planned_time());
    let mut live = live.of_users(rig.is_closed().then_some(users));
    while !begun.running.is_over() {
        std::thread::sleep(LOOK);
        live.show_if_due(&begun.running);
        if interrupt.was_heard() {
            begun.running.control().stop();
        }
    }
    live.clear();
    let (report, fault) = begun.finish()?;
    tell(options, &report, options.out.as_deref())?;
    // The result is told before what went wrong with its rows.
    fault.map_or(Ok(()), Err)?;
    Ok(report.ended())
}

/// Prints a result, and writes it to a file where there is to be one.
fn tell(options: &Options, report: &Report, out: Option<&Path>) -> Result<(), ReplayError> {
    let written = out.map_or(Ok(()), |path| crate::files::write(path, &report.to_json()));
    if !options.json {
        say(&report.page(Paper::of(&std::io::stdout())))?;
    } else if options.locust_master.is_some() {
        // A line for each run.
        say(&(report.to_json_line() + "\n"))?;
    } else {
        say(&(report.to_json() + "\n"))?;
    }
    // The result is told before what went wrong with its file.
    written.map_err(ReplayError::Input)
}

/// All that is needed to run.
fn rig(options: &Options, corpus: Corpus) -> Result<Rig, ReplayError> {
    let file = options.traffic.as_deref().map(File::read).transpose()?;
    let base = traffic::base_of(options.traffic.as_ref());
    let (asked, has) = (asked(options, &corpus)?, has(&corpus));
    let planned = traffic::plan(&asked, &file.unwrap_or_default(), &base, &has)?;
    warn_of_pauses(&has, &planned);
    let begun = planned.sessions_at_least(options.warm_up + measure(options));
    let few = options
        .strict
        .and_then(|least| too_few(corpus.manifest(), begun, least));
    if let Some(says) = few {
        return Err(ReplayError::Usage(says));
    }
    let manifest = corpus.manifest().clone();
    let run = Run {
        tool: format!("prove {}", env!("CARGO_PKG_VERSION")),
        corpus: options.corpus.display().to_string(),
        corpus_model: corpus.manifest().model.clone(),
        predicted_hit_rate: corpus.manifest().prefix.hit_rate,
        targets: options.target.clone(),
        protocol: if options.http2.is_some() {
            "HTTP/2"
        } else {
            "HTTP/1.1"
        },
        seed: options.seed,
        started_unix_ms: 0,
        warm_up_s: options.warm_up.as_secs_f64(),
        duration_s: measure(options).as_secs_f64(),
        users: users_of(&planned),
        threads: threads(options),
        profiles_left_out: planned.left_out.clone(),
        unchecked: options.unchecked,
        error_share: options.error_share,
        slo: options.slo.as_ref().map(ToString::to_string),
        slo_share: options.slo.as_ref().map(|_| options.slo_share),
    };
    let plan = Plan {
        reach: reach(options)?,
        source: Arc::new(Replayed::new(corpus, planned.profiles)),
        workload: planned.workload,
        traffic: planned.traffic,
        threads: run.threads,
        fleet: Part::WHOLE,
        warm_up: options.warm_up,
        measure: measure(options),
        drain: options.drain,
        most: options.requests,
        backs_off: true,
        heeds_retry_after: options.heed_retry_after,
        usage: true,
        records: None,
        certify: true,
    };
    Ok(Rig::new(plan, run, options.slo.clone()).of_corpus(manifest, options.strict))
}

/// Why sessions would repeat themselves, where so many are begun at least and this share is to be no repetition.
#[expect(clippy::cast_precision_loss, reason = "sessions below 2^53")]
fn too_few(manifest: &Manifest, begun: u64, least: f64) -> Option<String> {
    let unique = manifest.unique_sessions;
    let is_few = (unique as f64) < least * begun as f64;
    is_few.then(|| {
        format!(
            "--strict: the corpus has {unique} unique sessions, and {begun} at least are begun: less than {:.1} % would be no \
             repetition, and a prefix cache would be measured",
            least * 100.0
        )
    })
}

fn open(options: &Options) -> Result<Corpus, ReplayError> {
    let corpus = Corpus::open(&options.corpus)?;
    if !options.unchecked {
        corpus.verify(|_| {})?;
    }
    Ok(corpus)
}

fn asked(options: &Options, corpus: &Corpus) -> Result<TrafficRequest, ReplayError> {
    let needs_a_rate = |arrivals: &NamedArrivals| arrivals.needs_a_rate.clone();
    if let (Some(says), None) = (options.arrivals.iter().find_map(needs_a_rate), options.rate) {
        return Err(ReplayError::Usage(says));
    }
    let arrivals = options.arrivals.iter().cloned();
    Ok(TrafficRequest {
        seed: options.seed,
        ramp: options.ramp,
        users: match (options.users, &options.locust_master) {
            (Some(users), None) => Users::Together(users),
            (None, None) => Users::Together(10),
            (users, Some(_)) => Users::OfEach(users.unwrap_or(1000)),
        },
        rate: options.rate,
        think: options.think.clone(),
        arrivals: arrivals.map(|named| (named.profile, named.law)).collect(),
        scope: options.scope,
        once: options.once,
        connections: options.connections,
        ..request_of(corpus, &options.header)?
    })
}

/// What is asked of a corpus whoever asks, with these headers.
fn request_of(
    corpus: &Corpus,
    headers: &[(String, String)],
) -> Result<TrafficRequest, ReplayError> {
    let headers = headers.iter();
    let headers = headers.map(|(name, value)| Ok((name.clone(), Value::read(name, value)?)));
    Ok(TrafficRequest {
        headers: headers.collect::<Result<_, ReplayError>>()?,
        answers: if corpus.manifest().stream {
            Answers::Events
        } else {
            Answers::Json
        },
        path: target::PATH.into(),
        ..TrafficRequest::default()
    })
}

/// The profiles of a corpus.
fn has(corpus: &Corpus) -> Vec<CorpusProfile> {
    let profiles = corpus.manifest().profiles.iter().enumerate();
    let of = |(at, profile): (usize, &corpus::manifest::Profile)| {
        let sessions = corpus.sessions_of(at);
        let turns = (0..sessions)
            .filter_map(|session| corpus.session_of(at, session))
            .flat_map(|session| session.turns().skip(1));
        let (later, with_pauses) = turns.fold((0, 0), |(later, with), turn| {
            (later + 1, with + u64::from(turn.think().is_some()))
        });
        CorpusProfile {
            name: profile.name.clone(),
            sessions,
            later,
            with_pauses,
        }
    };
    profiles.map(of).collect()
}

/// By profile.
fn users_of(planned: &Planned) -> BTreeMap<String, u32> {
    let profiles = planned.workload.profiles.iter();
    let users = profiles.filter_map(|profile| match profile.load {
        Load::Closed { users, .. } => Some((profile.name.clone(), users)),
        Load::Open { .. } => None,
    });
    users.collect()
}

/// Some sessions have pauses, and they are not used.
fn warn_of_pauses(has: &[CorpusProfile], planned: &Planned) {
    for (profile, &at) in planned.workload.profiles.iter().zip(&planned.profiles) {
        let CorpusProfile {
            later, with_pauses, ..
        } = has[at];
        if profile.process() != &Process::Recorded && 0 < with_pauses && with_pauses < later {
            eprintln!(
                "warning: profile {}: {with_pauses} of {later} later requests have a recorded pause, and none is used, \
                 since the others have none",
                profile.name
            );
        }
    }
}

fn threads(options: &Options) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    options.threads.unwrap_or_else(cpus)
}

fn measure(options: &Options) -> Duration {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let has_an_end = !options.once && options.locust_master.is_none();
    let default = if has_an_end {
        Duration::from_secs(60)
    } else {
        DAY
    };
    options.duration.unwrap_or(default)
}

fn reach(options: &Options) -> Result<Reach, ReplayError> {
    let targets = options.target.iter().map(|url| target::parse(url));
    Ok(Reach {
        targets: targets.collect::<Result<_, _>>()?,
        protocol: match options.http2 {
            Some(connections) => Protocol::Http2 { connections },
            None => Protocol::Http1,
        },
        trust: match (&options.ca, options.dangerously_trust_anyone) {
            (_, true) => Trust::DangerouslyAnyone,
            (Some(file), false) => Trust::File(file.clone()),
            (None, false) => Trust::System,
        },
        timeout: options.timeout,
    })
}
