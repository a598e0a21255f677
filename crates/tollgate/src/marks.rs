//! The files that are watched, and how they looked when they were read last.
//!
//! A look at a handful of files costs nothing that can be measured, and sees what notification misses: symbolic links
//! swapped by Kubernetes, files replaced by rename, network file systems.
//! Invariant: of those who want a reload one at a time does it, and what changed before one began is seen by it.
//! Not here: what a change means (`running`), when to look (`watch`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What of a file tells that it changed.
type Mark = Option<(SystemTime, u64, u64, u32)>;

/// Why a reload is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A file changed, or somebody asked for it.
    News,
    /// Files are watched since the last one alone, and may have changed as it read them: as a rule nothing is new.
    Doubt,
}

/// What a reload gives: the files to watch now, and the version, or why it was refused.
pub(crate) type Reloaded = (Arc<[PathBuf]>, Result<String, String>);

/// The files, and how they looked before what was loaded last was read.
#[derive(Debug)]
pub(crate) struct Marks(Mutex<Seen>);

#[derive(Debug)]
struct Seen {
    files: Arc<[PathBuf]>,
    /// None of a file that nobody has looked at since it is watched: that differs from every look.
    marks: Vec<Option<Mark>>,
}

impl Marks {
    /// Of these files, as they are now; they are to be read after this.
    pub(crate) fn of(files: Arc<[PathBuf]>) -> Self {
        let marks = look(&files);
        Self(Mutex::new(Seen { files, marks }))
    }

    /// Reloads where a file changed; waits for who reloads just now.
    pub(crate) fn catch_up(&self, reload: impl FnOnce(Cause) -> Reloaded) {
        self.lock().catch_up(reload);
    }

    /// The same, unless somebody reloads just now: the next look sees what came after.
    pub(crate) fn try_to_catch_up(&self, reload: impl FnOnce(Cause) -> Reloaded) {
        if let Ok(mut seen) = self.0.try_lock() {
            seen.catch_up(reload);
        }
    }

    /// Reloads whether a file changed or not.
    pub(crate) fn reload(&self, reload: impl FnOnce(Cause) -> Reloaded) -> Result<String, String> {
        let mut seen = self.lock();
        seen.marks = look(&seen.files);
        seen.reload(|| reload(Cause::News))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn catch_up(&mut self, reload: impl FnOnce(Cause) -> Reloaded) {
        let now = look(&self.files);
        if now != self.marks {
            let known = self
                .marks
                .iter()
                .zip(&now)
                .filter(|(mark, _)| mark.is_some());
            let is_same = known.into_iter().all(|(mark, now)| mark == now);
            let cause = if is_same { Cause::Doubt } else { Cause::News };
            self.marks = now;
            // What was refused is in the log.
            drop(self.reload(|| reload(cause)));
        }
    }

    fn reload(&mut self, reload: impl FnOnce() -> Reloaded) -> Result<String, String> {
        let (watched, result) = reload();
        if watched != self.files {
            // What changed since it was looked at has to be seen: marks stay, and what is new has none.
            let known = self.files.iter().zip(std::mem::take(&mut self.marks));
            let known: HashMap<&PathBuf, Option<Mark>> = known.collect();
            let mark = |file| known.get(file).copied().flatten();
            self.marks = watched.iter().map(mark).collect();
            self.files = watched;
        }
        result
    }
}

fn look(files: &[PathBuf]) -> Vec<Option<Mark>> {
    use std::os::unix::fs::MetadataExt;
    let mark = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok()?;
        // Who may read it counts too.
        let (inode, mode) = (found.ino(), found.mode());
        Some((found.modified().ok()?, inode, found.len(), mode))
    };
    files.iter().map(|file| Some(mark(file))).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_changed_is_read_once_and_what_is_to_be_watched_follows() {
        let dir = tempfile::tempdir().expect("a directory");
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        std::fs::write(&one, "1").expect("a file");
        let (first, both): (Arc<[_]>, Arc<[_]>) =
            ([one.clone()].into(), [one.clone(), two.clone()].into());
        let (reads, cause) = (Cell::new(0), Cell::new(Cause::News));
        let reload = |why| {
            reads.set(reads.get() + 1);
            cause.set(why);
            (Arc::clone(&both), Ok("v".to_owned()))
        };
        let marks = Marks::of(first);
        marks.catch_up(reload);
        assert_eq!(reads.get(), 0);
        std::fs::write(&one, "12").expect("a file");
        marks.catch_up(reload);
        assert_eq!(reads.get(), 1);
        // The other one is new, and may have changed since it was read: it is read once more.
        marks.try_to_catch_up(reload);
        marks.catch_up(reload);
        assert_eq!((reads.get(), cause.get()), (2, Cause::Doubt));
        // From now on it is watched, from its making to its end.
        std::fs::write(&two, "1").expect("a file");
        marks.try_to_catch_up(reload);
        marks.catch_up(reload);
        assert_eq!((reads.get(), cause.get()), (3, Cause::News));
        std::fs::remove_file(&two).expect("it is there");
        marks.catch_up(reload);
        assert_eq!(reads.get(), 4);
        assert_eq!(marks.reload(reload), Ok("v".to_owned()));
        marks.catch_up(reload);
        assert_eq!(reads.get(), 5);
    }

    #[test]
    fn what_changes_while_a_reload_runs_is_read_by_the_next() {
        let dir = tempfile::tempdir().expect("a directory");
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        std::fs::write(&one, "1").expect("a file");
        let marks = Marks::of([one.clone()].into());
        // After it was read, and the list of files is another one, too.
        std::fs::write(&one, "12").expect("a file");
        marks.catch_up(|_| {
            std::fs::write(&one, "123").expect("a file");
            ([two.clone(), one.clone()].into(), Ok(String::new()))
        });
        let is_read = Cell::new(false);
        marks.catch_up(|_| {
            is_read.set(true);
            ([two.clone(), one.clone()].into(), Ok(String::new()))
        });
        assert!(is_read.get());
    }
}
