//! Hierarchies, statistics and refusals by example.

use std::path::{Path, PathBuf};

use super::{Cgroup, Throttling, parents};

#[test]
fn a_group_is_looked_for_in_our_own_and_in_the_root_of_each_hierarchy_with_cpu() {
    let mounts = "proc /proc proc rw 0 0\n\
        cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n\
        cgroup /cg/memory cgroup rw,memory 0 0\n\
        cgroup /cg/cpu cgroup rw,cpu,cpuacct 0 0\n";
    let own = "3:memory:/else\n1:cpu,cpuacct:/\n0::/user.slice/x.scope\n";
    let expected = [
        "/sys/fs/cgroup/user.slice/x.scope",
        "/sys/fs/cgroup",
        "/cg/cpu",
    ];
    assert_eq!(parents(own, mounts), expected.map(PathBuf::from));
    assert!(parents(own, "proc /proc proc rw 0 0\n").is_empty());
}

#[test]
fn both_versions_of_the_statistics_are_read() {
    let v2 = "usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 4000\n";
    let v1 = "nr_periods 10\nnr_throttled 3\nthrottled_time 4000000\n";
    let expected = Throttling {
        periods: 10,
        throttled: 3,
        throttled_us: 4_000,
    };
    assert_eq!(
        (Throttling::parse(v2), Throttling::parse(v1)),
        (expected, expected)
    );
    let later = Throttling {
        periods: 15,
        ..expected
    };
    assert_eq!(later.since(&expected).periods, 5);
    assert_eq!(later.since(&expected).throttled, 0);
}

#[test]
fn where_no_group_may_be_made_it_says_so() {
    let says = Cgroup::make(Some(Path::new("/proc/self")), 0.5).expect_err("no group there");
    assert!(
        says.starts_with("no permission for cgroups: /proc/self: "),
        "{says}"
    );
}

#[test]
fn a_directory_without_a_cpu_controller_is_no_group_and_is_left_clean() {
    let dir = tempfile::tempdir().expect("a directory");
    let says = Cgroup::make(Some(dir.path()), 0.5).expect_err("an ordinary directory");
    assert!(says.contains("the cpu controller is not on"), "{says}");
    assert_eq!(
        std::fs::read_dir(dir.path()).expect("a directory").count(),
        0
    );
}
