//! Manifests good and bad.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::manifest::{Find, parse};
use super::{Places, Subject, SubjectError};

fn fault(text: &str) -> String {
    parse(Path::new("gateways/x/subject.toml"), text)
        .expect_err("a fault")
        .to_string()
}

#[test]
fn a_typing_error_names_the_file_and_the_field() {
    let says = fault("summary = 'x'\nfind = { path = ['x'] }\nstart = ['-c']\nreddy_seconds = 3\n");
    assert!(
        says.starts_with("gateways/x/subject.toml: ") && says.contains("reddy_seconds"),
        "{says}"
    );
    let says = fault("summary = 'x'\nfind = { path = ['x'] }\nstart = '-c'\n");
    assert!(
        says.contains("start = '-c'") && says.contains("line 3"),
        "{says}"
    );
    let says = fault("summary = 'x'\nfind = { package = 'x' }\nstart = ['-c']\n");
    assert!(says.contains("package") && says.contains("cargo"), "{says}");
}

#[test]
fn fields_that_make_no_sense_together_are_refused() {
    assert!(fault("summary = 'x'\nfind = { path = [] }\nstart = ['a']").contains("`find.path`"));
    assert!(fault("summary = 'x'\nfind = { cargo = 'x' }").contains("`start`"));
    assert!(fault("summary = 'x'\nfind = 'upstream'\nstart = ['a']").contains("`start`"));
    for replicas in [0, 17] {
        let text = format!(
            "summary = 'x'\nfind = {{ cargo = 'x' }}\nstart = ['a']\nreplicas = {replicas}"
        );
        assert!(fault(&text).contains("`replicas` is from 1 to 16"));
    }
    assert!(fault("summary = 'x'\nfind = 'upstream'\nreplicas = 2").contains("`replicas` has no"));
    let installed = "summary = 'x'\nfind = { installed = 'bin/x' }\nstart = ['a']\n";
    assert!(fault(installed).contains("`find.installed`"));
    let unpinned = "install = { pip = ['x'] }";
    assert!(fault(&format!("{installed}{unpinned}")).contains("name==1.2.3"));
    let unpinned = "install = { npm = ['@x/y'] }";
    assert!(fault(&format!("{installed}{unpinned}")).contains("name@1.2.3"));
    let counting = "find = { path = ['x'] }\nstart = ['a']\n[counting]\nurl = 'x'\ncalls = 'a'\n\
        results = 'b'\nlabel = 'c'\ncounted = []";
    assert!(fault(&format!("summary = 'x'\n{counting}")).contains("`counting.counted`"));
    assert!(
        fault("summary = 'x'\nfind = { path = ['x'] }\nstart = ['a']\ndiffers = ['id']")
            .contains("`differs`")
    );
}

#[test]
fn every_placeholder_is_filled_in_files_and_arguments() {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("x"), dir.path().join("run"));
    std::fs::create_dir(&from).expect("a directory");
    let toml = "summary = 'x'\nfind = { path = ['sh'] }\nstart = ['-c', '{dir}/x.conf', '{cores}']\n\
        env = { UP = 'port {upstream_port}' }\n\
        [client.headers]\nx-up = 'http://127.0.0.1:{upstream_port}/v1'\n";
    std::fs::write(from.join("subject.toml"), toml).expect("a file");
    std::fs::write(
        from.join("x.conf"),
        "listen {port} {admin_port}; up {upstream_port} {two_port}; {other}",
    )
    .expect("a file");
    let subjects = Subject::load_all(dir.path(), &[]).expect("one subject");
    assert_eq!(subjects.len(), 1);
    let places = Places {
        port: 1,
        admin_port: 2,
        upstream_port: 3,
        further_ports: [("two".to_owned(), 9)].into(),
        issuer_port: 5,
        cores: 4,
        dir: to.clone(),
    };
    let launch = subjects[0].render(&places).expect("files");
    assert_eq!(launch.env["UP"], "port 3");
    assert_eq!(launch.client.headers["x-up"], "http://127.0.0.1:3/v1");
    assert_eq!(
        launch.args,
        [
            "-c".into(),
            to.join("x.conf").display().to_string(),
            "4".into()
        ]
    );
    let conf = std::fs::read_to_string(to.join("x.conf")).expect("a file");
    assert_eq!(conf, "listen 1 2; up 3 9; {other}");
    assert!(!to.join("subject.toml").exists());

    let without = Places {
        further_ports: BTreeMap::new(),
        ..places
    };
    let says = subjects[0]
        .render(&without)
        .expect_err("no port")
        .to_string();
    assert!(
        says.contains("x.conf: nothing here gives {two_port}"),
        "{says}"
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("one")).expect("a directory");
    std::fs::write(
        dir.path().join("one/subject.toml"),
        "summary = 'x'\nfind = 'upstream'",
    )
    .expect("a file");
    let error = Subject::load_all(dir.path(), &["two".into()]).expect_err("no such subject");
    assert!(
        matches!(&error, SubjectError::Unknown { known, .. } if known == "one"),
        "{error}"
    );
}

#[test]
fn a_program_that_is_missing_says_how_to_get_it() {
    let manifest = "summary = 'x'\ninstall = { apt = 'x' }\nfind = { path = ['no-such-program-x'] }\nstart = ['-c']";
    let manifest = parse(Path::new("x"), manifest).expect("a manifest");
    let subject = Subject {
        name: "x".into(),
        dir: PathBuf::from("/"),
        manifest,
    };
    assert!(
        subject
            .program()
            .expect_err("missing")
            .to_string()
            .contains("apt-get install x")
    );
    let mut ours = subject;
    ours.manifest.find = Find::Cargo("no-such-binary".into());
    let says = ours.program().expect_err("missing").to_string();
    assert!(
        says.contains("cargo build --profile dist -p no-such-binary"),
        "{says}"
    );
}

#[test]
fn templates_of_a_likeness_are_rendered_below_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join("gateways").join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    };
    write("one/subject.toml", "summary = 'x'\nfind = 'upstream'\n");
    write("one/a.conf", "a of one");
    write("one/b.conf", "b of one");
    write(
        "two/subject.toml",
        "summary = 'x'\nfind = { path = ['sh'] }\nstart = ['x']\nlike = 'one'\nscenarios = ['quota_']\n",
    );
    write("two/b.conf", "b of two");
    let base = dir.path().join("gateways");
    let two = Subject::load_all(&base, &["two".into()])
        .expect("a subject")
        .remove(0);
    assert!(two.takes_part_in("quota_half_c32") && !two.takes_part_in("unary_1k_c32"));
    let places = Places {
        port: 1,
        admin_port: 2,
        upstream_port: 3,
        further_ports: BTreeMap::new(),
        issuer_port: 5,
        cores: 4,
        dir: dir.path().join("run"),
    };
    two.render(&places).expect("files");
    let read = |name: &str| std::fs::read_to_string(places.dir.join(name)).expect("a file");
    assert_eq!(
        (read("a.conf").as_str(), read("b.conf").as_str()),
        ("a of one", "b of two")
    );
}

#[test]
fn what_a_registry_carries_is_fetched_only_when_asked_for() {
    let text = "summary = 'x'\nfind = { installed = 'bin/x' }\ninstall = { pip = ['x==1'] }\nstart = ['a']";
    let dir = tempfile::tempdir().expect("a directory");
    let subject = Subject {
        name: "x".into(),
        dir: dir.path().into(),
        manifest: parse(Path::new("x"), text).expect("a manifest"),
    };
    let says = subject.program().expect_err("not there").to_string();
    assert_eq!(
        says,
        "not found: no bin/x was installed; `--install` gets x==1 by pip"
    );
}

#[test]
fn every_subject_that_is_shipped_parses_and_its_likeness_is_there() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gateways");
    let subjects = Subject::load_all(&dir, &[]).expect("subjects");
    let names: Vec<&str> = subjects
        .iter()
        .map(|subject| subject.name.as_str())
        .collect();
    for name in [
        "direct", "tollgate", "nginx", "envoy", "litellm", "portkey", "kong",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    for subject in &subjects {
        if let Some(like) = &subject.manifest.like {
            assert!(names.contains(&like.as_str()), "{like}");
        }
        if let Some(unmetered) = &subject.manifest.unmetered {
            let named = [unmetered.clone()];
            Subject::load_all(&dir, &named).expect(unmetered);
        }
    }
}

#[test]
fn a_subject_that_must_be_named_takes_part_where_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, more) in [("a", ""), ("b", "only_when_named = true\n")] {
        std::fs::create_dir(dir.path().join(name)).expect("a directory");
        let toml = format!("summary = 'x'\nfind = {{ path = ['x'] }}\nstart = ['-c']\n{more}");
        std::fs::write(dir.path().join(name).join("subject.toml"), toml).expect("a file");
    }
    let names = |wanted: &[String]| -> Vec<String> {
        let subjects = Subject::load_all(dir.path(), wanted).expect("subjects");
        subjects.into_iter().map(|subject| subject.name).collect()
    };
    assert_eq!(names(&[]), ["a"]);
    assert_eq!(names(&["b".into(), "a".into()]), ["b", "a"]);
}

#[test]
fn the_metrics_of_the_documentation_are_read() {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        metrics: BTreeMap<String, super::manifest::Metric>,
    }
    for (page, text) in crate::pages::pieces("metrics") {
        let part: Part = toml::from_str(&text).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(part.metrics.contains_key("limited"), "{page}");
    }
}

#[test]
fn a_version_tells_of_a_build_that_is_not_what_is_shipped() {
    let told = |version| super::other_profile(version);
    assert_eq!(told("tollgate 0.1.0 (release build)"), Some("release"));
    assert_eq!(told("tollgate 0.1.0 (dist build)"), None);
    assert_eq!(told("tollgate 0.1.0"), None);
    assert_eq!(told("nginx version: nginx/1.26 (Debian)"), None);
}
