//! A chargeback statement: who used what in a period and what it costs, for people who pay.
//!
//! Invariant: the sum is the sum of exact amounts, rounded once; what has no known price or was not
//! seen to its end is said in words beside the sum, never added as zero. Text of the ledger is
//! escaped, and no cell of the CSV is a formula.
//! Not here: the numbers (`report`).

use std::borrow::Cow;

use super::export::field;
use super::table::{by_currency, costs, whole};
use super::words::{amount, grouped, missing};
use super::{By, Line, Totals, report, rounded, shown};
use crate::chain::Head;
use crate::date::{day, timestamp};
use crate::only::Only;
use crate::prices::Prices;
use crate::read::{Period, ReadError, Reader};

/// Headings of a statement's columns, in their order.
type Heads = [String; 12];

/// A statement, made.
#[derive(Debug, Clone)]
pub struct Statement {
    title: String,
    period: Period,
    who: By,
    only: Only,
    lines: Vec<Line>,
    head: Head,
    prices: Prices,
    issued_unix_ms: u64,
}

impl Statement {
    /// Reads what `period` came to, by group, workload and model. `title` stands on top, and `issued_unix_ms` is its date.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn of(
        reader: &Reader,
        period: Period,
        title: &str,
        issued_unix_ms: u64,
    ) -> Result<Self, ReadError> {
        Self::by(reader, period, By::Workload, title, issued_unix_ms)
    }

    /// The same with `who` in place of the workload.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn by(
        reader: &Reader,
        period: Period,
        who: By,
        title: &str,
        issued_unix_ms: u64,
    ) -> Result<Self, ReadError> {
        let by = [By::Group, who.clone(), By::Model];
        Ok(Self {
            title: title.to_owned(),
            period,
            lines: report(reader, period, &by)?,
            who,
            only: reader.only.clone(),
            head: reader.head()?,
            prices: reader.prices()?,
            issued_unix_ms,
        })
    }

    /// As one page of HTML that needs nothing else, and prints.
    #[must_use]
    pub fn html(&self) -> String {
        let all = whole(&self.lines);
        let heads = self.heads();
        let sum = costs(&all, headline).join(" + ");
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>\n\
             <style>{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n<p>{when} Issued {issued}.</p>\n\
             <p class=\"sum\">{sum}</p>\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n",
            title = escaped(&self.title),
            when = self.when(),
            issued = timestamp(self.issued_unix_ms),
            sum = match (self.lines.is_empty(), sum.is_empty()) {
                (true, _) => "Nothing was used".to_owned(),
                (false, true) => "No known cost".to_owned(),
                (false, false) => escaped(&sum),
            },
            heads = told(&heads, &all)
                .map(|(_, head)| format!("<th>{}</th>", escaped(head)))
                .collect::<String>(),
        );
        for group in self.lines.chunk_by(|a, b| a.of.first() == b.of.first()) {
            for line in group {
                let names = [0, 1, 2].map(|at| name(line, at));
                let names = names.each_ref().map(|name| &**name);
                out.push_str(&row("", &heads, names, &line.totals, &all));
            }
            if let [first, _, ..] = group {
                let group_name = name(first, 0);
                let names = [&*group_name, "all", ""];
                out.push_str(&row(" class=\"all\"", &heads, names, &whole(group), &all));
            }
        }
        out.push_str("</tbody>\n<tfoot>\n");
        out.push_str(&row("", &heads, ["Total", "", ""], &all, &all));
        out.push_str("</tfoot>\n</table>\n");
        out.push_str(&self.price_list());
        for remark in self.remarks(&all) {
            out.push_str(&format!("<p>{}</p>\n", escaped(&remark)));
        }
        out.push_str("</body></html>\n");
        out
    }

    /// What each model's tokens were charged at, each price once.
    fn price_list(&self) -> String {
        let mut said = std::collections::BTreeSet::new();
        for line in &self.lines {
            for price in self.prices_of(&line.totals) {
                said.insert(format!(
                    "<li>{}: {}</li>\n",
                    escaped(&name(line, 2)),
                    escaped(&price)
                ));
            }
        }
        if said.is_empty() {
            return String::new();
        }
        let said: String = said.into_iter().collect();
        format!("<h2>Unit prices</h2>\n<ul>\n{said}</ul>\n")
    }

    /// What the tokens of a line were charged at, a sentence for each price.
    fn prices_of(&self, totals: &Totals) -> Vec<String> {
        let said = |id: &String| match self.prices.get(id) {
            Some(price) => price.said(),
            None => vec![format!("price {id}, which the ledger does not have")],
        };
        totals.prices.iter().flat_map(said).collect()
    }

    /// The lines as CSV, amounts exact. A line with several currencies has one row for each, the counts
    /// in the first only.
    #[must_use]
    pub fn csv(&self) -> String {
        let heads = self.heads();
        let heads = heads.iter().take(COST);
        let heads: Vec<String> = heads.map(|head| field(&no_formula(head))).collect();
        let heads = heads.join(",");
        // A statement of some rows says so in each line, because lines are passed on without their heading.
        let is_all = self.only.is_all();
        let only = if is_all { "" } else { "Only," };
        let mut out = format!("{only}Issued,From,To,{heads},Unit prices,Cost,Currency\r\n");
        let whole = Period::ALL;
        let at = |ms: u64, open: u64| {
            if ms == open {
                String::new()
            } else {
                timestamp(ms)
            }
        };
        let (from, to) = (
            at(self.period.from_ms, whole.from_ms),
            at(self.period.to_ms, whole.to_ms),
        );
        for line in &self.lines {
            let mut cells = Vec::new();
            if !is_all {
                cells.push(field(&no_formula(&self.only.to_string())));
            }
            cells.extend([timestamp(self.issued_unix_ms), from.clone(), to.clone()]);
            cells.extend([0, 1, 2].map(|at| field(&no_formula(&name(line, at)))));
            let names = cells.len();
            let [
                exchanges,
                failed,
                aborted,
                input,
                output,
                unpriced,
                incomplete,
            ] = counts(&line.totals);
            cells.extend([exchanges, failed, aborted, input, output]);
            cells.push(field(&no_formula(&drift(&line.totals))));
            cells.extend([unpriced, incomplete]);
            cells.push(field(&self.prices_of(&line.totals).join("; ")));
            for cells in by_currency(cells, names, &line.totals) {
                out.push_str(&cells.join(","));
                out.push_str("\r\n");
            }
        }
        out
    }

    /// The headings of the columns.
    fn heads(&self) -> Heads {
        let mut heads = HEADS.map(str::to_owned);
        heads[1] = match &self.who {
            By::Workload => "Workload".to_owned(),
            By::Group => "Group".to_owned(),
            By::Model => "Model".to_owned(),
            By::Backend => "Backend".to_owned(),
            By::Day => "Day".to_owned(),
            By::Key => "Key".to_owned(),
            By::User => "User".to_owned(),
            By::Tool => "Tool".to_owned(),
            By::Tag(name) => format!("Tag {name}"),
        };
        heads
    }

    /// Which rows, and the period in days, as it was asked for.
    fn when(&self) -> String {
        if self.only.is_all() {
            return self.days();
        }
        format!("Only {}. {}", escaped(&self.only.to_string()), self.days())
    }

    fn days(&self) -> String {
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
        remarks.push(format!("Ledger row {}, hash {}. `tollgate usage verify --head {}` proves that no row up to it was changed or lost since.", self.head.seq, self.head.hash, self.head));
        remarks
    }
}

/// Where the cost stands among the headings, and what is left out where it has nothing to tell.
const COST: usize = 11;
const DRIFT: usize = 8;
const UNPRICED: usize = 9;
const INCOMPLETE: usize = 10;

/// The second is another one where a statement is not cut by workload.
const HEADS: [&str; 12] = [
    "Group",
    "Workload",
    "Model",
    "Exchanges",
    "Failed",
    "Aborted",
    "Input tokens",
    "Output tokens",
    "Drift in, out",
    "Unpriced",
    "Incomplete",
    "Cost",
];

fn name(line: &Line, at: usize) -> Cow<'_, str> {
    line.of
        .get(at)
        .map_or("".into(), |name| shown(name.as_deref()))
}

/// Exchanges, of these failed and left by the client; tokens in and out; unpriced, incomplete.
fn counts(t: &Totals) -> [String; 7] {
    [
        t.exchanges.to_string(),
        t.errors.to_string(),
        t.aborted.to_string(),
        t.prompt.to_string(),
        t.completion.to_string(),
        t.unpriced.to_string(),
        t.indeterminate.to_string(),
    ]
}

/// How much the engines' reports are above the gate's count, in both directions.
fn drift(t: &Totals) -> String {
    let said = [t.prompt_drift, t.completion_drift].map(|drift| {
        let percent = drift
            .ratio()
            .map(|ratio| format!("{:+.1} %", ratio * 100.0));
        percent.unwrap_or_else(|| "-".to_owned())
    });
    match said.join(", ") {
        none if none == "-, -" => "-".to_owned(),
        said => said,
    }
}

/// The columns that have something to tell, by their place in [`HEADS`].
fn told<'h>(heads: &'h Heads, all: &Totals) -> impl Iterator<Item = (usize, &'h str)> {
    let is_empty = |at| match at {
        DRIFT => drift(all) == "-",
        UNPRICED => all.unpriced == 0,
        INCOMPLETE => all.indeterminate == 0,
        _ => false,
    };
    let empty: [bool; 12] = std::array::from_fn(is_empty);
    let heads = heads.iter().map(String::as_str).enumerate();
    heads.filter(move |(at, _)| !empty[*at])
}

/// A row of the table; on a narrow screen each cell is a line of its own, after its heading.
fn row(class: &str, heads: &Heads, names: [&str; 3], totals: &Totals, all: &Totals) -> String {
    let [
        exchanges,
        failed,
        aborted,
        input,
        output,
        unpriced,
        incomplete,
    ] = counts(totals).map(|count| grouped(&count));
    let costs: Vec<String> = costs(totals, |pico| grouped(&amount(pico)))
        .iter()
        .map(|cost| escaped(cost))
        .collect();
    let cost = if costs.is_empty() {
        "-".to_owned()
    } else {
        costs.join("<br>")
    };
    let [group, workload, model] = names.map(escaped);
    let drift = drift(totals);
    let cells = [
        group, workload, model, exchanges, failed, aborted, input, output, drift, unpriced,
        incomplete, cost,
    ];
    let cells: String = told(heads, all)
        .map(|(at, head)| format!("<td data-of=\"{}\">{}</td>", escaped(head), cells[at]))
        .collect();
    format!("<tr{class}>{cells}</tr>\n")
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

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:100rem;margin:3rem auto;padding:0 1rem;color:#1a1a1a;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid #ddd;overflow-wrap:normal}\
th{vertical-align:bottom}td{vertical-align:top}td:nth-child(n+4){white-space:nowrap}\
th:nth-child(n+4),td:nth-child(n+4){text-align:right;font-variant-numeric:tabular-nums}\
.all td{font-weight:600;border-bottom-color:#888}\
tfoot td{font-weight:600;border-top:2px solid #1a1a1a}.sum{font-size:1.6rem}@media print{body{margin:0}}\
@media(max-width:60rem){body{margin:1rem auto}thead{display:none}table,tbody,tfoot,tr,td{display:block}\
tr{padding:.6rem 0;border-bottom:1px solid #888}td,td:nth-child(n+4),tfoot td{display:flex;justify-content:space-between;gap:1rem;\
padding:.1rem 0;border:0;text-align:right;white-space:normal;min-width:0;overflow-wrap:anywhere}\
td:empty{display:none}td::before{content:attr(data-of);color:#555;font-weight:400;text-align:left;white-space:nowrap}}";

/// Whole cents, and below one unit of the currency as exactly as in the table: what was spent is never shown as nothing.
fn headline(pico: i128) -> String {
    if pico.unsigned_abs() < UNIT {
        return amount(pico);
    }
    grouped(&rounded(pico, 2))
}

/// 1e-12 of a currency's unit in one.
const UNIT: u128 = 1_000_000_000_000;
