//! Each verb has an example that the command line takes, and so does each page that names commands.

use clap::{Command, CommandFactory, Parser};

use crate::Cli;

/// A command and all that is below it, with the words that lead there.
fn with_verbs(command: &Command, path: &str) -> Vec<(String, Command)> {
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let below = below.filter(|verb| verb.get_name() != "help");
    let below = below.flat_map(|verb| with_verbs(verb, &format!("{path} {}", verb.get_name())));
    std::iter::once((path.to_owned(), command.clone()))
        .chain(below)
        .collect()
}

#[test]
fn the_help_of_each_verb_opens_with_an_example_that_is_taken() {
    let mut root = Cli::command();
    root.build();
    let verbs = with_verbs(&root, "prove");
    assert!(verbs.len() > 20, "{}", verbs.len());
    for (path, mut verb) in verbs {
        let help = verb.render_long_help().to_string();
        assert!(help.starts_with("Example"), "{path}: {help}");
        assert!(help.contains("General options:\n"), "{path}: {help}");
        let before = verb.get_before_help().map(ToString::to_string);
        let before = before.unwrap_or_default();
        let lines: Vec<&str> = before.lines().skip(1).collect();
        assert!(!lines.is_empty(), "{path} has no example");
        for line in lines {
            let words = testing::words(line);
            assert!(words.join(" ").starts_with(&path), "{path}: {line:?}");
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{path}: {line:?} is not taken: {error}");
            }
        }
    }
}

#[test]
fn the_commands_of_the_documents_page_are_taken() {
    let page = include_str!("../../../docs/documents.md");
    let commands: Vec<&str> = testing::commands(page, "prove").collect();
    assert!(commands.len() > 5, "{commands:?}");
    for line in commands {
        if let Err(error) = Cli::try_parse_from(testing::words(line)) {
            assert!(!error.use_stderr(), "{line:?} is not taken: {error}");
        }
    }
}
