//! `tollgate usage`: what the ledger says.
//!
//! Invariant: reads only, but for `salvage` of a ledger that no gate has open. A ledger that is not as
//! it was written is exit code 1; so is one that cannot be read. A reader that goes away (a closed
//! pipe) is not an error.
//! Not here: sums and forms (`ledger::report`).

mod arguments;
mod batches;
mod care;
mod tail;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use ledger::report::{self, ExportError};
use ledger::{Period, ReadError, Reader, date};

pub(crate) use arguments::Usage;
use arguments::{Drift, Export, Form, Question, Report, Span, Statement};

use crate::output::complain;
use crate::running::load;
use crate::source::Source;
use crate::width;
use crate::world::World;

/// Where an answer goes.
type Out = dyn Write + Send;

/// Why there is no answer.
#[derive(Debug)]
enum Fault {
    /// The question makes no sense.
    Asked(String),
    Ledger(ReadError),
    Target(io::Error),
    /// It could not be done, in words that say all.
    Said(String),
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Ledger(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Target(error)
    }
}

impl From<ExportError> for Fault {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Read(error) => Self::Ledger(error),
            ExportError::Write(error) => Self::Target(error),
        }
    }
}

/// Answers.
pub(crate) fn usage(options: &Usage) -> ExitCode {
    let mut out = BufWriter::new(io::stdout());
    let told = answer(options, &mut out).and_then(|is_good| {
        out.flush()?;
        Ok(is_good)
    });
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Fault::Target(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Fault::Target(error)) => fail(&format!("cannot write: {error}")),
        Err(Fault::Ledger(error)) => fail(&format!("{error}{}", elsewhere(&options.ledger))),
        Err(Fault::Said(says)) => fail(&says),
        Err(Fault::Asked(says)) => {
            complain(&format!("tollgate usage: {says}"));
            ExitCode::from(2)
        }
    }
}

fn fail(says: &str) -> ExitCode {
    complain(&format!("tollgate usage: {says}"));
    ExitCode::FAILURE
}

/// Where to look for a ledger that is not there; nothing of one that is.
fn elsewhere(ledger: &Path) -> String {
    if std::fs::symlink_metadata(ledger).is_ok() {
        return String::new();
    }
    let here = configured().filter(|path| path != ledger);
    let here = here.map_or_else(String::new, |path| {
        format!(" (tollgate.yaml here names {})", path.display())
    });
    format!("; name its file with --ledger FILE, or in TOLLGATE_LEDGER{here}")
}

/// The ledger that the configuration of the current directory names, where it has one without faults.
fn configured() -> Option<PathBuf> {
    let source = Source::of(None);
    let loaded = load(Some(source.file()?), &World).ok()?;
    Some(loaded.host.ledger?.path)
}

/// Whether all is well with the ledger, as far as was asked.
fn answer(options: &Usage, out: &mut Out) -> Result<bool, Fault> {
    if let Question::Salvage(asked) = &options.question {
        // What it is for cannot be opened.
        care::salvage(&options.ledger, asked, out)?;
        return Ok(true);
    }
    let reader = Reader::open(&options.ledger)?.only(options.question.only());
    match &options.question {
        Question::Report(asked) => summed(&reader, asked, out)?,
        Question::Drift(asked) => drifted(&reader, asked, out)?,
        Question::Export(asked) => exported(&reader, &options.ledger, asked, out)?,
        Question::Verify(asked) => return care::verify(&reader, asked, out),
        Question::Backup(asked) => care::backup(&reader, asked, out)?,
        Question::Salvage(_) => {}
        Question::Batches(asked) => batches::uncounted(&options.ledger, asked, out)?,
        Question::Tail(asked) => tail::tail(&reader, asked, out)?,
        Question::Statement(asked) => stated(&reader, &options.ledger, asked, out)?,
    }
    Ok(true)
}

fn summed(reader: &Reader, asked: &Report, out: &mut dyn Write) -> Result<(), Fault> {
    let by = &*asked.by;
    let lines = report::report(reader, asked.span.period()?, by)?;
    if asked.json {
        writeln!(out, "{:#}", report::as_json(&lines, by))?;
    } else if asked.csv {
        out.write_all(report::as_csv(&lines, by).as_bytes())?;
    } else {
        out.write_all(report::table(&lines, by, width()).as_bytes())?;
    }
    Ok(())
}

fn drifted(reader: &Reader, asked: &Drift, out: &mut dyn Write) -> Result<(), Fault> {
    let by = &*asked.by;
    let lines = report::report(reader, asked.span.period()?, by)?;
    if asked.json {
        writeln!(out, "{:#}", report::as_json(&lines, by))?;
    } else {
        out.write_all(report::drift_table(&lines, by, width()).as_bytes())?;
    }
    Ok(())
}

fn exported(reader: &Reader, ledger: &Path, asked: &Export, out: &mut Out) -> Result<(), Fault> {
    let period = asked.span.period()?;
    let form = asked.form();
    if form == Form::Parquet && asked.out.is_none() && io::stdout().is_terminal() {
        let says = "a Parquet file is not text: name a file with --out, or pipe it on";
        return Err(Fault::Asked(says.to_owned()));
    }
    to(asked.out.as_deref(), ledger, out, |out| {
        match form {
            Form::Csv => report::csv(reader, period, out)?,
            Form::Jsonl => report::json_lines(reader, period, out)?,
            Form::Parquet => report::parquet(reader, period, out)?,
            Form::Focus => report::focus(reader, period, &asked.issuer, out)?,
        };
        Ok(())
    })
}

fn stated(reader: &Reader, ledger: &Path, asked: &Statement, out: &mut Out) -> Result<(), Fault> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let (period, who) = (asked.span.period()?, asked.by.clone());
    let statement = report::Statement::by(reader, period, who, &asked.title, now_ms)?;
    let text = if asked.is_csv() {
        statement.csv()
    } else {
        statement.html()
    };
    to(asked.out.as_deref(), ledger, out, |out| {
        Ok(out.write_all(text.as_bytes())?)
    })
}

/// Characters of a line of an answer.
fn width() -> usize {
    width::of(io::stdout())
}

/// Writes to a file when one is named, which must not be one of the ledger's own.
fn to(
    file: Option<&Path>,
    ledger: &Path,
    out: &mut Out,
    write: impl FnOnce(&mut Out) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(path) = file else { return write(out) };
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if is_of_ledger(path, ledger) {
        let says = format!(
            "{} is the ledger {} or a file of it, and would be overwritten: name another file",
            path.display(),
            ledger.display()
        );
        return Err(Fault::Asked(says));
    }
    // It has who spent what, as the ledger has, which the gate's group alone may read.
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o640);
    let mut file = BufWriter::new(options.open(path).map_err(named)?);
    write(&mut file)?;
    Ok(file.flush().map_err(named)?)
}

/// Whether a path leads to the ledger or to a file beside it that belongs to it, by whatever name.
fn is_of_ledger(path: &Path, ledger: &Path) -> bool {
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let Some(target) = identity(path) else {
        // What is not there yet may take the name of one that comes and goes.
        return ledger::FILES
            .iter()
            .any(|suffix| path == with(ledger, suffix));
    };
    let real = std::fs::canonicalize(ledger).unwrap_or_else(|_| ledger.to_owned());
    [ledger, &real].iter().any(|ledger| {
        let mut files = ledger::FILES.iter();
        files.any(|suffix| identity(&with(ledger, suffix)) == Some(target))
    })
}

/// The path of the file that belongs to a ledger by this ending.
fn with(ledger: &Path, suffix: &str) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Span {
    fn period(&self) -> Result<Period, Fault> {
        let read = |text: &String| {
            let says = || {
                Fault::Asked(format!(
                    "{text} is neither a day (2026-11-21) nor a month (2026-11)"
                ))
            };
            date::parse(text).ok_or_else(says)
        };
        let [from, to] = [&self.from, &self.to].map(|date| self.period.as_ref().or(date.as_ref()));
        let period = Period {
            from_ms: from
                .map(read)
                .transpose()?
                .map_or(Period::ALL.from_ms, |span| span.0),
            to_ms: to
                .map(read)
                .transpose()?
                .map_or(Period::ALL.to_ms, |span| span.1),
        };
        if period.from_ms >= period.to_ms {
            return Err(Fault::Asked("--from lies after --to".to_owned()));
        }
        Ok(period)
    }
}

#[cfg(test)]
mod tests;
