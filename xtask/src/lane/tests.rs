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
fn every_stage_runs_and_is_counted_although_the_first_failed() {
    let mut lane = Lane::new();
    assert!(!lane.gate("formatting", shell("exit 1")));
    assert!(lane.gate("clippy", shell("exit 0")));
    lane.tests(
        "unit",
        1,
        shell("echo 'test result: ok. 7 passed; 0 failed; 2 ignored; 0 measured'"),
    );
    lane.tests("crashed", 1, shell("echo 'running 3 tests'; kill -ABRT $$"));
    lane.tests("missing", 1, Command::new("there-is-no-such-program"));
    assert_eq!(lane.step("made", || Ok(5)), Some(5));
    assert_eq!(lane.step("not made", || Err::<u8, _>("why".into())), None);
    lane.cannot_run("end to end", "setup failed");
    assert_eq!(
        lane.total,
        Tally {
            passed: 9,
            failed: 5,
            skipped: 2
        }
    );
    assert_eq!(
        lane.failed_stages,
        ["formatting", "crashed", "missing", "not made", "end to end"]
    );
}
