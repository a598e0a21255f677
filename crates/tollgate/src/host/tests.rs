//! Each limit is said with its number and what to do; a host without limits is told nothing.

use std::path::PathBuf;

use super::disk::{Disk, Kind};
use super::{File, Host};

/// A machine that lacks nothing.
fn host() -> Host {
    Host {
        descriptors: 1 << 20,
        file_bytes: u64::MAX,
        room: 524_256,
        connections: None,
        workers: 4,
        is_chosen: false,
        has_quota: false,
        is_container: false,
        is_spread: Some(true),
        files: vec![
            file("ledger.path", true, 8 << 30, Kind::Disk),
            file("access_log", false, 8 << 30, Kind::Disk),
        ],
    }
}

fn file(setting: &'static str, is_kept: bool, free_bytes: u64, kind: Kind) -> File {
    File {
        setting,
        dir: PathBuf::from("/var/lib/tollgate"),
        has_bytes: 1 << 20,
        wants_bytes: 1 << 30,
        is_kept,
        disk: Disk { free_bytes, kind },
    }
}

/// The only remark.
fn remark(host: &Host) -> String {
    let mut remarks = host.remarks();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    remarks.remove(0)
}

#[test]
fn a_host_without_limits_is_told_nothing() {
    assert_eq!(host().remarks(), Vec::<String>::new());
    let container = Host {
        is_container: true,
        ..host()
    };
    assert_eq!(container.remarks(), Vec::<String>::new());
}

#[test]
fn a_file_that_may_not_become_as_large_as_it_wants_is_named() {
    let wanted = (1 << 30) + (1 << 20);
    for (file_bytes, is_said) in [(wanted - 1, true), (wanted, false)] {
        let limited = Host {
            file_bytes,
            files: vec![file("ledger.path", true, 8 << 30, Kind::Disk)],
            ..host()
        };
        assert_eq!(limited.remarks().len(), usize::from(is_said));
    }
    let limited = Host {
        file_bytes: 64 << 20,
        ..host()
    };
    let remarks = limited.remarks();
    assert_eq!(remarks.len(), 2);
    let said = "no file may grow beyond 65536 KiB, and ledger.path may want 1049600 KiB: ";
    assert!(remarks[0].starts_with(said), "{remarks:?}");
    assert!(remarks[1].contains("access_log may want"), "{remarks:?}");
}

#[test]
fn few_descriptors_are_said_with_the_connections_that_they_carry() {
    let few = Host {
        descriptors: 1024,
        room: 480,
        ..host()
    };
    let said = remark(&few);
    assert!(said.starts_with("1024 files may be open, so clients may have 480 connections: "));
    assert!(said.contains("LimitNOFILE="), "{said}");
    let fewer_than_said = Host {
        descriptors: 20_000,
        room: 9_968,
        connections: Some(10_000),
        ..host()
    };
    let said = remark(&fewer_than_said);
    assert!(
        said.contains("9968 connections, not 10000 as `bounds.connections`"),
        "{said}"
    );
    let as_said = Host {
        connections: Some(9_968),
        ..fewer_than_said
    };
    assert_eq!(as_said.remarks(), Vec::<String>::new());
}

#[test]
fn connections_that_one_worker_gets_are_said() {
    let heaped = Host {
        is_spread: Some(false),
        ..host()
    };
    let said = remark(&heaped);
    assert!(
        said.contains("one of 4 workers") && said.contains("`workers: 1`"),
        "{said}"
    );
    let untried = Host {
        is_spread: None,
        ..host()
    };
    assert_eq!(untried.remarks(), Vec::<String>::new());
}

#[test]
fn a_container_without_a_quota_on_a_large_machine_is_said_unless_workers_were_chosen() {
    let large = Host {
        is_container: true,
        workers: 64,
        ..host()
    };
    let said = remark(&large);
    assert!(
        said.starts_with("64 workers, one for each CPU of the host"),
        "{said}"
    );
    let others = [
        Host {
            is_chosen: true,
            ..large.clone()
        },
        Host {
            has_quota: true,
            ..large.clone()
        },
        Host {
            is_container: false,
            ..large.clone()
        },
        Host {
            workers: 8,
            ..large.clone()
        },
    ];
    for other in others {
        assert_eq!(other.remarks(), Vec::<String>::new(), "{other:?}");
    }
}

#[test]
fn a_small_disk_is_said_with_what_is_left() {
    let mut small = host();
    small.files = vec![file("ledger.path", true, 300 << 20, Kind::Disk)];
    let said = remark(&small);
    assert!(
        said.starts_with("ledger.path has 300 MiB left in /var/lib/tollgate and may want 1024: "),
        "{said}"
    );
    assert!(said.contains("`ledger.size`"), "{said}");
    small.files = vec![file("access_log", false, 300 << 20, Kind::Disk)];
    let said = remark(&small);
    assert!(said.contains("rotate it"), "{said}");
}

#[test]
fn a_ledger_that_will_be_gone_is_said() {
    let mut lost = host();
    lost.files = vec![
        file("ledger.path", true, 8 << 30, Kind::Memory),
        file("access_log", false, 8 << 30, Kind::Memory),
    ];
    let said = remark(&lost);
    assert!(
        said.contains("in memory") && said.contains("put it on a volume"),
        "{said}"
    );
    lost.files = vec![file("ledger.path", true, 8 << 30, Kind::Layer)];
    assert_eq!(lost.remarks(), Vec::<String>::new(), "not in a container");
    lost.is_container = true;
    let said = remark(&lost);
    assert!(said.contains("gone with the container"), "{said}");
}
