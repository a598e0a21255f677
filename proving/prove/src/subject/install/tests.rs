//! Places, patterns and advice; and an install that cannot work.

use std::fs;
use std::path::Path;

use super::{Install, find_below};

#[test]
fn subjects_with_the_same_packages_share_a_place_and_others_do_not() {
    let place = |packages: &[&str]| {
        let packages = packages.iter().map(|&name| name.to_owned()).collect();
        Install::Pip(packages).place(Path::new("race"))
    };
    let one = place(&["litellm[proxy]==1.2"]).expect("a place");
    assert_eq!(Some(&one), place(&["litellm[proxy]==1.2"]).as_ref());
    assert_ne!(Some(&one), place(&["litellm[proxy]==1.3"]).as_ref());
    assert_eq!(one, Path::new("race/pip-litellm_proxy___1.2"));
    assert_eq!(Install::Apt("nginx".into()).place(Path::new("race")), None);
}

#[test]
fn a_star_stands_for_one_name_and_only_files_count() {
    let dir = tempfile::tempdir().expect("a directory");
    let deep = dir.path().join("lib/python3.99/site-packages/x");
    fs::create_dir_all(&deep).expect("a directory");
    fs::write(deep.join("program"), "").expect("a file");
    let found = find_below(dir.path(), "lib/*/site-packages/x/program");
    assert_eq!(found, Some(deep.join("program")));
    assert_eq!(find_below(dir.path(), "lib/*/site-packages/x"), None);
    assert_eq!(find_below(dir.path(), "lib/*/program"), None);
}

#[test]
fn what_no_registry_carries_says_so_and_starts_nothing() {
    let by_hand = Install::ByHand("build it from source".into());
    let says = by_hand.fetch(Path::new("nowhere")).expect_err("by hand");
    assert_eq!(says, "no registry carries it: build it from source");
}

#[test]
fn a_fetch_that_fails_names_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let in_the_way = dir.path().join("pip-x__1");
    fs::write(&in_the_way, "a file where a directory should be").expect("a file");
    let says = Install::Pip(vec!["x==1".into()])
        .fetch(dir.path())
        .expect_err("no directory there");
    assert!(says.contains("python3 -m venv"), "{says}");
}
