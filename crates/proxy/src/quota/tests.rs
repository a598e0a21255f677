//! Groups as kernels write them.

use super::*;

#[test]
fn workers_follow_the_quota_and_not_the_host() {
    assert_eq!(workers(64, Some(8.0)), 8);
    assert_eq!(workers(64, None), 64);
    assert_eq!(workers(2, Some(8.0)), 2);
}

#[test]
fn a_small_quota_still_gets_one_worker() {
    assert_eq!(workers(64, Some(0.25)), 1);
    assert_eq!(workers(64, Some(1.4)), 1);
    assert_eq!(workers(64, Some(1.5)), 2);
}

#[test]
fn cpu_max_is_read_in_both_forms() {
    assert_eq!(parse("max 100000\n"), None);
    assert_eq!(parse("50000 100000\n"), Some(0.5));
    assert_eq!(parse(""), None);
}

#[test]
fn the_tightest_ancestor_counts() {
    let dir = std::env::temp_dir().join(format!("quota-{}", std::process::id()));
    fs::create_dir_all(dir.join("a/b")).expect("make");
    fs::write(dir.join("a/cpu.max"), "100000 100000").expect("write");
    fs::write(dir.join("a/b/cpu.max"), "max 100000").expect("write");
    assert_eq!(tightest(&dir, Path::new("a/b"), quota_v2), Some(1.0));
    fs::write(dir.join("a/b/cpu.cfs_quota_us"), "250000\n").expect("write");
    fs::write(dir.join("a/b/cpu.cfs_period_us"), "100000\n").expect("write");
    fs::write(dir.join("a/cpu.cfs_quota_us"), "-1\n").expect("write");
    fs::write(dir.join("a/cpu.cfs_period_us"), "100000\n").expect("write");
    assert_eq!(tightest(&dir, Path::new("a/b"), quota_v1), Some(2.5));
    fs::remove_dir_all(&dir).expect("clean");
}

#[test]
fn a_group_is_found_in_either_version() {
    let text = "4:memory:/m\n3:cpu,cpuacct:/one/two\n2:cpuset:/\n0::/unified/x\n";
    assert_eq!(cgroup_in(text, "cpu"), Path::new("one/two"));
    assert_eq!(cgroup_in(text, ""), Path::new("unified/x"));
    assert_eq!(cgroup_in("0::/\n", "cpu"), Path::new(""));
}

#[test]
fn throttling_is_read_in_either_version() {
    let v2 = "usage_usec 9\nnr_periods 3\nnr_throttled 2\nthrottled_usec 40\n";
    let v1 = "nr_periods 3\nnr_throttled 2\nthrottled_time 40999\n";
    assert_eq!(throttling(v2), Some((2, 40)));
    assert_eq!(throttling(v1), Some((2, 40)));
    assert_eq!(throttling("usage_usec 9\n"), None);
}

#[test]
fn allowed_cpus_are_counted() {
    assert_eq!(allowed("Name:\tx\nCpus_allowed_list:\t0-3,8\n"), Some(5));
    assert_eq!(allowed("Cpus_allowed_list:\t2\n"), Some(1));
    assert_eq!(allowed("Cpus_allowed_list:\t3-1\n"), None);
    assert_eq!(allowed(""), None);
}
