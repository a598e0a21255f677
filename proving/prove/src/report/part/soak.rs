//! The soak, or the last phase there was: latencies of both sides, profiles, and what the hardware did.
//!
//! Not here: what the gateway adds (`overhead`).

use crate::report::chart::{Chart, Mark, Side};
use crate::report::content::{Section, Table};
use crate::report::document::{Document, Profile, Quantiles};
use crate::report::figure::{bandwidth, count, maybe, percent, plain, time};

pub(super) fn latency(document: &Document) -> Section {
    let mut section = Section::new("latency", "Latency in the soak");
    if let Some(soak) = &document.soak {
        section.text(format!(
            "{} users sent {} requests ({} each second). The engine's means are sums over counts of its own histograms; \
             the client's are of every request's own clock.",
            soak.users,
            count(soak.requests),
            plain(soak.requests_per_second)
        ));
    } else {
        section.absent("there was no soak: the figures are of the last phase there was");
    }
    let mut table = Table::new(
        "Table 2. Latency: by the engine and by the client, side by side",
        &[
            "Measure",
            "#Engine mean",
            "#Client mean",
            "#p50",
            "#p90",
            "#p95",
            "#p99",
            "#p99.9",
            "#Max",
            "#n",
        ],
    );
    for row in &document.latency {
        let client = |of: fn(&Quantiles) -> f64| maybe(row.client.as_ref(), |q| time(of(q))).into();
        table.row([
            row.measure.as_str().into(),
            maybe(row.engine_mean_s, time).into(),
            client(|q| q.mean),
            client(|q| q.p50),
            client(|q| q.p90),
            client(|q| q.p95),
            client(|q| q.p99),
            client(|q| q.p999),
            client(|q| q.max),
            maybe(row.client.as_ref(), |q| count(q.count)).into(),
        ]);
    }
    section.table(table, "not measured: no request was answered");
    section
}

pub(super) fn profiles(document: &Document) -> Section {
    let mut section = Section::new("profiles", "Profiles");
    let mut load = Table::new(
        "What each profile asked for",
        &[
            "Profile",
            "Law",
            "#Users",
            "#Requests",
            "#RPS",
            "#Errors",
            "#Prompt tokens",
            "#Output tokens",
            "#Pause",
            "#Cached",
        ],
    );
    let mut latency = Table::new(
        "What each profile got",
        &[
            "Profile",
            "#TTFT mean",
            "#TTFT p50",
            "#TTFT p99",
            "#TPOT mean",
            "#TPOT p99",
            "#E2E mean",
            "#E2E p99",
        ],
    );
    for profile in &document.profiles {
        load.row([
            profile.name.as_str().into(),
            law(&profile.law).into(),
            profile.users.to_string().into(),
            count(profile.requests).into(),
            plain(profile.requests_per_s).into(),
            count(profile.errors).into(),
            maybe(profile.prompt_tokens_mean, plain).into(),
            maybe(profile.output_tokens_mean, plain).into(),
            maybe(profile.think_mean_s, time).into(),
            maybe(profile.cached_share, percent).into(),
        ]);
        latency.row(got(profile).map(Into::into));
    }
    section.table(load, "not measured: no profile sent anything");
    if !latency.rows.is_empty() {
        section.table(latency, "");
    }
    section
}

fn got(profile: &Profile) -> [String; 8] {
    let of = |quantiles: Option<Quantiles>, of: fn(&Quantiles) -> f64| {
        maybe(quantiles, |q| time(of(&q)))
    };
    [
        profile.name.clone(),
        of(profile.ttft, |q| q.mean),
        of(profile.ttft, |q| q.p50),
        of(profile.ttft, |q| q.p99),
        of(profile.tpot, |q| q.mean),
        of(profile.tpot, |q| q.p99),
        of(profile.e2e, |q| q.mean),
        of(profile.e2e, |q| q.p99),
    ]
}

pub(super) fn ttft(document: &Document) -> Section {
    let mut section = Section::new("ttft", "TTFT over time");
    let mut chart = Chart::new(
        "Mean TTFT over time",
        "seconds since the beginning",
        "TTFT, s",
    );
    super::add_series(
        &mut chart,
        document,
        ("ttft_s", "mean TTFT"),
        Side::Left,
        1.0,
    );
    if let Some(limit) = document.ttft_limit_s {
        chart.marks.push(Mark::Level {
            at: limit,
            says: format!("limit of T2: {}", time(limit)),
        });
    }
    super::add_phases(&mut chart, document);
    chart.caption = format!(
        "The rolling mean that the gate of T2 reads, with its limit. Uprights are where a phase begins.{}",
        super::source(document, "ttft_s")
    );
    section.chart(chart, "not measured: no series of TTFT");
    section
}

pub(super) fn hardware(document: &Document) -> Section {
    let mut section = Section::new("hardware", "Hardware");
    let mut chart = Chart::new(
        "Figure 5. KV cache and NVLink over time",
        "seconds since the beginning",
        "KV cache in use, %",
    );
    super::add_series(
        &mut chart,
        document,
        ("kv_cache", "KV cache"),
        Side::Left,
        100.0,
    );
    super::add_series(
        &mut chart,
        document,
        ("nvlink_bytes_per_s", "NVLink"),
        Side::Right,
        1e-9,
    );
    chart.right = chart
        .lines
        .iter()
        .any(|line| line.side == Side::Right)
        .then(|| "NVLink, GB/s".into());
    super::add_phases(&mut chart, document);
    chart.caption = format!(
        "How full the engine's memory for contexts is, and how busy the links between its GPUs are.{}{}",
        super::source(document, "kv_cache"),
        super::source(document, "nvlink_bytes_per_s")
    );
    section.chart(chart, "not measured: neither KV cache nor NVLink was read");
    let mut queue = Chart::new(
        "Requests in the engine over time",
        "seconds since the beginning",
        "requests",
    );
    super::add_series(
        &mut queue,
        document,
        ("running", "running"),
        Side::Left,
        1.0,
    );
    super::add_series(
        &mut queue,
        document,
        ("waiting", "waiting"),
        Side::Left,
        1.0,
    );
    super::add_series(
        &mut queue,
        document,
        ("preemptions", "preemptions"),
        Side::Right,
        1.0,
    );
    queue.right = queue
        .lines
        .iter()
        .any(|line| line.side == Side::Right)
        .then(|| "preemptions".into());
    queue.caption =
        "What the scheduler had at once; waiting requests are where TTFT comes from.".into();
    section.chart(queue, "not measured: the engine told nothing of its queue");
    let hardware = &document.hardware;
    let rows = [
        ("KV cache, mean", hardware.kv_cache_mean.map(percent)),
        ("KV cache, greatest", hardware.kv_cache_max.map(percent)),
        ("NVLink", hardware.nvlink_bytes_per_s.map(bandwidth)),
        ("GPU utilisation", hardware.gpu_utilisation.map(percent)),
        (
            "Power",
            hardware.power_w.map(|watts| format!("{} W", plain(watts))),
        ),
        ("GPUs", hardware.gpus.map(|gpus| gpus.to_string())),
    ];
    let mut table = Table::new(
        "Means over the soak, or over the last phase there was",
        &["Figure", "#Value"],
    );
    for (name, value) in rows {
        if let Some(value) = value {
            table.row([name.into(), value.into()]);
        }
    }
    section.table(table, "not measured: no exporter of the hardware was read");
    if !hardware.nvlink_convention.is_empty() {
        section.text(format!(
            "How NVLink was counted: {}.",
            hardware.nvlink_convention.trim_end_matches('.')
        ));
    }
    section
}

/// Decimals of a figure in a law.
const MOST_DECIMALS: u32 = 4;

/// A law of pauses as people read it: room between its members, and no more decimals than they mean.
fn law(text: &str) -> String {
    let (mut out, mut decimals) = (String::new(), None);
    for c in text.chars() {
        decimals = match (c, decimals) {
            ('.', _) => Some(0),
            ('0'..='9', Some(n)) => Some(n + 1),
            _ => None,
        };
        if decimals.is_none_or(|n| n <= MOST_DECIMALS) {
            out.push(c);
        }
        if c == ',' {
            out.push(' ');
        }
    }
    out
}
