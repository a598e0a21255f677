//! Whether the generator could be trusted, and what is needed to do it all again.
//!
//! Not here: the certificate of arrivals (`setting`).

use crate::report::content::{Block, Section, Table};
use crate::report::document::Document;
use crate::report::figure::{count, maybe, plain, time};

pub(super) fn generator(document: &Document) -> Section {
    let mut section = Section::new("generator", "Health of the generator");
    let Some(generator) = &document.generator else {
        section.absent(if document.scenario.is_virtual {
            "not measured: users of virtual time need no generator"
        } else {
            "not measured: the generator told nothing of itself"
        });
        return section;
    };
    let table = Table::each(
        "The client itself: what it used, and how late it was",
        [generator],
        &[
            ("Verdict", |r| r.verdict.as_str().into()),
            ("#Threads", |r| r.threads.to_string().into()),
            ("#Cores used", |r| plain(r.cores).into()),
            ("#Rows lost", |r| count(r.rows_lost).into()),
            ("#Late mean", |r| maybe(r.lag, |q| time(q.mean)).into()),
            ("#Late p99", |r| maybe(r.lag, |q| time(q.p99)).into()),
            ("#Late p99.9", |r| maybe(r.lag, |q| time(q.p999)).into()),
            ("#Late max", |r| maybe(r.lag, |q| time(q.max)).into()),
        ],
    );
    section.table(table, "");
    section
}

pub(super) fn reproduce(document: &Document) -> Section {
    let reproduce = &document.reproduce;
    let mut section = Section::new("reproduce", "To do it again");
    section.text(format!("Seed {}; {}.", reproduce.seed, reproduce.tool));
    if reproduce.command.is_empty() {
        section.absent("not told: the command");
    } else {
        section.blocks.push(Block::Code(reproduce.command.clone()));
    }
    let tables = [
        ("Inputs", ["File", "SHA-256"], &reproduce.hashes),
        ("Versions", ["What", "Version"], &reproduce.versions),
        ("Machine and quotas", ["What", "Value"], &reproduce.machine),
    ];
    for (caption, titles, pairs) in tables {
        let table = Table::pairs(caption, titles, pairs);
        section.table(table, &format!("not told: {}", caption.to_lowercase()));
    }
    if !reproduce.files.is_empty() {
        section.text(format!(
            "Beside this report: {}.",
            reproduce.files.join(", ")
        ));
    }
    if !reproduce.scenario.is_empty() {
        section.blocks.push(Block::Folded {
            title: "The scenario, as it was".into(),
            text: reproduce.scenario.clone(),
        });
    }
    section
}
