//! `tollgate prices`: what models cost at their providers, by a catalogue, and what differs between two.
//!
//! Not here: the catalogue and what it prices (`config`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use config::{CatalogueModel, Located};
use ledger::report::{decimal, laid_out, wrapped};
use policy::price::{Pico, Rates};
use serde_json::{Value, json};

use crate::output::{complain, told};
use crate::width;
use crate::words::counted;
use crate::world::World;

/// Options of `prices`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A catalogue of your own [default: the one that is built in].
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Say what differs from this catalogue: what is new, what is gone, what costs something else.
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Models whose names begin so.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    model: String,
    /// For machines.
    #[arg(long)]
    json: bool,
    /// Print the catalogue that is built in, for a file of your own.
    #[arg(long, conflicts_with_all = ["file", "since", "model", "json"])]
    print: bool,
}

/// Prints what was asked for; 1 where a catalogue is not good.
pub(crate) fn prices(options: &Options) -> ExitCode {
    if options.print {
        return told(config::BUILT_IN_CATALOGUE.trim_end());
    }
    let Some(now) = read(options.file.as_deref(), &options.model) else {
        return ExitCode::FAILURE;
    };
    let Some(since) = &options.since else {
        return told(&match options.json {
            true => pretty(&now.iter().map(as_json).collect()),
            false => table(&now),
        });
    };
    let Some(before) = read(Some(since), &options.model) else {
        return ExitCode::FAILURE;
    };
    let changes = changes(&before, &now);
    told(&match options.json {
        true => pretty(&changes.iter().map(Change::as_json).collect()),
        false => summary(&changes),
    })
}

/// The models of a catalogue whose names begin so; faults are told.
fn read(file: Option<&Path>, begins: &str) -> Option<Vec<CatalogueModel>> {
    match config::catalogue(file, &World) {
        Ok(mut models) => {
            let fits = |name: &String| name.starts_with(begins);
            models.retain(|model| fits(&model.name) || model.also.iter().any(fits));
            Some(models)
        }
        Err(faults) => {
            for fault in &faults.faults {
                let file = fault.file.as_deref().unwrap_or(&faults.file);
                let line = Located { file, fault }.to_string();
                complain(&wrapped(&line, width::of(io::stderr()), 2));
            }
            None
        }
    }
}

/// A rate as the price of a million tokens.
fn of_a_million(rate: Pico) -> String {
    decimal(rate.0.saturating_mul(1_000_000))
}

fn tokens(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// Columns that are names: what is left is numbers.
const NAMES: usize = 3;

fn table(models: &[CatalogueModel]) -> String {
    let heads = [
        "model", "provider", "prompt", "input", "cached", "output", "window", "as of",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for model in models {
        let price = &model.price;
        let row = |prompt: String, rates: &Rates| {
            vec![
                model.name.clone(),
                model.provider.clone(),
                prompt,
                of_a_million(rates.input),
                of_a_million(rates.cached),
                of_a_million(rates.output),
                tokens(model.window),
                model.as_of.clone(),
            ]
        };
        let any = if price.tiers.is_empty() {
            "any"
        } else {
            "short"
        };
        rows.push(row(any.to_owned(), &price.rates));
        for tier in &price.tiers {
            rows.push(row(format!("above {}", tier.above), &tier.rates));
        }
    }
    let listed = counted(models.len(), "model");
    format!(
        "{}\n{listed}; USD for a million tokens, at the provider's own address",
        laid_out(&rows, NAMES, width::of(io::stdout())).trim_end()
    )
}

fn rates_as_json(rates: &Rates) -> Value {
    json!({
        "input": of_a_million(rates.input),
        "cached_input": of_a_million(rates.cached),
        "cache_write_5m": of_a_million(rates.cache_write_5m),
        "cache_write_1h": of_a_million(rates.cache_write_1h),
        "audio_input": of_a_million(rates.audio_input),
        "output": of_a_million(rates.output),
        "reasoning": of_a_million(rates.reasoning),
        "audio_output": of_a_million(rates.audio_output),
    })
}

fn as_json(model: &CatalogueModel) -> Value {
    let price = &model.price;
    let tiers = price.tiers.iter();
    let tiers: Vec<Value> = tiers
        .map(|tier| json!({ "above": tier.above, "rates": rates_as_json(&tier.rates) }))
        .collect();
    json!({
        "model": model.name,
        "also": model.also,
        "provider": model.provider,
        "hosts": model.hosts,
        "currency": *price.currency,
        "per": 1_000_000,
        "request": decimal(price.request.0),
        "rates": rates_as_json(&price.rates),
        "tiers": tiers,
        "window": model.window,
        "output_max": model.output_max,
        "can": model.can,
        "source": model.source,
        "as_of": model.as_of,
    })
}

fn pretty(all: &Vec<Value>) -> String {
    serde_json::to_string_pretty(all).unwrap_or_default()
}

/// A name that is in one catalogue alone, or whose price is another in the second.
#[derive(Debug)]
struct Change<'c> {
    name: &'c str,
    before: Option<&'c CatalogueModel>,
    after: Option<&'c CatalogueModel>,
}

/// Each model under each of its names.
fn names(models: &[CatalogueModel]) -> impl Iterator<Item = (&str, &CatalogueModel)> {
    models.iter().flat_map(|model| {
        let names = std::iter::once(&model.name).chain(&model.also);
        names.map(move |name| (name.as_str(), model))
    })
}

fn find<'c>(
    models: &'c [CatalogueModel],
    provider: &str,
    name: &str,
) -> Option<&'c CatalogueModel> {
    let mut all = names(models);
    let found = all.find(|(known, model)| *known == name && model.provider == provider);
    found.map(|(_, model)| model)
}

fn cost_the_same(one: &CatalogueModel, other: &CatalogueModel) -> bool {
    let (one, other) = (&one.price, &other.price);
    (one.rates, &one.tiers, one.request) == (other.rates, &other.tiers, other.request)
}

fn changes<'c>(before: &'c [CatalogueModel], now: &'c [CatalogueModel]) -> Vec<Change<'c>> {
    let mut changes = Vec::new();
    for (name, model) in names(before) {
        let after = find(now, &model.provider, name);
        if after.is_none_or(|after| !cost_the_same(model, after)) {
            changes.push(Change {
                name,
                before: Some(model),
                after,
            });
        }
    }
    for (name, model) in names(now) {
        if find(before, &model.provider, name).is_none() {
            changes.push(Change {
                name,
                before: None,
                after: Some(model),
            });
        }
    }
    changes
}

impl Change<'_> {
    fn as_json(&self) -> Value {
        let [before, after] = [self.before, self.after].map(|model| model.map(as_json));
        json!({ "model": self.name, "before": before, "after": after })
    }

    fn row(&self) -> Vec<String> {
        let (mark, of) = match (self.before, self.after) {
            (None, Some(after)) => ("new", Some(after)),
            (Some(before), None) => ("gone", Some(before)),
            (_, after) => ("changed", after),
        };
        let rate = |of: fn(&Rates) -> Pico| {
            let told = |model: &CatalogueModel| of_a_million(of(&model.price.rates));
            match [self.before, self.after].map(|model| model.map(told)) {
                [Some(before), Some(after)] if before == after => after,
                [Some(before), Some(after)] => format!("{before} -> {after}"),
                [before, after] => before.or(after).unwrap_or_default(),
            }
        };
        vec![
            self.name.to_owned(),
            of.map_or_else(String::new, |model| model.provider.clone()),
            mark.to_owned(),
            rate(|rates| rates.input),
            rate(|rates| rates.cached),
            rate(|rates| rates.output),
        ]
    }
}

fn summary(changes: &[Change<'_>]) -> String {
    if changes.is_empty() {
        return "no price differs".to_owned();
    }
    let heads = ["model", "provider", "", "input", "cached", "output"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(changes.iter().map(Change::row));
    laid_out(&rows, NAMES, width::of(io::stdout()))
}
