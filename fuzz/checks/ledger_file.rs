//! What must hold for any ledger's file, damaged in any place.
//!
//! It is read, verified and opened without a panic, and each time to an end; where the walk of its chain finds
//! nothing wrong with as many rows as were written, those rows are read as they were written.
//! Not here: what is done about damage (`ledger`).

use std::path::Path;
use std::sync::OnceLock;

use ledger::{Ledger, Options, Period, ReadError, Reader, Stored};

use super::rows;

/// Rows in the file before it is damaged.
const ROWS: u64 = 40;

/// A good file, and what its rows say.
fn good() -> &'static (Vec<u8>, Vec<String>) {
    static GOOD: OnceLock<(Vec<u8>, Vec<String>)> = OnceLock::new();
    GOOD.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = rows::opened(rows::options(dir.path()));
        let intake = ledger.intake();
        for n in 0..ROWS {
            intake.settle(rows::settlement(n));
        }
        rows::flushed(&intake).expect("the disk takes them");
        drop(intake);
        assert!(ledger.close(testing::PATIENCE));
        drop(ledger);
        let path = dir.path().join("ledger.db");
        let bytes = std::fs::read(&path).expect("a file");
        let ids = read(&path).expect("it is good");
        assert_eq!(ids.len() as u64, ROWS);
        (bytes, ids)
    })
}

/// Panics when an invariant is broken. The input is a list of changes: where (24 bits), what is done (a byte), and
/// a byte to write there.
pub(crate) fn fuzz_one(input: &[u8]) {
    let (bytes, ids) = good();
    let mut bytes = bytes.clone();
    for change in input.chunks_exact(5).take(64) {
        let [a, b, c, how, with] = change else {
            continue;
        };
        let at = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let at = at % bytes.len().max(1);
        match how % 5 {
            0 => bytes.truncate(at.max(1)),
            1 => bytes.extend(std::iter::repeat_n(*with, at % 8192)),
            2 => bytes[at..]
                .iter_mut()
                .take(16)
                .for_each(|byte| *byte = *with),
            3 => bytes[at / 4096 * 4096..]
                .iter_mut()
                .take(4096)
                .for_each(|byte| *byte = *with),
            _ => bytes[at] ^= with | 1,
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    std::fs::write(&path, &bytes).expect("a file");
    let walked = Reader::open(&path).and_then(|reader| reader.verify(None));
    let rows = read(&path);
    if let (Ok(walked), Ok(rows)) = (&walked, &rows)
        && walked.findings.is_empty()
        && walked.rows == ROWS
    {
        assert_eq!(rows, ids, "the chain is whole");
    }
    let mut options = Options::at(&path);
    options.linger = std::time::Duration::ZERO;
    if let Ok((ledger, _)) = Ledger::open(options) {
        ledger.close(testing::PATIENCE);
    }
}

/// The ids of all rows.
fn read(path: &Path) -> Result<Vec<String>, ReadError> {
    let reader = Reader::open(path)?;
    let mut ids = Vec::new();
    reader.each(Period::ALL, |row: Stored| {
        ids.push(format!(
            "{} {:?}",
            row.id(),
            row.number("completion_tokens")
        ));
        Ok::<_, ReadError>(())
    })?;
    Ok(ids)
}
