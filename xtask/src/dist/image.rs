//! The image for containers, made by hand and without a daemon: an OCI layout, as one file.
//!
//! Three layers: Debian's libc with CA certificates and a user; the program with what belongs to it; the directories that are its own.
//! Invariant: nothing in it can be written but what is mounted, nobody in it is root, and no shell is in it.
//! Not here: how it is fetched by a daemon. What loads it is in `docs/install.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::archive::tar;
use super::crates::Linked;
use super::debian::{self, Taken};
use super::{Release, arch, copy, date, files, make_dir, sbom, sha256, succeed, write};
use crate::cargo::root;
use crate::git::git;

/// Who runs in it: nobody whom another system knows.
pub(super) const USER: u32 = 65532;
/// The ports that its configuration listens on.
const PORTS: [&str; 2] = ["1975/tcp", "1976/tcp"];
/// Where the ledger is, and what a demo keeps while it runs.
const DATA: &str = "var/lib/tollgate";
/// What belongs to the user, and is meant to be mounted.
const OWN: [&str; 2] = [DATA, "var/log/tollgate"];
/// Names the commit where there is no git.
pub(super) const REVISION: &str = "TOLLGATE_REVISION";
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
const DESCRIPTION: &str = "AI gateway that counts and limits what workloads use";

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layer in its layout.
struct Layer {
    /// Of what it is uncompressed.
    diff_id: String,
    blob: Blob,
    says: &'static str,
}

/// A file of a layout, called by its hash.
struct Blob {
    digest: String,
    size: u64,
}

/// The file that is shipped.
pub(super) fn file(release: &Release) -> PathBuf {
    release.out.join(format!("{}-oci.tar", release.name()))
}

/// Makes the layout, a file of it, and the list of what is inside.
pub(super) fn image(release: &Release, linked: &[Linked]) -> Result<(), String> {
    let stage = release.stage.join("image");
    let dir = stage.join("layout");
    make_dir(&dir.join("blobs/sha256"))?;
    let mut names = vec!["ca-certificates", "libc6"];
    if release.needs.has_libgcc() {
        names.push("libgcc-s1");
    }
    let packages = debian::fetch(&names, &stage.join("packages"))?;
    let list = sbom::sbom(release, linked, &packages)?;
    write(
        &release.out.join(format!("{}-oci.cdx.json", release.name())),
        &list,
    )?;

    let (base, program, own) = (stage.join("base"), stage.join("program"), stage.join("own"));
    base_files(&base, &packages, &stage)?;
    program_files(&program, release, &list)?;
    for path in OWN {
        make_dir(&own.join(path))?;
    }
    let layers = [
        layer(
            release,
            &dir,
            &base,
            &files(&base)?,
            0,
            "Debian's libc, CA certificates, a user",
        )?,
        layer(release, &dir, &program, &files(&program)?, 0, "tollgate")?,
        layer(
            release,
            &dir,
            &own,
            &OWN.map(str::to_owned),
            USER,
            "directories to mount",
        )?,
    ];
    lay_out(release, &dir, &layers)?;
    let mut tar = tar(release, &dir, 0);
    tar.arg("--file").arg(file(release));
    succeed(tar.args(files(&dir)?)).map(drop)
}

/// Libraries, certificates, and the few files by which a name has a user and a host an address.
fn base_files(base: &Path, packages: &[Taken], stage: &Path) -> Result<(), String> {
    for package in packages {
        let from = stage.join("unpacked").join(&package.name);
        package.unpack(&from)?;
        for dir in [&*format!("lib/{}-linux-gnu", arch::MACHINE), "lib64"] {
            for name in below(&from, dir)? {
                copy(&from.join(&name), &base.join(&name))?;
            }
        }
        let said = format!("usr/share/doc/{}/copyright", package.name);
        // That of libgcc is a link into a package of its own.
        if from.join(&said).is_file() {
            copy(&from.join(&said), &base.join(&said))?;
        }
        write(
            &base.join("var/lib/dpkg/status.d").join(&package.name),
            &package.control()?,
        )?;
        let certificates = from.join("usr/share/ca-certificates/mozilla");
        if certificates.is_dir() {
            write(&base.join(CERTIFICATES), &bundle(&certificates)?)?;
        }
    }
    let texts = [
        (
            "etc/passwd",
            format!(
                "root:x:0:0:root:/:/sbin/nologin\ntollgate:x:{USER}:{USER}:Tollgate:/var/lib/tollgate:/sbin/nologin\n"
            ),
        ),
        ("etc/group", format!("root:x:0:\ntollgate:x:{USER}:\n")),
        (
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
        ),
    ];
    for (path, text) in texts {
        write(&base.join(path), &text)?;
    }
    // Where a runtime mounts its own.
    for path in ["dev", "proc", "sys", "tmp", "var/lib", "var/log"] {
        make_dir(&base.join(path))?;
    }
    Ok(())
}

/// Shared libraries of a package's directory, by their paths in it.
fn below(package: &Path, dir: &str) -> Result<Vec<String>, String> {
    if !package.join(dir).is_dir() {
        return Ok(Vec::new());
    }
    let names = files(&package.join(dir))?.into_iter();
    let names = names.filter(|name| name.contains(".so"));
    Ok(names.map(|name| format!("{dir}/{name}")).collect())
}

/// All certificates of a directory as one file, as `update-ca-certificates` makes it.
fn bundle(dir: &Path) -> Result<String, String> {
    let mut bundle = String::new();
    for name in files(dir)? {
        let path = dir.join(name);
        let text =
            fs::read_to_string(&path).map_err(|cause| format!("{}: {cause}", path.display()))?;
        bundle.push_str(text.trim_end());
        bundle.push('\n');
    }
    Ok(bundle)
}

fn program_files(program: &Path, release: &Release, list: &str) -> Result<(), String> {
    release.copy_programs(&program.join("usr/bin"))?;
    let doc = program.join("usr/share/doc/tollgate");
    copy(
        &release.notices.join("THIRD-PARTY"),
        &doc.join("THIRD-PARTY"),
    )?;
    copy(&root().join("LICENSE"), &doc.join("LICENSE"))?;
    copy(&root().join("docs"), &doc.join("docs"))?;
    write(&doc.join("tollgate.cdx.json"), list)?;
    copy(
        &root().join("deploy/oci/tollgate.yaml"),
        &program.join("etc/tollgate/tollgate.yaml"),
    )
}

/// Packs members of a directory as a layer whose files belong to `owner`.
fn layer(
    release: &Release,
    layout: &Path,
    from: &Path,
    members: &[String],
    owner: u32,
    says: &'static str,
) -> Result<Layer, String> {
    let whole = from.with_extension("tar");
    let mut tar = tar(release, from, owner);
    succeed(tar.arg("--file").arg(&whole).args(members))?;
    let diff_id = sha256(&whole)?;
    let mut gzip = Command::new("gzip");
    succeed(gzip.args(["-9", "-n", "--force"]).arg(&whole))?;
    let blob = blob(layout, &from.with_extension("tar.gz"))?;
    Ok(Layer {
        diff_id,
        blob,
        says,
    })
}

/// Takes a file into a layout.
fn blob(layout: &Path, file: &Path) -> Result<Blob, String> {
    let digest = sha256(file)?;
    let told = |cause| format!("{}: {cause}", file.display());
    let size = fs::metadata(file).map_err(told)?.len();
    fs::rename(file, layout.join("blobs/sha256").join(&digest)).map_err(told)?;
    Ok(Blob { digest, size })
}

/// Writes the documents of a layout, each of which names those before it.
fn lay_out(release: &Release, dir: &Path, layers: &[Layer]) -> Result<(), String> {
    let revision = revision()?;
    let created = date(&release.epoch, "+%Y-%m-%dT%H:%M:%SZ")?;
    let labels = labels(&release.version, &revision, &created);
    let document = |name: &str, value: &Value| {
        let file = release.stage.join(name);
        write(&file, &value.to_string())?;
        blob(dir, &file)
    };
    let config = document("config.json", &config(layers, &created, &labels))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": described(CONFIG_TYPE, &config),
        "layers": layers.iter().map(|layer| described(LAYER_TYPE, &layer.blob)).collect::<Vec<_>>(),
        "annotations": labels,
    });
    let mut manifest = described(MANIFEST_TYPE, &document("manifest.json", &manifest)?);
    let called = json!({
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": format!("localhost/tollgate:{}", release.version),
    });
    if let Some(members) = manifest.as_object_mut() {
        members.insert("annotations".to_owned(), called);
        let platform = json!({ "architecture": arch::DEBIAN, "os": "linux" });
        members.insert("platform".to_owned(), platform);
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [manifest] });
    write(&dir.join("index.json"), &index.to_string())?;
    let version = json!({ "imageLayoutVersion": "1.0.0" });
    write(&dir.join("oci-layout"), &version.to_string())
}

/// The commit, unless a build elsewhere says which.
pub(super) fn revision() -> Result<String, String> {
    if let Ok(said) = std::env::var(REVISION) {
        return Ok(said);
    }
    let said = succeed(git(&root()).args(["rev-parse", "HEAD"]))?;
    Ok(said.trim().to_owned())
}

fn labels(version: &str, revision: &str, created: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "tollgate",
        "org.opencontainers.image.description": DESCRIPTION,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
    })
}

/// How a container of it is run, and what its layers are.
fn config(layers: &[Layer], created: &str, labels: &Value) -> Value {
    let diff_ids = layers
        .iter()
        .map(|layer| format!("sha256:{}", layer.diff_id));
    let history = layers
        .iter()
        .map(|layer| json!({ "created": created, "created_by": "cargo xtask dist", "comment": layer.says }));
    let ports = PORTS.map(|port| (port.to_owned(), json!({})));
    let volumes = OWN.map(|path| (format!("/{path}"), json!({})));
    json!({
        "created": created,
        "architecture": arch::DEBIAN,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": Value::Object(ports.into_iter().collect()),
            // Of a root that cannot be written, the volume is what can.
            "Env": ["PATH=/usr/bin", format!("SSL_CERT_FILE=/{CERTIFICATES}"), format!("TMPDIR=/{DATA}")],
            "Entrypoint": ["/usr/bin/tollgate"],
            "Cmd": ["run", "-c", "/etc/tollgate/tollgate.yaml"],
            "Volumes": Value::Object(volumes.into_iter().collect()),
            "WorkingDir": format!("/{DATA}"),
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": diff_ids.collect::<Vec<_>>() },
        "history": history.collect::<Vec<_>>(),
    })
}

fn described(media_type: &str, blob: &Blob) -> Value {
    json!({ "mediaType": media_type, "digest": format!("sha256:{}", blob.digest), "size": blob.size })
}
