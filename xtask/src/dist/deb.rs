//! The Debian package: programs, unit, user, a configuration that `dpkg` keeps, pages and completions.
//!
//! Not here: what its scripts do (`deploy/debian`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Release, arch, copy, date, files, make_dir, succeed, write};
use crate::cargo::root;

/// Where each shell looks for what it needs, below the root.
pub(super) const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/tollgate"),
    ("fish", "usr/share/fish/vendor_completions.d/tollgate.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_tollgate"),
];

/// Files of `deploy/debian` by where they go.
const INSTALLED: &[(&str, &str)] = &[
    (
        "tollgate.service",
        "usr/lib/systemd/system/tollgate.service",
    ),
    ("sysusers.conf", "usr/lib/sysusers.d/tollgate.conf"),
    ("tollgate.yaml", "etc/tollgate/tollgate.yaml"),
    ("copyright", "usr/share/doc/tollgate/copyright"),
];

/// Builds `tollgate_VERSION_amd64.deb`.
pub(super) fn deb(release: &Release) -> Result<(), String> {
    packed(release, &release.version, &release.out).map(drop)
}

/// The same under another version, in another place: what an upgrade is tried with.
pub(super) fn packed(release: &Release, version: &str, out: &Path) -> Result<PathBuf, String> {
    let dir = release.stage.join(format!("deb-{version}"));
    let from = root().join("deploy/debian");
    let control = fs::read_to_string(from.join("control"))
        .map_err(|cause| format!("deploy/debian/control: {cause}"))?;
    release.copy_programs(&dir.join("usr/bin"))?;
    for (name, to) in INSTALLED {
        copy(&from.join(name), &dir.join(to))?;
    }
    for (_, to) in COMPLETIONS {
        let name = super::file_name(to)?;
        copy(&release.pages.join("completions").join(name), &dir.join(to))?;
    }
    let doc = dir.join("usr/share/doc/tollgate");
    copy(&release.notices, &doc)?;
    copy(&root().join("examples"), &doc.join("examples"))?;
    copy(&root().join("docs"), &doc.join("docs"))?;
    let mut packed = vec![doc.join("changelog"), doc.join("NEWS.md")];
    copy(&root().join("CHANGELOG.md"), &doc.join("NEWS.md"))?;
    write(
        &doc.join("changelog"),
        &changelog(release, version, &control)?,
    )?;
    let pages = dir.join("usr/share/man/man1");
    copy(&release.pages.join("man1"), &pages)?;
    packed.extend(files(&pages)?.into_iter().map(|page| pages.join(page)));
    // Without a name and a time.
    succeed(Command::new("gzip").args(["-9", "-n"]).args(&packed))?;

    set_modes(&dir, &dir)?;
    let control = control
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", arch::DEBIAN)
        .replace("@SIZE@", &kib(&dir)?.to_string())
        .replace("@DEPENDS@", &depends(release));
    let debian = dir.join("DEBIAN");
    write(&debian.join("control"), &control)?;
    copy(&from.join("conffiles"), &debian.join("conffiles"))?;
    for script in ["postinst", "prerm", "postrm"] {
        copy(&from.join(script), &debian.join(script))?;
        set_mode(&debian.join(script), 0o755)?;
    }
    for plain in ["control", "conffiles"] {
        set_mode(&debian.join(plain), 0o644)?;
    }
    set_mode(&debian, 0o755)?;
    make_dir(out)?;
    let deb = out.join(format!("tollgate_{version}_{}.deb", arch::DEBIAN));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args([
        "--root-owner-group",
        "-Zxz",
        "-z6",
        "--threads-max=1",
        "--build",
    ])
    .arg(&dir)
    .arg(&deb)
    .env("SOURCE_DATE_EPOCH", &release.epoch);
    succeed(&mut dpkg)?;
    Ok(deb)
}

fn depends(release: &Release) -> String {
    let mut depends = format!("libc6 (>= {}), passwd", release.needs.glibc);
    if release.needs.has_libgcc() {
        depends.push_str(", libgcc-s1");
    }
    depends
}

/// In Debian's form, which tells of packages; what the program learnt stands beside it.
fn changelog(release: &Release, version: &str, control: &str) -> Result<String, String> {
    let maintainer = control
        .lines()
        .find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.ok_or("deploy/debian/control names no Maintainer")?;
    let date = date(&release.epoch, "+%a, %d %b %Y %H:%M:%S +0000")?;
    Ok(format!(
        "tollgate ({version}) unstable; urgency=medium\n\n  * What changed is in NEWS.md.gz.\n\n -- {maintainer}  {date}\n"
    ))
}

/// The sizes of all files, each in whole KiB: what a file system takes for its directories would be of one machine.
fn kib(dir: &Path) -> Result<u64, String> {
    let mut sum = 0;
    for name in files(dir)? {
        let path = dir.join(name);
        sum += if path.is_dir() {
            kib(&path)?
        } else {
            let found = fs::metadata(&path);
            let found = found.map_err(|cause| format!("{}: {cause}", path.display()))?;
            found.len().div_ceil(1024)
        };
    }
    Ok(sum)
}

/// Directories and programs may be run by everybody, the rest may be read.
fn set_modes(root: &Path, dir: &Path) -> Result<(), String> {
    set_mode(dir, 0o755)?;
    for name in files(dir)? {
        let path = dir.join(name);
        if path.is_dir() {
            set_modes(root, &path)?;
        } else {
            let is_program = path
                .strip_prefix(root)
                .is_ok_and(|path| path.starts_with("usr/bin"));
            set_mode(&path, if is_program { 0o755 } else { 0o644 })?;
        }
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|cause| format!("{}: {cause}", path.display()))
}
