//! The table of files and batches.
//!
//! Invariant: every commit is on disk when it returns. An id is its first owner's, for as long as it is kept.
//! Not here: its thread (`super`).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use policy::batch_store::{
    At, GivenUp, Kind, Listed, Maker, NotKept, Owner, Page, Thing, Unsettled,
};
use policy::operation::Operation;
use policy::wire::batch::{Api, Object};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use crate::owner::Owner as FileOwner;
use crate::plain_file::{GROUP_READS, open_or_make};
use crate::schema::open;

/// Whose file it is: `Tlgb`.
const APPLICATION: u32 = 0x546c_6762;
const LAYOUT: i64 = 1;
/// Most files and batches that one workload keeps; then batches go that were charged so long ago.
const KEPT_MAX: i64 = 10_000;
const OLD_MS: u64 = 30 * 24 * 3600 * 1000;
/// Batches that are given at once.
const UNSETTLED_AT_ONCE: i64 = 100;

const TABLES: &str = "CREATE TABLE things (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  backend TEXT NOT NULL,
  api TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  workload TEXT NOT NULL,
  issuer TEXT,
  created_unix_ms INTEGER NOT NULL,
  key_id TEXT,
  user_id TEXT,
  tags TEXT NOT NULL,
  calls TEXT NOT NULL,
  object BLOB NOT NULL,
  unsettled INTEGER NOT NULL,
  UNIQUE (backend, kind, id)
) STRICT;
CREATE INDEX of_owner ON things (workload, backend, kind, seq);
CREATE INDEX of_unsettled ON things (seq) WHERE unsettled = 1;";

/// What persons gave up. Of a table of its own, so that a file of an earlier build has it, too.
const GIVEN_UP: &str = "CREATE TABLE IF NOT EXISTS given_up (
  backend TEXT NOT NULL,
  id TEXT NOT NULL,
  who TEXT NOT NULL,
  why TEXT NOT NULL,
  unix_ms INTEGER NOT NULL,
  PRIMARY KEY (backend, id)
) STRICT;";

/// What of a workload goes first for another one: a batch that was charged, a file that holds calls, and the result of a batch, which was
/// made at the same moment here, unless that batch is not charged yet. What a workload keeps to be read stays until it is removed.
const OLDEST_FREE: &str = "SELECT seq FROM things AS old WHERE workload = ?1 AND unsettled = 0 AND created_unix_ms < ?2 \
   AND (kind = 'batch' OR calls <> '' OR instr(CAST(object AS TEXT), '\"batch_output\"') > 0 \
     AND NOT EXISTS (SELECT 1 FROM things WHERE unsettled = 1 AND workload = old.workload AND created_unix_ms = old.created_unix_ms)) \
   ORDER BY seq LIMIT 1";

/// What is noted of one that is about to be made.
const IS_BEGUN: &str = "(length(object) = 0)";

const COLUMNS: &str = "backend,api,kind,id,workload,issuer,created_unix_ms,key_id,user_id,tags,calls,object,unsettled";

pub(super) struct Table(Connection);

impl Table {
    /// Opens the file, and makes it where there is none; in words why not.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let owner = path
            .parent()
            .and_then(|dir| FileOwner::of(dir).ok())
            .flatten();
        open_or_make(path, GROUP_READS, owner).map_err(|error| error.to_string())?;
        Self::opened(path).map_err(|error| match error {
            Unopened::Sql(error) => format!("it cannot be read: {error}"),
            Unopened::Said(says) => says.to_owned(),
        })
    }

    /// Opens a file that is there, and changes nothing.
    pub(super) fn open_to_read(path: &Path) -> rusqlite::Result<Self> {
        let db = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.pragma_update(None, "query_only", true)?;
        Ok(Self(db))
    }

    fn opened(path: &Path) -> Result<Self, Unopened> {
        let mut db = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.busy_timeout(std::time::Duration::from_secs(5))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        let whose: u32 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        let layout: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match (whose, layout) {
            (0, 0) => {
                let tx = db.transaction()?;
                tx.execute_batch(TABLES)?;
                tx.pragma_update(None, "application_id", APPLICATION)?;
                tx.pragma_update(None, "user_version", LAYOUT)?;
                tx.commit()?;
            }
            (APPLICATION, LAYOUT) => {}
            (APPLICATION, _) => return Err(Unopened::Said("it is of another build")),
            _ => return Err(Unopened::Said("it is not a file of the gate's")),
        }
        db.execute_batch(GIVEN_UP)?;
        let sound: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        match &*sound {
            "ok" => Ok(Self(db)),
            _ => Err(Unopened::Said(
                "it is damaged: put it back from a backup, or take it away, whereby every file and batch is nobody's",
            )),
        }
    }

    /// Whether a workload has fewer than it may, or an old one can go.
    pub(super) fn has_room(&self, workload: &str) -> rusqlite::Result<bool> {
        if count(&self.0, workload)? < KEPT_MAX {
            return Ok(true);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        let old = number(now.saturating_sub(OLD_MS));
        let mut asking = self.0.prepare_cached(OLDEST_FREE)?;
        asking.exists(params![workload, old])
    }

    /// Notes that it is about to be made. Its object is empty, which no provider's is.
    pub(super) fn begin(&mut self, mut thing: Thing) -> rusqlite::Result<At> {
        let tx = self.0.transaction()?;
        let sql = "SELECT 'begun:' || lower(hex(randomblob(16)))";
        let id: String = tx.query_row(sql, [], |row| row.get(0))?;
        (thing.id, thing.object) = (id.into(), Bytes::new());
        let _is_new = kept(&tx, &thing)?;
        tx.commit()?;
        Ok(thing.at())
    }

    /// It was made.
    pub(super) fn made(
        &mut self,
        begun: &At,
        thing: &Thing,
    ) -> rusqlite::Result<Result<(), NotKept>> {
        let tx = self.0.transaction()?;
        removed(&tx, begun)?;
        let kept = kept(&tx, thing)?;
        tx.commit()?;
        Ok(kept)
    }

    /// What a process that ended left half-made.
    pub(super) fn forget_begun(&mut self) -> rusqlite::Result<Vec<Thing>> {
        let tx = self.0.transaction()?;
        let sql = format!("SELECT {COLUMNS} FROM things WHERE {IS_BEGUN}");
        let begun = tx.prepare(&sql)?.query_map([], thing)?.collect();
        tx.execute(&format!("DELETE FROM things WHERE {IS_BEGUN}"), [])?;
        tx.commit()?;
        begun
    }

    pub(super) fn keep(&mut self, thing: &Thing) -> rusqlite::Result<Result<(), NotKept>> {
        let tx = self.0.transaction()?;
        let kept = kept(&tx, thing)?;
        tx.commit()?;
        Ok(kept)
    }

    pub(super) fn find(&self, of: &Owner, at: &At) -> rusqlite::Result<Option<Thing>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM things WHERE backend = ?1 AND kind = ?2 AND id = ?3 AND workload = ?4 AND issuer IS ?5 AND NOT {IS_BEGUN}"
        );
        let asked = params![
            &*at.backend,
            at.kind.as_str(),
            &*at.id,
            &*of.workload,
            of.issuer.as_deref()
        ];
        let found = self.0.prepare_cached(&sql)?.query_row(asked, thing);
        found.optional()
    }

    pub(super) fn page(
        &self,
        of: &Owner,
        backend: &str,
        kind: Kind,
        page: &Page,
    ) -> rusqlite::Result<Option<Listed>> {
        let place = |id: &Option<Box<str>>| -> rusqlite::Result<Option<Option<i64>>> {
            let Some(id) = id else { return Ok(Some(None)) };
            let at = At {
                backend: backend.into(),
                kind,
                id: id.clone(),
            };
            if self.find(of, &at)?.is_none() {
                return Ok(None);
            }
            let sql = "SELECT seq FROM things WHERE backend = ?1 AND kind = ?2 AND id = ?3";
            let asked = params![backend, kind.as_str(), &**id];
            self.0.query_row(sql, asked, |row| row.get(0)).map(Some)
        };
        let (Some(after), Some(before)) = (place(&page.after)?, place(&page.before)?) else {
            return Ok(None);
        };
        // What stands before one is taken from there on, and turned round.
        let is_turned = before.is_some() && after.is_none();
        let ascends = page.ascends != is_turned;
        let (mut above, mut below) = (0, i64::MAX);
        for (place, is_start) in [(after, true), (before, false)] {
            let Some(place) = place else { continue };
            match is_start == page.ascends {
                true => above = place,
                false => below = place,
            }
        }
        let order = if ascends { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT {COLUMNS} FROM things WHERE workload = ?1 AND issuer IS ?2 AND backend = ?3 AND kind = ?4 \
             AND seq > ?5 AND seq < ?6 AND NOT {IS_BEGUN} ORDER BY seq {order} LIMIT ?7"
        );
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX - 1);
        let mut asking = self.0.prepare_cached(&sql)?;
        let asked = params![
            &*of.workload,
            of.issuer.as_deref(),
            backend,
            kind.as_str(),
            above,
            below,
            limit + 1
        ];
        let rows = asking.query_map(asked, thing)?;
        let mut things = rows.collect::<rusqlite::Result<Vec<Thing>>>()?;
        let has_more = things.len() > page.limit;
        things.truncate(page.limit);
        if is_turned {
            things.reverse();
        }
        Ok(Some((things, has_more)))
    }

    pub(super) fn told(&self, at: &At, object: &[u8]) -> rusqlite::Result<()> {
        let sql = "SELECT api, object FROM things WHERE backend = ?1 AND kind = ?2 AND id = ?3";
        let before = self
            .0
            .prepare_cached(sql)?
            .query_row(params![&*at.backend, at.kind.as_str(), &*at.id], |row| {
                Ok((api_of(&row.get::<_, String>(0)?), row.get::<_, Vec<u8>>(1)?))
            })
            .optional()?;
        if let Some((api, before)) = before
            && let (Some(before), Some(now)) =
                (Object::read(api, &before), Object::read(api, object))
            && (before.is_over && !now.is_over
                || before.output_file.is_some() && now.output_file.is_none())
        {
            return Ok(());
        }
        let sql = "UPDATE things SET object = ?4 WHERE backend = ?1 AND kind = ?2 AND id = ?3 AND object <> ?4";
        self.change(
            sql,
            params![&*at.backend, at.kind.as_str(), &*at.id, object],
        )
    }

    /// The batch that is not charged yet and whose result is this file.
    pub(super) fn holds(&self, of: &Owner, file: &At) -> rusqlite::Result<Option<At>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM things WHERE unsettled = 1 AND workload = ?1 AND issuer IS ?2 AND backend = ?3 \
             AND instr(CAST(object AS TEXT), ?4) > 0"
        );
        let asked = params![
            &*of.workload,
            of.issuer.as_deref(),
            &*file.backend,
            &*file.id
        ];
        let mut asking = self.0.prepare_cached(&sql)?;
        for batch in asking.query_map(asked, thing)? {
            let batch = batch?;
            let object = Object::read(batch.api, &batch.object);
            if object.is_some_and(|object| object.output_file.as_deref() == Some(&*file.id)) {
                return Ok(Some(batch.at()));
            }
        }
        Ok(None)
    }

    pub(super) fn remove(&self, at: &At) -> rusqlite::Result<()> {
        removed(&self.0, at)
    }

    pub(super) fn is_due(&self, at: &At) -> rusqlite::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM things WHERE backend = ?1 AND kind = ?2 AND id = ?3 AND unsettled = 1 \
             AND NOT EXISTS (SELECT 1 FROM given_up WHERE backend = ?1 AND id = ?3))";
        let mut asking = self.0.prepare_cached(sql)?;
        asking.query_row(params![&*at.backend, at.kind.as_str(), &*at.id], |row| {
            row.get(0)
        })
    }

    pub(super) fn settled(&self, at: &At) -> rusqlite::Result<()> {
        let sql = "UPDATE things SET unsettled = 0 WHERE backend = ?1 AND kind = ?2 AND id = ?3";
        self.change(sql, params![&*at.backend, at.kind.as_str(), &*at.id])
    }

    fn change(&self, sql: &str, with: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        self.0.prepare_cached(sql)?.execute(with)?;
        Ok(())
    }

    pub(super) fn unsettled_of(&self, workload: &str) -> rusqlite::Result<u64> {
        let sql = "SELECT count(*) FROM things WHERE unsettled = 1 AND workload = ?1";
        let count: i64 = self.0.query_row(sql, [workload], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    pub(super) fn unsettled_backends(&self) -> rusqlite::Result<Vec<Arc<str>>> {
        let sql = format!(
            "SELECT DISTINCT backend FROM things WHERE unsettled = 1 AND NOT {IS_BEGUN} ORDER BY backend"
        );
        let mut asking = self.0.prepare_cached(&sql)?;
        let rows = asking.query_map([], |row| row.get::<_, String>(0))?;
        rows.map(|backend| Ok(backend?.into())).collect()
    }

    /// Those of a backend, or all.
    pub(super) fn unsettled(
        &self,
        backend: Option<&str>,
        behind: usize,
    ) -> rusqlite::Result<Vec<Thing>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM things WHERE unsettled = 1 AND NOT {IS_BEGUN} AND (?3 IS NULL OR backend = ?3) \
             ORDER BY seq LIMIT ?1 OFFSET ?2"
        );
        let behind = i64::try_from(behind).unwrap_or(i64::MAX);
        let mut asking = self.0.prepare_cached(&sql)?;
        let rows = asking.query_map(params![UNSETTLED_AT_ONCE, behind, backend], thing)?;
        rows.collect()
    }

    /// Batches that are not charged and that somebody gave up.
    pub(super) fn given_up(&self) -> rusqlite::Result<Vec<GivenUp>> {
        let columns = COLUMNS.replace("backend", "things.backend");
        let columns = columns.replace(",id,", ",things.id,");
        let sql = format!(
            "SELECT {columns}, who, why, unix_ms FROM things JOIN given_up USING (backend, id) \
             WHERE unsettled = 1 AND kind = 'batch' ORDER BY seq LIMIT ?1"
        );
        let mut asking = self.0.prepare_cached(&sql)?;
        let rows = asking.query_map([UNSETTLED_AT_ONCE], |row| {
            Ok(GivenUp {
                thing: thing(row)?,
                who: row.get::<_, String>(13)?.into(),
                why: row.get::<_, String>(14)?.into(),
                unix_ms: row.get::<_, i64>(15)?.unsigned_abs(),
            })
        })?;
        rows.collect()
    }

    /// Notes that somebody gives a batch up.
    pub(super) fn give_up(&self, of: &GivenUp) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO given_up (backend, id, who, why, unix_ms) VALUES (?1, ?2, ?3, ?4, ?5)";
        let (backend, id) = (&*of.thing.backend, &*of.thing.id);
        self.change(
            sql,
            params![backend, id, &*of.who, &*of.why, number(of.unix_ms)],
        )
    }

    /// How many are not charged; none where the disk does not say.
    pub(super) fn unsettled_now(&self) -> Unsettled {
        let asked = || -> rusqlite::Result<Unsettled> {
            let sql = "SELECT workload, count(*), min(created_unix_ms) FROM things WHERE unsettled = 1 GROUP BY workload ORDER BY workload";
            let mut asking = self.0.prepare_cached(sql)?;
            let rows = asking.query_map([], |row| {
                let of: (String, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok(of)
            })?;
            let mut all = Unsettled::default();
            for row in rows {
                let (workload, count, oldest) = row?;
                let workload = Arc::from(workload);
                all.by_workload.push((workload, count.unsigned_abs()));
                let oldest = oldest.unsigned_abs();
                all.oldest_unix_ms = Some(all.oldest_unix_ms.map_or(oldest, |of| of.min(oldest)));
            }
            Ok(all)
        };
        asked().unwrap_or_default()
    }
}

/// Keeps it in a transaction, unless it is there.
fn kept(tx: &Connection, thing: &Thing) -> rusqlite::Result<Result<(), NotKept>> {
    let (backend, kind, id) = (&*thing.backend, thing.kind.as_str(), &*thing.id);
    let (workload, issuer) = (&*thing.owner.workload, thing.owner.issuer.as_deref());
    let owner = tx
            .prepare_cached("SELECT workload = ?4 AND issuer IS ?5 FROM things WHERE backend = ?1 AND kind = ?2 AND id = ?3")?
            .query_row(params![backend, kind, id, workload, issuer], |row| row.get::<_, bool>(0))
            .optional()?;
    match owner {
        Some(true) => return Ok(Ok(())),
        Some(false) => return Ok(Err(NotKept::Taken)),
        None => {}
    }
    if count(tx, workload)? >= KEPT_MAX {
        let old = number(thing.created_unix_ms.saturating_sub(OLD_MS));
        tx.execute(
            &format!("DELETE FROM things WHERE seq = ({OLDEST_FREE})"),
            params![workload, old],
        )?;
    }
    let maker = &thing.maker;
    let tags: BTreeMap<&str, &str> = maker.tags.iter().map(|(n, v)| (&**n, &**v)).collect();
    let tags = serde_json::to_string(&tags).unwrap_or_default();
    let calls: Vec<String> = thing
        .calls
        .iter()
        .map(|(operation, model)| format!("{}\t{model}", operation.as_str()))
        .collect();
    tx.execute(
            "INSERT INTO things (backend,api,kind,id,workload,issuer,created_unix_ms,key_id,user_id,tags,calls,object,unsettled) \
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13)",
            params![
                backend,
                thing.api.as_str(),
                kind,
                id,
                workload,
                issuer,
                number(thing.created_unix_ms),
                maker.key.as_deref(),
                maker.user.as_deref(),
                tags,
                calls.join("\n"),
                &thing.object[..],
                thing.is_unsettled,
            ],
        )?;
    Ok(Ok(()))
}

fn removed(db: &Connection, at: &At) -> rusqlite::Result<()> {
    let sql = "DELETE FROM things WHERE backend = ?1 AND kind = ?2 AND id = ?3";
    db.prepare_cached(sql)?
        .execute(params![&*at.backend, at.kind.as_str(), &*at.id])?;
    Ok(())
}

/// How many a workload has.
fn count(db: &Connection, workload: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT count(*) FROM things WHERE workload = ?1";
    db.prepare_cached(sql)?
        .query_row([workload], |row| row.get(0))
}

fn api_of(word: &str) -> Api {
    match word {
        "anthropic" => Api::Anthropic,
        _ => Api::OpenAi,
    }
}

enum Unopened {
    Sql(rusqlite::Error),
    Said(&'static str),
}

impl From<rusqlite::Error> for Unopened {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn number(of: u64) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

fn thing(row: &Row<'_>) -> rusqlite::Result<Thing> {
    let text = |at: usize| row.get::<_, String>(at);
    let some =
        |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(at)?.map(Arc::from));
    let tags: BTreeMap<String, String> = serde_json::from_str(&text(9)?).unwrap_or_default();
    let calls = text(10)?;
    let calls = calls.lines().filter_map(|call| {
        let (operation, model) = call.split_once('\t')?;
        let operation = Operation::ALL
            .into_iter()
            .find(|of| of.as_str() == operation)?;
        Some((operation, Box::from(model)))
    });
    Ok(Thing {
        backend: text(0)?.into(),
        api: api_of(&text(1)?),
        kind: match &*text(2)? {
            "batch" => Kind::Batch,
            _ => Kind::File,
        },
        id: text(3)?.into(),
        owner: Owner {
            workload: text(4)?.into(),
            issuer: some(5)?,
        },
        created_unix_ms: row.get::<_, i64>(6)?.unsigned_abs(),
        maker: Maker {
            key: some(7)?,
            user: some(8)?,
            tags: tags
                .into_iter()
                .map(|(n, v)| (n.into(), v.into()))
                .collect(),
        },
        calls: calls.collect(),
        object: Bytes::from(row.get::<_, Vec<u8>>(11)?),
        is_unsettled: row.get(12)?,
    })
}
