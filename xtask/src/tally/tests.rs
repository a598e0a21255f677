//! What counts as passed, failed and skipped.

use super::{Failed, Tally, failed};

fn read(lines: &[&str]) -> Tally {
    let mut tally = Tally::default();
    lines.iter().for_each(|line| tally.read_line(line));
    tally
}

#[test]
fn results_of_several_binaries_add_up() {
    let tally = read(&[
        "running 13 tests",
        "test a::b ... ok",
        "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out; finished in 1.2s",
    ]);
    assert_eq!(
        tally,
        Tally {
            passed: 15,
            failed: 2,
            skipped: 0
        }
    );
    assert_eq!(tally.to_string(), "15 passed, 2 failed, 0 skipped");
}

#[test]
fn a_test_that_prints_about_results_is_not_a_result() {
    assert_eq!(
        read(&["the test result: ok. 9 passed; 0 failed"]),
        Tally::default()
    );
    assert_eq!(read(&["test result: unknown"]), Tally::default());
}

#[test]
fn a_run_that_failed_without_naming_a_test_is_one_failure() {
    assert_eq!(read(&[]).ended(false, 0).failed, 1);
    let two = read(&["test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured"]);
    assert_eq!(two.ended(false, 0).failed, 2);
}

#[test]
fn a_run_of_no_tests_is_a_failure_where_some_are_expected() {
    assert_eq!(
        read(&["test result: ok. 0 passed; 0 failed; 0 ignored"])
            .ended(true, 1)
            .failed,
        1
    );
    assert_eq!(
        read(&["test result: ok. 1 passed; 0 failed; 0 ignored"])
            .ended(true, 1)
            .failed,
        0
    );
    assert_eq!(
        read(&["test result: ok. 0 passed; 0 failed; 0 ignored"])
            .ended(true, 0)
            .failed,
        0
    );
}

#[test]
fn a_failed_test_is_named_with_the_seed_that_it_printed() {
    let failures = "\nfailures:\n\n---- a::b stdout ----\nsim: TOLLGATE_SEED=17\nTOLLGATE_SEED=18\npanicked\n\n\
                    ---- c stdout ----\npanicked\n\nfailures:\n    a::b\n    c\n";
    let test = |test: &str, seed: Option<&str>| Failed {
        test: test.to_owned(),
        seed: seed.map(str::to_owned),
    };
    let expected = [test("a::b", Some("TOLLGATE_SEED=17")), test("c", None)];
    assert_eq!(failed(failures), expected);
}
