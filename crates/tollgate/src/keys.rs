//! `tollgate keys`: makes, lists, rotates and revokes keys of the gate's own.
//!
//! A gate that runs watches the file and knows of a change within a second.
//! Invariant: the secret of a key is shown once, when it is made, and is kept nowhere.
//! Not here: what a key is (`identity::keys`), how its file is changed (`store`).

mod arguments;
mod store;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use config::CredentialKind;
use identity::keys::{Entry, KeyFile, NewKey, Previous};
use ledger::date;
use ledger::report::laid_out;

pub(crate) use self::arguments::Keys;
use self::arguments::{Create, List, Revoke, Rotate, Verb};
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

/// What the configuration says of keys.
struct Configured {
    /// Their file.
    file: PathBuf,
    /// Workloads that there are.
    workloads: Vec<String>,
    has_ledger: bool,
}

fn configured(named: Option<&std::path::Path>) -> Result<Configured, String> {
    let source = Source::of(named);
    let loaded = load(source.file(), &World).map_err(|faults| faults.to_string())?;
    let file = loaded.host.credentials.iter().find_map(|c| match &c.kind {
        CredentialKind::Keys(file) => Some(file.clone()),
        CredentialKind::Jwt(_) | CredentialKind::Introspection(_) | CredentialKind::Login(_) => {
            None
        }
    });
    let file = file.ok_or_else(|| {
        format!(
            "{} has no keys; write identity: [ {{ keys: {{ file: keys.jsonl }} }} ]",
            source.name().display()
        )
    })?;
    let workloads = loaded.snapshot.workloads.iter();
    Ok(Configured {
        file,
        has_ledger: loaded.host.ledger.is_some(),
        workloads: workloads.map(|w| w.name.to_string()).collect(),
    })
}

fn create(asked: &Create) -> Result<String, String> {
    let configured = configured(asked.config.config.as_deref())?;
    if !configured.workloads.contains(&asked.workload) {
        let known = configured.workloads.join(", ");
        return Err(format!(
            "no route is for the workload {:?}; there are {known}",
            asked.workload
        ));
    }
    if !asked.budget.is_empty() && !configured.has_ledger {
        return Err("a budget needs a ledger, from which it is read back after a restart; write ledger: { path: usage.db }".to_owned());
    }
    let now = now_s();
    let key = NewKey::make().map_err(|fault| fault.to_string())?;
    let entry = Entry {
        id: key.id.clone(),
        sha256: key.hash.to_string(),
        workload: asked.workload.clone(),
        created_unix_s: now,
        name: asked.name.clone(),
        user: asked.user.clone(),
        tags: asked.tag.iter().cloned().collect::<BTreeMap<_, _>>(),
        models: asked.model.clone(),
        limits: asked.limit.clone(),
        budgets: asked.budget.clone(),
        expires_unix_s: asked.expires.map(|expires| expires.after(now)),
        revoked_unix_s: None,
        previous: None,
    };
    entry.check().map_err(str::to_owned)?;
    store::change(&configured.file, |file| {
        if file.entries.iter().any(|known| known.id == entry.id) {
            return Err("an id came twice by chance; try again".to_owned());
        }
        file.entries.push(entry);
        Ok(())
    })?;
    Ok(shown_once(&key, asked.json, "made", &asked.workload))
}

fn rotate(asked: &Rotate) -> Result<String, String> {
    let configured = configured(asked.config.config.as_deref())?;
    let now = now_s();
    let key = NewKey::of_id(asked.id.clone()).map_err(|fault| fault.to_string())?;
    let mut workload = String::new();
    store::change(&configured.file, |file| {
        let entry = of_id(file, &asked.id)?;
        if entry.revoked_unix_s.is_some() {
            return Err(format!("the key {} is revoked; make another", asked.id));
        }
        workload.clone_from(&entry.workload);
        let old = std::mem::replace(&mut entry.sha256, key.hash.to_string());
        let overlap = asked.overlap.seconds();
        entry.previous = (overlap > 0).then(|| Previous {
            sha256: old,
            until_unix_s: now.saturating_add(overlap),
        });
        Ok(())
    })?;
    Ok(shown_once(&key, asked.json, "rotated", &workload))
}

fn revoke(asked: &Revoke) -> Result<String, String> {
    let configured = configured(asked.config.config.as_deref())?;
    let now = now_s();
    store::change(&configured.file, |file| {
        let entry = of_id(file, &asked.id)?;
        entry.revoked_unix_s.get_or_insert(now);
        Ok(())
    })?;
    if asked.json {
        return Ok(serde_json::json!({ "id": asked.id, "revoked": true }).to_string());
    }
    Ok(format!(
        "{} is revoked; a gate that runs with this file refuses it within a second",
        asked.id
    ))
}

fn of_id<'f>(file: &'f mut KeyFile, id: &str) -> Result<&'f mut Entry, String> {
    file.entry(id)
        .ok_or_else(|| format!("there is no key {id}; `tollgate keys list` shows those there are"))
}

fn list(asked: &List) -> Result<String, String> {
    let configured = configured(asked.config.config.as_deref())?;
    let file = if configured.file.exists() {
        crate::identity::read_keys(&configured.file, &World)?
    } else {
        KeyFile::default()
    };
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
            entry
                .expires_unix_s
                .map_or_else(|| "-".to_owned(), |at| date::timestamp(at * 1000)),
        ]
    }));
    let width = width::of(std::io::stdout());
    Ok(laid_out(&rows, heads.len(), width))
}

/// A key for other programs: all but its hash.
fn row(entry: &Entry, now: u64) -> serde_json::Value {
    let mut row = serde_json::to_value(entry).unwrap_or_default();
    if let Some(members) = row.as_object_mut() {
        members.remove("sha256");
        let previous = members.remove("previous");
        if let Some(until) = previous.as_ref().and_then(|p| p.get("until_unix_s")) {
            members.insert("previous_until_unix_s".to_owned(), until.clone());
        }
        members.insert("state".to_owned(), state(entry, now).into());
    }
    row
}

fn state(entry: &Entry, now: u64) -> &'static str {
    let is_past = |at: u64| now >= at;
    if entry.revoked_unix_s.is_some() {
        "revoked"
    } else if entry.expires_unix_s.is_some_and(is_past) {
        "expired"
    } else if entry
        .previous
        .as_ref()
        .is_some_and(|p| now < p.until_unix_s)
    {
        "rotating"
    } else {
        "active"
    }
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
