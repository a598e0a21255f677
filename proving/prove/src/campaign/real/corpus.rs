//! The corpus that is replayed: one that is there, or one that is built now, with a key beside it that says of what.
//!
//! Invariant: what has no key is somebody else's. It is taken where it is what would be built, and neither taken away nor
//! given a key, by which a later campaign would take it away.
//! Not here: how a corpus is built (`crate::corpus`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::preparation::{Asked, stop_if};
use crate::campaign::scenario::{CorpusSpec, sha256};
use crate::campaign::{RunError, hint};
use crate::files;
use crate::host::process::OWN;
use crate::interrupt::Interrupt;

/// What it is called where it cannot be run.
const BUILDER: &str = "prove corpus build";
/// Between two looks at a child.
const LOOK: Duration = Duration::from_millis(50);

/// A corpus that is there, or one that is built now.
pub(super) fn corpus(asked: Asked<'_>) -> Result<PathBuf, RunError> {
    let Asked {
        options,
        scenario,
        output,
        interrupt,
    } = asked;
    if let Some(corpus) = &options.corpus {
        return Ok(corpus.clone());
    }
    match &scenario.corpus {
        None => Err(RunError::Usage(
            "the scenario has no corpus: name one with --corpus".into(),
        )),
        Some(CorpusSpec::Built(path)) => Ok(path.clone()),
        Some(CorpusSpec::Config(config, args)) => {
            let text = files::read(config).map_err(RunError::File)?;
            let wanted = format!("{}\n{:?}\n{text}", scenario.seed, args);
            let place = Place {
                out: output.path("corpus"),
                key: output.path("corpus.key"),
            };
            let builder = Builder {
                config,
                args,
                seed: scenario.seed,
                interrupt,
            };
            hint(&format!("building the corpus of {}", config.display()));
            let status = place.fill(&sha256(wanted.as_bytes()), || builder.run(&place.out))?;
            if status.success() {
                return Ok(place.out);
            }
            let says = format!(
                "the corpus of {} could not be built ({status})",
                config.display()
            );
            Err(RunError::Usage(says))
        }
    }
}

/// Where a corpus is built.
struct Place {
    out: PathBuf,
    /// A file with the key of what we built there.
    key: PathBuf,
}

impl Place {
    /// Has what is wanted built there, and says how the builder ended: a corpus that is there is taken only where the
    /// builder finds in it what it would build, sources and all.
    fn fill(
        &self,
        wanted: &str,
        mut build: impl FnMut() -> Result<ExitStatus, RunError>,
    ) -> Result<ExitStatus, RunError> {
        let known = fs::read_to_string(&self.key).ok();
        let is_ours = known.is_some() || !self.out.exists();
        if known.is_some_and(|known| known != wanted) && self.out.exists() {
            // Of another scenario or seed, and built by us.
            self.clear()?;
        }
        let was_there = self.out.exists();
        if is_ours {
            files::replace(&self.key, wanted).map_err(RunError::File)?;
        }
        let status = build()?;
        if status.success() || !is_ours || !was_there {
            return Ok(status);
        }
        self.clear()?;
        hint("it has other sources now, and is built again");
        build()
    }

    fn clear(&self) -> Result<(), RunError> {
        fs::remove_dir_all(&self.out).map_err(RunError::of(self.out.display()))
    }
}

/// Another process of ours.
struct Builder<'a> {
    config: &'a Path,
    args: &'a [String],
    seed: u64,
    interrupt: &'a Interrupt,
}

impl Builder<'_> {
    fn run(&self, out: &Path) -> Result<ExitStatus, RunError> {
        let child = Command::new(OWN)
            .args(["corpus", "build", "--config"])
            .arg(self.config)
            .arg("--out")
            .arg(out)
            .args(["--seed", &self.seed.to_string()])
            .args(self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        self.wait_for(child.map_err(RunError::of(BUILDER))?)
    }

    /// Waits for the end of a child, and ends it when we are to end.
    fn wait_for(&self, mut child: Child) -> Result<ExitStatus, RunError> {
        loop {
            if let Some(status) = child.try_wait().map_err(RunError::of(BUILDER))? {
                stop_if(self.interrupt)?;
                return Ok(status);
            }
            if self.interrupt.was_heard() {
                child.kill().map_err(RunError::of(BUILDER))?;
                child.wait().map_err(RunError::of(BUILDER))?;
                return Err(RunError::Interrupted);
            }
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Whose a corpus is, before and after.

    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn place(dir: &tempfile::TempDir) -> Place {
        Place {
            out: dir.path().join("corpus"),
            key: dir.path().join("corpus.key"),
        }
    }

    fn ended(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn a_corpus_that_is_not_ours_gets_no_key_and_stays_whatever_is_wanted_later() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = place(&dir);
        let theirs = place.out.join("manifest.json");
        fs::create_dir(&place.out).expect("a directory");
        fs::write(&theirs, "theirs").expect("written");
        for (wanted, code) in [("seed 1", 0), ("seed 2", 1), ("seed 3", 0)] {
            let status = place.fill(wanted, || Ok(ended(code))).expect("built");
            assert_eq!(status.code(), Some(code), "what the builder said");
            assert!(!place.key.exists(), "{wanted}");
            assert_eq!(fs::read_to_string(&theirs).expect("there"), "theirs");
        }
    }

    #[test]
    fn a_corpus_of_ours_goes_when_another_is_wanted_or_its_sources_changed() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = place(&dir);
        let mut seen = Vec::new();
        // With the same key it is left for the builder to look at; where that refuses it, it is built again.
        for (wanted, codes) in [
            ("seed 1", [0, 0]),
            ("seed 2", [0, 0]),
            ("seed 2", [1, 0]),
            ("seed 2", [0, 0]),
        ] {
            let mut codes = codes.into_iter();
            let status = place.fill(wanted, || {
                seen.push(place.out.exists());
                fs::create_dir_all(&place.out).expect("a directory");
                Ok(ended(codes.next().expect("twice at most")))
            });
            assert!(status.expect("built").success());
            assert_eq!(fs::read_to_string(&place.key).expect("a key"), wanted);
        }
        assert_eq!(seen, [false, false, true, false, true]);
    }
    #[test]
    fn what_cannot_be_taken_away_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = place(&dir);
        fs::write(&place.key, "seed 1").expect("written");
        fs::write(&place.out, "no directory").expect("written");
        let error = place.fill("seed 2", || Ok(ended(0))).expect_err("a file");
        let says = error.to_string();
        assert!(says.starts_with(&place.out.display().to_string()), "{says}");
    }
}
