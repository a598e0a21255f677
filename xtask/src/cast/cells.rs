//! A line that tmux captured with its colours, as runs of text that look alike.
//!
//! Not here: how they are drawn (`svg`).

/// How text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Look {
    /// A colour of sixteen, if it is not the usual one.
    pub(super) fore: Option<u8>,
    pub(super) back: Option<u8>,
    pub(super) is_bold: bool,
    pub(super) is_underlined: bool,
}

/// Text from a column on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Run {
    pub(super) column: usize,
    pub(super) text: String,
    pub(super) look: Look,
}

/// One line.
pub(super) type Row = Vec<Run>;

/// Reads a line. Sequences that are not of colours are left out.
pub(super) fn row(line: &str) -> Row {
    let mut row = Row::new();
    let (mut look, mut column) = (Look::default(), 0);
    for (nth, piece) in line.split('\x1b').enumerate() {
        let text = match piece.split_once('m') {
            Some((codes, text)) if nth > 0 && codes.starts_with('[') => {
                look = changed(look, &codes[1..]);
                text
            }
            _ if nth > 0 => piece.get(2..).unwrap_or_default(),
            _ => piece,
        };
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        let width = text.chars().count();
        let is_blank = text.trim().is_empty() && look.back.is_none() && !look.is_underlined;
        if !is_blank {
            row.push(Run { column, text, look });
        }
        column += width;
    }
    row
}

fn changed(mut look: Look, codes: &str) -> Look {
    for code in codes.split(';') {
        match code.parse::<u8>().unwrap_or_default() {
            0 => look = Look::default(),
            1 => look.is_bold = true,
            4 => look.is_underlined = true,
            22 => look.is_bold = false,
            24 => look.is_underlined = false,
            n @ 30..=37 => look.fore = Some(n - 30),
            39 => look.fore = None,
            n @ 40..=47 => look.back = Some(n - 40),
            49 => look.back = None,
            n @ 90..=97 => look.fore = Some(n - 90 + 8),
            n @ 100..=107 => look.back = Some(n - 100 + 8),
            _ => {}
        }
    }
    look
}

#[cfg(test)]
mod tests {
    use super::{Look, row};

    #[test]
    fn a_line_is_runs_of_text_by_their_looks() {
        let row = row("a\x1b[1;32mbc\x1b[0m  \x1b[90m──\x1b[39m x\x1b(B");
        let runs: Vec<_> = row
            .iter()
            .map(|run| (run.column, &*run.text, run.look.fore))
            .collect();
        let expected = [
            (0, "a", None),
            (1, "bc", Some(2)),
            (5, "──", Some(8)),
            (7, " x", None),
        ];
        assert_eq!(runs, expected);
        assert!(row[1].look.is_bold && !row[2].look.is_bold);
        assert_eq!(row[3].look, Look::default());
    }
}
