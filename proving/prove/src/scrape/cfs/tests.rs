//! Groups of both versions as files, and the one that this test runs in.

use std::fs;

use super::Cfs;

fn figure(cfs: &mut Cfs, metric: &str) -> Option<f64> {
    let values = cfs.read().expect("a group");
    let found = values.iter().find(|value| value.metric == metric);
    found.map(|value| value.value)
}

#[test]
fn version_two_is_read_with_its_quota() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write(
        "cpu.stat",
        "usage_usec 5\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1500000\n",
    );
    write("cpu.max", "50000 100000\n");
    let mut cfs = Cfs::at(dir.path()).expect("a group");
    assert_eq!(figure(&mut cfs, "periods_total"), Some(10.0));
    assert_eq!(figure(&mut cfs, "throttled_periods_total"), Some(4.0));
    assert_eq!(figure(&mut cfs, "throttled_seconds_total"), Some(1.5));
    assert_eq!(figure(&mut cfs, "quota_cores"), Some(0.5));
    write("cpu.max", "max 100000\n");
    assert_eq!(
        figure(&mut cfs, "quota_cores"),
        None,
        "no quota is no figure"
    );
    fs::remove_file(dir.path().join("cpu.stat")).expect("a file");
    assert_eq!(cfs.read(), None, "gone");
}

#[test]
fn version_one_counts_nanoseconds_and_the_quota_may_stand_above() {
    let dir = tempfile::tempdir().expect("a directory");
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).expect("a directory");
    for (group, quota, throttled) in [(dir.path(), "200000", 7), (inner.as_path(), "-1", 0)] {
        let write = |name: &str, text: &str| fs::write(group.join(name), text).expect("a file");
        write("cpu.cfs_quota_us", quota);
        write("cpu.cfs_period_us", "100000");
        let stat = format!("nr_periods 9\nnr_throttled {throttled}\nthrottled_time 2000000000\n");
        write("cpu.stat", &stat);
    }
    let mut cfs = Cfs::at(&inner).expect("a group");
    assert_eq!(cfs.dir(), dir.path());
    assert_eq!(figure(&mut cfs, "quota_cores"), Some(2.0));
    assert_eq!(figure(&mut cfs, "throttled_periods_total"), Some(7.0));
    assert_eq!(figure(&mut cfs, "throttled_seconds_total"), Some(2.0));
}

#[test]
fn what_is_no_group_is_refused_by_its_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let says = Cfs::at(dir.path()).expect_err("no group");
    assert!(says.contains(&dir.path().display().to_string()), "{says}");
    assert!(Cfs::of_process(u32::MAX).is_err());
}
