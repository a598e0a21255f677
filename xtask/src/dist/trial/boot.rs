//! Tries the service where systemd is the first process: a minimal Debian is booted as a container, and the package's life is
//! acted out in it, by its scripts and in its sandbox.
//!
//! Not here: an upstream. What is called answers 502, and leaves its row all the same.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Untried, holds, is_there};
use crate::dist::{Release, copy, succeed, write};
use crate::parts::DIST_DEBIAN;

/// What is acted out; `held` is its last word.
const SCRIPT: &str = r#"#!/bin/bash
trap 'systemctl --no-block poweroff' EXIT
set -eux
state() { systemctl is-active tollgate || true; }
main() { systemctl show -P MainPID tollgate; }
listens() { for _ in $(seq 200); do (: < /dev/tcp/127.0.0.1/1975) 2> /dev/null && return; sleep 0.1; done; false; }
call() {
    exec 3<> /dev/tcp/127.0.0.1/1975
    printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-workload-app: nobody\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 63\r\n\r\n{"model":"m","messages":[{"role":"user","content":"Good day"}]}' >&3
    head -1 <&3 | grep ' 502 '
    exec 3>&-
}
dpkg -i /opt/older.deb
[ "$(state)" = inactive ]
systemctl enable --now tollgate
listens; call
first=$(main); systemctl reload tollgate; sleep 1
[ "$(main)" = "$first" ]
dpkg -i --force-confold /opt/newer.deb
for _ in $(seq 200); do [ "$(main)" != "$first" ] && [ "$(state)" = active ] && break; sleep 0.1; done
[ "$(main)" != "$first" ]; listens; call
# Whatever it is told while it starts, it serves in the end.
for _ in 1 2; do systemctl restart tollgate; systemctl kill -s HUP tollgate; sleep 2; [ "$(state)" = active ]; done
listens; call
dpkg -r tollgate
[ "$(state)" = inactive ]
[ -f /etc/tollgate/tollgate.yaml ]
[ ! -e /usr/bin/tollgate ]
dpkg -P tollgate
[ ! -e /etc/tollgate ]
ls -l /var/lib/tollgate/usage.db
echo held
"#;

const UNIT: &str = "\
[Unit]
After=multi-user.target

[Service]
Type=oneshot
ExecStart=/opt/trial
StandardOutput=append:/opt/said
StandardError=append:/opt/said
";

/// From one package to the other.
pub(super) fn run(
    release: &Release,
    older: &Path,
    newer: &Path,
    untried: &mut Untried,
) -> Result<(), String> {
    if !is_there("systemd-nspawn") {
        untried.lacks("unit, booted", "systemd-nspawn", "systemd-container");
        return Ok(());
    }
    let root = release.stage.join("booted");
    drop(fs::remove_dir_all(&root));
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args([
        "--quiet",
        "--variant=apt",
        "--include=passwd,systemd,systemd-sysv,dbus",
        DIST_DEBIAN,
    ]);
    succeed(mmdebstrap.arg(&root))?;
    copy(older, &root.join("opt/older.deb"))?;
    copy(newer, &root.join("opt/newer.deb"))?;
    write(&root.join("opt/trial"), SCRIPT)?;
    succeed(Command::new("chmod").arg("755").arg(root.join("opt/trial")))?;
    let units = root.join("etc/systemd/system");
    write(&units.join("trial.service"), UNIT)?;
    write(
        &units.join("multi-user.target.d/trial.conf"),
        "[Unit]\nWants=trial.service\n",
    )?;
    let mut nspawn = Command::new("timeout");
    nspawn
        .args([
            "300",
            "systemd-nspawn",
            "--quiet",
            "--register=no",
            "--keep-unit",
        ])
        .args(["--private-network", "--boot", "--directory"])
        .arg(&root)
        .stdin(Stdio::null());
    let booted = nspawn
        .output()
        .map_err(|cause| format!("{nspawn:?}: {cause}"))?;
    let Ok(said) = fs::read_to_string(root.join("opt/said")) else {
        // Not every machine lets one boot another in it.
        let says = String::from_utf8_lossy(&booted.stderr);
        untried.refused(
            "unit, booted by systemd-nspawn",
            says.lines().last().unwrap_or("it says nothing"),
        );
        return Ok(());
    };
    let holds_all = said.lines().rev().any(|line| line == "held");
    holds(
        holds_all,
        &format!("the service lives as it should:\n{said}"),
    )?;
    println!(
        "unit: booted: started, told to reload while it starts, upgraded, removed and purged; the ledger is there"
    );
    Ok(())
}
