//! What `prove agents` shows: both loops as figures, every measure of both, and the saturation points.
//!
//! Not here: how sections look (`report`).

use super::compare::{LEVEL, Measure};
use super::{Loop, Outcome, Saturation};
use crate::report::chart::{Chart, Side};
use crate::report::content::{Block, Cell, Section, Table};
use crate::text::number;

pub(super) const TITLE: &str = "Live agents and their replay";

pub(super) fn sections(outcome: &Outcome) -> Vec<Section> {
    let mut all = vec![verdict(outcome), loops(outcome), measures(outcome)];
    all.extend(outcome.t2.as_ref().map(saturation));
    all.push(distributions(&outcome.measures));
    all
}

fn verdict(outcome: &Outcome) -> Section {
    let mut section = Section::new("verdict", TITLE);
    section.text(format!("{}.", outcome.engine));
    section.text(format!(
        "{}: {} sessions were done by {} live agents, recorded, and replayed by as many users in an order of its own{}.",
        outcome.verdict.shown(),
        number(outcome.sessions),
        number(outcome.agents.into()),
        if outcome.is_other_answers {
            ", before an engine that gives other answers of the same lengths"
        } else {
            ""
        },
    ));
    section
}

/// The paper's Figures 1 and 2, with what each step took.
fn loops(outcome: &Outcome) -> Section {
    let (live, replay) = (&outcome.live, &outcome.replay);
    let mut section = Section::new("loops", "Figures 1 and 2: both loops");
    section.blocks.push(Block::Code(figure_1(live)));
    section.blocks.push(Block::Code(figure_2(replay)));
    let times = live.cpu_us_per_request / replay.cpu_us_per_request.max(1e-9);
    section.text(format!(
        "The client of a live agent costs {times:.1} times the CPU of the replay, request by request."
    ));
    section
}

fn figure_1(live: &Loop) -> String {
    let us =
        |value: Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.0} µs"));
    let lines = [
        format!(
            "Figure 1. The live loop: {} requests, {:.0} µs of CPU each",
            number(live.requests),
            live.cpu_us_per_request
        ),
        format!(
            "  ┌> write the whole history as JSON   {}",
            us(live.writing_us)
        ),
        format!(
            "  │  send it, wait for the first token {:.0} ms",
            live.ttft_s * 1e3
        ),
        format!(
            "  │  read and parse each event         {}, {:.0} events",
            us(live.reading_us),
            live.events_per_request.unwrap_or(0.0)
        ),
        format!(
            "  │  run the tools that were called    {:.2} s",
            live.pause_s
        ),
        "  └─ append what they found".to_owned(),
    ];
    lines.join("\n")
}

fn figure_2(replay: &Loop) -> String {
    let lines = [
        format!(
            "Figure 2. The replay: {} requests, {:.0} µs of CPU each",
            number(replay.requests),
            replay.cpu_us_per_request
        ),
        "  ┌> look up where the turn's bytes lie".to_owned(),
        format!(
            "  │  pause as recorded                 {:.2} s",
            replay.pause_s
        ),
        format!(
            "  │  send them, wait for the first token {:.0} ms",
            replay.ttft_s * 1e3
        ),
        "  └─ time what comes at the socket, unparsed".to_owned(),
    ];
    lines.join("\n")
}

fn measures(outcome: &Outcome) -> Section {
    let mut section = Section::new("measures", "What the engine had of both");
    let mut table = Table::new(
        "",
        &[
            "measure",
            "#live: mean",
            "#replay: mean",
            "#live: p50, p99",
            "#replay: p50, p99",
            "#distance",
            "#p",
            "law",
        ],
    );
    for measure in &outcome.measures {
        let value = |value: f64| shown(measure, value);
        let both = |p50: f64, p99: f64| format!("{}, {}", value(p50), value(p99));
        table.row([
            measure.name.into(),
            value(measure.live.mean).into(),
            value(measure.replay.mean).into(),
            both(measure.live.p50, measure.live.p99).into(),
            both(measure.replay.p50, measure.replay.p99).into(),
            format!("{:.3}", measure.distance).into(),
            format!("{:.3}", measure.p).into(),
            Cell::held(measure.is_equal, "the same", "another"),
        ]);
    }
    section.table(table, "No session was whole in both runs.");
    section.text(format!(
        "Two-sample Kolmogorov-Smirnov. A law is another where p is below {:.4} ({LEVEL} over the number of measures). Values of a \
         session hang together, so p is the share of exchanges of whole sessions that are as far apart; of gaps between arrivals it is \
         Kolmogorov's.",
        LEVEL / outcome.measures.len().max(1) as f64
    ));
    for measure in &outcome.measures {
        if let Some(different) = measure.different {
            section.text(format!(
                "{}: {} of {} requests have another number in the replay.",
                measure.name,
                number(different),
                number(measure.live.count)
            ));
        }
    }
    section
}

fn shown(measure: &Measure, value: f64) -> String {
    match measure.unit {
        "s" if value < 1.0 => format!("{:.1} ms", value * 1e3),
        "s" => format!("{value:.2} s"),
        _ => format!("{value:.0}"),
    }
}

fn saturation(t2: &Saturation) -> Section {
    let mut section = Section::new("t2", "The saturation point, T2");
    let says = |users: Option<u32>| {
        users.map_or_else(
            || "not reached".to_owned(),
            |users| format!("{users} users"),
        )
    };
    section.text(format!(
        "Live agents: {}. The replay: {}. They come {} at a time; T2 is where the mean time to first token passes 3 times its baseline in two \
         consecutive windows.",
        says(t2.live),
        says(t2.replay),
        t2.step
    ));
    let mut table = Table::new("", &["#users", "live", "replay"]);
    let steps = t2.live_steps.len().max(t2.replay_steps.len());
    for at in 0..steps {
        let (one, other) = (t2.live_steps.get(at), t2.replay_steps.get(at));
        let users = one.or(other).map_or(0, |step| step.users);
        let cell = |step: Option<&super::Step>| match step {
            None => "ended".to_owned(),
            Some(step) if step.is_stable => "stable".to_owned(),
            Some(step) => format!("{} users: {}", step.users, step.says),
        };
        table.row([
            users.to_string().into(),
            cell(one).into(),
            cell(other).into(),
        ]);
    }
    section.table(table, "The ramps ended before their first window.");
    section
}

fn distributions(measures: &[Measure]) -> Section {
    let mut section = Section::new("distributions", "Distributions");
    for measure in measures {
        let x = if measure.unit.is_empty() {
            measure.name.to_owned()
        } else {
            format!("{}, {}", measure.name, measure.unit)
        };
        let mut chart = Chart::new(measure.name, &x, "share of requests at most so great");
        for (name, values) in [("live agents", &measure.live), ("replay", &measure.replay)] {
            let steps = values.hundredths.len().saturating_sub(1).max(1) as f64;
            let points = (0..).zip(&values.hundredths);
            chart.line(
                name,
                Side::Left,
                points.map(|(at, value)| (*value, Some(f64::from(at) / steps))),
            );
        }
        section.chart(chart, "Nothing was measured.");
    }
    section
}
