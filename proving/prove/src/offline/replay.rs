//! `prove engine replay`: a recorded run played again, and how near the outcome is.
//!
//! Invariant: errors are relative and signed; a positive one means that the simulation was slower.
//! Not here: the simulation (`simulator::replay`) and the comparison (`simulator::score`).

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use simulator::replay::{Blocks, Replayed, engine_of};
use simulator::score::{Score, Share};

use super::plot;
use crate::files;
use crate::text::wrapped;

/// Plays a recorded run again in virtual time and compares.
///
/// Limits and KV blocks are those of the recording; the costs are the preset's.
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
    /// KV blocks, whatever the recording says.
    #[arg(long)]
    blocks: Option<u32>,
    /// JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Draw running and waiting requests over time, recorded and simulated, as SVG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

pub(super) fn replay(options: &Replay) -> super::Outcome {
    let trace = files::trace(&options.dir)?;
    let preset = files::preset(&options.preset)?;
    let (scheduler, blocks) = engine_of(&trace, options.blocks);
    let replayed = simulator::replay::replay(&trace, scheduler, preset.step, |_| {})?;
    let score = Score::of(&trace, &replayed, options.score)
        .ok_or("no request in this share has more than one output token")?;
    if let Some(path) = &options.plot {
        files::write(path, &plot::draw(&trace.timeseries, &replayed.timeseries))?;
    }
    if options.json {
        println!("{:#}", document(&score, &replayed, blocks)?);
    } else {
        print(&score, &replayed, blocks);
    }
    Ok(())
}

fn document(score: &Score, replayed: &Replayed, blocks: Blocks) -> serde_json::Result<Value> {
    let mut members = Map::new();
    for (measure, compared) in score.measures() {
        for (part, error) in compared.errors() {
            members.insert(format!("{measure}_{part}_error"), json!(error));
        }
    }
    members.insert("preemptions".to_owned(), json!(replayed.preemptions));
    members.insert("steps".to_owned(), json!(replayed.steps));
    members.insert("kv_blocks".to_owned(), json!(blocks.count));
    members.insert(
        "kv_blocks_source".to_owned(),
        json!(blocks.source.explain()),
    );
    if let Value::Object(score) = serde_json::to_value(score)? {
        members.extend(score);
    }
    Ok(Value::Object(members))
}

fn print(score: &Score, replayed: &Replayed, blocks: Blocks) {
    let compared = format!(
        "{} requests compared; {} KV blocks, {}",
        score.requests,
        blocks.count,
        blocks.source.explain()
    );
    println!("{}", wrapped(&compared, 2));
    println!(
        "{:<12}{:>12}{:>12}{:>9}",
        "seconds", "recorded", "simulated", "error"
    );
    for (measure, compared) in score.measures() {
        let both = compared
            .recorded
            .parts()
            .into_iter()
            .zip(compared.simulated.parts());
        for (((part, recorded), (_, simulated)), (_, error)) in both.zip(compared.errors()) {
            let name = format!("{measure} {part}");
            println!(
                "{name:<12}{recorded:>12.4}{simulated:>12.4}{:>+8.1}%",
                error * 100.0
            );
        }
    }
    println!(
        "{} preemptions in {} steps",
        replayed.preemptions, replayed.steps
    );
    if let (Some(running), Some(waiting)) = (score.running_difference, score.waiting_difference) {
        let differs = format!(
            "second by second, running differs by {running:.1} requests on average, waiting by {waiting:.1}"
        );
        println!("{}", wrapped(&differs, 2));
    }
}
