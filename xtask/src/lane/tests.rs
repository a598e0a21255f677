//! What a lane counts, with small commands in place of cargo.

use std::process::Command;

use super::{Lane, repeated, shown};
use crate::tally::{Failed, Tally};

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn every_stage_runs_and_is_counted_and_a_test_that_says_it_was_skipped_is_not_passed() {
    let mut lane = Lane::new();
    assert!(!lane.command("formatting", shell("exit 1")));
    assert!(lane.command("clippy", shell("exit 0")));
    lane.tests(
        "unit",
        1,
        shell("echo 'test result: ok. 7 passed; 0 failed; 2 ignored; 0 measured'"),
    );
    lane.tests(
        "with tests that need what is not here",
        1,
        shell(
            "echo 'skipped: b: no tool' >> $TOLLGATE_SKIPPED; echo 'skipped: a: no data' >> $TOLLGATE_SKIPPED; \
             echo 'test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured'",
        ),
    );
    lane.tests("crashed", 1, shell("echo 'running 3 tests'; kill -ABRT $$"));
    lane.tests("missing", 1, Command::new("there-is-no-such-program"));
    assert_eq!(lane.step("made", "make", || Ok(5)), Some(5));
    assert_eq!(
        lane.step("not made", "make", || Err::<u8, _>("why".into())),
        None
    );
    lane.cannot_run("end to end", "setup failed");
    assert_eq!(
        lane.total,
        Tally {
            passed: 12,
            failed: 5,
            skipped: 2
        }
    );
    assert_eq!(
        lane.skipped,
        ["skipped: a: no data", "skipped: b: no tool"],
        "each is named at the end of the run"
    );
    assert_eq!(
        lane.failed_stages,
        ["formatting", "crashed", "missing", "not made", "end to end"]
    );
}

#[test]
fn what_failed_is_repeated_by_one_command() {
    let failed = |test: &str, seed: Option<&str>| Failed {
        test: test.to_owned(),
        seed: seed.map(str::to_owned),
    };
    let again = "cargo xtask unit";
    assert_eq!(repeated(again, &[]), again);
    let one = [failed("a::b", None)];
    assert_eq!(repeated(again, &one), "cargo xtask unit a::b");
    let two = [failed("a::b", Some("TOLLGATE_SEED=5")), failed("c", None)];
    assert_eq!(
        repeated(again, &two),
        "TOLLGATE_SEED=5 cargo xtask unit a::b   # and 1 more failed: cargo xtask unit"
    );
    let mut command = Command::new("/there/cargo");
    command.args(["fmt", "--check"]);
    assert_eq!(shown(&command), "cargo fmt --check");
}
