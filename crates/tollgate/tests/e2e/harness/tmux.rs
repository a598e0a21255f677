//! A terminal of a given size, by a tmux server of its own, which ends with it.
//!
//! Not here: assertions on what it shows.

use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use testing::{eventually, pace};

/// Between two looks, each of which is a process.
const LOOK: Duration = Duration::from_millis(40);

/// One pane.
pub(crate) struct Pane {
    dir: TempDir,
}

impl Pane {
    /// Runs a shell script in a pane of this size; `None` where there is no tmux.
    pub(crate) fn run(width: u16, height: u16, script: &str) -> Option<Self> {
        let quiet = |command: &mut Command| command.stdout(Stdio::null()).status();
        quiet(Command::new("tmux").arg("-V")).ok()?;
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("conf"), "set -g status off\n").expect("a file");
        let pane = Self { dir };
        let size = [width, height].map(|n| n.to_string());
        let [x, y] = &size;
        pane.ask(&["new-session", "-d", "-x", x, "-y", y, script]);
        Some(pane)
    }

    /// What it shows, without what is blank at the end of each line.
    pub(crate) fn shows(&self) -> String {
        self.ask(&["capture-pane", "-p"])
    }

    /// What it shows and showed before.
    pub(crate) fn history(&self) -> String {
        self.ask(&["capture-pane", "-p", "-S", "-"])
    }

    /// A value by tmux's own name for it.
    pub(crate) fn value(&self, name: &str) -> String {
        let format = format!("#{{{name}}}");
        self.ask(&["display-message", "-p", &format])
            .trim()
            .to_owned()
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        let size = [width, height].map(|n| n.to_string());
        let [x, y] = &size;
        self.ask(&["resize-window", "-x", x, "-y", y]);
    }

    /// Presses a key by tmux's name for it.
    pub(crate) fn press(&self, key: &str) {
        self.ask(&["send-keys", key]);
    }

    /// Waits until it shows something.
    pub(crate) fn until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let mut shown = Shown(self.shows());
        eventually(what, || {
            let is_so = is_there(&shown.0);
            if !is_so {
                pace(LOOK);
                shown.0 = self.shows();
            }
            is_so
        });
        std::mem::take(&mut shown.0)
    }

    fn ask(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").env_remove("NO_COLOR");
        command.arg("-S").arg(self.dir.path().join("socket"));
        command.arg("-f").arg(self.dir.path().join("conf"));
        let ended = command.args(words).output().expect("tmux runs");
        let complained = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "tmux {words:?}: {complained}");
        String::from_utf8_lossy(&ended.stdout).into_owned()
    }
}

/// Printed where a test fails that waits for something else.
struct Shown(String);

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.dir.path().join("socket"));
        drop(command.arg("kill-server").stderr(Stdio::null()).status());
    }
}
