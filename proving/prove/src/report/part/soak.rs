//! The soak, or the last phase there was: latencies of both sides, profiles, and what the hardware did.
//!
//! Not here: what the gateway adds (`overhead`).

use crate::report::chart::{Chart, Mark, Side, TIME};
use crate::report::content::{Cell, Section, Table};
use crate::report::document::{Document, Evidence, Quantiles};
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
    let table = Table::each(
        "Table 2. Latency: by the engine and by the client, side by side",
        &document.latency,
        &[
            ("Measure", |r| r.measure.as_str().into()),
            ("#Engine mean", |r| maybe(r.engine_mean_s, time).into()),
            ("#Client mean", |r| of(r.client, |q| q.mean)),
            ("#p50", |r| of(r.client, |q| q.p50)),
            ("#p90", |r| of(r.client, |q| q.p90)),
            ("#p95", |r| of(r.client, |q| q.p95)),
            ("#p99", |r| of(r.client, |q| q.p99)),
            ("#p99.9", |r| of(r.client, |q| q.p999)),
            ("#Max", |r| of(r.client, |q| q.max)),
            ("#n", |r| maybe(r.client, |q| count(q.count)).into()),
        ],
    );
    section.table(table, "not measured: no request was answered");
    section
}

pub(super) fn profiles(document: &Document) -> Section {
    let mut section = Section::new("profiles", "Profiles");
    let load = Table::each(
        "What each profile asked for",
        &document.profiles,
        &[
            ("Profile", |p| p.name.as_str().into()),
            ("Law", |p| law(&p.law).into()),
            ("#Users", |p| p.users.to_string().into()),
            ("#Requests", |p| count(p.requests).into()),
            ("#RPS", |p| plain(p.requests_per_s).into()),
            ("#Errors", |p| count(p.errors).into()),
            ("#Prompt tokens", |p| {
                maybe(p.prompt_tokens_mean, plain).into()
            }),
            ("#Output tokens", |p| {
                maybe(p.output_tokens_mean, plain).into()
            }),
            ("#Pause", |p| maybe(p.think_mean_s, time).into()),
            ("#Cached", |p| maybe(p.cached_share, percent).into()),
        ],
    );
    let latency = Table::each(
        "What each profile got",
        &document.profiles,
        &[
            ("Profile", |p| p.name.as_str().into()),
            ("#TTFT mean", |p| of(p.ttft, |q| q.mean)),
            ("#TTFT p50", |p| of(p.ttft, |q| q.p50)),
            ("#TTFT p99", |p| of(p.ttft, |q| q.p99)),
            ("#TPOT mean", |p| of(p.tpot, |q| q.mean)),
            ("#TPOT p99", |p| of(p.tpot, |q| q.p99)),
            ("#E2E mean", |p| of(p.e2e, |q| q.mean)),
            ("#E2E p99", |p| of(p.e2e, |q| q.p99)),
        ],
    );
    section.table(load, "not measured: no profile sent anything");
    if !latency.rows.is_empty() {
        section.table(latency, "");
    }
    section
}

/// One of these times, if there are any.
fn of(quantiles: Option<Quantiles>, of: fn(&Quantiles) -> f64) -> Cell {
    maybe(quantiles, |q| time(of(&q))).into()
}

pub(super) fn ttft(document: &Document) -> Section {
    let mut section = Section::new("ttft", "TTFT over time");
    let mut chart = Chart::new("Mean TTFT over time", TIME, "TTFT, s");
    super::left(&mut chart, document, ("ttft_s", "mean TTFT"), 1.0);
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
        TIME,
        "KV cache in use, %",
    );
    super::left(&mut chart, document, ("kv_cache", "KV cache"), 100.0);
    super::right(&mut chart, document, ("nvlink_bytes_per_s", "NVLink"), 1e-9);
    let has_right = chart.lines.iter().any(|line| line.side == Side::Right);
    chart.right = has_right.then(|| "NVLink, GB/s".into());
    super::add_phases(&mut chart, document);
    chart.caption = format!(
        "How full the engine's memory for contexts is, and how busy the links between its GPUs are.{}{}",
        super::source(document, "kv_cache"),
        super::source(document, "nvlink_bytes_per_s")
    );
    section.chart(chart, "not measured: neither KV cache nor NVLink was read");
    let mut queue = Chart::new("Requests in the engine over time", TIME, "requests");
    super::left(&mut queue, document, ("running", "running"), 1.0);
    super::left(&mut queue, document, ("waiting", "waiting"), 1.0);
    super::right(&mut queue, document, ("preemptions", "preemptions"), 1.0);
    let has_right = queue.lines.iter().any(|line| line.side == Side::Right);
    queue.right = has_right.then(|| "preemptions".into());
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
    let rows = rows
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let caption = match document.evidence() {
        Evidence::Real => "Means over the soak, or over the last phase there was",
        Evidence::SimulatedEngine | Evidence::Virtual => {
            "SIMULATED ENGINE: no GPU was measured. Means over the soak, or over the last phase there was"
        }
    };
    let table = Table::figures(caption, ["Figure", "#Value"], rows);
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
pub(super) fn law(text: &str) -> String {
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
