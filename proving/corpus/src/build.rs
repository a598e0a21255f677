//! From files to a corpus: all cores, little memory, and no work twice.
//!
//! One thread reads; as many as there are cores repair, unroll and count; the caller's thread writes, in the order in
//! which records were read, so that the number of threads changes nothing. What is done is noted in a journal, from
//! which an interrupted build goes on. Sums are made at the end from what was noted of each record.
//! Invariant: what is in memory at once is bounded by [`IN_FLIGHT_BYTES`] of text (or one record), the memos of the
//! counters and the tables with bounds of their own; nothing grows with the corpus but 16 bytes for each session, up
//! to [`MOST_SESSIONS`].
//! Not here: formats (`reader`), the store's files (`store`), tokens (`geometry`).

mod files;
mod finish;
mod journal;
mod lock;
mod pipeline;
mod sample;
mod stamps;
mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::conversation::Conversation;
use crate::geometry::TargetTokenizer;
use crate::manifest::Manifest;
use crate::reader::{Fault, ReadError, Reader, Unit};
use crate::store::{Corpus, MOST_MANIFEST_BYTES, StoreError, StoreWriter};
use crate::unroll::Output;

/// Most sessions of a corpus.
pub const MOST_SESSIONS: u64 = 1 << 22;
/// Bytes of text that are read and not yet written.
pub const IN_FLIGHT_BYTES: usize = 16 << 20;

/// What is to be built.
pub struct Plan<'a> {
    /// Where; must not be there, or be empty.
    pub out: PathBuf,
    /// Name and version of the program.
    pub tool: String,
    /// The model that requests name.
    pub model: String,
    /// Seed of samples.
    pub seed: u64,
    /// How long answers may be.
    pub output: Output,
    /// Whether they must be that long.
    pub ignore_eos: bool,
    /// Whether they are streams.
    pub stream: bool,
    /// Most tokens of a prompt and its answer.
    pub max_context: u32,
    /// Tokens in a block of the prefix cache.
    pub block_tokens: u32,
    /// Whether sessions that say the same are kept.
    pub keep_duplicates: bool,
    /// Whether the first broken record ends the build.
    pub strict: bool,
    /// Threads that count.
    pub threads: usize,
    /// What it is made of, in order.
    pub profiles: Vec<ProfilePlan<'a>>,
}

/// One profile of a plan.
pub struct ProfilePlan<'a> {
    /// Its name.
    pub name: String,
    /// What reads its files.
    pub reader: &'a dyn Reader,
    /// What the reader was told, for the manifest.
    pub options: BTreeMap<String, String>,
    /// Files and directories.
    pub paths: Vec<PathBuf>,
    /// How many sessions; all, if none.
    pub sessions: Option<u64>,
    /// The licence of its data where records do not say.
    pub licence: Option<String>,
}

/// Makes of what was recorded what engines take.
pub trait Repair: Sync {
    /// Its name, for the manifest.
    fn name(&self) -> String;

    /// Repairs a session, and counts the repairs by kind.
    ///
    /// # Errors
    /// Why nothing can be made of it.
    fn repair(
        &self,
        conversation: Conversation,
    ) -> Result<(Conversation, BTreeMap<String, u64>), Fault>;
}

/// How far a build is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Share that is done, 0 to 1, by records where their number is known and else by bytes of sources.
    pub share: f64,
    /// Records that were read.
    pub records: u64,
    /// Sessions that were written.
    pub sessions: u64,
    /// Requests that were written.
    pub requests: u64,
    /// Records that gave no session.
    pub skipped: u64,
    /// Bytes that were written.
    pub bytes_stored: u64,
    /// Bytes of all requests, each counted whole.
    pub bytes_unrolled: u64,
    /// Of these, those of an earlier call that this one goes on from.
    pub bytes_unrolled_before: u64,
}

/// What ended a build.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// A source cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record is broken, and the build is strict.
    #[error("{place}: {says}")]
    Broken {
        /// File and position.
        place: String,
        /// What is wrong.
        says: String,
    },
    /// A source was written to meanwhile.
    #[error("{}: changed while it was read, and what was built of it is given up: build anew", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
}

/// A profile whose files are known.
struct Prepared<'a> {
    plan: &'a ProfilePlan<'a>,
    units: Vec<Unit>,
    sources: Vec<crate::manifest::Source>,
    /// The files as they were before any was read.
    stamps: stamps::Stamps,
    /// The sessions that are wanted, and from how many they were drawn.
    sample: Option<sample::Sample>,
}

/// Builds a corpus, or goes on with one that was interrupted. `watch` is told after each record.
///
/// # Errors
/// What ended it. What was done until then is kept beside `out`, and the same call goes on from there.
pub fn build(
    plan: &Plan<'_>,
    target: &dyn TargetTokenizer,
    repair: &dyn Repair,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Manifest, BuildError> {
    check(plan)?;
    let lock = lock::Lock::take(&plan.out)?;
    // It may have been made while the lock was another's.
    check_out(&plan.out)?;
    let work = StoreWriter::work_dir(&plan.out);
    let prepared: Vec<Prepared<'_>> = plan
        .profiles
        .iter()
        .map(|profile| prepare(plan, profile))
        .collect::<Result<_, _>>()?;
    let fingerprint = journal::fingerprint(plan, &prepared, &target.name(), &repair.name());
    if StoreWriter::finished(&plan.out).as_ref() == Some(&fingerprint) {
        StoreWriter::settle(&plan.out, &journal::FILES)?;
        lock.leave(&plan.out);
        return Ok(Corpus::open(&plan.out)?.manifest().clone());
    }
    let mut journal = journal::Journal::open(&work, &fingerprint)?;
    let writer = pipeline::run(plan, &prepared, target, repair, &mut journal, watch)?;
    if let Some(path) = changed(&prepared) {
        journal.forget()?;
        return Err(BuildError::Changed { path });
    }
    let manifest = finish::manifest(
        plan,
        &prepared,
        (target.name(), repair.name()),
        &mut journal,
    )?;
    let text = manifest.to_text();
    if text.len() as u64 > MOST_MANIFEST_BYTES {
        let says = "corpus.json would have more than 512 MiB: take fewer files".to_owned();
        return Err(BuildError::Plan(says));
    }
    drop(journal);
    let profiles = plan.profiles.len() as u32;
    writer.finish(&plan.out, &text, profiles, &journal::FILES, &fingerprint)?;
    lock.leave(&plan.out);
    Ok(manifest)
}

fn check(plan: &Plan<'_>) -> Result<(), BuildError> {
    let refuse = |says: String| Err(BuildError::Plan(says));
    if plan.profiles.is_empty() {
        return refuse("a corpus needs a profile".to_owned());
    }
    if plan.profiles.len() > 1_000 {
        return refuse("a corpus has 1,000 profiles at most".to_owned());
    }
    for (i, profile) in plan.profiles.iter().enumerate() {
        if plan.profiles[..i].iter().any(|p| p.name == profile.name) {
            return refuse(format!("profile {:?} is there twice", profile.name));
        }
        if profile
            .sessions
            .is_some_and(|n| n == 0 || n > MOST_SESSIONS)
        {
            let name = &profile.name;
            return refuse(format!(
                "profile {name:?}: sessions must be 1 to {MOST_SESSIONS}"
            ));
        }
    }
    if plan.block_tokens == 0 || plan.threads == 0 {
        return refuse("tokens in a block and threads must be at least 1".to_owned());
    }
    check_out(&plan.out)
}

fn check_out(out: &Path) -> Result<(), BuildError> {
    let mut inside = match std::fs::read_dir(out) {
        Ok(inside) => inside,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(out)(error).into()),
    };
    match inside.next() {
        Some(_) => Err(BuildError::Plan(format!(
            "{} is not empty; name another directory",
            out.display()
        ))),
        None => Ok(()),
    }
}

/// A source that is not what it was when the build began.
fn changed(prepared: &[Prepared<'_>]) -> Option<PathBuf> {
    prepared
        .iter()
        .find_map(|profile| profile.stamps.changed(profile.plan.reader, &profile.units))
}

fn prepare<'a>(plan: &Plan<'_>, profile: &'a ProfilePlan<'a>) -> Result<Prepared<'a>, BuildError> {
    let units = profile.reader.units(&profile.paths)?;
    let stamps = stamps::Stamps::take(profile.reader, &units);
    let sources = files::sources(&profile.paths, &units)?;
    let sample = profile
        .sessions
        .map(|n| sample::draw(profile, &units, plan.seed, n))
        .transpose()?;
    Ok(Prepared {
        plan: profile,
        units,
        sources,
        stamps,
        sample,
    })
}

#[cfg(test)]
pub(crate) mod tests;
