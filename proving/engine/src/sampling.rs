//! The members that chat and plain completions share: how much to generate, in how many choices, and how to send it.
//!
//! Invariant: what passes `check` is in range; temperature and its like are read by nobody and have no effect.
//! Not here: the length that follows from them (`plan`).

use serde::Deserialize;

use crate::error::Refusal;
use crate::json::Json;
use crate::plan::LengthSpec;

/// More choices than this are refused.
const MAX_CHOICES: u64 = 128;

#[derive(Deserialize)]
pub(crate) struct Sampling {
    #[serde(default)]
    max_tokens: Option<i64>,
    #[serde(default)]
    max_completion_tokens: Option<i64>,
    #[serde(default)]
    min_tokens: Option<u64>,
    #[serde(default)]
    ignore_eos: Option<bool>,
    #[serde(default)]
    n: Option<u64>,
    #[serde(default)]
    stop: Option<Json>,
    #[serde(default)]
    include_stop_str_in_output: Option<bool>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    pub(crate) include_usage: Option<bool>,
    #[serde(default)]
    pub(crate) continuous_usage_stats: Option<bool>,
}

impl Sampling {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.n.is_some_and(|n| !(1..=MAX_CHOICES).contains(&n)) {
            return Err(Refusal::bad_request(format!("n must be in 1..={MAX_CHOICES}")).about("n"));
        }
        if self.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return Err(Refusal::bad_request("temperature must be in 0..=2").about("temperature"));
        }
        if self.top_p.is_some_and(|p| !(p > 0.0 && p <= 1.0)) {
            return Err(Refusal::bad_request("top_p must be in (0, 1]").about("top_p"));
        }
        if self.stream_options.is_some() && !self.streams() {
            let why = "Stream options can only be defined when `stream=True`.";
            return Err(Refusal::bad_request(why).about("stream_options"));
        }
        Ok(())
    }

    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn stream_options(&self) -> StreamOptions {
        self.stream_options.unwrap_or_default()
    }

    pub(crate) fn choices(&self) -> usize {
        self.n.unwrap_or(1) as usize
    }

    pub(crate) fn lengths(&self) -> Result<LengthSpec, Refusal> {
        Ok(LengthSpec {
            cap: self.max_completion_tokens.or(self.max_tokens),
            min: self.min_tokens.unwrap_or(0),
            ignore_eos: self.ignore_eos.unwrap_or(false),
            choices: self.choices(),
            stops: self.stops()?,
            stop_included: self.include_stop_str_in_output.unwrap_or(false),
        })
    }

    fn stops(&self) -> Result<Vec<String>, Refusal> {
        let fault =
            || Refusal::bad_request("stop must be a string or a list of strings").about("stop");
        match &self.stop {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::String(one)) => Ok(vec![one.clone()]),
            Some(Json::Array(all)) => all
                .iter()
                .map(|one| one.as_str().map(str::to_owned).ok_or_else(fault))
                .collect(),
            Some(_) => Err(fault()),
        }
    }
}
