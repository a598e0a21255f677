//! `prove engine soak`: hours of a closed loop in seconds.
//!
//! Invariant: with the same options the same output, to the last digit.
//! Not here: the soak (`simulator::soak`).

use std::time::Duration;

use clap::Args;
use simulator::soak::{Plan, Report};

use crate::files;

/// Lets users ask a simulated engine for hours of virtual time.
#[derive(Debug, Args)]
pub(crate) struct Soak {
    /// A preset's name or file.
    #[arg(long)]
    preset: String,
    /// Users, each with one question at a time; several numbers, apart by commas, are tried one after another.
    #[arg(long, value_delimiter = ',', required = true)]
    users: Vec<u32>,
    /// Mean pause between an answer and the next question, such as 7.55s.
    #[arg(long, default_value = "7.55s", value_parser = seconds)]
    think: Duration,
    /// Mean prompt tokens that nobody has sent before.
    #[arg(long, default_value_t = 7300)]
    prompt_tokens: u32,
    /// Tokens with which every prompt begins.
    #[arg(long, default_value_t = 704)]
    cached_tokens: u32,
    /// Mean tokens of an answer.
    #[arg(long, default_value_t = 405)]
    output_tokens: u32,
    /// Coefficient of variation of prompts and answers; 0 makes all the same.
    #[arg(long, default_value_t = 0.3)]
    variation: f64,
    /// Hours of virtual time.
    #[arg(long, default_value_t = 3.0)]
    hours: f64,
    /// What does not count at the start, such as 300s.
    #[arg(long, default_value = "300s", value_parser = seconds)]
    warm_up: Duration,
    /// Seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most requests in a step, whatever the preset says.
    #[arg(long)]
    max_num_seqs: Option<usize>,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let value: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("{text} is not a time such as 7.55s"))?;
    Duration::try_from_secs_f64(value * unit).map_err(|error| format!("{text}: {error}"))
}

pub(super) fn soak(options: &Soak) -> super::Outcome {
    let mut preset = files::preset(&options.preset)?;
    if let Some(limit) = options.max_num_seqs {
        preset.scheduler.max_num_seqs = limit.max(1);
    }
    let length = Duration::try_from_secs_f64(options.hours * 3600.0)?;
    let mut reports = Vec::new();
    for &users in &options.users {
        let plan = Plan {
            users,
            think: options.think,
            prompt_tokens: options.prompt_tokens,
            cached_tokens: options.cached_tokens,
            output_tokens: options.output_tokens,
            variation: options.variation,
            length,
            warm_up: options.warm_up,
            seed: options.seed,
        };
        reports.push(simulator::soak::soak(&preset, &plan)?);
    }
    if !options.json {
        table(&reports);
    } else if let [report] = reports.as_slice() {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    }
    Ok(())
}

fn table(reports: &[Report]) {
    println!(
        "{:>5} {:>6} {:>7} {:>5} {:>7} {:>7} {:>6} {:>5} {:>5} {:>4} {:>5} {:>7}",
        "users",
        "req/s",
        "TTFT ms",
        "p99",
        "TPOT ms",
        "prefill",
        "E2E s",
        "runs",
        "waits",
        "KV %",
        "GPU %",
        "preempt"
    );
    for r in reports {
        println!(
            "{:>5} {:>6.2} {:>7.0} {:>5.0} {:>7.1} {:>7.0} {:>6.2} {:>5.1} {:>5.2} {:>4.0} {:>5.1} {:>7}",
            r.users,
            r.requests_per_s,
            r.ttft.mean * 1e3,
            r.ttft.p99 * 1e3,
            r.tpot.mean * 1e3,
            r.prefill.mean * 1e3,
            r.e2e.mean,
            r.running,
            r.waiting,
            r.kv_usage_mean * 100.0,
            r.gpu_utilisation * 100.0,
            r.preemptions,
        );
    }
}
