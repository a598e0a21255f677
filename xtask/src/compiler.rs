//! The compiler of the lanes: cargo calls it for each crate of the workspace, as it would call rustc.
//!
//! The lanes build everything once, with the profile `tests`, which is `release` for all that the gate is made of: what the
//! end-to-end tests run is what is shipped. Of that, only what no user runs is changed here: test binaries, examples and
//! benchmarks are linted, are not optimised, and check their arithmetic.
//! Invariant: a library or a program is compiled by rustc, by the flags that cargo gave.
//! Not here: which profile, and the setting that has cargo call this (`binaries`).

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Compiles as rustc does, and lints.
const LINTING: &str = "clippy-driver";

/// What is changed of test binaries. The last of several flags is the one that counts.
const UNOPTIMISED: [&str; 5] = [
    "-Copt-level=0",
    "-Ccodegen-units=16",
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
    "-Cstrip=debuginfo",
];

/// Runs as the compiler, where cargo calls us so: `xtask <path of rustc> <flags>`.
pub(crate) fn run_as_compiler(words: &[OsString]) -> Option<ExitCode> {
    let (rustc, flags) = words.split_first()?;
    let is_called = Path::new(rustc).file_name() == Some(OsStr::new("rustc"));
    if !is_called {
        return None;
    }
    let mut compiler = command(rustc, flags);
    // Gives back only what went wrong.
    let cause = compiler.exec();
    eprintln!("error: {compiler:?} did not start: {cause}");
    Some(ExitCode::FAILURE)
}

fn command(rustc: &OsStr, flags: &[OsString]) -> Command {
    if !is_for_tests(flags) {
        let mut compiler = Command::new(rustc);
        compiler.args(flags);
        return compiler;
    }
    let mut compiler = Command::new(LINTING);
    compiler.arg(rustc).args(flags).args(UNOPTIMISED);
    compiler
}

/// Whether a test binary is made, an example or a benchmark.
fn is_for_tests(flags: &[OsString]) -> bool {
    let is_beside_tests = |flag: &OsString| {
        let path = Path::new(flag);
        let mut dirs = path.components().map(|part| part.as_os_str());
        path.extension() == Some(OsStr::new("rs"))
            && dirs.any(|dir| dir == "examples" || dir == "benches")
    };
    flags
        .iter()
        .any(|flag| flag == "--test" || is_beside_tests(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(flags: &str) -> String {
        let flags: Vec<OsString> = flags.split(' ').map(OsString::from).collect();
        let command = command(OsStr::new("/bin/rustc"), &flags);
        let words = [command.get_program()]
            .into_iter()
            .chain(command.get_args());
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        words.join(" ")
    }

    #[test]
    fn libraries_and_programs_are_rustcs_with_cargos_flags() {
        for flags in [
            "--crate-name policy crates/policy/src/lib.rs -C opt-level=3",
            "--crate-name tollgate crates/tollgate/src/bin/tollgate.rs --crate-type bin",
            "-vV",
        ] {
            assert_eq!(called(flags), format!("/bin/rustc {flags}"));
        }
    }

    #[test]
    fn tests_examples_and_benchmarks_are_linted_and_not_optimised() {
        for flags in [
            "--crate-name policy crates/policy/src/lib.rs -C opt-level=3 --test",
            "--crate-name count crates/tokens/examples/count.rs -C opt-level=3",
            "--crate-name speed crates/tokens/examples/speed/main.rs",
            "--crate-name http1 crates/wire/benches/http1.rs",
        ] {
            let called = called(flags);
            assert!(called.starts_with(&format!("clippy-driver /bin/rustc {flags} ")));
            assert!(called.contains(" -Copt-level=0 "), "{called}");
            assert!(called.contains(" -Coverflow-checks=on"), "{called}");
        }
    }

    #[test]
    fn a_verb_is_no_compiler() {
        for words in [&["tidy"][..], &["cast", "target/rustc-1"], &[]] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert!(run_as_compiler(&words).is_none());
        }
    }
}
