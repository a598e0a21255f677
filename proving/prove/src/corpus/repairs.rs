//! How records are repaired: options to what the pipeline calls.
//!
//! Not here: the repairs (`::corpus::repair`).

use std::collections::BTreeMap;

use ::corpus::build::Repair;
use ::corpus::conversation::Conversation;
use ::corpus::reader::Fault;
use ::corpus::repair::{Cap, Media, Mode, Options, repair};
use clap::{Args, ValueEnum};
use engine::prompt::PromptModel;

/// How records are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RepairMode {
    /// So that strict engines take every request
    Strict,
    /// As the white paper did
    Paper,
}

/// Options of repair.
#[derive(Debug, Args)]
pub(super) struct RepairOptions {
    /// How records are repaired.
    #[arg(long, value_enum, default_value = "strict")]
    repair: RepairMode,
    /// Keep images, for models that see them.
    #[arg(long)]
    keep_media: bool,
    /// Make neighbours of one role one message, for templates that want roles in turn.
    #[arg(long)]
    merge_roles: bool,
    /// Cut longer observations to so many tokens, with a mark.
    #[arg(long)]
    cap_tokens: Option<usize>,
}

/// The repairs of a build.
pub(super) struct Repairs<'a> {
    options: &'a RepairOptions,
    model: &'a PromptModel,
}

impl RepairOptions {
    pub(super) fn repairs<'a>(&'a self, model: &'a PromptModel) -> Result<Repairs<'a>, String> {
        let more = self.keep_media || self.merge_roles || self.cap_tokens.is_some();
        if self.repair == RepairMode::Paper && more {
            let says = "--repair paper changes no more than the white paper did: leave --keep-media, --merge-roles and \
                        --cap-tokens out";
            return Err(says.to_owned());
        }
        Ok(Repairs {
            options: self,
            model,
        })
    }

    /// Whether images stay.
    pub(super) const fn keeps_media(&self) -> bool {
        self.keep_media
    }
}

impl Repair for Repairs<'_> {
    fn name(&self) -> String {
        let options = self.options;
        let mut name = match options.repair {
            RepairMode::Strict => "strict",
            RepairMode::Paper => "paper",
        }
        .to_owned();
        if options.keep_media {
            name.push_str(", media kept");
        }
        if options.merge_roles {
            name.push_str(", roles merged");
        }
        if let Some(tokens) = options.cap_tokens {
            name.push_str(&format!(", observations of {tokens} tokens at most"));
        }
        name
    }

    fn repair(
        &self,
        conversation: Conversation,
    ) -> Result<(Conversation, BTreeMap<String, u64>), Fault> {
        let count = |text: &str| self.model.count(text) as usize;
        let options = Options {
            mode: match self.options.repair {
                RepairMode::Strict => Mode::Strict,
                RepairMode::Paper => Mode::Paper,
            },
            media: if self.options.keep_media {
                Media::Keep
            } else {
                Media::Drop
            },
            merge: self.options.merge_roles,
            cap: self.options.cap_tokens.map(|most| Cap::Tokens {
                most,
                count: &count,
            }),
        };
        let (conversation, repairs) = repair(conversation, &options);
        let repairs = repairs.iter().map(|(kind, n)| (kind.to_owned(), n));
        Ok((conversation, repairs.collect()))
    }
}
