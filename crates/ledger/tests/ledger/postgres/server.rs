//! A Postgres of the test's own, which speaks TLS with a certificate for 127.0.0.1 alone.
//!
//! Postgres refuses to run as root; as root the test runs it as the user `postgres` of Debian's package.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use testing::PATIENCE;

/// Stopped when dropped.
pub(crate) struct Server {
    bin: PathBuf,
    dir: tempfile::TempDir,
    port: u16,
    /// Holds the port against others.
    _held: UdpSocket,
    user: Option<(u32, u32)>,
}

impl Server {
    /// `None` when `TOLLGATE_NO_POSTGRES` is set.
    pub(crate) fn start() -> Option<Self> {
        if std::env::var_os("TOLLGATE_NO_POSTGRES").is_some() {
            testing::skip("TOLLGATE_NO_POSTGRES says that Postgres is not wanted");
            return None;
        }
        let bin = find().expect(
            "Postgres is not installed: `cargo xtask setup` does it (apt-get install postgresql); or set TOLLGATE_NO_POSTGRES=1",
        );
        let dir = tempfile::tempdir().expect("a directory");
        let user = other_user();
        if let Some((uid, gid)) = user {
            chown(dir.path(), Some(uid), Some(gid)).expect("gives the directory away");
        }
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700))
            .expect("closes it");
        let (port, held) = free_port();
        let server = Self {
            bin,
            dir,
            port,
            _held: held,
            user,
        };
        server.run(
            "initdb",
            &["--auth=trust", "--username=gate", "--no-sync", "-D"],
        );
        server.certify();
        server.start_again();
        Some(server)
    }

    pub(crate) fn address(&self) -> String {
        format!("postgres://gate@127.0.0.1:{}/postgres", self.port)
    }

    /// The address with full verification: TLS, a certificate signed by `ca`, and its name.
    pub(crate) fn secure_address(&self) -> String {
        let ca = self.dir.path().join("ca.pem");
        let tls = format!("sslmode=verify-full&sslrootcert={}", ca.display());
        format!("{}?{tls}", self.address())
    }

    /// Makes its certificate, and `ca.pem`, which signs it.
    fn certify(&self) {
        let (key, own) = (
            KeyPair::generate().expect("a key"),
            KeyPair::generate().expect("a key"),
        );
        let mut params = CertificateParams::new(Vec::new()).expect("good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).expect("a certificate").pem();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a good name");
        let leaf = leaf
            .signed_by(&own, &Issuer::new(params, key))
            .expect("a certificate");
        let at = |name: &str| self.dir.path().join(name);
        std::fs::write(at("ca.pem"), ca).expect("writes");
        for (name, pem) in [
            ("server.crt", leaf.pem()),
            ("server.key", own.serialize_pem()),
        ] {
            let path = at("data").join(name);
            std::fs::write(&path, pem).expect("writes");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
                .expect("closes it");
            if let Some((uid, gid)) = self.user {
                chown(&path, Some(uid), Some(gid)).expect("gives it away");
            }
        }
        let conf = at("data").join("postgresql.conf");
        let said = std::fs::read_to_string(&conf).expect("initdb wrote it");
        std::fs::write(&conf, said + "\nssl = on\n").expect("writes");
    }

    pub(crate) fn start_again(&self) {
        let options = format!(
            "-p {} -h 127.0.0.1 -k {}",
            self.port,
            self.dir.path().display()
        );
        let patience = PATIENCE.as_secs().to_string();
        let log = self.dir.path().join("log").display().to_string();
        self.run(
            "pg_ctl",
            &[
                "start", "-w", "-t", &patience, "-l", &log, "-o", &options, "-D",
            ],
        );
    }

    pub(crate) fn stop(&mut self) {
        let patience = PATIENCE.as_secs().to_string();
        self.run(
            "pg_ctl",
            &["stop", "-w", "-t", &patience, "-m", "immediate", "-D"],
        );
    }

    fn run(&self, program: &str, args: &[&str]) {
        let status = self.command(program, args).status().expect("starts");
        assert!(status.success(), "{program} {args:?}: {status}");
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command
            .args(args)
            .arg(self.dir.path().join("data"))
            .current_dir(self.dir.path());
        command.stdout(std::process::Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(
            self.command("pg_ctl", &["stop", "-m", "immediate", "-D"])
                .status(),
        );
    }
}

/// A port that is free, and below those that are given to outgoing connections (by Linux from 32,768, by gVisor from 16,000), so
/// that it stays free until the server takes it, at each of its starts; and what holds it against other processes of the tests, as
/// `prove`'s ports are held.
fn free_port() -> (u16, UdpSocket) {
    std::iter::repeat_with(|| RandomState::new().build_hasher().finish() % 6_000)
        .map(|drawn| 10_000 + u16::try_from(drawn).expect("below 6,000"))
        .take(100)
        .find_map(|port| {
            let hold = UdpSocket::bind(("127.0.0.1", port)).ok()?;
            TcpListener::bind(("127.0.0.1", port)).ok()?;
            Some((port, hold))
        })
        .expect("a free port among a hundred")
}

/// Where Debian keeps the programs, the newest version first.
fn find() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut bins: Vec<PathBuf> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    bins.sort();
    bins.into_iter()
        .rev()
        .find(|bin| bin.join("initdb").exists())
}

/// The user to run as, when we are root.
fn other_user() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let is_root = status
        .lines()
        .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"));
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut ids = line.split(':').skip(2);
    let ids = (ids.next()?.parse().ok()?, ids.next()?.parse().ok()?);
    is_root.then_some(ids)
}
