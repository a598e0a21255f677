//! Several campaigns side by side: each figure of each, with its difference from the first's.
//!
//! Invariant: a difference stands only where both figures do; what differs in how they were run is named.
//! Not here: the report of one campaign (`part`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::chart::Chart;
use super::content::{Cell, Section, Table};
use super::figure::{bandwidth, difference, maybe, percent, plain, time};
use super::part::{left, ttft_against_users};
use super::summary::drift;
use crate::report::document::{Document, Evidence, Latency, Phase, Step};
use crate::text::{add, printable, wrapped};

pub(super) const TITLE: &str = "Campaigns side by side";
/// Characters of a text that differs.
const SHOWN: usize = 200;

type Run<'a> = (&'a str, &'a Document);

/// A figure of a campaign, and how it is shown.
struct Row {
    name: String,
    show: fn(f64) -> String,
    values: Vec<Option<f64>>,
}

/// A figure by its name, and how it is shown and read.
type FigureOf<T> = (&'static str, fn(f64) -> String, fn(&T) -> Option<f64>);
type Figure = FigureOf<Document>;

/// Rows of a campaign, and what each is called.
type List<T> = (fn(&Document) -> &[T], fn(&T) -> &str);

const SOAK: &[Figure] = &[
    ("Baseline TTFT", ms, |d| d.baseline_ttft_ms),
    ("T2, users", plain, |d| d.t2_users.map(f64::from)),
    ("Soak, users", plain, |d| {
        d.soak.as_ref().map(|s| f64::from(s.users))
    }),
    ("Soak TTFT, mean", ms, |d| d.soak.as_ref()?.ttft_ms),
    ("Soak TPOT, mean", ms, |d| d.soak.as_ref()?.tpot_ms),
    ("Soak E2E, mean", time, |d| d.soak.as_ref()?.e2e_s),
    ("Soak requests/s", plain, |d| {
        d.soak.as_ref().map(|s| s.requests_per_second)
    }),
    ("Soak KV cache", percent, |d| d.soak.as_ref()?.kv_cache),
    ("Soak preemptions", plain, |d| {
        d.soak.as_ref()?.preemptions.map(whole)
    }),
    ("NVLink", bandwidth, |d| d.hardware.nvlink_bytes_per_s),
    ("Token drift", percent, |d| drift(&d.tokens)),
    ("Prefix-cache hits", percent, |d| d.prefix_cache.measured),
];

const OVERHEAD: &[Figure] = &[
    ("Upstream latency", time, |d| {
        d.overhead.as_ref().map(|o| o.upstream_s)
    }),
    ("Downstream latency", time, |d| {
        d.overhead.as_ref().map(|o| o.downstream_s)
    }),
    ("Gateway overhead, isolated, median", time, |d| {
        d.overhead.as_ref()?.isolated.map(|net| net.own_s)
    }),
    ("Gateway overhead, its own histogram, mean", time, |d| {
        d.overhead.as_ref()?.own_histogram_s
    }),
    ("Gateway and loopback, mean", time, |d| {
        d.overhead.as_ref().map(|o| o.gate.mean)
    }),
    ("Gateway and loopback, p50", time, |d| {
        d.overhead.as_ref().map(|o| o.gate.p50)
    }),
    ("Gateway and loopback, p99", time, |d| {
        d.overhead.as_ref().map(|o| o.gate.p99)
    }),
    ("Gateway and loopback, of upstream", percent, |d| {
        let o = d.overhead.as_ref()?;
        (o.upstream_s > 0.0).then(|| o.gate.mean / o.upstream_s)
    }),
    ("Periods throttled", plain, |d| {
        Some(whole(d.overhead.as_ref()?.throttling?.throttled_periods))
    }),
];

pub(super) fn sections(runs: &[Run<'_>]) -> Vec<Section> {
    let mut all = vec![verdicts(runs)];
    let mut add = |id, title, caption: &str, rows: Vec<Row>, otherwise| {
        let mut section = Section::new(id, title);
        section.table(table(caption, runs, rows), otherwise);
        all.push(section);
    };
    add(
        "figures",
        "Key figures",
        "What saturation and soak came to",
        figures(runs, SOAK),
        "not measured",
    );
    add(
        "phases",
        "Phases",
        "Table 1. Phases, side by side",
        listed(runs, (|d| &d.phases, |p| &p.name), PHASES),
        "not measured: no phase was begun",
    );
    add(
        "latency",
        "Latency",
        "Table 2. Latency, side by side",
        listed(runs, (|d| &d.latency, |row| &row.measure), LATENCY),
        "not measured: no latency",
    );
    add(
        "overhead",
        "What the gateways add",
        "Table 3. Gateway impact, side by side",
        figures(runs, OVERHEAD),
        "not measured: no overhead",
    );
    all.push(gaps(runs));
    all.push(saturation(runs));
    all.push(differences(runs));
    all
}

/// The summary for a terminal.
pub(super) fn page(runs: &[Run<'_>], out_at: &Path) -> String {
    let mut out = String::new();
    for (name, document) in runs {
        let users = maybe(document.t2_users, |users| format!("{users} users"));
        let ttft = document.soak.as_ref().and_then(|soak| soak.ttft_ms);
        let gate = maybe(document.overhead.as_ref(), |o| {
            o.isolated.map_or_else(
                || format!("{} with loopback", time(o.gate.mean)),
                |net| time(net.own_s),
            )
        });
        let says = format!(
            "{name}: {}, T2 {users}, soak TTFT {}, overhead {gate}",
            document.verdict.word(),
            maybe(ttft, ms)
        );
        add!(out, "{}", wrapped(&printable(&says), 2));
    }
    add!(
        out,
        "{}",
        wrapped(
            &printable(&format!("side by side: {}", out_at.display())),
            2
        )
    );
    out
}

fn verdicts(runs: &[Run<'_>]) -> Section {
    let mut section = Section::new("verdicts", "Verdicts");
    let mut table = Table::new(
        "Each campaign, the first of which the others are compared with",
        &["Run", "Verdict", "Evidence", "Scenario", "Why"],
    );
    for (name, document) in runs {
        let passed = document.verdict.exit_code() == 0;
        table.row([
            (*name).into(),
            Cell::held(passed, document.verdict.word(), document.verdict.word()),
            document.evidence().word().into(),
            document.scenario.name.as_str().into(),
            document.reason.as_str().into(),
        ]);
    }
    section.table(table, "");
    let kinds: BTreeSet<Evidence> = runs.iter().map(|(_, d)| d.evidence()).collect();
    if kinds.len() > 1 {
        section.text("Simulated and real campaigns stand beside each other here: their differences are not of gateways alone.");
    }
    section
}

fn figures(runs: &[Run<'_>], figures: &[Figure]) -> Vec<Row> {
    let row = |(name, show, value): &Figure| Row {
        name: (*name).into(),
        show: *show,
        values: runs.iter().map(|(_, document)| value(document)).collect(),
    };
    figures.iter().map(row).collect()
}

const PHASES: &[FigureOf<Phase>] = &[
    ("duration", time, |p| Some(p.to_s - p.from_s)),
    ("max. users", plain, |p| Some(f64::from(p.max_users))),
    ("peak RPS", plain, |p| Some(p.peak_requests_per_s)),
    ("error rate", percent, |p| Some(p.error_share)),
];

const LATENCY: &[FigureOf<Latency>] = &[
    ("engine mean", time, |row| row.engine_mean_s),
    ("client mean", time, |row| row.client.map(|q| q.mean)),
    ("client p99", time, |row| row.client.map(|q| q.p99)),
];

/// Figures of each row of a list, by the names of rows.
fn listed<T>(runs: &[Run<'_>], (list, name): List<T>, figures: &[FigureOf<T>]) -> Vec<Row> {
    let mut names: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|(_, document)| list(document)) {
        if !names.contains(&name(row)) {
            names.push(name(row));
        }
    }
    let rows = names.into_iter().flat_map(|known| {
        figures.iter().map(move |(figure, show, value)| {
            let of = |(_, document): &Run<'_>| {
                let row = list(document).iter().find(|row| name(row) == known);
                row.and_then(value)
            };
            Row {
                name: format!("{known}: {figure}"),
                show: *show,
                values: runs.iter().map(of).collect(),
            }
        })
    });
    rows.collect()
}

/// A column for each run; the others' cells say how far they are from the first's.
fn table(caption: &str, runs: &[Run<'_>], rows: Vec<Row>) -> Table {
    let mut titles = vec!["Figure".to_owned()];
    titles.extend(runs.iter().map(|(name, _)| format!("#{name}")));
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::new(caption, &titles);
    for row in rows
        .into_iter()
        .filter(|row| row.values.iter().any(Option::is_some))
    {
        let first = row.values.first().copied().flatten();
        let cells = row.values.iter().enumerate().map(|(at, value)| {
            let apart = value
                .zip(first)
                .filter(|(_, first)| at > 0 && *first != 0.0);
            let apart =
                apart.map(|(value, first)| format!(" ({})", difference(value / first - 1.0)));
            format!("{}{}", maybe(*value, row.show), apart.unwrap_or_default())
        });
        table.rows.push(
            std::iter::once(row.name.clone())
                .chain(cells)
                .map(Cell::from)
                .collect(),
        );
    }
    table
}

/// What each gateway adds, over time: whichever version of HTTP its campaign spoke.
fn gaps(runs: &[Run<'_>]) -> Section {
    let mut section = Section::new("gaps", "What the gateways add, over time");
    let mut chart = Chart::new(
        "Figure 6, overlaid: the gap",
        "time from the start of each, s",
        "gateway and loopback, ms",
    );
    for (name, document) in runs {
        left(&mut chart, document, ("gate_s", *name), 1e3);
    }
    chart.caption =
        "The gateway and the loopback to it and from it, mean, of each campaign.".into();
    section.chart(chart, "not measured: the gap over time");
    section
}

fn saturation(runs: &[Run<'_>]) -> Section {
    let mut section = Section::new("saturation", "Saturation");
    type Of = fn(&Step) -> Option<f64>;
    let charts: [(&str, Of); 2] = [
        ("Figure 4, overlaid: mean TTFT", |step| step.ttft_mean_s),
        ("Figure 4, overlaid: p99 TTFT", |step| step.ttft_p99_s),
    ];
    for (title, value) in charts {
        let steps = runs
            .iter()
            .map(|(name, document)| (*name, document.steps.as_slice()));
        let mut chart = ttft_against_users(title, steps, value);
        chart.caption = "Each campaign's windows of baseline and ramp over its users.".into();
        section.chart(chart, "not measured: no windows");
    }
    section
}

/// What was not the same in how the campaigns were run.
fn differences(runs: &[Run<'_>]) -> Section {
    let mut section = Section::new("differences", "What differs in how they were run");
    let told: Vec<BTreeMap<String, String>> =
        runs.iter().map(|(_, document)| setting(document)).collect();
    let keys: BTreeSet<&String> = told.iter().flat_map(BTreeMap::keys).collect();
    let mut titles = vec!["What"];
    titles.extend(runs.iter().map(|(name, _)| *name));
    let mut table = Table::new("Only what differs", &titles);
    for key in keys {
        let values: Vec<Option<&String>> = told.iter().map(|of| of.get(key)).collect();
        if values.iter().any(|value| Some(value) != values.first()) {
            let shown =
                |value: &Option<&String>| maybe(*value, |v| v.chars().take(SHOWN).collect());
            let cells = values.iter().map(shown);
            table.rows.push(
                std::iter::once(key.clone())
                    .chain(cells)
                    .map(Cell::from)
                    .collect(),
            );
        }
    }
    section.table(
        table,
        "nothing: scenario, seed, versions, inputs and machine are the same",
    );
    section
}

fn setting(document: &Document) -> BTreeMap<String, String> {
    let reproduce = &document.reproduce;
    let lines = reproduce.scenario.lines().count();
    let hash = ring::digest::digest(&ring::digest::SHA256, reproduce.scenario.as_bytes());
    let hash: String = hash
        .as_ref()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut all = BTreeMap::from([
        ("scenario".to_owned(), document.scenario.name.clone()),
        (
            "scenario's text".to_owned(),
            format!("{lines} lines, SHA-256 {hash}…"),
        ),
        ("evidence".to_owned(), document.evidence().word().to_owned()),
        ("seed".to_owned(), reproduce.seed.to_string()),
        ("tool".to_owned(), reproduce.tool.clone()),
        ("command".to_owned(), reproduce.command.clone()),
    ]);
    let maps = [
        ("under test", &document.scenario.under_test),
        ("input", &reproduce.hashes),
        ("version", &reproduce.versions),
        ("machine", &reproduce.machine),
    ];
    for (kind, map) in maps {
        all.extend(
            map.iter()
                .map(|(name, value)| (format!("{kind}: {name}"), value.clone())),
        );
    }
    all
}

fn ms(ms: f64) -> String {
    time(ms / 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "counts that are shown")]
const fn whole(n: u64) -> f64 {
    n as f64
}
