//! Engines are asked about models, one backend after another.
//!
//! Invariant: one question at a time, and at most [`MODELS_MAX`] models in one round; an engine in trouble is left alone.
//! Not here: when that is done (`calibration`), who is asked (`engines`), the questions (`round`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use counting::CountedModel;

use super::engines::{Engine, Engines, Model, NoWay};
use super::round::{self, Ids, Round, clock};

/// All questions about one model of an engine.
const MODEL_WITHIN: Duration = Duration::from_secs(120);
/// Models of backends that are asked about in one round.
const MODELS_MAX: usize = 1000;

/// What is asked about.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'w> {
    All,
    /// One backend.
    Backend(&'w str),
    /// Some of them.
    Backends(&'w BTreeSet<Arc<str>>),
    /// Models of backends.
    Models(&'w BTreeSet<(Arc<str>, Arc<str>)>),
}

impl Wanted<'_> {
    pub(crate) fn has_backend(self, backend: &str) -> bool {
        match self {
            Self::All => true,
            Self::Backend(name) => name == backend,
            Self::Backends(all) => all.contains(backend),
            Self::Models(all) => all.iter().any(|(of, _)| **of == *backend),
        }
    }

    fn has(self, backend: &Arc<str>, model: &Arc<str>) -> bool {
        match self {
            Self::All | Self::Backend(_) | Self::Backends(_) => self.has_backend(backend),
            Self::Models(all) => all.contains(&(Arc::clone(backend), Arc::clone(model))),
        }
    }
}

/// What came of asking about one model of a backend.
pub(crate) struct About {
    pub(crate) of: CountedModel,
    /// When the asking began, seconds since 1970.
    pub(crate) began_s: i64,
    /// What engines said; none where nobody could be asked.
    pub(crate) round: Option<Round>,
    /// Why one of them could not be asked.
    pub(crate) fault: Option<NoWay>,
}

/// Hands what engines say of each model to `tell`, as soon as it is asked about, which says whether to go on.
pub(crate) async fn asked_of(
    engines: &Engines,
    counter: &(impl Fn(u64) -> Option<Arc<tokens::Counter>> + Sync),
    wanted: Wanted<'_>,
    ids: Ids,
    mut tell: impl FnMut(About) -> bool,
) {
    let mut left = MODELS_MAX;
    for of_backend in engines.all.chunk_by(|a, b| a.backend == b.backend) {
        let Some(backend) = of_backend.first().map(|engine| &engine.backend) else {
            continue;
        };
        if !wanted.has_backend(backend) {
            continue;
        }
        let mut all = Vec::with_capacity(of_backend.len());
        for engine in of_backend {
            all.extend(opened(engines, engine, wanted).await);
        }
        let models = all.iter().flat_map(|asking| &asking.models);
        let models: BTreeSet<_> = models
            .map(|model| (Arc::clone(&model.label), model.key))
            .collect();
        for (label, key) in &models {
            let Some(counter) = counter(*key) else {
                continue;
            };
            if left == 0 {
                return;
            }
            left -= 1;
            let began_s = clock();
            let (mut round, fault) = about(&mut all, label, *key, &counter, ids).await;
            if let Some(round) = &mut round {
                round.addresses.unasked += engines.unasked(backend);
            }
            let is_on = tell(About {
                of: CountedModel {
                    backend: Arc::clone(backend),
                    model: Arc::clone(label),
                    tokenizer: *key,
                },
                began_s,
                round,
                fault,
            });
            if !is_on {
                return;
            }
        }
        let fault = all.into_iter().find_map(|asking| asking.way.err());
        let any = Model::any();
        if models.is_empty() && fault.is_some() && wanted.has(backend, &any.label) {
            let is_on = tell(About {
                of: CountedModel {
                    backend: Arc::clone(backend),
                    model: any.label,
                    tokenizer: any.key,
                },
                began_s: clock(),
                round: None,
                fault,
            });
            if !is_on {
                return;
            }
        }
    }
}

/// An engine that is to be asked, about these models.
struct Asking {
    models: Vec<Model>,
    way: Result<callout::EngineTokens, NoWay>,
}

/// The way to an engine; none where it is asked about no model, and then no credential is made for it.
async fn opened(engines: &Engines, engine: &Engine, wanted: Wanted<'_>) -> Option<Asking> {
    let models = |served: &[String]| {
        let mut models = engines.models(engine, served);
        models.retain(|model| wanted.has(&engine.backend, &model.label));
        models
    };
    if !engines.asks_for_models(engine) {
        let models = models(&[]);
        if models.is_empty() {
            return None;
        }
        let way = engine.tokens().await;
        return Some(Asking { models, way });
    }
    let way = match engine.tokens().await {
        Ok(tokens) => match tokens.models().await {
            Ok(served) if served.is_empty() => {
                Err(NoWay::Never("it does not say which models it has"))
            }
            Ok(served) => {
                let served: Vec<String> = served.into_iter().map(|model| model.id).collect();
                return Some(Asking {
                    models: models(&served),
                    way: Ok(tokens),
                });
            }
            Err(fault) => Err(NoWay::Now(fault.to_string())),
        },
        Err(fault) => Err(fault),
    };
    Some(Asking {
        models: Vec::new(),
        way,
    })
}

/// What the engines of a backend say about a model. One in trouble is left alone until the next round.
async fn about(
    all: &mut [Asking],
    label: &Arc<str>,
    key: u64,
    counter: &Arc<tokens::Counter>,
    ids: Ids,
) -> (Option<Round>, Option<NoWay>) {
    let (mut round, mut fault, mut unasked): (Option<Round>, Option<NoWay>, usize) =
        (None, None, 0);
    for asking in all {
        let of = |model: &&Model| model.label == *label && model.key == key;
        let asked = match (&asking.way, asking.models.iter().find(of)) {
            (Err(why), _) => Err(why.clone()),
            // It names other models alone, or more than are read: calls are sent to it all the same.
            (Ok(_), None) => {
                unasked += 1;
                continue;
            }
            (Ok(tokens), Some(model)) => {
                let asked = round::ask(tokens, model, counter, ids);
                match tokio::time::timeout(MODEL_WITHIN, asked).await {
                    Ok(asked) => asked.map_err(|fault| NoWay::Now(fault.to_string())),
                    Err(_) => Err(NoWay::Now(format!(
                        "its answers took longer than {MODEL_WITHIN:?}"
                    ))),
                }
            }
        };
        match asked {
            Ok(more) => {
                round = Some(match round {
                    Some(round) => round.and(more),
                    None => more,
                });
            }
            Err(why) => {
                unasked += 1;
                asking.way = Err(why.clone());
                // What can be otherwise soon is what is told.
                if !matches!(fault, Some(NoWay::Now(_))) {
                    fault = Some(why);
                }
            }
        }
    }
    if let Some(round) = &round
        && !round.says_anything()
        && fault.is_none()
    {
        fault = Some(NoWay::Now("it refuses every question".to_owned()));
    }
    if let Some(round) = &mut round {
        round.addresses.unasked += unasked;
    }
    (round, fault)
}
