//! `/proc` by example, and a busy process.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use testing::eventually;

use super::{Usage, cpu_ns, field, parse_stat, proportional, read_stat, run_ns_of, usage};

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
fn the_scheduler_and_the_ticks_agree_on_a_busy_process() {
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .expect("a shell");
    let pid = busy.id().cast_signed();
    let own = [read_stat(pid).expect("the shell")];
    let before = usage(&own);
    let mut after = before;
    eventually("the shell was given 300 ms of a core", || {
        after = usage(&own);
        after.run_ns - before.run_ns >= 300_000_000
    });
    let pss = proportional(&own).expect("a process of ours");
    busy.kill().expect("ours to end");
    busy.wait().expect("its end");
    let (spent, exact) = cpu_ns(&before, &after);
    assert!(exact && spent >= 300_000_000, "{before:?} {after:?}");
    assert!(
        after.ticks_ns - before.ticks_ns >= 250_000_000,
        "{before:?} {after:?}"
    );
    assert!(pss > 0 && pss <= after.rss_bytes && after.rss_bytes > 100_000);
}

#[test]
fn threads_are_told_apart_by_how_their_names_begin() {
    // The thread must live while it is read.
    static IS_READ: AtomicBool = AtomicBool::new(false);
    let busy = thread::Builder::new().name("worker-9".into());
    let busy = busy.spawn(|| {
        while !IS_READ.load(Ordering::Relaxed) {
            std::hint::spin_loop()
        }
    });
    let pid = std::process::id().cast_signed();
    let own = [read_stat(pid).expect("this process")];
    let mut of_it = 0;
    eventually("the thread was given 1 ms of a core", || {
        of_it = run_ns_of(&own, "worker-");
        of_it >= 1_000_000
    });
    let all = run_ns_of(&own, "");
    IS_READ.store(true, Ordering::Relaxed);
    busy.expect("a thread").join().expect("its end");
    assert!(of_it <= all, "{of_it} of {all}");
    assert_eq!(run_ns_of(&own, "nobody-"), 0);
}
