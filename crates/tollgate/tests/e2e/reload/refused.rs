//! Configurations that a reload refuses, and what SIGHUP does.

use std::time::Duration;

use super::{call, one_route, reload, version};
use crate::harness::Gate;
use crate::harness::streams::Streams;

#[test]
fn an_invalid_configuration_is_refused_whole_and_every_fault_is_named() {
    let upstream = Streams::start(Duration::from_millis(50));
    let gate = Gate::start(&one_route(upstream.address), &[]);
    let before = gate.admin("/config").text();
    let faulty = format!(
        "backends: {{ up: {{ uri: http://{0}/v1 }}, good: {{ url: http://{0}/v1 }} }}\n\
         routes:\n  - {{ workload: added, backend: good }}\n  \
         - {{ workload: w, backend: upp, limits: [ {{ requests: -2, per: 1 fortnight }} ] }}\n",
        upstream.address
    );
    gate.reconfigure(&faulty);
    let failed = || gate.metric("tollgate_config_last_reload_success", &[]) == 0.0;
    testing::eventually("the watcher refuses it", failed);
    for path in [
        "backends.up",
        "routes[1].backend",
        "routes[1].limits[0].requests",
        "routes[1].limits[0].per",
    ] {
        assert!(
            gate.log().contains(path),
            "no word of {path}:\n{}",
            gate.log()
        );
    }
    assert_eq!(gate.admin("/config").text(), before);
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(call(&gate, "added").status, 404, "nothing of it was taken");
    assert_eq!(
        gate.metric("tollgate_config_reloads_total", &["result=\"refused\""]),
        1.0
    );
    assert_eq!(
        gate.metric("tollgate_config_reloads_total", &["result=\"taken\""]),
        0.0
    );

    for unreadable in ["routes: [", "\u{0}", "- a\n- b\n", ""] {
        gate.reconfigure(unreadable);
        gate.signal(libc::SIGHUP);
    }
    std::fs::remove_file(gate.path("tollgate.yaml")).expect("it was there");
    gate.signal(libc::SIGHUP);
    testing::eventually("it is refused too", || {
        gate.metric("tollgate_config_reloads_total", &["result=\"refused\""]) >= 3.0
    });
    assert_eq!(call(&gate, "w").status, 200);
    assert!(failed());

    gate.reconfigure(&one_route(upstream.address));
    testing::eventually("the repaired file is taken", || !failed());
    assert_eq!(call(&gate, "w").status, 200);
}

#[test]
fn the_version_is_a_metric_and_sighup_reloads_an_unchanged_configuration() {
    let upstream = Streams::start(Duration::from_millis(50));
    let gate = Gate::start(&one_route(upstream.address), &[]);
    let shown = |gate: &Gate| {
        let label = format!("version=\"{}\"", version(gate));
        gate.metric("tollgate_config_info", &[&label])
    };
    assert_eq!(shown(&gate), 1.0);
    let first = version(&gate);
    let taken = || gate.metric("tollgate_config_reloads_total", &["result=\"taken\""]);
    gate.signal(libc::SIGHUP);
    testing::eventually("SIGHUP reloads", || taken() == 1.0);
    reload(
        &gate,
        &one_route(upstream.address).replace("workload: w", "workload: [w, v]"),
    );
    assert_ne!(version(&gate), first);
    assert_eq!(shown(&gate), 1.0);
    let label = format!("version=\"{first}\"");
    assert!(!gate.metrics().contains(&label), "the old version is gone");
    assert_eq!(call(&gate, "v").status, 200);
}

#[test]
fn sighup_reopens_the_access_log() {
    let upstream = Streams::start(Duration::from_millis(50));
    let gate = Gate::start(&one_route(upstream.address), &[]);
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(gate.records(1).len(), 1);
    std::fs::rename(gate.path("access.jsonl"), gate.path("access.old")).expect("a rename");
    gate.signal(libc::SIGHUP);
    testing::eventually("the log is there again", || {
        gate.path("access.jsonl").exists()
    });
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(gate.records(1).len(), 1, "the new file has the new line");
    let old = std::fs::read_to_string(gate.path("access.old")).expect("it was renamed");
    assert_eq!(old.lines().count(), 1, "the old file has the old line");
    assert_eq!(gate.metric("tollgate_access_log_dropped_total", &[]), 0.0);
}

#[test]
fn a_reload_warns_of_settings_that_need_a_restart() {
    let upstream = Streams::start(Duration::from_millis(50));
    let route = one_route(upstream.address);
    let ledger = "ledger: { path: usage.db }\n";
    let gate = Gate::start(&format!("{ledger}{route}"), &[]);
    // Without a signal: the watcher reloads once.
    let reload = |config: String| {
        let before = version(&gate);
        gate.reconfigure(&config);
        testing::eventually("it is taken", || version(&gate) != before);
    };
    let warning = |settings: &str| {
        reload(format!("{settings}{route}"));
        let log = gate.log();
        let said = log
            .lines()
            .rfind(|line| line.contains("take effect at the next start"));
        said.unwrap_or_else(|| panic!("no warning:\n{log}"))
            .to_owned()
    };
    let more = "workers: 3\ndrain: { grace: 7m, delay: 1s }\ncounting: { queue: 1MiB }\n";
    let said = warning(&format!(
        "{more}ledger: {{ path: usage.db, retention: 3d }}\n"
    ));
    let names = "workers, drain.delay, drain.grace, counting.queue, ledger.retention\"";
    assert!(said.contains(names), "{said}");
    let said = warning("");
    assert!(said.contains("settings=\"ledger\""), "{said}");
    // A setting that has the value of the start again is not named.
    let before = gate.log().matches("take effect at the next start").count();
    reload(format!("{ledger}{route}"));
    let after = gate.log().matches("take effect at the next start").count();
    assert_eq!(before, after);
}
