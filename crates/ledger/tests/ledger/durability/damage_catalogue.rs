//! The damage catalogue: every kind of page and of damage; none goes unnoticed.
//!
//! Each case damages a copy of a ledger's files. Then either the ledger does not open, its files
//! stay unchanged, `verify` reports the damage, and a salvage accounts for every row; or it
//! opens with all that was in it. The table is printed; docs/usage.md has its sums for 1500 rows
//! (`TOLLGATE_LEDGER_ROWS`): fewer have fewer pages of each kind.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ledger::{
    Ledger, OpenError, Period, Progress, ReadError, Reader, SalvageOutcome, Settlement, Stored,
    salvage,
};
use testing::{Draw, PATIENCE, nothing_happens_for, number_of, seed};

use crate::rows::{admission, flushed, id, in_memory, opened, options, settlement};

const OPEN: u64 = 60;
const PAGE: usize = 4096;
/// How many pages of a kind, and how many places on a page, are damaged.
const PAGES: usize = 4;
const PLACES: usize = 5;

const DB: &str = "ledger.db";
const LOG: &str = "ledger.db-wal";
const HEAD: &str = "ledger.db.head";

/// Files of a ledger, by name.
type Files = BTreeMap<&'static str, Vec<u8>>;

fn files(dir: &Path) -> Files {
    let read = |name: &'static str| Some((name, std::fs::read(dir.join(name)).ok()?));
    [DB, LOG, HEAD].into_iter().filter_map(read).collect()
}

/// An empty WAL may be added, as any reader does.
fn is_unchanged(dir: &Path, before: &Files) -> bool {
    let mut now = files(dir);
    if !before.contains_key(LOG) && now.get(LOG).is_some_and(Vec::is_empty) {
        now.remove(LOG);
    }
    now == *before
}

fn put(files: &Files) -> tempfile::TempDir {
    let dir = in_memory();
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).expect("writes");
    }
    dir
}

/// Some rows are so long that they need overflow pages.
fn row(n: u64) -> Settlement {
    let mut row = settlement(n);
    if n.is_multiple_of(50) {
        let long: Box<str> = "é".repeat(512).into();
        row.endpoint = Some(long.clone());
        row.named.route = Some(long.clone());
        row.record.model_asked = Some(long.clone());
        row.record.id = long.clone();
        row.named.workload = Some(long.clone());
        row.named.backend = Some(long);
    }
    row
}

/// Writes a ledger and returns its files: while it is open (as `kill -9` leaves them), and closed.
fn written(dir: &Path, rows: std::ops::RangeInclusive<u64>) -> (Files, Files) {
    let ledger = opened(options(dir));
    let intake = ledger.intake();
    let base = 1_000_000 + rows.start() * 1000;
    // Deleted rows leave free pages.
    for n in 1..=OPEN * 4 {
        intake.admit(admission(base + n));
    }
    for n in rows {
        intake.settle(row(n));
        if n.is_multiple_of(100) {
            flushed(&intake).expect("is on disk");
        }
    }
    for n in OPEN + 1..=OPEN * 4 {
        intake.withdraw(id(base + n));
    }
    for n in 1..=OPEN / 2 {
        intake.progress(Progress {
            id: id(base + n),
            tokens: 2000 + n,
            bytes_out: 10,
        });
    }
    flushed(&intake).expect("is on disk");
    let killed = files(dir);
    assert!(ledger.close(PATIENCE));
    drop(ledger);
    (killed, files(dir))
}

/// The rows of a ledger, without values that differ from start to start.
#[derive(Debug, PartialEq)]
struct Contents {
    settled: Vec<Stored>,
    indeterminate: Vec<(String, Option<i64>, Option<i64>)>,
}

fn contents(path: &Path) -> Result<Contents, ReadError> {
    let reader = Reader::open(path)?;
    let mut contents = Contents {
        settled: Vec::new(),
        indeterminate: Vec::new(),
    };
    reader.each(Period::ALL, |row| {
        if row.text("state") == Some("settled") {
            contents.settled.push(row);
        } else {
            let (least, reserved) = (row.number("at_least_tokens"), row.number("reserved_tokens"));
            contents.indeterminate.push((row.id(), least, reserved));
        }
        Ok::<(), ReadError>(())
    })?;
    Ok(contents)
}

/// The outcome of a start on damaged files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Refused(&'static str),
    /// It opens with every row; nothing that is read was damaged.
    Unharmed,
    /// It opens with every row, and warns that it cannot tell whether it was rolled back.
    Unverified,
    /// It creates a new ledger and warns of that, because no file of the old one is left.
    New,
}

fn word(error: &OpenError) -> &'static str {
    match error {
        OpenError::Foreign { .. } => "foreign",
        OpenError::Gone { .. } => "gone",
        OpenError::Parted { .. } => "parted",
        OpenError::Damaged { .. } => "damaged",
        OpenError::Newer { .. } => "newer",
        OpenError::Linked { .. } => "linked",
        OpenError::Locked { .. }
        | OpenError::Disk { .. }
        | OpenError::Random { .. }
        | OpenError::Thread(_) => "other",
    }
}

/// Opens a ledger on these files; asserts that no damage is silent and every row is accounted for.
fn start(what: &str, damaged: &Files, truth: &Contents) -> Outcome {
    let dir = put(damaged);
    let path = dir.path().join(DB);
    let verified = Reader::open(&path).and_then(|reader| reader.verify(None));
    let is_well = verified.as_ref().is_ok_and(|v| v.findings.is_empty());
    let (ledger, recovered) = match Ledger::open(options(dir.path())) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(
                !is_well,
                "{what}: verify finds nothing, and a start: {error}"
            );
            let word = word(&error);
            assert_ne!(word, "other", "{what}: {error}");
            assert!(
                is_unchanged(dir.path(), damaged),
                "{what}: a refused file was changed"
            );
            if word == "damaged" {
                salvaged(what, &path, truth);
            } else {
                salvage(&path).expect_err("nothing that is another's or not there is salvaged");
                assert!(
                    is_unchanged(dir.path(), damaged),
                    "{what}: a salvage changed it"
                );
            }
            return Outcome::Refused(word);
        }
    };
    assert!(ledger.close(PATIENCE));
    drop(ledger);
    if recovered.is_new {
        return Outcome::New;
    }
    let now = contents(&path).unwrap_or_else(|error| panic!("{what}: it opened, and {error}"));
    assert!(
        now == *truth,
        "SILENT: {what}: it opened, and holds something else"
    );
    assert!(
        is_well,
        "{what}: it opened with everything, and verify says {verified:?}"
    );
    if recovered.without_head {
        return Outcome::Unverified;
    }
    Outcome::Unharmed
}

/// Asserts that a salvage keeps each row unchanged or records it as lost, and that its result opens and verifies.
fn salvaged(what: &str, path: &Path, truth: &Contents) {
    let done = match salvage(path) {
        Ok(SalvageOutcome::Salvaged(done)) => done,
        other => panic!("{what}: {other:?}"),
    };
    assert!(
        !done.kept_aside.is_empty(),
        "{what}: nothing was kept aside"
    );
    let (ledger, recovered) = Ledger::open(options(path.parent().expect("a directory")))
        .unwrap_or_else(|error| panic!("{what}: salvaged, and {error}"));
    let head = ledger.head();
    assert!(ledger.close(PATIENCE));
    assert_eq!(recovered.lost.len(), done.lost.len(), "{what}");
    let verified = Reader::open(path).and_then(|reader| reader.verify(None));
    let verified = verified.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(verified.findings, [], "{what}: after a salvage: {done:?}");
    let now = contents(path).expect("reads");
    let is_lost = |seq: i64| {
        let mut lost = done.lost.iter();
        lost.any(|lost| (lost.from..=lost.to).contains(&seq))
    };
    let open_ended = done.lost.iter().any(|lost| lost.open_ended);
    let is_another = what.contains("another ledger");
    let kept: BTreeMap<i64, &Stored> = now.settled.iter().map(|row| (row.seq, row)).collect();
    for row in truth.settled.iter().filter(|_| !is_another) {
        let is_kept = kept.get(&row.seq).map(|kept| *kept == row);
        match is_kept {
            Some(is_same) => assert!(
                is_same && !is_lost(row.seq),
                "{what}: row {} is another, or lost too",
                row.seq
            ),
            None => assert!(
                is_lost(row.seq) || open_ended,
                "{what}: row {} is nowhere",
                row.seq
            ),
        }
    }
    let last = truth.settled.last().map_or(0, |row| row.seq);
    let invented = now.settled.iter().filter(|row| {
        let at = truth.settled.binary_search_by_key(&row.seq, |row| row.seq);
        at.is_err()
    });
    assert!(
        is_another || invented.count() == 0,
        "{what}: rows were invented"
    );
    assert!(
        is_another || open_ended || head.seq >= last,
        "{what}: numbers are used twice"
    );
}

/// Pages by kind, from SQLite's own page map.
fn kinds(bytes: &[u8], roots: &BTreeMap<usize, String>) -> BTreeMap<String, Vec<usize>> {
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let pages = bytes.len() / PAGE;
    let per_map = PAGE / 5 + 1;
    let is_map = |page: usize| page >= 2 && (page - 2).is_multiple_of(per_map);
    let entry = |page: usize| {
        let map = (page - 2) / per_map * per_map + 2;
        let at = (map - 1) * PAGE + 5 * (page - map - 1);
        let parent: [u8; 4] = bytes[at + 1..at + 5].try_into().expect("four");
        (bytes[at], u32::from_be_bytes(parent) as usize)
    };
    for page in 1..=pages {
        let kind = if page == 1 {
            "header and schema".to_owned()
        } else if is_map(page) {
            "map of pages".to_owned()
        } else {
            let (mut of, kind) = (page, entry(page).0);
            while entry(of).0 == 5 {
                of = entry(of).1;
                if of == 1 {
                    break;
                }
            }
            let name = roots.get(&of).map_or("schema", String::as_str);
            match (kind, bytes[(page - 1) * PAGE]) {
                (2, _) => "free page".to_owned(),
                (3 | 4, _) => "overflow".to_owned(),
                (_, 0x02 | 0x05) => format!("{name}, interior"),
                (_, _) => format!("{name}, leaf"),
            }
        };
        kinds.entry(kind).or_default().push(page);
    }
    kinds
}

/// Names of tables and indices by their first page.
fn roots(files: &Files) -> BTreeMap<usize, String> {
    let dir = put(files);
    let db = rusqlite::Connection::open(dir.path().join(DB)).expect("opens");
    let sql = "SELECT rootpage, name FROM sqlite_schema WHERE rootpage > 0";
    let mut statement = db.prepare(sql).expect("is a question");
    let rows = statement.query_map([], |row| Ok((row.get::<_, i64>(0)? as usize, row.get(1)?)));
    rows.expect("answers")
        .map(|row| row.expect("a row"))
        .collect()
}

/// Adds so many free pages by a table that is created and dropped.
fn with_free_pages(files: &Files, pages: u64) -> Files {
    let dir = put(files);
    let db = rusqlite::Connection::open(dir.path().join(DB)).expect("opens");
    db.execute_batch(&format!(
        "CREATE TABLE passing (x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {pages}) \
         INSERT INTO passing SELECT randomblob(4000) FROM n; DROP TABLE passing; PRAGMA wal_checkpoint(TRUNCATE);",
    ))
    .expect("writes");
    drop(db);
    self::files(dir.path())
}

fn overwritten(files: &Files, name: &'static str, at: usize, with: &[u8]) -> Files {
    let mut files = files.clone();
    let bytes = files.get_mut(name).expect("is there");
    let end = (at + with.len()).min(bytes.len());
    bytes[at..end].copy_from_slice(&with[..end - at]);
    files
}

fn without(files: &Files, names: &[&str]) -> Files {
    let mut files = files.clone();
    files.retain(|name, _| !names.contains(name));
    files
}

fn cut(files: &Files, name: &'static str, length: usize) -> Files {
    let mut files = files.clone();
    files.get_mut(name).expect("is there").truncate(length);
    files
}

fn with(files: &Files, name: &'static str, bytes: Vec<u8>) -> Files {
    let mut files = files.clone();
    files.insert(name, bytes);
    files
}

fn foreign() -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("other.db");
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch(
        "PRAGMA journal_mode = WAL; CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')",
    )
    .expect("writes");
    drop(db);
    std::fs::read(path).expect("reads")
}

/// Cases of each kind with their outcomes.
#[derive(Default)]
struct Table(Vec<(String, BTreeMap<Outcome, usize>)>);

impl Table {
    fn count(&mut self, kind: &str, outcome: Outcome) {
        if self.0.last().is_none_or(|(last, _)| last != kind) {
            self.0.push((kind.to_owned(), BTreeMap::new()));
        }
        let (_, outcomes) = self.0.last_mut().expect("was pushed");
        *outcomes.entry(outcome).or_default() += 1;
    }

    fn only(&self, kind: &str, expected: Outcome) {
        let (_, outcomes) = self
            .0
            .iter()
            .find(|(k, _)| k == kind)
            .expect("is in the table");
        let found: Vec<_> = outcomes.keys().copied().collect();
        assert_eq!(found, [expected], "{kind}");
    }

    fn print(&self) {
        println!(
            "| what happened | cases | refused | unharmed | begun anew, told | silent |\n|---|---|---|---|---|---|"
        );
        let mut sums = [0; 5];
        for (kind, outcomes) in &self.0 {
            let sum = |of: fn(Outcome) -> bool| -> usize {
                outcomes
                    .iter()
                    .filter(|(o, _)| of(**o))
                    .map(|(_, n)| n)
                    .sum()
            };
            let counts = [
                sum(|_| true),
                sum(|o| matches!(o, Outcome::Refused(_))),
                sum(|o| matches!(o, Outcome::Unharmed | Outcome::Unverified)),
                sum(|o| o == Outcome::New),
                0,
            ];
            for (sum, n) in sums.iter_mut().zip(counts) {
                *sum += n;
            }
            println!("| {kind} | {} |", counts.map(|n| n.to_string()).join(" | "));
        }
        println!("| all | {} |", sums.map(|n| n.to_string()).join(" | "));
    }
}

#[test]
fn a_damaged_ledger_opens_complete_or_not_at_all() {
    let mut random = Draw::new(seed("damage_catalogue"));
    let rows = number_of("TOLLGATE_LEDGER_ROWS", 300);
    let dir = tempfile::tempdir().expect("a directory");
    let (early, _) = written(dir.path(), 1..=rows / 2);
    let (killed, stopped) = written(dir.path(), rows / 2 + 1..=rows);
    let stopped = with_free_pages(&stopped, rows * 3 / 5);
    let truth = {
        let dir = put(&stopped);
        drop(opened(options(dir.path())));
        contents(&dir.path().join(DB)).expect("reads")
    };
    assert_eq!(truth.settled.len() as u64, rows);
    let mut table = Table::default();

    let all = kinds(&stopped[DB], &roots(&stopped));
    for (kind, pages) in &all {
        for nth in 0..PAGES.min(pages.len()) {
            let page = match nth {
                0 => pages[0],
                1 => pages[pages.len() - 1],
                _ => pages[random.below(pages.len())],
            };
            for place in 0..PLACES {
                let within = match place {
                    0 => 0,
                    1 => 2,
                    _ => random.below(PAGE - 12),
                };
                let at = (page - 1) * PAGE + within;
                let bit = [stopped[DB][at] ^ 1 << random.below(8)];
                let bytes: &[u8] = if place == PLACES - 1 {
                    &bit
                } else {
                    &[0xa5; 12]
                };
                let what = format!("{kind}: page {page}, byte {within}, {} bytes", bytes.len());
                let outcome = start(&what, &overwritten(&stopped, DB, at, bytes), &truth);
                table.count(&format!("page overwritten: {kind}"), outcome);
            }
        }
    }
    let id = overwritten(&stopped, DB, 68, b"none");
    table.count("the header's id overwritten", start("its id", &id, &truth));
    table.only("the header's id overwritten", Outcome::Refused("damaged"));
    // Who may write the file, and the format of its schema: versions that SQLite does not know.
    for (at, version) in [(18, 3), (47, 5)] {
        let kind = "a version in the header overwritten";
        let files = overwritten(&stopped, DB, at, &[version]);
        table.count(kind, start(kind, &files, &truth));
        table.only(kind, Outcome::Refused("damaged"));
    }
    // A column that only a present build makes: its name in another case is the same, any other is damage.
    let sum = stopped[DB][..PAGE]
        .windows(7)
        .position(|is| is == b"  sum I")
        .expect("its text")
        + 2;
    for (name, expected) in [
        (b"sUm", Outcome::Unharmed),
        (b"sul", Outcome::Refused("damaged")),
    ] {
        let kind = format!("a column's name is {}", String::from_utf8_lossy(name));
        let outcome = start(&kind, &overwritten(&stopped, DB, sum, name), &truth);
        assert_eq!(outcome, expected, "{kind}");
        table.count("a column's name overwritten", outcome);
    }
    // The original defect: twelve bytes at the start of the third page.
    let reproduced = overwritten(&stopped, DB, 8192, b"DAMAGED-PAGE");
    table.count(
        "twelve bytes at offset 8192",
        start("offset 8192", &reproduced, &truth),
    );
    table.only("twelve bytes at offset 8192", Outcome::Refused("damaged"));

    files_that_are_not_what_they_were(&mut table, &stopped, &early, &truth);
    the_log(&mut table, &killed, &mut random);
    // The last pages are free, so losing them loses no row.
    for short in [100, PAGE] {
        let files = cut(&stopped, DB, stopped[DB].len() - short);
        let outcome = start("file truncated, free pages", &files, &truth);
        table.count("file truncated by free pages", outcome);
    }
    table.print();
    for kind in [
        "settled, interior",
        "settled, leaf",
        "settled_id, interior",
        "settled_id, leaf",
        "settled_ended, leaf",
        "overflow",
        "free page",
        "map of pages",
        "open, leaf",
        "chain, leaf",
        "header and schema",
    ] {
        assert!(
            all.contains_key(kind),
            "no page is a {kind}: {:?}",
            all.keys()
        );
    }
}

fn files_that_are_not_what_they_were(
    table: &mut Table,
    stopped: &Files,
    early: &Files,
    truth: &Contents,
) {
    let length = stopped[DB].len();
    let mut case = |kind: &str, files: &Files, expected: Outcome| {
        let outcome = start(kind, files, truth);
        assert_eq!(outcome, expected, "{kind}");
        table.count(kind, outcome);
    };
    for to in [1, 100, PAGE, length / 3, length / 2 / PAGE * PAGE] {
        let files = cut(stopped, DB, to);
        case("file truncated", &files, Outcome::Refused("damaged"));
    }
    case(
        "file truncated to nothing",
        &cut(stopped, DB, 0),
        Outcome::Refused("gone"),
    );
    case(
        "file removed",
        &without(stopped, &[DB]),
        Outcome::Refused("gone"),
    );
    case("all files removed", &Files::new(), Outcome::New);
    case(
        ".head removed",
        &without(stopped, &[HEAD]),
        Outcome::Unverified,
    );
    case(
        ".head overwritten",
        &overwritten(stopped, HEAD, 60, &[0xa5; 12]),
        Outcome::Unverified,
    );
    case(
        "replaced by garbage",
        &with(stopped, DB, b"no database; ".repeat(999)),
        Outcome::Refused("damaged"),
    );
    let alone = without(stopped, &[HEAD]);
    case(
        "garbage where no ledger was",
        &with(&alone, DB, b"no database; ".repeat(999)),
        Outcome::Refused("foreign"),
    );
    case(
        "replaced by another program's database",
        &with(stopped, DB, foreign()),
        Outcome::Refused("foreign"),
    );
    case(
        "another program's database where no ledger was",
        &with(&alone, DB, foreign()),
        Outcome::Refused("foreign"),
    );
    let other = tempfile::tempdir().expect("a directory");
    let (_, other) = written(other.path(), 1..=truth.settled.len() as u64);
    case(
        "replaced by another ledger",
        &with(stopped, DB, other[DB].clone()),
        Outcome::Refused("damaged"),
    );
    let mut set_back = early.clone();
    set_back.insert(HEAD, stopped[HEAD].clone());
    case(
        "set back to a copy of before",
        &set_back,
        Outcome::Refused("damaged"),
    );
}

/// The files of a killed gate, whose last rows are only in the WAL.
fn the_log(table: &mut Table, killed: &Files, random: &mut Draw) {
    let truth = {
        let dir = put(killed);
        drop(opened(options(dir.path())));
        contents(&dir.path().join(DB)).expect("reads")
    };
    let length = killed[LOG].len();
    let frame = PAGE + 24;
    let frames = (length - 32) / frame;
    assert!(frames > 20, "{frames}");
    let refused = Outcome::Refused("damaged");
    let mut case = |kind: &str, files: &Files, expected: &[Outcome]| {
        let outcome = start(kind, files, &truth);
        assert!(expected.contains(&outcome), "{kind}: {outcome:?}");
        table.count(kind, outcome);
    };
    case("killed, and nothing else", killed, &[Outcome::Unharmed]);
    for at in [0, 8, 16, 24] {
        case(
            "log's header overwritten",
            &overwritten(killed, LOG, at, &[0xa5; 8]),
            &[refused],
        );
    }
    for n in [0, 1, frames / 2, frames - 2, frames - 1] {
        for at in [0, 8, 16, 24, 24 + random.below(PAGE - 12)] {
            let files = overwritten(killed, LOG, 32 + n * frame + at, &[0xa5; 12]);
            case("log's frame overwritten", &files, &[refused]);
        }
    }
    for n in [
        0,
        16,
        32,
        32 + frame,
        32 + frames / 2 * frame,
        length - frame,
        length - 1,
    ] {
        case("log truncated", &cut(killed, LOG, n), &[refused]);
    }
    case("log removed", &without(killed, &[LOG]), &[refused]);
    case(
        "file removed, its log left",
        &without(killed, &[DB, HEAD]),
        &[Outcome::Refused("parted")],
    );
    // A crash during a commit leaves this; the commit was not acknowledged.
    let mut torn = killed.clone();
    let rest: Vec<u8> = killed[LOG][32..32 + frame / 2].to_vec();
    torn.get_mut(LOG).expect("is there").extend(rest);
    case(
        "a commit that was never finished",
        &torn,
        &[Outcome::Unharmed],
    );
}

/// The file is overwritten while a gate has it open; the damage is found at the latest when it is read.
#[test]
fn damage_found_while_running_stops_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    for n in 1..=300 {
        intake.settle(settlement(n));
    }
    flushed(&intake).expect("is on disk");
    let path: PathBuf = dir.path().join(DB);
    // Checkpointed first, so that the WAL cannot hide the damage.
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .expect("copies");
    drop(db);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .expect("opens");
    let length = file.metadata().expect("is there").len();
    for page in 1..length / PAGE as u64 {
        file.write_all_at(&[0xa5; 200], page * PAGE as u64)
            .expect("writes");
    }
    // The writer may have the pages in its cache; a new reader has not.
    let reader = Reader::open(&path).expect("opens");
    let found = reader.verify(None).expect("looks").findings;
    assert!(!found.is_empty());
    ledger.condemn(&found[0].to_string());
    let why = intake.unavailable().expect("takes no rows").why;
    assert!(why.contains("damaged"), "{why}");
    crate::rows::admitted(&intake, 9_000_000).expect_err("nothing is promised");
    nothing_happens_for(Duration::from_millis(500));
    assert!(!intake.is_available(), "it does not come back by itself");
}
