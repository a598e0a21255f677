//! What `tollgate keys` is asked, as its help reads.
//!
//! Not here: doing it (`keys`).

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use identity::keys::{BudgetPer, LimitOf, WrittenBudget, WrittenLimit};

use crate::keyring::Time;

/// Options of `keys`.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make a key and show it, once.
    #[command(
        before_help = "Example:\n  tollgate keys create --workload chat --user ada --expires 90d"
    )]
    Create(Create),
    /// The keys that there are, without their secrets; or one, with all that it may.
    #[command(
        before_help = "Example:\n  tollgate keys list --json\n  tollgate keys list kq3f7m2x9d"
    )]
    List(List),
    /// Change what a key may, and until when; what it has spent stays spent.
    #[command(
        before_help = "Example:\n  tollgate keys change kq3f7m2x9d --budget 50USD/month --without expires"
    )]
    Change(Change),
    /// Give a key another secret; the old one is good for a while yet.
    #[command(before_help = "Example:\n  tollgate keys rotate kq3f7m2x9d --overlap 1h")]
    Rotate(Rotate),
    /// End a key for good.
    #[command(before_help = "Example:\n  tollgate keys revoke kq3f7m2x9d")]
    Revoke(Revoke),
}

/// Which configuration says where the keys are.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Configuration file [default: tollgate.yaml of the current directory].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Where the keys are.
#[derive(Debug, Args)]
pub(crate) struct Where {
    #[command(flatten)]
    pub(crate) config: Config,
    /// The file of keys itself, whatever is wrong with the configuration.
    #[arg(long, value_name = "KEYS", conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) config: Config,
    /// The workload that brings it.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) workload: String,
    /// The person or service that it is given to.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// A name for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// What else is recorded of each of its calls; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    pub(crate) tag: Vec<(String, String)>,
    /// A model that it may ask for, a * at the end fits any rest; may be repeated [default: all of its workload].
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Vec<String>,
    /// A limit of its own, such as requests=60/1m or tokens=100000/1h; may be repeated.
    #[arg(long, value_name = "KIND=N/TIME", value_parser = limit)]
    pub(crate) limit: Vec<WrittenLimit>,
    /// A budget of its own, such as 10USD/month or 1000000tokens/day; may be repeated; needs a ledger.
    #[arg(long, value_name = "AMOUNT/PERIOD", value_parser = budget)]
    pub(crate) budget: Vec<WrittenBudget>,
    /// How long it is good, such as 12h, 90d or 52w [default: for good].
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    pub(crate) expires: Option<Time>,
    /// Print {"id": …, "key": …}.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    pub(crate) config: Config,
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// A name for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// All that else is recorded of each of its calls; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = tag)]
    pub(crate) tag: Vec<(String, String)>,
    /// All models that it may ask for; may be repeated.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Vec<String>,
    /// All limits of its own, such as requests=60/1m; may be repeated; one that changes begins anew.
    #[arg(long, value_name = "KIND=N/TIME", value_parser = limit)]
    pub(crate) limit: Vec<WrittenLimit>,
    /// All budgets of its own, such as 50USD/month; may be repeated; needs a ledger.
    #[arg(long, value_name = "AMOUNT/PERIOD", value_parser = budget)]
    pub(crate) budget: Vec<WrittenBudget>,
    /// How long it is good from now on, such as 12h, 90d or 52w.
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    pub(crate) expires: Option<Time>,
    /// What is taken away; may be repeated.
    #[arg(long, value_name = "WHAT")]
    pub(crate) without: Vec<Part>,
    /// Print the key as it is now, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a key need not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Name,
    Tags,
    Models,
    Limits,
    Budgets,
    Expires,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) at: Where,
    /// One key, with all that it may.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    #[command(flatten)]
    pub(crate) at: Where,
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// How long the old secret is good yet, such as 0s, 1h or 7d [default: 24h].
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    pub(crate) overlap: Option<Time>,
    /// Also where a secret is good yet from the last rotation, which ends at once then.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print {"id": …, "key": …}.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    pub(crate) at: Where,
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn limit(text: &str) -> Result<WrittenLimit, String> {
    let read = || {
        let (of, rest) = text.split_once('=')?;
        let (amount, per) = rest.split_once('/')?;
        let of = match of {
            "requests" => LimitOf::Requests,
            "tokens" => LimitOf::Tokens,
            _ => return None,
        };
        Some(WrittenLimit {
            of,
            amount: amount.parse().ok()?,
            per_s: Time::parse(per).ok()?.seconds(),
        })
    };
    read()
        .ok_or_else(|| "write requests=N/TIME or tokens=N/TIME, such as requests=60/1m".to_owned())
}

fn budget(text: &str) -> Result<WrittenBudget, String> {
    let read = || {
        let (what, per) = text.split_once('/')?;
        let at = what.find(|c: char| c.is_ascii_alphabetic())?;
        let (amount, unit) = what.split_at_checked(at)?;
        let per = match per {
            "day" => BudgetPer::Day,
            "week" => BudgetPer::Week,
            "month" => BudgetPer::Month,
            _ => return None,
        };
        let written = WrittenBudget {
            unit: unit.to_owned(),
            amount: amount.to_owned(),
            per,
        };
        written.lowered().map(|_| written)
    };
    read().ok_or_else(|| {
        "write AMOUNT and a currency or `tokens`, and day, week or month, such as 10USD/month"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_budgets_are_an_amount_and_a_time() {
        let read = limit("tokens=1000/1h").expect("a limit");
        assert_eq!(
            (read.of, read.amount, read.per_s),
            (LimitOf::Tokens, 1000, 3600)
        );
        for text in [
            "",
            "tokens",
            "tokens=1",
            "tokens=/1m",
            "calls=1/1m",
            "tokens=1/1y",
        ] {
            assert!(limit(text).is_err(), "{text}");
        }
        let read = budget("2.50USD/month").expect("a budget");
        assert_eq!(
            (&*read.unit, &*read.amount, read.per),
            ("USD", "2.50", BudgetPer::Month)
        );
        assert_eq!(
            budget("5tokens/day").map(|read| read.unit),
            Ok("tokens".to_owned())
        );
        for text in [
            "",
            "USD/month",
            "1/month",
            "1USD",
            "1USD/year",
            "0USD/day",
            "1.5tokens/day",
        ] {
            assert!(budget(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tags_have_a_name_and_a_value() {
        assert_eq!(tag("team=a=b"), Ok(("team".to_owned(), "a=b".to_owned())));
        for text in ["", "team", "=a", "team="] {
            assert!(tag(text).is_err(), "{text}");
        }
    }
}
