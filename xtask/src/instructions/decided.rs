//! Counts that a decision page lets rise: a row `| instructions | scenario | build | count |` of a table there.
//!
//! Not here: the counts as they are (`counts`).

use crate::cargo::root;
use crate::instructions::Build;

/// Where the pages are.
const PAGES: &str = "docs/decisions";

/// The rows of all pages.
#[derive(Debug, Default)]
pub(super) struct Decided(Vec<Row>);

#[derive(Debug, PartialEq, Eq)]
struct Row {
    scenario: String,
    build: Build,
    /// As many as were decided.
    count: u64,
}

impl Decided {
    pub(super) fn read() -> Result<Self, String> {
        let dir = root().join(PAGES);
        let fault = |cause| format!("{}: {cause}", dir.display());
        let mut rows = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(fault)? {
            let text = std::fs::read_to_string(entry.map_err(fault)?.path()).map_err(fault)?;
            rows.extend(text.lines().filter_map(Row::of));
        }
        Ok(Self(rows))
    }

    /// Whether a page says that the scenario may come to so many.
    pub(super) fn lets(&self, scenario: &str, build: Build, count: u64) -> bool {
        let mut rows = self.0.iter();
        rows.any(|row| row.scenario == scenario && row.build == build && count <= row.count)
    }
}

impl Row {
    fn of(line: &str) -> Option<Self> {
        let mut cells = line.trim().strip_prefix('|')?.split('|').map(str::trim);
        let is_row = cells.next()? == "instructions";
        let (scenario, build) = (cells.next()?, Build::of(cells.next()?)?);
        let count: String = cells.next()?.chars().filter(|c| *c != ',').collect();
        is_row.then_some(Self {
            scenario: scenario.to_owned(),
            build,
            count: count.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_lets_one_scenario_of_one_build_rise_so_far() {
        let page = "Text.\n\n| | scenario | build | count |\n|---|---|---|---|\n\
                    | instructions | unary_1k_key | dist | 31,000 |\n| other | unary_1k_bare | dist | 1 |\n";
        let decided = Decided(page.lines().filter_map(Row::of).collect());
        assert_eq!(decided.0.len(), 1);
        assert!(decided.lets("unary_1k_key", Build::Dist, 31_000));
        assert!(!decided.lets("unary_1k_key", Build::Dist, 31_001));
        assert!(!decided.lets("unary_1k_key", Build::Tests, 1));
        assert!(!decided.lets("unary_1k_bare", Build::Dist, 1));
    }
}
