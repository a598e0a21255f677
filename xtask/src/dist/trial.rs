//! Tries what was packaged in a root that has nothing else: a minimal Debian, made for it and thrown away.
//!
//! Unpacked and started; installed, called, upgraded under a gate that runs, removed and purged, with the ledger still
//! there and whole. The unit is looked at by `systemd-analyze`.
//! Not here: a system whose first process is systemd. The scripts' calls of `systemctl` are not tried.

mod boot;
mod gate;
mod image;
mod page;
mod registries;
mod untried;
mod upstream;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::{Release, SUMS, check_sums, deb, signature, succeed};
use crate::free_address::free_address;
use crate::parts::DIST_DEBIAN;
use gate::Gate;
pub(super) use untried::Untried;

const CONFIG: &str = "/etc/tollgate/tollgate.yaml";
/// Where the packages are in the root.
const PACKAGES: &str = "/opt/packages";
const CALLER: &str = "x-workload-app: chat";
const LEDGER: &str = "/var/lib/tollgate/usage.db";
/// How much of an exposure `systemd-analyze security` may find, tenths.
const EXPOSURE: u32 = 20;

/// The minimal Debian.
struct Root(PathBuf);

/// From one package to another.
struct Upgrade {
    from: PathBuf,
    to: PathBuf,
}

impl Upgrade {
    /// From an older package, else to the same one under a version that is newer.
    fn of(release: &Release, older: Option<&Path>) -> Result<Self, String> {
        if let Some(older) = older {
            let from = older.to_owned();
            return Ok(Self {
                from,
                to: release.deb(),
            });
        }
        let newer = format!("{}+1", release.version);
        let to = deb::packed(release, &newer, &release.stage.join("newer"))?;
        Ok(Self {
            from: release.deb(),
            to,
        })
    }
}

/// Tries all of it that can be tried here; gives what cannot.
pub(super) fn run(release: &Release, older: Option<&Path>) -> Result<Untried, String> {
    let mut untried = Untried::default();
    check_sums(&release.out)?;
    if signature::is_signed(&release.out) {
        signature::verify(&release.out)?;
        println!("{SUMS}: good, and so is its signature");
    } else {
        println!("{SUMS}: good, not signed");
    }
    if !succeed(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0") {
        untried.needs_root("all packages: a bare root");
        return Ok(untried);
    }
    image::run(release, &mut untried)?;
    if !is_there("mmdebstrap") {
        untried.lacks("archive and .deb", "mmdebstrap", "mmdebstrap");
        return Ok(untried);
    }
    println!("trying the packages in a minimal {DIST_DEBIAN}");
    let dir = release.stage.join("root");
    drop(fs::remove_dir_all(&dir));
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args([
        "--quiet",
        "--variant=apt",
        "--include=passwd,python3",
        DIST_DEBIAN,
    ]);
    succeed(mmdebstrap.arg(&dir))?;
    let root = Root(dir);
    super::copy(&release.out, &root.inside(PACKAGES))?;
    archive(&root, release)?;
    registries::run(&root, release)?;
    let upgrade = Upgrade::of(release, older)?;
    installed(&root, release, &upgrade, &mut untried)?;
    boot::run(release, &upgrade.from, &upgrade.to, &mut untried)?;
    lintian(release, &mut untried)?;
    Ok(untried)
}

/// Whether a program starts and says its version.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The archive runs where it is unpacked.
fn archive(root: &Root, release: &Release) -> Result<(), String> {
    root.as_printed("archive", release)?;
    let name = release.name();
    let program = format!("{PACKAGES}/{name}/tollgate");
    let version = succeed(root.chroot("0:0").args([&program, "version"]))?;
    holds(
        version.trim() == format!("tollgate {}", release.version),
        "the archive's version",
    )?;
    let example = format!("{PACKAGES}/{name}/examples/white-paper.yaml");
    // Its keys are not there: it is read as far as to the first of them.
    let mut check = root.chroot("0:0");
    check.args([&program, "check", "-c", &example]);
    let said = check
        .output()
        .map_err(|cause| format!("{check:?}: {cause}"))?;
    let says = String::from_utf8_lossy(&said.stderr);
    holds(
        said.status.code() == Some(1) && says.contains("secrets/gemini-api-key"),
        &format!("the example lacks its keys alone: {}: {says}", said.status),
    )
}

/// The package's life, from its installation to its end, with an upgrade: from an older one, or to one that calls itself newer.
fn installed(
    root: &Root,
    release: &Release,
    upgrade: &Upgrade,
    untried: &mut Untried,
) -> Result<(), String> {
    root.as_printed("deb", release)?;
    let own = succeed(
        root.chroot("tollgate:tollgate")
            .args(["tollgate", "check", "-c", CONFIG]),
    )?;
    holds(own.contains("good"), "the configuration that comes with it")?;
    unit(root, release, untried)?;
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
    root.dpkg(
        &["-i", "--force-confold", "--force-downgrade"],
        &upgrade.from,
    )?;
    let gate = root.start(data)?;
    gate.call(CALLER, "m")?;
    root.dpkg(&["-i", "--force-confold"], &upgrade.to)?;
    gate.call(CALLER, "m")?;
    gate.end()?;
    let gate = root.start(data)?;
    gate.call(CALLER, "m")?;
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
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.display().to_string())
            .unwrap_or_default()
    };
    println!(
        ".deb: from {} to {} under an open ledger, removed, purged; the ledger is there and whole",
        name(&upgrade.from),
        name(&upgrade.to)
    );
    Ok(())
}

/// The unit has no fault, and little that could be done through it.
fn unit(root: &Root, release: &Release, untried: &mut Untried) -> Result<(), String> {
    let analyze = || Command::new("systemd-analyze");
    if !is_there("systemd-analyze") {
        untried.lacks("unit, looked at", "systemd-analyze", "systemd");
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
            .env(
                "PATH",
                format!(
                    "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{}/bin",
                    registries::NODE
                ),
            )
            .env("HOME", "/root");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Types what the page prints for one of the ways, of which the last command is a demo, until that has answered a call.
    fn as_printed(&self, way: &str, release: &Release) -> Result<(), String> {
        let began = Instant::now();
        let mut commands = page::commands(way, release)?;
        let last = commands.pop().unwrap_or_default();
        let last = last.strip_suffix(" demo");
        let program = last.ok_or_else(|| format!("the last command for {way} is no demo"))?;
        let shell = |script: &str| {
            let mut shell = self.chroot("0:0");
            shell.args(["sh", "-ec", &format!("cd {PACKAGES}\n{script}"), "sh"]);
            shell
        };
        succeed(&mut shell(&commands.join("\n")))?;
        let is_npm = way == "npm";
        let mut command = shell(&format!("exec {program} \"$@\""));
        if is_npm {
            command.process_group(0);
        }
        let demo = Gate::demo(command)?;
        println!(
            "{way}: as docs/install.md prints it, to the demo's first answer in {:.1} s",
            began.elapsed().as_secs_f64()
        );
        match is_npm {
            true => demo.end_group(),
            false => demo.end(),
        }
    }

    fn dpkg(&self, how: &[&str], package: &Path) -> Result<(), String> {
        super::copy(package, &self.inside("/opt/package.deb"))?;
        let mut dpkg = self.chroot("0:0");
        succeed(dpkg.arg("dpkg").args(how).arg("/opt/package.deb")).map(drop)
    }

    /// Starts the gate as the unit does, but for its sandbox, and waits until it takes calls.
    fn start(&self, data: SocketAddr) -> Result<Gate, String> {
        let mut command = self.chroot("tollgate:tollgate");
        command.args(["tollgate", "run", "-c", CONFIG]);
        Gate::start(command, data)
    }
}

/// What Debian's own checker finds wrong with the package.
fn lintian(release: &Release, untried: &mut Untried) -> Result<(), String> {
    if !is_there("lintian") {
        untried.lacks(".deb, looked at", "lintian", "lintian");
        return Ok(());
    }
    let mut lintian = Command::new("lintian");
    lintian.args([
        "--fail-on",
        "error",
        "--no-tag-display-limit",
        "--allow-root",
    ]);
    let said = succeed(lintian.arg(release.deb()))?;
    println!(
        ".deb: lintian finds no error, and warns {} times",
        said.lines().filter(|line| line.starts_with("W:")).count()
    );
    Ok(())
}

fn holds(is_so: bool, what: &str) -> Result<(), String> {
    if is_so {
        return Ok(());
    }
    Err(format!(
        "tried in a bare root: it does not hold that {what}"
    ))
}
