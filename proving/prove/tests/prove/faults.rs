//! Faulty subjects, scenarios and machines: each becomes a row or an error.
//!
//! Not here: what a race measures without faults (`main`).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use testing::{eventually, found};

use super::{PROVE, SAME, race, raced, raced_by, result, row, subjects};

#[test]
fn failing_subjects_become_error_rows_and_fail_the_race() {
    let leaky = format!(
        r#"setsid sh -c 'trap "" TERM; while :; do sleep 1; done' & exec {PROVE} upstream --port {{port}}"#
    );
    let home = tempfile::tempdir().expect("a directory");
    let end = home.path().join("end");
    // It is measured once before it dies, and dies before it is measured for the last time.
    let dying = format!(
        "{PROVE} upstream --port {{port}} & while [ ! -e {} ]; do sleep 0.02; done; kill -KILL $!; exit 3",
        end.display()
    );
    let dir = subjects(&[
        ("ends", "sh", &["-c", "echo no such option; exit 3"]),
        ("silent", "sleep", &["600"]),
        ("gone", "no-such-program-here", &["x"]),
        ("dying", "sh", &["-c", &dying]),
        ("leaky", "sh", &["-c", &leaky]),
        (
            "wrong",
            PROVE,
            &[
                "engine",
                "--listen",
                "127.0.0.1:{port}",
                "--model",
                "race-model",
            ],
        ),
    ]);
    impatient(&dir.path().join("silent/subject.toml"));
    let all = "direct,ends,silent,gone,dying,leaky,wrong";
    let further = ["--scenarios", "small", "--subjects", all];
    let ends_it = |line: &str| {
        if line.contains("small round 1/2 dying") {
            fs::write(&end, "").expect("a file");
        }
    };
    let (output, result) = raced_by(|| {
        // Of an attempt before.
        let _none = fs::remove_file(&end);
        seen(&mut race(dir.path(), 2, &further), ends_it)
    });
    assert_eq!(
        (output.status.code(), &result["trusted"]),
        (Some(1), &false.into())
    );
    let expected = [
        ("ends", "ended before it was ready"),
        ("ends", "no such option"),
        ("silent", "not ready within 1 s"),
        ("gone", "not found: none of no-such-program-here on PATH"),
        ("wrong", "the unary answer differs from the upstream's"),
        ("dying", "died"),
    ];
    for (subject, says) in expected {
        let problem = row(&result, subject, "small")["problem"]
            .as_str()
            .expect("a problem")
            .to_owned();
        assert!(problem.contains(says), "{subject}: {problem}");
    }
    let reported = result["subjects"].as_array().expect("subjects");
    let leaky = reported
        .iter()
        .find(|subject| subject["name"] == "leaky")
        .expect("leaky");
    assert!(
        leaky["problem"]
            .as_str()
            .expect("a problem")
            .contains("left processes behind"),
        "{leaky}"
    );
    assert_eq!(row(&result, "direct", "small")["status"], "measured");
}

/// A subject that is waited for no longer than it takes to see that it never answers.
fn impatient(manifest: &Path) {
    let text = fs::read_to_string(manifest).expect("a manifest");
    let patient = "ready_seconds = 100";
    assert!(text.contains(patient), "{text}");
    fs::write(manifest, text.replace(patient, "ready_seconds = 1")).expect("a file");
}

/// Runs a race and looks at each line that it says meanwhile.
fn seen(race: &mut Command, look: impl Fn(&str) + Sync) -> Output {
    let mut child = race.spawn().expect("prove runs");
    let lines = BufReader::new(child.stderr.take().expect("its words")).lines();
    thread::scope(|scope| {
        scope.spawn(|| lines.map_while(Result::ok).for_each(|line| look(&line)));
        child.wait_with_output().expect("its output")
    })
}

#[test]
fn too_few_descriptors_is_one_error_row_instead_of_many_failures() {
    let dir = subjects(&[]);
    let output = race(dir.path(), 1, &["--scenarios", "many"])
        .output()
        .expect("prove");
    let problem = row(&result(&output), "direct", "many")["problem"]
        .as_str()
        .expect("a problem")
        .to_owned();
    assert!(problem.contains("too few file descriptors"), "{problem}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_missing_build_of_an_own_binary_refuses_the_whole_race() {
    let dir = subjects(&[]);
    fs::create_dir(dir.path().join("ours")).expect("a directory");
    let toml = "summary = 'x'\nfind = { cargo = 'no-such-package' }\nstart = ['run']\n";
    fs::write(dir.path().join("ours/subject.toml"), toml).expect("a file");
    let output = race(dir.path(), 1, &["--scenarios", "small"])
        .output()
        .expect("prove");
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        says.contains("cargo build --profile dist -p no-such-package") && output.stdout.is_empty(),
        "{says}"
    );
}

#[test]
fn a_typo_in_a_scenario_is_reported_with_its_location_and_a_suggestion() {
    let dir = subjects(&[]);
    let path = dir.path().join("race.toml");
    fs::write(&path, "[[scenario]]\nname = 'x'\nusres = 4\n").expect("a file");
    let output = race(dir.path(), 1, &[]).output().expect("prove");
    let says = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    for part in [&*path.to_string_lossy(), "line 3", "usres", "`users`"] {
        assert!(says.contains(part), "{part}: {says}");
    }
}

#[test]
fn a_binary_that_is_older_than_its_sources_is_measured_with_a_warning() {
    let dir = subjects(&[]);
    let release = dir.path().join("target/release");
    fs::create_dir_all(&release).expect("a directory");
    fs::copy(PROVE, release.join("gate")).expect("a binary");
    let source = dir.path().join("main.rs");
    fs::write(&source, "").expect("a file");
    let written = fs::metadata(&source).and_then(|about| about.modified());
    let built = fs::File::open(release.join("gate")).expect("the binary");
    built
        .set_modified(written.expect("a time") - Duration::from_secs(60))
        .expect("a time");
    let list = format!("{}: {}\n", release.join("gate").display(), source.display());
    fs::write(release.join("gate.d"), list).expect("a file");
    fs::create_dir(dir.path().join("ours")).expect("a directory");
    let toml =
        "summary = 'x'\nfind = { cargo = 'gate' }\nstart = ['upstream', '--port', '{port}']\n";
    fs::write(dir.path().join("ours/subject.toml"), toml).expect("a file");
    let further = ["--scenarios", "small", "--subjects", "ours"];
    let mut race = race(dir.path(), 1, &further);
    race.env("CARGO_TARGET_DIR", dir.path().join("target"));
    let (output, result) = raced(&mut race);
    assert_eq!(row(&result, "ours", "small")["status"], "measured");
    let reported = result["subjects"].to_string();
    assert!(reported.contains("the binary is older than"), "{reported}");
    let table = String::from_utf8_lossy(&output.stderr);
    assert!(table.contains("note: the binary is older than"), "{table}");
}

#[test]
fn without_permission_for_cgroups_a_quota_is_an_error_row() {
    let dir = subjects(&[SAME]);
    let scenarios = ["--scenarios", "quota_small,small", "--subjects", "same"];
    let further = [&scenarios[..], &["--cgroup", "/proc/self"]].concat();
    let (output, result) = raced(&mut race(dir.path(), 1, &further));
    let problem = row(&result, "same", "quota_small")["problem"].to_string();
    assert!(problem.contains("no permission for cgroups"), "{problem}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(row(&result, "same", "small")["status"], "measured");
}

#[test]
fn without_perf_a_profile_says_what_is_missing_and_the_race_succeeds() {
    let dir = subjects(&[("same", PROVE, &["upstream", "--port", "{port}"])]);
    let further = ["--scenarios", "small", "--subjects", "same", "--profile"];
    let mut race = race(dir.path(), 1, &further);
    let (output, _) = raced(race.env("PATH", "/nowhere"));
    let table = String::from_utf8_lossy(&output.stderr);
    assert!(
        table.contains("perf cannot be run") && table.contains("linux-perf"),
        "{table}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn subjects_end_however_prove_ends() {
    for signal in ["INT", "TERM", "KILL"] {
        let dir = subjects(&[SAME]);
        let child = race(dir.path(), 1_000, &["--scenarios", "small"]).spawn();
        let mut child = child.expect("prove");
        let ports = || upstream_ports(child.id()).into_iter().next();
        let port = found("an upstream", ports);
        let kill = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(kill.expect("kill").success());
        child.wait().expect("an end");
        let nobody = format!("SIG{signal}: nobody listens on {port} any more");
        eventually(&nobody, || {
            std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
        });
    }
}

/// Ports of the upstreams that descend from `ancestor`, from their command lines.
fn upstream_ports(ancestor: u32) -> Vec<u16> {
    let port = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = line.split('\0').skip_while(|word| *word != "--port");
        words.nth(1)?.parse().ok()
    };
    started_by(ancestor).iter().filter_map(port).collect()
}

/// The processes that `prove` has started: the children of its guards.
pub(super) fn started_by(prove: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let path = format!("/proc/{pid}/task/{pid}/children");
        fs::read_to_string(path)
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    };
    children(prove).into_iter().flat_map(children).collect()
}
