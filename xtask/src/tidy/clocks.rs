//! Tests read no clock and do not sleep: what they assert must hold on a machine that stands still for a second.
//!
//! They wait for events with `testing` (`eventually`, `Began`, …), in virtual time, or by counting work. What measures time is a test
//! called `timing_…` that is ignored, so that it runs in a lane of its own (`cargo xtask timing`). Functions and modules of that name
//! have clocks.
//! Invariant: an exception names a file and why it needs a clock, and one that is not needed is a fault.

use super::Fault;
use super::tree::{File, Tree};
use crate::binaries::TIMING;

/// Test files that may, and why.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "crates/tollgate/tests/e2e/harness/patience.rs",
    "It is where tests that are asynchronous wait with patience, as the others do by `testing`.",
)];

/// What sleeps, or compares a clock with what was to be by then; to give the present time to what is tested is neither. In two
/// halves, so that this file keeps its own rule.
const CLOCKS: &[&str] = &[
    concat!(".ela", "psed()"),
    concat!("Instant::", "now() <"),
    concat!("Instant::", "now() >"),
    concat!("Instant::", "now() -"),
    concat!("Instant::", "now().duration_since"),
    concat!("thread::", "sleep("),
    concat!("time::", "sleep("),
    concat!("time::", "timeout("),
];

/// The same by the names under which it is imported.
const IMPORTED: &[&str] = &[concat!("sle", "ep("), concat!("time", "out(")];

/// What stands in a file whose clock is virtual.
const VIRTUAL: &[&str] = &["start_paused", "time::pause()"];

const IGNORED: &str = concat!("#[ig", "nore");
const IGNORED_RIGHTLY: &str = concat!("#[ig", "nore = \"timing\"]");

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let mut unneeded: Vec<_> = EXCEPTIONS.iter().map(|(path, _)| *path).collect();
    let mut faults = Vec::new();
    for file in tree.rust() {
        faults.extend(ignored(file));
        let found = clocks(file, is_virtual(tree, file));
        let excepted = unneeded.iter().position(|path| *path == file.path);
        match excepted {
            Some(at) if !found.is_empty() => drop(unneeded.swap_remove(at)),
            Some(_) => {}
            None => faults.extend(found),
        }
    }
    let unneeded = unneeded.into_iter();
    faults.extend(unneeded.map(|path| Fault::new(path, "is an exception, and reads no clock")));
    faults
}

/// Whether the clock of a file's tests is virtual: it says so itself, or a module does that it is a part of.
fn is_virtual(tree: &Tree, file: &File) -> bool {
    let says = |file: &File| VIRTUAL.iter().any(|mark| file.text.contains(mark));
    let directories = std::iter::successors(file.path.rsplit_once('/'), |(directory, _)| {
        directory.rsplit_once('/')
    });
    let modules: Vec<String> = directories.map(|(of, _)| format!("{of}.rs")).collect();
    let is_of = |of: &&File| modules.contains(&of.path);
    says(file) || tree.rust().filter(is_of).any(says)
}

/// Lines of tests that read a clock.
fn clocks(file: &File, is_virtual: bool) -> Vec<Fault> {
    if file.path.split('/').any(|part| part.starts_with(TIMING)) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    let tests = lines.skip_while(|(_, line)| !is_test_file(&file.path) && *line != "mod tests {");
    let mut faults = Vec::new();
    let mut closes = None;
    for (at, line) in tests {
        if closes.is_none() {
            closes = timing_closes(line);
        }
        if let Some(end) = closes.take() {
            // rustfmt puts it below the first letter.
            closes = (line != end).then_some(end);
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        let imported = || IMPORTED.iter().find(|clock| calls(code, clock));
        let found = CLOCKS.iter().find(|clock| code.contains(*clock));
        let found = found.or_else(imported);
        let of_tokio = is_virtual && !code.contains("std::") && !code.contains("thread::");
        if let Some(clock) = found.filter(|_| !of_tokio) {
            let says = format!(
                "{clock} in a test: wait for an event with `testing`, count work, or use virtual time"
            );
            faults.push(Fault::new(format!("{}:{}", file.path, at + 1), says));
        }
    }
    faults
}

/// Whether a function of this name is called: by itself, and not as a method, by a path, or where it is declared.
fn calls(code: &str, name: &str) -> bool {
    let mut all = code.match_indices(name);
    all.any(|(at, _)| {
        let before = code.get(..at).unwrap_or_default();
        let is_part = before.ends_with(|c: char| c.is_alphanumeric() || "_.:".contains(c));
        !is_part && !before.ends_with("fn ")
    })
}

/// The line that ends what begins here, where that is a function or module of the lane for time.
fn timing_closes(line: &str) -> Option<String> {
    let code = line.trim_start();
    let begins = |item: &str| code.contains(&format!("{item} {TIMING}"));
    let indent = line.len() - code.len();
    let is_open = code.ends_with(['{', '(']);
    let is_timing = is_open && (begins("fn") || begins("mod"));
    is_timing.then(|| format!("{}}}", " ".repeat(indent)))
}

fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/');
    path.ends_with("/tests.rs") || parts.any(|dir| matches!(dir, "tests" | "sim"))
}

/// Tests that are ignored and are not those of the lane for time.
fn ignored(file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut lines = file.text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if !line.starts_with(IGNORED) {
            continue;
        }
        let mut next = lines.clone().map(|(_, line)| line.trim());
        let function = next.find(|line| line.contains("fn ")).unwrap_or_default();
        if line != IGNORED_RIGHTLY || !function.contains(&format!("fn {TIMING}")) {
            let says = format!("only tests called {TIMING}… are ignored, as {IGNORED_RIGHTLY}");
            faults.push(Fault::new(format!("{}:{}", file.path, at + 1), says));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn count(path: &str, text: &str) -> usize {
        let file = file(path, text);
        let is_virtual = VIRTUAL.iter().any(|mark| text.contains(mark));
        clocks(&file, is_virtual).len()
    }

    #[test]
    fn canary_a_clock_in_a_test_is_found_and_one_of_the_product_is_not() {
        let text = format!("fn f() {{ let t = began{}; }}\n", CLOCKS[0]);
        assert_eq!(count("crates/a/src/b/tests.rs", &text), 1);
        assert_eq!(count("crates/a/tests/e2e/b.rs", &text), 1);
        assert_eq!(count("crates/a/src/sim/b.rs", &text), 1);
        assert_eq!(count("crates/a/src/b.rs", &text), 0);
        assert_eq!(
            count(
                "crates/a/src/b.rs",
                &format!("{text}mod tests {{\n{text}}}")
            ),
            1
        );
        assert_eq!(count("crates/a/src/tests.rs", &format!("// {text}")), 0);
    }

    #[test]
    fn canary_what_sleeps_is_found_by_the_name_that_it_is_imported_by() {
        let of = |line: &str| count("a/tests.rs", &line.replace('@', IMPORTED[0]));
        assert_eq!(of("    @PAUSE).await;\n"), 1);
        assert_eq!(of("let waits = !@PAUSE);\n"), 1);
        assert_eq!(of("worker.@PAUSE);\n"), 0);
        assert_eq!(of("fn @time: Duration) {\n"), 0);
        assert_eq!(of("over@PAUSE);\n"), 0);
        assert_eq!(
            of("#[tokio::test(start_paused = true)]\n@PAUSE).await;\n"),
            0
        );
    }

    #[test]
    fn canary_virtual_time_is_tokios_alone() {
        let paused = format!("#[tokio::test({} = true)]\n", VIRTUAL[0]);
        let tokio = format!("tokio::{}time).await;\n", CLOCKS[6]);
        let std = format!("std::{}time);\n", CLOCKS[5]);
        assert_eq!(count("a/tests.rs", &tokio), 1);
        assert_eq!(count("a/tests.rs", &format!("{paused}{tokio}")), 0);
        assert_eq!(count("a/tests.rs", &format!("{paused}{std}")), 1);
    }

    #[test]
    fn canary_what_is_called_timing_has_clocks_and_what_follows_it_has_none() {
        let clock = format!("began{};", CLOCKS[0]);
        for (item, count_of) in [
            ("fn timing_a()", 0),
            ("mod timing_b", 0),
            ("fn timings()", 1),
        ] {
            let text = format!("    {item} {{\n        {{\n        }}\n        {clock}\n    }}\n");
            assert_eq!(count("a/tests.rs", &text), count_of, "{item}");
            let more = format!("{text}    fn c() {{\n        {clock}\n    }}\n");
            assert_eq!(count("a/tests.rs", &more), count_of + 1, "{item}");
        }
        assert_eq!(count("a/tests.rs", &format!("mod timing_a;\n{clock}")), 1);
        assert_eq!(count("a/tests/timing_b.rs", &clock), 0);
        assert_eq!(count("a/tests/timing_c/d.rs", &clock), 0);
    }

    #[test]
    fn canary_a_test_that_is_ignored_for_another_reason_is_found() {
        let of = |attribute: &str, name: &str| {
            let text = format!("#[test]\n{attribute}\nfn {name}() {{}}\n");
            ignored(&file("a/tests.rs", &text)).len()
        };
        assert_eq!(of(IGNORED_RIGHTLY, "timing_a"), 0);
        assert_eq!(of(IGNORED_RIGHTLY, "a"), 1);
        assert_eq!(of(&format!("{IGNORED}]"), "timing_a"), 1);
    }
}
