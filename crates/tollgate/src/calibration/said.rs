//! What is known of each model's counts, as it is shown: a table, or JSON.
//!
//! Invariant: the JSON of `tollgate tokens check` and of the admin API is the same; fields are added to it and never
//! renamed.
//! Not here: how it came to be known (`tokens::calibration`).

use std::sync::Arc;

use ledger::report::wrapped;
use serde_json::{Value, json};
use tokens::calibration::{Difference, Summary};
use tokens::{Feature, Shape, probes};

use super::engines::Engines;
use super::round::{Addresses, Came, Round, clock};
use crate::words::counted;

/// One model of one backend.
pub(crate) struct Known {
    pub(crate) backend: Arc<str>,
    pub(crate) model: Arc<str>,
    /// The last round of questions; none where nobody was asked.
    pub(crate) round: Option<Round>,
    pub(crate) summary: Summary,
    /// Why it was not asked, or could not be.
    pub(crate) fault: Option<String>,
    /// An engine that can be asked could not be.
    pub(crate) is_away: bool,
    /// Some addresses could not be asked. Set by `tokens check` alone: a running gate does not feed such a round to its
    /// calibration.
    pub(crate) is_part: bool,
    /// Where the texts of the first difference part: the engine's, and ours.
    pub(crate) parting: Option<Parting>,
}

/// Where two prompts part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parting {
    pub(crate) probe: &'static str,
    pub(crate) engine: String,
    pub(crate) ours: String,
}

/// Letters before and after the place where two texts part.
const AROUND: usize = 20;
/// Probes whose text is asked for to show where it parts from ours.
const PARTINGS_TRIED: usize = 4;

impl Parting {
    /// Of two texts; none where they are the same.
    pub(crate) fn of(probe: &'static str, engine: &str, ours: &str) -> Option<Self> {
        if engine == ours {
            return None;
        }
        let same = engine.chars().zip(ours.chars());
        let same = same.take_while(|(a, b)| a == b).count();
        let from = same.saturating_sub(AROUND);
        let around = |text: &str| {
            let before = if from > 0 { "…" } else { "" };
            let shown: String = text.chars().skip(from).take(2 * AROUND).collect();
            format!("{before}{shown}")
        };
        Some(Self {
            probe,
            engine: around(engine),
            ours: around(ours),
        })
    }
}

/// Where the texts part of the first probe that differs, as far as the engine shows its text.
pub(crate) async fn parting(
    engines: &Engines,
    backend: &str,
    round: &Round,
    counter: &tokens::Counter,
) -> Option<Parting> {
    let differing = round.asked.iter().filter_map(|asked| match &asked.came {
        Came::Other { ids, .. } if !ids.is_empty() => Some((asked, ids)),
        _ => None,
    });
    for (asked, ids) in differing.take(PARTINGS_TRIED) {
        let body = probes::all().into_iter().find(|it| it.name == asked.name)?;
        let shown = counter.shown(asked.operation, body.body.as_bytes(), clock());
        let Ok(Some(Ok(ours))) = shown.map(|shown| shown.map(|shown| shown.text)) else {
            continue;
        };
        let of_backend = engines.all.iter().filter(|it| *it.backend == *backend);
        for engine in of_backend {
            let Ok(tokens) = engine.tokens().await else {
                continue;
            };
            let Ok(Some(text)) = tokens.text(&round.model.name, ids).await else {
                continue;
            };
            if let Some(parting) = Parting::of(asked.name, &text, &ours) {
                return Some(parting);
            }
        }
    }
    None
}

impl Known {
    /// Whether anything of it differs.
    pub(crate) fn differs(&self) -> bool {
        !self.summary.features.differ.is_empty()
    }

    /// How far its counts can be trusted, in words.
    pub(crate) fn mark(&self) -> String {
        let features = self.summary.features;
        let differ = words(features.differ).join(", ");
        if !features.differ.common(Shape::APIS).is_empty() || (self.is_part && self.differs()) {
            format!("approximate: differs ({differ})")
        } else if self.is_part {
            self.unknown()
        } else if !features.differ.is_empty() {
            format!("exact but for: {differ}")
        } else if !features.agreed.is_empty() {
            "exact".to_owned()
        } else {
            self.unknown()
        }
    }

    fn unknown(&self) -> String {
        let addresses = self.round.as_ref().map(|round| round.addresses);
        match (&self.fault, addresses) {
            (Some(why), _) => format!("approximate: {why}"),
            (None, Some(Addresses { asked, unasked })) if unasked > 0 => {
                let all = asked + unasked;
                format!("approximate: {unasked} of {all} addresses not asked")
            }
            (None, _) => "approximate: not compared yet".to_owned(),
        }
    }

    fn asked_by(&self) -> Vec<&'static str> {
        let by = self.round.iter().flat_map(|round| &round.by);
        by.map(|by| by.as_str()).collect()
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        let features = self.summary.features;
        let outcomes = self.round.as_ref().map(Round::outcomes);
        let parting = self.parting.as_ref();
        let addresses = self.round.as_ref().map(|round| round.addresses);
        json!({
            "backend": &*self.backend,
            "model": &*self.model,
            "asked_by": self.asked_by(),
            "asked_unix_s": self.summary.asked_at_s,
            "probes": {
                "agree": outcomes.map(|it| it.same),
                "differ": outcomes.map(|it| it.other),
                "refused": outcomes.map(|it| it.refused),
            },
            "addresses": {
                "asked": addresses.map(|it| it.asked),
                "unasked": addresses.map(|it| it.unasked),
            },
            "seconds": self.round.as_ref().map(|round| round.took.as_secs_f64()),
            "max_model_len": self.round.as_ref().and_then(|round| round.model_length),
            "mark": self.mark(),
            "exact": words(features.agreed),
            "differs": words(features.differ),
            "not_compared": words(features.open),
            "differences": self.summary.differences.iter().map(difference).collect::<Vec<_>>(),
            "first_difference": parting.map(|parting| json!({
                "probe": parting.probe, "engine": parting.engine, "ours": parting.ours,
            })),
            "error": self.fault,
        })
    }
}

fn difference(of: &Difference) -> Value {
    json!({
        "features": words(of.features),
        "probe": of.probe,
        "reported": of.first.reported,
        "counted": of.first.counted,
        "since_unix_s": of.first_s,
        "last_unix_s": of.last_s,
        "calls": of.calls,
        "mean_tokens": of.mean(),
    })
}

fn words(shape: Shape) -> Vec<&'static str> {
    shape.features().map(Feature::as_str).collect()
}

/// All of them as JSON.
pub(crate) fn as_json(all: &[Known]) -> Value {
    json!({ "models": all.iter().map(Known::json).collect::<Vec<_>>() })
}

/// The most differences that are shown of one model.
const DIFFERENCES_SHOWN: usize = 8;

/// All of them as a table, with what differs below it.
pub(crate) fn table(all: &[Known], width: usize) -> String {
    let mut rows =
        vec![["backend", "model", "asked by", "probes", "agree", "mark"].map(str::to_owned)];
    rows.extend(all.iter().map(row));
    let mut text = aligned(&rows, width);
    for known in all.iter().filter(|known| known.differs()) {
        text.push_str(&format!("\n{} {}\n", known.backend, known.model));
        let mut differences = known.summary.differences.clone();
        let parting = known.parting.as_ref();
        // The one whose texts are known stands first.
        differences.sort_by_key(|one| one.probe != parting.map(|parting| parting.probe));
        for (place, one) in differences.iter().take(DIFFERENCES_SHOWN).enumerate() {
            let what = match one.probe {
                Some(probe) => probe.to_owned(),
                None => format!("{} with {}", counted(one.calls, "call"), one.features),
            };
            let (engine, ours) = (one.first.reported, one.first.counted);
            let mut line = format!("  {what}: engine {engine}, ours {ours}");
            if let Some(parting) = parting.filter(|_| place == 0) {
                let (engine, ours) = (&parting.engine, &parting.ours);
                line.push_str(&format!("; first difference at {engine:?} | {ours:?}"));
            }
            text.push_str(&wrapped(&line, width, 4));
            text.push('\n');
        }
        if let Some(more) = differences
            .len()
            .checked_sub(DIFFERENCES_SHOWN)
            .filter(|n| *n > 0)
        {
            text.push_str(&format!("  and {more} more, which --json shows\n"));
        }
    }
    text
}

fn row(known: &Known) -> [String; 6] {
    let by = match known.asked_by() {
        by if by.is_empty() => "nobody".to_owned(),
        by => by.join(", "),
    };
    let number = |n: Option<usize>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let round = known.round.as_ref().filter(|round| round.says_anything());
    let outcomes = round.map(Round::outcomes);
    [
        known.backend.to_string(),
        known.model.to_string(),
        by,
        number(outcomes.map(|it| it.same + it.other)),
        number(outcomes.map(|it| it.same)),
        known.mark(),
    ]
}

/// Columns side by side, numbers to the right; the last one is a sentence, which is broken where it has to be.
fn aligned(rows: &[[String; 6]], width: usize) -> String {
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(widest);
    let mut text = String::new();
    for row in rows {
        let [backend, model, by, probes, agree, mark] = row;
        let line = format!("{backend:<a$}  {model:<b$}  {by:<c$}  {probes:>d$}  {agree:>e$}  ");
        let before = line.chars().count();
        let left = width.saturating_sub(before).max(24);
        let mark = wrapped(mark, left, 0).replace('\n', &format!("\n{}", " ".repeat(before)));
        text.push_str(&line);
        text.push_str(&mark);
        text.push('\n');
    }
    text
}
