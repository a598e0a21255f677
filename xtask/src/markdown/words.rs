//! The words behind the language of a fenced block: what is to be done with it. GitHub and mdBook show the block by its first
//! word and pass over the others.
//!
//! | word | says |
//! |---|---|
//! | `unrun=REASON` | the block is not run, for a reason of [`REASONS`] |
//! | `serves=HOST:PORT` | its last command stays; the page goes on when the address takes connections. What served there ends first |
//! | `dist=PACKAGE` | `cargo xtask dist try` runs it, with the package |
//! | `with=engine`, `with=gate`, `with=demo` | an engine on port 8000, the gate by `tollgate.yaml` before it, or the demo, is started first unless there is one |
//! | `ends=HOST:PORT` | what serves there ends first |
//! | `clone` | from here on the page is read in a clone of the repository |
//! | `file=NAME` | the block is that file |
//! | `seconds=N` | how long it may take |
//! | `exit=0,4` | what its commands may end with |
//!
//! Not here: what the words of YAML and TOML mean (`part`, `faulty`, `of=…`), which their readers' tests know.

use super::Block;

/// Why a block is not run, and what that means.
pub(crate) const REASONS: &[(&str, &str)] = &[
    ("dist", "a package: `cargo xtask dist try` runs it"),
    ("minutes", "runs for minutes, by design"),
    ("names", "names something of the reader's own"),
    ("needs-accounts", "a provider's key"),
    ("needs-cluster", "Kubernetes"),
    (
        "needs-containers",
        "a container runtime, and images from a registry",
    ),
    ("needs-network", "downloads"),
    ("needs-systemd", "an installed package"),
    ("needs-vllm", "a real vLLM"),
    ("writes-system", "writes outside its directory"),
];

/// Seconds that a block may take unless it says more.
const SECONDS: u64 = 60;

/// What runs beside a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Beside {
    Engine,
    Gate,
    Demo,
}

/// A block's words, understood.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    pub(crate) unrun: Option<&'a str>,
    pub(crate) serves: Option<&'a str>,
    pub(crate) ends: Option<&'a str>,
    pub(crate) beside: Option<Beside>,
    pub(crate) is_clone: bool,
    pub(crate) file: Option<&'a str>,
    pub(crate) seconds: Option<u64>,
    pub(crate) exit: Option<&'a str>,
}

impl<'a> Words<'a> {
    /// An error names the word that nobody understands.
    pub(crate) fn of(block: &Block<'a>) -> Result<Self, String> {
        let mut words = Self::default();
        for word in block.info.split_whitespace().skip(1) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match (name, value) {
                ("unrun", reason) if REASONS.iter().any(|(known, _)| *known == reason) => {
                    words.unrun = Some(reason);
                }
                ("dist", package) if !package.is_empty() => words.unrun = Some("dist"),
                ("serves", address) if address.contains(':') => words.serves = Some(address),
                ("ends", address) if address.contains(':') => words.ends = Some(address),
                ("with", "demo") => words.beside = Some(Beside::Demo),
                ("with", "engine") => words.beside = Some(Beside::Engine),
                ("with", "gate") => words.beside = Some(Beside::Gate),
                ("clone", "") => words.is_clone = true,
                ("file", name) if is_plain(name) => words.file = Some(name),
                ("seconds", number) if number.parse::<u64>().is_ok() => {
                    words.seconds = number.parse().ok();
                }
                ("exit", codes) if codes.split(',').all(|code| code.parse::<u8>().is_ok()) => {
                    words.exit = Some(codes);
                }
                ("part" | "faulty" | "of", _) if !is_shell(block) => {}
                _ => {
                    return Err(format!(
                        "`{word}` is no word of a block (xtask/src/markdown/words.rs)"
                    ));
                }
            }
        }
        Ok(words)
    }

    pub(crate) fn bound_s(&self) -> u64 {
        self.seconds.unwrap_or(SECONDS)
    }
}

/// A file's name that stays below the page's directory and is one word to a shell.
fn is_plain(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    !name.is_empty() && !name.starts_with('/') && !name.contains("..") && name.chars().all(is_fine)
}

/// Whether a block is commands.
pub(crate) fn is_shell(block: &Block<'_>) -> bool {
    matches!(block.info.split_whitespace().next(), Some("sh" | "console"))
}
