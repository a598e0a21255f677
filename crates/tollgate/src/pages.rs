//! `tollgate completions` and `tollgate man`: what shells and manuals know of the command line, made of the command line.
//!
//! Invariant: no date and nothing of a machine gets in, so that the same program gives the same bytes.
//! Not here: what the verbs and their options are (`cli`).

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

/// What `shell` needs to complete the command line.
pub(crate) fn completions(mut line: Command, shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut line, "tollgate", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The manual page of the whole.
pub(crate) fn whole(line: Command) -> String {
    page(&built(line))
}

/// Writes a page for the whole and one for each verb, and gives how many.
///
/// # Errors
/// What cannot be written, and why.
pub(crate) fn write(line: Command, dir: &Path) -> Result<usize, String> {
    let cannot =
        |path: &Path, cause: io::Error| format!("cannot write {}: {cause}", path.display());
    fs::create_dir_all(dir).map_err(|cause| cannot(dir, cause))?;
    let root = built(line);
    let verbs = with_verbs(&root);
    for verb in &verbs {
        let path = dir.join(format!("{}.1", name(verb)));
        fs::write(&path, page(verb)).map_err(|cause| cannot(&path, cause))?;
    }
    Ok(verbs.len())
}

/// The command line with what clap adds to it, and without the verb `help`: a page that says what `--help` does.
fn built(line: Command) -> Command {
    let mut line = line.disable_help_subcommand(true);
    line.build();
    line
}

/// A command and all that is below it, in the order of its help.
fn with_verbs(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    std::iter::once(command)
        .chain(below.flat_map(with_verbs))
        .collect()
}

/// `tollgate-usage-report`.
fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

/// A page, with the examples before the description: as the help has them.
fn page(command: &Command) -> String {
    let source = format!("tollgate {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source);
    let mut text = Vec::new();
    let sections = [
        Man::render_title,
        Man::render_name_section,
        Man::render_synopsis_section,
    ];
    // Memory takes whatever is written.
    for section in sections {
        drop(section(&man, &mut text));
    }
    text.extend(examples(command).bytes());
    drop(man.render_description_section(&mut text));
    drop(man.render_options_section(&mut text));
    if command.has_subcommands() {
        drop(man.render_subcommands_section(&mut text));
    }
    if command.get_after_help().is_some() {
        drop(man.render_extra_section(&mut text));
    }
    in_ascii(&String::from_utf8_lossy(&text))
}

/// A page that needs no guess at its encoding.
fn in_ascii(page: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii() {
            letter.to_string()
        } else {
            format!("\\[u{:04X}]", u32::from(letter))
        }
    };
    page.chars().map(letter).collect()
}

/// What stands above the help, as a section whose lines stay as they are.
fn examples(command: &Command) -> String {
    let Some(before) = command.get_before_help() else {
        return String::new();
    };
    let before = before.to_string();
    let lines: Vec<String> = before
        .lines()
        .skip(1)
        .map(|line| line.trim().replace('\\', "\\e").replace('-', "\\-"))
        .collect();
    format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.join("\n"))
}

#[cfg(test)]
mod tests;
