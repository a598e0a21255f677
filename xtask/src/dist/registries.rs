//! Packages in the forms of the registries of Python and Node, a wheel and a tarball, each for the gate with its demo and for `prove`.
//!
//! Both hold the programs as they are: nothing of Python or Node stands between, and nothing is fetched or run when they are installed.
//! Invariant: the same bytes each time, as of all packages (`archive::tar`; `wheel pack` takes the time from `SOURCE_DATE_EPOCH`).
//! Not here: publishing them, which a person does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use super::archive::tar;
use super::build::{DEMO, GATE, PROVE};
use super::{Release, arch, copy, make_dir, succeed, write};
use crate::cargo::root;

/// What is packaged under one name.
pub(super) struct Product {
    /// In both registries.
    pub(super) name: &'static str,
    pub(super) programs: &'static [&'static str],
    summary: &'static str,
}

/// The gate, with its demo.
pub(super) const TOLLGATE: Product = Product {
    name: "tollgate",
    programs: &[GATE, DEMO],
    summary: "An AI gateway: every token passes the gate, every token is counted",
};
/// The proving ground. `prove` alone is another's name there.
pub(super) const TOLLGATE_PROVE: Product = Product {
    name: "tollgate-prove",
    programs: &[PROVE],
    summary: "Says what an AI gateway and the engines behind it can carry",
};

/// Makes the wheel and the tarball of a product. `notices` is what they hold of others' licences, `wheel` a Python that can pack one.
pub(super) fn packages(
    release: &Release,
    product: &Product,
    notices: &Path,
    python: &Path,
) -> Result<(), String> {
    wheel(release, product, notices, python)?;
    tarball(release, product, notices)
}

/// The tag of a wheel that needs nothing but a glibc.
pub(super) fn tag(glibc: &str) -> String {
    let version = glibc.replace('.', "_");
    format!("py3-none-manylinux_{version}_{}", arch::MACHINE)
}

/// `NAME-VERSION-py3-none-manylinux_….whl`, whose programs are scripts.
fn wheel(
    release: &Release,
    product: &Product,
    notices: &Path,
    python: &Path,
) -> Result<(), String> {
    let stem = format!("{}-{}", product.name.replace('-', "_"), release.version);
    let dir = fresh(release, "wheel", product)?;
    for name in product.programs {
        let scripts = dir.join(format!("{stem}.data/scripts"));
        program(release, name, &scripts)?;
    }
    let info = dir.join(format!("{stem}.dist-info"));
    for (from, name) in licences(notices) {
        copy(&from, &info.join("licenses").join(name))?;
    }
    let readme = fs::read_to_string(root().join("README.md"))
        .map_err(|cause| format!("README.md: {cause}"))?;
    let files: Vec<String> = licences(notices)
        .iter()
        .map(|(_, name)| format!("License-File: {name}\n"))
        .collect();
    let about = format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {}\nSummary: {}\nLicense-Expression: Apache-2.0\n{}\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}",
        product.name,
        release.version,
        product.summary,
        files.concat()
    );
    write(&info.join("METADATA"), &about)?;
    let tag = tag(&release.needs.glibc);
    let how =
        format!("Wheel-Version: 1.0\nGenerator: tollgate\nRoot-Is-Purelib: false\nTag: {tag}\n");
    write(&info.join("WHEEL"), &how)?;
    let mut pack = Command::new(python);
    pack.args(["-m", "wheel", "pack", "--dest-dir"])
        .arg(&release.out)
        .arg(&dir)
        .env("SOURCE_DATE_EPOCH", &release.epoch);
    succeed(&mut pack).map(drop)
}

/// `NAME-VERSION.tgz`, as `npm pack` calls it.
fn tarball(release: &Release, product: &Product, notices: &Path) -> Result<(), String> {
    let name = npm_name(product.name);
    let dir = fresh(release, "npm", product)?;
    let package = dir.join("package");
    for name in product.programs {
        program(release, name, &package.join("bin"))?;
    }
    for (from, name) in licences(notices) {
        copy(&from, &package.join(name))?;
    }
    copy(&root().join("README.md"), &package.join("README.md"))?;
    let bins = product.programs.iter();
    let bins = bins.map(|name| ((*name).to_owned(), format!("bin/{name}").into()));
    let about = json!({
        "name": name,
        "version": release.version,
        "description": product.summary,
        "license": "Apache-2.0",
        "bin": Value::Object(bins.collect::<Map<_, _>>()),
        "os": ["linux"],
        "cpu": [arch::NODE],
        "libc": ["glibc"],
    });
    let about = serde_json::to_string_pretty(&about).map_err(|cause| cause.to_string())?;
    write(&package.join("package.json"), &(about + "\n"))?;
    let mut tar = tar(release, &dir, 0);
    tar.args(["--use-compress-program", "gzip -9 -n", "--file"])
        .arg(release.out.join(format!("{name}-{}.tgz", release.version)))
        .arg("package");
    succeed(&mut tar).map(drop)
}

/// A version of a package has one tarball in Node's registry: another processor's programs are a package of another name.
fn npm_name(name: &str) -> String {
    match arch::NODE {
        "x64" => name.to_owned(),
        other => format!("{name}-{other}"),
    }
}

fn licences(notices: &Path) -> [(PathBuf, &'static str); 2] {
    [
        (root().join("LICENSE"), "LICENSE"),
        (notices.join("THIRD-PARTY"), "THIRD-PARTY"),
    ]
}

/// An empty directory in which it is put together.
fn fresh(release: &Release, form: &str, product: &Product) -> Result<PathBuf, String> {
    let dir = release.stage.join(form).join(product.name);
    drop(fs::remove_dir_all(&dir));
    make_dir(&dir)?;
    Ok(dir)
}

fn program(release: &Release, name: &str, to: &Path) -> Result<(), String> {
    let to = to.join(name);
    copy(&release.stage.join(name), &to)?;
    fs::set_permissions(&to, fs::Permissions::from_mode(0o755))
        .map_err(|cause| format!("{}: {cause}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::{arch, tag};

    #[test]
    fn a_wheel_says_the_glibc_that_its_programs_need() {
        let tags = ["2.28", "2.34"].map(tag);
        assert_eq!(
            tags,
            ["2_28", "2_34"].map(|glibc| format!("py3-none-manylinux_{glibc}_{}", arch::MACHINE))
        );
    }
}
