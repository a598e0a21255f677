//! Tries the image without a runtime: its layers are unpacked into a bare root, which is mounted to be read alone, and its program
//! is started there as its configuration says: its user, its environment, its words.
//!
//! Where skopeo, umoci and podman are installed, they read it, unpack it and run it too.
//! Not here: a network of its own, which a machine may not let a container have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::gate::Gate;
use super::{Untried, holds, is_there, page, upstream};
use crate::dist::build::PROGRAMS;
use crate::dist::{Release, files, image, make_dir, sha256, succeed, write};
use crate::free_address::free_address;

const CONFIG: &str = "etc/tollgate/tollgate.yaml";
const LEDGER: &str = "/var/lib/tollgate/usage.db";
/// Where the file that is shipped is unpacked, below [`dir`].
const LAYOUT: &str = "layout";

/// Mounts a root, with a volume and a configuration in it, and runs words there: `$1` the root, `$2` the volume, `$3` the
/// configuration, then the environment and the words.
const RUN: &str = r#"
set -e
root=$1; volume=$2; config=$3; shift 3
mount --bind "$root" "$root"
mount --bind "$volume" "$root/var/lib/tollgate"
mount --bind "$config" "$root/etc/tollgate/tollgate.yaml"
mount --bind /proc "$root/proc"
mount -o remount,bind,ro "$root"
if touch "$root/etc/written" 2> /dev/null; then echo "the root can be written" >&2; exit 1; fi
exec env -i "$@"
"#;

/// An image, unpacked.
struct Image {
    root: PathBuf,
    volume: PathBuf,
    config: PathBuf,
    /// What its configuration says of running it.
    says: Value,
}

/// Tries it.
pub(super) fn run(release: &Release, untried: &mut Untried) -> Result<(), String> {
    let began = Instant::now();
    let image = unpacked(release)?;
    let demo = Gate::demo(image.command(&strings(&image.says, "Entrypoint")))?;
    println!(
        "image: unpacked, and the demo's first answer in {:.1} s",
        began.elapsed().as_secs_f64()
    );
    demo.end()?;
    image.has_no_shell()?;
    let image = image.serves()?;
    println!(
        "image: as user {}, root read-only, called; its ledger is whole",
        image.user()
    );
    others(release, untried)?;
    podman(release, untried)
}

/// Where it is unpacked.
fn dir(release: &Release) -> PathBuf {
    release.stage.join("image-trial")
}

/// Unpacks the file that is shipped, then each layer of it, after its bytes were held against its name.
fn unpacked(release: &Release) -> Result<Image, String> {
    let dir = dir(release);
    drop(fs::remove_dir_all(&dir));
    let (layout, root) = (dir.join(LAYOUT), dir.join("root"));
    make_dir(&layout)?;
    make_dir(&root)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(image::file(release));
    succeed(tar.arg("-C").arg(&layout))?;
    let blobs = layout.join("blobs/sha256");
    for name in files(&blobs)? {
        holds(
            sha256(&blobs.join(&name))? == name,
            &format!("blob {name} has its hash"),
        )?;
    }
    let index = read(&layout.join("index.json"))?;
    let manifest = read(&blob(&blobs, index.pointer("/manifests/0"))?)?;
    let says = read(&blob(&blobs, manifest.get("config"))?)?;
    let layers = manifest.get("layers").and_then(Value::as_array);
    for layer in layers.ok_or("image: a manifest without layers")? {
        let mut tar = Command::new("tar");
        tar.args([
            "--extract",
            "--gzip",
            "--same-owner",
            "--numeric-owner",
            "--preserve-permissions",
        ]);
        tar.arg("--file").arg(blob(&blobs, Some(layer))?);
        succeed(tar.arg("--directory").arg(&root))?;
    }
    let says = says.get("config").cloned().unwrap_or_default();
    let volume = dir.join("volume");
    make_dir(&volume)?;
    succeed(Command::new("chown").arg(user(&says)).arg(&volume))?;
    let config = root.join(CONFIG);
    Ok(Image {
        root,
        volume,
        config,
        says,
    })
}

fn read(path: &Path) -> Result<Value, String> {
    let text = fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    serde_json::from_slice(&text).map_err(|cause| format!("{}: {cause}", path.display()))
}

/// The file that a descriptor names, whose size it says.
fn blob(blobs: &Path, descriptor: Option<&Value>) -> Result<PathBuf, String> {
    let member = |name| descriptor.and_then(|descriptor| descriptor.get(name));
    let digest = member("digest").and_then(Value::as_str).unwrap_or_default();
    let file = blobs.join(digest.trim_start_matches("sha256:"));
    let size = fs::metadata(&file)
        .map_err(|cause| format!("{}: {cause}", file.display()))?
        .len();
    holds(
        member("size") == Some(&size.into()),
        &format!("{digest} has its size"),
    )?;
    Ok(file)
}

fn strings(says: &Value, name: &str) -> Vec<String> {
    let list = says
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn user(says: &Value) -> &str {
    says.get("User").and_then(Value::as_str).unwrap_or("0:0")
}

impl Image {
    fn user(&self) -> &str {
        user(&self.says)
    }

    /// Words, run in it as a runtime would.
    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", RUN, "sh"]);
        command.args([&self.root, &self.volume, &self.config]);
        command.args(strings(&self.says, "Env"));
        command.arg("/usr/sbin/chroot");
        command.arg(format!("--userspec={}", self.user()));
        command.arg(&self.root).args(words);
        command
    }

    /// Its gate, asked something.
    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut whole = strings(&self.says, "Entrypoint");
        whole.extend(words.iter().map(|word| (*word).to_owned()));
        succeed(&mut self.command(&whole))
    }

    fn has_no_shell(&self) -> Result<(), String> {
        let programs = files(&self.root.join("usr/bin"))?;
        holds(
            programs == PROGRAMS,
            &format!("nothing but {PROGRAMS:?} is in it, not {programs:?}"),
        )?;
        for dir in ["bin", "sbin", "usr/sbin"] {
            holds(!self.root.join(dir).exists(), &format!("there is no {dir}"))?;
        }
        let mut find = Command::new("find");
        find.arg(&self.root)
            .args(["-perm", "/6000", "-o", "-type", "f", "-perm", "/022"]);
        let found = succeed(&mut find)?;
        holds(
            found.is_empty(),
            &format!("nothing in it is for others to write, or another user's: {found}"),
        )
    }

    /// Its own configuration asks for a key, and is good when there is one; with an upstream it serves a call and keeps it.
    fn serves(mut self) -> Result<Self, String> {
        let own = format!("/{CONFIG}");
        let check = ["check", "-c", own.as_str()];
        let says = self.ask(&check).err().unwrap_or_default();
        holds(
            says.contains("tollgate keys create"),
            &format!("it asks for a key, not {says}"),
        )?;
        let made = self.ask(&[
            "keys",
            "create",
            "--json",
            "-c",
            &own,
            "--workload",
            "nobody",
        ])?;
        let made: Value =
            serde_json::from_str(&made).map_err(|cause| format!("{made}: {cause}"))?;
        let key = made.get("key").and_then(Value::as_str).unwrap_or_default();
        let says = self.ask(&check)?;
        holds(
            says.contains("good"),
            &format!("its configuration is good, not {says}"),
        )?;

        let (upstream, data, admin) = (upstream::start()?, free_address()?, free_address()?);
        let text = fs::read_to_string(&self.config).map_err(|cause| cause.to_string())?;
        let text = text
            .replace("0.0.0.0:1975", &data.to_string())
            .replace("0.0.0.0:1976", &admin.to_string())
            .replace("http://engine.example:8000", &format!("http://{upstream}"));
        self.config = self.volume.with_file_name("mounted.yaml");
        write(&self.config, &text)?;
        let mut words = strings(&self.says, "Entrypoint");
        words.extend(strings(&self.says, "Cmd"));
        let gate = Gate::start(self.command(&words), data)?;
        gate.call(&format!("authorization: Bearer {key}"), "m")?;
        gate.end()?;
        self.ask(&["usage", "--ledger", LEDGER, "verify"])?;
        let rows = self.ask(&["usage", "--ledger", LEDGER, "tail", "--json"])?;
        holds(rows.lines().count() == 1, &format!("one row, not {rows}"))?;
        Ok(self)
    }
}

/// What programs say of it that were written by others.
fn others(release: &Release, untried: &mut Untried) -> Result<(), String> {
    let layout = dir(release).join(LAYOUT);
    let named = format!("{}:{}", layout.display(), release.version);
    if is_there("skopeo") {
        let said = succeed(Command::new("skopeo").args(["inspect", &format!("oci:{named}")]))?;
        holds(
            said.contains("org.opencontainers.image.revision"),
            "skopeo finds its labels",
        )?;
        let archive = format!("oci-archive:{}", image::file(release).display());
        succeed(Command::new("skopeo").args(["inspect", "--raw", &archive]))?;
        println!("image: skopeo reads the layout and the file");
    } else {
        untried.lacks("image, read", "skopeo", "skopeo");
    }
    if is_there("umoci") {
        let bundle = dir(release).join("bundle");
        let mut umoci = Command::new("umoci");
        succeed(umoci.args(["unpack", "--image", &named]).arg(&bundle))?;
        let same = sha256(&bundle.join("rootfs/usr/bin/tollgate"))? == sha256(&release.binary)?;
        holds(same, "umoci unpacks the same program")?;
        println!("image: umoci unpacks it");
    } else {
        untried.lacks("image, unpacked", "umoci", "umoci");
    }
    Ok(())
}

/// Podman loads and runs it as the page prints it, with images and limits of its own, so that nothing of this machine is touched
/// or has to be allowed.
fn podman(release: &Release, untried: &mut Untried) -> Result<(), String> {
    if !is_there("podman") {
        untried.lacks("image, run", "podman", "podman");
        return Ok(());
    }
    let dir = release.stage.join("podman");
    let inside = |name: &str| dir.join(name).display().to_string();
    let runtime = if is_there("runc") { "runc" } else { "crun" };
    let limits = r#"["nofile=4096:4096", "nproc=4096:4096"]"#;
    let conf =
        format!("[containers]\ndefault_ulimits = {limits}\n[engine]\nruntime = \"{runtime}\"\n");
    write(&dir.join("containers.conf"), &conf)?;
    let (kept, running) = (inside("kept"), inside("running"));
    let storage = format!(
        "[storage]\ndriver = \"overlay\"\ngraphroot = \"{kept}\"\nrunroot = \"{running}\"\n"
    );
    write(&dir.join("storage.conf"), &storage)?;
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script, "sh"]).current_dir(&release.out);
        shell
            .env("CONTAINERS_CONF", inside("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", inside("storage.conf"));
        shell
    };
    let mut commands = page::commands("image", release)?;
    let last = commands.pop().unwrap_or_default();
    let run = last
        .strip_suffix(" demo")
        .ok_or("the last command for image is no demo")?;
    let began = Instant::now();
    succeed(&mut shell(&commands.join("\n")))?;
    // Not every machine lets one run containers in it: that is no fault of the image.
    if let Err(says) = succeed(&mut shell(&format!("{run} version"))) {
        let reason = says.lines().last().unwrap_or_default();
        untried.refused("image, run by podman, which loads it", reason);
    } else {
        let demo = Gate::demo(shell(&format!("exec {run} \"$@\"")))?;
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "image: by podman as docs/install.md prints it, to the demo's first answer in {seconds:.1} s"
        );
        demo.end()?;
    }
    succeed(&mut shell("podman system reset --force")).map(drop)
}
