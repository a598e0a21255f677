//! Frames as one SVG: a film strip that moves by whole frames. Lines that are alike are written once.
//!
//! Not here: what the frames show (`cast`).

use std::collections::BTreeMap;

use super::Frame;
use super::cells::{Look, Row, Run};

/// A cell, and the edge around the terminal, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const EDGE: f64 = 12.0;
/// The lowest point of letters without descenders, from the top of a cell.
const BASE: f64 = 13.5;

const BACK: &str = "#11151c";
const FORE: &str = "#d5dbe3";
const COLOURS: [&str; 16] = [
    "#11151c", "#f26d78", "#8fd27c", "#e9c46a", "#6aa6f8", "#c594e8", "#58c7d4", "#d5dbe3",
    "#6b7685", "#ff8b94", "#a9e597", "#ffd98a", "#8cbcff", "#d9b0f5", "#7fe0ea", "#ffffff",
];

/// Draws a moving picture of a terminal of this size.
pub(super) fn picture(frames: &[Frame], columns: u16, rows: u16) -> String {
    let (width, height) = (
        f64::from(columns) * CELL.0 + 2.0 * EDGE,
        f64::from(rows) * CELL.1 + 2.0 * EDGE,
    );
    let all: f64 = frames.iter().map(|frame| frame.stands.as_secs_f64()).sum();
    let mut style = format!(
        "text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{FORE};\
         white-space:pre}}.b{{font-weight:700}}.u{{text-decoration:underline}}\
         .film{{animation:film {all:.1}s steps(1,end) infinite}}"
    );
    for (nth, colour) in COLOURS.iter().enumerate() {
        style += &format!(".c{nth}{{fill:{colour}}}");
    }
    style += "@keyframes film{";
    let (mut at, mut strip) = (0.0, String::new());
    let mut known: BTreeMap<&Row, usize> = BTreeMap::new();
    for (nth, frame) in frames.iter().enumerate() {
        let top = (nth as f64) * height;
        style += &format!(
            "{:.2}%{{transform:translateY({:.0}px)}}",
            100.0 * at / all,
            -top
        );
        at += frame.stands.as_secs_f64();
        for (line, row) in frame
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| !row.is_empty())
        {
            let next = known.len();
            let id = known.entry(row).or_insert(next);
            let y = top + EDGE + (line as f64) * CELL.1;
            strip += &format!("<use href=\"#r{id}\" y=\"{y:.0}\"/>");
        }
    }
    style += "}";
    let mut lines: Vec<(&Row, usize)> = known.into_iter().collect();
    lines.sort_by_key(|(_, id)| *id);
    let defs: String = lines.into_iter().map(|(row, id)| drawn(row, id)).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\"><title>tollgate demo: calls, limits, both counts of every token, and the \
         report</title><style>{style}</style><defs>{defs}</defs>\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACK}\"/><g class=\"film\">{strip}</g></svg>\n"
    )
}

/// A line, to be used by its id.
fn drawn(row: &Row, id: usize) -> String {
    let mut out = format!("<g id=\"r{id}\">");
    for run in row {
        out += &back(run);
    }
    out += &format!("<text y=\"{BASE}\">");
    for Run { column, text, look } in row {
        let begins = text.chars().take_while(|c| *c == ' ').count();
        let words = text.trim_matches(' ');
        if words.is_empty() {
            continue;
        }
        let x = EDGE + ((column + begins) as f64) * CELL.0;
        // Whatever font there is, a run is as wide as its cells.
        let length = (words.chars().count() as f64) * CELL.0;
        out += &format!(
            "<tspan x=\"{x:.1}\" textLength=\"{length:.1}\"{}>{}</tspan>",
            class(*look),
            escaped(words)
        );
    }
    out + "</text></g>"
}

fn back(run: &Run) -> String {
    let Some(colour) = run.look.back else {
        return String::new();
    };
    let x = EDGE + (run.column as f64) * CELL.0;
    let width = (run.text.chars().count() as f64) * CELL.0;
    let height = CELL.1;
    format!("<rect class=\"c{colour}\" x=\"{x:.1}\" width=\"{width:.1}\" height=\"{height:.0}\"/>")
}

fn class(look: Look) -> String {
    let mut names = Vec::new();
    names.extend(look.fore.map(|colour| format!("c{colour}")));
    names.extend(look.is_bold.then(|| "b".to_owned()));
    names.extend(look.is_underlined.then(|| "u".to_owned()));
    if names.is_empty() {
        return String::new();
    }
    format!(" class=\"{}\"", names.join(" "))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Frame;
    use super::super::cells::row;
    use super::picture;

    #[test]
    fn a_line_that_stands_in_two_frames_is_written_once() {
        let frame = |lines: &[&str]| Frame {
            rows: lines.iter().map(|line| row(line)).collect(),
            stands: Duration::from_secs(1),
        };
        let frames = [
            frame(&["\x1b[32ma < b\x1b[0m"]),
            frame(&["", "\x1b[32ma < b\x1b[0m", "c"]),
        ];
        let picture = picture(&frames, 10, 4);
        assert_eq!(picture.matches("a &lt; b").count(), 1, "{picture}");
        assert_eq!(picture.matches("<use ").count(), 3);
        assert!(picture.contains("class=\"c2\""), "{picture}");
        assert!(
            picture.contains("50.00%{transform:translateY(-96px)}"),
            "{picture}"
        );
    }
}
