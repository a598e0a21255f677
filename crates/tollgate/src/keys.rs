//! `tollgate keys`: makes, lists, changes, rotates and revokes keys of the gate's own.
//!
//! A gate that runs watches the file and knows of a change within a second.
//! Invariant: the secret of a key is shown once, when it is made, and is kept nowhere.
//! Not here: what is done to them (`keyring`), what a key is (`identity::keys`).

mod arguments;
mod written;

use std::io::IsTerminal;
use std::path::Path;

use admin::KeyFault;
use identity::keys::{Entry, NewKey};
use ledger::date;
use ledger::report::laid_out;
use policy::snapshot::Snapshot;

pub(crate) use self::arguments::Keys;
use self::arguments::{Change, Create, List, Part, Revoke, Rotate, Verb, Where};
use crate::keyring::{self, Absent, Keyring, Rotation, Wanted, row, state};
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
        Verb::Change(asked) => change(asked),
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
    warn_of(&entry, &snapshot);
    Ok(shown_once(&key, asked.json, "made", &entry.workload))
}

/// Models that a key names and that no route of its workload takes: a slip most often, or of a route that comes later.
fn warn_of(entry: &Entry, s: &Snapshot) {
    for model in keyring::untaken(entry, s) {
        tracing::warn!(
            "no route of the workload {} takes the model {model}",
            entry.workload
        );
    }
}

fn change(asked: &Change) -> Result<String, String> {
    let (keyring, snapshot) = keyring(asked.config.config.as_deref())?;
    let now = now_s();
    let changed = keyring.change(&asked.id, wanted(asked)?, now, &snapshot);
    let (before, after) = changed.map_err(said)?;
    if after.models != before.models {
        warn_of(&after, &snapshot);
    }
    if asked.json {
        return Ok(row(&after, now).to_string());
    }
    let mut says = format!(
        "{} of the workload {} is changed; a gate that runs with this file goes by it within a second",
        after.id, after.workload
    );
    let parts = written::parts(&before)
        .into_iter()
        .zip(written::parts(&after));
    for ((name, was), (_, is)) in parts.filter(|((_, was), (_, is))| was != is) {
        says.push_str(&format!("\n  {name}: {was} -> {is}"));
    }
    Ok(says)
}

/// What is to change; a kind that is named and one that is taken away cannot be the same.
fn wanted(asked: &Change) -> Result<keyring::Change, String> {
    let part = |part: Part, name: &str, option: &str, is_said: bool| match (
        is_said,
        asked.without.contains(&part),
    ) {
        (true, true) => Err(format!("--{option} and --without {name}: say one of them")),
        (_, is_taken) => Ok(is_taken),
    };
    /// What is said, or that it is taken away.
    fn change<T>(said: Option<T>, is_taken: bool) -> Option<Option<T>> {
        said.map(Some).or_else(|| is_taken.then_some(None))
    }
    fn list<T: Clone>(list: &[T]) -> Option<Vec<T>> {
        (!list.is_empty()).then(|| list.to_vec())
    }
    let tags = list(&asked.tag).map(|tags| tags.into_iter().collect());
    let (models, limits, budgets) = (list(&asked.model), list(&asked.limit), list(&asked.budget));
    let without = [
        part(Part::Name, "name", "name", asked.name.is_some())?,
        part(Part::Tags, "tags", "tag", tags.is_some())?,
        part(Part::Models, "models", "model", models.is_some())?,
        part(Part::Limits, "limits", "limit", limits.is_some())?,
        part(Part::Budgets, "budgets", "budget", budgets.is_some())?,
        part(Part::Expires, "expires", "expires", asked.expires.is_some())?,
    ];
    let [no_name, no_tags, no_models, no_limits, no_budgets, no_end] = without;
    Ok(keyring::Change {
        name: change(asked.name.clone(), no_name),
        tags: change(tags, no_tags),
        models: change(models, no_models),
        limits: change(limits, no_limits),
        budgets: change(budgets, no_budgets),
        expires: change(asked.expires, no_end),
    })
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
    let mut file = keyring.read().map_err(said)?;
    let now = now_s();
    if let Some(id) = &asked.id {
        let entry = keyring::of_id(&mut file, id).map_err(said)?;
        return Ok(match asked.json {
            true => row(entry, now).to_string(),
            false => one(entry, now),
        });
    }
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

/// One key, line by line.
fn one(entry: &Entry, now: u64) -> String {
    let made = date::timestamp(entry.created_unix_s.saturating_mul(1000));
    let user = entry.user.clone().unwrap_or_else(|| "none".to_owned());
    let whose = [
        ("id", entry.id.clone()),
        ("workload", entry.workload.clone()),
        ("user", user),
        ("state", state(entry, now).to_owned()),
        ("made", made),
    ];
    let lines = whose.into_iter().chain(written::parts(entry));
    let lines: Vec<String> = lines.map(|(name, is)| format!("{name:<9} {is}")).collect();
    lines.join("\n")
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
