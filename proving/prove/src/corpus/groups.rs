//! Profiles on a command line: each `--profile` opens one, and what follows belongs to it.
//!
//! ```text
//! --profile a --reader toolbench DIR DIR --sessions 5000 --profile b --reader messages FILE --set key=value
//! ```
//!
//! Invariant: nothing of a profile stands before the first `--profile`, and each has one reader.
//! Not here: what the settings mean (`options`), profiles in a file (`build`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::corpus::reader::Format;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use serde::Deserialize;

/// One profile, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) reader: String,
    #[serde(default)]
    pub(super) paths: Vec<PathBuf>,
    #[serde(default)]
    pub(super) sessions: Option<u64>,
    #[serde(default)]
    pub(super) licence: Option<String>,
    /// Where it is published: of a recipe, for whoever fetches it.
    #[serde(default)]
    pub(super) source: Option<String>,
    #[serde(default)]
    pub(super) options: BTreeMap<String, String>,
}

/// All profiles of a command line, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Groups(pub(super) Vec<Group>);

impl Args for Groups {
    fn augment_args(command: Command) -> Command {
        let option = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name(value)
                .help(help)
                .action(ArgAction::Append)
                .help_heading("Profiles")
        };
        command
            .arg(option(
                "profile",
                "NAME",
                "Opens a profile: the options of this section that follow belong to it",
            ))
            .arg(
                option("reader", "KIND", "The format of its files").help(format!(
                    "The format of its files ({}); synthetic makes sessions",
                    Format::names()
                )),
            )
            .arg(
                option(
                    "sessions",
                    "N",
                    "Draws so many of its sessions; all, if not given",
                )
                .value_parser(value_parser!(u64)),
            )
            .arg(option(
                "licence",
                "NAME",
                "Licence of its data where records do not say",
            ))
            .arg(option(
                "set",
                "KEY=VALUE",
                "A setting of its reader, such as omniact-mode=image or turns=20",
            ))
            .arg(
                Arg::new("path")
                    .value_name("PATH")
                    .help("Its files and directories")
                    .action(ArgAction::Append)
                    .num_args(0..)
                    .value_parser(value_parser!(PathBuf))
                    .help_heading("Profiles"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Groups {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        read(matches)
            .map(Self)
            .map_err(|says| clap::Error::raw(ErrorKind::ArgumentConflict, format!("{says}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn read(matches: &ArgMatches) -> Result<Vec<Group>, String> {
    let names = placed::<String>(matches, "profile");
    let mut groups: Vec<Group> = names
        .iter()
        .map(|(_, name)| Group {
            name: name.clone(),
            ..Group::default()
        })
        .collect();
    // The profile in whose section something stands.
    let of = |what: &str, at: usize| {
        let before = names.iter().filter(|(start, _)| *start < at).count();
        before
            .checked_sub(1)
            .ok_or_else(|| format!("{what} stands before the first --profile"))
    };
    for (at, reader) in placed::<String>(matches, "reader") {
        let group = &mut groups[of("--reader", at)?];
        if !group.reader.is_empty() {
            return Err(format!("profile {:?} has two readers", group.name));
        }
        group.reader = reader;
    }
    for (at, sessions) in placed::<u64>(matches, "sessions") {
        groups[of("--sessions", at)?].sessions = Some(sessions);
    }
    for (at, licence) in placed::<String>(matches, "licence") {
        groups[of("--licence", at)?].licence = Some(licence);
    }
    for (at, setting) in placed::<String>(matches, "set") {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("--set {setting}: has no `=`"))?;
        let options = &mut groups[of("--set", at)?].options;
        options.insert(key.to_owned(), value.to_owned());
    }
    for (at, path) in placed::<PathBuf>(matches, "path") {
        groups[of(&path.display().to_string(), at)?]
            .paths
            .push(path);
    }
    match groups.iter().find(|group| group.reader.is_empty()) {
        Some(group) => Err(format!("profile {:?} has no --reader", group.name)),
        None => Ok(groups),
    }
}

/// The values of an argument, each with its place on the command line.
fn placed<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<(usize, T)> {
    let values = matches.get_many::<T>(name).into_iter().flatten().cloned();
    let places = matches.indices_of(name).into_iter().flatten();
    places.zip(values).collect()
}
