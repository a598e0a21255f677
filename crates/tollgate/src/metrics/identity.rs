//! Metrics of who says who calls: files of keys, issuers, services that are asked; and of upstream credentials that are
//! held ready.
//!
//! Invariant: labels are names of the configuration; where two things share one, the worse of them is shown.
//! Not here: what callers did (`telemetry`).

use std::collections::BTreeMap;

use telemetry::Extra;
use telemetry::extras::number;

use crate::identity::KeysState;
use crate::services::{IssuerState, MadeState, Services};

/// All of them, now.
pub(super) fn of(services: &Services, key_files: &[KeysState]) -> Vec<Extra> {
    let mut extras: Vec<Extra> = key_files.iter().flat_map(of_file).collect();
    extras.extend(of_issuers(services.issuers()));
    extras.extend(of_credentials(services.makers.states()));
    for ((service, host), counts) in services.asked() {
        let results = [
            ("answered", counts.answered),
            ("kept", counts.kept),
            ("failed", counts.failed),
        ];
        extras.extend(results.map(|(result, n)| {
            let help = "Questions to services, by what became of them.";
            let extra = Extra::counter("tollgate_callout_questions_total", help, number(n));
            let extra = extra.with("service", service).with("host", &host);
            extra.with("result", result)
        }));
    }
    extras
}

fn flag(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

fn of_file(file: &KeysState) -> Vec<Extra> {
    let labelled = |extra: Extra| extra.with("source", &file.source);
    let mut extras = vec![
        labelled(Extra::gauge(
            "tollgate_identity_key_file_keys",
            "Keys in the file, revoked ones included.",
            number(file.keys as u64),
        )),
        labelled(Extra::gauge(
            "tollgate_identity_key_file_ok",
            "Whether the file of keys can be trusted (1), or nobody is let in by it (0).",
            flag(file.version.is_some()),
        )),
    ];
    if let Some(version) = &file.version {
        let help = "Version of the file of keys in use, always 1.";
        let info = Extra::gauge("tollgate_identity_key_file_info", help, 1.0);
        extras.push(labelled(info).with("version", version));
    }
    extras
}

fn of_issuers(states: Vec<IssuerState>) -> Vec<Extra> {
    let mut issuers: BTreeMap<String, IssuerState> = BTreeMap::new();
    for state in states {
        let worst = issuers.entry(state.issuer.clone()).or_insert(state.clone());
        worst.keys = worst.keys.min(state.keys);
        worst.age = worst.age.zip(state.age).map(|(a, b)| a.max(b));
        worst.are_available &= state.are_available;
        worst.is_last_good &= state.is_last_good;
        worst.fetches = worst.fetches.max(state.fetches);
        worst.failures = worst.failures.max(state.failures);
    }
    issuers.values().flat_map(of_issuer).collect()
}

fn of_issuer(state: &IssuerState) -> Vec<Extra> {
    let labelled = |extra: Extra| extra.with("issuer", &state.issuer);
    let mut extras = vec![
        labelled(Extra::gauge(
            "tollgate_identity_issuer_keys",
            "Keys of the issuer that are of use.",
            number(state.keys as u64),
        )),
        labelled(Extra::gauge(
            "tollgate_identity_issuer_available",
            "Whether the keys of the issuer may be used (1), or its tokens are answered 503 (0).",
            flag(state.are_available),
        )),
        labelled(Extra::gauge(
            "tollgate_identity_issuer_last_fetch_success",
            "Whether the last fetch of the issuer's keys ended well (1) or not (0).",
            flag(state.is_last_good),
        )),
    ];
    if let Some(age) = state.age {
        extras.push(labelled(Extra::gauge(
            "tollgate_identity_issuer_keys_age_seconds",
            "Time since the issuer's keys were last fetched well, seconds.",
            age.as_secs_f64(),
        )));
    }
    let good = state.fetches.saturating_sub(state.failures);
    for (result, n) in [("good", good), ("failed", state.failures)] {
        let help = "Fetches of the issuer's keys, by how they ended.";
        let extra = Extra::counter("tollgate_identity_issuer_fetches_total", help, number(n));
        extras.push(labelled(extra).with("result", result));
    }
    extras
}

fn of_credentials(states: Vec<(String, MadeState)>) -> Vec<Extra> {
    let mut accounts: BTreeMap<String, MadeState> = BTreeMap::new();
    for (account, state) in states {
        let worst = accounts.entry(account).or_insert(state);
        worst.left = worst.left.zip(state.left).map(|(a, b)| a.min(b));
        worst.is_last_good &= state.is_last_good;
    }
    let of = |(account, state): (&String, &MadeState)| {
        [
            Extra::gauge(
                "tollgate_upstream_credential_left_seconds",
                "Time for which the upstream's credential that is held still lives, seconds; 0: there is none.",
                state.left.map_or(0.0, |left| left.as_secs_f64()),
            ),
            Extra::gauge(
                "tollgate_upstream_credential_last_fetch_success",
                "Whether the last fetch of the upstream's credential ended well (1) or not (0).",
                flag(state.is_last_good),
            ),
        ]
        .map(|extra| extra.with("account", account))
    };
    accounts.iter().flat_map(of).collect()
}
