//! Rotated secrets and missing secrets.

use std::time::Duration;

use super::{call, version};
use crate::harness::streams::{self, Streams};
use crate::harness::{Gate, write_private};

fn config(upstream: &Streams) -> String {
    format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {{ file: key }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    )
}

fn last(upstream: &Streams) -> String {
    upstream.credentials().last().cloned().unwrap_or_default()
}

/// Replaces the secret, and waits until it is in use.
fn rotate(gate: &Gate, upstream: &Streams, n: usize) {
    gate.replace("key", format!("rotated-{n}\n").as_bytes());
    testing::eventually("the new secret is in use", || {
        assert_eq!(call(gate, "w").status, 200);
        last(upstream) == format!("Bearer rotated-{n}")
    });
}

#[test]
#[ignore = "timing"]
fn timing_a_rotated_secret_is_used_within_a_second() {
    let upstream = Streams::start(Duration::from_millis(50));
    let gate = Gate::start(&config(&upstream), &[("key", b"first")]);
    for n in 0..5 {
        let began = testing::Began::now();
        rotate(&gate, &upstream, n);
        println!("rotation to use: {}", began.shown());
        assert!(!began.is_over(Duration::from_secs(1)));
    }
}

#[test]
fn a_rotated_secret_is_used_and_no_stream_is_cut() {
    let upstream = Streams::start(Duration::from_millis(50));
    let gate = Gate::start(&config(&upstream), &[("key", b"first")]);
    let clients = streams::open(gate.data, None, 0..10);
    testing::eventually("all streams are open", || {
        gate.metric("tollgate_open_streams", &[]) == 10.0
    });
    for n in 0..5 {
        rotate(&gate, &upstream, n);
    }
    upstream.finish();
    for stream in clients.join().expect("the clients run to their end") {
        stream.assert_identical(&upstream.sent(stream.n));
    }
}

#[test]
fn an_empty_or_missing_secret_is_refused_and_the_old_one_stays_in_use() {
    let upstream = Streams::start(Duration::from_millis(50));
    let gate = Gate::start(&config(&upstream), &[("key", b"first-secret")]);
    let good = || gate.metric("tollgate_config_last_reload_success", &[]) == 1.0;
    let before = version(&gate);
    assert!(good());

    gate.replace("key", b"\n");
    testing::eventually("an empty secret is refused", || !good());
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(last(&upstream), "Bearer first-secret");

    gate.replace("key", b"second-secret\n");
    testing::eventually("the repaired secret is taken", good);
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(last(&upstream), "Bearer second-secret");

    std::fs::remove_file(gate.path("key")).expect("it was there");
    testing::eventually("a missing secret is refused", || !good());
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(last(&upstream), "Bearer second-secret");
    assert!(
        gate.log().contains("backends.up.credential.file"),
        "{}",
        gate.log()
    );

    gate.replace("key", b"third-secret\n");
    testing::eventually("the secret that came back is taken", good);
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(last(&upstream), "Bearer third-secret");
    assert_ne!(version(&gate), before, "a rotation moves the count");
    assert!(!gate.log().contains("-secret"), "a secret is in the log");
}

#[test]
fn a_secret_behind_a_swapped_symlink_is_reloaded() {
    // Kubernetes mounts a secret as a symlink through a directory that it swaps.
    let upstream = Streams::start(Duration::from_millis(50));
    let files: [(&str, &[u8]); 2] = [("one/key", b"first"), ("two/key", b"other")];
    let dir = tempfile::tempdir().expect("a directory");
    for (name, content) in files {
        std::fs::create_dir_all(dir.path().join(name).parent().expect("a parent")).expect("made");
        write_private(&dir.path().join(name), content);
    }
    std::os::unix::fs::symlink("one", dir.path().join("..data")).expect("a link");
    std::os::unix::fs::symlink("..data/key", dir.path().join("key")).expect("a link");
    let file = dir.path().join("key");
    let config = config(&upstream).replace("file: key", &format!("file: {}", file.display()));
    let gate = Gate::start(&config, &[]);
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(last(&upstream), "Bearer first");
    std::os::unix::fs::symlink("two", dir.path().join("..next")).expect("a link");
    std::fs::rename(dir.path().join("..next"), dir.path().join("..data")).expect("a rename");
    testing::eventually("the other secret is in use", || {
        assert_eq!(call(&gate, "w").status, 200);
        last(&upstream) == "Bearer other"
    });
}
