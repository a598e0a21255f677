//! What `tollgate keys` is asked, as its help reads.
//!
//! Not here: doing it (`keys`).

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
        after_help = "Example:\n  tollgate keys create --workload chat --user ada --expires 90d"
    )]
    Create(Create),
    /// The keys that there are, without their secrets.
    List(List),
    /// Give a key another secret; the old one is good for a while yet.
    Rotate(Rotate),
    /// End a key for good.
    Revoke(Revoke),
}

/// Which configuration says where the keys are.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Configuration file [default: tollgate.yaml of the current directory].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
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
    /// How long it is good, such as 12h, 90d or 52w [default: for good].
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    pub(crate) expires: Option<Time>,
    /// Print {"id": …, "key": …}.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) config: Config,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rotate {
    #[command(flatten)]
    pub(crate) config: Config,
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// How long the old secret is good yet, such as 0s, 1h or 7d.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = Time::parse)]
    pub(crate) overlap: Time,
    /// Print {"id": …, "key": …}.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    pub(crate) config: Config,
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A span of time in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(u64);

impl Time {
    /// `90s`, `15m`, `12h`, `90d`, `52w`.
    fn parse(text: &str) -> Result<Self, String> {
        let units = [
            ('s', 1),
            ('m', 60),
            ('h', 3600),
            ('d', 86_400),
            ('w', 604_800),
        ];
        let read = units.iter().find_map(|(unit, seconds)| {
            let digits = text.strip_suffix(*unit)?;
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let number: u64 = digits.parse().ok().filter(|_| is_number)?;
            number.checked_mul(*seconds)
        });
        let century = 100 * 366 * 86_400;
        let read = read.filter(|seconds| *seconds <= century);
        read.map(Self)
            .ok_or_else(|| "write a number and s, m, h, d or w, such as 90d".to_owned())
    }

    /// How many seconds.
    pub(crate) fn seconds(self) -> u64 {
        self.0
    }

    /// The second that is so far after another.
    pub(crate) fn after(self, unix_s: u64) -> u64 {
        unix_s.saturating_add(self.0)
    }
}

fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_a_number_and_a_unit() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("2m", 120),
            ("12h", 43_200),
            ("1w", 604_800),
        ] {
            assert_eq!(Time::parse(text).map(Time::seconds), Ok(seconds), "{text}");
        }
        for text in [
            "",
            "d",
            "1",
            "-1d",
            "+1d",
            "1.5h",
            "1y",
            "1 d",
            "99999999999999999999w",
            "101000d",
        ] {
            assert!(Time::parse(text).is_err(), "{text}");
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
