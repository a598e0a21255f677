//! What a template is given by name beside its messages, and which of several values counts.
//!
//! Invariant: as vLLM 0.32.0 merges them: the body's own members over its `chat_template_kwargs`, these over tools, and
//! tools over what the server was started with; null and `"auto"` are no value, but in responses.
//! Not here: reading them (`chat`), special tokens, which come before all (`template`).

use crate::json::Json;

/// Names of parameters that are not handed on.
const NOT_FOR_TEMPLATES: &[&str] = &[
    "tokenize",
    "padding",
    "truncation",
    "max_length",
    "return_tensors",
    "return_dict",
    "tokenizer_kwargs",
    "return_assistant_tokens_mask",
];

/// What a body says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// `chat_template_kwargs`.
    pub(crate) own: Vec<(String, Json)>,
    /// Members of the body itself.
    pub(crate) said: Vec<(String, Json)>,
    /// Those of responses, where nulls reach the template unless the server has values of its own.
    pub(crate) keeps_unset: bool,
}

impl Arguments {
    /// Says a member of the body, if it is there.
    pub(crate) fn say(&mut self, name: &str, value: Option<Json>) {
        self.said
            .extend(value.map(|value| (name.to_owned(), value)));
    }

    /// Says how hard to think, and by that whether at all, unless the body says this itself.
    pub(crate) fn say_effort(&mut self, effort: Option<&str>) {
        let Some(effort) = effort else {
            return;
        };
        self.say("reasoning_effort", Some(Json::from(effort)));
        if !self.own.iter().any(|(name, _)| name == "enable_thinking") {
            self.say("enable_thinking", Some(Json::Bool(effort != "none")));
        }
    }

    /// All that the template is given.
    pub(crate) fn merged(
        &self,
        tools: Option<Json>,
        server: &[(String, Json)],
    ) -> Vec<(String, Json)> {
        let mut asked = self.own.clone();
        put_all(&mut asked, &self.said);
        let mut merged = if self.keeps_unset && server.is_empty() {
            asked.clone()
        } else {
            server.to_vec()
        };
        put_all(
            &mut merged,
            tools.map(|tools| ("tools".to_owned(), tools)).as_slice(),
        );
        put_all(&mut merged, &asked);
        merged.retain(|(name, _)| !NOT_FOR_TEMPLATES.contains(&name.as_str()));
        merged
    }

    /// Whether the prompt ends with the beginning of an answer.
    pub(crate) fn opens_answer(&self) -> bool {
        let said = self
            .said
            .iter()
            .rfind(|(name, _)| name == "add_generation_prompt");
        said.is_none_or(|(_, value)| *value != Json::Bool(false))
    }
}

fn put_all(to: &mut Vec<(String, Json)>, from: &[(String, Json)]) {
    for (name, value) in from {
        if *value == Json::Null || value.as_str() == Some("auto") {
            continue;
        }
        match to.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => known.clone_from(value),
            None => to.push((name.clone(), value.clone())),
        }
    }
}
