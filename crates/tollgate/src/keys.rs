//! `tollgate keys`: makes, lists, rotates and revokes keys of the gate's own.
//!
//! A gate that runs watches the file and knows of a change within a second.
//! Invariant: the secret of a key is shown once, when it is made, and is kept nowhere.
//! Not here: what is done to them (`keyring`), what a key is (`identity::keys`).

mod arguments;

use std::io::IsTerminal;
use std::path::Path;

use admin::KeyFault;
use identity::keys::NewKey;
use ledger::date;
use ledger::report::laid_out;
use policy::snapshot::Snapshot;

pub(crate) use self::arguments::Keys;
use self::arguments::{Create, List, Revoke, Rotate, Verb, Where};
use crate::keyring::{Absent, Keyring, Rotation, Wanted, row, state};
use crate::running::load;
use crate::services::now_s;
use crate::source::Source;
use crate::width;
use crate::world::World;

/// Does what is asked, and gives what there is to say.
///
/// # Errors
/// Why it cannot be done, in words.
pub(crate) fn keys(asked: &Keys) -> Result<String, String> {
    match &asked.verb {
        Verb::Create(asked) => create(asked),
        Verb::List(asked) => list(asked),
        Verb::Rotate(asked) => rotate(asked),
        Verb::Revoke(asked) => revoke(asked),
    }
}

/// The file that says where keys are; an environment names none.
fn file_of(named: Option<&Path>) -> Result<Source, String> {
    match Source::of(named) {
        Source::Environment => Err(
            "no tollgate.yaml here; `tollgate init` writes one, or name a file with -c FILE"
                .to_owned(),
        ),
        source => Ok(source),
    }
}

/// The keys of a configuration without faults, and the configuration.
fn keyring(named: Option<&Path>) -> Result<(Keyring, Snapshot), String> {
    let source = file_of(named)?;
    let loaded = load(source.file(), &World).map_err(|faults| faults.to_string())?;
    let keyring = Keyring::of(&loaded, Absent::IsEmpty).ok_or_else(|| none_in(&source))?;
    Ok((keyring, loaded.snapshot))
}

/// The keys of a file, or of a configuration whatever is wrong with the rest of it.
fn keyring_at_least(at: &Where) -> Result<Keyring, String> {
    if let Some(file) = &at.file {
        return Ok(Keyring::bare(file.clone(), Absent::IsLost));
    }
    let source = file_of(at.config.config.as_deref())?;
    match load(source.file(), &World) {
        Ok(loaded) => Keyring::of(&loaded, Absent::IsEmpty).ok_or_else(|| none_in(&source)),
        Err(faults) => {
            let file = faults.key_files.first().cloned();
            let file = file.ok_or_else(|| {
                format!("{faults}\nname the file of keys itself: --file keys.jsonl")
            })?;
            tracing::warn!(
                "the configuration has faults, which `tollgate check` shows; {} is used all the same",
                file.display()
            );
            Ok(Keyring::bare(file, Absent::IsEmpty))
        }
    }
}

fn none_in(source: &Source) -> String {
    format!(
        "{} has no keys; write identity: [ {{ keys: {{ file: keys.jsonl }} }} ]",
        source.name().display()
    )
}

fn said(fault: KeyFault) -> String {
    fault.to_string()
}

fn create(asked: &Create) -> Result<String, String> {
    let (keyring, snapshot) = keyring(asked.config.config.as_deref())?;
    let wanted = Wanted {
        workload: asked.workload.clone(),
        user: asked.user.clone(),
        name: asked.name.clone(),
        tags: asked.tag.iter().cloned().collect(),
        models: asked.model.clone(),
        limits: asked.limit.clone(),
        budgets: asked.budget.clone(),
        expires: asked.expires,
    };
    let (key, entry) = keyring.create(wanted, now_s(), &snapshot).map_err(said)?;
    Ok(shown_once(&key, asked.json, "made", &entry.workload))
}

fn rotate(asked: &Rotate) -> Result<String, String> {
    let keyring = keyring_at_least(&asked.at)?;
    let how = Rotation {
        overlap: asked.overlap,
        force: asked.force,
    };
    let (key, entry) = keyring.rotate(&asked.id, how, now_s()).map_err(said)?;
    Ok(shown_once(&key, asked.json, "rotated", &entry.workload))
}

fn revoke(asked: &Revoke) -> Result<String, String> {
    let keyring = keyring_at_least(&asked.at)?;
    keyring.revoke(&asked.id, now_s()).map_err(said)?;
    if asked.json {
        return Ok(serde_json::json!({ "id": asked.id, "revoked": true }).to_string());
    }
    Ok(format!(
        "{} is revoked; a gate that runs with this file refuses it within a second",
        asked.id
    ))
}

fn list(asked: &List) -> Result<String, String> {
    let keyring = keyring_at_least(&asked.at)?;
    let file = keyring.read().map_err(said)?;
    let now = now_s();
    if asked.json {
        let keys: Vec<_> = file.entries.iter().map(|entry| row(entry, now)).collect();
        return serde_json::to_string_pretty(&keys).map_err(|error| error.to_string());
    }
    if file.entries.is_empty() {
        return Ok("no keys yet; `tollgate keys create --workload NAME` makes one".to_owned());
    }
    let heads = ["id", "workload", "user", "name", "state", "expires"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    rows.extend(file.entries.iter().map(|entry| {
        vec![
            entry.id.clone(),
            entry.workload.clone(),
            text(&entry.user),
            text(&entry.name),
            state(entry, now).to_owned(),
            entry.expires_unix_s.map_or_else(
                || "-".to_owned(),
                |at| date::timestamp(at.saturating_mul(1000)),
            ),
        ]
    }));
    let width = width::of(std::io::stdout());
    Ok(laid_out(&rows, heads.len(), width))
}

/// A key on its way to its owner.
fn shown_once(key: &NewKey, json: bool, done: &str, workload: &str) -> String {
    let secret = String::from_utf8_lossy(key.key.expose());
    if json {
        return serde_json::json!({ "id": key.id, "key": secret }).to_string();
    }
    if !std::io::stdout().is_terminal() {
        // For `KEY=$(tollgate keys create …)`.
        return secret.into_owned();
    }
    format!(
        "{secret}\n\nThe key {} of the workload {workload} is {done}. This is the only time that it is shown: only \
         its hash is kept.\nClients bring it as any SDK does: OPENAI_API_KEY, or authorization: Bearer …",
        key.id
    )
}
