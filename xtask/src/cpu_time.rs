//! The processor time of the processes that this one started and that have ended.
//!
//! Not here: when the stages begin and end (`lane`).

use std::fs;

/// Clock ticks of `/proc` in a second: `USER_HZ`, 100 on every Linux that Rust supports.
const TICKS: f64 = 100.0;

/// Seconds so far, user and system together; none where there is no `/proc`.
pub(crate) fn of_children() -> Option<f64> {
    of_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Fields 16 and 17 of proc(5), counted behind the name, which may hold blanks and parentheses.
fn of_stat(stat: &str) -> Option<f64> {
    let (_, behind_the_name) = stat.rsplit_once(") ")?;
    let mut fields = behind_the_name.split(' ').skip(13);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_sixteenth_and_the_seventeenth_field_are_read_behind_any_name() {
        let stat = "7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 11 12 250 50 20 0";
        assert_eq!(of_stat(stat), Some(3.0));
        assert_eq!(of_stat("7 (a) R 1 2"), None);
    }

    #[test]
    fn a_process_that_ended_is_counted() {
        let before = of_children().expect("Linux");
        // However coarse the clock of such time is, it ticks at some time.
        testing::eventually("a process is counted", || {
            let count = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
            let ended = Command::new("sh").args(["-c", count]).status();
            assert!(ended.is_ok_and(|status| status.success()));
            of_children().expect("Linux") > before
        });
    }
}
