//! What a report is made of, before it is HTML or Markdown: sections of sentences, tables and charts.
//!
//! Invariant: texts are as they came; whoever writes them out makes them harmless, in one place each.
//! Not here: which sections there are (`part`), how they look (`html`, `markdown`).

use super::chart::Chart;

/// A part of the report under a heading.
#[derive(Debug)]
pub(super) struct Section {
    /// Its anchor.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(super) enum Block {
    Text(String),
    /// A line that says why there is nothing.
    Absent(String),
    Table(Table),
    Chart(Box<Chart>),
    /// Lines as they are.
    Code(String),
    /// Lines that are shown when they are asked for.
    Folded {
        title: String,
        text: String,
    },
}

#[derive(Debug)]
pub(super) struct Table {
    /// What one sees; begins with the table's name where it has one.
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) is_figure: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// What a cell means, beside what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
}

impl Section {
    pub(super) fn new(id: &'static str, title: &'static str) -> Self {
        Self {
            id,
            title,
            blocks: Vec::new(),
        }
    }

    pub(super) fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub(super) fn absent(&mut self, why: impl Into<String>) {
        self.blocks.push(Block::Absent(why.into()));
    }

    /// Adds a table, or says that it would be empty.
    pub(super) fn table(&mut self, table: Table, otherwise: &str) {
        if table.rows.is_empty() {
            self.absent(otherwise);
        } else {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a chart, or says that there is nothing to draw.
    pub(super) fn chart(&mut self, chart: Chart, otherwise: &str) {
        if chart.is_empty() {
            self.absent(otherwise);
        } else {
            self.blocks.push(Block::Chart(Box::new(chart)));
        }
    }
}

impl Table {
    /// Columns whose names begin with `#` hold figures.
    pub(super) fn new(caption: impl Into<String>, columns: &[&str]) -> Self {
        let column = |title: &&str| Column {
            title: title.trim_start_matches('#').to_owned(),
            is_figure: title.starts_with('#'),
        };
        Self {
            caption: caption.into(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len(), "{}", self.caption);
        self.rows.push(cells.into());
    }

    /// Two columns: names, and what is known of each.
    pub(super) fn pairs<'a, V: ToString + 'a>(
        caption: &str,
        titles: [&str; 2],
        pairs: impl IntoIterator<Item = (&'a String, V)>,
    ) -> Self {
        let mut table = Self::new(caption, &titles);
        for (name, value) in pairs {
            table.row([name.into(), value.to_string().into()]);
        }
        table
    }
}

impl Cell {
    /// Whether something held, in a word.
    pub(super) fn held(held: bool, yes: &str, no: &str) -> Self {
        let (text, tone) = if held {
            (format!("✓ {yes}"), Tone::Good)
        } else {
            (format!("✗ {no}"), Tone::Bad)
        };
        Self { text, tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            tone: Tone::Plain,
        }
    }
}
