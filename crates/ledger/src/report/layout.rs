//! Cells as lines that fit a terminal.
//!
//! Invariant: no line is longer than it may be, but for a single word that is. Numbers are never
//! shortened; names are, at their end, with a mark, where rows can be told apart by what is left of them.
//! Not here: what stands in the cells (`table`).

use std::collections::BTreeSet;

/// Most letters of a name; a client may choose a model's.
const NAME_MAX: usize = 32;
/// Where names of 32 letters leave no room for the numbers.
const SHORT_NAME_MAX: usize = 16;

/// Lines of at most `width` characters from rows of cells, the first of which is the head. The first
/// `names` columns are names, to the left; the others are to the right. Where the columns do not fit
/// even with shorter names, or these would make two rows one, each row becomes a paragraph: its names, and each number with its heading.
#[must_use]
pub fn laid_out(rows: &[Vec<String>], names: usize, width: usize) -> String {
    [NAME_MAX, SHORT_NAME_MAX]
        .into_iter()
        .map(|most| shortened(rows, names, most))
        .filter(|short| distinct(short, names) == distinct(rows, names))
        .map(|short| aligned(&short, names))
        .find(|text| text.lines().all(|line| line.chars().count() <= width))
        .unwrap_or_else(|| paragraphs(rows, names, width))
}

/// A sentence broken between words, lines after the first indented by `indent`.
#[must_use]
pub fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let words = text.trim_start_matches(' ');
    let mut out = " ".repeat(text.len() - words.len());
    let mut start = out.len();
    let mut column = start;
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > start && column + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            (start, column) = (indent, indent);
        } else if column > start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

fn shortened(rows: &[Vec<String>], names: usize, most: usize) -> Vec<Vec<String>> {
    let short = |(at, cell): (usize, &String)| {
        if at >= names || cell.chars().count() <= most {
            return cell.clone();
        }
        cell.chars().take(most - 1).chain(['…']).collect()
    };
    let row = |row: &Vec<String>| row.iter().enumerate().map(short).collect();
    rows.iter().map(row).collect()
}

/// How many rows can be told apart by their names.
fn distinct(rows: &[Vec<String>], names: usize) -> usize {
    let of: BTreeSet<Vec<&String>> = rows
        .iter()
        .map(|row| row.iter().take(names).collect())
        .collect();
    of.len()
}

fn paragraphs(rows: &[Vec<String>], names: usize, width: usize) -> String {
    let Some((heads, rows)) = rows.split_first() else {
        return String::new();
    };
    let mut out = String::new();
    for row in rows {
        let of: Vec<&str> = row.iter().take(names).map(String::as_str).collect();
        let of = of.join("  ");
        // A further currency goes on with the row above.
        if !of.trim().is_empty() {
            out.push_str(&wrapped(of.trim_end(), width, 4));
            out.push('\n');
        }
        let numbers = heads.iter().zip(row).skip(names);
        let numbers: Vec<String> = numbers
            .filter(|(_, cell)| !cell.is_empty())
            // One number is not broken from its heading or its unit.
            .map(|(head, cell)| format!("{head} {cell}").replace(' ', "\u{a0}"))
            .collect();
        let line = wrapped(&format!("  {}", numbers.join(", ")), width, 2);
        out.push_str(&line.replace('\u{a0}', " "));
        out.push('\n');
    }
    out
}

/// Columns two spaces apart.
fn aligned(rows: &[Vec<String>], names: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        rows.iter()
            .filter_map(|row| row.get(at))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if at == 0 { "" } else { "  " };
            let cell = if at < names {
                format!("{gap}{cell:<width$}")
            } else {
                format!("{gap}{cell:>width$}")
            };
            line.push_str(&cell);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_only_where_rows_stay_apart() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = |models: [&str; 2]| {
            let rows = [
                row(["key", "model", "tokens"]),
                row(["k1", models[0], "1"]),
                row(["k1", models[1], "22"]),
            ];
            laid_out(&rows, 2, 29)
        };
        let apart = table(["a-model-with-a-long-name", "b-model-with-a-long-name"]);
        assert_eq!(
            apart,
            "key  model             tokens\nk1   a-model-with-a-…       1\nk1   b-model-with-a-…      22\n"
        );
        let alike = table(["claude-sonnet-4-5", "claude-sonnet-4-6"]);
        assert_eq!(
            alike,
            "k1  claude-sonnet-4-5\n  tokens 1\nk1  claude-sonnet-4-6\n  tokens 22\n"
        );
    }
}
