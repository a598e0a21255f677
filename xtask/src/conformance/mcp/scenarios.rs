//! The suite as a server: its scenarios for clients, with official clients that speak to it straight and through the gate.
//!
//! Invariant: a check comes to the same both ways, but where the list here says why it cannot; what the list says in vain fails, too.
//! Not here: what checks came to (`checks`), what the client with sessions does in a scenario (`xtask/mcp/client/scenario.mjs`).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use super::checks::{Checks, Difference};
use super::parts::Parts;
use super::running::Gate;
use super::table;
use crate::cargo::root;

/// Why scenarios, or one check of one, come to something else through a gate.
struct Unbridged {
    why: &'static str,
    /// `scenario`, or `scenario:check`.
    what: &'static [&'static str],
}

/// Of which set this is so, with the client of the Go SDK.
const UNBRIDGED: [(&str, &[Unbridged]); 2] = [
    ("2025-11-25", &[LOGIN_OF_BOTH, OTHER_KIND]),
    ("2026-07-28", &[LOGIN_OF_BOTH, LOGIN, ASKED_BY_THE_GATE]),
];

const LOGS_IN: &str =
    "the client gets a token for the server itself, and a gate is a resource of its own";
const LOGIN_OF_BOTH: Unbridged = Unbridged {
    why: LOGS_IN,
    what: &[
        "auth/metadata-default",
        "auth/metadata-var1",
        "auth/metadata-var2",
        "auth/metadata-var3",
        "auth/basic-cimd",
        "auth/scope-from-www-authenticate",
        "auth/scope-from-scopes-supported",
        "auth/scope-omitted-when-undefined",
        "auth/scope-step-up",
        "auth/scope-retry-limit",
        "auth/token-endpoint-auth-basic",
        "auth/token-endpoint-auth-post",
        "auth/token-endpoint-auth-none",
        "auth/pre-registration",
    ],
};
const LOGIN: Unbridged = Unbridged {
    why: LOGS_IN,
    what: &[
        "auth/resource-mismatch",
        "auth/offline-access-scope",
        "auth/offline-access-not-supported",
        "auth/authorization-server-migration",
        "auth/iss-supported",
        "auth/iss-not-advertised",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
        "auth/metadata-issuer-mismatch",
    ],
};
const OTHER_KIND: Unbridged = Unbridged {
    why: "this client speaks the version without sessions to the gate, and the server has sessions; with the client of the TypeScript SDK it is the same",
    what: &["elicitation-sep1034-client-defaults", "sse-retry"],
};
const ASKED_BY_THE_GATE: Unbridged = Unbridged {
    why: "what servers offer the gate asks them itself, and it can do none of what its clients can",
    what: &["request-metadata:sep-2575-client-declares-roots-capability"],
};

/// The scenarios that the client with sessions knows, of the set that is meant for it.
const OF_SESSIONS: (&str, [&str; 4]) = (
    "2025-11-25",
    [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
    ],
);

/// The words by which the lane calls itself as the client of a scenario.
pub(crate) const THROUGH: &str = "mcp-through";

/// All scenarios of a set, with the client of the Go SDK.
pub(super) fn same(parts: &Parts, binary: &Path, set: &str) -> Result<(), String> {
    let client = parts.go_scenarios.display().to_string();
    let what = ["--requirements", set];
    let [straight, through] = both(parts, binary, &format!("client-{set}"), &client, &what)?;
    println!("straight: {straight}; through the gate: {through}");
    let unbridged = UNBRIDGED.iter().filter(|(of, _)| *of == set);
    let unbridged: Vec<&Unbridged> = unbridged.flat_map(|(_, all)| *all).collect();
    judged(straight.differences(&through), &unbridged)
}

/// Those that a client with sessions is meant for, with that of the TypeScript SDK.
pub(super) fn same_with_sessions(parts: &Parts, binary: &Path) -> Result<(), String> {
    let [(sdk, _), _] = parts.typescript();
    let script = std::path::absolute(root().join("xtask/mcp/client/scenario.mjs"));
    let script = script.map_err(|cause| format!("the client's script: {cause}"))?;
    let client = [&*parts.node, &script, &sdk];
    let client = client.map(|word| word.display().to_string()).join(" ");
    let (set, scenarios) = OF_SESSIONS;
    for scenario in scenarios {
        let name = format!("sessions-{scenario}");
        let what = ["--scenario", scenario, "--spec-version", set];
        let [straight, through] = both(parts, binary, &name, &client, &what)?;
        println!("{scenario}: straight: {straight}; through the gate: {through}");
        judged(straight.differences(&through), &[])?;
    }
    Ok(())
}

/// Runs the suite with a client straight and through the gate.
fn both(
    parts: &Parts,
    binary: &Path,
    name: &str,
    client: &str,
    what: &[&str],
) -> Result<[Checks; 2], String> {
    let own = std::env::current_exe().map_err(|cause| format!("this program: {cause}"))?;
    let gates = parts.work.join("gates");
    if gates.exists() {
        let cannot = |cause: std::io::Error| format!("{}: {cause}", gates.display());
        std::fs::remove_dir_all(&gates).map_err(cannot)?;
    }
    let through = [
        own.display().to_string(),
        format!("conformance {THROUGH}"),
        binary.display().to_string(),
        gates.display().to_string(),
        client.to_owned(),
    ];
    let ran = |name: &str, command: &str| {
        let mut suite = parts.suite();
        suite.args(["client", "--command", command]).args(what);
        super::ran(suite, &parts.work.join(name))
    };
    Ok([
        ran(&format!("{name}-straight"), client)?,
        ran(&format!("{name}-gate"), &through.join(" "))?,
    ])
}

/// What differs is what is said to, and all of it.
fn judged(mut differences: Vec<Difference>, unbridged: &[&Unbridged]) -> Result<(), String> {
    let mut vain: BTreeSet<&str> = BTreeSet::new();
    for of in unbridged {
        for what in of.what {
            let before = differences.len();
            differences.retain(|difference| match what.split_once(':') {
                Some((scenario, check)) => {
                    difference.scenario != scenario || difference.id != check
                }
                None => difference.scenario != *what,
            });
            if differences.len() == before {
                vain.insert(what);
            }
        }
        println!("not bridged, as {}: {}", of.why, of.what.join(", "));
    }
    let vain: Vec<&str> = vain.into_iter().collect();
    match (differences.is_empty(), vain.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(table(&differences)),
        (true, false) => Err(format!(
            "said to be not bridged, and the same through the gate: {}",
            vain.join(", ")
        )),
    }
}

/// The client of a scenario as the suite calls it: a gate in front of the server whose address stands last, and the client at that gate.
pub(crate) fn through(words: &[&str]) -> ExitCode {
    match client_through(words) {
        Ok(code) => code,
        Err(says) => {
            eprintln!("{says}");
            ExitCode::FAILURE
        }
    }
}

fn client_through(words: &[&str]) -> Result<ExitCode, String> {
    let [binary, gates, program, args @ .., url] = words else {
        return Err(format!("{THROUGH} is called by `conformance mcp` alone"));
    };
    let dir = Path::new(gates).join(std::process::id().to_string());
    std::fs::create_dir_all(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let gate = Gate::start(Path::new(binary), &dir, url)?;
    let mut client = Command::new(program);
    client.args(args).arg(gate.url());
    let mut client = client
        .spawn()
        .map_err(|cause| format!("{program}: {cause}"))?;
    let began = Instant::now();
    while began.elapsed() < WITHIN {
        if let Some(status) = client.try_wait().map_err(|cause| cause.to_string())? {
            return Ok(if status.success() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        thread::sleep(Duration::from_millis(10));
    }
    drop(client.kill());
    drop(client.wait());
    Err(format!("{program} did not end within {WITHIN:?}"))
}

/// How long a client may take: less than the suite gives it, which would kill this process and leave the gate behind.
const WITHIN: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(scenario: &str, id: &str) -> Difference {
        let text = String::new();
        Difference {
            scenario: scenario.to_owned(),
            id: id.to_owned(),
            straight: text.clone(),
            through: text.clone(),
            says: text,
        }
    }

    #[test]
    fn what_is_said_not_to_be_bridged_has_to_differ_and_nothing_else_may() {
        let said = Unbridged {
            why: "",
            what: &["a", "b:one"],
        };
        let judged = |of: &[(&str, &str)]| {
            let differences = of.iter().map(|(scenario, id)| difference(scenario, id));
            super::judged(differences.collect(), &[&said])
        };
        assert_eq!(judged(&[("a", "x"), ("a", "y"), ("b", "one")]), Ok(()));
        for (of, says) in [
            (&[("a", "x"), ("b", "one"), ("b", "two")][..], "two"),
            (&[("a", "x")], "b:one"),
            (&[("b", "one"), ("c", "x")], "c"),
        ] {
            let why = judged(of).expect_err("they differ otherwise");
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn the_page_says_which_scenarios_are_not_bridged() {
        let page = std::fs::read_to_string(root().join("docs/mcp.md")).expect("a page");
        for what in OTHER_KIND.what.iter().chain(ASKED_BY_THE_GATE.what) {
            let (scenario, _) = what.split_once(':').unwrap_or((what, ""));
            assert!(
                page.contains(&format!("`{scenario}`")),
                "docs/mcp.md: {what}"
            );
        }
    }
}
