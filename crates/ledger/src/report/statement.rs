//! A chargeback statement: who used what in a period and what it costs, for people who pay.
//!
//! Invariant: the sum is the sum of exact amounts, rounded once; what has no known price or was not
//! seen to its end is said in words beside the sum, never added as zero. Text of the ledger is
//! escaped, and no cell of the CSV is a formula.
//! Not here: the numbers (`report`).

use super::export::field;
use super::table::{costs, whole};
use super::{By, Line, decimal, report, rounded};
use crate::chain::Head;
use crate::date::stamp;
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
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n<p>From {from} up to, not including, {to} (UTC).</p>\n\
             <p class=\"sum\">{sum}</p>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n",
            title = escaped(&self.title),
            from = stamp(self.period.from_ms),
            to = stamp(self.period.to_ms),
            sum = escaped(&costs(&all, |pico| rounded(pico, 2))),
            heads = HEADS.map(|head| format!("<th>{head}</th>")).concat(),
        );
        for line in &self.lines {
            out.push_str(&format!(
                "<tr>{}</tr>\n",
                cells(line, |pico| rounded(pico, 4))
                    .map(|c| format!("<td>{}</td>", escaped(&c)))
                    .concat()
            ));
        }
        let total = Line {
            of: vec!["Total".to_owned(), String::new(), String::new()],
            totals: all,
        };
        let total_cells = cells(&total, |pico| rounded(pico, 2))
            .map(|c| format!("<td>{}</td>", escaped(&c)))
            .concat();
        out.push_str(&format!(
            "</tbody>\n<tfoot><tr>{total_cells}</tr></tfoot>\n</table>\n"
        ));
        for remark in self.remarks(&total) {
            out.push_str(&format!("<p>{}</p>\n", escaped(&remark)));
        }
        out.push_str("</body></html>\n");
        out
    }

    /// The lines as CSV, amounts exact.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = format!("from,to,{}\r\n", HEADS.map(field).join(","));
        let (from, to) = (stamp(self.period.from_ms), stamp(self.period.to_ms));
        for line in &self.lines {
            let cells = cells(line, decimal).map(|cell| field(&no_formula(&cell)));
            out.push_str(&format!("{from},{to},{}\r\n", cells.join(",")));
        }
        out
    }

    fn remarks(&self, total: &Line) -> Vec<String> {
        let t = &total.totals;
        let [reported, counted, estimated] = t.by_witness;
        let mut remarks = vec![format!(
            "Of {} tokens, {reported} are billed by the engine's word, {counted} by the gate's own count and {estimated} by estimate.",
            t.tokens()
        )];
        if t.unpriced > 0 {
            remarks.push(format!(
                "{} exchanges used tokens that no known price covers. They are not in the sum.",
                t.unpriced
            ));
        }
        if t.indeterminate > 0 {
            remarks.push(format!(
                "{} exchanges were not seen to their end. They used between {} and {} tokens, where a bound is known, and are not in the sum.",
                t.indeterminate, t.at_least, t.at_most
            ));
        }
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
    "Cost",
    "Without a price",
    "Without an end",
];

fn cells(line: &Line, written: impl Fn(i128) -> String) -> [String; 9] {
    let name = |at: usize| line.of.get(at).cloned().unwrap_or_default();
    let t = &line.totals;
    [
        name(0),
        name(1),
        name(2),
        t.exchanges.to_string(),
        t.prompt.to_string(),
        t.completion.to_string(),
        costs(t, written),
        t.unpriced.to_string(),
        t.indeterminate.to_string(),
    ]
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

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:3rem auto;padding:0 1rem;color:#1a1a1a}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #ddd}\
th:nth-child(n+4),td:nth-child(n+4){text-align:right;font-variant-numeric:tabular-nums}\
tfoot td{font-weight:600;border-top:2px solid #1a1a1a}.sum{font-size:1.6rem}@media print{body{margin:0}}";
