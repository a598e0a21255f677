//! `prove engine replay`: a recorded run played again, and how near the outcome is.
//!
//! Invariant: errors are relative and signed; a positive one means that the simulation was slower.
//! Not here: the simulation (`simulator::replay`) and the comparison (`simulator::score`).

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use simulator::kv::MOST_BLOCKS;
use simulator::replay::{Replayed, Setup};
use simulator::score::{Score, Share};
use simulator::trace::Trace;

use super::plot;
use crate::files;
use crate::report::plain;
use crate::text::{add, say, wrapped};

/// Plays a recorded run again in virtual time and compares.
///
/// Limits, parallelism and KV blocks are those of the recording, or where it does not say how many blocks there were,
/// the preset's; the costs are the preset's. Beside it stands what one constant step time would give, the best for the
/// requests that are not compared: what it explains as well, the recording does not prove.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Folder with requests.jsonl and meta.json, and timeseries.csv if at hand.
    dir: PathBuf,
    /// A preset's name or file.
    #[arg(long)]
    preset: String,
    /// Share of the requests, in order of arrival, that is compared.
    #[arg(long, default_value = "0..1")]
    score: Share,
    /// KV blocks of each engine, whatever the recording says.
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..=i64::from(MOST_BLOCKS)))]
    blocks: Option<u32>,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Draw running and waiting requests over time, recorded and simulated, as SVG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// What was compared.
struct Comparison {
    score: Score,
    /// Of the constant step time.
    null: Score,
    replayed: Replayed,
    setup: Setup,
    /// Steps beyond the lengths and batches that the preset's costs are from.
    outside_bounds: u64,
}

pub(super) fn replay(options: &Replay) -> super::Outcome {
    let trace = files::trace(&options.dir)?;
    let preset = files::preset(&options.preset)?;
    if let Some(path) = &options.plot {
        files::check_out(path, &options.dir)?;
    }
    if preset.model != trace.meta.model {
        let of = format!(
            "warning: the preset is of {}, and the recording of {}",
            preset.model, trace.meta.model
        );
        eprintln!("{}", wrapped(&of, 2));
    }
    let setup = Setup::of(&trace, options.blocks, Some(preset.scheduler.kv.blocks));
    let mut outside_bounds = 0;
    let replayed = simulator::replay::replay(&trace, &setup, preset.step, |iteration| {
        let outside = preset
            .bounds
            .is_some_and(|b| b.are_left_by(&iteration.load));
        outside_bounds += u64::from(outside);
    })?;
    let comparison = Comparison {
        score: score(&trace, &replayed, options.score)?,
        null: null(&trace, &setup, options.score)?,
        replayed,
        setup,
        outside_bounds,
    };
    if let Some(path) = &options.plot {
        let series = &comparison.replayed.timeseries;
        files::write(path, &plot::draw(&trace.timeseries, series))?;
    }
    if outside_bounds > 0 {
        let outside = format!(
            "warning: {outside_bounds} of {} steps had more sequences or longer ones than the recording that the preset \
             was fitted to: what they cost is extrapolated",
            comparison.replayed.steps
        );
        eprintln!("{}", wrapped(&outside, 2));
    }
    let page = if options.json {
        format!("{:#}\n", document(&comparison)?)
    } else {
        page(&comparison)
    };
    Ok(say(&page)?)
}

fn score(trace: &Trace, replayed: &Replayed, share: Share) -> Result<Score, &'static str> {
    Score::of(trace, replayed, share)
        .ok_or("no request in this share has more than one output token")
}

/// What the best constant step time gives. It is scaled on the requests that are not compared, or on all of them where
/// all are.
fn null(trace: &Trace, setup: &Setup, share: Share) -> Result<Score, Box<dyn std::error::Error>> {
    let compared = share.of(trace.requests.len());
    let all = compared.len() == trace.requests.len();
    let cost = simulator::fit::null(trace, setup, |i| all || !compared.contains(&i))?;
    let replayed = simulator::replay::replay(trace, setup, cost, |_| {})?;
    Ok(score(trace, &replayed, share)?)
}

fn document(comparison: &Comparison) -> serde_json::Result<Value> {
    let mut members = Map::new();
    for (prefix, score) in [("", &comparison.score), ("null_", &comparison.null)] {
        for (measure, compared) in score.measures() {
            for (part, error) in compared.errors() {
                members.insert(format!("{prefix}{measure}_{part}_error"), json!(error));
            }
        }
    }
    let (replayed, blocks) = (&comparison.replayed, comparison.setup.blocks);
    let figures = [
        ("preemptions", json!(replayed.preemptions)),
        ("steps", json!(replayed.steps)),
        ("steps_outside_bounds", json!(comparison.outside_bounds)),
        ("engines", json!(comparison.setup.parallelism.data)),
        ("kv_blocks", json!(blocks.count)),
        ("kv_blocks_source", json!(blocks.source.explain())),
    ];
    members.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    if let Value::Object(score) = serde_json::to_value(&comparison.score)? {
        members.extend(score);
    }
    Ok(Value::Object(members))
}

fn page(comparison: &Comparison) -> String {
    let mut page = String::new();
    let Comparison {
        score,
        null,
        replayed,
        setup,
        ..
    } = comparison;
    let engines = match setup.parallelism.data {
        1 => String::new(),
        n => format!(" in each of {n} engines"),
    };
    let compared = format!(
        "{} requests compared; {} KV blocks{engines}, {}",
        score.requests,
        setup.blocks.count,
        setup.blocks.source.explain()
    );
    add!(page, "{}", wrapped(&compared, 2));
    let head = [
        "seconds",
        "recorded",
        "simulated",
        "error",
        "of a constant step",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for ((measure, compared), (_, null)) in score.measures().into_iter().zip(null.measures()) {
        let (recorded, simulated) = (&compared.recorded, &compared.simulated);
        let both = recorded.parts().into_iter().zip(simulated.parts());
        let errors = compared.errors().into_iter().zip(null.errors());
        for (((part, recorded), (_, simulated)), ((_, error), (_, null))) in both.zip(errors) {
            lines.push(vec![
                format!("{measure} {part}"),
                format!("{recorded:.4}"),
                format!("{simulated:.4}"),
                format!("{:+.1}%", error * 100.0),
                format!("{:+.1}%", null * 100.0),
            ]);
        }
    }
    page.push_str(&plain::table(lines));
    add!(
        page,
        "{} preemptions in {} steps",
        replayed.preemptions,
        replayed.steps
    );
    if let (Some(running), Some(waiting)) = (score.running_difference, score.waiting_difference) {
        let differs = format!(
            "second by second, running differs by {running:.1} requests on average, waiting by {waiting:.1}"
        );
        add!(page, "{}", wrapped(&differs, 2));
    }
    page
}
