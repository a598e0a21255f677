//! A terminal of a given size, by a tmux server of its own, which ends with it.
//!
//! Not here: assertions on what it shows.

use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::eventually;

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
        let mut shown = String::new();
        let mut looks = 0;
        eventually(what, Duration::from_secs(20), || {
            shown = self.shows();
            looks += 1;
            assert!(looks < 1_900, "{what}:\n{shown}");
            is_there(&shown)
        });
        shown
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

impl Drop for Pane {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.dir.path().join("socket"));
        drop(command.arg("kill-server").stderr(Stdio::null()).status());
    }
}
