//! Tries what was packaged in a root that has nothing else: a minimal Debian, made for it and thrown away.
//!
//! Unpacked and started; installed, called, upgraded under a gate that runs, removed and purged, with the ledger still
//! there and whole. The unit is looked at by `systemd-analyze`.
//! Not here: a system whose first process is systemd. The scripts' calls of `systemctl` are not tried.

mod upstream;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Release, deb, succeed};
use crate::parts::DIST_DEBIAN;

const CONFIG: &str = "/etc/tollgate/tollgate.yaml";
const LEDGER: &str = "/var/lib/tollgate/usage.db";
/// How much of an exposure `systemd-analyze security` may find, tenths.
const EXPOSURE: u32 = 20;
const WITHIN: Duration = Duration::from_secs(20);

/// The minimal Debian.
struct Root(PathBuf);

/// A gate that runs in it.
struct Gate {
    child: Child,
    data: SocketAddr,
}

/// Tries all of it, or says why it cannot.
pub(super) fn run(release: &Release, package: &Path) -> Result<(), String> {
    let dir = release.stage.join("root");
    if !succeed(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
        println!("not tried: a bare root needs the user root");
        return Ok(());
    }
    if Command::new("mmdebstrap")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("not tried: mmdebstrap is not installed (apt-get install mmdebstrap)");
        return Ok(());
    }
    println!("trying the packages in a minimal {DIST_DEBIAN}");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args([
        "--quiet",
        "--variant=essential",
        "--include=passwd",
        DIST_DEBIAN,
    ]);
    succeed(mmdebstrap.arg(&dir))?;
    let root = Root(dir);
    archive(&root, release)?;
    installed(&root, release, package)
}

/// The archive runs where it is unpacked.
fn archive(root: &Root, release: &Release) -> Result<(), String> {
    let began = Instant::now();
    let name = format!("tollgate-{}-x86_64-linux", release.version);
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(release.out.join(format!("{name}.tar.xz")));
    succeed(tar.arg("-C").arg(root.0.join("opt")))?;
    let program = format!("/opt/{name}/tollgate");
    let version = succeed(root.chroot("0:0").args([&program, "version"]))?;
    holds(
        version.trim() == format!("tollgate {}", release.version),
        "the archive's version",
    )?;
    let example = format!("/opt/{name}/examples/white-paper.yaml");
    // Its keys are not there: what is asked is whether it is read.
    let said = root
        .chroot("0:0")
        .args([&program, "check", "-c", &example])
        .output();
    let said = said.map_err(|cause| cause.to_string())?;
    holds(
        !said.stderr.is_empty() || said.status.success(),
        "check of an example",
    )?;
    println!(
        "archive: unpacked and run in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The package's life, from its installation to its end.
fn installed(root: &Root, release: &Release, package: &Path) -> Result<(), String> {
    let began = Instant::now();
    root.dpkg(&["-i"], package)?;
    let own = succeed(
        root.chroot("tollgate:tollgate")
            .args(["tollgate", "check", "-c", CONFIG]),
    )?;
    holds(own.contains("good"), "the configuration that comes with it")?;
    unit(root, release)?;
    let upstream = upstream::start()?;
    let (data, admin) = (free_address()?, free_address()?);
    let config = root.inside(CONFIG);
    let text = fs::read_to_string(&config).map_err(|cause| cause.to_string())?;
    let text = text
        .replace("127.0.0.1:1975", &data.to_string())
        .replace("127.0.0.1:1976", &admin.to_string())
        .replace("http://127.0.0.1:8000", &format!("http://{upstream}"))
        .replace("workload: nobody", "workload: chat");
    fs::write(&config, &text).map_err(|cause| cause.to_string())?;
    let gate = root.start(data)?;
    gate.call()?;
    println!(
        ".deb: installed, started and called in {:.1} s",
        began.elapsed().as_secs_f64()
    );

    let newer = format!("{}+1", release.version);
    let newer = deb::packed(release, &newer, &release.stage.join("newer"))?;
    root.dpkg(&["-i", "--force-confold"], &newer)?;
    gate.call()?;
    gate.end()?;
    let gate = root.start(data)?;
    gate.call()?;
    gate.end()?;
    holds(
        fs::read_to_string(&config).is_ok_and(|kept| kept == text),
        "the configuration is kept",
    )?;
    let verified = ["tollgate", "usage", "--ledger", LEDGER, "verify"];
    let user = "tollgate:tollgate";
    succeed(root.chroot(user).args(verified))?;
    let tail = ["tollgate", "usage", "--ledger", LEDGER, "tail", "--json"];
    let rows = succeed(root.chroot(user).args(tail))?;
    holds(
        rows.lines().count() == 3,
        &format!("three rows, not {rows}"),
    )?;

    succeed(root.chroot("0:0").args(["dpkg", "-r", "tollgate"]))?;
    holds(
        !root.inside("/usr/bin/tollgate").exists(),
        "the program goes",
    )?;
    holds(
        config.exists(),
        "the configuration stays until it is purged",
    )?;
    succeed(root.chroot("0:0").args(["dpkg", "-P", "tollgate"]))?;
    holds(!config.exists(), "the configuration goes")?;
    holds(root.inside(LEDGER).exists(), "the ledger stays")?;
    println!(
        ".deb: upgraded under an open ledger, removed and purged; the ledger is there and whole"
    );
    Ok(())
}

/// The unit has no fault, and little that could be done through it.
fn unit(root: &Root, release: &Release) -> Result<(), String> {
    let analyze = || Command::new("systemd-analyze");
    if analyze().arg("--version").output().is_err() {
        println!("unit: not looked at, there is no systemd-analyze");
        return Ok(());
    }
    let installed = root.inside("/usr/lib/systemd/system/tollgate.service");
    let text = fs::read_to_string(&installed).map_err(|cause| cause.to_string())?;
    // A minimal root has no systemd whose units this one could name: this machine's are taken.
    let unit = release.stage.join("unit").join("tollgate.service");
    let program = release.binary.display().to_string();
    super::write(&unit, &text.replace("/usr/bin/tollgate", &program))?;
    succeed(analyze().args(["verify", "--man=no"]).arg(&unit))?;
    let mut security = analyze();
    security.args(["security", "--offline=yes", "--no-pager"]);
    let said = succeed(security.arg(format!("--threshold={EXPOSURE}")).arg(unit))?;
    let level = said.lines().find(|line| line.contains("exposure level"));
    println!(
        "unit: {}",
        level.unwrap_or_default().trim_start_matches(['→', ' '])
    );
    Ok(())
}

impl Root {
    fn inside(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A command to be said, run in it by a user.
    fn chroot(&self, user: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(format!("--userspec={user}")).arg(&self.0);
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn dpkg(&self, how: &[&str], package: &Path) -> Result<(), String> {
        super::copy(package, &self.inside("/opt/package.deb"))?;
        let mut dpkg = self.chroot("0:0");
        succeed(dpkg.arg("dpkg").args(how).arg("/opt/package.deb")).map(drop)
    }

    /// Starts the gate as the unit does, but for its sandbox, and waits until it takes calls.
    fn start(&self, data: SocketAddr) -> Result<Gate, String> {
        let mut command = self.chroot("tollgate:tollgate");
        command
            .args(["tollgate", "run", "-c", CONFIG])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|cause| format!("{command:?}: {cause}"))?;
        let gate = Gate { child, data };
        let began = Instant::now();
        while TcpStream::connect(data).is_err() {
            holds(began.elapsed() < WITHIN, "the gate listens")?;
            thread::sleep(Duration::from_millis(20));
        }
        Ok(gate)
    }
}

impl Gate {
    /// A call that is answered by the upstream.
    fn call(&self) -> Result<(), String> {
        let body = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#;
        let call = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-workload-app: chat\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.data)?;
            stream.set_read_timeout(Some(WITHIN))?;
            stream.write_all(call.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = asked().map_err(|cause| format!("a call: {cause}"))?;
        holds(
            answer.starts_with("HTTP/1.1 200"),
            &format!("a call is answered, not {answer}"),
        )
    }

    /// Ends it as systemd does.
    fn end(mut self) -> Result<(), String> {
        succeed(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let ended = self.child.wait().map_err(|cause| cause.to_string())?;
        holds(ended.success(), &format!("the gate ends well, not {ended}"))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn holds(is_so: bool, what: &str) -> Result<(), String> {
    if is_so {
        return Ok(());
    }
    Err(format!(
        "tried in a bare root: it does not hold that {what}"
    ))
}

fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|cause| cause.to_string())?;
    listener.local_addr().map_err(|cause| cause.to_string())
}
