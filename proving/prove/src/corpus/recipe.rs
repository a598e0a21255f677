//! `prove corpus recipe`: which sets a corpus is to be made of, whether they are there and what they have to be, and the corpus itself.
//!
//! Invariant: nothing is fetched. What is built is what `prove corpus build --config` builds of the same file; a file with another checksum
//! than it must have is never built of.
//! Not here: building (`build`).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::figures::bytes;
use super::groups::Group;
use crate::files;
use crate::host::process::OWN;
use crate::text::{number, printable};

/// Files of a set at most.
const MOST_FILES: usize = 1_000_000;
/// Directories inside one another.
const MOST_DEEP: usize = 32;
/// Beside the recipe, what `sha256sum` prints of what is there.
const SUMS: &str = "sha256";

/// Says of each set of a recipe whether it is there, and builds the corpus once all are.
///
/// A recipe is a `corpus.toml` whose profiles say their `source`. Sets are placed by hand, each under the name that the recipe says;
/// nothing is fetched. Ends with 0 if all is there and as it must be, 1 if not, 2 if that cannot be said.
#[derive(Debug, Args)]
pub(crate) struct Recipe {
    /// The recipe.
    recipe: PathBuf,
    /// Where the sets lie [default: beside the recipe].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Builds the corpus here, once all is there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Builds it of those sets that are there.
    #[arg(long, requires = "out")]
    partial: bool,
    /// Writes the checksums of what is there beside the recipe, for the next time.
    #[arg(long)]
    write_checksums: bool,
    /// Arguments of `prove corpus build` besides, behind `--`.
    #[arg(last = true)]
    args: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Option<String>,
    seed: Option<u64>,
    #[serde(default)]
    profile: Vec<Group>,
}

/// A set, and what was found of it.
struct Found<'a> {
    group: &'a Group,
    files: Vec<PathBuf>,
    bytes: u64,
    /// Files whose checksum is another than it must be.
    wrong: Vec<String>,
    /// Files of which a checksum is known.
    checked: usize,
}

pub(super) fn recipe(options: &Recipe) -> super::Outcome {
    let text = files::read(&options.recipe)?;
    let file: File =
        toml::from_str(&text).map_err(|error| format!("{}: {error}", options.recipe.display()))?;
    let beside = options.recipe.parent().unwrap_or(Path::new("."));
    let data = options.data.as_deref().unwrap_or(beside);
    let sums_at = options.recipe.with_extension(SUMS);
    let known = sums(&sums_at)?;
    let mut all = Vec::new();
    let mut written = String::new();
    for group in &file.profile {
        let mut found = Found {
            group,
            files: Vec::new(),
            bytes: 0,
            wrong: Vec::new(),
            checked: 0,
        };
        for path in &group.paths {
            gather(&data.join(path), 0, &mut found.files)?;
        }
        found.files.sort();
        found.check(
            data,
            &known,
            options.write_checksums.then_some(&mut written),
        )?;
        all.push(found);
    }
    for found in &all {
        found.tell();
    }
    if options.write_checksums {
        files::replace(&sums_at, &written)?;
        println!("checksums: {}", super::shown(&sums_at));
    }
    let is_right = all.iter().all(|found| found.wrong.is_empty());
    let is_whole = all.iter().all(|found| !found.files.is_empty());
    let Some(out) = &options.out else {
        return Ok(is_right && is_whole);
    };
    if !is_right {
        eprintln!("error: files have other checksums than they must have; nothing is built");
        return Ok(false);
    }
    if !is_whole && !options.partial {
        eprintln!("error: sets are missing; place them, or build of the others with --partial");
        return Ok(false);
    }
    let there = all.iter().filter(|found| !found.files.is_empty());
    let there: Vec<&Group> = there.map(|found| found.group).collect();
    if there.is_empty() {
        eprintln!("error: no set is there");
        return Ok(false);
    }
    build(options, &file, &there, data, out)
}

impl Found<'_> {
    /// Reads every file once, where its checksum is known or wanted.
    fn check(
        &mut self,
        data: &Path,
        known: &BTreeMap<String, String>,
        mut written: Option<&mut String>,
    ) -> io::Result<()> {
        for file in &self.files {
            self.bytes += fs::metadata(file)?.len();
            let name = file.strip_prefix(data).unwrap_or(file);
            let name = name.to_string_lossy().into_owned();
            let must = known.get(&name);
            if must.is_none() && written.is_none() {
                continue;
            }
            let sum = sum_of(file)?;
            if let Some(must) = must {
                self.checked += 1;
                if *must != sum {
                    self.wrong.push(name.clone());
                }
            }
            if let Some(written) = written.as_mut() {
                written.push_str(&format!("{sum}  {name}\n"));
            }
        }
        Ok(())
    }

    fn tell(&self) {
        let group = self.group;
        let sessions = group.sessions.map_or_else(|| "all".to_owned(), number);
        let places: Vec<String> = group.paths.iter().map(|path| super::shown(path)).collect();
        let there = match self.files.len() {
            0 => format!("MISSING: place it at {}", places.join(", ")),
            1 => format!("there, 1 file, {}", bytes(self.bytes)),
            count => format!(
                "there, {} files, {}",
                number(count as u64),
                bytes(self.bytes)
            ),
        };
        let licence = group.licence.as_deref().unwrap_or("by record");
        println!(
            "{}: {sessions} sessions by reader {}; licence {}\n  {there}",
            printable(&group.name),
            printable(&group.reader),
            printable(licence)
        );
        if let Some(source) = &group.source {
            println!("  from {}", printable(source));
        }
        if self.checked > 0 {
            println!(
                "  {} of its files have known checksums, {} another",
                self.checked,
                self.wrong.len()
            );
        }
        for wrong in self.wrong.iter().take(10) {
            println!("  another checksum: {}", printable(wrong));
        }
    }
}

/// All regular files below a path, or the file that it is; none where it is not there.
fn gather(path: &Path, deep: usize, all: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(about) = fs::metadata(path) else {
        return Ok(());
    };
    if about.is_file() && all.len() < MOST_FILES {
        all.push(path.to_owned());
    }
    if about.is_dir() && deep < MOST_DEEP {
        for entry in fs::read_dir(path)? {
            gather(&entry?.path(), deep + 1, all)?;
        }
    }
    Ok(())
}

/// What `sha256sum` printed, by file; empty where there is no such file.
fn sums(path: &Path) -> Result<BTreeMap<String, String>, String> {
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = files::read(path).map_err(|error| error.to_string())?;
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        let (sum, name) = line
            .split_once("  ")
            .or_else(|| line.split_once(" *"))
            .unwrap_or_default();
        let is_sum = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        let wrong = || format!("{}:{number}: is no line of sha256sum", path.display());
        is_sum
            .then(|| (name.to_owned(), sum.to_ascii_lowercase()))
            .ok_or_else(wrong)
    });
    read.collect()
}

fn sum_of(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer)?;
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else {
            break;
        };
        digest.update(read);
    }
    let digest = digest.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn build(
    options: &Recipe,
    file: &File,
    there: &[&Group],
    data: &Path,
    out: &Path,
) -> super::Outcome {
    let mut command = Command::new(OWN);
    command.args(["corpus", "build"]);
    if let Some(model) = &file.model {
        command.args(["--model", model]);
    }
    if let Some(seed) = file.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    command.arg("--out").arg(out).args(&options.args);
    for group in there {
        command.args(["--profile", &group.name, "--reader", &group.reader]);
        if let Some(sessions) = group.sessions {
            command.args(["--sessions", &sessions.to_string()]);
        }
        if let Some(licence) = &group.licence {
            command.args(["--licence", licence]);
        }
        for (key, value) in &group.options {
            command.args(["--set", &format!("{key}={value}")]);
        }
        command.args(group.paths.iter().map(|path| data.join(path)));
    }
    let status = command.stdin(Stdio::null()).status()?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("prove corpus build ended with {status}").into()),
    }
}
