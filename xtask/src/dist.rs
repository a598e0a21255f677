//! `cargo xtask dist`: what is shipped. An archive whose binaries run on old systems, their symbols apart, a Debian package,
//! an image for containers, wheels and tarballs of Node, the proving ground, what each is made of, and the sums of all of them. Signed is what was made before, by a verb of its own.
//!
//! Invariant: two builds of one source give the same bytes, whatever directory they run in: times are the commit's, owners are 0,
//! orders are sorted, and no directory of the machine is in the binary (`dist --twice` compares). It is in the symbols: of what zig
//! compiles by itself. Nothing is built, packaged or tried while the environment holds the signing key: what others wrote would see it.
//! Not here: the profile that it is built with (`Cargo.toml`), a build laid out by a profile of the hot path (`pgo`).

mod arch;
mod archive;
mod build;
mod crates;
mod deb;
mod debian;
mod image;
mod licences;
mod registries;
mod sbom;
mod signature;
mod trial;
mod twice;
#[cfg(test)]
mod workflow;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{metadata, root, target_dir};
use crate::command::succeed;
use crate::git::git;
use crate::setup;

/// What to do.
pub(crate) enum Plan<'a> {
    /// Build, package and try.
    All,
    /// As `All`, of a gate that is there, with the demo and the proving ground beside it.
    Of(&'a Path),
    /// Build and package.
    Untried,
    /// As `All`, twice, in two directories, and compare; nothing may be left untried but what the machine refuses, where that is so.
    Twice { is_all_tried: bool },
    /// Install what packages are made and tried with.
    Setup,
    /// Try what was packaged, and the upgrade from an older package where one is named.
    Try(Option<&'a Path>),
    /// Say whether a tag is that of this version.
    Tag(&'a str),
    /// Sign the sums of what was packaged.
    Sign,
}

impl<'a> Plan<'a> {
    /// Of the words after `dist`.
    pub(crate) fn of(words: &[&'a str]) -> Option<Self> {
        match words {
            [] => Some(Self::All),
            ["--twice"] => Some(Self::Twice {
                is_all_tried: false,
            }),
            ["--twice", "--all-tried"] => Some(Self::Twice { is_all_tried: true }),
            ["--untried"] => Some(Self::Untried),
            ["setup"] => Some(Self::Setup),
            ["try"] => Some(Self::Try(None)),
            &["try", older] => Some(Self::Try(Some(Path::new(older)))),
            ["tag", tag] => Some(Self::Tag(tag)),
            ["sign"] => Some(Self::Sign),
            &[binary] if !binary.starts_with('-') => Some(Self::Of(Path::new(binary))),
            _ => None,
        }
    }
}

/// What is packaged, and how it calls itself.
struct Release {
    version: String,
    /// Seconds since 1970 of the commit: the time of every file.
    epoch: String,
    /// The gate, without symbols.
    binary: PathBuf,
    /// Of all programs.
    needs: build::Needs,
    /// Where manual pages and completions lie, and nothing else.
    pages: PathBuf,
    /// What each package holds of what was written by others: their licences, and the list of crates.
    notices: PathBuf,
    /// Where packages go.
    out: PathBuf,
    /// Where they are put together.
    stage: PathBuf,
}

/// Does what is planned.
pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    signature::refuse_key(plan, std::env::var_os(signature::KEY).as_deref())?;
    match plan {
        Plan::Tag(tag) => return tagged(tag, env!("CARGO_PKG_VERSION")),
        Plan::Setup => return setup::packaging(),
        _ => {}
    }
    let target = target_dir(&metadata()?)?;
    if let Plan::Sign = plan {
        println!("{}", signature::sign(&made(&target)?)?);
        return Ok(());
    }
    if let Plan::Try(older) = plan {
        let untried = trial::run(&Release::made(&target)?, *older)?;
        print!("{untried}");
        return Ok(());
    }
    let release = package(plan, &target)?;
    println!("{}", told(&release)?);
    if let Plan::Twice { .. } = plan {
        twice::compare(&release, &target)?;
    }
    if let Plan::Untried = plan {
        return Ok(());
    }
    let untried = trial::run(&release, None)?;
    print!("{untried}");
    match plan {
        Plan::Twice { is_all_tried: true } => untried.all_tried(),
        _ => Ok(()),
    }
}

/// Builds and packages.
fn package(plan: &Plan, target: &Path) -> Result<Release, String> {
    let (out, stage) = dirs(target);
    for dir in [&out, &stage] {
        drop(fs::remove_dir_all(dir));
        make_dir(dir)?;
    }
    let epoch = epoch()?;
    let gate = match plan {
        Plan::Of(binary) => (*binary).to_owned(),
        _ => build::build(target, &epoch)?,
    };
    build::split(&gate, &stage, build::GATE)?;
    for name in [build::DEMO, build::PROVE] {
        build::split(&gate.with_file_name(name), &stage, name)?;
    }
    let release = Release::of(epoch, out, stage)?;
    let pages = &release.pages;
    for (shell, file) in deb::COMPLETIONS {
        let text = succeed(Command::new(&release.binary).args(["completions", shell]))?;
        write(&pages.join("completions").join(file_name(file)?), &text)?;
    }
    succeed(
        Command::new(&release.binary)
            .arg("man")
            .arg(pages.join("man1")),
    )?;
    let linked = crates::linked(&build::PACKAGES)?;
    let tools = build::tools_dir(target);
    let third_party = licences::third_party(&linked, &tools)?;
    write(&release.notices.join("THIRD-PARTY"), &third_party)?;
    let list = sbom::sbom(&release, &linked, &[])?;
    write(&release.notices.join("tollgate.cdx.json"), &list)?;
    archive::archive(&release)?;
    archive::symbols(&release)?;
    deb::deb(&release)?;
    image::image(&release, &linked)?;
    let proving = release.stage.join("notices-of-prove");
    let linked = crates::linked(&[build::PROVE])?;
    write(
        &proving.join("THIRD-PARTY"),
        &licences::third_party(&linked, &tools)?,
    )?;
    archive::prove(&release, &proving)?;
    let python = build::tools(&tools)?.join("python");
    registries::packages(&release, &registries::TOLLGATE, &release.notices, &python)?;
    registries::packages(&release, &registries::TOLLGATE_PROVE, &proving, &python)?;
    sums(&release.out)?;
    Ok(release)
}

/// Where an earlier run put packages.
fn made(target: &Path) -> Result<PathBuf, String> {
    let (out, _) = dirs(target);
    if out.join(SUMS).is_file() {
        return Ok(out);
    }
    Err(format!(
        "no packages in {}: run `cargo xtask dist` first",
        out.display()
    ))
}

/// Where packages go, and where they are put together.
fn dirs(target: &Path) -> (PathBuf, PathBuf) {
    (target.join("packages"), target.join("packages-stage"))
}

impl Release {
    /// Of programs that were split from their symbols in `stage`.
    fn of(epoch: String, out: PathBuf, stage: PathBuf) -> Result<Self, String> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            needs: build::Needs::of(&all_programs(&stage))?,
            epoch,
            binary: stage.join(build::GATE),
            pages: stage.join("pages"),
            notices: stage.join("notices"),
            out,
            stage,
        })
    }

    /// As it was packaged by an earlier run.
    fn made(target: &Path) -> Result<Self, String> {
        let (_, stage) = dirs(target);
        Self::of(epoch()?, made(target)?, stage)
    }

    /// Puts the programs, without symbols, into a directory.
    fn copy_programs(&self, to: &Path) -> Result<(), String> {
        for name in build::PROGRAMS {
            copy(&self.stage.join(name), &to.join(name))?;
        }
        Ok(())
    }

    /// What the archive, and its directory, is called.
    fn name(&self) -> String {
        format!("tollgate-{}-{}-linux", self.version, arch::MACHINE)
    }

    /// The Debian package.
    fn deb(&self) -> PathBuf {
        self.out
            .join(format!("tollgate_{}_{}.deb", self.version, arch::DEBIAN))
    }
}

/// Where the programs of all packages are in the stage.
fn all_programs(stage: &Path) -> Vec<PathBuf> {
    let names = build::PROGRAMS.into_iter().chain([build::PROVE]);
    names.map(|name| stage.join(name)).collect()
}

/// Says that a release of this tag is one of this version.
fn tagged(tag: &str, version: &str) -> Result<(), String> {
    if tag.strip_prefix('v') == Some(version) {
        return Ok(());
    }
    Err(format!(
        "the tag {tag} is not that of version {version}: tag it v{version}, or set `version` in Cargo.toml"
    ))
}

/// The commit's time, unless `SOURCE_DATE_EPOCH` says another.
fn epoch() -> Result<String, String> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(said);
    }
    let said = succeed(git(&root()).args(["log", "-1", "--format=%ct"]))?;
    Ok(said.trim().to_owned())
}

/// That time in words, such as `+%Y-%m-%d` asks for, in UTC.
fn date(epoch: &str, format: &str) -> Result<String, String> {
    let mut date = Command::new("date");
    date.args(["-u", "-d", &format!("@{epoch}"), format])
        .env("LC_ALL", "C");
    Ok(succeed(&mut date)?.trim().to_owned())
}

/// What holds the sums of all packages.
const SUMS: &str = "SHA256SUMS";

/// Writes `SHA256SUMS` of all that lies in a directory.
fn sums(dir: &Path) -> Result<(), String> {
    let mut sha256sum = Command::new("sha256sum");
    // Of a directory there is no sum: it says so.
    sha256sum.args(files(dir)?).current_dir(dir);
    let text = succeed(&mut sha256sum)?;
    write(&dir.join(SUMS), &text)
}

/// Holds `SHA256SUMS` of a directory against all that lies there.
fn check_sums(dir: &Path) -> Result<(), String> {
    let mut sha256sum = Command::new("sha256sum");
    sha256sum.args(["--check", "--strict", "--quiet", SUMS]);
    succeed(sha256sum.current_dir(dir))?;
    let text = fs::read_to_string(dir.join(SUMS)).map_err(|cause| format!("{SUMS}: {cause}"))?;
    let listed = |name: &str| {
        text.lines()
            .any(|line| line.ends_with(&format!("  {name}")))
    };
    let is_signature = |name: &str| signature::FILES.contains(&name);
    let names = files(dir)?.into_iter();
    let mut beside = names.filter(|name| *name != SUMS && !is_signature(name) && !listed(name));
    match beside.next() {
        Some(name) => Err(format!("{}: {name} is not in {SUMS}", dir.display())),
        None => Ok(()),
    }
}

/// SHA-256 of a file, in hexadecimal digits.
fn sha256(path: &Path) -> Result<String, String> {
    let said = succeed(Command::new("sha256sum").arg(path))?;
    let sum = said.split_whitespace().next().unwrap_or_default();
    Ok(sum.trim_start_matches('\\').to_owned())
}

/// Names of what lies in a directory, sorted.
fn files(dir: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn told(release: &Release) -> Result<String, String> {
    let mut lines = vec![format!(
        "tollgate {}: needs glibc {} and {}",
        release.version,
        release.needs.glibc,
        release.needs.libraries.join(" ")
    )];
    let size = |path: &Path| {
        let found = fs::metadata(path).map_err(|cause| format!("{}: {cause}", path.display()));
        found.map(|found| format!("{:>12}", found.len()))
    };
    for path in all_programs(&release.stage) {
        let name = path.file_name().unwrap_or_default().display();
        lines.push(format!("{}  {name}", size(&path)?));
    }
    for name in files(&release.out)? {
        let path = release.out.join(&name);
        if path.is_file() {
            lines.push(format!("{}  {name}", size(&path)?));
        }
    }
    Ok(lines.join("\n"))
}

fn make_dir(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|cause| format!("{}: {cause}", dir.display()))
}

/// Writes a file, and the directories above it.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if let Some(dir) = path.parent() {
        make_dir(dir)?;
    }
    fs::write(path, text).map_err(|cause| format!("{}: {cause}", path.display()))
}

/// Copies a file or a directory with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(dir) = to.parent() {
        make_dir(dir)?;
    }
    succeed(Command::new("cp").arg("-rT").arg(from).arg(to)).map(drop)
}

fn file_name(path: &str) -> Result<&str, String> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| format!("{path} names no file"))
}

#[cfg(test)]
mod tests {
    use super::{SUMS, check_sums, fs, sums, tagged};

    #[test]
    fn sums_cover_all_that_lies_beside_them() {
        let dir = std::env::temp_dir().join(format!("tollgate-sums-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let put = |name: &str, text: &str| fs::write(dir.join(name), text).expect("a file");
        put("a", "bytes");
        sums(&dir).expect("sums");
        put("SHA256SUMS.sig", "");
        assert_eq!(check_sums(&dir), Ok(()));
        put("b", "more");
        let says = check_sums(&dir).expect_err("b came later");
        assert!(says.ends_with("b is not in SHA256SUMS"), "{says}");
        fs::remove_file(dir.join("b")).expect("removed");
        put("a", "others");
        check_sums(&dir).expect_err("a changed");
        for name in ["SHA256SUMS.sig", SUMS] {
            fs::remove_file(dir.join(name)).expect("removed");
        }
        fs::create_dir(dir.join("unpacked")).expect("a directory");
        let says = sums(&dir).expect_err("a directory has no sum");
        assert!(says.contains("unpacked"), "{says}");
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_tag_is_that_of_the_version_or_says_what_to_do() {
        assert_eq!(tagged("v1.2.3", "1.2.3"), Ok(()));
        for tag in ["1.2.3", "v1.2.4", "v1.2.3-rc1", ""] {
            let says = tagged(tag, "1.2.3").expect_err("another tag");
            assert!(says.contains("tag it v1.2.3"), "{says}");
        }
    }
}
