//! `tollgate tokens check`: engines are asked what prompts count, now, and what differs is shown.
//!
//! Invariant: it needs no gate that runs and changes nothing: nothing is generated and nothing is written.
//! Not here: asking (`calibration`), how the answer reads (`calibration::said`).

use std::path::PathBuf;
use std::sync::Arc;

use ::tokens::calibration::{Calibration, Summary};
use clap::{Args, Subcommand};
use counting::{CountedModel, TokenizerCache};
use policy::revision::Revision;

use crate::calibration::engines::{Engines, NoWay};
use crate::calibration::round::Ids;
use crate::calibration::said::{Known, as_json, parting, table};
use crate::calibration::{About, Wanted, asked_of, passed_over};
use crate::running::{load, publication};
use crate::services::{Moment, Services};
use crate::source::Source;
use crate::world::World;
use crate::{pool, width};

/// Options of `tokens`.
#[derive(Debug, Args)]
pub(crate) struct Tokens {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Ask engines what prompts count, and compare it with what the gate counts.
    ///
    /// Each engine is asked for the same few dozen prompts, with every feature that is rendered in a way of its
    /// own: tools, system messages, parts, reasoning and others. Nothing is generated. What vLLM can be
    /// asked is asked: /render, /v1/messages/count_tokens, /tokenize. The exit code is 1 where anything differs, or
    /// an engine cannot be reached.
    #[command(before_help = "Example:\n  tollgate tokens check -c tollgate.yaml --backend engine")]
    Check(Check),
}

#[derive(Debug, Args)]
struct Check {
    /// Configuration file [default: tollgate.yaml of the current directory, else the environment].
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask the engines of this backend alone.
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The question makes no sense.
    Asked(String),
    /// It could not be done.
    Said(String),
}

/// Answers; the second part is whether nothing differs.
///
/// # Errors
/// [`Fault`], in words.
pub(crate) fn tokens(options: &Tokens) -> Result<(String, bool), Fault> {
    let Verb::Check(asked) = &options.verb;
    let known = known(asked)?;
    let text = if asked.json {
        format!("{:#}", as_json(&known))
    } else if known.is_empty() {
        "nobody was asked: no model of these backends is counted, or their engines have none of those that are".to_owned()
    } else {
        table(&known, width::of(std::io::stdout()))
    };
    let is_good = |known: &Known| !known.differs() && !known.is_away;
    Ok((text, known.iter().all(is_good)))
}

fn known(asked: &Check) -> Result<Vec<Known>, Fault> {
    let source = Source::of(asked.config.as_deref());
    let loaded = load(source.file(), &World).map_err(|faults| Fault::Said(faults.to_string()))?;
    if loaded.host.tokenizers.is_empty() {
        let says = "nothing is counted, so there is nothing to compare; write `tokenizers`";
        return Err(Fault::Said(format!("{}: {says}", source.name().display())));
    }
    let backends = loaded.snapshot.backends.iter();
    let backends: Vec<String> = backends.map(|backend| backend.name.to_string()).collect();
    if let Some(name) = &asked.backend
        && !backends.contains(name)
    {
        let all = backends.join(", ");
        return Err(Fault::Asked(format!(
            "there is no backend {name:?}; there are {all}"
        )));
    }
    let cache = TokenizerCache::default();
    let counters = pool::build(&cache, &loaded.host.tokenizers).map_err(Fault::Said)?;
    let services = Services::default();
    let moment = Moment::Start(&services);
    let (_, current) = publication(loaded, Revision::first, &World, moment).map_err(Fault::Said)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::Said(format!("cannot start: {error}")))?;
    let counter = |key| counters.get(&key).map(Arc::clone);
    let wanted = asked
        .backend
        .as_deref()
        .map_or(Wanted::All, Wanted::Backend);
    Ok(runtime.block_on(compared(&current.engines, counter, wanted)))
}

async fn compared(
    engines: &Engines,
    counter: impl Fn(u64) -> Option<Arc<::tokens::Counter>> + Sync,
    wanted: Wanted<'_>,
) -> Vec<Known> {
    let mut all = Vec::new();
    let mut abouts = Vec::new();
    asked_of(engines, &counter, wanted, Ids::Kept, |about| {
        abouts.push(about);
        true
    })
    .await;
    for About {
        of:
            CountedModel {
                backend,
                model,
                tokenizer: key,
            },
        began_s,
        round,
        fault,
    } in abouts
    {
        let mut known = Known {
            summary: Summary::default(),
            is_away: matches!(fault, Some(NoWay::Now(_))),
            fault: fault.map(|fault| fault.why().to_owned()),
            is_part: round.as_ref().is_some_and(|round| !round.is_whole()),
            parting: None,
            round: None,
            backend,
            model,
        };
        if let Some(round) = round {
            if round.says_anything() {
                // What is found is shown.
                let mut calibration = Calibration::default();
                let _ = round.told_to(&mut calibration, began_s);
                known.summary = calibration.summary();
            }
            if let Some(counter) = counter(key).filter(|_| known.differs()) {
                known.parting = parting(engines, &known.backend, &round, &counter).await;
            }
            known.round = Some(round);
        }
        all.push(known);
    }
    all.extend(passed_over(engines).filter(|known| wanted.has_backend(&known.backend)));
    all
}
