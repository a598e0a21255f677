//! What lanes came to, for people.
//!
//! Not here: how sections look (`report`).

use super::summary::{Figures, Summary};
use crate::report::content::{Section, Table};
use crate::text::number;

pub(super) const TITLE: &str = "Traces of agents in lanes";
const ABSENT: &str = crate::report::figure::ABSENT;

pub(super) fn sections(summary: &Summary) -> Vec<Section> {
    vec![verdict(summary), published(summary), sent(summary)]
}

fn verdict(summary: &Summary) -> Section {
    let mut section = Section::new("verdict", TITLE);
    if let Some(engine) = &summary.engine {
        section.text(format!("{engine}."));
    }
    section.text(if summary.submission_valid {
        "By AgentX's rules.".to_owned()
    } else {
        format!(
            "Not by AgentX's rules: {}.",
            summary.submission_invalid_reasons.join(", ")
        )
    });
    section
}

/// The columns that are published.
fn published(summary: &Summary) -> Section {
    let mut section = Section::new("published", "The published table's columns");
    let mut times = Table::new("", &["", "#mean", "#p50", "#p90", "#p95", "#p99"]);
    let row = |name: &str, figures: Option<Figures>| {
        let cells = figures.map_or([None; 5], |figures| {
            [
                figures.mean,
                figures.p50,
                figures.p90,
                figures.p95,
                figures.p99,
            ]
            .map(Some)
        });
        let cells = cells.map(|value| value.map_or_else(|| ABSENT.to_owned(), time));
        let [mean, p50, p90, p95, p99] = cells;
        [
            name.into(),
            mean.into(),
            p50.into(),
            p90.into(),
            p95.into(),
            p99.into(),
        ]
    };
    times.row(row("TTFT", summary.ttft_s));
    times.row(row("ITL", summary.itl_s));
    times.row(row("request latency", summary.request_latency_s));
    section.table(times, "Nothing was answered in the measured time.");
    let rate = |value: f64| format!("{value:.1}");
    let some = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), rate);
    let share = summary
        .cached_share
        .map(|share| format!("{:.1} %", share * 100.0));
    let rows = [
        (
            "requests a second",
            format!("{:.3}", summary.requests_per_s),
        ),
        ("output tokens a second", rate(summary.output_tokens_per_s)),
        ("all tokens a second", rate(summary.total_tokens_per_s)),
        (
            "output tokens a second and GPU",
            some(summary.output_tokens_per_s_per_gpu),
        ),
        (
            "all tokens a second and GPU",
            some(summary.total_tokens_per_s_per_gpu),
        ),
        ("tokens of a prompt, mean", some(summary.prompt_tokens_mean)),
        (
            "tokens of an answer, mean",
            some(summary.output_tokens_mean),
        ),
        (
            "of prompts' tokens cached",
            share.unwrap_or_else(|| ABSENT.to_owned()),
        ),
    ];
    section.table(Table::figures("", ["", "#"], rows), "Nothing was measured.");
    section
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

fn sent(summary: &Summary) -> Section {
    let mut section = Section::new("sent", "What was sent");
    let rows = [
        ("lanes", number(summary.lanes.into())),
        ("traces", number(summary.traces)),
        ("left out as too long", number(summary.left_out.long)),
        (
            "left out as unreadable",
            number(summary.left_out.unread.len() as u64),
        ),
        ("plays begun", number(summary.plays)),
        ("primers, one token each", number(summary.primers)),
        ("warm-ups", number(summary.warm_ups)),
        (
            "seconds before the measurement",
            format!("{:.1}", summary.warm_up_s),
        ),
        ("seconds measured", format!("{:.0}", summary.measured_s)),
        ("requests sent in them", number(summary.requests)),
        ("answered", number(summary.answered)),
        ("errors", number(summary.errors)),
        ("cancelled after the grace", number(summary.cancelled)),
        (
            "idle left out: lanes",
            format!(
                "{} times, {:.0} s",
                summary.idle.lanes_times, summary.idle.lanes_s
            ),
        ),
        (
            "idle left out: all lanes",
            format!(
                "{} times, {:.0} s",
                summary.idle.all_times, summary.idle.all_s
            ),
        ),
    ];
    section.table(Table::figures("", ["", "#"], rows), "Nothing was sent.");
    if let Some(says) = &summary.said {
        section.text(format!("The first error said: {says}"));
    }
    for says in summary.left_out.unread.iter().take(5) {
        section.text(format!("Left out: {says}"));
    }
    section
}
