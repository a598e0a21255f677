//! `prove engine soak`: hours of users in seconds, and ramps of them.
//!
//! Invariant: with the same options the same output, to the last digit.
//! Not here: the soak (`simulator::soak`).

use std::io;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use simulator::preset::Preset;
use simulator::soak::{Plan, ProfileReport, Ramp, RampReport, Report, Soak as Planned, Traffic};

use crate::files;
use crate::numbers;
use crate::text::{add, say};

/// Lets users ask a simulated engine for hours of virtual time.
#[derive(Debug, Args)]
pub(crate) struct Soak {
    /// A preset's name or file.
    #[arg(long)]
    preset: String,
    /// Users, each with one question at a time; several numbers, apart by commas, are tried one after another.
    #[arg(long, value_delimiter = ',', required_unless_present = "workload")]
    users: Vec<u32>,
    /// Profiles of users with conversations: a file, or `paper`.
    #[arg(long, conflicts_with_all = ["think", "prompt_tokens", "cached_tokens", "output_tokens", "variation"])]
    workload: Option<String>,
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
    /// Hours of virtual time, a year at most.
    #[arg(long, default_value_t = 3.0, value_parser = |text: &str| numbers::within(text, 0.0, 8784.0))]
    hours: f64,
    /// What does not count at the start [default: 300s; in a ramp 60s].
    #[arg(long, value_parser = seconds)]
    warm_up: Option<Duration>,
    /// Users come a few at a time, up to --users, while mean TTFT is at most three times that of the first, until it is
    /// above in two consecutive windows.
    #[arg(long, conflicts_with = "hours")]
    ramp: bool,
    /// In a ramp, how many come at a time.
    #[arg(long, default_value_t = Ramp::default().users, requires = "ramp")]
    ramp_users: u32,
    /// In a ramp, how often; a window is as long.
    #[arg(long, default_value = "60s", value_parser = seconds, requires = "ramp")]
    ramp_every: Duration,
    /// In a ramp, how long the first stay alone.
    #[arg(long, default_value = "300s", value_parser = seconds, requires = "ramp")]
    ramp_alone: Duration,
    /// Seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most requests in a step, whatever the preset says.
    #[arg(long, value_parser = at_least_one)]
    max_num_seqs: Option<usize>,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Seconds, where no unit is given.
fn seconds(text: &str) -> Result<Duration, String> {
    numbers::time(text).or_else(|says| numbers::time(&format!("{text}s")).map_err(|_| says))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("{text} is not a number from 1 on")),
        Ok(number) => Ok(number),
    }
}

pub(super) fn soak(options: &Soak) -> super::Outcome {
    let mut preset = files::preset(&options.preset)?;
    if let Some(limit) = options.max_num_seqs {
        preset.scheduler.max_num_seqs = limit;
    }
    let traffic = options.workload.as_deref().map(workload).transpose()?;
    let none = vec![0];
    let users = if options.users.is_empty() {
        &none
    } else {
        &options.users
    };
    let planned = users
        .iter()
        .map(|&users| options.planned(users, traffic.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    if options.ramp {
        return ramps(options, &preset, &planned);
    }
    let reports = planned
        .iter()
        .map(|planned| planned.run(&preset))
        .collect::<Result<Vec<_>, _>>()?;
    reports.iter().for_each(warn);
    if options.json {
        return print(&reports);
    }
    let mut page = String::new();
    table(&mut page, &reports);
    if traffic.is_some() {
        reports
            .iter()
            .for_each(|report| profiles(&mut page, report));
    }
    Ok(say(&page)?)
}

fn ramps(options: &Soak, preset: &Preset, planned: &[Planned]) -> super::Outcome {
    let ramp = Ramp {
        users: options.ramp_users,
        every: options.ramp_every,
        alone: options.ramp_alone,
        ..Ramp::default()
    };
    let reports = planned
        .iter()
        .map(|planned| planned.ramp(preset, &ramp))
        .collect::<Result<Vec<_>, _>>()?;
    if options.json {
        return print(&reports);
    }
    let mut page = String::new();
    reports.iter().for_each(|report| windows(&mut page, report));
    Ok(say(&page)?)
}

/// The traffic of that name, or the one in that file; a trace that it names lies beside it.
fn workload(name_or_path: &str) -> io::Result<Traffic> {
    if let Some(traffic) = Traffic::named(name_or_path) {
        return Ok(traffic);
    }
    let path = Path::new(name_or_path);
    let text = files::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!(
            "no workload is called {name_or_path} and no file is there of that name; the workloads are {}",
            Traffic::names().join(", ")
        )),
        _ => error,
    })?;
    let beside = |file: &str| {
        let path = path.parent().unwrap_or(Path::new("")).join(file);
        files::read(&path).map_err(|error| error.to_string())
    };
    Traffic::parse(&text, name_or_path, beside).map_err(io::Error::other)
}

impl Soak {
    fn planned(
        &self,
        users: u32,
        traffic: Option<&Traffic>,
    ) -> Result<Planned, Box<dyn std::error::Error>> {
        let warm_up = Duration::from_secs(if self.ramp { 60 } else { 300 });
        let plan = Plan {
            users,
            think: self.think,
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            output_tokens: self.output_tokens,
            variation: self.variation,
            length: Duration::try_from_secs_f64(self.hours * 3600.0)?,
            warm_up: self.warm_up.unwrap_or(warm_up),
            seed: self.seed,
        };
        let soak = plan.soak();
        Ok(match traffic {
            Some(traffic) => Planned {
                traffic: traffic.clone(),
                ..soak
            },
            None => soak,
        })
    }
}

fn print<T: Serialize>(reports: &[T]) -> super::Outcome {
    let text = match reports {
        [report] => serde_json::to_string_pretty(report)?,
        _ => serde_json::to_string_pretty(reports)?,
    };
    Ok(say(&(text + "\n"))?)
}

/// Tells when times are guessed.
fn warn(report: &Report) {
    if report.beyond_bounds > 0.0 {
        eprintln!(
            "warning: {} users: {:.1} % of steps had more sequences or longer ones than the recording that {} was \
             fitted to: their times are guessed",
            report.users,
            report.beyond_bounds * 100.0,
            report.preset
        );
    }
}

fn table(page: &mut String, reports: &[Report]) {
    add!(
        page,
        "{:>5} {:>6} {:>5} {:>5} {:>5} {:>6} {:>7} {:>5} {:>5} {:>4} {:>4} {:>4} {:>7}",
        "",
        "req/s",
        "TTFT",
        "p99",
        "TPOT",
        "queue",
        "prefill",
        "E2E",
        "runs",
        "wait",
        "KV",
        "GPU",
        ""
    );
    add!(
        page,
        "{:>5} {:>6} {:>5} {:>5} {:>5} {:>6} {:>7} {:>5} {:>5} {:>4} {:>4} {:>4} {:>7}",
        "users",
        "",
        "ms",
        "ms",
        "ms",
        "ms",
        "ms",
        "s",
        "",
        "",
        "%",
        "%",
        "preempt"
    );
    for r in reports {
        add!(
            page,
            "{:>5} {:>6.2} {:>5.0} {:>5.0} {:>5.1} {:>6.1} {:>7.0} {:>5.1} {:>5.1} {:>4.1} {:>4.1} {:>4.0} {:>7}",
            r.users,
            r.requests_per_s,
            r.ttft.mean * 1e3,
            r.ttft.p99 * 1e3,
            r.tpot.mean * 1e3,
            r.queue.mean * 1e3,
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

fn profiles(page: &mut String, report: &Report) {
    add!(
        page,
        "\n{} users: {:.0} % of prompt tokens cached, {:.1} GB/s over NVLink from each GPU, index of dispersion of \
         questions in 10 s {:.1}",
        report.users,
        report.prefix_hit_rate * 100.0,
        report.nvlink_tx_bytes_per_s / 1e9,
        report.dispersion_10s
    );
    add!(
        page,
        "{:<20} {:>5} {:>6} {:>7} {:>7} {:>8} {:>7} {:>7} {:>6}",
        "profile",
        "users",
        "req/s",
        "pause s",
        "prompt",
        "cached %",
        "output",
        "TTFT ms",
        "E2E s"
    );
    for ProfileReport {
        name,
        users,
        requests_per_s,
        think_s,
        prompt_tokens,
        cached_share,
        output_tokens,
        ttft,
        e2e,
        ..
    } in &report.profiles
    {
        add!(
            page,
            "{name:<20} {users:>5} {requests_per_s:>6.2} {think_s:>7.2} {prompt_tokens:>7.0} {:>8.0} \
             {output_tokens:>7.0} {:>7.0} {:>6.2}",
            cached_share * 100.0,
            ttft.mean * 1e3,
            e2e.mean
        );
    }
}

fn windows(page: &mut String, report: &RampReport) {
    let ms = |seconds: Option<f64>| {
        seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.0}", seconds * 1e3))
    };
    add!(
        page,
        "baseline {:.1} ms, too much above {:.1} ms",
        report.baseline_s * 1e3,
        report.line_s * 1e3
    );
    add!(
        page,
        "{:>5} {:>6} {:>6} {:>7} {:>6} {:>6} {:>6} {:>5} {:>7}",
        "users",
        "until",
        "req/s",
        "TTFT ms",
        "p99",
        "runs",
        "waits",
        "KV %",
        "preempt"
    );
    for window in &report.windows {
        add!(
            page,
            "{:>5} {:>5.0}s {:>6.2} {:>7} {:>6} {:>6.1} {:>6.1} {:>5.1} {:>7}{}",
            window.users,
            window.to_s,
            window.requests_per_s,
            ms(window.ttft_s),
            ms(window.ttft_p99_s),
            window.running,
            window.waiting,
            window.kv_usage * 100.0,
            window.preemptions,
            if window.too_slow { "  held" } else { "" }
        );
    }
    match report.t2 {
        Some(users) => add!(page, "T2: {users} users"),
        None => add!(page, "T2 was not reached"),
    }
    if let Some(why) = &report.stopped {
        add!(page, "it stopped: {why}");
    }
}

#[cfg(test)]
mod tests;
