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

/// What stands in a file whose clock is virtual.
const VIRTUAL: &[&str] = &["start_paused", "time::pause()"];

const IGNORED: &str = concat!("#[ig", "nore");
const IGNORED_RIGHTLY: &str = concat!("#[ig", "nore = \"timing\"]");

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let mut unneeded: Vec<_> = EXCEPTIONS.iter().map(|(path, _)| *path).collect();
    let mut faults = Vec::new();
    for file in tree.rust() {
        faults.extend(ignored(file));
        let found = clocks(file);
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

/// Lines of tests that read a clock.
fn clocks(file: &File) -> Vec<Fault> {
    if file.path.split('/').any(|part| part.starts_with(TIMING)) {
        return Vec::new();
    }
    let is_virtual = VIRTUAL.iter().any(|mark| file.text.contains(mark));
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
        let found = CLOCKS.iter().find(|clock| code.contains(*clock));
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
        clocks(&file(path, text)).len()
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
