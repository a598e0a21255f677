//! Figures that pages repeat are those of the table that they come from: what a call costs, which `docs/usage.md` has.
//!
//! Not here: how they were measured (`prove race --meter`).

use super::Fault;
use super::tree::Tree;

const SOURCE: &str = "docs/usage.md";
const SIZING: &str = "docs/sizing.md";
const README: &str = "README.md";
/// The row of the source that the README leads with.
const FIRST: &str = "400 different bodies of 1.2 KB";
/// How much of a machine a call is given: three times what it takes.
const ROOM: f64 = 3.0;

/// A kind of traffic: CPU of a call in microseconds.
struct Cost {
    traffic: String,
    metered: f64,
    bare: f64,
}

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let costs: Vec<Cost> = rows(tree, SOURCE).filter_map(Cost::of).collect();
    if costs.is_empty() {
        return vec![Fault::new(SOURCE, "has no table of what metering costs")];
    }
    let mut faults = sizes(tree, &costs);
    faults.extend(examples(tree, &costs));
    let readme = tree.get(README).map_or("", |file| &file.text);
    if let Some(first) = costs.iter().find(|cost| cost.traffic == FIRST) {
        let says = format!(
            "**{:.0} µs** of CPU for a chat call of 1.2 KB, of which the meter is {:.0}",
            first.metered,
            first.metered.round() - first.bare.round()
        );
        if !readme.contains(&says) {
            faults.push(Fault::new(README, format!("does not say {says:?}")));
        }
    }
    faults
}

/// Each row of the table of sizes has the figures of its traffic.
fn sizes(tree: &Tree, costs: &[Cost]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut found = 0;
    for row in rows(tree, SIZING) {
        let Some(cost) = costs.iter().find(|cost| row.first() == Some(&cost.traffic)) else {
            continue;
        };
        found += 1;
        let wanted = [cost.bare, cost.metered].map(|micros| format!("{micros:.0} µs"));
        if row.get(1..3) != Some(&wanted[..]) {
            let says = format!("{}: {row:?} for {wanted:?} of {SOURCE}", cost.traffic);
            faults.push(Fault::new(SIZING, says));
        }
    }
    if found == 0 {
        faults.push(Fault::new(SIZING, format!("has no row of {SOURCE}")));
    }
    faults
}

/// Each example, `5,000 calls/s of …, metered (38 µs)`, comes to the cores that stand beside it.
fn examples(tree: &Tree, costs: &[Cost]) -> Vec<Fault> {
    let known = |micros: f64| {
        let figures = costs.iter().flat_map(|cost| [cost.bare, cost.metered]);
        figures.map(f64::round).any(|figure| figure == micros)
    };
    let mut faults = Vec::new();
    for row in rows(tree, SIZING) {
        let [said, cores, ..] = row.as_slice() else {
            continue;
        };
        let Some((rate, rest)) = said.split_once(" calls/s of ") else {
            continue;
        };
        let micros = rest
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(" µs)"));
        let micros = micros.and_then(|(micros, _)| micros.parse::<f64>().ok());
        let rate = rate.replace(',', "").parse::<f64>().ok();
        let (Some(micros), Some(rate)) = (micros, rate) else {
            faults.push(Fault::new(SIZING, format!("{said}: says no rate or no µs")));
            continue;
        };
        let wanted = format!("{:.2}", rate * micros * ROOM / 1e6);
        if !known(micros) || !cores.starts_with(&wanted) {
            let says =
                format!("{said}: {cores}, where {wanted} cores of a figure of {SOURCE} stand");
            faults.push(Fault::new(SIZING, says));
        }
    }
    faults
}

impl Cost {
    /// `| traffic | rate | metered | not metered | ratio | of that counting |`
    fn of(row: Vec<String>) -> Option<Self> {
        let [traffic, rate, metered, bare, _, _] = <[String; 6]>::try_from(row).ok()?;
        let number = |text: String| text.replace(',', "").parse::<f64>().ok();
        let is_rate = rate.ends_with("/s") || rate.ends_with("at once");
        let (metered, bare) = (number(metered)?, number(bare)?);
        is_rate.then_some(Self {
            traffic,
            metered,
            bare,
        })
    }
}

/// The cells of each line of a page's tables.
fn rows<'t>(tree: &'t Tree, page: &str) -> impl Iterator<Item = Vec<String>> + 't {
    let text = tree.get(page).map_or("", |file| &file.text);
    let lines = text.lines().filter_map(|line| line.strip_prefix("| "));
    lines.map(|line| {
        let cells = line.trim_end().trim_end_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    const USAGE: &str = "| traffic | rate | metered | not metered | ratio | of that counting |\n|---|---|---|---|---|---|\n\
                         | 400 different bodies of 1.2 KB | 4,000/s | 38.4 | 24.6 | 1.56 | 2.6 |\n";

    fn found(sizing: &str, readme: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = vec![
            file(SOURCE, USAGE),
            file(SIZING, sizing),
            file(README, readme),
        ];
        let faults = faults(&Tree { files });
        faults.into_iter().map(|fault| fault.says).collect()
    }

    #[test]
    fn canary_a_figure_that_differs_from_its_source_is_found() {
        let sizing = "| 400 different bodies of 1.2 KB | 25 µs | 38 µs |\n| 5,000 calls/s of 1.2 KB, metered (38 µs) | 0.57 |\n";
        let readme = "**38 µs** of CPU for a chat call of 1.2 KB, of which the meter is 13.";
        assert_eq!(found(sizing, readme), [""; 0]);
        assert!(found(sizing, "").concat().contains("does not say"));
        for (from, to) in [
            ("25 µs", "24 µs"),
            ("(38 µs)", "(35 µs)"),
            ("0.57", "0.5"),
            ("(38 µs)", ""),
            ("400 different", "Different"),
        ] {
            let other = sizing.replacen(from, to, 1);
            assert_eq!(found(&other, readme).len(), 1, "{from} {to}");
        }
        let none = Tree { files: Vec::new() };
        assert_eq!(super::faults(&none).len(), 1);
    }
}
