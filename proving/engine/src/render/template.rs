//! A model's chat template as its files have it, and the day on which it is rendered.
//!
//! Not here: reading the files, which is the caller's; rendering (`prompts`).

use prompts::template::{Rendered, TemplateSettings, Templates, noon_of};

use super::{Conversation, turns};

/// Stands in for the template of calls without tools where the model has one for tools alone.
const NO_DEFAULT: &str =
    "{{ raise_exception('the model has no chat template for a call without tools') }}";

/// A model's template, or its two.
#[derive(Debug)]
pub(crate) struct Template {
    compiled: prompts::template::Template,
    /// Of the engine's day, which it is given without an hour.
    clock_s: i64,
}

impl Template {
    /// What stands in for the template of gpt-oss.
    pub(crate) fn of_gpt_oss(date: &str) -> Result<Self, String> {
        let marks = [Some("<|startoftext|>"), Some("<|return|>")];
        Self::new(include_str!("gpt_oss.jinja").into(), marks, "", date)
    }

    /// Compiles the template of a file of its own. `defaults` is what the server was started with as
    /// `--default-chat-template-kwargs`.
    pub(crate) fn of_file(source: &str, defaults: &str, date: &str) -> Result<Self, String> {
        Self::new(source.into(), [None, None], defaults, date)
    }

    /// Reads a `tokenizer_config.json`: its template or templates by name, and its marks.
    pub(crate) fn from_config(
        config: &str,
        own: Option<&str>,
        defaults: &str,
        date: &str,
    ) -> Result<Self, String> {
        let config: serde_json::Value =
            serde_json::from_str(config).map_err(|error| format!("tokenizer config: {error}"))?;
        let mark = |name: &str| {
            config[name]
                .as_str()
                .or_else(|| config[name]["content"].as_str())
        };
        let of_config = &config["chat_template"];
        let named = |name: &str| {
            let all = of_config.as_array()?.iter();
            all.filter(|one| one["name"] == name)
                .find_map(|one| one["template"].as_str())
        };
        let (default, tool_use) = match own {
            Some(own) => (Some(own), None),
            None => (
                of_config.as_str().or_else(|| named("default")),
                named("tool_use"),
            ),
        };
        if default.is_none() && tool_use.is_none() {
            return Err(
                "tokenizer config: has no chat_template, and no other was given".to_owned(),
            );
        }
        let templates = Templates {
            default: default.unwrap_or(NO_DEFAULT).to_owned(),
            tool_use: tool_use.map(str::to_owned),
        };
        let marks = [mark("bos_token"), mark("eos_token")];
        Self::new(templates, marks, defaults, date)
    }

    /// Marks are what templates call `bos_token` and `eos_token`.
    fn new(
        templates: Templates,
        marks: [Option<&str>; 2],
        defaults: &str,
        date: &str,
    ) -> Result<Self, String> {
        let named = ["bos_token", "eos_token"].into_iter().zip(marks);
        let special_tokens =
            named.filter_map(|(name, mark)| Some((name.to_owned(), mark?.to_owned())));
        let settings = TemplateSettings {
            special_tokens: special_tokens.collect(),
            default_arguments: defaults.to_owned(),
            ..TemplateSettings::default()
        };
        let compiled = prompts::template::Template::new(&templates, settings);
        Ok(Self {
            compiled: compiled.map_err(|error| format!("chat template: {error}"))?,
            clock_s: noon_of(date),
        })
    }

    /// Whether system messages among the others are put into the first: where either template would not have them.
    pub(crate) fn merges_system(&self) -> bool {
        self.compiled.merges_system()
    }

    pub(crate) fn render(&self, conversation: &Conversation) -> Result<String, String> {
        let rendered = turns::with(conversation, false, |given| {
            self.compiled.render(given, self.clock_s)
        });
        rendered.map(|Rendered { text, .. }| text)
    }
}
