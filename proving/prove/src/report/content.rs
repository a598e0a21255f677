//! What a report is made of, before it is HTML, Markdown or text: sections of sentences, tables and charts.
//!
//! Invariant: texts are as they came; whoever writes them out makes them harmless, in one place each.
//! Not here: which sections there are (`part`, and whoever reports), how they look (`html`, `markdown`, `plain`).

use experiment::statistics::Spread;

use super::chart::Chart;
use super::figure::ABSENT;

/// A part of the report under a heading.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its anchor.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(crate) enum Block {
    Text(String),
    /// A line that says why there is nothing.
    Absent(String),
    Table(Table),
    Chart(Box<Chart>),
    Bars(Bars),
    /// A file beside the report, and what it is.
    Link {
        file: String,
        says: String,
    },
    /// Lines as they are.
    Code(String),
    /// Lines that are shown when they are asked for.
    Folded {
        title: String,
        text: String,
    },
}

#[derive(Debug)]
pub(crate) struct Table {
    /// What one sees; begins with the table's name where it has one.
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    /// Where a row has fewer cells than there are columns, the last takes the room of the others.
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// Values side by side, each as long as it is great.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) caption: String,
    pub(crate) rows: Vec<Bar>,
}

#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: Spread,
    /// The value in words.
    pub(crate) says: String,
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) is_figure: bool,
}

/// The name of a column, and what stands in it of a row.
type ColumnOf<'a, R> = (&'a str, fn(&R) -> Cell);

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// What a cell means, beside what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
}

impl Section {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            blocks: Vec::new(),
        }
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub(crate) fn absent(&mut self, why: impl Into<String>) {
        self.blocks.push(Block::Absent(why.into()));
    }

    /// Adds a table without what was not measured, or says that it would be empty.
    pub(crate) fn table(&mut self, mut table: Table, otherwise: &str) {
        table.leave_out_absent();
        if table.rows.is_empty() {
            self.absent(otherwise);
        } else {
            self.blocks.push(Block::Table(table));
        }
    }

    /// Adds a chart, or says that there is nothing to draw.
    pub(crate) fn chart(&mut self, chart: Chart, otherwise: &str) {
        if chart.is_empty() {
            self.absent(otherwise);
        } else {
            self.blocks.push(Block::Chart(Box::new(chart)));
        }
    }
}

impl Table {
    /// Columns whose names begin with `#` hold figures.
    pub(crate) fn new(caption: impl Into<String>, columns: &[&str]) -> Self {
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

    /// Leaves out rows and columns of which nothing but the name is known.
    fn leave_out_absent(&mut self) {
        let columns = self.columns.len();
        let is_known = |cell: &Cell| cell.text != ABSENT;
        let has_value = |row: &Vec<Cell>| row.len() < 2 || row.iter().skip(1).any(is_known);
        self.rows.retain(has_value);
        if self.rows.iter().any(|row| row.len() != columns) {
            return;
        }
        let of = |rows: &[Vec<Cell>], at: usize| {
            let mut cells = rows.iter().filter_map(|row| row.get(at));
            at == 0 || cells.any(is_known)
        };
        let kept: Vec<bool> = (0..columns).map(|at| of(&self.rows, at)).collect();
        let mut keep = kept.iter();
        self.columns
            .retain(|_| keep.next().copied().unwrap_or(true));
        for row in &mut self.rows {
            let mut keep = kept.iter();
            row.retain(|_| keep.next().copied().unwrap_or(true));
        }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len(), "{}", self.caption);
        self.rows.push(cells.into());
    }

    /// A row for each of these; of each column its name, and what stands in it.
    pub(crate) fn each<R>(
        caption: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
        columns: &[ColumnOf<'_, R>],
    ) -> Self {
        let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
        let mut table = Self::new(caption, &titles);
        let row = |row: R| columns.iter().map(|(_, cell)| cell(&row)).collect();
        table.rows = rows.into_iter().map(row).collect();
        table
    }

    /// Names and figures.
    pub(crate) fn figures<'a>(
        caption: &str,
        titles: [&str; 2],
        rows: impl IntoIterator<Item = (&'a str, String)>,
    ) -> Self {
        let mut table = Self::new(caption, &titles);
        let row = |(name, value): (&str, String)| vec![name.into(), value.into()];
        table.rows = rows.into_iter().map(row).collect();
        table
    }

    /// A head and its rows, of which the first column is text and all others are figures.
    pub(crate) fn of_lines(caption: &str, lines: Vec<Vec<String>>) -> Self {
        let mut lines = lines.into_iter();
        let mut table = Self::new(caption, &[]);
        let head = lines.next().unwrap_or_default().into_iter().enumerate();
        table.columns = head
            .map(|(at, title)| Column {
                title,
                is_figure: at > 0,
            })
            .collect();
        table.rows = lines
            .map(|line| line.into_iter().map(Cell::from).collect())
            .collect();
        table
    }

    /// Two columns: names, and what is known of each.
    pub(crate) fn pairs<'a, V: ToString + 'a>(
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
    pub(crate) fn held(held: bool, yes: &str, no: &str) -> Self {
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
