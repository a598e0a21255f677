//! What `docs/install.md` tells people to type, so that just that is tried: blocks marked `dist=…`.
//!
//! Invariant: a block that is asked for and not there is an error, so that no page can lose its test.

use crate::cargo::root;
use crate::dist::registries::tag;
use crate::dist::{Release, arch};

const PAGE: &str = "docs/install.md";
/// What the page says of wheels: those of programs that were built for [`crate::parts::DIST_GLIBC`] on x86-64.
const PRINTED_TAG: &str = "py3-none-manylinux_2_28_x86_64";

/// The commands of the blocks that are marked so, as they are printed, but for this machine's processor and the glibc that the programs need.
pub(super) fn commands(mark: &str, release: &Release) -> Result<Vec<String>, String> {
    let commands = printed(mark)?.into_iter();
    let here = |command: String| {
        command
            .replace(PRINTED_TAG, &tag(&release.needs.glibc))
            .replace("x86_64", arch::MACHINE)
            .replace("amd64", arch::DEBIAN)
    };
    Ok(commands.map(here).collect())
}

fn printed(mark: &str) -> Result<Vec<String>, String> {
    let page =
        std::fs::read_to_string(root().join(PAGE)).map_err(|cause| format!("{PAGE}: {cause}"))?;
    let found = marked(&page, mark);
    if found.is_empty() {
        return Err(format!("{PAGE}: no block is marked `console dist={mark}`"));
    }
    Ok(found)
}

fn marked(page: &str, mark: &str) -> Vec<String> {
    let fence = format!("```console dist={mark}\n");
    let blocks = page.split(&fence).skip(1);
    let lines = blocks.flat_map(|rest| rest.split("\n```").next().unwrap_or_default().lines());
    let commands = lines.filter_map(|line| line.strip_prefix("$ "));
    commands.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{marked, printed};

    #[test]
    fn commands_of_marked_blocks_are_found_and_answers_are_not() {
        let page = "```console\n$ other\n```\n\n```console dist=deb\n$ one\nan answer\n$ two\n```\n$ prose\n";
        assert_eq!(marked(page, "deb"), ["one", "two"]);
        assert!(marked(page, "archive").is_empty());
    }

    #[test]
    fn the_page_has_what_is_tried_and_names_this_version() {
        for mark in ["archive", "deb", "image", "wheel", "npm"] {
            let commands = printed(mark).expect("a block");
            let version = env!("CARGO_PKG_VERSION");
            assert!(
                commands.iter().any(|command| command.contains(version)),
                "{commands:?}"
            );
        }
    }
}
