//! An earlier result beside a new one: what became worse, and by how much.
//!
//! Invariant: a figure is worse where its middle is worse by more than the tolerance *and* its best round is worse than the worst
//! round of before: rounds that overlap are noise of the machine. Better is told in the same way, and changes no exit code.
//! Not here: what is measured (`race`, `oauth_rbac`), how it looks (`report`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use experiment::statistics::Spread;
use serde_json::Value;

use crate::report::content::{Cell, Section, Table};

/// Which way a figure is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Good {
    Less,
    More,
}

/// What is compared, by the names of the result files.
const COMPARED: [(&str, Good); 12] = [
    ("rps", Good::More),
    ("events_per_second", Good::More),
    ("success_percent", Good::More),
    ("cpu_us_per_request", Good::Less),
    ("cpu_us_per_event", Good::Less),
    ("latency_us.p50", Good::Less),
    ("latency_us.p99", Good::Less),
    ("first_byte_us.p50", Good::Less),
    ("first_byte_us.p99", Good::Less),
    ("p50_ms", Good::Less),
    ("p95_ms", Good::Less),
    ("p99_ms", Good::Less),
];

/// What a command line says of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An earlier result.json: what became worse than there ends with 1.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// By how much a figure may be worse, a share of it.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, requires = "baseline", value_parser = share)]
    tolerance: f64,
}

/// The figures of a result by row and name.
#[derive(Debug, Default, PartialEq)]
struct Figures(BTreeMap<String, BTreeMap<&'static str, Spread>>);

/// One figure that changed.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    row: String,
    figure: &'static str,
    before: f64,
    now: f64,
    /// Of what it was.
    share: f64,
    is_worse: bool,
}

/// A result beside an earlier one.
#[derive(Debug)]
pub(crate) struct Compared {
    file: PathBuf,
    changes: Vec<Change>,
    as_before: usize,
    /// Rows of before that there are none of now.
    gone: Vec<String>,
    /// What else differs, and speaks against comparing them.
    differs: Vec<String>,
}

impl Options {
    /// The earlier result, before anything is measured.
    ///
    /// # Errors
    /// It cannot be read, or is no result of this kind.
    pub(crate) fn read(&self, schema: &str) -> Result<Option<Value>, String> {
        let Some(file) = &self.baseline else {
            return Ok(None);
        };
        let said = |says: String| format!("{}: {says}", file.display());
        let text = std::fs::read_to_string(file).map_err(|error| said(error.to_string()))?;
        let result: Value = serde_json::from_str(&text).map_err(|error| said(error.to_string()))?;
        match result["schema"].as_str() {
            Some(found) if found == schema => Ok(Some(result)),
            found => Err(said(format!(
                "is no result of this kind: its schema is {}, not {schema}",
                found.unwrap_or("not said")
            ))),
        }
    }

    /// A new result beside the earlier one.
    pub(crate) fn compare(&self, before: &Value, now: &str) -> Compared {
        let now: Value = serde_json::from_str(now).unwrap_or_default();
        let file = self.baseline.as_deref().unwrap_or(Path::new(""));
        compared(file, before, &now, self.tolerance)
    }
}

fn compared(file: &Path, before: &Value, now: &Value, tolerance: f64) -> Compared {
    let (was, is) = (Figures::of(before), Figures::of(now));
    let mut compared = Compared {
        file: file.to_owned(),
        changes: Vec::new(),
        as_before: 0,
        gone: Vec::new(),
        differs: differences(before, now),
    };
    for (row, figures) in &was.0 {
        let Some(new) = is.0.get(row) else {
            compared.gone.push(row.clone());
            continue;
        };
        for (figure, good) in COMPARED {
            let (Some(before), Some(now)) = (figures.get(figure), new.get(figure)) else {
                continue;
            };
            match changed(*before, *now, good, tolerance) {
                Some(is_worse) => compared.changes.push(Change {
                    row: row.clone(),
                    figure,
                    before: before.median,
                    now: now.median,
                    share: now.median / before.median - 1.0,
                    is_worse,
                }),
                None => compared.as_before += 1,
            }
        }
    }
    compared
}

/// Whether a figure became worse, or better; `None` where it is as before.
fn changed(before: Spread, now: Spread, good: Good, tolerance: f64) -> Option<bool> {
    if before.median <= 0.0 || !before.median.is_finite() {
        return None;
    }
    let is_up = now.median > before.median * (1.0 + tolerance) && now.min > before.max;
    let is_down = now.median < before.median * (1.0 - tolerance) && now.max < before.min;
    match (is_up, is_down) {
        (true, _) => Some(good == Good::Less),
        (_, true) => Some(good == Good::More),
        _ => None,
    }
}

/// What was not the same for both.
fn differences(before: &Value, now: &Value) -> Vec<String> {
    let of = |result: &Value, path: &str| result.pointer(path).cloned().unwrap_or_default();
    let settings = [
        ("/machine/cpu", "the machine's CPU"),
        ("/machine/cores", "its cores"),
        ("/seconds", "seconds of a measurement"),
        ("/load_processes", "processes that send the load"),
        ("/requests", "requests"),
        ("/connections", "connections"),
    ];
    let differ = |(path, what): (&str, &str)| {
        let (was, is) = (of(before, path), of(now, path));
        // What an older file does not say is no difference.
        (was != is && !was.is_null()).then(|| format!("{what}: {was} before, {is} now"))
    };
    settings.into_iter().filter_map(differ).collect()
}

impl Figures {
    fn of(result: &Value) -> Self {
        let list = |name: &str| result[name].as_array().into_iter().flatten();
        let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
        let of_race = list("rows").map(|row| {
            let name = format!("{}, {}", text(row, "subject"), text(row, "scenario"));
            let figure = |path: &str| spread(row.pointer(&pointer(path))?);
            (name, named(figure))
        });
        let of_runs = list("runs").map(|run| {
            let name = format!("{}, {}", text(run, "variant"), text(run, "limit"));
            let figure = |path: &str| {
                let iterations = run["iterations"].as_array()?.iter();
                Spread::of(iterations.filter_map(|one| one[path].as_f64()))
            };
            (name, named(figure))
        });
        Self(of_race.chain(of_runs).collect())
    }
}

fn named(figure: impl Fn(&str) -> Option<Spread>) -> BTreeMap<&'static str, Spread> {
    let all = COMPARED.into_iter();
    all.filter_map(|(name, _)| Some((name, figure(name)?)))
        .collect()
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn spread(of: &Value) -> Option<Spread> {
    let figure = |name: &str| of[name].as_f64();
    Some(Spread {
        median: figure("median")?,
        min: figure("min")?,
        max: figure("max")?,
    })
}

impl Compared {
    /// Whether anything became worse, or is not there any more.
    pub(crate) fn is_worse(&self) -> bool {
        !self.gone.is_empty() || self.changes.iter().any(|change| change.is_worse)
    }

    /// What a person reads.
    pub(crate) fn section(&self) -> Section {
        let title = format!("Beside {}", self.file.display());
        let mut section = Section::new("baseline", title);
        for differs in &self.differs {
            section.text(format!("not measured alike: {differs}"));
        }
        for row in &self.gone {
            section.text(format!("not measured any more: {row}"));
        }
        let table = Table::each(
            "What changed by more than the tolerance, in every round",
            &self.changes,
            &[
                ("Row", |c| c.row.as_str().into()),
                ("Figure", |c| c.figure.into()),
                ("#Before", |c| format!("{:.2}", c.before).into()),
                ("#Now", |c| format!("{:.2}", c.now).into()),
                ("#Change", |c| format!("{:+.1} %", c.share * 100.0).into()),
                ("", |c| Cell::held(!c.is_worse, "better", "worse")),
            ],
        );
        section.table(table, "nothing changed by more than the tolerance");
        section.text(format!("{} figures are as before.", self.as_before));
        section
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=10.0).contains(&share) => Ok(share),
        _ => Err("a share from 0 to 10, such as 0.1 for a tenth".into()),
    }
}

#[cfg(test)]
mod tests;
