//! `prove agentx`: traces of agents replayed in lanes, as AgentX measures engines, in real or in virtual time.
//!
//! Invariant: who sends what and when is `experiment::lanes`' to say, on both clocks; a run that breaks a rule of AgentX says which.
//! Not here: sending (`real`), virtual time (`simulator::lanes`), the form of traces (`file`).

mod file;
mod page;
mod real;
mod sample;
mod summary;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use experiment::lanes::{Lanes, Phase, Rules, Trace};
use load::client::Trust;

use crate::files;
use crate::interrupt::{self, Interrupt};
use crate::load::{ReplayError, traffic};
use crate::numbers::{self, within};
use crate::progress::Line;
use crate::report::html;
use crate::report::plain::{self, Paper};
use crate::text::say;
use summary::{Row, Summary};

/// Tokens that a template, and the words by which a play is told from others, add to a prompt at most.
const BESIDE: u32 = 512;
const MODEL: &str = "gpt-oss-120b";
const PRESET: &str = "gpt-oss-120b.h100x4";
const AFTER: &str = "Exit codes: 0 measured, 1 a rule of AgentX was broken or nothing was measured, 2 nothing could be done.";

/// Replays traces of agents in lanes, as AgentX does.
///
/// Each lane begins in the middle of a trace, brings what was before into the
/// engine's cache, warms up, and is measured; a lane whose trace ends takes the
/// next one from its start. Traces are lines of JSON in Weka's form.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_help = AFTER)]
pub(crate) struct AgentX {
    /// Files of traces.
    #[arg(required_unless_present = "sample")]
    traces: Vec<PathBuf>,
    /// Traces at once, each with its sub-agents.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    lanes: u32,
    /// Where to: the base URL that an SDK is given.
    #[arg(long, value_name = "URL", required_unless_present_any = ["in_virtual_time", "sample"])]
    target: Option<String>,
    /// In virtual time, before a simulated engine: an hour passes in seconds.
    #[arg(long = "virtual", conflicts_with = "target")]
    in_virtual_time: bool,
    /// The engine of virtual time: the name of a preset, or its file [default: gpt-oss-120b.h100x4].
    #[arg(long, requires = "in_virtual_time")]
    preset: Option<String>,
    /// The model that requests name, which counts their tokens.
    #[arg(long, default_value = MODEL, conflicts_with = "in_virtual_time")]
    model: String,
    /// How long is measured.
    #[arg(long, default_value = "1h", value_parser = numbers::time)]
    duration: Duration,
    /// Requests of each lane that warm up.
    #[arg(long, default_value_t = 10)]
    warm_ups: u32,
    /// The share of its trace at which a lane begins at the earliest.
    #[arg(long, default_value_t = 0.25, value_parser = |text: &str| within(text, 0.0, 1.0))]
    begin_from: f64,
    /// And at the latest.
    #[arg(long, default_value_t = 0.75, value_parser = |text: &str| within(text, 0.0, 1.0))]
    begin_to: f64,
    /// How long answers may take after the end; then they are cancelled.
    #[arg(long, default_value = "30s", value_parser = numbers::time)]
    grace: Duration,
    /// How long a lane may be idle.
    #[arg(long, default_value = "300s", value_parser = numbers::time)]
    lane_idle: Duration,
    /// How long all of them may be.
    #[arg(long, default_value = "10s", value_parser = numbers::time)]
    idle: Duration,
    /// Traces with a longer prompt and answer are left out.
    #[arg(long, default_value_t = 131_072)]
    max_context: u32,
    /// Of where lanes begin, and of the order of traces.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// GPUs of the target, by which throughput is divided [in virtual time: the preset's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    gpus: Option<u32>,
    /// A header of every request, NAME: VALUE; ${NAME} stands for a variable of the environment.
    #[arg(long, value_parser = traffic::header)]
    header: Vec<(String, String)>,
    /// Authorities to trust, PEM [default: the system's].
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// An answer that is not whole after this is an error.
    #[arg(long, default_value = "600s", value_parser = numbers::time)]
    timeout: Duration,
    /// A line of JSON for each request.
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// The result as JSON, and beside it its page.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Print so many made-up traces, and end.
    #[arg(long, value_name = "TRACES", conflicts_with_all = ["target", "in_virtual_time", "out", "records"], value_parser = clap::value_parser!(u64).range(1..=10_000))]
    sample: Option<u64>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentXError {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Play(#[from] simulator::lanes::PlayError),
    #[error("the traces could not be made a corpus: {0}")]
    Corpus(String),
}

/// Replays, and tells; false where a rule was broken.
pub(crate) fn agentx(options: &AgentX) -> Result<bool, AgentXError> {
    if let Some(traces) = options.sample {
        say(&sample::lines(traces, options.seed))?;
        return Ok(true);
    }
    let _interrupt = Interrupt::heed()?;
    let read = file::read(&options.traces)?;
    let fits =
        |trace: &Trace| longest(trace) <= u64::from(options.max_context.saturating_sub(BESIDE));
    let (traces, long): (Vec<Trace>, Vec<Trace>) = read.traces.into_iter().partition(fits);
    if traces.is_empty() {
        let says = format!(
            "no trace is left: {} are longer than --max-context, {} could not be read",
            long.len(),
            read.faults.len()
        );
        return Err(AgentXError::Usage(says));
    }
    let rules = rules(options);
    let traces: Arc<[Trace]> = traces.into();
    let lanes = Lanes::new(rules.clone(), Arc::clone(&traces));
    let lanes = lanes.map_err(|says| AgentXError::Usage(says.to_owned()))?;
    let (rows, lanes, engine, gpus) = if options.in_virtual_time {
        in_virtual_time(options, lanes)?
    } else {
        let (rows, lanes) = real::play(options, lanes)?;
        (rows, lanes, None, options.gpus)
    };
    let left_out = summary::LeftOut {
        long: long.len() as u64,
        unread: read.faults,
    };
    let summary = Summary::of(&rules, &lanes, &rows, (left_out, gpus, engine));
    tell(options, &summary, &lanes, &rows)?;
    Ok(summary.submission_valid)
}

fn rules(options: &AgentX) -> Rules {
    Rules {
        begins: (options.begin_from, options.begin_to),
        warm_ups: options.warm_ups,
        measure: options.duration,
        grace: options.grace,
        lane_idle: options.lane_idle,
        idle: options.idle,
        ..Rules::agentx(options.lanes, options.seed)
    }
}

fn longest(trace: &Trace) -> u64 {
    let all = trace.streams.iter().flat_map(|stream| &stream.requests);
    let tokens = all.map(|ask| u64::from(ask.prompt) + u64::from(ask.output));
    tokens.max().unwrap_or(0)
}

/// What came of lanes, and before what.
type Played = (Vec<Row>, Lanes, Option<String>, Option<u32>);

fn in_virtual_time(options: &AgentX, lanes: Lanes) -> Result<Played, AgentXError> {
    let preset = files::preset(options.preset.as_deref().unwrap_or(PRESET))?;
    let mut line = Line::new();
    let played = simulator::lanes::play(lanes, &preset, |now, phase| {
        line.show(|| format!("{} s of virtual time: {}", now.as_secs(), word(phase)));
        !interrupt::was_heard()
    })?;
    line.end();
    let rows = played.requests.iter().map(Row::of_virtual).collect();
    let engine = format!("SIMULATED ENGINE, preset {}, in virtual time", preset.name);
    let gpus = options.gpus.unwrap_or(preset.gpus.count);
    Ok((rows, played.lanes, Some(engine), Some(gpus)))
}

const fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::WarmUp => "primers and warm-ups",
        Phase::Measured => "measured",
        Phase::Grace => "grace",
        Phase::Over => "over",
    }
}

fn trust(options: &AgentX) -> Trust {
    options.ca.clone().map_or(Trust::System, Trust::File)
}

fn tell(
    options: &AgentX,
    summary: &Summary,
    lanes: &Lanes,
    rows: &[Row],
) -> Result<(), AgentXError> {
    let json = serde_json::to_string_pretty(summary).map_err(io::Error::other)?;
    let sections = page::sections(summary);
    if let Some(records) = &options.records {
        files::replace(records, &summary::records(lanes, rows)?)?;
    }
    if let Some(out) = &options.out {
        files::replace(out, &json)?;
        files::replace(
            &out.with_extension("html"),
            &html::page(page::TITLE, &sections),
        )?;
    }
    if options.json {
        return Ok(say(&(json + "\n"))?);
    }
    Ok(say(&plain::text(&sections, Paper::of(&io::stdout())))?)
}
