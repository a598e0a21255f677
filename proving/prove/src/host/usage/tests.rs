//! `/proc` by example, and this very process.

use std::time::{Duration, Instant};

use super::{Usage, cpu_ns, field, parse_stat, read_stat, usage};

const STAT: &str = "42 (a (b) c) S 7 9 9 0 -1 4194560 100 0 0 0 11 22 3 4 20 0 1 0 987 1000 50 18446744073709551615";

#[test]
fn a_name_may_hold_brackets_and_blanks() {
    let process = parse_stat(42, STAT).expect("a process");
    assert_eq!(
        (process.name.as_str(), process.parent, process.group),
        ("a (b) c", 7, 9)
    );
    assert_eq!((process.ticks, process.started), (40, 987));
}

#[test]
fn voluntary_switches_are_not_found_in_the_line_of_involuntary_ones() {
    let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
    assert_eq!(field(status, "voluntary_ctxt_switches:"), 12);
    assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), 3);
}

#[test]
fn run_time_counts_unless_ticks_are_more_than_their_error_ahead() {
    let before = Usage {
        threads: 1,
        ..Usage::default()
    };
    let near = Usage {
        run_ns: 1_000_000_000,
        ticks_ns: 1_010_000_000,
        ..before
    };
    assert_eq!(cpu_ns(&before, &near), (1_000_000_000, true));
    let lost = Usage {
        run_ns: 400_000_000,
        ticks_ns: 1_010_000_000,
        ..before
    };
    assert_eq!(cpu_ns(&before, &lost), (1_010_000_000, false));
}

#[test]
fn the_scheduler_and_the_ticks_agree_on_a_busy_thread() {
    let own = [read_stat(std::process::id().cast_signed()).expect("this process")];
    let before = usage(&own);
    let began = Instant::now();
    let cpu = load::thread_cpu();
    while load::thread_cpu() - cpu < Duration::from_millis(300) {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "no CPU time to be had"
        );
    }
    let after = usage(&own);
    let (spent, exact) = cpu_ns(&before, &after);
    assert!(
        exact && spent >= 290_000_000,
        "{spent} {before:?} {after:?}"
    );
    assert!(
        after.ticks_ns - before.ticks_ns >= 250_000_000,
        "{before:?} {after:?}"
    );
    assert!(after.rss_bytes > 1024 * 1024);
}
