//! Each rule holds for this repository, and each rule can fail: a canary for every one.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::graph::Graph;
use super::tree::{File, Tree};
use super::{
    Fault, all_faults, arrows, blocks, circles, deny, fuzz, least_versions, links, profiles,
    purity, sizes, sources, troubleshooting, vectors,
};
use crate::cargo::{metadata, root};

/// This repository, read once for all tests.
static TREE: LazyLock<Tree> = LazyLock::new(|| Tree::read(&root()).expect("the tree is readable"));
static METADATA: LazyLock<Value> = LazyLock::new(|| metadata().expect("cargo metadata works"));

#[test]
fn this_repository_is_tidy() {
    let graph = Graph::read(&METADATA).expect("it is understood");
    let faults: Vec<String> = all_faults(&TREE, &graph)
        .iter()
        .map(Fault::to_string)
        .collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn canary_an_arrow_that_is_not_listed_is_found() {
    let mut metadata = METADATA.clone();
    let proxy = member(&metadata, "proxy");
    let wire = member(&metadata, "wire");
    node(&mut metadata, &wire)["deps"]
        .as_array_mut()
        .expect("deps are a list")
        .push(
            json!({"name": "proxy", "pkg": proxy, "dep_kinds": [{"kind": null, "target": null}]}),
        );
    let graph = Graph::read(&metadata).expect("metadata is understood");
    assert_eq!(
        arrows::faults(&TREE, &graph),
        [Fault::new("crate wire", "may not depend on proxy")]
    );
    let impure = purity::faults(&TREE, &graph);
    assert!(
        impure.contains(&Fault::new("crate wire", "is pure but links tokio")),
        "{impure:?}"
    );
    assert!(
        impure.contains(&Fault::new("crate policy", "is pure but links hyper")),
        "{impure:?}"
    );
}

#[test]
fn what_is_saved_in_release_and_left_so_in_dist_is_found() {
    let graph = graph_of_members(&[("slow", &[]), ("hot", &[])], None);
    let all = |text: &str| {
        let faults = profiles::faults(&tree(&[("Cargo.toml", text)]), &graph);
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        faults.join("\n")
    };
    let dist = "[profile.dist]\ninherits = \"release\"\nlto = \"fat\"\ncodegen-units = 1\n";
    let faults = |text: &str| all(&format!("{dist}{text}"));
    let release = "[profile.release.package.slow]\nopt-level = 0\n\
                   [profile.release.package.hot]\ncodegen-units = 1\n";
    let says = "Cargo.toml, slow: has opt-level = 0 in `release`: `dist` has to say 3";
    assert_eq!(faults(release), says);
    let other = format!("{dist}opt-level = 3\n{release}");
    assert_eq!(all(&other), says);
    let weak = format!("{release}[profile.dist.package.slow]\nopt-level = 2\n");
    let says = "Cargo.toml, slow: has opt-level = 2 in `dist`, where nothing is left out";
    assert_eq!(faults(&weak), says);
    let own = "[profile.dist.package.hot]\nopt-level = 1\n";
    assert_eq!(
        faults(own),
        says.replace("slow: has opt-level = 2", "hot: has opt-level = 1")
    );
    let whole = format!("{release}[profile.dist.package.slow]\nopt-level = 3\n");
    assert_eq!(faults(&whole), "");
    let gone = format!("{whole}[profile.dist.package.gone]\nopt-level = 3\n");
    assert_eq!(faults(&gone), "Cargo.toml, gone: is no crate that is built");
    let odd = "[profile.release.package.slow]\ndebug = true\n";
    assert_eq!(
        faults(odd),
        "Cargo.toml, slow: sets debug, which `dist` cannot take back"
    );
    let of_all = |says: &str| format!("Cargo.toml, [profile.dist]: has {says}");
    let weak = format!("{dist}opt-level = 1\n");
    assert_eq!(all(&weak), of_all("opt-level = 1, and has to say 3"));
    let inherited = format!("[profile.release]\nopt-level = 2\n{dist}");
    assert_eq!(all(&inherited), of_all("opt-level = 2, and has to say 3"));
    let loose = dist.replace("codegen-units = 1\n", "");
    assert_eq!(
        all(&loose),
        of_all("codegen-units = nothing, and has to say 1")
    );
    let thin = dist.replace("fat", "thin");
    assert_eq!(all(&thin), of_all("lto = \"thin\", and has to say \"fat\""));
}

#[test]
fn an_arrow_of_tests_alone_counts_as_an_arrow_but_links_nothing() {
    let graph = graph(
        &[("policy", "1.0.0", &["tokio"]), ("tokio", "1.0.0", &[])],
        Some("dev"),
    );
    assert_eq!(purity::crate_faults(&pure(""), &graph, "policy"), []);
    let graph = graph_of_members(&[("config", &["proxy"]), ("proxy", &[])], Some("dev"));
    assert_eq!(
        arrows::faults(&picture("config, proxy ──► nothing"), &graph),
        [Fault::new("crate config", "may not depend on proxy")]
    );
    let drawn = picture("config, proxy ──► nothing\nconfig (tests) ──► proxy");
    assert_eq!(arrows::faults(&drawn, &graph), []);
    let linking = graph_of_members(&[("config", &["proxy"]), ("proxy", &[])], None);
    assert_eq!(
        arrows::faults(&drawn, &linking),
        [Fault::new(
            "crate config",
            "links proxy, which is for tests"
        )]
    );
}

#[test]
fn a_pure_crate_that_reaches_for_the_world_is_found() {
    let graph = graph_of_members(&[("policy", &[])], None);
    let found = |tree: &Tree| {
        let faults = purity::crate_faults(tree, &graph, "policy");
        let faults: Vec<String> = faults.iter().map(Fault::to_string).collect();
        faults.join("\n")
    };
    let tests = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    let harmless = "use std::net::IpAddr;\nuse std::time::Duration;\n// std::fs\nconst A: &str = \"std::env\";\n";
    assert_eq!(found(&pure(&format!("{harmless}{tests}"))), "");
    let impure = "mod b;\nuse std::{collections::BTreeMap, fs::{self, File}};\nfn f() { std::env::args(); std::time::Instant::now(); }\n";
    let mut tree = pure(impure);
    tree.files.push(file(
        "crates/policy/src/b.rs",
        "use std::net::{IpAddr, TcpStream};\n",
    ));
    let named = [
        "crate policy, crate: is pure but names std::fs",
        "crate policy, crate: is pure but names std::fs::File",
        "crate policy, crate: is pure but names std::env::args",
        "crate policy, crate: is pure but names std::time::Instant::now",
        "crate policy, b: is pure but names std::net::TcpStream",
    ];
    assert_eq!(found(&tree), named.join("\n"));
    for file in &mut tree.files {
        file.text = file.text.replace("std::time::Instant::now", "");
    }
    assert!(
        found(&tree).contains("crates/policy/clippy.toml: does not list std::time::Instant::now")
    );
    let bare = "crate policy: is pure but has no clippy.toml";
    assert_eq!(found(&self::tree(&[])), bare);
    let gone = purity::crate_faults(&tree, &graph, "gone");
    assert!(gone[0].says.starts_with("is no member"), "{gone:?}");
}

#[test]
fn a_picture_that_differs_from_cargos_graph_is_found() {
    let graph = graph_of_members(&[("a", &["b"]), ("b", &[])], None);
    let faults = |lines| arrows::faults(&picture(lines), &graph);
    assert_eq!(faults("a ─► b\nb ─► nothing"), []);
    let missing = Fault::new("crate b", "is not in the picture of ARCHITECTURE.md");
    assert_eq!(faults("a ─► b"), [missing]);
    let no_arrow = Fault::new(
        "crate b",
        "is drawn with an arrow that it does not have, to a",
    );
    assert_eq!(faults("a ─► b\nb ─► a"), [no_arrow]);
    let no_crate = Fault::new("crate c", "is drawn in ARCHITECTURE.md and does not exist");
    assert_eq!(faults("a ─► b\nb, c ─► nothing"), [no_crate]);
    assert_eq!(arrows::faults(&tree(&[]), &graph).len(), 2);
}

#[test]
fn modules_that_need_one_another_in_a_circle_are_found() {
    // `a` needs `b::c` under the name that `b` passes on, `b::c` needs `d` by a path, and `d` needs `a`.
    let files = [
        (
            "crates/x/src/lib.rs",
            "mod a;\nmod b;\nmod d;\n#[cfg(test)]\nmod t;\npub use a::A;",
        ),
        ("crates/x/src/a.rs", "use crate::b::{self, C as D};\n"),
        ("crates/x/src/b.rs", "mod c;\npub use c::C;\n"),
        (
            "crates/x/src/b/c.rs",
            "fn f<'a>(c: char) { if c != '\"' { crate::d::g() } }\n",
        ),
        (
            "crates/x/src/d.rs",
            "use super::*;\nuse super::A;\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n",
        ),
        ("crates/x/src/t.rs", "use crate::{a, d};\n"),
    ];
    let faults = |files: &[(&str, &str)], most, in_one| {
        let faults = circles::faults_above(&tree(files), &[("x", most, in_one)]);
        faults
            .into_iter()
            .map(|fault| fault.says)
            .collect::<Vec<_>>()
    };
    let says = |most| {
        format!(
            "3 modules lie in circles and 3 in the largest, at most {most} and {most} may\n  a, b, d"
        )
    };
    assert_eq!(faults(&files, 3, 3), [""; 0]);
    assert_eq!(faults(&files, 2, 2), [says(2)]);
    assert_eq!(circles::faults_above(&tree(&files), &[])[0].says, says(0));
    let lower = "3 modules lie in circles and 3 in the largest: lower its ceiling to that \
                 (xtask/src/tidy/circles.rs)";
    assert_eq!(faults(&files, 4, 3), [lower]);
    assert_eq!(faults(&files, 3, 4), [lower]);

    let mut open = files;
    open[3].1 = "// crate::d\nfn f() -> &'static str { r#\"crate::d::\"#; \"crate::d\" }\n";
    assert_eq!(faults(&open, 0, 0), [""; 0]);
    let pair = [
        ("crates/x/src/lib.rs", "mod a;\n"),
        ("crates/x/src/a.rs", "mod b;\nfn f() { b::g() }\n"),
        ("crates/x/src/a/b.rs", "use super::A;\n"),
    ];
    assert_eq!(
        faults(&pair, 0, 0),
        [""; 0],
        "a parent and its child are one thing"
    );
    assert_eq!(circles::faults_above(&tree(&[]), &[("y", 1, 1)]).len(), 1);
}

#[test]
fn a_crate_older_than_its_advisory_is_found() {
    let old = |version| least_versions::faults(&graph(&[("h2", version, &[])], None)).len();
    assert_eq!(old("0.4.15"), 1);
    assert_eq!(old("0.3.99"), 1);
    assert_eq!(old("0.4.16-rc.1"), 1);
    assert_eq!(old("0.4.16"), 0);
    assert_eq!(old("0.4.100+build"), 0);
    assert_eq!(old("1.0.0"), 0);
}

#[test]
fn licences_and_wrappers_of_deny_toml_are_enforced() {
    let text = concat!(
        "[licenses]\nallow = [\n  \"MIT\",\n  \"Unicode-3.0\",\n]\n[bans]\ndeny = [\n",
        "  { crate = \"tokio\", wrappers = [\"proxy\"] },\n  { crate = \"openssl\" },\n]\n",
    );
    let tree = tree(&[("deny.toml", text)]);
    let found = |crates: &[(&str, &str, &[&str])]| {
        let faults = deny::faults(&tree, &graph(crates, None));
        faults
            .into_iter()
            .map(|fault| fault.place)
            .collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(
        found(&[("proxy", "1.0.0", &["tokio"]), ("tokio", "1.0.0", &[])]),
        none
    );
    assert_eq!(
        found(&[("policy", "1.0.0", &["tokio"]), ("tokio", "1.0.0", &[])]),
        ["crate policy"]
    );
    assert_eq!(
        found(&[("proxy", "1.0.0", &["openssl"]), ("openssl", "1.0.0", &[])]),
        ["crate proxy"]
    );

    let one = [("proxy", "1.0.0", &["openssl"][..])];
    for broken in [
        text.replace("{ crate = \"openssl\"", "{\n    crate = \"openssl\""),
        text.replace("wrappers = [", "wrappers = [\n    "),
        text.replace("{ crate = ", "{ name = "),
    ] {
        let faults = deny::faults(&self::tree(&[("deny.toml", &broken)]), &graph(&one, None));
        assert_eq!(
            faults.last().expect("a fault").place,
            "deny.toml",
            "{broken}"
        );
    }

    let satisfied = |expression| {
        super::expression::is_satisfied(expression, &|one| ["MIT", "Unicode-3.0"].contains(&one))
    };
    assert!(satisfied("(MIT OR Apache-2.0) AND Unicode-3.0"));
    assert!(satisfied("Apache-2.0/MIT"));
    assert!(!satisfied("MIT AND GPL-3.0-only"));
    assert!(!satisfied("MIT WITH Some-exception"));
    assert!(!satisfied("(MIT OR Apache-2.0"));
    assert!(!satisfied("MIT MIT"));
    assert!(!satisfied(""));
}

#[test]
fn rules_for_the_text_of_sources_are_enforced() {
    let found = |path, text: &str| sources::faults(&tree(&[(path, text)])).len();
    assert_eq!(found("a.rs", "//! Says what it is for.\nfn f() {}\n"), 0);
    assert_eq!(found("a.rs", "fn f() {}\n"), 1);
    assert_eq!(
        found("a.rs", concat!("//! A.\nfn f() { to", "do!() }\n")),
        1
    );
    assert_eq!(
        found("a.rs", concat!("//! A.\n#[al", "low(dead_code)]\n")),
        1
    );
    assert_eq!(
        found("a.rs", "//! A.\n#[expect(dead_code, reason = \"b\")]\n"),
        0
    );
    let silent = concat!("//! A.\nfn f() { eprintln!(\"sk", "ipped: no tool\"); }\n");
    assert_eq!(found("a.rs", silent), 1);
    assert_eq!(found("crates/a/src/util.rs", "//! A.\n"), 1);
    assert_eq!(found("crates/a/src/common/limit.rs", "//! A.\n"), 1);
    assert_eq!(found("a.md", concat!("FIX", "ME later")), 1);
    assert_eq!(found("a.md", concat!("see /ho", "me/me/notes")), 1);
    assert_eq!(found("a.md", concat!("`/t", "mp/x`")), 1);
    assert_eq!(
        found(
            "a.md",
            concat!("https://example.com/ho", "me/x and crates/wo", "rk/x")
        ),
        0
    );
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "[a](b.md) [c](../d) [e](https://example.com) [f](#g) [h](gone.md#i) [j](b.md#k) [l](b.md#m) [n](../d#o)\n# G\n```\n[x](y)\n```\n";
    let start = ("README.md", "[a](docs/a.md)");
    let book = ("docs/SUMMARY.md", "[R](../README.md) [A](a.md) [B](b.md)");
    let tree = tree(&[
        start,
        book,
        ("docs/a.md", text),
        ("docs/b.md", "# K"),
        ("d/e.rs", ""),
    ]);
    let fault = |says| Fault::new("docs/a.md:1", says);
    let faults = [
        fault("links to gone.md#i, which is not there"),
        fault("links to b.md#m, which has no such heading"),
        fault("links to ../d#o, which has no such heading"),
    ];
    assert_eq!(links::faults(&tree), faults);
}

#[test]
fn a_page_that_is_no_chapter_is_found() {
    let pages = [
        ("README.md", "[a](docs/a.md) [b](docs/b.md)"),
        ("docs/SUMMARY.md", "[R](../README.md)\n- [A](a.md)"),
        ("docs/a.md", ""),
        ("docs/b.md", ""),
    ];
    let says = "is no chapter of docs/SUMMARY.md";
    assert_eq!(
        links::faults(&tree(&pages)),
        [Fault::new("docs/b.md", says)]
    );
    let gone = pages.map(|(path, text)| (path.replace("SUMMARY", "CHAPTERS"), text));
    let gone = gone.each_ref().map(|(path, text)| (path.as_str(), *text));
    let faults = links::faults(&tree(&gone));
    let missing = Fault::new("docs/SUMMARY.md", "is not there");
    assert!(faults.contains(&missing), "{faults:?}");
}

#[test]
fn a_page_that_no_chain_of_links_leads_to_is_found() {
    let pages = [
        ("README.md", "[a](docs/a.md)"),
        ("docs/a.md", "[b](deep/b.md#c) `[lost](lost.md)`"),
        ("docs/deep/b.md", "# C\n[a](../a.md)"),
        ("docs/lost.md", "[island](island.md)"),
        ("docs/island.md", "[lost](lost.md)"),
        (
            "docs/SUMMARY.md",
            "[1](../README.md) [2](a.md) [3](deep/b.md) [4](lost.md) [5](island.md)",
        ),
    ];
    let places: Vec<String> = links::faults(&tree(&pages))
        .into_iter()
        .map(|fault| fault.place)
        .collect();
    assert_eq!(places, ["docs/lost.md", "docs/island.md"]);
}

#[test]
fn a_block_with_words_that_nobody_knows_is_found() {
    let page = |block: &str| {
        let faults = blocks::faults(&tree(&[("docs/a.md", block)]));
        let says: Vec<String> = faults.iter().map(Fault::to_string).collect();
        says.join("\n")
    };
    assert_eq!(page("```sh serves=127.0.0.1:8000 exit=0,4\na\n```\n"), "");
    assert_eq!(page("```console unrun=minutes\n$ a\n```\n"), "");
    assert_eq!(page("```yaml part\na: b\n```\n"), "");
    assert_eq!(page("```toml of=suite\na = 1\n```\n"), "");
    for bad in [
        "sh unrun=lazy",
        "sh part",
        "console run",
        "yaml file=../x",
        "toml",
    ] {
        let says = page(&format!("a\n```{bad}\n1\n```\n"));
        assert!(says.starts_with("docs/a.md:2: `"), "{bad}: {says}");
    }
    assert!(page("```json\n{a}\n```\n").contains("is no JSON"));
}

#[test]
fn a_code_or_a_line_of_the_log_without_an_entry_is_found() {
    let files = [
        (
            "crates/policy/src/refusal/classes.rs",
            "fn class(\n \"server_error\", \"code_a\"\n    }\n \"no_code\"",
        ),
        (
            "docs/operations.md",
            "| 404 `code_b` | `code_x` |\n| 409 | `code_c` | b |\n\n| line | level |\n|---|\n| `it fails`: so | WARN |\n",
        ),
        (
            "crates/tollgate/src/conditions.rs",
            "warning(\n \"all is lost: now\",\n",
        ),
        (
            "crates/a/src/lib.rs",
            "\"docs/troubleshooting.md#gone\" \"docs/troubleshooting.md#it-fails\"",
        ),
        ("crates/policy/src/failure.rs", "fn code( \"code_a\""),
        ("crates/wire/src/head/fault.rs", "kinds! { \"code_a\""),
        ("crates/wire/src/call/fault.rs", "fn code( \"code_a\""),
        ("crates/identity/src/login/fault.rs", "fn code( \"code_a\""),
    ];
    let all = |tree: &Tree| {
        let faults = troubleshooting::faults(tree);
        let says: Vec<String> = faults.iter().map(Fault::to_string).collect();
        says.join(", ")
    };
    let with = |page: &str| {
        let mut whole = tree(&files);
        whole.files.push(file(troubleshooting::PAGE, page));
        whole
    };
    let found = |page: &str| all(&with(page));
    let whole = "<a id=\"code_a\"></a> <a id=\"code_b\"></a><a id=\"code_c\"></a>\n# It fails\n# All is lost\n# Gone\n";
    assert_eq!(found(whole), "");
    let says = found(
        &whole
            .replace("code_a", "")
            .replace("# It", "# I")
            .replace("lost", "")
            .replace("Gone", ""),
    );
    for missing in [
        "no entry #code_a",
        "no entry #it-fails",
        "no entry #all-is-lost",
        "#gone, which is not there",
    ] {
        assert!(says.contains(missing), "{missing}: {says}");
    }
    assert!(found(&whole.replace("code_c", "")).contains("no entry #code_c"));
    // What was looked for is no longer there.
    assert!(all(&tree(&files)).contains("docs/troubleshooting.md: is not there"));
    for (path, text, says) in [
        (
            "crates/wire/src/head/fault.rs",
            "",
            "no code after `kinds! {`",
        ),
        (
            "crates/tollgate/src/conditions.rs",
            "",
            "no line after `warning(`",
        ),
        (
            "docs/operations.md",
            "| 404 `code_b` |",
            "no row below `| line | level |`",
        ),
        ("docs/operations.md", "", "no row of a status and its code"),
    ] {
        let mut moved = with(whole);
        for file in moved.files.iter_mut().filter(|file| file.path == path) {
            file.text = text.into();
        }
        let found = all(&moved);
        assert!(found.contains(&format!("{path}: holds {says}")), "{found}");
    }
}

#[test]
fn vectors_that_no_test_reads_are_found() {
    let places = |tree: &Tree| {
        vectors::faults(tree)
            .into_iter()
            .map(|fault| fault.place)
            .collect::<Vec<_>>()
    };
    let schema = ("docs/config.schema.json", "{}");
    let keeper = ("crates/config/tests/a.rs", "docs/config.schema.json");
    let case = ("vectors/sse/a.txt", "");
    let reader = ("crates/wire/src/sse/tests.rs", "\"../../vectors/sse\"");
    assert_eq!(
        places(&tree(&[schema, keeper, case, reader])),
        Vec::<String>::new()
    );
    assert_eq!(places(&tree(&[schema, keeper, case])), ["vectors/sse"]);
    assert_eq!(
        places(&tree(&[schema, case, reader])),
        ["docs/config.schema.json"]
    );
}

#[test]
fn a_tree_of_long_files_and_functions_is_found() {
    let short = format!("//! A.\n{}", "fn f() {\n    g();\n}\n".repeat(3));
    let long = format!(
        "//! A.\npub async fn f(\n    a: A,\n) {{\n{}}}\n",
        "    g();\n".repeat(600)
    );
    assert_eq!(
        sizes::faults(&tree(&[
            ("a.rs", &short),
            ("b.rs", &short),
            ("c.rs", &short)
        ])),
        []
    );
    let places: Vec<String> = sizes::faults(&tree(&[("a.rs", &long), ("b.rs", &long)]))
        .into_iter()
        .map(|fault| fault.place)
        .collect();
    assert_eq!(places, ["files", "functions", "functions"]);
}

#[test]
fn a_fuzz_target_that_cannot_be_built_is_found() {
    let manifest = "[package]\nname = \"fuzz\"\n\n[dependencies]\nlibfuzzer-sys = \"0\"\nwire = {}\n\n[[bin]]\nname = \"a\"\n";
    let check = "//! A.\nuse std::fmt;\nuse wire::head;\n\nuse super::rows;\n";
    let target = "//! A.\n#[path = \"../checks/a.rs\"]\nmod check;\n";
    let found = |manifest: &str, check: &str, readme: &str| {
        let files = [
            ("fuzz/Cargo.toml", manifest),
            ("fuzz/README.md", readme),
            ("fuzz/checks/a.rs", check),
            ("fuzz/corpus/a/1", ""),
            ("fuzz/fuzz_targets/a.rs", target),
        ];
        let faults = fuzz::faults(&tree(&files));
        faults
            .iter()
            .map(Fault::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(found(manifest, check, "| `a` | |"), "");
    let other = format!("{check}    use rusqlite::Connection;\n");
    assert!(found(manifest, &other, "| `a` | |").contains("uses rusqlite, which"));
    assert!(found(manifest, check, "").contains("no row"));
    let none = manifest.replace("name = \"a\"", "name = \"b\"");
    assert!(found(&none, check, "| `a` | |").contains("no [[bin]]"));
    assert_eq!(fuzz::faults(&self::tree(&[]))[0].says, "holds no target");
}

/// A tree with nothing but the picture of the crates.
fn picture(lines: &str) -> Tree {
    let text = format!("# A\n\n## Arrows\n\n```\n{lines}\n```\n");
    tree(&[("ARCHITECTURE.md", &text)])
}

/// The crate `policy` with this source, and with the list of what it may not call.
fn pure(source: &str) -> Tree {
    let clippy = TREE.get("crates/policy/clippy.toml").expect("a list");
    let (path, text) = (clippy.path.as_str(), clippy.text.as_str());
    tree(&[(path, text), ("crates/policy/src/lib.rs", source)])
}

fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| file(path, text));
    Tree {
        files: files.collect(),
    }
}

fn file(path: &str, text: &str) -> File {
    File {
        path: path.into(),
        text: text.into(),
    }
}

/// Crates with the licence MIT, none of them ours; `kind` is that of every dependency.
/// The first is a member, so that rules about our own crates see it.
fn graph(crates: &[(&str, &str, &[&str])], kind: Option<&str>) -> Graph {
    let first = crates.first().map(|(name, ..)| *name);
    graph_with(crates, &first.into_iter().collect::<Vec<_>>(), kind)
}

fn graph_of_members(crates: &[(&str, &[&str])], kind: Option<&str>) -> Graph {
    let names: Vec<&str> = crates.iter().map(|(name, _)| *name).collect();
    let crates: Vec<_> = crates
        .iter()
        .map(|(name, needs)| (*name, "1.0.0", *needs))
        .collect();
    graph_with(&crates, &names, kind)
}

fn graph_with(crates: &[(&str, &str, &[&str])], members: &[&str], kind: Option<&str>) -> Graph {
    let package = |(name, version, _): &(&str, &str, &[&str])| json!({"id": name, "name": name, "version": version, "license": "MIT"});
    let node = |(name, _, needs): &(&str, &str, &[&str])| {
        let dep = |need: &&str| json!({"pkg": need, "dep_kinds": [{"kind": kind}]});
        json!({"id": name, "deps": needs.iter().map(dep).collect::<Vec<_>>()})
    };
    let metadata = json!({
        "packages": crates.iter().map(package).collect::<Vec<_>>(),
        "workspace_members": members,
        "resolve": {"nodes": crates.iter().map(node).collect::<Vec<_>>()},
    });
    Graph::read(&metadata).expect("well formed")
}

fn member(metadata: &Value, name: &str) -> String {
    let packages = metadata["packages"]
        .as_array()
        .expect("packages are a list");
    let ours = packages
        .iter()
        .find(|package| package["name"] == name && package["source"].is_null());
    ours.and_then(|package| package["id"].as_str())
        .expect("a member of that name")
        .to_owned()
}

fn node<'a>(metadata: &'a mut Value, id: &str) -> &'a mut Value {
    let nodes = metadata["resolve"]["nodes"]
        .as_array_mut()
        .expect("nodes are a list");
    nodes
        .iter_mut()
        .find(|node| node["id"] == id)
        .expect("a node of that id")
}
