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

use crate::decode::{At, MapOf};
use crate::host::{TokenizerSource, Vocabulary};
use crate::scalar::{BuiltIn, File, Pattern, Size};
use crate::schema;

/// Large models have vocabularies of 30 MiB.
const FILE_BYTES_MAX: usize = 64 << 20;
const MIB: usize = 1 << 20;
/// An answer is not held back for longer than that.
const BACKPRESSURE_MAX: Duration = Duration::from_secs(10);
/// Who waits less settles rows without counts that come a moment later.
const WAIT_MIN: Duration = Duration::from_secs(1);

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
            schema::Tokenizer::BuiltIn(BuiltIn::Harmony) => return Some(Vocabulary::Harmony),
            schema::Tokenizer::BuiltIn(BuiltIn::O200k) => return Some(Vocabulary::O200k),
            schema::Tokenizer::BuiltIn(BuiltIn::Cl100k) => return Some(Vocabulary::Cl100k),
            schema::Tokenizer::Files(files) => files,
        };
        if files.template.is_absent() && files.settings.is_absent() {
            let says = "says no chat template";
            let hint = "give `template`, or the model's tokenizer_config.json as `settings`";
            self.findings.fault(place, says, hint);
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
        })
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
        if let Some(at) = written.share.get() {
            counting.threads = Threads::Share(at.value.0);
        }
        if let Some(at) = written.threads.get() {
            counting.threads = Threads::Most(usize::try_from(at.value.0).unwrap_or(1));
            if let Some(share) = written.share.get() {
                let says = "`threads` says already how many threads count";
                self.findings
                    .fault(&share.place, says, "leave one of the two out");
            }
        }
        if let Some(at) = written.wait.get() {
            counting.wait = at.value.0;
            if at.value.0 < WAIT_MIN {
                let says = format!("{} is over before most calls are counted", at.shown);
                self.findings.fault(&at.place, says, "write 1s or more");
            }
        }
        if let Some(at) = written.backpressure.get() {
            counting.backpressure = at.value.0;
            if at.value.0 > BACKPRESSURE_MAX {
                let says = format!("{} is too long to hold an answer back", at.shown);
                self.findings.fault(&at.place, says, "write 10s or less");
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
            let says = format!("{} leaves no room for an ordinary call", at.shown);
            let hint = format!("write {least} or more");
            self.findings.fault(&at.place, says, hint);
        }
        bytes
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
        } => {
            part("tokenizer", tokenizer);
            for (name, content) in [("template", template), ("settings", settings)] {
                if let Some(content) = content {
                    part(name, content);
                }
            }
        }
    }
    let digest = hash.finalize();
    let first = digest.iter().take(8);
    first.fold(0, |key, byte| key << 8 | u64::from(*byte))
}
