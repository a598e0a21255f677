//! How a test says that it was skipped.
//!
//! libtest knows no skip at run time: a test that returns early counts as passed. Such a test calls
//! [`skip`] first. The line goes to standard error, and to the file that `TOLLGATE_SKIPPED` names:
//! `cargo xtask` sets it, counts the lines as skipped and prints them at the end of the run.
//! Not here: tests that must not be skipped. They fail and say what to install.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;

/// Says that the calling test cannot run here, and what it lacks. The caller then returns.
///
/// # Panics
///
/// Where the file of `TOLLGATE_SKIPPED` cannot be written.
#[track_caller]
pub fn skip(why: &str) {
    let thread = std::thread::current();
    // With one thread, libtest runs a test on the main one.
    let test = thread.name().filter(|name| *name != "main").map_or_else(
        || {
            format!(
                "{}:{}",
                Location::caller().file(),
                Location::caller().line()
            )
        },
        str::to_owned,
    );
    let line = format!("skipped: {test}: {why}\n");
    // Past the harness, which keeps what a passing test prints with `println!` to itself.
    drop(std::io::stderr().write_all(line.as_bytes()));
    if let Some(file) = std::env::var_os("TOLLGATE_SKIPPED") {
        let opened = OpenOptions::new().append(true).create(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|cause| panic!("{}: {cause}", file.display()));
    }
}
