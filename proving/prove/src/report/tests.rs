//! Reports by example: of a full campaign, of one that ended at once, and of one that means harm.

mod mutated;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::sample::{empty, full, pairs};
use super::{Report, html, json, markdown, page, read, report, write};
use crate::report::document::{Document, Errors, Event, Tokens, Verdict};

/// The words of a report as a reader sees them.
fn visible(page: &str) -> &str {
    page.split_once(super::html::DATA).expect("a document").0
}

#[test]
fn a_full_campaign_has_every_table_and_every_figure_in_order() {
    let page = html(&full());
    let places: Vec<usize> = [
        "SIMULATED",
        "PASS",
        "What was under test",
        "Policies hold",
        "Corpus and prefix cache",
        "Arrivals: asked",
        "Table 1.",
        "Decisions, by",
        "Figure 4.",
        "Knee:",
        "Table 2.",
        "What each profile got",
        "Mean TTFT over time",
        "Figure 5.",
        "Table 3.",
        "Figure 6.",
        "on its own axis",
        "Distribution of the time there",
        "Where that time went",
        "withheld from the gateway",
        "by both witnesses",
        "failed alike",
        "What the soak had to keep",
        "Figures that were published",
        "The client itself",
        "SHA-256",
        "The scenario, as it was",
    ]
    .iter()
    .scan(0, |from, needle| {
        let body = page.find("<body>")?;
        let main = page.find("<main>")?;
        let from_here = (*from).max(body);
        let from_here = if *needle == "What was under test" {
            main
        } else {
            from_here
        };
        let at = page[from_here..]
            .find(needle)
            .unwrap_or_else(|| panic!("{needle} is missing or not in its place"));
        *from = from_here + at;
        Some(*from)
    })
    .collect();
    assert_eq!(places.len(), 27);
    assert!(!page.contains("class=\"absent\""), "nothing is absent");
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 9);
    let text = markdown(&full());
    for needle in [
        "Table 1.",
        "Table 2.",
        "Table 3.",
        "Figure 4.",
        "Figure 5.",
        "Figure 6.",
        "**SIMULATED",
    ] {
        assert!(text.contains(needle), "{needle}");
    }
}

#[test]
fn figures_are_those_of_the_document() {
    let (page, text) = (html(&full()), markdown(&full()));
    for figure in [
        "224 users",
        "103.0 ms",
        "14.291 s",
        "14.293 s",
        "2.000 ms",
        "0.0140 %",
        "1.780 ms · 0.0125 %",
        "Isolated over the gateway's own histogram: 0.9223 (1.780 ms against 1.930 ms)",
        "261.87 GB/s",
        "10.5 %",
        "93,960",
        "270,316,800",
        "48.31 USD",
        "158.13 USD",
        "84.3 %",
        "3 of 3",
    ] {
        assert!(visible(&page).contains(figure), "{figure}");
        assert!(text.contains(figure), "{figure}");
    }
    assert!(page.contains("3.0 × baseline: 213.8 ms") && page.contains("Compute-bound"));
}

#[test]
fn preemptions_or_a_hard_stop_are_the_memory_boundary() {
    let mut document = full();
    document.steps[20].preemptions = Some(17);
    assert!(html(&document).contains("224 users (ttft above 3.0 × baseline) after 17 preemptions"));
    document.steps[20].preemptions = Some(0);
    document.steps[20].kv_cache = Some(0.97);
    assert!(html(&document).contains("but requests waited for blocks"));
    for step in &mut document.steps {
        step.preemptions = None;
    }
    assert!(html(&document).contains("is not known: no preemptions were read"));
    (document.t3, document.verdict) = (true, Verdict::T3Stop);
    let page = html(&document);
    assert!(page.contains("a gate that stops at once (T3) ended the campaign"));
    assert!(page.contains("<strong>FAIL</strong>") && page.contains("The hard stop (T3)"));
}

#[test]
fn the_engine_is_blamed_only_where_it_says_itself_that_it_slowed_down() {
    let blames = |document: &Document| {
        let page = html(document);
        let blames = page.contains("Compute-bound");
        assert_eq!(
            blames,
            !page.contains("What bounds it"),
            "{}",
            visible(&page)
        );
        blames
    };
    assert!(blames(&full()));
    let mut gateway = full();
    for step in &mut gateway.steps {
        step.ttft_mean_s = Some(0.08);
        if !step.is_stable {
            step.says = "slow: 0.91 above 0.45".into();
        }
    }
    assert!(!blames(&gateway), "the engine's own TTFT is flat");
    assert!(html(&gateway).contains("T2 came at 224 users (slow: 0.91 above 0.45)"));
    gateway.ttft_limit_s = None;
    assert!(!blames(&gateway));
    assert!(html(&gateway).contains("a gate stayed open: slow: 0.91 above 0.45"));
    let mut deaf = full();
    for row in &mut deaf.latency {
        row.engine_mean_s = None;
    }
    assert!(!blames(&deaf), "what is shown as TTFT is the client's");
}

#[test]
fn what_holds_the_loopback_is_never_called_the_gateways_own_time() {
    let page = html(&full());
    assert!(page.contains("isolated, median of 93,948 requests; its own histogram says 1.930 ms"));
    let mut gross = full();
    gross.overhead.as_mut().expect("measured").isolated = None;
    let page = html(&gross);
    let shown = visible(&page);
    assert!(shown.contains("Gateway and loopback"));
    assert!(!shown.contains("<dt>Gateway overhead</dt>") && !shown.contains("Isolated over"));
    // Shares are of what adds up: the last byte back is no part of the time to the first.
    let text = markdown(&full());
    assert!(text.contains("| last byte back | 400.0 µs | – |"), "{text}");
}

#[test]
fn steps_of_one_ramp_are_told_in_three_rows_and_laws_without_digits_that_mean_nothing() {
    let mut document = full();
    let advanced = |at: u32| Event {
        at_s: f64::from(at) * 60.0,
        kind: "advanced".into(),
        users: at * 8,
        says: format!("{} users", at * 8),
    };
    document.events.splice(1..2, (1..=20).map(advanced));
    document.profiles[0].law = "mmpp:high=2.6666666666666665/s,low=0/s,on=6s,off=18.25s".into();
    let text = markdown(&document);
    assert!(
        text.contains("| 60.0 s | advanced | 8 | 8 users |\n| … | advanced | … | 18 steps more"),
        "{text}"
    );
    assert!(
        text.contains("| 20 min 00 s | advanced | 160 | 160 users |")
            && !text.contains("| 2 min 00 s |")
    );
    assert!(
        text.contains("mmpp:high=2.6666/s, low=0/s, on=6s, off=18.25s"),
        "{text}"
    );
    document.events.truncate(4);
    assert!(
        markdown(&document).contains("| 2 min 00 s | advanced |"),
        "few stand as they are"
    );
}

#[test]
fn a_total_counts_each_exchange_once_and_costs_what_the_rows_do() {
    let mut document = full();
    let mut both = document.tokens[0].clone();
    both.workload = Tokens::COUNTED_TWICE.into();
    (both.cost, both.currency) = (None, None);
    (both.input_tokens, both.input_counted) = (1_000, Some(990));
    (both.output_tokens, both.output_counted) = (100, Some(110));
    both.drift = Some(0.0);
    // Its name comes first.
    document.tokens.insert(0, both);
    let all = "| All |  | 74,100 | 923,582,400 | 923,582,400 | 29,825,250 | 29,825,217 |";
    let text = markdown(&document);
    let line = text
        .lines()
        .find(|line| line.starts_with("| All"))
        .expect("a total");
    assert!(
        line.starts_with(all) && line.ends_with("| 158.13 USD |"),
        "{line}"
    );
    assert!(
        text.contains("| gpt-oss-120b | 1,000 | 990 | 100 | 110 | 0 % |"),
        "{text}"
    );
    document.tokens[1].cost = None;
    document.tokens[3].currency = Some("EUR".into());
    let text = markdown(&document);
    assert!(text.contains("| 24.62 EUR + 85.20 USD |"), "{text}");
    assert!(text.contains("priced 2 of these 3 rows"), "{text}");
}

#[test]
fn a_total_counts_the_requests_of_a_workload_once_whatever_models_they_were_to() {
    let mut document = full();
    let mut other = document.tokens[0].clone();
    other.model = "gpt-oss-20b".into();
    document.tokens.insert(1, other);
    let text = markdown(&document);
    let line = text.lines().find(|line| line.starts_with("| All"));
    let line = line.expect("a total");
    // Tokens are counted by model, requests are not.
    assert!(
        line.starts_with("| All |  | 74,100 | 1,193,899,200 |"),
        "{line}"
    );
    assert!(text.contains("requests of the workload, to whichever model"));
}

#[test]
fn what_was_not_measured_is_said_and_never_nought() {
    let page = html(&empty());
    for section in [
        "policies",
        "corpus",
        "arrivals",
        "phases",
        "decisions",
        "saturation",
        "latency",
        "profiles",
        "ttft",
        "hardware",
        "overhead",
        "tokens",
        "errors",
        "objectives",
        "published",
        "generator",
        "reproduce",
    ] {
        let (_, rest) = page
            .split_once(&format!("<section id=\"{section}\">"))
            .expect(section);
        let (body, _) = rest.split_once("</section>").expect("an end");
        assert!(body.contains("class=\"absent\""), "{section}: {body}");
        assert!(!body.contains("<table"), "{section}: an empty table");
    }
    assert!(page.contains("<strong>FAIL</strong>") && !page.contains("class=\"simulated\""));
    assert!(!visible(&page).contains("NaN") && !markdown(&empty()).contains("NaN"));
}

#[test]
fn a_page_holds_its_size() {
    let length = html(&full()).len();
    assert!(length <= 300_000, "{length} bytes");
}

#[test]
fn a_report_is_made_again_byte_for_byte_from_either_of_its_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut document = full();
    document.phases[0].requests_per_s = 1.0 / 3.0;
    document.certificate.as_mut().expect("one")["profiles"][0]["checks"][0]["p"] =
        serde_json::json!(1.234_567_890_123_456e-31);
    let at = write(&document, dir.path()).expect("files");
    let [page, text, data] =
        ["html", "md", "json"].map(|end| dir.path().join(format!("report.simulated-engine.{end}")));
    assert_eq!(at, page);
    let files = || [&page, &text, &data].map(|file| fs::read(file).expect("a file"));
    let before = files();
    for run in [dir.path().to_owned(), data.clone(), page.clone()] {
        for made in [&text, &page] {
            if *made != run {
                fs::remove_file(made).expect("it was there");
            }
        }
        report(&Report {
            runs: vec![run.clone()],
            out: None,
        })
        .expect("a report");
        assert!(files() == before, "{}", run.display());
    }
    fs::remove_file(&data).expect("it was there");
    let inside = read::read(dir.path()).expect("the page holds its document");
    assert_eq!(html(&inside).into_bytes(), before[0]);
    assert_eq!(html(&document), html(&document));
}

#[test]
fn a_campaign_on_a_simulated_engine_says_so_in_its_banner_its_summary_its_json_and_its_files_names()
{
    let mut document = full();
    document.scenario.is_virtual = false;
    document.scenario.seconds = 81.0;
    let says = "SIMULATED ENGINE";
    let (page, text) = (html(&document), markdown(&document));
    let shown = page_of(&document);
    assert!(
        page.contains(&format!("<p class=\"simulated\">{says}: ")),
        "{page}"
    );
    assert!(page.contains(&format!("<title>{says} · ")), "{page}");
    assert!(text.contains(&format!("> **{says}: ")), "{text}");
    assert!(shown.contains(&format!("\n{says}: ")), "{shown}");
    for told in [visible(&page), &text, &shown] {
        assert!(!told.contains("of real requests"), "{told}");
    }
    assert!(
        text.contains("| Evidence | SIMULATED ENGINE | 81.0 s of requests in real time"),
        "{text}"
    );
    // The watts have it beside them.
    assert!(
        text.contains("SIMULATED ENGINE: no GPU was measured."),
        "{text}"
    );
    let dir = tempfile::tempdir().expect("a directory");
    let at = write(&document, dir.path()).expect("files");
    assert!(
        at.ends_with("report.simulated-engine.html"),
        "{}",
        at.display()
    );
    let kept = fs::read_to_string(dir.path().join("report.simulated-engine.json")).expect("JSON");
    assert!(kept.contains("\"is_engine_simulated\": true"), "{kept}");

    document.scenario.is_engine_simulated = false;
    assert!(!markdown(&document).contains(says));
    assert!(
        write(&document, dir.path())
            .expect("files")
            .ends_with("report.html")
    );
}

fn page_of(document: &Document) -> String {
    page(document, Path::new("r"), false)
}

#[test]
fn ten_sessions_again_and_again_are_told_as_what_they_measure() {
    let mut document = full();
    assert_eq!(document.few_sessions(), None);
    document.prefix_cache.unique_sessions = Some(10);
    document.prefix_cache.begun_sessions = Some(20_000);
    let says =
        "only 10 different sessions were sent, 20000 times: what was measured is the prefix cache";
    assert_eq!(document.found_reservations(), [says]);
    for told in [html(&document), markdown(&document)] {
        assert!(told.contains(&format!("WARNING: {says}.")), "{told}");
        assert!(told.contains(&format!("PASS, but {says}")), "{told}");
    }
    // A corpus of twenty thousand names that all say one of ten things.
    document.prefix_cache.unique_sessions = Some(20_000);
    document.prefix_cache.corpus_unique_sessions = Some(10);
    assert!(document.few_sessions().is_some());
}

#[test]
fn a_pass_without_saturation_or_with_an_unproven_generator_is_qualified() {
    let mut document = full();
    assert_eq!(document.found_reservations(), Vec::<String>::new());
    document.t2_users = None;
    assert!(page_of(&document).starts_with("PASS, but saturation was not reached  passed\n"));
    document.generator.as_mut().expect("one").verdict = "unproven".into();
    let says = "PASS, but saturation was not reached, and the generator is unproven";
    for told in [html(&document), markdown(&document), page_of(&document)] {
        assert!(told.contains(says), "{told}");
    }
    document.verdict = Verdict::SloFailed;
    assert_eq!(document.found_reservations(), Vec::<String>::new());
}

/// A document whose every name and sentence is this.
fn hostile(text: &str) -> Document {
    let mut document = full();
    let own = || text.to_owned();
    document.reason = own();
    document.scenario.name = own();
    document.scenario.title = own();
    document.scenario.under_test = pairs(&[(text, text)]);
    for phase in &mut document.phases {
        phase.name = own();
    }
    for row in &mut document.latency {
        row.measure = own();
    }
    for step in &mut document.steps {
        step.says = own();
        step.is_stable = false;
    }
    document.events = vec![Event {
        at_s: 1.0,
        kind: own(),
        users: 1,
        says: own(),
    }];
    for series in document.series.values_mut() {
        (series.unit, series.source) = (own(), own());
    }
    let overhead = document.overhead.as_mut().expect("one");
    overhead.method = own();
    overhead.parts[0].0 = own();
    for profile in &mut document.profiles {
        (profile.name, profile.law) = (own(), own());
    }
    let certificate = document.certificate.as_mut().expect("one");
    certificate["verdict"] = own().into();
    certificate["profiles"][0]["name"] = own().into();
    certificate["profiles"][0]["checks"][0]["outcome"] = own().into();
    document.generator.as_mut().expect("one").verdict = own();
    for row in &mut document.tokens {
        (row.workload, row.model, row.currency) = (own(), own(), Some(own()));
    }
    document.errors = vec![Errors {
        phase: own(),
        kind: own(),
        count: 1,
        says: Some(own()),
    }];
    let verify = document.verify.as_mut().expect("one");
    verify.suite = own();
    let case = &mut verify.cases[0];
    (case.name, case.expected, case.got, case.evidence) = (own(), own(), own(), vec![own()]);
    for objective in &mut document.objectives {
        (objective.name, objective.query) = (own(), own());
    }
    for row in &mut document.published {
        (row.name, row.unit, row.note) = (own(), own(), own());
    }
    document.hardware.nvlink_convention = own();
    let reproduce = &mut document.reproduce;
    (reproduce.command, reproduce.tool, reproduce.scenario) = (own(), own(), own());
    reproduce.files = vec![own()];
    let named: BTreeMap<String, String> = pairs(&[(text, text)]);
    (reproduce.hashes, reproduce.versions, reproduce.machine) =
        (named.clone(), named.clone(), named);
    document
}

#[test]
fn whatever_others_wrote_is_text() {
    let harm = "</script><script>alert(1)</script><img src=x onerror=\"alert(2)\">&lt;| a | `x` [y](http://z) \u{202e}\u{200f}\u{1b}[2J";
    let document = hostile(harm);
    let page = html(&document);
    assert_eq!(
        page.matches("<script").count(),
        2,
        "the document and our own"
    );
    assert_eq!(page.matches("</script>").count(), 2);
    for bad in ["<img", "onerror=\"", "\u{202e}", "\u{200f}", "\u{1b}"] {
        assert!(!visible(&page).contains(bad), "{bad:?}");
    }
    assert!(!page.contains("</script><script>alert"));
    let text = markdown(&document);
    for bad in ["<img", "](http", "\u{202e}", "\u{1b}", "&lt;| a"] {
        let outside_fences: String = text
            .split("```")
            .step_by(2)
            .collect::<String>()
            .replace("\\]", "");
        assert!(!outside_fences.contains(bad), "{bad:?}");
    }
    let (_, table) = text
        .split_once("Table 1\\. ")
        .or_else(|| text.split_once("Table 1."))
        .expect("a table");
    let rows = table.lines().filter(|line| line.starts_with('|')).take(6);
    for row in rows {
        assert_eq!(row.replace("\\|", "").matches('|').count(), 9, "{row}");
    }
    let summary = super::page(&document, Path::new("out/\u{1b}[2J.html"), false);
    assert!(!summary.contains('\u{1b}') && !summary.contains('\u{202e}'));
}

#[test]
fn a_text_without_end_has_an_end_on_the_page() {
    let long = "x".repeat(100_000);
    let mut document = full();
    document.errors[0].says = Some(long.clone());
    document.scenario.title = long;
    let page = html(&document);
    assert!(visible(&page).len() < 300_000 && page.contains("x…"));
}

#[test]
fn errors_are_capped_and_the_rest_is_counted() {
    let mut document = full();
    let error = |n: u64| Errors {
        phase: "soak".into(),
        kind: format!("kind-{n:03}"),
        count: n,
        says: None,
    };
    document.errors = (1..=70).map(error).collect();
    let page = html(&document);
    let page = visible(&page);
    assert!(page.contains("kind-070") && page.contains("kind-021") && !page.contains("kind-020"));
    assert!(page.contains("20 further kinds of errors"));
}

#[test]
fn a_terminal_gets_lines_of_eighty_columns_and_the_verdict_first() {
    for document in [
        full(),
        empty(),
        hostile(&"long ".repeat(90)),
        hostile(&"x".repeat(500)),
    ] {
        let page = page(&document, Path::new("out/report.html"), false);
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(page.starts_with("PASS") || page.starts_with("FAIL"));
        assert!(page.ends_with("report: out/report.html\n"), "{page}");
    }
    let page = page(&full(), Path::new("r"), true);
    assert!(
        page.starts_with("\u{1b}[1mPASS") && page.contains("✓ errors below 0.1 %"),
        "{page}"
    );
}

#[test]
fn several_runs_stand_side_by_side_and_what_differs_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let runs: Vec<_> = ["a", "b"].map(|name| dir.path().join(name)).into();
    let mut other = full();
    other.soak.as_mut().expect("one").ttft_ms = Some(123.6);
    other.reproduce.seed = 8;
    other
        .reproduce
        .versions
        .insert("tollgate".into(), "0.2.0".into());
    for (run, document) in runs.iter().zip([full(), other]) {
        fs::create_dir(run).expect("a directory");
        write(&document, run).expect("files");
    }
    let out = dir.path().join("both.html");
    report(&Report {
        runs: runs.clone(),
        out: Some(out.clone()),
    })
    .expect("a page");
    let page = fs::read_to_string(&out).expect("a page");
    for needle in [
        "123.6 ms (+20.0 %)",
        "<td>seed</td><td>7</td><td>8</td>",
        "version: tollgate",
        "Table 1.",
        "Table 2.",
        "Table 3.",
        "Figure 4, overlaid",
        "Figure 6, overlaid",
    ] {
        assert!(page.contains(needle), "{needle}");
    }
    assert!(!page.contains("machine: CPU"), "it is the same");
    let text = dir.path().join("both.md");
    report(&Report {
        runs: vec![runs[0].clone(), runs[0].clone()],
        out: Some(text.clone()),
    })
    .expect("a page");
    assert!(
        fs::read_to_string(&text)
            .expect("text")
            .contains("nothing: scenario, seed")
    );
}

#[test]
fn what_is_no_report_is_refused_with_its_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |run: &Path| read::read(run).expect_err("no report").to_string();
    let says = refused(dir.path());
    assert!(
        says.starts_with(&dir.path().display().to_string()) && says.contains("neither report.json"),
        "{says}"
    );
    let newer = json(&full())
        .expect("JSON")
        .replacen("\"version\": 1", "\"version\": 2", 1);
    let page = html(&full()).replace(super::html::DATA, "<script>");
    let half = json(&full()).expect("JSON");
    let cases = [
        (
            "report.json",
            newer.as_str(),
            "is of version 2, and this prove reads up to 1",
        ),
        ("report.json", &half[..half.len() / 2], "damaged JSON: EOF"),
        ("report.json", "{\"a\": 1}", "has no `version`"),
        ("report.json", "{\"version\": 1}", "missing field `verdict`"),
        ("page.html", &page, "holds no document"),
    ];
    for (name, text, needle) in cases {
        let path = dir.path().join(name);
        fs::write(&path, text).expect("a file");
        let says = refused(&path);
        assert!(
            says.starts_with(&path.display().to_string()) && says.contains(needle),
            "{needle}: {says}"
        );
    }
    assert!(refused(&dir.path().join("none")).contains("none"));
}

#[test]
fn a_page_asks_nobody_for_anything() {
    let page = html(&full());
    for word in [
        "http:",
        "https:",
        " src=",
        "@import",
        "url(",
        " style=\"",
        " onclick",
    ] {
        assert!(!visible(&page).contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'") && page.contains("script-src 'sha256-"));
}
