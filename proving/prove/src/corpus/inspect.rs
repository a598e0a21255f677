//! `prove corpus inspect`: what a corpus is, as a page or as JSON.
//!
//! Invariant: the JSON is the manifest itself, with the bytes on disk; the page shows nothing that is not in it or in
//! the index.
//! Not here: how tables and bars look (`report`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::corpus::manifest::{Manifest, Profile};
use ::corpus::store::Corpus;
use clap::Args;

use super::figures::{by_powers, bytes};
use crate::report::content::{Bars, Block, Section, Table};
use crate::report::plain::{self, Paper};
use crate::text::{number, say};

/// Shows what a corpus is.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The corpus.
    dir: PathBuf,
    /// JSON instead of a page.
    #[arg(long)]
    json: bool,
}

pub(super) fn inspect(options: &Inspect) -> super::Outcome {
    let corpus = Corpus::open(&options.dir)?;
    if options.json {
        let mut document = serde_json::to_value(corpus.manifest())?;
        document["bytes_on_disk"] = corpus.bytes_on_disk().into();
        say(&format!("{document:#}\n"))?;
    } else {
        let name = options.dir.display().to_string();
        let paper = Paper::of(&std::io::stdout());
        say(&plain::text(&sections(&name, &corpus), paper))?;
    }
    Ok(true)
}

/// The whole page.
pub(super) fn sections(name: &str, corpus: &Corpus) -> Vec<Section> {
    let manifest = corpus.manifest();
    let mut all = vec![
        section(&format!("Corpus {name}"), totals(corpus)),
        section("Profiles", profiles(manifest)),
        section("Lengths, in tokens", tokens(manifest)),
    ];
    let turns = || corpus.sessions().flat_map(|session| session.turns());
    let lengths = corpus.sessions().map(|session| session.len() as u64);
    for (title, rows) in [
        (
            "Prompt tokens of requests",
            by_powers(turns().map(|t| t.prompt_tokens().into())),
        ),
        (
            "New tokens of requests",
            by_powers(turns().map(|t| t.new_tokens().into())),
        ),
        (
            "Tokens of recorded answers",
            by_powers(turns().map(|t| t.answer_tokens().into())),
        ),
        ("Requests of sessions", by_powers(lengths)),
    ] {
        let mut section = Section::new(title, title);
        let caption = String::new();
        section.blocks.push(Block::Bars(Bars { caption, rows }));
        all.push(section);
    }
    all.push(section(
        "Prefixes (sessions in their order, nothing evicted)",
        prefixes(manifest),
    ));
    let sum = |of: fn(&Profile) -> &BTreeMap<String, u64>| {
        let mut sum = BTreeMap::<String, u64>::new();
        for (name, n) in manifest.profiles.iter().flat_map(of) {
            *sum.entry(name.clone()).or_default() += n;
        }
        sum
    };
    for (title, counts) in [
        ("Repairs", manifest.repairs.clone()),
        ("Skipped records", sum(|p| &p.skipped)),
        ("Unknown members", sum(|p| &p.unknown_keys)),
        ("Noted by readers", sum(|p| &p.notes)),
        ("Odd, and read all the same", sum(|p| &p.oddities)),
        ("Licences of sessions", sum(|p| &p.licences)),
    ] {
        if !counts.is_empty() {
            all.push(section(title, counted(&counts)));
        }
    }
    all.push(section("Sources", sources(manifest)));
    all
}

/// A table of lines, the first of which is its head.
fn section(title: &str, lines: Vec<Vec<String>>) -> Section {
    let mut section = Section::new(title, title);
    section.table(Table::of_lines("", lines), "none");
    section
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn totals(corpus: &Corpus) -> Vec<Vec<String>> {
    let m = corpus.manifest();
    let times = m.bytes_unrolled as f64 / m.bytes_stored.max(1) as f64;
    vec![
        row(["", ""]),
        row(["model", &m.model]),
        row(["counted by", &m.tokenizer]),
        row(["repair", &m.repair]),
        row(["seed", &m.seed.to_string()]),
        row(["sessions", &number(m.sessions)]),
        row(["requests", &number(m.requests)]),
        row(["bytes of requests", &bytes(m.bytes_unrolled)]),
        row(["bytes stored", &bytes(m.bytes_stored)]),
        row(["stored in", &format!("1/{times:.1}")]),
        row(["records skipped", &number(m.skipped)]),
        row([
            if m.duplicates_kept {
                "duplicates, kept"
            } else {
                "duplicates, dropped"
            },
            &number(m.duplicates),
        ]),
        row(["sessions cut at the context", &number(m.sessions_cut)]),
    ]
}

fn profiles(manifest: &Manifest) -> Vec<Vec<String>> {
    let head = row(["profile", "reader", "sessions", "requests", "bytes", "hits"]);
    let rows = manifest.profiles.iter().map(|p| {
        vec![
            p.name.clone(),
            p.reader.clone(),
            number(p.sessions),
            number(p.requests),
            bytes(p.bytes_unrolled),
            percent(p.hits.rate()),
        ]
    });
    std::iter::once(head).chain(rows).collect()
}

fn tokens(manifest: &Manifest) -> Vec<Vec<String>> {
    let mut rows = vec![row(["", "median", "90 %", "99 %", "most"])];
    for profile in &manifest.profiles {
        let g = &profile.geometry;
        let measures = [
            ("requests of a session", &g.turns),
            ("first prompt", &g.first_prompt_tokens),
            ("prompt", &g.prompt_tokens),
            ("new in a prompt", &g.new_tokens),
            ("answer", &g.answer_tokens),
            ("think time, ms", &g.think_ms),
        ];
        rows.push(row([&profile.name, "", "", "", ""]));
        for (name, q) in measures.into_iter().filter(|(_, q)| q.count > 0) {
            let mut cells = row([&format!("  {name}")]);
            cells.extend([q.p50, q.p90, q.p99, q.max].map(number));
            rows.push(cells);
        }
    }
    rows
}

fn prefixes(manifest: &Manifest) -> Vec<Vec<String>> {
    let prefix = &manifest.prefix;
    let of = |tokens: u64| percent(tokens as f64 / prefix.hits.queries_tokens.max(1) as f64);
    let across = prefix.hits.hit_tokens - prefix.hits.hit_tokens_own.min(prefix.hits.hit_tokens);
    let mut rows = vec![
        row(["", &format!("blocks of {} tokens", prefix.block_tokens)]),
        row(["predicted hit rate", &percent(prefix.hit_rate)]),
        row(["  from the session itself", &of(prefix.hits.hit_tokens_own)]),
        row(["  from sessions before it", &of(across)]),
        row([
            "different first blocks",
            &number(prefix.unique_first_blocks),
        ]),
        row(["unique sessions", &number(manifest.unique_sessions)]),
    ];
    if prefix.stride > 1 {
        let stride = format!("one block of {}", prefix.stride);
        rows.push(row(["remembered across sessions", &stride]));
    }
    if prefix.blocks_not_kept > 0 {
        rows.push(row([
            "blocks not remembered",
            &number(prefix.blocks_not_kept),
        ]));
    }
    rows
}

/// Counts, the most frequent first, 20 at most.
fn counted(counts: &BTreeMap<String, u64>) -> Vec<Vec<String>> {
    const MOST: usize = 20;
    let mut all: Vec<(&String, &u64)> = counts.iter().collect();
    all.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
    let mut rows = vec![row(["", "count"])];
    let shown = all.iter().take(MOST);
    rows.extend(shown.map(|(name, n)| vec![(*name).clone(), number(**n)]));
    if let Some(more) = all.len().checked_sub(MOST).filter(|n| *n > 0) {
        rows.push(row([&format!("and {more} more, with --json"), ""]));
    }
    rows
}

fn sources(manifest: &Manifest) -> Vec<Vec<String>> {
    const MOST: usize = 20;
    let head = row(["file", "bytes", "sha256"]);
    let all: Vec<_> = manifest.profiles.iter().flat_map(|p| &p.sources).collect();
    let rows = all.iter().take(MOST).map(|source| {
        let digits: String = source.sha256.chars().take(12).collect();
        vec![source.file.clone(), bytes(source.bytes), digits]
    });
    let mut rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    if let Some(more) = all.len().checked_sub(MOST).filter(|n| *n > 0) {
        rows.push(row([&format!("and {more} more, with --json"), "", ""]));
    }
    rows
}
