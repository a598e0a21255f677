//! What `tollgate usage` is asked, as its help reads.
//!
//! Not here: the answers (`usage`).

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use ledger::Only;
use ledger::report::By;

/// Options of `usage`.
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// The ledger's file. It may be in use by a gate, but for `salvage`, and is only read.
    #[arg(
        long,
        global = true,
        env = "TOLLGATE_LEDGER",
        default_value = "usage.db",
        value_name = "FILE"
    )]
    pub(crate) ledger: PathBuf,
    #[command(subcommand)]
    pub(crate) question: Question,
}

/// What to answer.
#[derive(Debug, Subcommand)]
pub(crate) enum Question {
    /// Tokens, cost, errors and drift of a period, by whoever spent them.
    #[command(
        before_help = "Example:\n  tollgate usage report --by workload,model --period 2026-11"
    )]
    Report(Report),
    /// The engines' word beside the gate's count.
    #[command(before_help = "Example:\n  tollgate usage drift --by model --from 2026-11-01")]
    Drift(Drift),
    /// Single records for other programs.
    #[command(
        before_help = "Example:\n  tollgate usage export --form parquet --period 2026-11 -o november.parquet"
    )]
    Export(Export),
    /// Look for damage and for records that were altered, removed or inserted; exit code 1 when there are.
    #[command(before_help = "Example:\n  tollgate usage verify --json")]
    Verify(Verify),
    /// Copy the ledger, also while a gate writes it, and check the copy.
    #[command(before_help = "Example:\n  tollgate usage --ledger usage.db backup copy.db")]
    Backup(Backup),
    /// Make a ledger that a gate opens of one that it refuses: keep what is whole, write down what is lost.
    ///
    /// The gate must not run. The files that were there are kept beside it, byte for byte. What is
    /// lost is no longer in any budget, and stands in the ledger for good: `verify` tells of it. A ledger
    /// that is whole is left as it is.
    #[command(before_help = "Example:\n  tollgate usage --ledger usage.db salvage")]
    Salvage(Salvage),
    /// The newest records.
    #[command(before_help = "Example:\n  tollgate usage tail -f")]
    Tail(Tail),
    /// Batches whose use is not counted yet, the oldest first; and the end of one that never can be.
    #[command(
        before_help = "Example:\n  tollgate usage batches\n  tollgate usage batches --give-up batch_68a1 --why forgotten"
    )]
    Batches(Batches),
    /// A chargeback statement for people: HTML, or CSV.
    #[command(
        before_help = "Example:\n  tollgate usage statement --by workload --period 2026-11 -o november.html"
    )]
    Statement(Statement),
}

/// Which form.
#[derive(Debug, Args)]
pub(crate) struct Batches {
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// A batch that can never be counted: its row says so, and nothing is charged for it.
    #[arg(long, value_name = "ID", requires = "why")]
    pub(crate) give_up: Option<String>,
    /// Why, for whoever reads the log.
    #[arg(long, value_name = "TEXT", requires = "give_up")]
    pub(crate) why: Option<String>,
    /// Where several backends have a batch of this id: which.
    #[arg(long, value_name = "NAME", requires = "give_up")]
    pub(crate) backend: Option<String>,
}

/// A span of days, UTC; records count by their end.
#[derive(Debug, Args)]
pub(crate) struct Span {
    /// A day (2026-11-21) or a month (2026-11).
    #[arg(long, conflicts_with_all = ["from", "to"], value_name = "DATE")]
    pub(crate) period: Option<String>,
    /// The first day or month.
    #[arg(long, value_name = "DATE")]
    pub(crate) from: Option<String>,
    /// The last day or month, itself included.
    #[arg(long, value_name = "DATE")]
    pub(crate) to: Option<String>,
}

/// Whose records; each of these must hold.
#[derive(Debug, Args)]
pub(crate) struct Whose {
    /// Records of this workload only.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    workload: Option<String>,
    /// Records of the key with this id only.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    key: Option<String>,
    /// Records of this user only.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    /// Records with this tag only; may be said again for another tag.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,
}

impl Whose {
    fn only(&self) -> Only {
        Only {
            workload: self.workload.clone(),
            key: self.key.clone(),
            user: self.user.clone(),
            tags: self.tags.clone(),
        }
    }
}

impl Question {
    /// Which records it is about.
    pub(crate) fn only(&self) -> Only {
        match self {
            Self::Report(asked) => asked.whose.only(),
            Self::Drift(asked) => asked.whose.only(),
            Self::Export(asked) => asked.whose.only(),
            Self::Statement(asked) => asked.whose.only(),
            Self::Verify(_)
            | Self::Backup(_)
            | Self::Salvage(_)
            | Self::Tail(_)
            | Self::Batches(_) => Only::default(),
        }
    }
}

/// A tag and its value.
fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write a tag as NAME=VALUE".to_owned()),
    }
}

/// What a report is cut by.
fn cut(text: &str) -> Result<By, String> {
    Ok(match text {
        "workload" => By::Workload,
        "group" => By::Group,
        "model" => By::Model,
        "backend" => By::Backend,
        "day" => By::Day,
        "key" => By::Key,
        "user" => By::User,
        "tool" => By::Tool,
        _ => match text.strip_prefix("tag:") {
            Some(name) if !name.is_empty() => By::Tag(name.into()),
            _ => return Err(format!("write one of {CUTS}")),
        },
    })
}

/// The values of `--by`.
const CUTS: &str = "workload, group, model, backend, day, key, user, tool, tag:NAME";

/// What a statement has beside group and model.
fn who(text: &str) -> Result<By, String> {
    let whose = |by: &By| matches!(by, By::Workload | By::Key | By::User | By::Tag(_));
    let by = cut(text).ok().filter(whose);
    by.ok_or_else(|| "write one of workload, key, user, tag:NAME".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// What to cut by, in order: workload, group, model, backend, day, key, user, tool, tag:NAME.
    #[arg(long, value_delimiter = ',', default_value = "workload", value_parser = cut)]
    pub(crate) by: Vec<By>,
    #[command(flatten)]
    pub(crate) span: Span,
    #[command(flatten)]
    pub(crate) whose: Whose,
    /// JSON instead of a table.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// CSV instead of a table.
    #[arg(long)]
    pub(crate) csv: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Drift {
    /// What to cut by, in order: workload, group, model, backend, day, key, user, tool, tag:NAME.
    #[arg(long, value_delimiter = ',', default_value = "model", value_parser = cut)]
    pub(crate) by: Vec<By>,
    #[command(flatten)]
    pub(crate) span: Span,
    #[command(flatten)]
    pub(crate) whose: Whose,
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Every column of every record.
    Csv,
    /// The same, an object to a line.
    Jsonl,
    /// The same as a Parquet file: moments, decimals and flags have their types.
    Parquet,
    /// Hourly charges in the columns of FOCUS 1.2.
    Focus,
}

impl Export {
    /// The form that is said, or that the file's name says.
    pub(crate) fn form(&self) -> Form {
        let ending = self.out.as_deref().and_then(ending);
        let by_ending = ending.and_then(|ending| Form::from_str(ending, false).ok());
        self.form.or(by_ending).unwrap_or(Form::Csv)
    }
}

impl Statement {
    /// Whether it is CSV.
    pub(crate) fn is_csv(&self) -> bool {
        self.csv || self.out.as_deref().and_then(ending) == Some("csv")
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The form; where none is said, that of the file's ending (.csv, .jsonl, .parquet), else CSV.
    #[arg(long, value_enum)]
    form: Option<Form>,
    #[command(flatten)]
    pub(crate) span: Span,
    #[command(flatten)]
    pub(crate) whose: Whose,
    /// Where to; standard output when it is not said.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Who bills, in FOCUS rows.
    #[arg(long, default_value = "Tollgate", value_name = "NAME")]
    pub(crate) issuer: String,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// A head that was printed before, by this command, in the gate's log, by its admin port or on a
    /// statement: the history up to it has to be the same, and nothing before it may be missing.
    #[arg(long, value_name = "SEQ:HASH")]
    pub(crate) head: Option<String>,
    /// JSON instead of words.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The copy; there must be no file of that name.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// JSON instead of words.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Salvage {
    /// Also of a ledger that is whole: all its rows go on under a new name, for a Postgres that has another
    /// history under the old one.
    #[arg(long)]
    pub(crate) new_name: bool,
    /// JSON instead of words.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// How many.
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    pub(crate) last: u32,
    /// Go on as records come.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// JSON lines instead of words.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Statement {
    /// What to cut each group by: workload, key, user or tag:NAME.
    #[arg(long, default_value = "workload", value_parser = who)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) span: Span,
    #[command(flatten)]
    pub(crate) whose: Whose,
    /// What stands on top.
    #[arg(long, default_value = "Usage of language models", value_name = "TEXT")]
    pub(crate) title: String,
    /// CSV instead of HTML; so is a file that ends in .csv.
    #[arg(long)]
    csv: bool,
    /// Where to; standard output when it is not said.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
