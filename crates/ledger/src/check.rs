//! Whether a ledger is whole: its pages, its indices, its chain, and what is open.
//!
//! The database's own check finds pages that are not what they should be and indices that miss a
//! row; it knows nothing of what a row says. The chain does.
//! Invariant: reads, never writes. At a start it takes a bounded time, the newest rows first; what
//! it did not come to is checked while the gate serves.
//! Not here: what is done about it (`open`, `intake`).

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Row};

use crate::chain::Head;
use crate::encoded::Encoded;
use crate::head_file::Kept;
use crate::hex::hex;
use crate::lost::Lost;
use crate::schema::{connect_to_read, has_sums};
use crate::verify::{Finding, ends, part};

/// Rows of the chain in one read transaction: a log cannot be emptied while one runs.
const CHUNK: i64 = 20_000;
/// How often a check asks whether it should stop.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Where the header has the version that says who may write the file, and the last one there is.
const WRITE_VERSION_AT: usize = 18;
const WRITE_VERSION_MAX: u8 = 2;
/// Findings of the database's own check.
const PAGES_MAX: usize = 10;

/// What there is to check of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rest {
    /// Pages and indices.
    pub(crate) pages: bool,
    /// The chain up to this row.
    pub(crate) rows_up_to: i64,
}

impl Rest {
    pub(crate) fn is_done(self) -> bool {
        self == Self::default()
    }
}

/// Checks what comes first within `bound`, or all without one; gives what is wrong and what is left. The ledger has no
/// writer meanwhile.
pub(crate) fn at_start(
    path: &Path,
    bound: Option<Duration>,
) -> rusqlite::Result<(Vec<Finding>, Rest)> {
    let until = bound.map(|bound| Instant::now() + bound);
    let is_over = || until.is_some_and(|until| Instant::now() > until);
    let db = connect_to_read(path)?;
    let head = ends(&db)?.head.seq;
    // Two connections, because each may take all of the time.
    std::thread::scope(|scope| {
        let pages = scope.spawn(|| connect_to_read(path).and_then(|db| pages(&db, &is_over)));
        let mut findings = opens_altered(&db)?;
        let (found, rows_up_to) = chain(&db, head, &is_over)?;
        findings.extend(found);
        let pages = pages.join().expect("the check does not panic")?;
        let rest = Rest {
            pages: pages.is_none(),
            rows_up_to,
        };
        findings.extend(pages.unwrap_or_default());
        Ok((findings, rest))
    })
}

/// Checks what was left, until it is done or told to stop.
pub(crate) fn rest(
    path: &Path,
    mut rest: Rest,
    is_over: &(dyn Fn() -> bool + Sync),
) -> rusqlite::Result<(Vec<Finding>, Rest)> {
    let db = connect_to_read(path)?;
    let (mut findings, rows_up_to) = chain(&db, rest.rows_up_to, is_over)?;
    rest.rows_up_to = rows_up_to;
    if rest.pages
        && !is_over()
        && let Some(found) = pages(&db, is_over)?
    {
        rest.pages = false;
        findings.extend(found);
    }
    Ok((findings, rest))
}

/// Looks at the version of the header that says who may write the file: one that SQLite does not know
/// lets every reader read, and no writer write.
pub(crate) fn header(path: &Path) -> Option<Finding> {
    let mut header = [0; WRITE_VERSION_AT + 1];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let says = "its header says that only a newer SQLite may write it".to_owned();
    (read.is_ok() && header[WRITE_VERSION_AT] > WRITE_VERSION_MAX).then_some(Finding::Page { says })
}

/// The database's own check; `None` when it was stopped.
pub(crate) fn pages(
    db: &Connection,
    is_over: &(dyn Fn() -> bool + Sync),
) -> rusqlite::Result<Option<Vec<Finding>>> {
    let interrupt = db.get_interrupt_handle();
    let (done, is_done) = channel::<()>();
    let told = std::thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(ASK_EVERY) == Err(RecvTimeoutError::Timeout) {
                if is_over() {
                    interrupt.interrupt();
                }
            }
        });
        let told = integrity(db);
        drop(done);
        told
    });
    match told {
        Ok(says) => Ok(Some(
            says.into_iter()
                .filter(|says| says != "ok")
                .map(|says| Finding::Page { says })
                .collect(),
        )),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn integrity(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!("PRAGMA integrity_check({PAGES_MAX})");
    db.prepare(&sql)?
        .query_map([], |row| row.get::<_, String>(0))?
        .collect()
}

/// Walks the chain from row `up_to` down, a part at a time. Gives the row up to which it was not
/// walked; 0 when all of it was.
fn chain(
    db: &Connection,
    mut up_to: i64,
    is_over: &dyn Fn() -> bool,
) -> rusqlite::Result<(Vec<Finding>, i64)> {
    let mut findings = Vec::new();
    loop {
        let anchor = ends(db)?.anchor.seq;
        // A part begins behind a row that is there, whose hash it takes over.
        let sql = "SELECT coalesce(max(seq), 0) FROM settled WHERE seq <= ?1";
        let after: i64 = db.query_row(sql, [up_to - CHUNK], |row| row.get(0))?;
        findings.extend(part(db, after.max(anchor), up_to)?.findings);
        if after <= anchor || !findings.is_empty() {
            return Ok((findings, 0));
        }
        up_to = after;
        if is_over() {
            return Ok((findings, up_to));
        }
    }
}

/// What is open and not as it was written.
pub(crate) fn opens_altered(db: &Connection) -> rusqlite::Result<Vec<Finding>> {
    if !has_sums(db)? {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let mut statement = db.prepare(OPENS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if !is_as_written(row)? {
            let id = hex(&row.get::<_, Vec<u8>>(0).unwrap_or_default());
            findings.push(Finding::Open { id });
        }
    }
    Ok(findings)
}

/// What is open, with the sums over it.
pub(crate) const OPENS: &str = "SELECT id,started_unix_ms,request_id,trace_id,workload,budget_group,route,backend,model_asked,\
     model_sent,reserved_tokens,at_most_tokens,progress_tokens,bytes_out,sum,mark_sum,key_id,user_id,tags,mcp_method,mcp_name,user_issuer FROM open";
/// Columns that an admission fills, before its marks and the sums.
const ADMITTED: usize = 12;
/// Where those stand that say who; an earlier build had none, and where all are NULL its sums hold.
const WHO: std::ops::Range<usize> = 16..19;
/// Where those stand that say which tool is called, and at which issuer who asked has its name: the same.
const LATER: std::ops::Range<usize> = 19..22;

/// Whether a row of [`OPENS`] has the sums that were written with it; an earlier build wrote none.
pub(crate) fn is_as_written(row: &Row<'_>) -> rusqlite::Result<bool> {
    let of = |columns: &mut dyn Iterator<Item = usize>| {
        let values: rusqlite::Result<Vec<_>> = columns.map(|at| row.get_ref(at)).collect();
        Ok::<_, rusqlite::Error>(Encoded::of(values?.into_iter()).sum())
    };
    let (admitted, marked): (Option<i64>, Option<i64>) = (row.get(14)?, row.get(15)?);
    let marks = [0, 12, 13];
    let is_good = match admitted {
        Some(admitted) => {
            let says = |mut columns: std::ops::Range<usize>| {
                columns.any(|at| row.get_ref(at).is_ok_and(|v| v != ValueRef::Null))
            };
            let later = match (says(LATER), says(WHO)) {
                (true, _) => WHO.start..LATER.end,
                (false, true) => WHO,
                (false, false) => 0..0,
            };
            admitted == of(&mut (0..ADMITTED).chain(later))?
        }
        None => true,
    };
    let (tokens, bytes): (i64, i64) = (row.get(12)?, row.get(13)?);
    Ok(is_good
        && match marked {
            Some(marked) => marked == of(&mut marks.into_iter())?,
            // Never marked; of an earlier build's rows nothing can be said.
            None => admitted.is_none() || (tokens, bytes) == (0, 0),
        })
}

/// Whether the ledger holds what was beside it, as far as it can be told.
pub(crate) fn against(
    db: &Connection,
    ledger: [u8; 16],
    commits: i64,
    kept: &Kept,
) -> rusqlite::Result<Option<Finding>> {
    if kept.ledger != ledger {
        return Ok(Some(Finding::OtherLedger));
    }
    let ends = ends(db)?;
    if kept.head.seq > ends.head.seq {
        let (written, ends) = (kept.head, ends.head.seq);
        return Ok(Some(Finding::SetBack { written, ends }));
    }
    let expected = kept.head.hash;
    if kept.head.seq > ends.anchor.seq && !has(db, kept.head)? {
        return Ok(Some(Finding::OtherHistory { expected }));
    }
    let missing = kept.commits - commits;
    Ok((missing > 0).then_some(Finding::Commits { missing }))
}

/// Whether the chain has this link.
pub(crate) fn has(db: &Connection, head: Head) -> rusqlite::Result<bool> {
    let ends = ends(db)?;
    let lost = crate::lost::read(db)?;
    let links = lost.iter().map(Lost::end).chain([ends.anchor, ends.head]);
    let is_link = links.into_iter().any(|link| link == head);
    Ok(is_link || has_row(db, head)?)
}

/// Whether a row has this number and this hash.
pub(crate) fn has_row(db: &Connection, head: Head) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM settled WHERE seq = ?1 AND hash = ?2";
    let values = rusqlite::params![head.seq, head.hash.0];
    let count: i64 = db.query_row(sql, values, |row| row.get(0))?;
    Ok(count == 1)
}
