//! The counting pool as the configuration asks for it, with its rows' way to the ledger.
//!
//! Not here: counting and reconciling (`counting`), what a count changes in a row (`ledger::Settlement`).

use std::sync::Arc;

use config::{ContentFormat, EngineStart, TokenizerSource, Vocabulary};
use counting::{Counters, CountingPool, Counts, LATE, TokenizerCache};
use ledger::{Defer, Intake, Settlement};
use policy::counting::Settings;
use telemetry::WorkerMetrics;
use tokens::{BuiltIn, ContentForm, Counter, TemplateSettings};

/// The pool; rows of the ledger wait in it.
pub(crate) type Pool = CountingPool<Box<Settlement>>;

/// Starts the threads, where there are so many CPUs; rows go to this ledger, where there is one.
pub(crate) fn start(
    settings: &Settings,
    cpus: f64,
    cache: Arc<TokenizerCache>,
    intake: Option<Intake>,
    facts: WorkerMetrics,
) -> Result<Pool, String> {
    let settle = move |mut row: Box<Settlement>, counts: Option<Counts>| {
        match counts {
            Some(counts) => {
                row.count(counts.prompt, counts.completion, counts.billed);
                row.doubt(counts.prompt_doubt);
                row.uncounted(counts.prompt_uncounted, counts.completion_uncounted);
            }
            None => row.uncounted(Some(LATE), Some(LATE)),
        }
        if let Some(intake) = &intake {
            intake.settle(*row);
        }
    };
    CountingPool::start(settings, cpus, cache, Box::new(facts), Box::new(settle))
}

/// A worker's way for rows that wait for their counts.
pub(crate) fn defer(pool: &Pool) -> Defer {
    let rows = pool.rows();
    Box::new(move |tally, row| rows.hold(tally, row))
}

/// Builds the configuration's tokenizers, where they are new.
pub(crate) fn build(
    cache: &TokenizerCache,
    sources: &[TokenizerSource],
) -> Result<Counters, String> {
    let sources = sources.iter().map(|source| {
        let build = || counter(&source.vocabulary);
        (source.key, &*source.place, build)
    });
    cache.build(sources)
}

fn counter(vocabulary: &Vocabulary) -> Result<Counter, String> {
    match vocabulary {
        Vocabulary::Harmony => Ok(Counter::harmony()),
        Vocabulary::O200k => Ok(Counter::without_template(BuiltIn::O200k)),
        Vocabulary::Cl100k => Ok(Counter::without_template(BuiltIn::Cl100k)),
        Vocabulary::Files {
            tokenizer,
            template,
            settings,
            engine,
        } => {
            let (template, settings) = (template.as_deref(), settings.as_deref());
            counting::from_files(tokenizer, template, settings, given(engine))
        }
    }
}

/// What a template is given by an engine that was started so.
fn given(engine: &EngineStart) -> TemplateSettings {
    TemplateSettings {
        content: match engine.content {
            ContentFormat::Auto => ContentForm::Detect,
            ContentFormat::Text => ContentForm::Text,
            ContentFormat::Parts => ContentForm::Parts,
        },
        default_arguments: engine.default_arguments.clone(),
        excludes_tools: engine.excludes_tools,
        model_length: engine.model_length,
        ..TemplateSettings::default()
    }
}
