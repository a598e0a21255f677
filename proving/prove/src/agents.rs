//! `prove agents`: live agents before the simulated engine, and the replay of what they recorded, side by side.
//!
//! The white paper asserts that a replay is to the engine what live agents are (its Figures 1 and 2). Here agents work on scripted tasks, what
//! they said and heard becomes a corpus, and `load` replays it before an engine that is as new as theirs was.
//! Invariant: both runs have the same sessions, in orders of their own; engines are simulated, in real time, and of this process.
//! Not here: one agent (`live`), the replay (`load`), the tests of equal distribution (`experiment::statistics`).

mod answer;
mod compare;
mod crowd;
mod history;
mod line;
mod live;
mod page;
mod replay;
mod script;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use engine::{EngineConfig, EngineHandle, Hardware, OutputLength};
use experiment::campaign::Course;
use serde::Serialize;
use simulator::preset::Preset;

use crate::files;
use crate::interrupt::{self, Interrupt};
use crate::load::ReplayError;
use crate::numbers::{self, within};
use crate::report::html;
use crate::report::plain::{self, Paper};
use crate::text::say;
use compare::Measure;
use crowd::{Ramp, Row};
use live::Live;
use replay::Replay;
use script::Script;

/// What sessions are of, in the corpus.
const PROFILE: &str = "agents";
/// Users of a run come in over this time.
const COME_IN: Duration = Duration::from_secs(5);
/// The machine that is simulated unless another is named.
const SMALL: &str = include_str!("../../../scenarios/live-agents/engine.toml");
const SMALL_NAME: &str = "scenarios/live-agents/engine.toml";
const MODEL: &str = "gpt-oss-120b";
const AFTER: &str = "Exit codes: 0 both are equal, 1 they are not, 2 nothing could be done.";

/// Holds a replay against the live agents that it was recorded of.
///
/// Agents send, get calls of tools, run them, and send again, before a
/// simulated engine; what they recorded is replayed before another. Arrivals,
/// lengths, hits, times and the saturation point (T2) of both stand side by
/// side, with tests of equal distribution.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_help = AFTER)]
pub(crate) struct Agents {
    /// A new directory for the recording, the corpus, the result and its page.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Agents at work.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    agents: u32,
    /// Tasks, each a session.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(2..=100_000))]
    sessions: u64,
    /// Steps of a session, in the mean.
    #[arg(long, default_value_t = 6.0, value_parser = |text: &str| within(text, 1.0, 40.0))]
    steps: f64,
    /// How long a tool runs, in the mean.
    #[arg(long, default_value = "1s", value_parser = numbers::time)]
    tool_time: Duration,
    /// Words of what a tool finds, in the mean.
    #[arg(long, default_value_t = 200.0, value_parser = |text: &str| within(text, 1.0, 1e4))]
    found: f64,
    /// Tokens of an answer, in the mean.
    #[arg(long, default_value_t = 60.0, value_parser = |text: &str| within(text, 1.0, 1e4))]
    output_tokens: f64,
    /// Share of answers that call a tool.
    #[arg(long, default_value_t = 0.8, value_parser = |text: &str| within(text, 0.0, 1.0))]
    tool_calls: f64,
    /// The machine that is simulated: the name of a preset, or its file [default: a small one].
    #[arg(long)]
    preset: Option<String>,
    /// The replay's engine gives other answers than the recorded ones, of the same lengths, as a model does that draws its tokens.
    #[arg(long)]
    other_answers: bool,
    /// Leave out the ramps to T2.
    #[arg(long)]
    no_ramp: bool,
    /// Agents that come with each step of the ramp.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=500))]
    step: u32,
    /// How long a step of the ramp lasts.
    #[arg(long, default_value = "6s", value_parser = numbers::time)]
    window: Duration,
    /// Agents at most, in the ramp.
    #[arg(long, default_value_t = 160, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    max_agents: u32,
    /// Of tasks, answers and orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Why it did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentsError {
    #[error("{0}")]
    Usage(String),
    #[error("the recording could not be made a corpus: {0}")]
    Build(String),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("of the agents' calls {failed} failed; the first said: {says}")]
    Failed { failed: usize, says: String },
    #[error("interrupted")]
    Interrupted,
    #[error("bug: {0}")]
    Bug(String),
}

impl From<&'static str> for AgentsError {
    fn from(says: &'static str) -> Self {
        Self::Bug(says.to_owned())
    }
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Outcome {
    schema: &'static str,
    tool: String,
    /// What is under test is no real engine.
    engine: String,
    seed: u64,
    agents: u32,
    /// Those that are whole in both runs.
    sessions: u64,
    is_other_answers: bool,
    live: Loop,
    replay: Loop,
    measures: Vec<Measure>,
    t2: Option<Saturation>,
    verdict: Verdict,
}

/// What is said of both loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Equal,
    Different,
    /// Nothing was found different, and neither ramp came to T2: what saturates was not compared.
    T2NotFound,
}

impl Verdict {
    fn of(are_equal: bool, t2: Option<&Saturation>) -> Self {
        match t2.map(|t2| t2.is_equal) {
            _ if !are_equal => Self::Different,
            None | Some(Some(true)) => Self::Equal,
            Some(Some(false)) => Self::Different,
            Some(None) => Self::T2NotFound,
        }
    }

    /// With which the process ends.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Equal => 0,
            Self::Different => 1,
            Self::T2NotFound => 3,
        }
    }

    const fn shown(self) -> &'static str {
        match self {
            Self::Equal => "EQUAL",
            Self::Different => "DIFFERENT",
            Self::T2NotFound => "T2 NOT FOUND, all else equal",
        }
    }
}

/// What one loop cost its client.
#[derive(Debug, Clone, Serialize)]
struct Loop {
    requests: u64,
    failed: u64,
    seconds: f64,
    cpu_us_per_request: f64,
    /// Of it, what went into writing requests and into reading events; of agents alone.
    writing_us: Option<f64>,
    reading_us: Option<f64>,
    events_per_request: Option<f64>,
    prompt_tokens: f64,
    cached_share: f64,
    ttft_s: f64,
    pause_s: f64,
}

/// Users at T2; `None` where the ramp ended before.
#[derive(Debug, Serialize)]
struct Saturation {
    live: Option<u32>,
    replay: Option<u32>,
    step: u32,
    /// Whether they are a step apart at most; nobody knows where neither was found.
    is_equal: Option<bool>,
    live_steps: Vec<Step>,
    replay_steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    users: u32,
    is_stable: bool,
    says: String,
}

/// Runs both, and tells.
pub(crate) fn agents(options: &Agents) -> Result<Verdict, AgentsError> {
    let _interrupt = Interrupt::heed()?;
    let bench = Bench::new(options)?;
    let (live, seen) = bench.live()?;
    bench.record(&seen.recorded)?;
    replay::build(
        &bench.place("trajectories.jsonl"),
        MODEL,
        &bench.place("corpus"),
    )?;
    let (replayed, cpu) = bench.replay()?;
    let (measures, sessions) = compare::compare(&live, &replayed, options.seed);
    let t2 = (!options.no_ramp).then(|| bench.saturation()).transpose()?;
    let are_equal = sessions > 0 && measures.iter().all(|measure| measure.is_equal);
    let verdict = Verdict::of(are_equal, t2.as_ref());
    let outcome = Outcome {
        schema: "tollgate.agents/1",
        tool: format!("prove {}", env!("CARGO_PKG_VERSION")),
        engine: format!(
            "SIMULATED ENGINE, preset {}, in real time",
            bench.preset.name
        ),
        seed: options.seed,
        agents: options.agents,
        sessions,
        is_other_answers: options.other_answers,
        live: Loop::of(&live, seen.cpu).of_agents(&seen, live.len()),
        replay: Loop::of(&replayed, cpu),
        measures,
        t2,
        verdict,
    };
    bench.tell(&outcome)?;
    Ok(verdict)
}

struct Bench<'a> {
    options: &'a Agents,
    preset: Preset,
    script: Script,
}

impl<'a> Bench<'a> {
    fn new(options: &'a Agents) -> Result<Self, AgentsError> {
        let preset = match &options.preset {
            Some(named) => files::preset(named)?,
            None => Preset::parse(SMALL, SMALL_NAME).map_err(io::Error::other)?,
        };
        std::fs::create_dir_all(&options.out)
            .map_err(|error| AgentsError::Usage(format!("{}: {error}", options.out.display())))?;
        let bench = Self {
            options,
            preset,
            script: Script {
                seed: options.seed,
                sessions: options.sessions,
                steps: options.steps,
                tool_s: options.tool_time.as_secs_f64(),
                found: options.found,
            },
        };
        if bench.place("corpus").exists() {
            let says = format!(
                "{} has a corpus already: name another directory",
                options.out.display()
            );
            return Err(AgentsError::Usage(says));
        }
        Ok(bench)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.options.out.join(name)
    }

    /// A new engine, whose cache is empty. Answers are the same for the same seed and prompt.
    fn engine(&self, seed: u64) -> io::Result<EngineHandle> {
        engine::spawn_thread(EngineConfig {
            models: vec![MODEL.to_owned()],
            hardware: Some(Hardware::from(&self.preset)),
            output_tokens: OutputLength::LogNormal {
                mean: self.options.output_tokens,
                variation: 0.5,
            },
            enable_prompt_tokens_details: true,
            tool_calls: self.options.tool_calls,
            max_model_len: self.preset.scheduler.max_model_len as usize,
            seed,
            ..EngineConfig::default()
        })
    }

    fn agents_at(&self, engine: &EngineHandle, most: u32, once: bool) -> io::Result<Live> {
        Live::begin(live::Asked {
            engine: engine.addr(),
            model: MODEL.to_owned(),
            script: self.script.clone(),
            most,
            once,
            seed: self.options.seed,
        })
    }

    fn replay_at(
        &self,
        engine: &EngineHandle,
        most: u32,
        once: bool,
    ) -> Result<Replay, AgentsError> {
        let corpus = self.place("corpus");
        Replay::begin(&replay::Asked {
            engine: engine.addr(),
            corpus: &corpus,
            most,
            once,
            // In an order of its own.
            seed: self.options.seed.wrapping_add(1),
            file: self.place(if once {
                "replay.parquet"
            } else {
                "replay-ramp.parquet"
            }),
        })
    }

    /// How many are at work: no more than there are sessions.
    fn users(&self) -> u32 {
        let sessions = u32::try_from(self.options.sessions).unwrap_or(u32::MAX);
        self.options.agents.min(sessions)
    }

    /// The seed of the replay's engine.
    const fn answers_of_replay(&self) -> u64 {
        let other = if self.options.other_answers { 1 } else { 0 };
        self.options.seed.wrapping_add(other)
    }

    fn live(&self) -> Result<(Vec<Row>, live::Seen), AgentsError> {
        let engine = self.engine(self.options.seed)?;
        let live = self.agents_at(&engine, self.users(), true)?;
        let is_whole = crowd::steady(&live, "live agents", self.users(), COME_IN);
        let (rows, seen) = live.finish()?;
        if !is_whole {
            return Err(AgentsError::Interrupted);
        }
        match &seen.fault {
            Some(says) => Err(AgentsError::Failed {
                failed: rows.iter().filter(|row| !row.is_good).count(),
                says: says.clone(),
            }),
            None => Ok((rows, seen)),
        }
    }

    fn record(&self, sessions: &[String]) -> Result<(), AgentsError> {
        let mut lines = sessions.join("\n");
        lines.push('\n');
        Ok(files::write(&self.place("trajectories.jsonl"), &lines)?)
    }

    fn replay(&self) -> Result<(Vec<Row>, Duration), AgentsError> {
        let engine = self.engine(self.answers_of_replay())?;
        let replay = self.replay_at(&engine, self.users(), true)?;
        let is_whole = crowd::steady(&replay, "replay", self.users(), COME_IN);
        let seen = replay.finish()?;
        is_whole.then_some(seen).ok_or(AgentsError::Interrupted)
    }

    /// The ramps of both.
    fn saturation(&self) -> Result<Saturation, AgentsError> {
        let options = self.options;
        let ramp = Ramp {
            first: options.step.min(options.max_agents),
            step: options.step,
            window: options.window,
            most: options.max_agents,
        };
        let engine = self.engine(options.seed)?;
        let live = self.agents_at(&engine, options.max_agents, false)?;
        let of_live = crowd::saturate(&live, "live agents, ramp", ramp);
        live.finish()?;
        drop(engine);
        let engine = self.engine(self.answers_of_replay())?;
        let replay = self.replay_at(&engine, options.max_agents, false)?;
        let of_replay = crowd::saturate(&replay, "replay, ramp", ramp);
        replay.finish()?;
        if interrupt::was_heard() {
            return Err(AgentsError::Interrupted);
        }
        let (of_live, of_replay) = (
            of_live.map_err(AgentsError::Bug)?,
            of_replay.map_err(AgentsError::Bug)?,
        );
        Ok(Saturation::of(&of_live, &of_replay, options.step))
    }

    fn tell(&self, outcome: &Outcome) -> Result<(), AgentsError> {
        let json = serde_json::to_string_pretty(outcome).map_err(io::Error::other)?;
        let sections = page::sections(outcome);
        files::replace(&self.place("agents.json"), &json)?;
        files::replace(
            &self.place("agents.html"),
            &html::page(page::TITLE, &sections),
        )?;
        if self.options.json {
            return Ok(say(&(json + "\n"))?);
        }
        let text = plain::text(&sections, Paper::of(&io::stdout()));
        let out = self.place("agents.html");
        Ok(say(&format!("{text}\n{}\n", written(&out)))?)
    }
}

fn written(page: &Path) -> String {
    format!("The page with its plots: {}", page.display())
}

impl Loop {
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 tokens")]
    fn of(rows: &[Row], cpu: Duration) -> Self {
        let good: Vec<&Row> = rows.iter().filter(|row| row.is_good).collect();
        let count = good.len().max(1) as f64;
        let sum = |of: fn(&Row) -> f64| good.iter().map(|row| of(row)).sum::<f64>();
        let prompt = sum(|row| row.prompt as f64);
        let mut by_session: Vec<&Row> = good.clone();
        by_session.sort_by_key(|row| (row.session, row.turn));
        let pauses = by_session.windows(2).filter_map(|two| {
            let is_next = two[0].session == two[1].session && two[1].turn == two[0].turn + 1;
            is_next.then(|| two[1].sent_s - two[0].ended_s)
        });
        let pauses: Vec<f64> = pauses.collect();
        let ended = good.iter().map(|row| row.ended_s).fold(0.0, f64::max);
        Self {
            requests: rows.len() as u64,
            failed: (rows.len() - good.len()) as u64,
            seconds: ended,
            cpu_us_per_request: cpu.as_secs_f64() * 1e6 / count,
            writing_us: None,
            reading_us: None,
            events_per_request: None,
            prompt_tokens: prompt / count,
            cached_share: sum(|row| row.cached as f64) / prompt.max(1.0),
            ttft_s: sum(|row| row.first_s - row.sent_s) / count,
            pause_s: pauses.iter().sum::<f64>() / pauses.len().max(1) as f64,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 events")]
    fn of_agents(self, seen: &live::Seen, requests: usize) -> Self {
        let each = |time: Duration| Some(time.as_secs_f64() * 1e6 / requests.max(1) as f64);
        Self {
            writing_us: each(seen.writing),
            reading_us: each(seen.reading),
            events_per_request: Some(seen.events as f64 / requests.max(1) as f64),
            ..self
        }
    }
}

impl Saturation {
    fn of(live: &Course, replay: &Course, step: u32) -> Self {
        let steps = |course: &Course| {
            let steps = course.steps.iter().map(|step| Step {
                users: step.users,
                is_stable: step.is_stable,
                says: step.says.clone(),
            });
            steps.collect()
        };
        let is_equal = match (live.t2_users, replay.t2_users) {
            (Some(one), Some(other)) => Some(one.abs_diff(other) <= step),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => Some(false),
        };
        Self {
            live: live.t2_users,
            replay: replay.t2_users,
            step,
            is_equal,
            live_steps: steps(live),
            replay_steps: steps(replay),
        }
    }
}

#[cfg(test)]
mod tests {
    //! What is said of two loops.

    use super::{Saturation, Verdict};

    #[test]
    fn ramps_that_never_come_to_t2_say_nothing_of_it() {
        let said = |are_equal, t2: Option<Option<bool>>| {
            let t2 = t2.map(|is_equal| Saturation {
                live: None,
                replay: None,
                step: 4,
                is_equal,
                live_steps: Vec::new(),
                replay_steps: Vec::new(),
            });
            Verdict::of(are_equal, t2.as_ref()).exit_code()
        };
        assert_eq!((said(true, None), said(true, Some(Some(true)))), (0, 0));
        assert_eq!((said(true, Some(Some(false))), said(false, None)), (1, 1));
        assert_eq!((said(true, Some(None)), said(false, Some(None))), (3, 1));
    }
}
