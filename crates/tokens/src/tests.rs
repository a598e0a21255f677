//! What a count is held against: other people's renderers and tokenizers, the whole text, steps of work.
//!
//! Not here: the drift alarm, whose tests stand beside it.

mod dialects;
mod golden;
mod habits;
pub(crate) mod hostile;
pub(crate) mod random;
mod requests;
mod streamed;
mod vllm;

use crate::{ContentForm, Counter, TemplateSettings};

/// 2025-06-28, when the golden cases were rendered.
pub(crate) const CLOCK_S: i64 = 1_751_112_000;

pub(crate) fn vectors(name: &str) -> String {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/tokens")
        .join(name);
    std::fs::read_to_string(place).expect("the vectors are committed")
}

pub(crate) fn tiny(template: &str) -> Counter {
    let settings = TemplateSettings {
        special_tokens: vec![
            ("bos_token".to_owned(), "<s>".to_owned()),
            ("eos_token".to_owned(), "</s>".to_owned()),
        ],
        content: ContentForm::Detect,
        ..TemplateSettings::default()
    };
    Counter::from_template(
        vectors("tiny_tokenizer.json").as_bytes(),
        template,
        settings,
    )
    .expect("a usable model")
}
