//! Each verb has an example that the command line takes, and a page that says it.

use clap::{Command, CommandFactory, Parser, ValueEnum};
use clap_complete::Shell;

use super::{completions, name, page, with_verbs};
use crate::cli::Cli;

fn built() -> Command {
    super::built(Cli::command())
}

#[test]
fn the_help_of_each_verb_opens_with_an_example_that_is_taken() {
    let root = built();
    let verbs = with_verbs(&root);
    assert!(verbs.len() > 20, "{}", verbs.len());
    for verb in verbs {
        let path = name(verb).replace('-', " ");
        let help = verb.clone().render_long_help().to_string();
        assert!(help.starts_with("Example"), "{path}: {help}");
        let before = verb
            .get_before_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let lines: Vec<&str> = before.lines().skip(1).collect();
        assert!(!lines.is_empty(), "{path} has no example");
        for line in lines {
            let words = testing::words(line);
            let said: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut wanted = path.split(' ');
            let is_of_verb = wanted.all(|word| said.contains(&word));
            assert!(is_of_verb, "{path}: {line:?} is of another verb");
            if let Err(error) = Cli::try_parse_from(&said) {
                panic!("{path}: {line:?} is not taken: {error}");
            }
        }
    }
}

#[test]
fn what_every_verb_takes_stands_under_a_heading_of_its_own() {
    for verb in with_verbs(&built()) {
        let help = verb.clone().render_long_help().to_string();
        let (own, general) = help
            .split_once("General options:")
            .unwrap_or_else(|| panic!("{}: {help}", name(verb)));
        // An example before them may have one of them.
        for option in ["--log <FILTER>", "--log-format <FORMAT>", "-h, --help"] {
            assert!(!own.contains(option), "{}: {help}", name(verb));
            assert!(general.contains(option), "{}: {help}", name(verb));
        }
    }
    let asked = ["tollgate", "check", "--help"];
    let told = Cli::try_parse_from(asked).expect_err("it is told");
    assert_eq!(told.kind(), clap::error::ErrorKind::DisplayHelp);
    let told = Cli::try_parse_from(["tollgate", "-V"]).expect_err("it is told");
    assert_eq!(told.kind(), clap::error::ErrorKind::DisplayVersion);
}

#[test]
fn the_commands_of_the_documents_page_are_taken() {
    let page = include_str!("../../../../docs/documents.md");
    let commands: Vec<&str> = testing::commands(page, "tollgate").collect();
    assert!(commands.len() > 2, "{commands:?}");
    for line in commands {
        if let Err(error) = Cli::try_parse_from(testing::words(line)) {
            assert!(!error.use_stderr(), "{line:?} is not taken: {error}");
        }
    }
}

#[test]
fn a_page_is_the_same_each_time_and_says_its_examples() {
    let (root, again) = (built(), built());
    for (verb, again) in with_verbs(&root).into_iter().zip(with_verbs(&again)) {
        let text = page(verb);
        assert_eq!(text, page(again));
        assert!(text.is_ascii(), "{text}");
        let version = env!("CARGO_PKG_VERSION");
        let title = format!(".TH {} 1  \"tollgate {version}\"", name(verb));
        assert!(text.contains(&title), "no {title} in {text}");
        for section in [
            ".SH NAME",
            ".SH SYNOPSIS",
            ".SH EXAMPLES",
            ".SH DESCRIPTION",
            ".SH \"GENERAL OPTIONS\"",
        ] {
            assert_eq!(text.matches(section).count(), 1, "{section} in {text}");
        }
    }
}

#[test]
fn every_shell_is_told_of_every_verb() {
    let root = built();
    for shell in Shell::value_variants() {
        let text = completions(Cli::command(), *shell);
        for verb in with_verbs(&root) {
            assert!(
                text.contains(verb.get_name()),
                "{shell}: no {}",
                verb.get_name()
            );
        }
    }
}
