//! The course of the campaign: its phases, its decisions, and where the system saturated.
//!
//! Not here: figures of the soak (`soak`).

use crate::report::chart::{Chart, Kind, Mark, Side, TIME};
use crate::report::content::{Cell, Section, Table, Tone};
use crate::report::document::{Document, Event, Latency, Step};
use crate::report::figure::{count, duration, maybe, percent, plain, sum, time};
use crate::report::summary::gates_at_the_edge;

/// The decision to go on with more users.
const ADVANCED: &str = "advanced";
/// Decisions beyond these are counted.
const MOST_EVENTS: usize = 200;

pub(super) fn phases(document: &Document) -> Section {
    let mut section = Section::new("phases", "Phases");
    let table = Table::each(
        "Table 1. Phases: how long each took, at how many users, and what failed",
        &document.phases,
        &[
            ("Phase", |p| p.name.as_str().into()),
            ("#Duration", |p| duration(p.to_s - p.from_s).into()),
            ("#Max. users", |p| p.max_users.to_string().into()),
            ("#Requests", |p| count(p.requests).into()),
            ("#Mean RPS", |p| plain(p.requests_per_s).into()),
            ("#Peak RPS (10 s)", |p| plain(p.peak_requests_per_s).into()),
            ("#Errors", |p| count(p.errors).into()),
            ("#Error rate", |p| percent(p.error_share).into()),
        ],
    );
    section.table(table, "not measured: no phase was begun");
    section
}

pub(super) fn decisions(document: &Document) -> Section {
    let mut section = Section::new("decisions", "Decisions");
    let mut chart = Chart::new("Users and throughput over time", TIME, "users");
    super::left(&mut chart, document, ("users", "users"), 1.0);
    if let Some(line) = chart.lines.last_mut() {
        line.kind = Kind::Steps;
    }
    chart.right = Some("requests/s".into());
    super::right(
        &mut chart,
        document,
        ("requests_per_s", "requests per second"),
        1.0,
    );
    super::right(
        &mut chart,
        document,
        ("errors_per_s", "errors per second"),
        1.0,
    );
    super::add_phases(&mut chart, document);
    chart.caption =
        "Users as the controller set them; dashed uprights are where a phase begins.".into();
    section.chart(chart, "not measured: no series of users");
    let mut table = Table::new(
        "Decisions, by what was read at that moment",
        &["#At", "Decision", "#Users", "Why"],
    );
    let row = |event: &Event| -> [Cell; 4] {
        [
            duration(event.at_s).into(),
            event.kind.as_str().into(),
            event.users.to_string().into(),
            event.says.as_str().into(),
        ]
    };
    let shown = document.events.get(..MOST_EVENTS);
    let shown = shown.unwrap_or(&document.events);
    for alike in shown.chunk_by(|a, b| a.kind == ADVANCED && b.kind == ADVANCED) {
        if let [first, between @ .., last] = alike
            && between.len() > 2
        {
            let says = format!(
                "{} steps more, each after a window in which every gate was quiet",
                between.len()
            );
            table.row(row(first));
            table.row(["…".into(), ADVANCED.into(), "…".into(), says.into()]);
            table.row(row(last));
        } else {
            alike.iter().for_each(|event| table.row(row(event)));
        }
    }
    section.table(table, "not measured: nothing was decided");
    if let Some(more) = document.events.len().checked_sub(MOST_EVENTS + 1) {
        section.text(format!(
            "{} further decisions stand in the report's JSON.",
            more + 1
        ));
    }
    section
}

pub(super) fn saturation(document: &Document) -> Section {
    let mut section = Section::new("saturation", "Saturation");
    section.text(boundary(document));
    let mut chart = ttft_against_users(
        "Figure 4. Saturation curve",
        [(
            if tells_ttft(document) {
                "mean TTFT, as the engine says"
            } else {
                "mean TTFT as users had it"
            },
            document.steps.as_slice(),
        )],
        |step| step.ttft_mean_s,
    );
    let by = |value: fn(&Step) -> Option<f64>| {
        sorted(&document.steps).map(move |step| (f64::from(step.users), value(step)))
    };
    let _ = chart.line(
        "p99 TTFT as users had it",
        Side::Left,
        by(|step| step.ttft_p99_s),
    );
    #[expect(clippy::cast_precision_loss, reason = "a count that is drawn")]
    let preemptions = by(|step| step.preemptions.map(|n| n as f64));
    if let Some(line) = chart.line("preemptions in the window", Side::Right, preemptions) {
        line.kind = Kind::Bars;
        chart.right = Some("preemptions".into());
    }
    marks(&mut chart, document);
    chart.caption = "Time to the first token against concurrency. One point for each window; where the mean stays \
                     above the line, the system is saturated."
        .into();
    section.chart(
        chart,
        "not measured: no window of baseline or ramp came to its end",
    );
    section.chart(
        knee(document),
        "not measured: there is no knee to draw without windows",
    );
    section.table(steps(document), "not measured: no window came to its end");
    section
}

/// A KV cache is full above this share: requests wait for blocks.
const FULL: f64 = 0.9;

/// Why the limit is where it is.
fn boundary(document: &Document) -> String {
    if document.t3 {
        return format!("The hard stop (T3): {}.", document.reason);
    }
    let Some(users) = document.t2_users else {
        return "No saturation point was found: no gate that ends the ramp stayed open, or the ramp ended before."
            .into();
    };
    let known: Vec<u64> = document
        .steps
        .iter()
        .filter_map(|step| step.preemptions)
        .collect();
    let kv = document
        .steps
        .iter()
        .filter_map(|step| step.kv_cache)
        .fold(None, |most: Option<f64>, kv| {
            Some(most.map_or(kv, |most| most.max(kv)))
        });
    let is_full = kv.is_some_and(|kv| kv >= FULL);
    let kv = maybe(kv, percent);
    let edge = gates_at_the_edge(document).map_or_else(String::new, |says| format!(" ({says})"));
    match (known.is_empty(), sum(known)) {
        (true, _) => format!(
            "T2 at {users} users{edge}. Whether compute or memory bounds it is not known: no preemptions were read."
        ),
        (false, 0) if is_full => format!(
            "Memory-bound: T2 came at {users} users{edge} with up to {kv} of the KV cache in use. No request was \
             preempted, but requests waited for blocks."
        ),
        (false, 0) if engine_slowed(document) => format!(
            "Compute-bound: T2 came at {users} users{edge} with zero preemptions and at most {kv} of the KV cache in use. \
             Memory was left; the engine could not compute prompts as fast as they came."
        ),
        (false, 0) => format!(
            "T2 came at {users} users{edge} with zero preemptions and at most {kv} of the KV cache in use. What bounds it \
             is not known: the engine's own mean TTFT was not seen above its limit, so that the gateway, the network or \
             the client may."
        ),
        (false, n) => format!(
            "Memory-bound: T2 came at {users} users{edge} after {} preemptions, with up to {kv} of the KV cache in use. \
             The engine put requests off because their blocks had no room.",
            count(n)
        ),
    }
}

/// Whether the engine itself says that its mean TTFT passed the limit.
fn engine_slowed(document: &Document) -> bool {
    let is_above = |limit: f64| {
        let means = document.steps.iter().filter_map(|step| step.ttft_mean_s);
        means.into_iter().any(|mean| mean > limit)
    };
    tells_ttft(document) && document.ttft_limit_s.is_some_and(is_above)
}

/// Whether the engine tells its own TTFT; where it does not, the windows' is the client's.
fn tells_ttft(document: &Document) -> bool {
    let tells = |row: &Latency| row.measure == "TTFT" && row.engine_mean_s.is_some();
    document.latency.iter().any(tells)
}

fn sorted(steps: &[Step]) -> impl Iterator<Item = &Step> {
    let mut steps: Vec<&Step> = steps.iter().collect();
    steps.sort_by(|a, b| a.users.cmp(&b.users).then(a.from_s.total_cmp(&b.from_s)));
    steps.into_iter()
}

/// A line for each run over its users.
pub(in crate::report) fn ttft_against_users<'a>(
    title: &str,
    runs: impl IntoIterator<Item = (&'a str, &'a [Step])>,
    value: fn(&Step) -> Option<f64>,
) -> Chart {
    let mut chart = Chart::new(title, "concurrent users", "TTFT, s");
    for (name, steps) in runs {
        let points = sorted(steps).map(|step| (f64::from(step.users), value(step)));
        let _ = chart.line(name, Side::Left, points);
    }
    chart
}

fn marks(chart: &mut Chart, document: &Document) {
    if let Some(baseline) = document.baseline_ttft_ms {
        let says = format!("baseline {}", time(baseline / 1e3));
        chart.marks.push(Mark::Level {
            at: baseline / 1e3,
            says,
        });
    }
    if let Some(limit) = document.ttft_limit_s {
        let times = document
            .baseline_ttft_ms
            .filter(|b| *b > 0.0)
            .map(|b| limit / (b / 1e3));
        let says = format!(
            "{} × baseline: {}",
            maybe(times, |times| format!("{times:.1}")),
            time(limit)
        );
        chart.marks.push(Mark::Level { at: limit, says });
    }
    if let Some(users) = document.t2_users {
        chart.marks.push(Mark::Across {
            at: f64::from(users),
            says: format!("T2: {users} users"),
        });
    }
    if let Some(soak) = &document.soak {
        let says = format!("retract: {} users", soak.users);
        chart.marks.push(Mark::Across {
            at: f64::from(soak.users),
            says,
        });
    }
}

fn knee(document: &Document) -> Chart {
    let mut chart = Chart::new(
        "Knee: latency against throughput",
        "requests per second",
        "TTFT, s",
    );
    let labels: Vec<String> = sorted(&document.steps)
        .filter(|step| step.ttft_mean_s.is_some())
        .map(|step| {
            format!(
                "{} users: {} requests/s, {}",
                step.users,
                plain(step.requests_per_s),
                maybe(step.ttft_mean_s, time)
            )
        })
        .collect();
    let points = sorted(&document.steps).map(|step| (step.requests_per_s, step.ttft_mean_s));
    if let Some(line) = chart.line("mean TTFT, labelled by users", Side::Left, points) {
        line.labels = labels;
        line.names = sorted(&document.steps)
            .filter(|step| step.ttft_mean_s.is_some())
            .map(|step| step.users.to_string())
            .collect();
    }
    chart.caption = "Throughput across, latency up; the number beside a point is its users. Beyond the knee more users \
                     bring latency and no throughput."
        .into();
    chart
}

fn steps(document: &Document) -> Table {
    Table::each(
        "Windows of baseline and ramp",
        &document.steps,
        &[
            ("#Users", |s| s.users.to_string().into()),
            ("#From", |s| duration(s.from_s).into()),
            ("#RPS", |s| plain(s.requests_per_s).into()),
            ("#Tokens/s", |s| maybe(s.output_tokens_per_s, plain).into()),
            ("#TTFT mean", |s| maybe(s.ttft_mean_s, time).into()),
            ("#TTFT p50", |s| maybe(s.ttft_p50_s, time).into()),
            ("#TTFT p99", |s| maybe(s.ttft_p99_s, time).into()),
            ("#TPOT mean", |s| maybe(s.tpot_mean_s, time).into()),
            ("#E2E mean", |s| maybe(s.e2e_mean_s, time).into()),
            ("#KV cache", |s| maybe(s.kv_cache, percent).into()),
            ("#Running", |s| maybe(s.running, plain).into()),
            ("#Waiting", |s| maybe(s.waiting, plain).into()),
            ("#Preempted", |s| maybe(s.preemptions, count).into()),
            ("#Errors", |s| count(s.errors).into()),
            ("Gates", |s| gates(s)),
        ],
    )
}

fn gates(step: &Step) -> Cell {
    let is_quiet = step.is_stable && step.says.is_empty();
    let text = if is_quiet { "quiet" } else { &step.says };
    let tone = if step.is_stable {
        Tone::Plain
    } else {
        Tone::Bad
    };
    let text = text.to_owned();
    Cell { text, tone }
}
