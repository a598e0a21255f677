//! `prove scrape`: targets scraped for a while, as lines of JSON and a file of samples: what a campaign sees, by itself.
//!
//! Invariant: it ends by time. Exit code 1 where a target or a query does not fit, with every fault named.
//! Not here: asking (`scraper`), the file (`store`).

use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use clap::Args;
use experiment::telemetry::{Query, QueryError, Sample, Span, Telemetry};
use serde_json::{Value, json};

use super::cfs::Cfs;
use super::scraper::{Heard, Lost, Scraper};
use super::store::{Store, StoreError};
use super::targets::{Target, check};
use crate::numbers::within;
use crate::text::{self, printable};

/// Scrapes targets for a while.
#[derive(Debug, Args)]
pub(crate) struct Scrape {
    /// A target and its name, such as `engine=http://127.0.0.1:8000/metrics`.
    #[arg(long = "target", value_name = "NAME=URL", value_parser = target)]
    targets: Vec<Target>,
    /// A question to answer at the end, such as `rate(engine:vllm:generation_tokens_total)`.
    #[arg(long = "query")]
    queries: Vec<String>,
    /// A process whose cgroup is read as the target `cgroup`.
    #[arg(long)]
    cgroup_of: Option<u32>,
    /// Between two looks, milliseconds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    every_ms: u64,
    /// For how long.
    #[arg(long, default_value_t = 10.0, value_parser = |text: &str| within(text, 0.01, 86_400.0))]
    seconds: f64,
    /// Where samples go, as Parquet.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Begin even where a check found faults.
    #[arg(long)]
    anyway: bool,
}

/// What kept it from its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScrapeError {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Start(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn target(text: &str) -> Result<Target, String> {
    let (name, url) = text
        .split_once('=')
        .ok_or("write NAME=URL, such as engine=http://127.0.0.1:8000/metrics")?;
    Target::parse(name, url)
}

/// Whether all went well.
pub(crate) fn scrape(options: &Scrape) -> Result<bool, ScrapeError> {
    let queries: Result<Vec<Query>, _> = options.queries.iter().map(|text| text.parse()).collect();
    let queries = queries.map_err(|error: QueryError| ScrapeError::Usage(error.to_string()))?;
    let every = Duration::from_millis(options.every_ms);
    let checked = check(
        &options.targets,
        &queries,
        every.max(Duration::from_secs(1)),
    );
    for page in &checked.pages {
        eprintln!("{}", printable(page));
    }
    for warning in &checked.warnings {
        say(&json!({ "warning": warning.to_string() }));
    }
    for fault in &checked.faults {
        say(&json!({ "fault": fault.to_string() }));
    }
    if !checked.faults.is_empty() && !options.anyway {
        return Ok(false);
    }
    let store = options.out.as_deref().map(Store::create).transpose()?;
    let cgroup = options.cgroup_of.map(Cfs::of_process).transpose();
    let cgroup = cgroup.map_err(ScrapeError::Usage)?;
    let start = Instant::now();
    let begun = Scraper::start(options.targets.clone(), cgroup, start, every);
    let (scraper, heard) = begun.map_err(ScrapeError::Start)?;
    let end = start + Duration::from_secs_f64(options.seconds);
    let mut telemetry = Telemetry::new(&queries);
    let (mut store, mut samples, mut is_whole) = (store, 0_u64, true);
    let mut take = |sample: &Sample| {
        samples += 1;
        telemetry.hear(sample);
        if let Some(Err(error)) = store.as_mut().map(|store| store.add(sample)) {
            is_whole = false;
            say(&json!({ "fault": error.to_string() }));
        }
    };
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match heard.recv_timeout(left) {
            Ok(Heard::Sample(sample)) => take(&sample),
            Ok(event) => say(&told(&event)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    let Lost {
        ticks,
        samples: without_room,
    } = scraper.finish();
    let all = Span {
        from: Duration::ZERO,
        to: start.elapsed(),
    };
    let answers: serde_json::Map<String, Value> = queries
        .iter()
        .map(|query| (query.to_string(), json!(telemetry.ask(query, all))))
        .collect();
    let rows = store.map(Store::finish).transpose();
    is_whole &= rows.is_ok();
    say(&json!({
        "samples": samples, "rows": rows.ok().flatten(), "ticks_skipped": ticks,
        "samples_lost": without_room, "answers": answers,
    }));
    Ok(is_whole && checked.faults.is_empty())
}

fn told(event: &Heard) -> Value {
    match event {
        Heard::Sample(sample) => json!({ "sample": sample.target }),
        Heard::Silent { at, target, fault } => {
            json!({ "silent": target, "at_s": at.as_secs_f64(), "says": fault.to_string() })
        }
        Heard::Back { at, target, after } => {
            json!({ "back": target, "at_s": at.as_secs_f64(), "after_s": after.as_secs_f64() })
        }
        Heard::Unread {
            target,
            lines,
            first: (at, line),
        } => json!({ "unread": target, "lines": lines, "line": at, "begins": line }),
    }
}

/// Whoever reads it may stop reading.
fn say(line: &Value) {
    drop(text::say(&format!("{line}\n")));
}
