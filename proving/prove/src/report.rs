//! The report of a campaign, made of its document alone: HTML, Markdown, JSON and a terminal's page; and `prove report`,
//! which makes it again and lays several side by side.
//!
//! Invariant: the same document gives the same bytes; of a report's own files the report is made again byte for byte.
//! Not here: what a campaign measures (`campaign`).

pub(crate) mod chart;
mod clip;
mod compare;
pub(crate) mod content;
pub(crate) mod document;
mod exact;
pub(crate) mod figure;
pub(crate) mod html;
mod markdown;
mod part;
pub(crate) mod plain;
mod read;
#[cfg(test)]
mod sample;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;
mod thin;

#[cfg(test)]
pub(crate) use sample::full;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use crate::files;
use crate::report::content::Section;
use crate::report::document::Document;
use crate::report::plain::Paper;

/// Runs that are laid side by side.
const MOST_RUNS: usize = 8;

/// Makes the report of a campaign again, or lays several side by side.
///
/// RUN is a directory that `prove run` wrote, or the report.json or report.html in it.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Report {
    /// Directories of campaigns, or their reports; the first is what the others are compared with.
    #[arg(value_name = "RUN", required = true, num_args = 1..=MOST_RUNS)]
    runs: Vec<PathBuf>,
    /// Where the page goes; Markdown where it ends in .md. Of one run beside it, of several to comparison.html.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The report as one HTML file.
pub(crate) fn html(document: &Document) -> String {
    let document = thin::thin(&exact::exact(document));
    html::report(&document, &part::parts(&document))
}

/// The report as Markdown.
pub(crate) fn markdown(document: &Document) -> String {
    let document = thin::thin(&exact::exact(document));
    markdown::report(&document, &part::parts(&document))
}

/// The document itself, as `report.json` holds it.
pub(crate) fn json(document: &Document) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&exact::exact(document)).map(|json| json + "\n")
}

/// The summary for a terminal; `report` is where the page lies.
pub(crate) fn page(document: &Document, report: &Path, bold: bool) -> String {
    terminal::page(document, report, bold)
}

/// Writes a report's page, Markdown and JSON into a directory that there is; gives where the page lies.
pub(crate) fn write(document: &Document, dir: &Path) -> io::Result<PathBuf> {
    let at = |end| dir.join(document.evidence().file(end));
    let page = at("html");
    files::replace(&at("json"), &json(document)?)?;
    files::replace(&at("md"), &markdown(document))?;
    files::replace(&page, &html(document))?;
    Ok(page)
}

/// Where a result goes.
pub(crate) struct Published<'a> {
    /// Whether JSON is printed, and what people read on standard error.
    pub(crate) is_json: bool,
    pub(crate) out: &'a Path,
    /// Where the page goes; beside the result where it is not told.
    pub(crate) html: Option<&'a Path>,
}

impl Published<'_> {
    /// Prints a result, and writes it and its page; the error is of a file.
    pub(crate) fn publish(
        &self,
        json: &str,
        sections: &[Section],
        page: &str,
    ) -> Result<(), (PathBuf, io::Error)> {
        if self.is_json {
            eprint!("{}", plain::text(sections, Paper::of(&io::stderr())));
            println!("{json}");
        } else {
            print!("{}", plain::text(sections, Paper::of(&io::stdout())));
        }
        let beside = self.out.with_extension("html");
        let html = self.html.unwrap_or(&beside);
        for (path, text) in [(self.out, &format!("{json}\n")[..]), (html, page)] {
            let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            let written = parent.and_then(|()| std::fs::write(path, text));
            written.map_err(|error| (path.to_owned(), error))?;
            eprintln!("written: {}", path.display());
        }
        Ok(())
    }
}

/// `prove report`.
pub(crate) fn report(options: &Report) -> io::Result<()> {
    let documents: Vec<Document> = options
        .runs
        .iter()
        .map(|run| read::read(run))
        .collect::<Result<_, _>>()?;
    let bold = io::stdout().is_terminal();
    if let ([run], [document]) = (options.runs.as_slice(), documents.as_slice()) {
        let page_at = again(document, run, options.out.as_deref())?;
        return crate::text::say(&page(document, &page_at, bold));
    }
    let out = options.out.as_deref();
    let out = out.unwrap_or_else(|| Path::new("comparison.html"));
    beside(&options.runs, &documents, out)
}

/// Lays campaigns side by side that were written there.
pub(crate) fn compare(runs: &[PathBuf], out: &Path) -> io::Result<()> {
    let documents = runs.iter().map(|run| read::read(run));
    let documents: Vec<Document> = documents.collect::<Result<_, _>>()?;
    beside(runs, &documents, out)
}

fn beside(runs: &[PathBuf], documents: &[Document], out: &Path) -> io::Result<()> {
    let names: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
    let runs: Vec<(&str, &Document)> = names.iter().map(String::as_str).zip(documents).collect();
    let sections = compare::sections(&runs);
    let title = compare::TITLE;
    if is_markdown(out) {
        files::replace(out, &markdown::page(title, &sections))?;
    } else {
        files::replace(out, &html::page(title, &sections))?;
    }
    crate::text::say(&compare::page(&runs, out))
}

/// Writes the report of one run again.
fn again(document: &Document, run: &Path, out: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(out) = out {
        let text = if is_markdown(out) {
            markdown(document)
        } else {
            html(document)
        };
        files::replace(out, &text)?;
        return Ok(out.to_owned());
    }
    let dir = if run.is_dir() {
        run
    } else {
        run.parent().unwrap_or(run)
    };
    let at = |end| dir.join(document.evidence().file(end));
    files::replace(&at("md"), &markdown(document))?;
    let page_at = at("html");
    files::replace(&page_at, &html(document))?;
    Ok(page_at)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}
