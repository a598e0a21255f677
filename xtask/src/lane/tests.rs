//! What a lane counts, with small commands in place of cargo.

use std::process::Command;

use super::Lane;
use crate::tally::Tally;

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
    assert_eq!(lane.step("made", || Ok(5)), Some(5));
    assert_eq!(lane.step("not made", || Err::<u8, _>("why".into())), None);
    lane.cannot_run("end to end", "setup failed");
    assert_eq!(
        lane.total,
        Tally {
            passed: 12,
            failed: 5,
            skipped: 4
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
