//! Models that no call reaches, since `model_names` has their names stand for others: warnings.
//!
//! A model is one of a backend's own where `models` lists it beside what it stands for, or where the catalogue that is built in has it at
//! the backend's address. A name for a version of it (`gpt-4o: gpt-4o-2024-11-20`) hides nothing.
//! Not here: names that no call can bring (`unsent`).

use policy::snapshot::{Backend, Snapshot};

use super::price::catalogue::is_of;
use crate::catalogue::CatalogueModel;
use crate::schema::{self, Document};

impl super::Lowering<'_> {
    pub(super) fn hidden(&mut self, document: &Document, s: &Snapshot) {
        let renames = |of: &Option<schema::Backend>| {
            of.as_ref()
                .is_some_and(|of| !of.model_names.items().is_empty())
        };
        let mut backends = document.backends.items().iter();
        if !backends.any(|(_, of)| renames(of)) {
            return;
        }
        let known = self.built_in();
        for (name, written) in document.backends.items() {
            let lowered = s.backends.iter().find(|of| *of.name == *name.value.0);
            let (Some(written), Some(lowered)) = (written, lowered) else {
                continue;
            };
            let is_listed = |name: &str| {
                let mut models = written.models.items().iter();
                models.any(|of| of.value.0 == name)
            };
            for (model, own) in written.model_names.items() {
                let Some(own) = own else { continue };
                let (asked, sent) = (model.value.0.as_str(), own.value.0.as_str());
                let is_reached = lowered.model_names.values().any(|sent| **sent == *asked);
                let is_version = is_version_of(asked, sent);
                let is_own = (is_listed(asked) && is_listed(sent))
                    || known
                        .iter()
                        .any(|of| is_another(of, asked, sent, lowered, s));
                if is_own && !is_reached && !is_version {
                    let says = format!(
                        "{} is a model there, too, and no call reaches it",
                        model.shown
                    );
                    let hint = format!(
                        "calls for it go upstream as {}: write another name for that",
                        own.shown
                    );
                    self.warn(&model.place, says, hint);
                }
            }
        }
    }
}

/// Whether a name is a model's with a date, a number of several digits, or `latest` behind it: `gpt-4o-mini` is another than `gpt-4o`.
fn is_version_of(model: &str, name: &str) -> bool {
    let is_part = |part: &str| {
        let number = part.strip_prefix('v');
        let digits = number.unwrap_or(part);
        let is_number = digits.bytes().all(|b| b.is_ascii_digit() || b == b':');
        let is_long = digits.len() > usize::from(number.is_none());
        matches!(part, "latest" | "preview" | "exp") || is_number && is_long
    };
    name.strip_prefix(model).is_some_and(|rest| {
        let parts = rest.strip_prefix(['-', '@']);
        rest.is_empty() || parts.is_some_and(|parts| parts.split('-').all(is_part))
    })
}

/// Whether a model of the catalogue has the name, and not that which the name stands for, at this backend.
fn is_another(model: &CatalogueModel, asked: &str, sent: &str, at: &Backend, s: &Snapshot) -> bool {
    let has = |name: &str| model.name == name || model.also.iter().any(|also| also == name);
    has(asked) && !has(sent) && is_of(at, model, s)
}
