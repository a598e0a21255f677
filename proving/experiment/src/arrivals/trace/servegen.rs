//! ServeGen's clients: windows with a rate and a law of gaps in one file, distributions of lengths in another, from which arrivals are drawn.
//!
//! A line of `chunk-N-trace.csv` is `second,rate,cv,law,shape,scale`, and holds to the next line; one without a law is silence. `chunk-N-dataset.json`
//! has for some seconds the probabilities of `input_tokens` and `output_tokens`, each a text `{tokens: probability, …}`.
//! Invariant: the same files give the same arrivals: what is drawn follows from the window's second alone.
//! Not here: which clients there are; each file is one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Traced;
use crate::random::Rng;

/// Names the streams of gaps, and of lengths.
const GAPS: u64 = 401;
const LENGTHS: u64 = 402;
/// How long the last window lasts: as long as all published ones.
const WINDOW_S: u64 = 600;
/// Arrivals of one window at most.
const MOST: usize = 10_000_000;

/// A window, as its line has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    from_s: u64,
    /// `None`: nobody asks.
    law: Option<Law>,
}

/// The law of gaps, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    Exponential { mean: f64 },
    Gamma { shape: f64, scale: f64 },
    Weibull { shape: f64, scale: f64 },
}

impl Law {
    fn gap(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential { mean } => rng.exponential(mean),
            Self::Gamma { shape, scale } => rng.gamma(shape, scale),
            Self::Weibull { shape, scale } => scale * rng.exponential(1.0).powf(shape.recip()),
        }
    }
}

/// Names and texts of an object.
type Members<'a> = Vec<(&'a str, &'a str)>;

/// Probabilities of a number of tokens, added up.
type Lengths = Vec<(f64, u32)>;

/// Of each second from which they hold, those of prompts and of answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dataset(BTreeMap<u64, (Lengths, Lengths)>);

/// Whether a first line is one of ServeGen's.
pub(super) fn is_window(line: &str) -> bool {
    window(line).is_ok()
}

pub(super) fn window(line: &str) -> Result<Window, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [from, rate, _, law, shape, scale] = fields[..] else {
        return Err("has not the six fields second,rate,cv,law,shape,scale".into());
    };
    let from_s = from.parse().map_err(|_| format!("{from:?} is no second"))?;
    let number = |text: &str| {
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| format!("{text:?} is no number above 0"))
    };
    let law = match law {
        "" => None,
        "Exponential" | "Poisson" => Some(Law::Exponential {
            mean: number(rate)?.recip(),
        }),
        "Gamma" => Some(Law::Gamma {
            shape: number(shape)?,
            scale: number(scale)?,
        }),
        "Weibull" => Some(Law::Weibull {
            shape: number(shape)?,
            scale: number(scale)?,
        }),
        other => {
            return Err(format!(
                "{other:?} is no law: Gamma, Weibull or Exponential"
            ));
        }
    };
    Ok(Window { from_s, law })
}

impl Dataset {
    /// Reads `chunk-N-dataset.json`, of which a second without lengths says nothing.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (second, members) in objects(text)? {
            let from_s: u64 = second
                .parse()
                .map_err(|_| format!("{second:?} is no second"))?;
            let of = |name: &str| {
                let found = members.iter().find(|(member, _)| *member == name);
                found.map(|(_, says)| lengths(says)).transpose()
            };
            if let (Some(prompt), Some(output)) = (of("input_tokens")?, of("output_tokens")?)
                && !prompt.is_empty()
                && !output.is_empty()
            {
                all.insert(from_s, (prompt, output));
            }
        }
        Ok(Self(all))
    }

    /// Lengths of a request in the window of this second.
    fn draw(&self, second: u64, rng: &mut Rng) -> (u32, u32) {
        let held = self.0.range(..=second).next_back();
        // A window before the first that is known is like that.
        let Some((_, (prompt, output))) = held.or_else(|| self.0.iter().next()) else {
            return (1, 1);
        };
        let mut of = |lengths: &Lengths| {
            let whole = lengths.last().map_or(0.0, |(sum, _)| *sum);
            let share = rng.unit() * whole;
            let at = lengths.partition_point(|(sum, _)| *sum <= share);
            lengths.get(at).map_or(1, |(_, tokens)| (*tokens).max(1))
        };
        (of(prompt), of(output))
    }
}

/// The arrivals of a window that ends with the next.
pub(super) fn arrivals(window: Window, until_s: Option<u64>, dataset: &Dataset) -> Vec<Traced> {
    let Some(law) = window.law else {
        return Vec::new();
    };
    let until = until_s.unwrap_or(window.from_s + WINDOW_S) as f64;
    let mut gaps = Rng::stream(GAPS, &[window.from_s]);
    let mut lengths = Rng::stream(LENGTHS, &[window.from_s]);
    let (mut at, mut all) = (window.from_s as f64, Vec::new());
    loop {
        at += law.gap(&mut gaps);
        if at >= until || all.len() == MOST {
            return all;
        }
        let (prompt_tokens, output_tokens) = dataset.draw(window.from_s, &mut lengths);
        all.push(Traced {
            at: Duration::from_secs_f64(at),
            prompt_tokens,
            output_tokens,
            blocks: Vec::new(),
        });
    }
}

/// When a window begins.
pub(super) const fn begins(window: Window) -> u64 {
    window.from_s
}

/// `{tokens: probability, …}`, as Python prints it.
fn lengths(text: &str) -> Result<Lengths, String> {
    let inner = text
        .trim()
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("{text:?} are no probabilities of lengths"))?;
    let mut sum = 0.0;
    let pairs = inner.split(',').filter(|pair| !pair.trim().is_empty());
    let pair = |pair: &str| {
        let (tokens, probability) = pair.split_once(':')?;
        let tokens: f64 = tokens.trim().parse().ok()?;
        let probability: f64 = probability.trim().parse().ok()?;
        let is_one = tokens >= 0.0 && tokens <= f64::from(u32::MAX) && probability >= 0.0;
        is_one.then_some((tokens as u32, probability))
    };
    let read = pairs.map(|text| {
        let (tokens, probability) =
            pair(text).ok_or_else(|| format!("{text:?} is no length with its probability"))?;
        sum += probability;
        Ok((sum, tokens))
    });
    let all: Result<Lengths, String> = read.collect();
    all.map(|all| if sum > 0.0 { all } else { Lengths::new() })
}

/// The members of each object in an object of JSON, all of them texts without escapes: what these files are, and nothing more.
fn objects(text: &str) -> Result<Vec<(&str, Members<'_>)>, String> {
    let wrong =
        || "is no JSON of the form {\"second\": {\"input_tokens\": \"{…}\", …}, …}".to_owned();
    let mut rest = text
        .trim()
        .strip_prefix('{')
        .ok_or_else(wrong)?
        .trim_start();
    let mut all = Vec::new();
    while !rest.starts_with('}') {
        let (second, after) = quoted(rest).ok_or_else(wrong)?;
        let after = after.trim_start().strip_prefix(':').ok_or_else(wrong)?;
        let mut inner = after
            .trim_start()
            .strip_prefix('{')
            .ok_or_else(wrong)?
            .trim_start();
        let mut members = Vec::new();
        while !inner.starts_with('}') {
            let (name, after) = quoted(inner).ok_or_else(wrong)?;
            let after = after.trim_start().strip_prefix(':').ok_or_else(wrong)?;
            let (says, after) = quoted(after.trim_start()).ok_or_else(wrong)?;
            members.push((name, says));
            inner = after.trim_start();
            inner = inner.strip_prefix(',').unwrap_or(inner).trim_start();
        }
        all.push((second, members));
        rest = inner.strip_prefix('}').ok_or_else(wrong)?.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Ok(all)
}

/// A text in quotes, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}
