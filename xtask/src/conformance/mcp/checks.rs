//! What the checks of a suite came to, and where two runs differ.
//!
//! Invariant: a check that says less in its favour, or is missing, is a difference; that it informs in place of passing is none (a stream that
//! is optional).
//! Not here: the suite (`super`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;

/// The suite's own trouble with its schemas, of nobody's server.
const HARNESS: &str = "wire-schema-harness-error";
/// What it writes down of each message that it sees as a server: a gate asks what servers are by itself, and some of it less often.
const TRAFFIC: [&str; 3] = [
    "incoming-request",
    "outgoing-response",
    "outgoing-sse-event",
];

/// A check of a scenario: their names, its id and its own name.
type Key = (String, String, String);

/// What all checks of a run came to, a status each time that one was made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Checks(BTreeMap<Key, Vec<(Status, String)>>);

/// What a check came to, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    /// It passed, or informs.
    Passed,
    Skipped,
    Warned,
    Failed,
}

/// A check that came to something else.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) scenario: String,
    pub(super) id: String,
    pub(super) straight: String,
    pub(super) through: String,
    /// What the suite says of it.
    pub(super) says: String,
}

impl Checks {
    /// Reads the results that a suite left in a directory: one for each scenario, with the time behind its name; some names have two parts.
    pub(super) fn read(results: &Path) -> Result<Self, String> {
        let mut checks = Self::default();
        checks.read_below(results, "")?;
        Ok(checks)
    }

    fn read_below(&mut self, results: &Path, start: &str) -> Result<(), String> {
        let cannot = |cause: std::io::Error| format!("{}: {cause}", results.display());
        for entry in std::fs::read_dir(results).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = format!("{start}{}", entry.file_name().to_string_lossy());
            if scenario(&name) == name {
                self.read_below(&entry.path(), &format!("{name}/"))?;
                continue;
            }
            let file = entry.path().join("checks.json");
            let text = std::fs::read_to_string(&file)
                .map_err(|cause| format!("{}: {cause}", file.display()))?;
            self.add(scenario(&name), &text)?;
        }
        Ok(())
    }

    fn add(&mut self, scenario: &str, text: &str) -> Result<(), String> {
        let checks: Vec<Value> = serde_json::from_str(text)
            .map_err(|cause| format!("the checks of {scenario}: {cause}"))?;
        for check in checks {
            let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
            let id = text("id");
            if id == HARNESS || TRAFFIC.contains(&&*id) {
                continue;
            }
            let key = (scenario.to_owned(), text("id"), text("name"));
            let status = Status::of(&text("status"));
            let of = self.0.entry(key).or_default();
            of.push((status, text("errorMessage")));
            of.sort();
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn statuses(&self, key: &Key) -> Vec<Status> {
        let of = self.0.get(key).map_or(&[][..], Vec::as_slice);
        of.iter().map(|(status, _)| *status).collect()
    }

    /// Where a run through a gate came to something else.
    pub(super) fn differences(&self, through: &Self) -> Vec<Difference> {
        let mut keys: Vec<&Key> = self.0.keys().chain(through.0.keys()).collect();
        keys.sort();
        keys.dedup();
        let differs = |key: &&Key| self.statuses(key) != through.statuses(key);
        let keys = keys.into_iter().filter(differs);
        keys.map(|key| self.difference(key, through)).collect()
    }

    /// Where it failed and this run did not.
    pub(super) fn worse_in(&self, through: &Self) -> Vec<Difference> {
        let fails = |of: &Self, key: &Key| of.statuses(key).contains(&Status::Failed);
        let keys = through.0.keys();
        let keys = keys.filter(|key| fails(through, key) && !fails(self, key));
        keys.map(|key| self.difference(key, through)).collect()
    }

    /// Whether the same check fails here.
    pub(super) fn fails_like(&self, of: &Difference) -> bool {
        self.0.iter().any(|((scenario, id, _), came)| {
            *scenario == of.scenario
                && *id == of.id
                && came.iter().any(|(status, _)| *status == Status::Failed)
        })
    }

    fn difference(&self, key: &Key, through: &Self) -> Difference {
        let of = through.0.get(key).or_else(|| self.0.get(key));
        let says = of.and_then(|of| of.iter().find(|(_, says)| !says.is_empty()));
        Difference {
            scenario: key.0.clone(),
            id: key.1.clone(),
            straight: shown(&self.statuses(key)),
            through: shown(&through.statuses(key)),
            says: says.map(|(_, says)| says.clone()).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted: Status| {
            let all = self.0.values().flatten();
            all.filter(|(status, _)| *status == wanted).count()
        };
        let of = [
            Status::Passed,
            Status::Failed,
            Status::Warned,
            Status::Skipped,
        ];
        let of = of.map(|status| format!("{} {}", count(status), status.as_str()));
        write!(f, "{}", of.join(", "))
    }
}

impl Status {
    fn of(said: &str) -> Self {
        match said {
            "SUCCESS" | "INFO" => Self::Passed,
            "SKIPPED" => Self::Skipped,
            "WARNING" => Self::Warned,
            // What is not known is not good.
            _ => Self::Failed,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Warned => "warned",
            Self::Failed => "failed",
        }
    }
}

fn shown(of: &[Status]) -> String {
    if of.is_empty() {
        return "absent".to_owned();
    }
    let of: Vec<&str> = of.iter().map(|status| status.as_str()).collect();
    of.join("+")
}

/// The scenario of a directory: `server-tools-list-2026-11-28T22-05-28-860Z`.
fn scenario(name: &str) -> &str {
    let is_time = |of: &str| of.len() >= 11 && of.starts_with("-20") && of.as_bytes()[11] == b'T';
    let mut places = name.match_indices("-20").map(|(at, _)| at);
    let at = places.find(|at| name.len() > at + 11 && is_time(&name[*at..]));
    at.map_or(name, |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(of: &[(&str, &str)]) -> Checks {
        let mut checks = Checks::default();
        for (id, status) in of {
            let text = format!(r#"[{{"id":"{id}","name":"N","status":"{status}"}}]"#);
            checks.add("s", &text).expect("checks");
        }
        checks
    }

    #[test]
    fn what_comes_out_otherwise_or_is_missing_is_a_difference_and_what_informs_is_none() {
        let straight = checks(&[
            ("a", "SUCCESS"),
            ("b", "FAILURE"),
            ("c", "SUCCESS"),
            (HARNESS, "FAILURE"),
        ]);
        let through = checks(&[("a", "INFO"), ("b", "FAILURE"), ("d", "SUCCESS")]);
        let told = straight.differences(&through);
        let told: Vec<(&str, &str, &str)> = told
            .iter()
            .map(|of| (&*of.id, &*of.straight, &*of.through))
            .collect();
        let wanted = [("c", "passed", "absent"), ("d", "absent", "passed")];
        assert_eq!(told, wanted);
        assert_eq!(
            straight.to_string(),
            "2 passed, 1 failed, 0 warned, 0 skipped"
        );
    }

    #[test]
    fn what_fails_at_either_server_by_itself_is_no_fault_of_the_gate() {
        let meant = checks(&[("a", "SUCCESS"), ("b", "FAILURE"), ("c", "SUCCESS")]);
        let through = checks(&[("a", "FAILURE"), ("b", "FAILURE"), ("c", "FAILURE")]);
        let worse = meant.worse_in(&through);
        let ids: Vec<&str> = worse.iter().map(|of| &*of.id).collect();
        assert_eq!(ids, ["a", "c"]);
        let other = checks(&[("a", "FAILURE")]);
        assert!(other.fails_like(&worse[0]) && !other.fails_like(&worse[1]));
    }

    #[test]
    fn a_directory_is_named_for_its_scenario_and_the_time() {
        let name = "server-json-schema-2020-12-2026-11-28T22-05-29-672Z";
        assert_eq!(scenario(name), "server-json-schema-2020-12");
        assert_eq!(scenario("server-ping"), "server-ping");
    }
}
