//! A gate under a CPU quota of a cgroup.
//!
//! Not here: how a quota is read (unit tests of `proxy::quota`).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::harness::{Connection, Gate, free_address};

/// A cgroup of the test, removed when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// A quota in hundredths of a CPU; `None` where this process may not create cgroups.
    fn new(name: &str, hundredths: u32) -> Option<Self> {
        let mount = Path::new("/sys/fs/cgroup");
        let is_v2 = mount.join("cgroup.controllers").exists();
        let name = format!("tollgate-{}-{name}", std::process::id());
        let dir = if is_v2 {
            mount.join(name)
        } else {
            mount.join("cpu").join(name)
        };
        std::fs::create_dir(&dir).ok()?;
        let group = Self(dir);
        let quota = hundredths * 1000;
        let written = if is_v2 {
            std::fs::write(group.0.join("cpu.max"), format!("{quota} 100000"))
        } else {
            std::fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string())
        };
        written.ok()?;
        Some(group)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Its last process may be a moment from its end.
        testing::eventually("the cgroup is empty", || {
            std::fs::remove_dir(&self.0).is_ok() || std::thread::panicking()
        });
    }
}

/// A child process that is killed when dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_worker_count_follows_the_cgroup_cpu_quota() {
    let cpus = std::thread::available_parallelism()
        .expect("it can be asked")
        .get();
    for (hundredths, by_quota) in [(50, 1), (100, 1), (140, 1), (160, 2), (300, 3)] {
        let Some(group) = Cgroup::new(&hundredths.to_string(), hundredths) else {
            testing::skip("this process may not make a cgroup with a CPU quota");
            return;
        };
        let dir = tempfile::tempdir().expect("a directory");
        let admin = free_address();
        let config = format!(
            "listen: {{ data: \"{}\", admin: \"{admin}\" }}\naccess_log: off\n\
             backends: {{ up: {{ url: http://127.0.0.1:9/v1 }} }}\n\
             routes: [ {{ workload: w, backend: up }} ]\n",
            free_address()
        );
        let file = dir.path().join("tollgate.yaml");
        std::fs::write(&file, config).expect("a file");
        let log = std::fs::File::create(dir.path().join("log")).expect("a file");
        // The shell joins the cgroup and then executes the gate.
        let child = Command::new("sh")
            .args([
                "-c",
                "echo $$ > \"$0/cgroup.procs\" && exec \"$1\" run -c \"$2\"",
            ])
            .args([&group.0, &Gate::binary(), &file])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a shell");
        let child = KillOnDrop(child);
        let read = || std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        testing::eventually("the gate is ready", || read().contains(" ready "));
        let workers = by_quota.min(cpus);
        let log = read();
        assert!(
            log.contains(&format!("workers={workers} cpus={cpus}")),
            "{hundredths}: {log}"
        );
        let quota = f64::from(hundredths) / 100.0;
        assert!(
            log.contains(&format!("quota=\"{quota:.2} cpus\"")),
            "{hundredths}: {log}"
        );
        let ask = b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
        let page = Connection::open(admin).call(ask).text();
        assert!(
            page.contains(&format!("\ntollgate_workers {workers}\n")),
            "{page}"
        );
        assert!(
            page.contains(&format!("\ntollgate_cpu_quota {quota}\n")),
            "{page}"
        );
        assert!(
            page.contains("\ntollgate_cpu_throttled_periods_total "),
            "{page}"
        );
        drop(child);
    }
}
