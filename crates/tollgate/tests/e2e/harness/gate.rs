//! A gate process of the real binary, in a directory of its own, ended when dropped.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use testing::{eventually, found};

use super::{Connection, Response, free_address};

/// A running gate.
pub(crate) struct Gate {
    pub(crate) dir: TempDir,
    pub(crate) data: SocketAddr,
    pub(crate) admin: SocketAddr,
    child: Child,
}

impl Gate {
    /// The binary under test: `TOLLGATE_BIN`, or the one built with this test.
    pub(crate) fn binary() -> PathBuf {
        std::env::var_os("TOLLGATE_BIN")
            .map_or_else(|| env!("CARGO_BIN_EXE_tollgate").into(), PathBuf::from)
    }

    /// Starts with this configuration. `listen` and `access_log` are put in front of it; the files
    /// are written into the directory first, so that it can refer to them by name.
    pub(crate) fn start(config: &str, files: &[(&str, &[u8])]) -> Self {
        Self::start_listening(any_host(), config, files)
    }

    /// Starts with `listen.tls` of `cert.pem` and `key.pem`, which must be among the files.
    pub(crate) fn start_tls(config: &str, files: &[(&str, &[u8])]) -> Self {
        let tls = ", tls: { certificate: cert.pem, key: key.pem }";
        Self::start_listening(&[tls, any_host()].concat(), config, files)
    }

    /// Starts with these further fields of `listen`, such as `, hosts: gate.internal`.
    pub(crate) fn start_listening(listen: &str, config: &str, files: &[(&str, &[u8])]) -> Self {
        let (data, admin) = (free_address(), free_address());
        Self::start_at(data, admin, listen, config, files, &[])
    }

    /// Starts on these addresses of the listeners, which its own configuration names.
    pub(crate) fn start_on(data: SocketAddr, admin: SocketAddr, config: &str) -> Self {
        Self::start_at(data, admin, any_host(), config, &[], &[])
    }

    /// Starts with files that nobody but their owner can read.
    pub(crate) fn start_with_private(config: &str, files: &[(&str, &[u8])]) -> Self {
        Self::start_with_private_listening(any_host(), config, files)
    }

    /// The same, with these further fields of `listen`.
    pub(crate) fn start_with_private_listening(
        listen: &str,
        config: &str,
        files: &[(&str, &[u8])],
    ) -> Self {
        let (data, admin) = (free_address(), free_address());
        let mut command = Command::new("sh");
        // The harness has written them when this runs.
        command
            .args([
                "-c",
                "cd \"$(dirname \"$3\")\" && chmod 600 *.jsonl && exec \"$0\" \"$@\"",
            ])
            .arg(Self::binary());
        Self::spawn(command, data, admin, listen, config, files, &[]).ready()
    }

    /// Starts with these environment variables besides its own.
    pub(crate) fn start_env(config: &str, files: &[(&str, &[u8])], env: &[(&str, &str)]) -> Self {
        let (data, admin) = (free_address(), free_address());
        Self::start_at(data, admin, any_host(), config, files, env)
    }

    /// Starts with this hard limit of descriptors.
    pub(crate) fn start_with_descriptors(descriptors: u32, config: &str) -> Self {
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nofile={descriptors}:{descriptors}"))
            .arg(Self::binary());
        Self::spawn_plain(command, config).ready()
    }

    /// Starts where the names of this file are those of `/etc/hosts`, which it is for this process alone.
    pub(crate) fn start_with_hosts(hosts: &Path, config: &str) -> Self {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-c"])
            .arg("mount --bind \"$0\" /etc/hosts && exec \"$@\"")
            .arg(hosts)
            .arg(Self::binary());
        Self::spawn_plain(command, config).ready()
    }

    /// Starts a gate whose writes past a file size limit fail instead of ending it; the limit comes
    /// later, from [`Gate::limit_files`].
    pub(crate) fn start_to_be_limited(config: &str) -> Self {
        let mut command = Command::new("env");
        command.arg(Self::binary());
        Self::spawn_plain(command, config).ready()
    }

    /// Starts with servers of tools in the form of editors, in a file `mcp.json` of its own.
    pub(crate) fn start_with_servers(config: &str, servers: &str) -> Self {
        let (data, admin) = (free_address(), free_address());
        let mut command = Command::new("sh");
        let run = "exec \"$0\" \"$@\" --mcp-config \"$(dirname \"$3\")/mcp.json\"";
        command.args(["-c", run]).arg(Self::binary());
        let files = [("mcp.json", servers.as_bytes())];
        Self::spawn(command, data, admin, any_host(), config, &files, &[]).ready()
    }

    /// Starts by a directory `objects` of its own, with these files and one that says its addresses.
    pub(crate) fn start_directory(files: &[(&str, &[u8])]) -> Self {
        let (data, admin) = (free_address(), free_address());
        let ours = format!(
            "listen: {{ data: \"{data}\", admin: \"{admin}\" }}\naccess_log: ../access.jsonl\n"
        );
        let mut all: Vec<(&str, &[u8])> = files.to_vec();
        all.push(("objects/gate.yaml", ours.as_bytes()));
        let mut command = Command::new("sh");
        let run = "exec \"$0\" run -c \"$(dirname \"$3\")/objects\"";
        command.args(["-c", run]).arg(Self::binary());
        Self::spawn(command, data, admin, any_host(), "", &all, &[]).ready()
    }

    /// Starts by the objects of a cluster that this kubeconfig reaches, with these files beside that, and with a file of ours that says
    /// its addresses.
    pub(crate) fn start_in_cluster(kubeconfig: &str, files: &[(&str, &[u8])], more: &str) -> Self {
        Self::spawn_in_cluster(kubeconfig, files, more).ready()
    }

    /// The same, without a wait for it to be ready.
    pub(crate) fn spawn_in_cluster(kubeconfig: &str, files: &[(&str, &[u8])], more: &str) -> Self {
        let (data, admin) = (free_address(), free_address());
        let mut command = Command::new("sh");
        let run = format!(
            "exec \"$0\" run -c \"$3\" --kubernetes --local-backends --kubeconfig \"$(dirname \"$3\")/kubeconfig\" {more}"
        );
        command.args(["-c", &run]).arg(Self::binary());
        let mut all: Vec<(&str, &[u8])> = files.to_vec();
        all.push(("kubeconfig", kubeconfig.as_bytes()));
        Self::spawn(command, data, admin, any_host(), "", &all, &[])
    }

    /// Waits until it takes calls.
    pub(crate) fn comes_up(&mut self) {
        self.until_ready();
    }

    /// Sets the gate's file size limit: bytes, or `unlimited`.
    pub(crate) fn limit_files(&self, most: &str) {
        let id = self.child.id().to_string();
        let limit = format!("--fsize={most}:");
        let status = Command::new("prlimit")
            .args(["--pid", &id, &limit])
            .status();
        assert!(status.expect("prlimit runs").success());
    }

    fn start_at(
        data: SocketAddr,
        admin: SocketAddr,
        listen: &str,
        config: &str,
        files: &[(&str, &[u8])],
        env: &[(&str, &str)],
    ) -> Self {
        let command = Command::new(Self::binary());
        Self::spawn(command, data, admin, listen, config, files, env).ready()
    }

    /// Starts, and is sent SIGHUP as soon as it says anything.
    pub(crate) fn start_hung_up(config: &str) -> Self {
        let gate = Self::spawn_plain(Command::new(Self::binary()), config);
        eventually("it begins", || !gate.log().is_empty());
        gate.signal(libc::SIGHUP);
        gate.ready()
    }

    /// By this command, on free addresses, with the configuration alone.
    fn spawn_plain(command: Command, config: &str) -> Self {
        let (data, admin) = (free_address(), free_address());
        Self::spawn(command, data, admin, any_host(), config, &[], &[])
    }

    fn spawn(
        mut command: Command,
        data: SocketAddr,
        admin: SocketAddr,
        listen: &str,
        config: &str,
        files: &[(&str, &[u8])],
        env: &[(&str, &str)],
    ) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for (name, content) in files {
            let path = dir.path().join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).expect("a directory for the file");
            }
            write_private(&path, content);
        }
        let head = format!(
            "listen: {{ data: \"{data}\", admin: \"{admin}\"{listen} }}\naccess_log: access.jsonl\n"
        );
        std::fs::write(dir.path().join("head.yaml"), &head).expect("a file");
        std::fs::write(dir.path().join("tollgate.yaml"), head + config).expect("a file");
        let log = std::fs::File::create(dir.path().join("gate.log")).expect("a file");
        let child = command
            .args(["run", "-c"])
            .arg(dir.path().join("tollgate.yaml"))
            .env("TOLLGATE_LOG", "debug")
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        Self {
            dir,
            data,
            admin,
            child,
        }
    }

    fn ready(mut self) -> Self {
        self.until_ready();
        self
    }

    fn until_ready(&mut self) {
        let admin = self.admin;
        let child = &mut self.child;
        let log = self.dir.path().join("gate.log");
        eventually("the gate is ready", || {
            if let Some(status) = child.try_wait().expect("the child can be asked") {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("the gate ended with {status}:\n{log}");
            }
            TcpStream::connect(admin).is_ok()
        });
        eventually("/readyz is 200", || self.admin("/readyz").status == 200);
    }

    /// One request on a connection of its own.
    pub(crate) fn call(&self, request: &[u8]) -> Response {
        Connection::open(self.data).call(request)
    }

    /// GET on the admin listener.
    pub(crate) fn admin(&self, path: &str) -> Response {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
        Connection::open(self.admin).call(request.as_bytes())
    }

    /// The metrics page.
    pub(crate) fn metrics(&self) -> String {
        String::from_utf8(self.admin("/stats/prometheus").body).expect("metrics are text")
    }

    /// The sum of a metric's samples whose line holds every one of `labels` (`name="value"`).
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.metrics();
        let lines = page.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// The access log so far; waits until it has at least `n` lines.
    pub(crate) fn records(&self, n: usize) -> Vec<Value> {
        let path = self.path("access.jsonl");
        let mut text = String::new();
        eventually("the access log has its lines", || {
            text = lines_of(&path);
            text.lines().count() >= n
        });
        text.lines()
            .map(|l| serde_json::from_str(l).expect("a line is JSON"))
            .collect()
    }

    /// A file of its directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The lines that it wrote to standard output and error.
    pub(crate) fn log(&self) -> String {
        lines_of(&self.path("gate.log"))
    }

    /// Replaces a file atomically, by a rename.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) {
        replace(&self.path(name), content);
    }

    /// Replaces the configuration below `listen` and `access_log`.
    pub(crate) fn reconfigure(&self, config: &str) {
        let head = std::fs::read_to_string(self.path("head.yaml")).expect("it was written");
        self.replace("tollgate.yaml", (head + config).as_bytes());
    }

    /// Sends a signal, such as `libc::SIGTERM`.
    pub(crate) fn signal(&self, signal: libc::c_int) {
        let id = self.child.id().to_string();
        let status = Command::new("kill")
            .args([format!("-{signal}"), id])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The memory that it has now, in KiB.
    pub(crate) fn resident_kib(&self) -> i64 {
        self.memory("VmRSS:")
    }

    /// What of it is no file's, and so no other process's.
    pub(crate) fn own_kib(&self) -> i64 {
        self.memory("RssAnon:")
    }

    /// The most that it has ever had.
    pub(crate) fn peak_kib(&self) -> i64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.expect("Linux says so").trim().trim_end_matches(" kB");
        kib.parse().expect("a number")
    }

    /// How many descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.id()));
        open.expect("it runs").count()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        found("the gate ends", || {
            self.child.try_wait().expect("the child can be asked")
        })
    }

    /// The same, whatever the limit.
    pub(crate) fn wait(&mut self, _limit: Duration) -> ExitStatus {
        self.ended()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            for line in tail.into_iter().rev() {
                drop(writeln!(std::io::stderr(), "gate: {line}"));
            }
        }
    }
}

/// The field of `listen` that lets tests call the gate by any host name. Empty where the binary is older than
/// that field, so that the same tests run against older binaries.
fn any_host() -> &'static str {
    static FIELD: OnceLock<&str> = OnceLock::new();
    FIELD.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("tollgate.yaml");
        let text = "listen: { hosts: \"*\" }\nbackends: { b: { url: http://127.0.0.1:1/v1 } }\nroutes: [ { workload: w, backend: b } ]\n";
        std::fs::write(&path, text).expect("a file");
        let mut check = Command::new(Gate::binary());
        let checked = check.args(["check", "-c"]).arg(path).output();
        if checked.expect("the binary starts").status.success() {
            ", hosts: \"*\""
        } else {
            ""
        }
    })
}

/// What a file has, but for a line that is being written.
fn lines_of(path: &Path) -> String {
    let mut text = std::fs::read_to_string(path).unwrap_or_default();
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    text
}

/// Writes a file that nobody but its owner can read, as files with secrets have to be.
pub(crate) fn write_private(path: &Path, content: impl AsRef<[u8]>) {
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true);
    let mut file = options.mode(0o600).open(path).expect("a private file");
    file.write_all(content.as_ref()).expect("a private file");
}

/// Writes a temporary file and renames it over `path`.
pub(crate) fn replace(path: &Path, content: &[u8]) {
    let beside = path.with_extension("new");
    write_private(&beside, content);
    std::fs::rename(beside, path).expect("a rename");
}
