//! Each verb has an example that the command line takes, and a page that says it.

use clap::{Command, CommandFactory, Parser, ValueEnum};
use clap_complete::Shell;

use super::{completions, name, page, with_verbs};
use crate::cli::Cli;

fn built() -> Command {
    super::built(Cli::command())
}

/// The words of a line as a shell makes them: up to a redirection, a pipe or a remark, without the variables before.
fn words(line: &str) -> Vec<String> {
    let line = line.split("   ").next().unwrap_or_default();
    let line = line
        .split([">", "|"].map(|end| end.chars().next().expect("one")))
        .next();
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.unwrap_or_default().chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(letter),
        }
    }
    let is_before = |word: &String| word.is_empty() || word.contains('=');
    let begin = words.iter().position(|word| !is_before(word)).unwrap_or(0);
    words
        .split_off(begin)
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect()
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
            let words = words(line);
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
            ".SH OPTIONS",
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
