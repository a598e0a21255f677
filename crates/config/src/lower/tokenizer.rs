//! `tokenizers`, `counting`: what tokens are counted with, and within which bounds.
//!
//! Invariant: the most specific pattern of a model comes first, in whatever order they were written.
//! Not here: building a tokenizer from its files (`tollgate`), which may find more faults.

use std::cmp::Reverse;
use std::time::Duration;

use policy::counting::{Settings, Threads};
use policy::model::ModelPattern;
use policy::snapshot::Tokenizer;
use sha2::{Digest, Sha256};

use super::set;
use crate::decode::{At, MapOf};
use crate::host::{Calibration, ContentFormat, EngineStart, TokenizerSource, Vocabulary};
use crate::scalar::{File, Pattern, Size};
use crate::schema;

/// Large models have vocabularies of 30 MiB.
const FILE_BYTES_MAX: usize = 64 << 20;
const MIB: usize = 1 << 20;
/// An answer is not held back for longer than that.
const BACKPRESSURE_MAX: Duration = Duration::from_secs(10);
/// Who waits less settles rows without counts that come a moment later.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Engines are not asked more often than that.
const EVERY_MIN: Duration = Duration::from_secs(60);
/// A question that has no answer by then gets none.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

impl super::Lowering<'_> {
    /// What counts which models, and what it is made of.
    pub(super) fn tokenizers(
        &mut self,
        written: &MapOf<Pattern, schema::Tokenizer>,
    ) -> (Vec<Tokenizer>, Vec<TokenizerSource>) {
        let mut lowered = Vec::new();
        for (pattern, tokenizer) in &written.0 {
            let Some(tokenizer) = tokenizer else { continue };
            let Some(vocabulary) = self.vocabulary(&pattern.place, tokenizer) else {
                continue;
            };
            let source = TokenizerSource {
                key: key(&vocabulary),
                place: pattern.place.path.clone(),
                vocabulary,
            };
            let models = super::route::lowered(&pattern.value);
            lowered.push((
                Tokenizer {
                    models,
                    key: source.key,
                    window: window(&source.vocabulary),
                },
                source,
            ));
        }
        lowered.sort_by_key(|(tokenizer, _)| match &tokenizer.models {
            ModelPattern::Exact(_) => (0, Reverse(0)),
            ModelPattern::Prefix(start) => (1, Reverse(start.len())),
        });
        lowered.into_iter().unzip()
    }

    fn vocabulary(
        &mut self,
        place: &crate::decode::Place,
        written: &schema::Tokenizer,
    ) -> Option<Vocabulary> {
        let files = match written {
            schema::Tokenizer::Short(at) => return Some((at.value.0)()),
            schema::Tokenizer::Full(files) => files,
        };
        if files.template.is_absent() && files.settings.is_absent() {
            let says = "says no chat template";
            let hint = "give `template`, or the model's tokenizer_config.json as `settings`";
            self.fault(place, says, hint);
        }
        let mut read = |at: Option<&At<File>>| -> Option<Option<Vec<u8>>> {
            let Some(at) = at else { return Some(None) };
            let (_, content) = self.read_up_to(at, "", FILE_BYTES_MAX)?;
            Some(Some(content))
        };
        let tokenizer = read(files.file.get());
        let template = read(files.template.get());
        let settings = read(files.settings.get());
        Some(Vocabulary::Files {
            tokenizer: tokenizer??,
            template: template?,
            settings: settings?,
            engine: files.engine.get().map(engine).unwrap_or_default(),
        })
    }

    /// How engines are asked; none where they are not.
    pub(super) fn calibration(
        &mut self,
        written: Option<&schema::Counting>,
    ) -> Option<Calibration> {
        let mut calibration = Calibration {
            every: Duration::from_secs(6 * 60 * 60),
            timeout: Duration::from_secs(5),
        };
        let on = match written.and_then(|written| written.calibration.get()) {
            None => return Some(calibration),
            Some(schema::Calibration::Short(_)) => return None,
            Some(schema::Calibration::Full(on)) => on,
        };
        if let Some(at) = on.every.get() {
            calibration.every = at.value.0;
            if at.value.0 < EVERY_MIN {
                let hint = "write 1m or more; a change is noticed by what calls count";
                self.refuse(at, "asks engines too often", hint);
            }
        }
        if let Some(at) = on.timeout.get() {
            calibration.timeout = at.value.0;
            if at.value.0 > TIMEOUT_MAX {
                self.refuse(at, "is too long to wait for one answer", "write 1m or less");
            }
        }
        Some(calibration)
    }

    /// The bounds, as written or as they are by default.
    pub(super) fn counting(&mut self, written: Option<&schema::Counting>) -> Settings {
        let mut counting = Settings {
            threads: Threads::Share(500),
            queue_bytes: 64 * MIB,
            longest_bytes: 4 * MIB,
            wait: Duration::from_secs(60),
            backpressure: Duration::from_millis(100),
            prompt_per_mille: None,
            output_per_mille: None,
        };
        let Some(written) = written else {
            return counting;
        };
        set(&written.share, &mut counting.threads, |of| {
            Threads::Share(of.0)
        });
        if let Some(at) = written.threads.get() {
            counting.threads = Threads::Most(usize::try_from(at.value.0).unwrap_or(1));
            if let Some(share) = written.share.get() {
                let says = "`threads` says already how many threads count";
                self.fault(&share.place, says, "leave one of the two out");
            }
        }
        if let Some(at) = written.wait.get() {
            counting.wait = at.value.0;
            if at.value.0 < WAIT_MIN {
                self.refuse(
                    at,
                    "is over before most calls are counted",
                    "write 1s or more",
                );
            }
        }
        if let Some(at) = written.backpressure.get() {
            counting.backpressure = at.value.0;
            if at.value.0 > BACKPRESSURE_MAX {
                self.refuse(
                    at,
                    "is too long to hold an answer back",
                    "write 10s or less",
                );
            }
        }
        if let Some(at) = written.queue.get() {
            counting.queue_bytes = self.bytes(at, MIB);
        }
        if let Some(at) = written.longest.get() {
            counting.longest_bytes = self.bytes(at, 1024);
        }
        counting.prompt_per_mille = written.prompt_tolerance.get().map(|at| at.value.0);
        counting.output_per_mille = written.output_tolerance.get().map(|at| at.value.0);
        counting
    }

    fn bytes<const MOST: u64>(&mut self, at: &At<Size<MOST>>, least: usize) -> usize {
        let bytes = usize::try_from(at.value.0).unwrap_or(usize::MAX);
        if bytes < least {
            let hint = format!("write {least} or more");
            self.refuse(at, "leaves no room for an ordinary call", hint);
        }
        bytes
    }
}

fn engine(written: &schema::EngineStart) -> EngineStart {
    let arguments = written.default_chat_template_kwargs.get();
    let excludes = written.exclude_tools_when_tool_choice_none.value();
    let content = written.content_format.value();
    let length = written.max_model_len.value();
    EngineStart {
        default_arguments: arguments.map_or(String::new(), |json| json.0.clone()),
        excludes_tools: excludes.is_some_and(|is| is.0),
        content: content.map_or_else(ContentFormat::default, |of| of.0),
        model_length: length.map(|count| u64::from(count.0)),
    }
}

/// Tokens of the window of a model that is counted so, where they are said.
fn window(vocabulary: &Vocabulary) -> Option<u64> {
    match vocabulary {
        Vocabulary::Files { engine, .. } => engine.model_length,
        Vocabulary::Harmony | Vocabulary::O200k | Vocabulary::Cl100k => None,
    }
}

/// The same for the same content, wherever it stands.
fn key(vocabulary: &Vocabulary) -> u64 {
    let mut hash = Sha256::new();
    let mut part = |name: &str, content: &[u8]| {
        hash.update(name.as_bytes());
        hash.update((content.len() as u64).to_be_bytes());
        hash.update(content);
    };
    match vocabulary {
        Vocabulary::Harmony => part("harmony", b""),
        Vocabulary::O200k => part("o200k", b""),
        Vocabulary::Cl100k => part("cl100k", b""),
        Vocabulary::Files {
            tokenizer,
            template,
            settings,
            engine,
        } => {
            part("tokenizer", tokenizer);
            for (name, content) in [("template", template), ("settings", settings)] {
                if let Some(content) = content {
                    part(name, content);
                }
            }
            let EngineStart {
                default_arguments,
                excludes_tools,
                content,
                model_length,
            } = engine;
            part("default_arguments", default_arguments.as_bytes());
            part("excludes_tools", &[u8::from(*excludes_tools)]);
            part("content", &[*content as u8]);
            part("model_length", &model_length.unwrap_or(0).to_be_bytes());
        }
    }
    let digest = hash.finalize();
    let first = digest.iter().take(8);
    first.fold(0, |key, byte| key << 8 | u64::from(*byte))
}
