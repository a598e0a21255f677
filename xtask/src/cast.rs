//! The demo as a moving picture for the README: what it shows in a terminal of eighty columns, captured and written as one SVG.
//!
//! Invariant: nothing is drawn that was not shown, and no service is asked; the file is smaller than [`BYTES_MAX`].
//! Not here: reading what tmux captures (`cells`), the picture's form (`svg`).

mod cells;
mod svg;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cargo::{build_release, release_binary, root};
use crate::command::run_shown;
use cells::Row;

const FILE: &str = "docs/demo.svg";
const BYTES_MAX: usize = 200_000;

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// What is run; the seed is one in which much happens.
const DEMO: &str = "demo --workload mixed --calls 44 --every-ms 250 --seed 7";
/// Between two captures.
const EVERY: Duration = Duration::from_millis(400);
/// How long the first and the last frame stand.
const FIRST: Duration = Duration::from_millis(900);
const LAST: Duration = Duration::from_secs(9);
/// What it ends with.
const REPORT: &str = "Who spent what";
/// When it must be over.
const WITHIN: Duration = Duration::from_secs(60);

/// What was shown, and for how long.
struct Frame {
    rows: Vec<Row>,
    stands: Duration,
}

/// Captures and writes; the binary is built for it where none is named.
pub(crate) fn run(binary: Option<&Path>) -> Result<(), String> {
    let binary = match binary {
        Some(binary) => binary.to_owned(),
        None => built()?,
    };
    let frames = captured(&binary)?;
    let picture = svg::picture(&frames, COLUMNS, ROWS);
    if picture.len() > BYTES_MAX {
        return Err(format!(
            "the picture has {} bytes, more than {BYTES_MAX}",
            picture.len()
        ));
    }
    let file = root().join(FILE);
    std::fs::write(&file, &picture).map_err(|cause| format!("{}: {cause}", file.display()))?;
    println!("{FILE}: {} frames, {} bytes", frames.len(), picture.len());
    Ok(())
}

fn built() -> Result<PathBuf, String> {
    run_shown(&mut build_release(&["tollgate", "demo"]))?;
    release_binary()
}

/// Frames of a run, from the command to the report.
fn captured(binary: &Path) -> Result<Vec<Frame>, String> {
    let terminal = Terminal::start(binary)?;
    let mut frames: Vec<Frame> = vec![Frame {
        rows: vec![cells::row(&format!("$ tollgate {DEMO}"))],
        stands: FIRST,
    }];
    let began = Instant::now();
    loop {
        std::thread::sleep(EVERY);
        let is_dead = terminal.ask(&["display-message", "-p", "#{pane_dead}"])?;
        let shown = terminal.ask(&["capture-pane", "-p", "-e", "-N"])?;
        let rows: Vec<Row> = shown.lines().map(cells::row).collect();
        match frames.last_mut() {
            Some(last) if last.rows == rows => last.stands += EVERY,
            _ => frames.push(Frame {
                rows,
                stands: EVERY,
            }),
        }
        if is_dead.trim() == "1" {
            if !shown.contains(REPORT) {
                return Err(format!("the demo ended without its report:\n{shown}"));
            }
            break;
        }
        if began.elapsed() > WITHIN {
            return Err(format!("the demo did not end within {WITHIN:?}:\n{shown}"));
        }
    }
    if let Some(last) = frames.last_mut() {
        last.stands = LAST;
    }
    Ok(frames)
}

/// A tmux server with one pane, which ends with it.
struct Terminal {
    dir: PathBuf,
}

impl Terminal {
    fn start(binary: &Path) -> Result<Self, String> {
        let dir = std::env::temp_dir().join(format!("tollgate-cast-{}", std::process::id()));
        std::fs::create_dir(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
        let terminal = Self { dir };
        let conf = "set -g status off\nset -g remain-on-exit on\nset -g remain-on-exit-format ''\n";
        std::fs::write(terminal.dir.join("conf"), conf).map_err(|cause| cause.to_string())?;
        let [x, y] = [COLUMNS, ROWS].map(|n| n.to_string());
        let script = format!("{} {DEMO}", binary.display());
        terminal.ask(&["new-session", "-d", "-x", &x, "-y", &y, &script])?;
        Ok(terminal)
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("tmux");
        command
            .env_remove("TMUX")
            .env_remove("NO_COLOR")
            .env("LC_ALL", "C.UTF-8");
        command.arg("-S").arg(self.dir.join("socket"));
        command.arg("-f").arg(self.dir.join("conf"));
        let ended = command.args(words).output();
        let ended = ended.map_err(|cause| format!("tmux: {cause}; install the package tmux"))?;
        if !ended.status.success() {
            let complained = String::from_utf8_lossy(&ended.stderr);
            return Err(format!("tmux {words:?}: {complained}"));
        }
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.ask(&["kill-server"]));
        drop(std::fs::remove_dir_all(&self.dir));
    }
}
