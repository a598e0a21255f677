//! A chargeback statement: who used what in a period and what it costs, for people who pay.
//!
//! Invariant: the sum is the sum of exact amounts, rounded once; what has no known price or was not
//! seen to its end is said in words beside the sum, never added as zero. Text of the ledger is
//! escaped, and no cell of the CSV is a formula.
//! Not here: the numbers (`report`).

use super::export::field;
use super::table::{by_currency, costs, whole};
use super::words::{amount, grouped, missing};
use super::{By, Line, Totals, report, rounded};
use crate::chain::Head;
use crate::date::{day, stamp};
use crate::read::{Period, ReadError, Reader};

/// What a statement is cut by.
const BY: [By; 3] = [By::Group, By::Workload, By::Model];

/// A statement, made.
#[derive(Debug, Clone)]
pub struct Statement {
    title: String,
    period: Period,
    lines: Vec<Line>,
    head: Head,
}

impl Statement {
    /// Reads what `period` came to. `title` stands on top.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn of(reader: &Reader, period: Period, title: &str) -> Result<Self, ReadError> {
        Ok(Self {
            title: title.to_owned(),
            period,
            lines: report(reader, period, &BY)?,
            head: reader.head()?,
        })
    }

    /// As one page of HTML that needs nothing else, and prints.
    #[must_use]
    pub fn html(&self) -> String {
        let all = whole(&self.lines);
        let sum = costs(&all, |pico| grouped(&rounded(pico, 2))).join(" + ");
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n<p>{when}</p>\n\
             <p class=\"sum\">{sum}</p>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n",
            title = escaped(&self.title),
            when = self.when(),
            sum = if sum.is_empty() {
                "No known cost".to_owned()
            } else {
                escaped(&sum)
            },
            heads = HEADS.map(|head| format!("<th>{head}</th>")).concat(),
        );
        for group in self.lines.chunk_by(|a, b| a.of.first() == b.of.first()) {
            for line in group {
                out.push_str(&row("", [0, 1, 2].map(|at| name(line, at)), &line.totals));
            }
            if let [first, _, ..] = group {
                let names = [name(first, 0), "all", ""];
                out.push_str(&row(" class=\"all\"", names, &whole(group)));
            }
        }
        out.push_str("</tbody>\n<tfoot>\n");
        out.push_str(&row("", ["Total", "", ""], &all));
        out.push_str("</tfoot>\n</table>\n");
        for remark in self.remarks(&all) {
            out.push_str(&format!("<p>{}</p>\n", escaped(&remark)));
        }
        out.push_str("</body></html>\n");
        out
    }

    /// The lines as CSV, amounts exact. A line with several currencies has one row for each, the counts
    /// in the first only.
    #[must_use]
    pub fn csv(&self) -> String {
        let heads = HEADS.iter().filter(|head| **head != "Cost");
        let heads: Vec<String> = heads.map(|head| field(head)).collect();
        let mut out = format!("From,To,{},Cost,Currency\r\n", heads.join(","));
        let whole = Period::ALL;
        let at = |ms: u64, open: u64| if ms == open { String::new() } else { stamp(ms) };
        let (from, to) = (
            at(self.period.from_ms, whole.from_ms),
            at(self.period.to_ms, whole.to_ms),
        );
        for line in &self.lines {
            let mut cells = vec![from.clone(), to.clone()];
            cells.extend([0, 1, 2].map(|at| field(&no_formula(name(line, at)))));
            cells.extend(counts(&line.totals));
            for cells in by_currency(cells, 5, &line.totals) {
                out.push_str(&cells.join(","));
                out.push_str("\r\n");
            }
        }
        out
    }

    /// The period in days, as it was asked for.
    fn when(&self) -> String {
        let first = day(self.period.from_ms);
        let last = day(self.period.to_ms.saturating_sub(1));
        let is_open = (
            self.period.from_ms == Period::ALL.from_ms,
            self.period.to_ms == Period::ALL.to_ms,
        );
        match is_open {
            (true, true) => "All that the ledger has.".to_owned(),
            (true, false) => format!("Up to and with {last} (UTC)."),
            (false, true) => format!("From {first} on (UTC)."),
            (false, false) if first == last => format!("{first} (UTC)."),
            (false, false) => format!("{first} to {last}, both included (UTC)."),
        }
    }

    fn remarks(&self, all: &Totals) -> Vec<String> {
        let [reported, counted, estimated] = all.by_witness.map(|n| grouped(&n.to_string()));
        let mut remarks = vec![format!(
            "Of {} tokens, {reported} are billed by the engine's word, {counted} by the gate's own count and {estimated} by estimate.",
            grouped(&all.tokens().to_string())
        )];
        remarks.extend(missing(all));
        remarks.push(format!("Ledger row {}, hash {}. `tollgate usage verify --head` with this hash proves that no row up to it was changed since.", self.head.seq, self.head.hash));
        remarks
    }
}

const HEADS: [&str; 9] = [
    "Group",
    "Workload",
    "Model",
    "Exchanges",
    "Input tokens",
    "Output tokens",
    "Without a price",
    "Without an end",
    "Cost",
];

fn name(line: &Line, at: usize) -> &str {
    line.of.get(at).map_or("", String::as_str)
}

/// What stands between the names and the cost.
fn counts(t: &Totals) -> [String; 5] {
    [
        t.exchanges.to_string(),
        t.prompt.to_string(),
        t.completion.to_string(),
        t.unpriced.to_string(),
        t.indeterminate.to_string(),
    ]
}

fn row(class: &str, names: [&str; 3], totals: &Totals) -> String {
    let names = names.map(escaped);
    let counts = counts(totals).map(|count| grouped(&count));
    let costs: Vec<String> = costs(totals, |pico| grouped(&amount(pico)))
        .iter()
        .map(|cost| escaped(cost))
        .collect();
    let cost = if costs.is_empty() {
        "-".to_owned()
    } else {
        costs.join("<br>")
    };
    let cells = names.into_iter().chain(counts).chain([cost]);
    let cells: Vec<String> = cells.map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr{class}>{}</tr>\n", cells.concat())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A spreadsheet runs what starts like a formula; a client chooses the name of a model.
fn no_formula(cell: &str) -> String {
    let runs = cell.len() > 1 && cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if runs {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:80rem;margin:3rem auto;padding:0 1rem;color:#1a1a1a}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #ddd}\
th{vertical-align:bottom}td:nth-child(n+4){white-space:nowrap}th:nth-child(n+4),td:nth-child(n+4){text-align:right;font-variant-numeric:tabular-nums}\
.all td{font-weight:600;border-bottom-color:#888}\
tfoot td{font-weight:600;border-top:2px solid #1a1a1a}.sum{font-size:1.6rem}@media print{body{margin:0}}";
