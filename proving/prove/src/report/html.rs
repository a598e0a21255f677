//! A report as one HTML file.
//!
//! Invariant: nothing is fetched from anywhere, and nothing runs but the script whose hash the page's own policy names;
//! whatever others chose is text. Without that script nothing is missing.
//! Not here: what is told (`part`, `summary`, `compare`).

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::clip::clipped;
use super::content::{Bar, Bars, Block, Cell, Section, Table, Tone};
use super::summary::Summary;
use crate::plot::{Scale, escape};
use crate::report::document::{Document, Evidence};
use crate::text::printable;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("hover.js");
/// What the document in the page stands behind; nothing else in a page can read so, for what others chose has no `<`.
pub(super) const DATA: &str = "<script type=\"application/json\" id=\"document\">";
/// Tables of so many columns are set closer, so that a desk shows them whole.
const MANY: usize = 10;
/// Cells longer than these characters get room.
const LONG: usize = 28;
/// Bars that differ by more than this factor are marks.
const LOG_FROM: f64 = 30.0;

/// The report of one campaign, with its document inside.
pub(super) fn report(document: &Document, sections: &[Section]) -> String {
    let scenario = &document.scenario;
    let name = text(&scenario.name);
    let evidence = match document.evidence() {
        Evidence::Real => String::new(),
        simulated @ (Evidence::SimulatedEngine | Evidence::Virtual) => {
            format!("{} · ", simulated.word())
        }
    };
    let mut out = open(&format!("{evidence}{} · campaign report", scenario.name));
    let _ = writeln!(
        out,
        "<header>\n<p class=\"kicker\">Campaign report · {name}</p>\n<h1>{}</h1>",
        text(&scenario.title)
    );
    verdict(&mut out, document);
    contents(&mut out, sections);
    out.push_str("</header>\n<main>\n");
    all(&mut out, sections);
    let _ = writeln!(
        out,
        "</main>\n<footer>Made by {} from the document that stands in this file, which <code>prove report</code> reads \
         back. All times are UTC.</footer>",
        text(&document.reproduce.tool)
    );
    let json = serde_json::to_string(document).unwrap_or_default();
    let _ = writeln!(out, "{DATA}{}</script>", json.replace('<', "\\u003c"));
    close(out)
}

/// A page without a verdict of its own.
pub(crate) fn page(title: &str, sections: &[Section]) -> String {
    let mut out = open(title);
    let _ = writeln!(out, "<header>\n<h1>{}</h1>", text(title));
    contents(&mut out, sections);
    out.push_str("</header>\n<main>\n");
    all(&mut out, sections);
    out.push_str("</main>\n");
    close(out)
}

fn open(title: &str) -> String {
    let hash =
        |text: &str| STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        hash(STYLE),
        hash(SCRIPT),
        text(title)
    )
}

fn close(mut out: String) -> String {
    let _ = write!(out, "<script>{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

fn verdict(out: &mut String, document: &Document) {
    let summary = Summary::of(document);
    if let Some(says) = summary.simulated {
        let _ = writeln!(out, "<p class=\"simulated\">{says}</p>");
    }
    let _ = writeln!(
        out,
        "<div class=\"verdict{}\"><strong>{}</strong><p>{}</p><small>{}, exit code {}</small></div>",
        if summary.is_passed { " pass" } else { "" },
        text(&summary.word),
        text(summary.sentence),
        document.verdict.word(),
        document.verdict.exit_code()
    );
    out.push_str("<dl class=\"tiles\">\n");
    for figure in summary.figures {
        let _ = writeln!(
            out,
            "<div><dt>{}</dt><dd>{}</dd><dd>{}</dd></div>",
            figure.name,
            text(&figure.value),
            text(&figure.note)
        );
    }
    out.push_str("</dl>\n");
    if !document.objectives.is_empty() {
        out.push_str("<ul class=\"objectives\">\n");
        for objective in &document.objectives {
            let cell = Cell::held(objective.kept, &objective.name, &objective.name);
            let _ = writeln!(
                out,
                "<li{}>{}</li>",
                class(&[tone(cell.tone)]),
                text(&cell.text)
            );
        }
        out.push_str("</ul>\n");
    }
}

fn contents(out: &mut String, sections: &[Section]) {
    out.push_str("<nav>\n");
    for section in sections {
        let _ = writeln!(
            out,
            "<a href=\"#{}\">{}</a>",
            text(&section.id),
            text(&section.title)
        );
    }
    out.push_str("</nav>\n");
}

fn all(out: &mut String, sections: &[Section]) {
    for section in sections {
        let _ = writeln!(
            out,
            "<section id=\"{}\">\n<h2>{}</h2>",
            text(&section.id),
            text(&section.title)
        );
        for block in &section.blocks {
            write_block(out, block);
        }
        out.push_str("</section>\n");
    }
}

fn write_block(out: &mut String, block: &Block) {
    let _ = match block {
        Block::Text(says) => writeln!(out, "<p>{}</p>", text(says)),
        Block::Absent(says) => writeln!(out, "<p class=\"absent\">{}</p>", text(says)),
        Block::Code(code) => writeln!(out, "<pre>{}</pre>", lines(code)),
        Block::Folded { title, text: code } => writeln!(
            out,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            text(title),
            lines(code)
        ),
        Block::Table(table) => {
            write_table(out, table);
            Ok(())
        }
        Block::Bars(bars) => {
            write_bars(out, bars);
            Ok(())
        }
        Block::Link { file, says } => {
            writeln!(out, "<p><a href=\"{}\">{}</a></p>", text(file), text(says))
        }
        Block::Chart(chart) => writeln!(
            out,
            "<figure class=\"drawn\"><figcaption>{}</figcaption>\n{}<p class=\"caption\">{}</p></figure>",
            text(&chart.title),
            chart.svg(),
            text(&chart.caption)
        ),
    };
}

fn write_table(out: &mut String, table: &Table) {
    let _ = write!(
        out,
        "<figure>{}<div class=\"wide\" tabindex=\"0\"><table{}>\n<thead><tr>",
        caption(&table.caption),
        class(&[match table.columns.len() {
            2 => "pairs",
            MANY.. => "many",
            _ => "",
        }])
    );
    for column in &table.columns {
        let figure = if column.is_figure { "n" } else { "" };
        let _ = write!(
            out,
            "<th scope=\"col\"{}>{}</th>",
            class(&[figure]),
            text(&column.title)
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (at, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
            let rest = table.columns.len() - at;
            let is_wide = rest > 1 && at + 1 == row.len();
            let is_figure = column.is_figure && !is_wide;
            let figure = if is_figure { "n" } else { "" };
            let is_long = !is_figure && cell.text.chars().count() > LONG;
            let long = if is_long { "long" } else { "" };
            let class = class(&[figure, long, tone(cell.tone)]);
            let span = if is_wide {
                format!(" colspan=\"{rest}\"")
            } else {
                String::new()
            };
            let _ = write!(out, "<td{class}{span}>{}</td>", text(&cell.text));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div></figure>\n");
}

/// A row for each value, with its bar from 0. Where values differ by more than [`LOG_FROM`] a bar would mislead: then each
/// is a mark on a logarithmic axis.
fn write_bars(out: &mut String, bars: &Bars) {
    let medians = || bars.rows.iter().map(|bar| bar.value.median);
    let least = medians().fold(f64::INFINITY, f64::min);
    let is_log = least > 0.0 && medians().fold(0.0, f64::max) / least > LOG_FROM;
    let all = bars.rows.iter();
    let scale = Scale::over(all.flat_map(|bar| [bar.value.min, bar.value.max]), is_log);
    let note = if is_log { " (logarithmic)" } else { "" };
    let _ = writeln!(
        out,
        "<figure>{}<table class=\"bars\">",
        caption(&format!("{}{note}", bars.caption))
    );
    for Bar { name, value, says } in &bars.rows {
        let [at, low, high] = [value.median, value.min, value.max].map(|y| scale.place(y) * 100.0);
        let (from, width) = if is_log { (at - 0.5, 1.0) } else { (0.0, at) };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" \
             aria-hidden=\"true\"><rect x=\"{from:.1}\" width=\"{width:.1}\" height=\"10\"/><line class=\"spread\" \
             x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"5\" y2=\"5\"/></svg></td><td class=\"n\">{}</td></tr>",
            text(name),
            text(says)
        );
    }
    out.push_str("</table></figure>\n");
}

fn caption(says: &str) -> String {
    if says.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>", text(says))
    }
}

const fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
    }
}

fn class(names: &[&str]) -> String {
    let names: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", names.join(" "))
    }
}

fn text(text: &str) -> String {
    escape(&printable(&clipped(text)))
}

/// Text of several lines.
fn lines(text: &str) -> String {
    let lines: Vec<String> = super::clip::lines(text)
        .map(|line| escape(&printable(line)))
        .collect();
    lines.join("\n")
}
